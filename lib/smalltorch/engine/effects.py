"""Effects: what an experiment gave on texts or seeds, with a 95 % interval that must clear a threshold.

    >>> measured("growth", [2.0, 2.2, 1.9, 2.1, 2.3], above=1.5, over="texts")
    growth: 2.10, 95 % interval 1.90 to 2.30, over 5 texts; demanded: above 1.5

A threshold is stated before the data. So it may lie far from what comes out, but not beyond everything that might have
come out: ten times the largest value is the limit, or the `scale` that the author names. Whoever says that there is no
effect to speak of gives two thresholds, and as the scale what would be one: `above=-0.05, below=0.05, scale=1`.
"""

import math
from collections.abc import Sequence
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
            value: 1 for shares and cosines.

    Raises:
        VerificationError: if the interval does not.
        ValueError: for fewer than five values (for the median, six), or none that differ; for a list in which each
            occurs twice; for NaN or infinity; for parts of one model; for neither `above` nor `below`, for both where
            nothing lies between them, or for one that is beyond reach, so that nothing could fail.
    """
    values = _values(values, over, of)
    low, high, effect = _interval(values, of)
    thresholds = _thresholds(above, below, float(values.abs().max()), scale)
    text = f"{effect}, 95 % interval {number(low)} to {number(high)}, over {len(values)} {over}"
    demanded = " and ".join(f"{word} {bound:g}" for word, bound in thresholds.items())
    demanded += f", on a scale of {scale:g}" if scale else ""
    if not (low > thresholds.get("above", -math.inf) and high < thresholds.get("below", math.inf)):
        raise VerificationError(f"{name}: {text}: the interval is not {demanded}")
    shown, scope = (f"{name}: {demanded}",), f"{len(values)} {over}"
    evidence = ledger._left("measured", f"measured, {name}: {text}; demanded: {demanded}", shows=shown, scope=scope)
    return Check(name, f"{text}; demanded: {demanded}", float(values.mean()), values, evidence)


def _interval(values: Tensor, of: str) -> tuple[float, float, str]:
    if of == "median":
        return *median_interval(values), f"median {number(float(values.quantile(0.5)))}"
    return *mean_interval(values), number(float(values.mean()))


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
    texts = [number(x, 9) for x in values.tolist()]
    if len(set(texts)) == 1:
        raise ValueError(f"values must differ, got {texts[0]} only: what does not vary is for `computed`")
    if len(set(texts)) == 2 and of == "mean":
        raise ValueError("values must scatter for Student's interval, got two values only: those are for of='median'")
    for times in range(2, len(texts) // 2 + 1):
        once = len(texts) // times
        if texts == texts[:once] * times or texts == [text for text in texts[::times] for _ in range(times)]:
            raise ValueError(f"values must be one for each of the {over}, got each of them {times} times")
    return values


def _thresholds(above: float, below: float, largest: float, scale: float) -> dict[str, float]:
    """Those that were given, if the data might have fallen on either side of them."""
    given = {"above": real(above, "above"), "below": real(below, "below")}
    bounds = {word: bound for word, bound in given.items() if bound != {"above": -math.inf, "below": math.inf}[word]}
    if not bounds:
        raise ValueError("above or below must be given: without either there is nothing that could fail")
    if not 0 <= real(scale, "scale") < math.inf:
        raise ValueError(f"scale must be the size of an effect, got {scale}")
    for word, bound in bounds.items():
        if not abs(bound) <= max(REACH * largest, scale):
            raise ValueError(
                f"{word} must be within reach, or nothing could fail: got {bound:g}, and no value is larger than "
                f"{number(largest)}; scale=… says for which size of effect it was chosen"
            )
    if len(bounds) == 2 and not bounds["above"] < bounds["below"]:
        raise ValueError(f"above must be less than below, got {above:g} and {below:g}")
    return bounds
