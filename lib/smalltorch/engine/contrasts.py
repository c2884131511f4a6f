"""Contrasts whose thresholds are stated before the data: each is measured once, and none may be left out.

    >>> stated = Contrasts("seeds", {"growth": {"above": 1.5}})
    >>> stated.measured("growth", [2.0, 2.1, 1.9, 2.0, 2.0])
    growth: 2.00, 95 % interval 1.91 to 2.09, over 5 seeds; demanded: above 1.5
    >>> stated.table()
    contrast  mean  95 % interval   demanded
      growth  2.00   1.91 to 2.09  above 1.5

A chapter states them in a cell of their own, and that cell is committed before the texts or seeds are drawn on which
they are measured. All of them must hold; so no threshold need be stricter because they are many.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from smalltorch.engine.check import Check, real
from smalltorch.engine.effects import REPLICATES, measured
from smalltorch.engine.show import Table


class Contrasts:
    """The contrasts of a chapter.

    Args:
        over: what the replicates are: texts, seeds.
        thresholds: for each contrast, by its name, `above` and `below`, and if need be `of` and `scale`, as in
            `effects.measured`.

    Raises:
        ValueError: if there are none, or one has no threshold; if `over` names no replicates.
    """

    def __init__(self, over: str, thresholds: Mapping[str, Mapping[str, Any]]):
        for name, stated in thresholds.items():
            bounds = [stated[word] for word in ("above", "below") if word in stated]
            known = stated.keys() <= {"above", "below", "of", "scale"}
            if not bounds or not known or not all(math.isfinite(real(bound, f"{name!r}")) for bound in bounds):
                raise ValueError(
                    f"thresholds: {name!r} must state above, below or both, as numbers, got {dict(stated)}"
                )
        if not thresholds:
            raise ValueError("thresholds must state at least one contrast, got none")
        if over not in REPLICATES:
            raise ValueError(f"over must be one of {', '.join(sorted(REPLICATES))}; got {over!r}")
        self.over, self.thresholds = over, dict(thresholds)
        self.tried: set[str] = set()
        self.found: dict[str, Check] = {}

    def measured(self, name: str, values: Tensor | Sequence[float]) -> Check:
        """`effects.measured` with the thresholds that were stated.

        Raises:
            VerificationError: if they are not kept.
            ValueError: as there; for a contrast that was not stated, or has been measured.
        """
        if name not in self.thresholds:
            raise ValueError(f"name: {name!r} was not stated; there are: {', '.join(self.thresholds)}")
        if name in self.tried:
            raise ValueError(f"name: {name!r} has been measured; a second try would choose between the two")
        self.tried.add(name)
        self.found[name] = measured(name, values, over=self.over, **self.thresholds[name])
        return self.found[name]

    def table(self) -> Table:
        """What was stated and what came out.

        Raises:
            AssertionError: if a contrast was not measured.
        """
        missing = [name for name in self.thresholds if name not in self.found]
        if missing:
            raise AssertionError(f"stated, but not measured: {', '.join(missing)}")
        rows = []
        for name, check in self.found.items():
            effect, demanded = check.text.split(f", over {len(check.at)} {self.over}; demanded: ")
            mean, between = effect.split(", 95 % interval ")
            rows.append([name, mean, between, demanded])
        return Table(["contrast", "mean", "95 % interval", "demanded"], rows)
