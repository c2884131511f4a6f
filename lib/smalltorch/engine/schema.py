"""The schema of a record: verdicts, kinds of evidence, MIME types, and how notebooks store it.

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
DECISIVE = {"derived", "proved in text", "fact", "computed", "measured", "cited"}
SUPPORT = {
    "true": DECISIVE - {"fact"},  # which holds for no sizes but its own
    "true if": DECISIVE - {"fact"},
    "imprecise": DECISIVE | {"counterexample", "verified"},
    "false": DECISIVE | {"counterexample"},
    "open": DECISIVE | {"counterexample", "verified", "none"},
}
VERDICTS = tuple(SUPPORT)
EVIDENCE = ("derived", "proved in text", "fact", "counterexample", "verified", "measured", "computed", "cited", "none")
NOT_CHECKS = ("cited", "none")  # kinds of evidence that no run can give
KEY = re.compile(r"^@\w+\s*\{\s*([^\s,]+)\s*,", re.MULTILINE)  # of an entry of a bibliography


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


def read_keys(path: Path) -> frozenset[str]:
    """The keys of `book/references.bib`."""
    return frozenset(KEY.findall(path.read_text(encoding="utf-8")))


@dataclass(frozen=True)
class Evidence:
    """One piece of evidence: its kind, one line of text, the cell that made it, and what it shows.

    Cells are counted as they run, from 0 for the one that opened the chapter.

    Args:
        shows: the conclusions, as the check has them: of a derivation, a statement; of a computation, its values.
        given: the hypotheses under which that is shown, beside what its symbols were declared to be.
        scope: for what it is shown: `all n`, `n = 6`, `12 texts`.
        by: what closed the steps of a derivation: normal form, expand, cancel, simplify.
        instance: values at which all hypotheses hold.
        about: what it speaks of: the keys of cited works, the claims that a counterexample refutes, the label of the
            theorem that a written proof proves.
    """

    kind: str
    text: str
    cell: int = 0
    shows: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    scope: str = ""
    by: tuple[str, ...] = ()
    instance: str = ""
    about: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """What was done, at a glance: `proved for all n`, `computed at n = 6`."""
        if self.kind == "derived":
            count = len(self.given)
            under = f", with {count} {'hypothesis' if count == 1 else 'hypotheses'}" if count else ""
            return f"proved for {self.scope}{under}" if self.scope else f"proved{under}"
        if self.kind in _SIZED and self.scope:
            return f"{self.kind} {_SIZED[self.kind]} {self.scope}"
        return {"proved in text": "proved in words", "none": "no evidence to be had"}.get(self.kind, self.kind)

    @property
    def conclusion(self) -> tuple[str, tuple[str, ...], tuple[str, ...], str]:
        """What a record's sentence rests on; where it changes, so should the sentence."""
        return self.kind, self.shows, self.given, self.scope


_SIZED = {"computed": "at", "measured": "on"}
_SEQUENCES = ("shows", "given", "by", "about")  # tuples here, lists in JSON


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


def shortcomings(record: Record) -> list[str]:
    """What keeps the evidence of a record from carrying it, one line each; nothing where it is carried."""
    kind, found = record.kind or "open", []
    kinds = {piece.kind for piece in record.evidence}
    computed_alone = kind in ("true", "true if") and kinds & SUPPORT[kind] == {"computed"}
    if not kinds & SUPPORT[kind]:
        found.append(
            f"a verdict of {record.verdict!r} needs evidence of kind {', '.join(sorted(SUPPORT[kind]))}; "
            f"got {', '.join(sorted(kinds)) or 'none'}"
        )
    for piece in record.evidence:
        if not piece.shows and piece.kind != "none":
            found.append(f"the evidence {piece.text!r} does not say what it shows")
        if piece.given and not record.assumptions.strip():
            found.append(f"it has no assuming=…, and {piece.text!r} is shown under a hypothesis: {piece.given[0]}")
        if piece.kind == "counterexample":
            if record.claim not in piece.about:
                against = " ".join(piece.about) or "none"
                found.append(f"against=… of {piece.text!r} must name the claim {record.claim}, got {against}")
            elif kind == "true":
                found.append(f"the verdict is 'true', and {piece.text!r} refutes the claim")
        if computed_alone and piece.kind == "computed" and not piece.scope:
            found.append(f"it rests on {piece.text!r}, which does not say for which sizes, inputs or models: at=…")
    return found


def unsaid(stored: list[Record], new: list[Record]) -> list[str]:
    """The claims whose evidence no longer shows all that it showed, while the words of their records are the same.

    Evidence that is added needs no other words, nor does evidence that carries no verdict.
    """
    before = {record.claim: record for record in stored}
    found = []
    for record in new:
        old = before.get(record.claim, record)
        if (old.verdict, old.statement, old.assumptions) == (record.verdict, record.statement, record.assumptions):
            shown = {piece.conclusion for piece in record.evidence}
            lost = [e for e in old.evidence if e.shows and e.kind != "verified" and e.conclusion not in shown]
            found += [record.claim] if lost else []
    return found


@dataclass(frozen=True)
class Closing:
    """What closing a chapter leaves: how many checks it declares and ran, the claims it settles, and the cell."""

    chapter: str
    declared: int
    executed: int
    claims: tuple[str, ...]
    cell: int = 0


def bundle(records: list[Record], closing: Closing) -> dict[str, dict[str, Any]]:
    """Both as outputs of a notebook, by MIME type; of evidence, what says something."""
    entries = [asdict(record) for record in records]
    for entry in entries:
        entry["evidence"] = [{k: v for k, v in piece.items() if v or k == "cell"} for piece in entry["evidence"]]
    return {RECORD_MIME: {"records": entries}, CHAPTER_MIME: asdict(closing)}


def read_records(data: Mapping[str, Any]) -> list[Record]:
    """The records in an output of a notebook, by MIME type; none where it holds none."""
    entries = data.get(RECORD_MIME, {}).get("records", ())
    return [Record(**{**entry, "evidence": tuple(map(_read_evidence, entry["evidence"]))}) for entry in entries]


def _read_evidence(item: Mapping[str, Any]) -> Evidence:
    return Evidence(**{**item, **{name: tuple(item[name]) for name in _SEQUENCES if name in item}})


def read_closing(data: Mapping[str, Any]) -> Closing | None:
    """The closing of a chapter in an output of a notebook, or None."""
    entry = data.get(CHAPTER_MIME)
    return entry and Closing(**{**entry, "claims": tuple(entry["claims"])})


def anchor(claim: str) -> str:
    """The HTML id of the place where a claim is settled."""
    return "claim-" + re.sub(r"[^a-z0-9]+", "-", claim.lower()).strip("-")
