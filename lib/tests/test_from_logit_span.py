"""What chapter `logit-span` once computed on its page: causal attention of a span, on a million tokens."""

import math

import pytest
import torch


def long_context(size: int, span: float, steps: int = 12) -> float:
    """A lower bound on the norm: row i favours its first ceil(i/c^2) tokens, with c = 1 + exp(span/2)."""
    s = math.exp(span / 2)
    row = torch.arange(1, size + 1, dtype=torch.float64)
    lengths = (row / (1 + s) ** 2).ceil().long()
    x, total, found = row**-0.5, row + (s**2 - 1) * lengths, torch.zeros(())
    for _ in range(steps):
        P = x.cumsum(0)
        y = (P + (s**2 - 1) * P[lengths - 1]) / total
        found = y.norm() / x.norm()
        v = y / total
        at_ends = torch.zeros_like(v).index_add_(0, lengths - 1, v)
        x = v.flip(0).cumsum(0).flip(0) + (s**2 - 1) * at_ends.flip(0).cumsum(0).flip(0)
    return float(found)


@pytest.mark.parametrize("span", [0.0, 1.0, 2.0, 4.0])
def test_a_million_tokens_come_near_the_bound_and_stay_below(span: float) -> None:
    bound = 1 + math.exp(span / 2)
    assert 0.9 * bound < long_context(2**20, span) < bound
