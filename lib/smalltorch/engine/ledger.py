"""The record: what a chapter claims to have settled, and by which executed check.

    chapter = Chapter("norm-bounds", checks=12)          # after the setup cell
    ...
    chapter.settle("S0-2.1-eq7", verdict="true", holds="…", by=[derivation, attack])
    chapter.close()                                      # last cell: the chapter's table; fails if checks are missing

Evidence is made by checks only: a `Derivation` that reached `qed`, a `WrittenProof`, and what `verify` returns.
Records travel in the outputs of the notebook; the book's ledger page is generated from them.
"""

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from smalltorch.data import path
from smalltorch.engine.schema import (
    NOT_CHECKS,
    SUPPORT,
    Claim,
    Closing,
    Evidence,
    Record,
    anchor,
    bundle,
    read_claims,
    verdict_kind,
)

_executed: list[Evidence] = []
_cells = 0


def _count(*_: object) -> None:
    global _cells
    _cells += 1


def _count_cells() -> None:
    """Count from here on the cells that run, where this is a notebook."""
    global _cells
    _cells = 0
    if shell := "IPython" in sys.modules and sys.modules["IPython"].get_ipython():
        shell.events.register("pre_run_cell", _count)  # a second time changes nothing


def executed(kind: str, text: str) -> Evidence:
    """Evidence from a check that has just run; it counts towards the number of checks that the chapter declares.

    Names of checks are plain text; what Markdown would read as markup in them is escaped.
    """
    evidence = Evidence(kind, re.sub(r"([*<`$])", r"\\\1", text), _cells)
    _executed.append(evidence)
    return evidence


def cited(*keys: str, for_: str) -> Evidence:
    """Evidence from the literature: bibliography keys, and what they were read for. It does not count as a check."""
    if not keys:
        raise ValueError("keys must name at least one entry of the bibliography, got none")
    return Evidence("cited", f"{for_} ({', '.join(keys)})", _cells)


def none_possible(reason: str) -> Evidence:
    """No evidence can be had here, and why. Only an open claim may rest on it."""
    return Evidence("none", reason, _cells)


def _evidence(check: object) -> Evidence:
    """What a check leaves: itself, or its `evidence`."""
    found = check if isinstance(check, Evidence) else getattr(check, "evidence", None)
    if not isinstance(found, Evidence):
        raise ValueError("by: expected checks; a derivation is evidence only after qed()")
    return found


def _cell(text: str) -> str:
    """Markdown that stays within one cell of a table; in formulas, ‖ and | survive it."""
    return text.replace("\n", " ").replace(r"\|", r"\Vert ").replace("|", r"\|")


@dataclass
class Chapter:
    """The record of one chapter: its name (the notebook's stem), and the number of checks it promises to run."""

    name: str
    checks: int
    settled: dict[str, Record] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.checks < 1:
            raise ValueError(f"checks must be at least 1, got {self.checks}")
        _executed.clear()
        _count_cells()
        claims = read_claims(path("claims.csv"))
        self.assigned = {claim.id: claim for claim in claims if claim.chapter == self.name}
        if not self.assigned:
            raise ValueError(f"name: no claim is assigned to a chapter called {self.name!r} in book/claims.csv")

    def settle(self, *ids: str, verdict: str, holds: str, by: Iterable[object], assuming: str = "") -> None:
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
        kind = verdict_kind(verdict)
        if kind is None:
            raise ValueError(f"verdict must be 'true', 'true if …', 'imprecise', 'false' or 'open', got {verdict!r}")
        if not ids or not holds.strip():
            raise ValueError("ids and holds must say which claims are settled, and what holds; got nothing")
        evidence = tuple(map(_evidence, by))
        for e in evidence:
            if e.kind not in NOT_CHECKS and not any(e is done for done in _executed):
                raise ValueError(f"by: no check of this chapter gave the evidence {e.text!r}")
        needed = SUPPORT[kind]
        if not any(e.kind in needed for e in evidence):
            raise ValueError(
                f"by: a verdict of {verdict!r} needs evidence of kind {', '.join(sorted(needed))}; "
                f"got {', '.join(e.kind for e in evidence) or 'none'}"
            )
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
        closing = Closing(self.name, self.checks, len(_executed), tuple(self.assigned), _cells)
        return ClaimTable(closing, [(claim, self.settled[claim.id]) for claim in self.assigned.values()])


@dataclass
class ClaimTable:
    """The generated table at a chapter's end."""

    closing: Closing
    settled: list[tuple[Claim, Record]]

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        table = ["| it is often said that … | verdict | what holds, and what shows it |", "|---|---|---|"]
        for claim, record in self.settled:
            said = f'<span id="{anchor(claim.id)}"></span>{claim.claim} ({claim.id})'
            holds = record.statement + (f" Assuming {record.assumptions}." if record.assumptions else "")
            shown = " · ".join(evidence.text for evidence in record.evidence)
            cells = (said, f"**{record.verdict}**", f"{holds}<br><small>{shown}</small>")
            table.append("| " + " | ".join(map(_cell, cells)) + " |")
        count = (
            f"{len(self.settled)} claims settled, {self.closing.executed} checks executed, "
            f"{self.closing.declared} declared"
        )
        return {
            "text/plain": count,
            "text/markdown": "\n".join([*table, "", count + "."]),
            **bundle([record for _, record in self.settled], self.closing),
        }
