"""The record of a chapter: which claims it settles, with which verdict, and by which executed check.

    chapter = Chapter("norm-bounds", checks=12)          # after the setup cell
    ...
    chapter.settle("S0-2.1-eq7", verdict="true", holds="…", by=[derivation, attack])
    chapter.close()                                      # last cell: the chapter's table; fails if checks are missing

Evidence is made by checks only: a `Derivation` that reached `qed`, a `WrittenProof`, and what `verify` returns.
Records travel in the outputs of the notebook; the book's ledger page is generated from them.
"""

import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from smalltorch import data
from smalltorch.engine.schema import (
    Claim,
    Closing,
    Evidence,
    Record,
    anchor,
    bundle,
    read_claims,
    read_keys,
    shortcomings,
    verdict_kind,
)

# What has happened since a chapter was opened.
_executed: list[Evidence] = []  # by checks
_stated: list[Evidence] = []  # by `cited` and `none_possible`
# What has happened since Python was started: opening a chapter again makes nothing undone.
_failed: list[str] = []  # how checks ended that did not pass
_begun: list[Any] = []  # derivations
_promised: list[Any] = []  # contrasts
_opened: "Chapter | None" = None
_cells = 0

_P = ParamSpec("_P")
_T = TypeVar("_T")


def _count(*_: object) -> None:
    global _cells
    _cells += 1


def _count_cells() -> None:
    """Count from here on the cells that run, where this is a notebook."""
    global _cells
    _cells = 0
    if shell := "IPython" in sys.modules and sys.modules["IPython"].get_ipython():
        shell.events.register("pre_run_cell", _count)  # a second time changes nothing


# -- what checks leave: for the engine's own modules -------------------------------------------------------------------


def _left(kind: str, text: str, **shown: Any) -> Evidence:
    """Evidence from a check that has just run; it counts towards the number of checks that the chapter declares.

    Names of checks are plain text; what Markdown would read as markup in them is escaped. `shown`: as in `Evidence`.
    """
    evidence = Evidence(kind, re.sub(r"([*<`$])", r"\\\1", text), _cells, **shown)
    _executed.append(evidence)
    return evidence


def _check(run: Callable[_P, _T]) -> Callable[_P, _T]:
    """A public check: how it ended, if it did not pass, is remembered, and no chapter closes any more."""

    @wraps(run)
    def remembered(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return run(*args, **kwargs)
        except Exception as error:
            _failed.append(f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")
            raise

    return remembered


# -- evidence that is no check -----------------------------------------------------------------------------------------


def executed(kind: str, text: str) -> Evidence:
    """Refused: evidence is what a check leaves, and is made by nothing else.

    Raises:
        ValueError: always.
    """
    raise ValueError(f"evidence is made by the checks of derive and verify only, got {kind!r}, {text!r} by hand")


def cited(*keys: str, for_: str = "") -> Evidence:
    """Evidence from the literature: bibliography keys, and what they were read for. It does not count as a check.

    Raises:
        ValueError: for no key, one that is not in the bibliography, or nothing that they were read for.
    """
    if not keys:
        raise ValueError("keys must name at least one entry of the bibliography, got none")
    if not isinstance(for_, str) or not for_.strip():
        raise ValueError("for_ must say what the works were read for, got nothing")
    known = read_keys(data.path("references.bib"))
    if unknown := [str(key) for key in keys if key not in known]:
        raise ValueError(f"keys must be entries of book/references.bib, got {', '.join(unknown)}")
    evidence = Evidence("cited", f"{for_} ({', '.join(keys)})", _cells, shows=(for_,), about=keys)
    _stated.append(evidence)
    return evidence


def none_possible(reason: str) -> Evidence:
    """No evidence can be had here, and why. Only an open claim may rest on it.

    Raises:
        ValueError: if no reason is given.
    """
    if not isinstance(reason, str) or not reason.strip():
        raise ValueError("reason must say why no evidence can be had, got nothing")
    _stated.append(evidence := Evidence("none", reason, _cells))
    return evidence


def _evidence(check: object) -> Evidence:
    """What a check leaves: itself, or its `evidence`; a ValueError for what no check of this chapter left."""
    found = check if isinstance(check, Evidence) else getattr(check, "evidence", None)
    if not isinstance(found, Evidence):
        raise ValueError("by: expected checks; a derivation is evidence only after qed()")
    if not any(found is done for done in (*_executed, *_stated)):
        raise ValueError(f"by: no check of this chapter gave the evidence {found.text!r}")
    return found


def _cell(text: str) -> str:
    """Markdown that stays within one cell of a table; in formulas, ‖ and | survive it."""
    return text.replace("\n", " ").replace(r"\|", r"\Vert ").replace("|", r"\|")


class Chapter:
    """The record of one chapter: its name (the notebook's stem), and the number of checks it promises to run.

    A chapter to which no claim is assigned has a record of its checks only.

    Raises:
        ValueError: for a name that neither a claim nor a notebook has, or no checks.
    """

    def __init__(self, name: str, checks: int):
        global _opened
        if not isinstance(checks, int) or checks < 1:
            raise ValueError(f"checks must be a number, at least 1, got {checks}")
        claims = read_claims(data.path("claims.csv"))
        self.name, self.checks = name, checks
        self.assigned = {claim.id: claim for claim in claims if claim.chapter == name}
        if not self.assigned and not any(data.BOOK.parent.glob(f"notebooks/*/{name}.ipynb")):
            raise ValueError(f"name: no claim is assigned to a chapter called {name!r}, and no notebook has this name")
        for kept in (_executed, _stated):
            kept.clear()
        _count_cells()
        self._settled: dict[str, Record] = {}
        _opened = self

    @property
    def settled(self) -> dict[str, Record]:
        """The records so far."""
        return dict(self._settled)

    def settle(self, *ids: str, verdict: str, holds: str, by: Iterable[object], assuming: str = "") -> None:
        """Record a verdict on one or several claims.

        Args:
            ids: claims of this chapter.
            verdict: `true`, `true if …`, `imprecise`, `false` or `open`.
            holds: what holds instead, as one sentence of Markdown.
            by: the checks: finished derivations and proofs, results of `verify`, `cited(...)`, `none_possible(...)`.
            assuming: the assumptions, as Markdown; needed where a derivation has hypotheses.

        Raises:
            ValueError: for an unknown claim or verdict, evidence that no check of this chapter gave, and evidence that
                cannot carry the verdict (`schema.shortcomings`); if the chapter is not the one that is open.
        """
        self._demand_open()
        if not all(isinstance(words, str) for words in (*ids, verdict, holds, assuming)):
            raise ValueError("ids, verdict, holds and assuming must be strings, each claim one of its own")
        if verdict_kind(verdict) is None:
            raise ValueError(f"verdict must be 'true', 'true if …', 'imprecise', 'false' or 'open', got {verdict!r}")
        if not ids or not holds.strip():
            raise ValueError("ids and holds must say which claims are settled, and what holds; got nothing")
        if not isinstance(by, Iterable):
            raise ValueError(f"by: expected a list of checks, got {type(by).__name__}")
        evidence = tuple(map(_evidence, by))
        for claim in ids:
            if claim not in self.assigned:
                raise ValueError(f"ids: {claim!r} is not a claim of chapter {self.name!r}")
            if claim in self._settled or ids.count(claim) > 1:
                raise ValueError(f"ids: {claim!r} is settled twice")
        records = [Record(claim, self.name, verdict, holds, assuming, evidence) for claim in ids]
        for record in records:
            for problem in shortcomings(record):
                raise ValueError(f"record of {record.claim}: {problem}")
        self._settled.update({record.claim: record for record in records})

    def close(self) -> "ClaimTable":
        """The chapter's table of claims.

        Raises:
            AssertionError: if a check did not pass since Python was started, whatever became of its error, or a
                derivation was not finished, or a contrast that was stated was not measured; if fewer checks ran than
                the chapter declares, or a claim of the chapter has no record.
        """
        global _opened
        self._demand_open()
        again = "; when that is mended, restart the kernel and run the chapter again"
        if _failed:
            raise AssertionError(f"chapter {self.name!r}: a check did not pass: {_failed[0]}{again}")
        if unfinished := [derivation.name for derivation in _begun if derivation.evidence is None]:
            raise AssertionError(f"chapter {self.name!r}: never finished by qed(): {', '.join(unfinished)}{again}")
        if unmeasured := [name for contrasts in _promised for name in contrasts.missing]:
            raise AssertionError(f"chapter {self.name!r}: stated, but not measured: {', '.join(unmeasured)}{again}")
        missing = [claim for claim in self.assigned if claim not in self._settled]
        if missing:
            raise AssertionError(f"chapter {self.name!r} leaves claims without a record: {', '.join(missing)}")
        if len(_executed) < self.checks:
            raise AssertionError(f"chapter {self.name!r} declares {self.checks} checks, but {len(_executed)} ran")
        closing = Closing(self.name, self.checks, len(_executed), tuple(self.assigned), _cells)
        _opened = None
        return ClaimTable(closing, [(claim, self._settled[claim.id]) for claim in self.assigned.values()])

    def _demand_open(self) -> None:
        if _opened is not self:
            raise ValueError(f"chapter {self.name!r} is closed: close() was called, or another chapter opened since")


@dataclass
class ClaimTable:
    """The generated table at a chapter's end."""

    closing: Closing
    settled: list[tuple[Claim, Record]]

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        head = ["| it is often said that … | verdict | what holds, and what shows it |", "|---|---|---|"]
        table = head if self.settled else []
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
            "text/markdown": "\n".join([*table, "", count + "."]).lstrip(),
            **bundle([record for _, record in self.settled], self.closing),
        }
