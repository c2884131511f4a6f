"""Small-sample statistics: Student's interval for a mean, the sign test's for a median, one value per group."""

import math
from collections.abc import Hashable, Sequence

import torch
from torch import Tensor


def student_quantile(freedom: int, level: float = 0.95) -> float:
    """t with P(|T| ≤ t) = level, where T has Student's distribution with `freedom` degrees of freedom.

        >>> round(student_quantile(4), 3), round(student_quantile(100), 3)
        (2.776, 1.984)

    By bisection of the probability, which for whole degrees of freedom is a finite sum.
    """
    if freedom < 1 or not 0 < level < 1:
        raise ValueError(f"freedom must be at least 1, and level between 0 and 1; got {freedom} and {level}")
    low, high = 0.0, math.pi / 2  # the angle atan(t/√freedom)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < level else (low, middle)
    return math.tan(low) * math.sqrt(freedom)


def _within(angle: float, freedom: int) -> float:
    """P(|T| ≤ √freedom · tan(angle)): Abramowitz and Stegun, 26.7.3 and 26.7.4."""
    odd = freedom % 2
    term, total = math.cos(angle) ** odd, 0.0
    for power in range(odd, freedom - 1, 2):
        total += term
        term *= (power + 1) / (power + 2) * math.cos(angle) ** 2
    total *= math.sin(angle)
    return 2 / math.pi * (angle + total) if odd else total


def mean_interval(values: Tensor, level: float = 0.95) -> tuple[float, float]:
    """The interval for the mean that Student's distribution gives: mean ± t · s/√n."""
    half = student_quantile(len(values) - 1, level) * float(values.std()) / math.sqrt(len(values))
    return float(values.mean()) - half, float(values.mean()) + half


def median_interval(values: Tensor, level: float = 0.95) -> tuple[float, float]:
    """The interval for the median that the sign test gives: from the k-th smallest value to the k-th largest.

        >>> median_interval(torch.tensor([0.0, 0.0, 0.25, 5.0, 5.5, 6.0]))
        (0.0, 6.0)

    A value lies below the median with probability 1/2 at most, so k − 1 values or fewer lie there with a probability
    that the coin knows; k is the largest for which it is (1 − level)/2 at most. Nothing is asked of the distribution:
    two clusters will do, and values that are known up to a ceiling only.
    """
    n, tail, k = len(values), 0.0, 0
    while k < n and (tail := tail + math.comb(n, k) / 2**n) <= (1 - level) / 2:
        k += 1
    if not k:
        raise ValueError(f"values must be more for an interval of the median at the level {level:g}, got {n}")
    ordered = sorted(values.tolist())
    return ordered[k - 1], ordered[n - k]


def group_means(values: Tensor, groups: Sequence[Hashable]) -> Tensor:
    """One value for each group, in the groups' order: its mean.

        >>> group_means(torch.tensor([1.0, 3.0, 10.0]), ["one text", "one text", "another"])
        tensor([ 2., 10.])

    Heads of one model on one text are not replicates: group them by text, and only the texts count.
    """
    if len(groups) != len(values):
        raise ValueError(f"groups must name one group for each of {len(values)} values, got {len(groups)}")
    names = list(dict.fromkeys(groups))
    which = torch.tensor([names.index(group) for group in groups])
    return torch.stack([values[which == k].mean() for k in range(len(names))])
