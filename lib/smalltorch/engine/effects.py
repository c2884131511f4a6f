"""Effect sizes of an experiment over texts or seeds: the 95 % interval must clear a threshold stated beforehand.

    >>> measured("growth", [2.0, 2.2, 1.9, 2.1, 2.3], above=1.5, over="texts")
    growth: 2.10, 95 % interval 1.90 to 2.30, over 5 texts; demanded: above 1.5

A threshold is stated before the data. So it may lie far from what comes out, but not beyond everything that might have
come out: ten times the largest value is the limit, or the `scale` that the author names. Whoever says that there is no
effect to speak of gives two thresholds, and as the scale what would be one: `above=-0.05, below=0.05, scale=1`.

The last digit shown is worth a hundredth of the interval's half-width or more: what lies below is rounding's.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from smalltorch.engine import ledger
from smalltorch.engine.check import Check, VerificationError, numbers, real, shortened
from smalltorch.engine.show import number
from smalltorch.engine.statistics import mean_interval, median_interval

# What is drawn independently. The heads, layers, tokens and neurons of one model are its parts, which share its
# training and its text: their spread says nothing about another model or text. `statistics.group_means` averages them.
REPLICATES = {
    *("texts", "passages", "paragraphs", "sentences"),
    *("seeds", "networks", "models", "runs"),
    *("draws", "inputs", "repetitions"),
}
LEAST = {"mean": 5, "median": 6}  # the least number of values from which a 95 % interval is taken
REACH = 10  # a threshold is at most so many times as large as the largest value, where no scale is named
LARGEST_SCALE = 100  # of an effect that was not seen: a hundred tokens, nats or per cent
COPIED = 1e-6  # values nearer to each other than this, relatively, are one value that rounding or jitter has moved,
CLOSE_BY = 1e-3  # if they are also nearer than this share of the distance between the least and the greatest


@ledger._check
def measured(
    name: str,
    values: Tensor | Sequence[float],
    *,
    above: float = -math.inf,
    below: float = math.inf,
    over: str = "seeds",
    of: str = "mean",
    scale: float = 0.0,
) -> Check:
    """An effect: its mean over seeds (or whatever `over` says) with Student's 95 % interval.

    The interval must lie above and below the given thresholds, of which there must be one.

    Args:
        name: what was measured, in words or symbols.
        values: one for each replicate.
        above, below: the thresholds, stated before the data.
        over: what the replicates are: texts, passages, paragraphs or sentences; seeds, networks, models or runs; draws,
            inputs or repetitions; of what, may follow: `texts of SmolLM2`. Parts of one model are none
            (`statistics.group_means`).
        of: `mean`, or `median` with the interval that the sign test gives: for values in two clusters, or known up to a
            ceiling only. For pairs, the values are their differences.
        scale: the size of effect that the thresholds were chosen for, if they are more than ten times as large as any
            value: 1 for shares and cosines. At most 100, or ten times the largest value; such an effect would fail.

    Raises:
        VerificationError: if the interval does not.
        ValueError: for fewer than five values (for the median, six), or none that differ by a part in a million; for a
            list in which each occurs twice, or nearly; for NaN or infinity; for parts of one model; for neither `above`
            nor `below`, for both where nothing lies between them, or for one, or a scale, that is beyond reach, so that
            nothing could fail.
    """
    found = _effect(values, above, below, over, of, scale)
    if not found.kept:
        raise VerificationError(f"{name}: {found.text}: the interval is not {found.demanded}")
    return found.check(name, f"demanded: {found.demanded}", found.demanded)


@ledger._check
def missed(
    name: str,
    values: Tensor | Sequence[float],
    *,
    above: float = -math.inf,
    below: float = math.inf,
    over: str = "seeds",
    of: str = "mean",
    scale: float = 0.0,
) -> Check:
    """An effect that did not come out as was stated before the data: the interval must not keep the thresholds.

    For what a chapter owns up to. As `measured` in all else.

    Raises:
        VerificationError: if the interval keeps them.
        ValueError: as for `measured`.
    """
    found = _effect(values, above, below, over, of, scale)
    if found.kept:
        raise VerificationError(f"{name}: {found.text}: the interval is {found.demanded}, as was stated")
    return found.check(name, f"demanded, and not seen: {found.demanded}", f"not {found.demanded}")


@dataclass(frozen=True)
class _Effect:
    """Values with their effect and interval as text, what was demanded of it, and whether it is kept."""

    values: Tensor
    text: str
    scope: str
    demanded: str
    kept: bool

    def check(self, name: str, end: str, shown: str) -> Check:
        text = f"{self.text}; {end}"
        shows = (f"{name}: {shown}",)
        evidence = ledger._left("measured", f"measured, {name}: {text}", shows=shows, scope=self.scope)
        return Check(name, text, float(self.values.mean()), self.values, evidence)


def _effect(given: Any, above: float, below: float, over: str, of: str, scale: float) -> _Effect:
    values = _values(given, over, of)
    low, high, effect = _interval(values, of)
    thresholds = _thresholds(above, below, float(values.abs().max()), scale)
    low_shown, high_shown = (_within(end, low, high) for end in (low, high))
    scope = f"{len(values)} {over}"
    demanded = " and ".join(f"{word} {bound:g}" for word, bound in thresholds.items())
    demanded += f", on a scale of {scale:g}" if scale else ""
    kept = low > thresholds.get("above", -math.inf) and high < thresholds.get("below", math.inf)
    return _Effect(values, f"{effect}, 95 % interval {low_shown} to {high_shown}, over {scope}", scope, demanded, kept)


def _interval(values: Tensor, of: str) -> tuple[float, float, str]:
    low, high = (median_interval if of == "median" else mean_interval)(values)
    if of == "median":
        return low, high, f"median {_within(float(values.quantile(0.5)), low, high)}"
    return low, high, _within(float(values.mean()), low, high)


def _within(x: float, low: float, high: float) -> str:
    """x with three significant digits, or as many as are worth a hundredth of half the width of its interval."""
    if not x or not low < high:
        return number(x)
    places = round(-math.log10((high - low) / 200))
    digits = min(3, places + math.floor(math.log10(abs(x))) + 1)
    return number(x, digits) if digits > 0 else number(round(x, places), 1)


def _values(given: Any, over: str, of: str) -> Tensor:
    """The values as a tensor, if they can be replicates."""
    if not isinstance(over, str) or over.partition(" ")[0] not in REPLICATES:
        raise ValueError(
            f"over must say what was drawn independently: {', '.join(sorted(REPLICATES))}; got {over!r}. Parts of one "
            "model are no replicates: average them within each text or seed"
        )
    if not isinstance(of, str) or of not in LEAST:
        raise ValueError(f"of must be mean or median, got {of!r}")
    try:
        values = torch.as_tensor(given)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"values must be a list of real numbers, got {shortened(given)}") from None
    if values.ndim != 1 or len(values) < LEAST[of]:
        raise ValueError(f"values must be a list of at least {LEAST[of]} numbers, got shape {tuple(values.shape)}")
    if values.is_complex():
        raise ValueError("values must be real, got complex numbers")
    values = numbers(values.detach().double(), "values")
    _refuse_copies(values.tolist(), over, of)
    return values


def _refuse_copies(values: list[float], over: str, of: str) -> None:
    """Raise if the values are fewer than they seem: copies, or one value that was moved a little each time."""
    ordered = sorted(values)
    spread = ordered[-1] - ordered[0]
    if spread <= COPIED * max(map(abs, values)):
        raise ValueError(
            f"values must differ by a part in a million at least, got {number(ordered[0], 9)} only: copies of one "
            "value are no replicates, and what does not vary is for `computed`"
        )
    first = ordered[:1]  # the least of those that are nearly the same
    for before, value in pairwise(ordered):
        near = min(COPIED * max(abs(value), abs(before)), CLOSE_BY * spread)
        first.append(first[-1] if value - before <= near else value)
    copied_from = dict(zip(ordered, first, strict=True))
    same = [copied_from[value] for value in values]
    distinct = set(same)
    if len(distinct) == 2 and of == "mean":
        raise ValueError("values must scatter for Student's interval, got two values only: those are for of='median'")
    for times in range(2, len(same) // 2 + 1):
        in_order = same in (
            same[: len(same) // times] * times,
            [value for value in same[::times] for _ in range(times)],
        )
        moved = distinct != {*values} and all(same.count(value) == times for value in distinct)
        if in_order or moved:
            raise ValueError(f"values must be one for each of the {over}, got each of them {times} times")


def _thresholds(above: float, below: float, largest: float, scale: float) -> dict[str, float]:
    """Those that were given, if the data might have fallen on either side of them."""
    given = {"above": real(above, "above"), "below": real(below, "below")}
    bounds = {word: bound for word, bound in given.items() if bound != {"above": -math.inf, "below": math.inf}[word]}
    if not bounds:
        raise ValueError("above or below must be given: without either there is nothing that could fail")
    if not 0 <= real(scale, "scale") <= max(LARGEST_SCALE, REACH * largest):
        raise ValueError(
            f"scale must be the size of an effect, at most {LARGEST_SCALE} or {REACH} times the largest value, "
            f"{number(largest)}: with a larger one nothing could fail; got {scale}"
        )
    for word, bound in bounds.items():
        if not abs(bound) <= max(REACH * largest, scale):
            raise ValueError(
                f"{word} must be within reach, or nothing could fail: got {bound:g}, and no value is larger than "
                f"{number(largest)}; scale=… says for which size of effect it was chosen"
            )
    if len(bounds) == 2 and not bounds["above"] < bounds["below"]:
        raise ValueError(f"above must be less than below, got {above:g} and {below:g}")
    return bounds
