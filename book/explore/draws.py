"""Shared by several references: the random numbers of numbers.js, and random attention matrices made from them."""

import math

import numpy as np
import torch

from smalltorch import attention

Numbers = dict[str, float | list]


def vector(values: list) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def uniforms(seed: int, count: int) -> np.ndarray:
    """The numbers that `uniforms(seed)` of numbers.js gives one after the other (mulberry32)."""
    a = (np.arange(1, count + 1, dtype=np.uint64) * 0x6D2B79F5 + seed).astype(np.uint32)
    t = (a ^ (a >> np.uint32(15))) * (a | np.uint32(1))
    t ^= t + (t ^ (t >> np.uint32(7))) * (t | np.uint32(61))
    return (t ^ (t >> np.uint32(14))) / 2**32


def normals(seed: int, *shape: int) -> torch.Tensor:
    """The numbers that `normals(seed)` of numbers.js gives one after the other (Box and Muller)."""
    uniform = uniforms(seed, 2 * math.prod(shape)).reshape(*shape, 2)
    return torch.from_numpy(np.sqrt(-2 * np.log(1 - uniform[..., 0])) * np.cos(2 * np.pi * uniform[..., 1]))


def spectral_norm(A: torch.Tensor) -> float:
    return float(torch.linalg.matrix_norm(A, 2))


def random_attention(seed: int, draws: int, n: int, span: float, causal: bool) -> list[torch.Tensor]:
    """Attention of random queries and keys, scaled so that the largest span of a row of logits is `span`."""
    mask = attention.causal_mask(n) if causal else torch.ones(n, n, dtype=torch.bool)
    found = []
    for tokens in normals(seed, draws, n, 2, 4):
        Q, K = tokens.unbind(1)
        S = Q @ K.mT
        spans = S.masked_fill(~mask, -math.inf).amax(-1) - S.masked_fill(~mask, math.inf).amin(-1)
        found.append(attention.attention(Q, K, K, mask, scale=float(span / spans.max()))[1])
    return found
