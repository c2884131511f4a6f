"""What a record is: verdicts, kinds of evidence, MIME types, and how a record is written into a notebook and read back.

The ledger writes records in a chapter; the book's pages and tests read them. Both import this module, which needs the
standard library only.
"""

import csv
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

RECORD_MIME = "application/vnd.smalltorch.record+json"
CHAPTER_MIME = "application/vnd.smalltorch.chapter+json"

# Verdicts, and the kinds of evidence of which each needs at least one piece.
DECISIVE = {"derived", "proved in text", "computed", "measured", "cited"}
SUPPORT = {
    "true": DECISIVE,
    "true if": DECISIVE,
    "imprecise": DECISIVE | {"counterexample", "verified"},
    "false": DECISIVE | {"counterexample"},
    "open": DECISIVE | {"counterexample", "verified", "none"},
}
VERDICTS = tuple(SUPPORT)
EVIDENCE = ("derived", "proved in text", "counterexample", "verified", "measured", "computed", "cited", "none")
NOT_CHECKS = ("cited", "none")  # kinds of evidence that no run can give


def verdict_kind(verdict: str) -> str | None:
    """The verdict without its condition: one of VERDICTS, or None if it is none.

        >>> verdict_kind("true if $n > 1$"), verdict_kind("true if"), verdict_kind("perhaps")
        ('true if', None, None)

    A verdict of `true if` needs its condition.
    """
    found = re.fullmatch(r"(true if) \S.*|(true|imprecise|false|open)", verdict, re.DOTALL)
    return found and (found[1] or found[2])


@dataclass(frozen=True)
class Claim:
    """What is said, paraphrased, and the chapter that settles it: one row of `book/claims.csv`."""

    id: str
    source: str
    place: str
    claim: str
    chapter: str


def read_claims(path: Path) -> tuple[Claim, ...]:
    """The rows of `book/claims.csv`."""
    with path.open(encoding="utf-8", newline="") as file:
        return tuple(Claim(**row) for row in csv.DictReader(file, strict=True))


@dataclass(frozen=True)
class Evidence:
    """One piece of evidence: its kind, one line of text, and the cell that made it.

    Cells are counted as they run, from 0 for the one that opened the chapter.
    """

    kind: str
    text: str
    cell: int = 0


@dataclass(frozen=True)
class Record:
    """The outcome for one claim: the verdict, what holds, under which assumptions, on what evidence."""

    claim: str
    chapter: str
    verdict: str
    statement: str
    assumptions: str
    evidence: tuple[Evidence, ...]

    @property
    def kind(self) -> str | None:
        """The verdict without its condition, or None where it is no verdict."""
        return verdict_kind(self.verdict)


@dataclass(frozen=True)
class Closing:
    """What closing a chapter leaves: how many checks it declares and ran, the claims it settles, and the cell."""

    chapter: str
    declared: int
    executed: int
    claims: tuple[str, ...]
    cell: int = 0


def bundle(records: list[Record], closing: Closing) -> dict[str, dict[str, Any]]:
    """Both as outputs of a notebook, by MIME type."""
    return {RECORD_MIME: {"records": [asdict(record) for record in records]}, CHAPTER_MIME: asdict(closing)}


def read_records(data: Mapping[str, Any]) -> list[Record]:
    """The records in an output of a notebook, by MIME type; none where it holds none."""
    entries = data.get(RECORD_MIME, {}).get("records", ())
    return [Record(**{**entry, "evidence": tuple(Evidence(**item) for item in entry["evidence"])}) for entry in entries]


def read_closing(data: Mapping[str, Any]) -> Closing | None:
    """The closing of a chapter in an output of a notebook, or None."""
    entry = data.get(CHAPTER_MIME)
    return entry and Closing(**{**entry, "claims": tuple(entry["claims"])})


def anchor(claim: str) -> str:
    """The HTML id of the place where a claim is settled."""
    return "claim-" + re.sub(r"[^a-z0-9]+", "-", claim.lower()).strip("-")
