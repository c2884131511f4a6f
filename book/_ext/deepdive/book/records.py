"""The claims ledger as data: claims, the chapters' verdict records, how they are counted, and what is inconsistent.

A claim is a row of `book/claims.csv`. A record is what an executed check says of a claim; it travels in the outputs of
a notebook. What no check here can decide has its record beside an essay. The ledger page, `make lint` and the report on
a failed notebook all use what is read here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path

from deepdive.book import contents, essay
from deepdive.book.chapter import Chapter, read_chapter
from deepdive.book.contents import Part
from deepdive.book.essay import Essay, read_essay
from smalltorch.engine.schema import EVIDENCE, VERDICTS, Claim, Evidence, Record, read_claims, read_keys, shortcomings

NOTES = ("N1", "N2", "N3", "N4", "N5")
SOURCES = (*NOTES, "R")  # R: what a reader brings
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True)
class Book:
    """All claims, all chapters that exist (by name, in reading order), the map of the parts and the cited works."""

    claims: tuple[Claim, ...]
    chapters: dict[str, Chapter]
    parts: tuple[Part, ...]
    keys: frozenset[str] = frozenset()

    @cached_property
    def records(self) -> dict[str, Record]:
        """The record of each settled claim."""
        return {record.claim: record for chapter in self.chapters.values() for record, _ in chapter.records}

    @cached_property
    def pages(self) -> dict[str, Chapter]:
        """The chapters by their pages."""
        return {chapter.page: chapter for chapter in self.chapters.values()}

    @cached_property
    def notebooks(self) -> dict[str, Chapter]:
        """The chapters that run, by their pages."""
        return {page: chapter for page, chapter in self.pages.items() if not isinstance(chapter, Essay)}

    def written(self, part: Part) -> list[Chapter]:
        """The chapters of a part that exist."""
        return [self.chapters[name] for name in part.chapters if name in self.chapters]

    def claims_of(self, *chapters: str) -> list[Claim]:
        """The claims assigned to the chapters, in the order of the list."""
        return [claim for claim in self.claims if claim.chapter in chapters]

    def counts(self, claims: Iterable[Claim]) -> dict[str, int]:
        """How many of the claims got which verdict; the keys are VERDICTS, in this order."""
        counts = dict.fromkeys(VERDICTS, 0)
        for claim in claims:
            record = self.records.get(claim.id)
            if record and record.kind:
                counts[record.kind] += 1
        return counts


def read_book(root: Path) -> Book:
    """Read the claims, the map and every notebook and essay that belongs to it."""
    parts = contents.read(root).parts
    pages = [(page, bool(part.folder)) for part in parts for page in contents.written(root, part)]
    chapters = [read_chapter(root / f"{page}.ipynb", page) if runs else read_essay(root, page) for page, runs in pages]
    claims, keys = read_claims(root / "book/claims.csv"), read_keys(root / "book/references.bib")
    return Book(claims, {chapter.name: chapter for chapter in chapters}, parts, keys)


def problems(book: Book) -> list[str]:
    """Everything that is wrong with the ledger, one line each; the book may be built when there is nothing."""
    found = _claim_problems(book)
    for chapter in book.chapters.values():
        of = _essay_problems if isinstance(chapter, Essay) else _chapter_problems
        found += [f"{chapter.page}: {problem}" for problem in of(book, chapter)]
    return found


def _claim_problems(book: Book) -> list[str]:
    known = {name: part.page(name) for part in book.parts for name in part.chapters}
    found = [f"parts.yml: {page} is missing" for name, page in known.items() if name not in book.chapters]
    seen = set()
    for claim in book.claims:
        if claim.id in seen:
            found.append(f"claims.csv: {claim.id} stands twice")
        seen.add(claim.id)
        if claim.chapter not in known:
            found.append(f"claims.csv: {claim.id} is assigned to {claim.chapter!r}, which is not in parts.yml")
        if claim.source not in SOURCES:
            found.append(f"claims.csv: {claim.id} has the source {claim.source!r}, which is none of N1 to N5 and R")
        found += [f"claims.csv: {claim.id} has {lapse}" for lapse in _invisible(claim)]
    return found


def _invisible(said: Claim | Record | Evidence) -> list[str]:
    """The control characters of a row's or a record's texts: what is left of a backslash that Python read."""
    found = []
    for field in fields(said):
        value = getattr(said, field.name)
        for text in (value,) if isinstance(value, str) else value if isinstance(value, tuple) else ():
            if isinstance(text, str) and CONTROL.search(text):
                found.append(f"a control character in {text!r}: is an r missing before its quotation mark?")
    return found


def _chapter_problems(book: Book, chapter: Chapter) -> list[str]:
    found = []
    if not chapter.result:
        found.append("it does not say after its title what it finds: “**In short.** …”")
    if chapter.seconds is None:
        found.append("its box does not say how long it runs: “- **It runs** in about 10 s on one core.”")

    found += _settling_problems(book, chapter)
    settled = sorted(record.claim for record, _ in chapter.records)
    if len(chapter.closings) != 1:
        return [*found, f"the chapter is closed {len(chapter.closings)} times; expected once, in its last code cell"]
    closing, cell = chapter.closings[0]
    if cell != chapter.code[-1]:
        found.append(f"the chapter is closed in cell {cell}, but cell {chapter.code[-1]} still has code")
    if closing.chapter != chapter.name:
        found.append(f"the chapter calls itself {closing.chapter!r}")
    if closing.declared != closing.executed:
        found.append(f"{closing.declared} checks declared, {closing.executed} executed")
    if closing.executed < 1:
        found.append("no check was executed")
    if settled != sorted(closing.claims):
        found.append(f"the closing and the records are not of the same claims: {_differing(closing.claims, settled)}")
    return found


def _essay_problems(book: Book, chapter: Essay) -> list[str]:
    """An essay says of its claims that they are open or imprecise, and each verdict stands in its text."""
    found = _settling_problems(book, chapter)
    for record, _ in chapter.records:
        if record.verdict not in essay.VERDICTS:
            found.append(f"record of {record.claim}: without a check no claim is {record.verdict!r}")
    settled = sorted(record.claim for record, _ in chapter.records)
    if settled != sorted(chapter.shown):
        found.append(f"its records and the verdicts in its text are not the same: {_differing(settled, chapter.shown)}")
    return found


def _settling_problems(book: Book, chapter: Chapter) -> list[str]:
    found = []
    for record, _ in chapter.records:
        found += [f"record of {record.claim}: {problem}" for problem in _record_problems(record, chapter, book)]
    settled = sorted(record.claim for record, _ in chapter.records)
    assigned = sorted(claim.id for claim in book.claims_of(chapter.name))
    if settled != assigned:
        found.append(f"the claims assigned to it and its records are not the same: {_differing(assigned, settled)}")
    return found


def _differing(one: Iterable[str], other: Iterable[str]) -> str:
    return ", ".join(sorted(set(one) ^ set(other))) or "some stand twice"


def _record_problems(record: Record, chapter: Chapter, book: Book) -> list[str]:
    found = shortcomings(record) + [lapse for said in (record, *record.evidence) for lapse in _invisible(said)]
    if record.chapter != chapter.name:
        found.append(f"it names the chapter {record.chapter!r}")
    if record.kind is None:
        found.append(f"the verdict {record.verdict!r} is none of: true, true if …, imprecise, false, open")
    if not record.statement.strip():
        found.append("it does not say what holds")
    if not record.evidence:
        found.append("it names no evidence")
    for evidence in record.evidence:
        if evidence.kind not in EVIDENCE:
            found.append(f"the evidence {evidence.kind!r} is none of: {', '.join(EVIDENCE)}")
        if not evidence.text.strip():
            found.append(f"the evidence {evidence.kind!r} says nothing")
        if len(chapter.closings) == 1 and chapter.cell_of(evidence) is None:
            found.append(f"the evidence {evidence.text!r} is from cell {evidence.cell}, which is not in the chapter")
        if evidence.kind == "cited":
            unknown = [key for key in evidence.about if key not in book.keys]
            found += [f"the evidence {evidence.text!r} cites {key}, which is not in references.bib" for key in unknown]
        if evidence.kind == "proved in text":
            found += _proof_problems(evidence, chapter)
    return found


def _proof_problems(evidence: Evidence, chapter: Chapter) -> list[str]:
    """A written proof is on the page, and it names each identity that was checked for it."""
    label = " ".join(evidence.about)
    if label not in chapter.proofs:
        return [f"the evidence {evidence.text!r}: no proof follows a theorem with the label {label!r} on the page"]
    unnamed = chapter.proofs[label].unnamed(len(evidence.shows))
    return [f"the evidence {evidence.text!r}: the proof of {label} names no identity ({k})" for k in unnamed]
