"""The record: what a chapter claims to have settled, and by which executed check.

    chapter = Chapter("norm-bounds", checks=12)          # after the setup cell
    ...
    chapter.settle("S0-2.1-eq7", verdict="true", holds="…", by=[derivation, attack])
    chapter.close()                                      # last cell: the chapter's table; fails if checks are missing

Evidence is made by checks only: a `Derivation` that reached `qed`, a `WrittenProof`, and what `verify` returns.
Records travel in the outputs of the notebook; the book's ledger page is generated from them.
"""

import csv
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field

from smalltorch.data import path

RECORD_MIME = "application/vnd.smalltorch.record+json"
CHAPTER_MIME = "application/vnd.smalltorch.chapter+json"

# What each verdict needs: at least one piece of evidence of these kinds.
DECISIVE = {"derived", "proved in text", "computed", "measured", "cited"}
SUPPORT = {
    "true": DECISIVE,
    "true if": DECISIVE,
    "imprecise": DECISIVE | {"counterexample", "verified"},
    "false": DECISIVE | {"counterexample"},
    "open": DECISIVE | {"counterexample", "verified", "none"},
}

_executed: list["Evidence"] = []


@dataclass(frozen=True)
class Evidence:
    """One piece of evidence: its kind (a key of the book's page on marks) and one line of text."""

    kind: str
    text: str


def executed(kind: str, text: str) -> Evidence:
    """Evidence from a check that has just run; it counts towards the number of checks that the chapter declares.

    Names of checks are plain text; what Markdown would read as markup in them is escaped.
    """
    evidence = Evidence(kind, re.sub(r"([*<`$])", r"\\\1", text))
    _executed.append(evidence)
    return evidence


def cited(*keys: str, for_: str) -> Evidence:
    """Evidence from the literature: bibliography keys, and what they were read for. It does not count as a check."""
    if not keys:
        raise ValueError("keys must name at least one entry of the bibliography, got none")
    return Evidence("cited", f"{for_} ({', '.join(keys)})")


def none_possible(reason: str) -> Evidence:
    """No evidence can be had here, and why. Only an open claim may rest on it."""
    return Evidence("none", reason)


def claims() -> dict[str, dict[str, str]]:
    """The rows of `book/claims.csv` by claim id.

    Raises:
        FileNotFoundError: if the library was installed without the book around it.
    """
    with path("claims.csv").open(encoding="utf-8", newline="") as file:
        return {row["id"]: row for row in csv.DictReader(file)}


@dataclass(frozen=True)
class Record:
    """The outcome for one claim."""

    claim: str
    chapter: str
    verdict: str
    statement: str
    assumptions: str
    evidence: tuple[Evidence, ...]


def _cell(text: str) -> str:
    """Markdown that stays within one cell of a table; in formulas, ‖ and | survive it."""
    return text.replace("\n", " ").replace(r"\|", r"\Vert ").replace("|", r"\|")


def anchor(claim: str) -> str:
    """The HTML id of the place where a claim is settled."""
    return "claim-" + re.sub(r"[^a-z0-9]+", "-", claim.lower()).strip("-")


@dataclass
class Chapter:
    """The record of one chapter: its name (the notebook's stem), and the number of checks it promises to run."""

    name: str
    checks: int
    settled: dict[str, Record] = field(default_factory=dict)

    def __post_init__(self):
        if self.checks < 1:
            raise ValueError(f"checks must be at least 1, got {self.checks}")
        _executed.clear()
        self.assigned = {i: row for i, row in claims().items() if row["chapter"] == self.name}
        if not self.assigned:
            raise ValueError(f"name: no claim is assigned to a chapter called {self.name!r} in book/claims.csv")

    def settle(self, *ids: str, verdict: str, holds: str, by: Iterable, assuming: str = "") -> None:
        """Record a verdict on one or several claims.

        Args:
            ids: claims of this chapter.
            verdict: `true`, `true if …`, `imprecise`, `false` or `open`.
            holds: what holds instead, as one sentence of Markdown.
            by: the checks: finished derivations and proofs, results of `verify`, `cited(...)`, `none_possible(...)`.
            assuming: the assumptions, as Markdown.

        Raises:
            ValueError: for an unknown claim or verdict, a verdict that the evidence cannot carry, or evidence that no
                check of this chapter gave.
        """
        kind = re.fullmatch(r"(true if) \S.*|(true|imprecise|false|open)", verdict)
        if kind is None:
            raise ValueError(f"verdict must be 'true', 'true if …', 'imprecise', 'false' or 'open', got {verdict!r}")
        if not ids or not holds.strip():
            raise ValueError("ids and holds must say which claims are settled, and what holds; got nothing")
        evidence = tuple(e if isinstance(e, Evidence) else getattr(e, "evidence", None) for e in by)
        if None in evidence:
            raise ValueError("by: expected checks; a derivation is evidence only after qed()")
        for e in evidence:
            if e.kind not in ("cited", "none") and not any(e is done for done in _executed):
                raise ValueError(f"by: no check of this chapter gave the evidence {e.text!r}")
        needed = SUPPORT[kind[1] or kind[2]]
        if not any(e.kind in needed for e in evidence):
            raise ValueError(f"by: a verdict of {verdict!r} needs evidence of kind {', '.join(sorted(needed))}; "
                             f"got {', '.join(e.kind for e in evidence) or 'none'}")
        for claim in ids:
            if claim not in self.assigned:
                raise ValueError(f"ids: {claim!r} is not a claim of chapter {self.name!r}")
            if claim in self.settled:
                raise ValueError(f"ids: {claim!r} is settled twice")
            self.settled[claim] = Record(claim, self.name, verdict, holds, assuming, evidence)

    def close(self) -> "ClaimTable":
        """The chapter's table of claims.

        Raises:
            AssertionError: if fewer checks ran than the chapter declares, or a claim of the chapter has no record.
        """
        missing = [claim for claim in self.assigned if claim not in self.settled]
        if missing:
            raise AssertionError(f"chapter {self.name!r} leaves claims without a record: {', '.join(missing)}")
        if len(_executed) < self.checks:
            raise AssertionError(f"chapter {self.name!r} declares {self.checks} checks, but {len(_executed)} ran")
        return ClaimTable(self.name, self.checks, len(_executed), self.assigned, self.settled)


@dataclass
class ClaimTable:
    """The generated table at a chapter's end."""

    chapter: str
    declared: int
    executed: int
    assigned: dict[str, dict[str, str]]
    settled: dict[str, Record]

    def _repr_mimebundle_(self, include=None, exclude=None):
        records = [self.settled[claim] for claim in self.assigned]
        table = ["| it is often said that … | verdict | what holds, and what shows it |", "|---|---|---|"]
        for record in records:
            said = f'<span id="{anchor(record.claim)}"></span>{self.assigned[record.claim]["claim"]} ({record.claim})'
            holds = record.statement + (f" Assuming {record.assumptions}." if record.assumptions else "")
            shown = " · ".join(evidence.text for evidence in record.evidence)
            cells = (said, f"**{record.verdict}**", f"{holds}<br><small>{shown}</small>")
            table.append("| " + " | ".join(map(_cell, cells)) + " |")
        count = f"{len(records)} claims settled, {self.executed} checks executed, {self.declared} declared"
        return {
            "text/plain": count,
            "text/markdown": "\n".join([*table, "", count + "."]),
            RECORD_MIME: {"records": [asdict(r) for r in records]},
            CHAPTER_MIME: {"chapter": self.chapter, "declared": self.declared, "executed": self.executed,
                           "claims": list(self.assigned)},
        }
