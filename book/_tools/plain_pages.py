"""Look at the reader's editions as the plainest front end shows them: nbconvert's HTML, without an extension.

    plain_pages.py _build/html        with the Python that has nbconvert, and the library on its path

Nothing of the source's markup may be left, every picture has its caption and is there without being run, every exercise
has its solution, folded.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from nbconvert import HTMLExporter

from smalltorch.files import read_notebook

LARGEST = 1_000_000  # bytes
MARKUP = re.compile(
    r":{3,}|\{(?:prf|cite|numref|doc|ref|exercise|solution|admonition|div)\b|^:(?:label|class):", re.MULTILINE
)


def problems(edition: Path, exporter: HTMLExporter) -> Iterator[str]:
    cells, text = read_notebook(edition)["cells"], edition.read_text(encoding="utf-8")
    page, _ = exporter.from_filename(str(edition))
    page = page[page.index("<body") :]
    prose = re.sub(r"<pre.*?</pre>|<code.*?</code>", "", page, flags=re.DOTALL)
    if len(text.encode()) > LARGEST:
        yield f"{len(text.encode()) // 1000} kB, and {LARGEST // 1000} are allowed"
    if left := MARKUP.search(prose):
        yield f"markup is left: {prose[max(0, left.start() - 60) : left.end() + 60]!r}"
    drawn = sum("image/png" in output.get("data", ()) for cell in cells for output in cell.get("outputs", ()))
    shown, captions = page.count('src="data:image/png'), len(re.findall(r"<strong>Fig\. [\d.]+</strong>", page))
    if not drawn == shown == captions:
        yield f"it draws {drawn} pictures, shows {shown} of them and has {captions} captions"
    if "image/svg+xml" in text:
        yield "a picture is SVG, which an untrusted notebook hides"
    exercises, solutions = len(re.findall(r"<h3[^>]*>Exercise ", page)), page.count("<summary>Solution</summary>")
    if not 0 < exercises == solutions:
        yield f"{exercises} exercises have {solutions} solutions"
    if re.search(r"<details[^>]* open", page):
        yield "a hint or a solution is open"
    counts = [cell["execution_count"] for cell in cells if cell["cell_type"] == "code"]
    if counts != list(range(1, 1 + len(counts))):
        yield "its code cells do not count as they run"


def main() -> None:
    exporter = HTMLExporter()
    editions = sorted(Path(sys.argv[1]).glob("notebooks/*/*.ipynb"))
    found = [f"{edition.stem}: {problem}" for edition in editions for problem in problems(edition, exporter)]
    print("\n".join(found) or f"{len(editions)} reader's editions read well without any extension")
    sys.exit(bool(found) or not editions)


if __name__ == "__main__":
    main()
