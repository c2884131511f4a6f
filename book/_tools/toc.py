"""Generate `_toc.yml` and the ledger's pages from `parts.yml` and the notebooks, or check that they are current.

toc.py write
toc.py check
"""

import sys
from pathlib import Path

from deepdive.book import contents, records
from smalltorch.files import in_one_line, write_text

ROOT = Path(__file__).resolve().parents[2]
FILE = "_toc.yml"
PAGE = """\
# Claims: {}

```{{chapter-ledger}}
```
"""


def wanted(root: Path) -> dict[str, str]:
    """The files that follow from others, and their texts."""
    book = records.read_book(root)
    settling = [chapter for chapter in book.chapters.values() if book.claims_of(chapter.name)]
    pages = {f"{contents.ledger_page(chapter.name)}.md": PAGE.format(chapter.title) for chapter in settling}
    return {FILE: contents.toc(root, contents.read(root), [chapter.name for chapter in settling])} | pages


def left(root: Path, files: dict[str, str]) -> list[Path]:
    """Pages of the ledger that belong to no chapter now."""
    return [path for path in root.glob(f"{contents.LEDGER}/*.md") if path.relative_to(root).as_posix() not in files]


def write(root: Path) -> None:
    files = wanted(root)
    for name, text in files.items():
        (root / name).parent.mkdir(exist_ok=True)
        write_text(root / name, text)
    for path in left(root, files):
        path.unlink()


def problems(root: Path) -> list[str]:
    """A line for each stored file that says something else, is missing, or should not be there."""
    files = wanted(root)
    stale = [
        name for name, text in files.items() if not (root / name).exists() or (root / name).read_text("utf-8") != text
    ]
    stale += [path.relative_to(root).as_posix() for path in left(root, files)]
    return [f"{name} is not what {contents.FILE} and the notebooks say: make toc" for name in stale]


def main() -> None:
    if sys.argv[1:] == ["write"]:
        write(ROOT)
    elif found := problems(ROOT):
        sys.exit("\n".join(found))


if __name__ == "__main__":
    with in_one_line():
        main()
