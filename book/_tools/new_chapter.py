"""Start a chapter: a notebook that runs and passes the tests as it is, listed wherever it must be.

    new_chapter.py NAME [PART]

NAME is lower case with hyphens, such as `sinusoids`; PART a folder of `book/parts.yml`, such as `6-position`, needed
only for a chapter that is not planned there. The notebook is `book/_tools/template.ipynb` with NAME filled in. The
claims that `book/claims.csv` assigns to it are settled as open at first; where there are none, one is added.
"""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path

import nbformat

import notebooks

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "_ext"))
from deepdive.book import records  # noqa: E402

TEMPLATE = Path(__file__).with_name("template.ipynb")
EXAMPLE = "The square of a mean is at most the mean of the squares."  # what the template proves
PROVED = """chapter.settle("{}", verdict="true", by=[mean_square, holds],
               holds=r"$(\\frac1n\\sum_ix_i)^2\\le\\frac1n\\sum_ix_i^2$; the gap is the variance.")"""
PART = """\
# {title}

What this part is about, in one paragraph.

```{{part}}
```
"""
RESULT = "{}: What this chapter finds, in a sentence."
IMPORT = "from smalltorch.ledger import none_possible"
OPEN = """chapter.settle("{}", verdict="open", by=[none_possible("not yet examined")],
               holds="Nothing is shown yet.")"""
NEXT = """
Now, and after every change:
  {0:<{width}}  runs it and stores its outputs
  {1:<{width}}  looks at its form, and whether it settles all its claims
  {2:<{width}}  runs it again and compares: what `make test` does for all of them
  {3:<{width}}  builds the book and says where it is"""


class Refusal(Exception):
    """What is wrong with NAME or PART, in one line."""


def create(root: Path, name: str, folder: str = "") -> list[str]:
    """Write the notebook and list it; what was done, one line each.

    Raises:
        Refusal: if there can be no such chapter; then nothing was written.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise Refusal(f"NAME: expected lower case letters, digits and hyphens, such as my-chapter, got {name!r}")
    book = records.read_book(root)
    if name in book.chapters:
        raise Refusal(f"NAME: the chapter {name} exists: {book.chapters[name].page}.ipynb")
    planned = next((part for part in book.parts if name in part.chapters), None)
    part = planned or next((part for part in book.parts if part.folder and part.folder == folder), None)
    if part is None or folder not in ("", part.folder):
        folders = f"one of {', '.join(part.folder for part in book.parts if part.folder)}"
        raise Refusal(f"PART: expected {planned.folder if planned else folders}, got {folder!r}")

    done = []
    if not planned:
        edit(root / "book/parts.yml", lambda text: add_to_part(text, part.folder, name))
        done.append("book/parts.yml: listed")
    claims = [claim.id for claim in book.claims_of(name)]
    if claims:
        settled = "\n\n".join([IMPORT, *[OPEN.format(claim) for claim in claims]])
        done.append(f"book/claims.csv: it is to settle {', '.join(claims)}; for now they are open")
    else:
        settled = PROVED.format(f"{name}-1")
        with (root / "book/claims.csv").open("a", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerow([f"{name}-1", "R", "where it is said", EXAMPLE, name])
        done.append(f"book/claims.csv: the claim {name}-1 added; put yours in its place")
    edit(root / "_toc.yml", lambda text: add_to_toc(text, part, name))
    opening = root / f"book/parts/{part.folder}.md"
    if not opening.exists():
        opening.parent.mkdir(exist_ok=True)
        opening.write_text(PART.format(title=part.title), encoding="utf-8")
    edit(opening, lambda text: add_to_opening(text, name))
    done.append(f"{opening.relative_to(root)}: a line for its result added")
    path = root / "notebooks" / part.folder / f"{name}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(notebooks.text_of(notebook(name, settled, root)), encoding="utf-8")
    return [f"{path.relative_to(root)}: written", "_toc.yml: listed", *done]


def notebook(name: str, settled: str, root: Path) -> nbformat.NotebookNode:
    """The template with the chapter's name and what settles its claims."""
    text = TEMPLATE.read_text(encoding="utf-8").replace("NAME", name)
    filled = nbformat.reads(text, 4)
    for cell in filled.cells:
        cell.source = cell.source.replace("# CLAIMS", settled + "\n")
    return notebooks.normalise(filled, root)


def edit(path: Path, change) -> None:
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")


def add_to_part(text: str, folder: str, name: str) -> str:
    """parts.yml with the chapter at the end of its part."""
    return re.sub(rf"(  folder: {re.escape(folder)}\n  chapters: \[[^\]]*)\]", rf"\1, {name}]", text)


def add_to_opening(text: str, name: str) -> str:
    """The page that opens a part, with a line for the chapter's result."""
    before, fence, after = text.rpartition("```")
    return f"{before}{RESULT.format(name)}\n{fence}{after}"


def add_to_toc(text: str, part: records.Part, name: str) -> str:
    """_toc.yml with the chapter behind those that precede it in its part; a part's first chapter opens the part.

    A part is two lists: the page that opens it, which has no number, and its chapters, which have.
    """
    line = f"      - file: notebooks/{part.folder}/{name}\n"
    names = (*part.chapters, name)
    before = [f"      - file: notebooks/{part.folder}/{other}\n" for other in names[: names.index(name)]]
    place = next((entry for entry in reversed(before) if entry in text), None)
    if place:
        return text.replace(place, place + line)
    head = f"      - file: book/parts/{part.folder}\n        title: Overview\n  - numbered: true\n    chapters:\n"
    if head in text:
        return text.replace(head, head + line)
    last = "  - caption: Back matter\n"
    return text.replace(last, f"  - caption: {part.title}\n    chapters:\n{head}{line}{last}")


def main() -> None:
    name, folder = (*sys.argv[1:], "", "")[:2]
    try:
        done = create(notebooks.ROOT, name, folder)
    except Refusal as refusal:
        sys.exit(f"{refusal}\nUsage: make new-chapter NAME=my-chapter PART=6-position")
    commands = (f"make execute NB={name}", "make lint", f"make notebooks NB={name}", "make book")
    print("\n".join(done) + "\n" + NEXT.format(*commands, width=max(map(len, commands))))


if __name__ == "__main__":
    main()
