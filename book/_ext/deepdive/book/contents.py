"""Parse `parts.yml`: the order of parts and chapters, and the pages before and after them.

`book/parts.yml` is the one list. A chapter exists once its notebook does. What `_toc.yml` says follows from both.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import yaml

FILE = "book/parts.yml"
OPENINGS = "book/parts/"  # where the pages are that open the parts
REVIEWS = "book/reviews/"  # and those that close them, with ten questions each
LEDGER = "book/ledger"
BEFORE, AFTER = "Before you start", "Back matter"
HEAD = f"# Written by make toc from {FILE} and the notebooks that exist; make lint compares.\n"


def ledger_page(chapter: str) -> str:
    """The page with a chapter's claims and their evidence, below that of all claims."""
    return f"{LEDGER}/{chapter}"


@dataclass(frozen=True)
class Part:
    """A part of the book and the names of the chapters it has or will have.

    `folder` is that of its notebooks; a part without one is to consist of pages of prose.
    """

    title: str
    folder: str
    chapters: tuple[str, ...]

    @property
    def opening(self) -> str:
        """The page that opens it; of a part of prose, its first."""
        return f"{OPENINGS}{self.folder}" if self.folder else self.page(self.chapters[0])

    @property
    def review(self) -> str:
        """The page of questions that closes it."""
        return f"{REVIEWS}{self.folder}"

    def page(self, chapter: str) -> str:
        """The page of a chapter, from the root of the book, without suffix."""
        return f"notebooks/{self.folder}/{chapter}" if self.folder else f"book/{chapter}"


@dataclass(frozen=True)
class Contents:
    """What parts.yml says. `moved` has the new address for each old one of a page."""

    root: str
    before: tuple[str, ...]
    parts: tuple[Part, ...]
    after: tuple[str, ...]
    moved: dict[str, str] = field(default_factory=dict)


def read(root: Path) -> Contents:
    found = yaml.safe_load((root / FILE).read_text(encoding="utf-8"))
    return Contents(
        root=found["root"],
        before=tuple(found["before"]),
        parts=tuple(Part(**{**part, "chapters": tuple(part["chapters"])}) for part in found["parts"]),
        after=tuple(found["after"]),
        moved=found.get("moved", {}),
    )


def written(root: Path, part: Part) -> list[str]:
    """The pages of the chapters of a part that exist."""
    pages, suffix = [part.page(name) for name in part.chapters], ".ipynb" if part.folder else ".md"
    return [page for page in pages if (root / f"{page}{suffix}").is_file()]


def pages(root: Path, part: Part) -> list[str]:
    """The pages of a part that exist: the one that opens it, its chapters, and the one that closes it."""
    chapters = written(root, part)
    if not chapters or not part.folder:
        return chapters
    closing = [part.review] if (root / f"{part.review}.md").is_file() else []
    return [part.opening, *chapters, *closing]


def outline(root: Path, contents: Contents) -> list[tuple[str, list[str]]]:
    """The book in its order: the title of each part and its pages. The first page stands before the parts."""
    found = [
        ("", [contents.root]),
        (BEFORE, list(contents.before)),
        *((part.title, pages(root, part)) for part in contents.parts),
        (AFTER, list(contents.after)),
    ]
    return [(title, names) for title, names in found if names]


def toc(root: Path, contents: Contents, settling: Iterable[str] = ()) -> str:
    """The text of `_toc.yml`; `settling` are the chapters that have a page of the ledger.

    A part is three lists, without a caption: the page that opens it, which has no number, its chapters, which have, and
    the page that closes it.
    """
    below = {LEDGER: [f"          - file: {ledger_page(name)}" for name in settling]}
    lines = ["format: jb-book", f"root: {contents.root}", "parts:"]
    for title, names in outline(root, contents)[1:]:
        closing = [page for page in names if page.startswith(REVIEWS)]
        if names[0].startswith(OPENINGS):
            lines += ["  - chapters:", f"      - file: {names[0]}", f"        title: {title}", "  - numbered: true"]
            names = names[1 : len(names) - len(closing)]
        else:
            lines.append(f"  - caption: {title}")
        lines.append("    chapters:")
        for page in names:
            lines.append(f"      - file: {page}")
            if below.get(page):
                lines += ["        sections:", *below[page]]
        lines += [line for page in closing for line in ("  - chapters:", f"      - file: {page}")]
    return HEAD + "\n".join(lines) + "\n"


def stray_notebooks(root: Path) -> list[str]:
    """Notebooks that no reader would find, since parts.yml has no such chapter there."""
    listed = {f"{part.page(name)}.ipynb" for part in read(root).parts for name in part.chapters}
    on_disk = {path.relative_to(root).as_posix() for path in (root / "notebooks").glob("**/[!.]*.ipynb")}
    return [f"{path}: not in {FILE}" for path in sorted(on_disk - listed) if ".ipynb_checkpoints" not in path]
