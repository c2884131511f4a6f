"""Create a chapter from the template: a notebook that runs and passes the tests, listed in `parts.yml`.

    new_chapter.py NAME [PART]

NAME is lower case with hyphens, such as `sinusoids`; PART a folder of `book/parts.yml`, such as `position`, needed
only for a chapter that is not planned there. The notebook is `book/_tools/template.ipynb` with NAME filled in. The
claims that `book/claims.csv` assigns to it are settled as open at first; there may be none.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import nbformat

import notebooks
import toc
from deepdive.book import contents, records
from smalltorch.files import in_one_line, write_text

TEMPLATE = Path(__file__).with_name("template.ipynb")
PART = """\
# {}

What this part is about, in one paragraph.

```{{part}}
```
"""
SETTLES = "## What this chapter settles"
IMPORT = "from smalltorch.engine.ledger import none_possible"
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
    if planned and not planned.folder:
        raise Refusal(f"NAME: {name} is to be a page of prose, {planned.page(name)}.md, and no notebook")
    part = planned or next((part for part in book.parts if part.folder and part.folder == folder), None)
    if part is None or folder not in ("", part.folder):
        folders = f"one of {', '.join(part.folder for part in book.parts if part.folder)}"
        raise Refusal(f"PART: expected {planned.folder if planned else folders}, got {folder!r}")

    done = []
    if not planned:
        order = root / contents.FILE
        write_text(order, add_to_part(order.read_text(encoding="utf-8"), part.folder, name))
        done.append(f"{contents.FILE}: listed")
    claims = [claim.id for claim in book.claims_of(name)]
    settled = "\n\n".join([IMPORT, *[OPEN.format(claim) for claim in claims]]) if claims else ""
    if claims:
        done.append(f"book/claims.csv: it is to settle {', '.join(claims)}; for now they are open")
    opening = root / f"{part.opening}.md"
    if not opening.exists():
        opening.parent.mkdir(exist_ok=True)
        write_text(opening, PART.format(part.title))
        done.append(f"{part.opening}.md: written; say there what the part is about")
    path = root / f"{part.page(name)}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, notebooks.text_of(notebook(name, settled, root)))
    toc.write(root)
    return [f"{path.relative_to(root)}: written", f"{toc.FILE}: written", *done]


def notebook(name: str, settled: str, root: Path) -> nbformat.NotebookNode:
    """The template with the chapter's name and what settles its claims; without claims there is no table of them."""
    text = TEMPLATE.read_text(encoding="utf-8").replace("NAME", name)
    filled = nbformat.reads(text, 4)
    for cell in filled.cells:
        cell.source = cell.source.replace("# CLAIMS", f"{settled}\n" if settled else "").lstrip("\n")
        if not settled and cell.source == SETTLES:
            cell.source = ""  # which leaves the cell out
    return notebooks.normalise(filled, root)


def add_to_part(text: str, folder: str, name: str) -> str:
    """parts.yml with the chapter at the end of its part."""
    return re.sub(rf"(  folder: {re.escape(folder)}\n  chapters: \[[^\]]*)\]", rf"\1, {name}]", text)


def main() -> None:
    name, folder = (*sys.argv[1:], "", "")[:2]
    try:
        done = create(notebooks.ROOT, name, folder)
    except Refusal as refusal:
        sys.exit(f"{refusal}\nUsage: make new-chapter NAME=my-chapter PART=position")
    commands = (f"make execute NB={name}", f"make lint NB={name}", f"make notebooks NB={name}", "make book")
    print("\n".join(done) + "\n" + NEXT.format(*commands, width=max(map(len, commands))))


if __name__ == "__main__":
    with in_one_line():
        main()
