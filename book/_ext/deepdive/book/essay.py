"""Parse an essay: a chapter of prose without code, and the file of verdicts beside it.

`book/landscape.md` is the page. `book/landscape.yml` has for each claim its verdict, the reason in one sentence, and
the works that were read, each with what it was read for:

    - claim: C150
      verdict: open
      reason: It takes models that fit on no desk.
      read:
        nawrot2025sparse: larger sparse models against smaller dense ones at equal cost

The page shows each verdict where it speaks of the claim: {claim}`C150`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml
from docutils.nodes import make_id

from deepdive.book.chapter import HEADING, RESULT, TITLE, Chapter, Located
from smalltorch.engine.schema import Evidence, Record

VERDICTS = ("imprecise", "open")  # what can be said without a check
SHOWN = re.compile(r"\{claim\}`([^`\n]*)`")


@dataclass(frozen=True)
class Essay(Chapter):
    """A chapter of prose; `shown` are the claims whose verdicts stand in its text, in their order."""

    shown: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        return f"{self.page}.md"


def record(chapter: str, claim: str, verdict: str, reason: str = "", read: Mapping[str, str] = {}) -> Record:
    """A record that rests on works that were read, and on no check."""
    works = [
        Evidence("cited", f"{what} ({key})", shows=tuple(filter(None, [what])), about=(key,))
        for key, what in read.items()
    ]
    return Record(claim, chapter, verdict, reason, "", tuple(works))


def read_essay(root: Path, page: str) -> Essay:
    """Read a page of prose and the verdicts beside it; `page` is its path from the root, without the suffix."""
    text = (root / f"{page}.md").read_text(encoding="utf-8")
    entries = yaml.safe_load((root / f"{page}.yml").read_text(encoding="utf-8"))
    name, title, result = Path(page).name, TITLE.search(text), RESULT.search(text)
    return Essay(
        name=name,
        page=page,
        title=title[1] if title else name,
        cells=(),
        code=(),
        records=tuple(Located(record(name, **entry), 0) for entry in entries),
        closings=(),
        result=" ".join(result[1].splitlines()) if result else "",
        headings={make_id(heading): heading for heading in HEADING.findall(text)},
        shown=tuple(SHOWN.findall(text)),
    )
