"""Pre-registered comparisons: thresholds are stated before the data, each is measured once, and none is left out.

    >>> stated = Contrasts("seeds", {"growth": {"above": 1.5}})
    >>> stated.measured("growth", [2.0, 2.1, 1.9, 2.0, 2.0])
    growth: 2.00, 95 % interval 1.91 to 2.09, over 5 seeds; demanded: above 1.5
    >>> stated.table()
    contrast  mean  95 % interval   demanded
      growth  2.00   1.91 to 2.09  above 1.5

A chapter states them in a cell of their own, and that cell is committed before the texts or seeds are drawn on which
they are measured. All of them must hold; so no threshold need be stricter because they are many. The chapter does not
close before each is measured; one that does not hold is `missed`, and the chapter says so.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any

from torch import Tensor

from smalltorch.engine import ledger
from smalltorch.engine.check import Check, real, shortened
from smalltorch.engine.effects import REPLICATES, measured, missed
from smalltorch.engine.show import Table

DIGITS = 4  # of a threshold; one with more was computed, perhaps from the data


class Contrasts:
    """The contrasts of a chapter.

    Args:
        over: what the replicates are: texts, seeds.
        thresholds: for each contrast, by its name, `above` and `below`, and if need be `of` and `scale`, as in
            `effects.measured`. Thresholds are round numbers, of four significant digits at most.

    Raises:
        ValueError: if there are none, or one has no threshold, or one that is not round; if `over` names no replicates.
    """

    @ledger._check
    def __init__(self, over: str, thresholds: Mapping[str, Mapping[str, Any]]):
        if not isinstance(thresholds, Mapping) or not all(isinstance(each, Mapping) for each in thresholds.values()):
            raise ValueError(f"thresholds must map each contrast to its thresholds, got {shortened(thresholds)}")
        for name, stated in thresholds.items():
            bounds = [stated[word] for word in ("above", "below") if word in stated]
            known = stated.keys() <= {"above", "below", "of", "scale"}
            if not bounds or not known or not all(math.isfinite(real(bound, f"{name!r}")) for bound in bounds):
                raise ValueError(
                    f"thresholds: {name!r} must state above, below or both, as numbers, got {dict(stated)}"
                )
            for bound in map(float, bounds):
                if float(f"{bound:.{DIGITS}g}") != bound:
                    raise ValueError(
                        f"thresholds: {name!r} must state round numbers, of {DIGITS} digits at most, got {bound!r}: "
                        "thresholds are stated before the data, not computed from them"
                    )
        if not thresholds:
            raise ValueError("thresholds must state at least one contrast, got none")
        if over not in REPLICATES:
            raise ValueError(f"over must be one of {', '.join(sorted(REPLICATES))}; got {over!r}")
        self.over = over
        self._thresholds: dict[str, dict[str, Any]] = {
            name: {word: value if word == "of" else real(value, word) for word, value in stated.items()}
            for name, stated in thresholds.items()
        }
        self._tried: set[str] = set()
        self._found: dict[str, Check] = {}
        ledger._promised.append(self)

    @property
    def thresholds(self) -> dict[str, dict[str, Any]]:
        """What was stated, for each contrast; a copy."""
        return deepcopy(self._thresholds)

    @property
    def found(self) -> dict[str, Check]:
        """What was measured so far; a copy."""
        return dict(self._found)

    @property
    def missing(self) -> list[str]:
        """The contrasts that have not been measured."""
        return [name for name in self._thresholds if name not in self._found]

    @ledger._check
    def measured(self, name: str, values: Tensor | Sequence[float]) -> Check:
        """`effects.measured` with the thresholds that were stated.

        Raises:
            VerificationError: if they are not kept.
            ValueError: as there; for a contrast that was not stated, or has been measured.
        """
        return self._measure(measured, name, values)

    @ledger._check
    def missed(self, name: str, values: Tensor | Sequence[float]) -> Check:
        """`effects.missed`: what was stated did not come out, and the chapter says so.

        Raises:
            VerificationError: if it did.
            ValueError: as for `measured`.
        """
        return self._measure(missed, name, values)

    def _measure(self, how: Callable[..., Check], name: str, values: Tensor | Sequence[float]) -> Check:
        if name not in self._thresholds:
            raise ValueError(f"name: {name!r} was not stated; there are: {', '.join(self._thresholds)}")
        if name in self._tried:
            raise ValueError(f"name: {name!r} has been measured; a second try would choose between the two")
        self._tried.add(name)
        self._found[name] = how(name, values, over=self.over, **self._thresholds[name])
        return self._found[name]

    def table(self) -> Table:
        """What was stated and what came out.

        Raises:
            AssertionError: if a contrast was not measured.
        """
        if self.missing:
            raise AssertionError(f"stated, but not measured: {', '.join(self.missing)}")
        rows = []
        for name, check in self._found.items():
            effect, demanded = check.text.split(f", over {len(check.at)} {self.over}; demanded")
            mean, between = effect.split(", 95 % interval ")
            rows.append([name, mean, between, demanded.removeprefix(": ").removeprefix(", and ")])
        return Table(["contrast", "mean", "95 % interval", "demanded"], rows)
