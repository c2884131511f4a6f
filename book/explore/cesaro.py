"""Reference of a figure in `causal`: Hardy's inequality with its rate, and how an attention sink raises the norm."""

import math
from functools import cache

import torch

from explore.draws import Numbers, spectral_norm
from smalltorch.spectral import uniform_causal


def large_norm(A: torch.Tensor) -> float:
    """By the power method where a decomposition takes too long; there the first singular value stands apart."""
    if len(A) <= 256:
        return spectral_norm(A)
    v = torch.ones(len(A), dtype=torch.float64)
    for _ in range(100):
        v = A.mT @ (A @ v)
        v /= v.norm()
    return float((A @ v).norm())


@cache
def uniform_norm(n: int) -> float:
    return large_norm(uniform_causal(n))


def numbers(state: dict) -> Numbers:
    n, share = state["n"], state["share"]
    A = (1 - share) * (torch.eye(n, dtype=torch.float64) if state["own"] else uniform_causal(n))
    A[:, 0] += share
    H, s = float((1 / torch.arange(1, n + 1, dtype=torch.float64)).sum()), float(A[1:, 0].mean())
    return {
        "uniform": [uniform_norm(2**e) for e in range(1, n.bit_length())],
        "lower": math.sqrt(4 * H / (H + 4)),
        "upper": math.sqrt(4 - 8 / ((H + 1) ** 2 + 1)),
        "s": s,
        "norm": large_norm(A),
        "floor": (s * math.sqrt(n) + math.sqrt(n * s**2 + 4 * (1 - s))) / 2,
    }
