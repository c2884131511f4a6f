"""The claims of the notes and the records that settle them, as plain data.

A claim is a row of `book/claims.csv`. A record is what an executed check says of a claim; it travels in the outputs of
a notebook. This module reads both, counts them and lists what is wrong with them. It knows nothing of Sphinx: the
ledger page, `make test` and the report on a failed notebook all use it.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import yaml
from docutils.nodes import make_id

RECORD = "application/vnd.smalltorch.record+json"
CHAPTER = "application/vnd.smalltorch.chapter+json"

VERDICTS = ("true", "true if", "imprecise", "false", "open")
NOT_YET = "not yet examined"
EVIDENCE = ("derived", "proved in text", "counterexample", "verified", "measured", "computed", "cited", "none")
NOTES = ("N1", "N2", "N3", "N4", "N5")
SOURCES = (*NOTES, "R")  # R: what a reader brings
HEADING = re.compile(r"^#{2,4} +(.+?) *$", re.MULTILINE)
RUNTIME = re.compile(r"^- \*\*It runs\*\* in about (\d+) s on one core\.", re.MULTILINE)


@dataclass(frozen=True)
class Claim:
    """What the notes say, paraphrased: one row of claims.csv."""

    id: str
    source: str
    place: str
    claim: str
    chapter: str


@dataclass(frozen=True)
class Record:
    """What a chapter found about one claim, and in which of the notebook's cells."""

    claim: str
    chapter: str
    verdict: str
    statement: str
    assumptions: str
    evidence: tuple[tuple[str, str], ...]
    cell: int

    @property
    def kind(self) -> str | None:
        """The verdict without its condition: one of VERDICTS, or None where it is none of them."""
        if self.verdict.startswith("true if ") and self.verdict.removeprefix("true if ").strip():
            return "true if"
        return self.verdict if self.verdict in VERDICTS and self.verdict != "true if" else None


@dataclass(frozen=True)
class Closing:
    """What `Chapter.close()` left: how many checks the chapter declares and ran, and the claims it settles."""

    chapter: str
    declared: int
    executed: int
    claims: tuple[str, ...]
    cell: int


@dataclass(frozen=True)
class Chapter:
    """A notebook as the ledger sees it.

    `page` is its path from the root of the book, without the suffix; `headings` are those of its sections, by anchor;
    `seconds` is what its box says it runs on one core.
    """

    name: str
    page: str
    title: str
    last_code_cell: int
    records: tuple[Record, ...]
    closings: tuple[Closing, ...]
    headings: dict[str, str] = field(default_factory=dict)
    seconds: int | None = None


@dataclass(frozen=True)
class Part:
    """A part of the book and the names of the chapters it has or will have."""

    title: str
    folder: str
    chapters: tuple[str, ...]


@dataclass(frozen=True)
class Book:
    """All claims, all chapters that exist (by name, in reading order) and the map of the parts."""

    claims: tuple[Claim, ...]
    chapters: dict[str, Chapter]
    parts: tuple[Part, ...]

    @cached_property
    def records(self) -> dict[str, Record]:
        """The record of each settled claim; where several chapters settle it, that of the chapter it is assigned to."""
        assigned = {claim.id: claim.chapter for claim in self.claims}
        found: dict[str, Record] = {}
        for chapter in self.chapters.values():
            for record in chapter.records:
                if record.claim not in found or record.chapter == assigned.get(record.claim):
                    found[record.claim] = record
        return found

    @cached_property
    def pages(self) -> dict[str, Chapter]:
        """The chapters by their pages."""
        return {chapter.page: chapter for chapter in self.chapters.values()}

    def written(self, part: Part) -> list[Chapter]:
        """The chapters of a part that exist."""
        return [self.chapters[name] for name in part.chapters if name in self.chapters]

    def claims_of(self, *chapters: str) -> list[Claim]:
        """The claims assigned to the chapters, in the order of the list."""
        return [claim for claim in self.claims if claim.chapter in chapters]

    def counts(self, claims: Iterable[Claim]) -> dict[str, int]:
        """How many of the claims got which verdict; the keys are VERDICTS and NOT_YET, in this order."""
        counts = dict.fromkeys((*VERDICTS, NOT_YET), 0)
        for claim in claims:
            record = self.records.get(claim.id)
            counts[record.kind if record and record.kind else NOT_YET] += 1
        return counts


def read_claims(path: Path) -> tuple[Claim, ...]:
    with path.open(encoding="utf-8", newline="") as file:
        return tuple(Claim(**row) for row in csv.DictReader(file, strict=True))


def read_chapter(path: Path, page: str) -> Chapter:
    """Read a notebook's title, headings and runtime, and from its stored outputs the records and the closing."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    title, headings, seconds, last_code_cell, records, closings = path.stem, {}, None, -1, [], []
    for index, cell in enumerate(cells):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown" and title == path.stem and source.startswith("# "):
            title = source.splitlines()[0].removeprefix("# ").strip()
        if cell["cell_type"] == "markdown":
            headings |= {make_id(heading): heading for heading in HEADING.findall(source)}
            if seconds is None and (runtime := RUNTIME.search(source)):
                seconds = int(runtime[1])
        if cell["cell_type"] != "code" or not source.strip():
            continue
        last_code_cell = index
        for output in cell["outputs"]:
            data = output.get("data", {})
            records += [_record(entry, index) for entry in data.get(RECORD, {}).get("records", ())]
            if CHAPTER in data:
                closings.append(_closing(data[CHAPTER], index))
    return Chapter(path.stem, page, title, last_code_cell, tuple(records), tuple(closings), headings, seconds)


def _record(entry: dict, cell: int) -> Record:
    evidence = tuple((item["kind"], item["text"]) for item in entry["evidence"])
    return Record(
        entry["claim"],
        entry["chapter"],
        entry["verdict"],
        entry["statement"],
        entry.get("assumptions", ""),
        evidence,
        cell,
    )


def _closing(entry: dict, cell: int) -> Closing:
    return Closing(entry["chapter"], entry["declared"], entry["executed"], tuple(entry["claims"]), cell)


def toc_pages(root: Path) -> list[str]:
    """The pages that _toc.yml lists, in reading order, without suffixes."""
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    return [toc["root"]] + [chapter["file"] for part in toc["parts"] for chapter in part["chapters"]]


def read_book(root: Path) -> Book:
    """Read the claims, the map and every notebook that _toc.yml lists."""
    parts = yaml.safe_load((root / "book/parts.yml").read_text(encoding="utf-8"))
    chapters = [read_chapter(root / f"{page}.ipynb", page) for page in toc_pages(root) if page.startswith("notebooks/")]
    return Book(
        claims=read_claims(root / "book/claims.csv"),
        chapters={chapter.name: chapter for chapter in chapters},
        parts=tuple(Part(part["title"], part["folder"], tuple(part["chapters"])) for part in parts),
    )


def problems(book: Book) -> list[str]:
    """Everything that is wrong with the ledger, one line each; the book may be built when there is nothing."""
    found = _claim_problems(book)
    for chapter in book.chapters.values():
        found += [f"{chapter.page}: {problem}" for problem in _chapter_problems(book, chapter)]
    return found + _disagreements(book)


def stray_notebooks(root: Path) -> list[str]:
    """Notebooks that no reader would find, since _toc.yml does not list them."""
    listed = {f"{page}.ipynb" for page in toc_pages(root)}
    on_disk = {path.relative_to(root).as_posix() for path in (root / "notebooks").glob("**/[!.]*.ipynb")}
    return [f"{path}: not listed in _toc.yml" for path in sorted(on_disk - listed) if ".ipynb_checkpoints" not in path]


def _claim_problems(book: Book) -> list[str]:
    planned = {name for part in book.parts for name in part.chapters}
    found, seen = [], set()
    for claim in book.claims:
        if claim.id in seen:
            found.append(f"claims.csv: {claim.id} stands twice")
        seen.add(claim.id)
        if claim.chapter not in planned:
            found.append(f"claims.csv: {claim.id} is assigned to {claim.chapter!r}, which is not in parts.yml")
        if claim.source not in SOURCES:
            found.append(f"claims.csv: {claim.id} has the source {claim.source!r}, which is none of N1 to N5 and R")
    return found


def _chapter_problems(book: Book, chapter: Chapter) -> list[str]:
    found = []
    part = next((part for part in book.parts if chapter.name in part.chapters), None)
    if part is None or f"notebooks/{part.folder}/{chapter.name}" != chapter.page:
        found.append("its name or folder is not that in parts.yml")
    if chapter.seconds is None:
        found.append("its box does not say how long it runs: “- **It runs** in about 10 s on one core.”")

    known = {claim.id for claim in book.claims}
    for record in chapter.records:
        found += [f"record of {record.claim}: {problem}" for problem in _record_problems(record, chapter, known)]
    settled = [record.claim for record in chapter.records]
    for claim in book.claims_of(chapter.name):
        if claim.id not in settled:
            found.append(f"no record settles the claim {claim.id}, which is assigned to this chapter")

    if len(chapter.closings) != 1:
        return [*found, f"the chapter is closed {len(chapter.closings)} times; expected once, in its last code cell"]
    closing = chapter.closings[0]
    if closing.cell != chapter.last_code_cell:
        found.append(f"the chapter is closed in cell {closing.cell}, but cell {chapter.last_code_cell} still has code")
    if closing.chapter != chapter.name:
        found.append(f"the chapter calls itself {closing.chapter!r}")
    if closing.declared != closing.executed:
        found.append(f"{closing.declared} checks declared, {closing.executed} executed")
    if closing.executed < 1:
        found.append("no check was executed")
    if sorted(closing.claims) != sorted(set(settled)):
        different = ", ".join(sorted(set(closing.claims) ^ set(settled))) or "some stand twice"
        found.append(f"the closing and the records do not name the same claims: {different}")
    return found


def _record_problems(record: Record, chapter: Chapter, known: set[str]) -> list[str]:
    found = []
    if record.claim not in known:
        found.append("there is no such claim in claims.csv")
    if record.chapter != chapter.name:
        found.append(f"it names the chapter {record.chapter!r}")
    if record.kind is None:
        found.append(f"the verdict {record.verdict!r} is none of: true, true if …, imprecise, false, open")
    if not record.statement.strip():
        found.append("it does not say what holds")
    if not record.evidence:
        found.append("it names no evidence")
    for kind, text in record.evidence:
        if kind not in EVIDENCE:
            found.append(f"the evidence {kind!r} is none of: {', '.join(EVIDENCE)}")
        if not text.strip():
            found.append(f"the evidence {kind!r} says nothing")
    return found


def _disagreements(book: Book) -> list[str]:
    first: dict[str, Record] = {}
    found = []
    for chapter in book.chapters.values():
        for record in chapter.records:
            other = first.setdefault(record.claim, record)
            for name in ("verdict", "statement"):
                ours, theirs = getattr(record, name), getattr(other, name)
                if ours != theirs:
                    found.append(
                        f"{record.claim}: the {name} is {theirs!r} in {other.chapter} (cell {other.cell}) "
                        f"but {ours!r} in {record.chapter} (cell {record.cell})"
                    )
    return found
