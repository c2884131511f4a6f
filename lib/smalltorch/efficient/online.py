"""Attention without its matrix: the online softmax, computed block by block, as in FlashAttention.

Source: Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018); Rabe and Staats, "Self-attention
Does Not Need O(n^2) Memory" (2021); Dao et al., "FlashAttention" (2022).
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from smalltorch.attention import causal_mask
from smalltorch.shapes import (
    check_floats,
    check_integers,
    check_numbers,
    check_range,
    check_type,
    computed_wide,
)


@computed_wide
def chunked_attention(
    Q: Float[Tensor, "*#batch query d_h"],
    K: Float[Tensor, "*#batch key d_h"],
    V: Float[Tensor, "*#batch key d_v"],
    size: int,
    causal: bool = False,
    scale: float | None = None,
) -> Float[Tensor, "... query d_v"]:
    """softmax(scale Q K^T) V, from scores of `size` queries and `size` keys at a time. Chapter `quadratic`.

    For each query three things are carried from part to part: the largest score m so far, the total of the
    exp(s_j - m), and what is read, the sum of the exp(s_j - m) v_j. A part whose largest score is higher makes a new
    m', and both sums are multiplied by exp(m - m'). At the end their quotient is what the query reads.

        >>> X = torch.eye(4).double()
        >>> chunked_attention(X, X, X, size=2, causal=True, scale=1.0)
        tensor([[1.0000, 0.0000, 0.0000, 0.0000],
                [0.2689, 0.7311, 0.0000, 0.0000],
                [0.2119, 0.2119, 0.5761, 0.0000],
                [0.1749, 0.1749, 0.1749, 0.4754]], dtype=torch.float64)

    Args:
        Q, K, V: queries, keys and values; further axes in front (batch, head) broadcast.
        size: of the parts.
        causal: whether query i reads the keys j <= i only.
        scale: 1 / sqrt(d_h) unless given.

    Raises:
        ValueError: if shapes, dtypes or devices do not fit; if with `causal=True` there is not a key for each query; if
            the scores overflow.
    """
    sizes = check_floats(Q=(Q, "... query d_h"), K=(K, "... key d_h"), V=(V, "... key d_v"))
    size = check_integers(1, size=size)
    check_type(bool, causal=causal)
    n = sizes["key"]
    if causal and sizes["query"] != n:
        raise ValueError(f"K: expected a key for each of {sizes['query']} queries, got {n}")
    if scale is None:
        scale = 1 / math.sqrt(sizes["d_h"])
    scale = check_numbers(-math.inf, scale=scale)
    reads = []
    for first in range(0, sizes["query"], size):
        queries = Q[..., first : first + size, :]
        m, total, read = Q.new_full((), -math.inf), Q.new_zeros(()), Q.new_zeros(())
        for start in range(0, first + 1 if causal else n, size):
            S = scale * queries @ K[..., start : start + size, :].mT
            check_range(S, Q=Q, K=K, scale=scale)
            if causal and start == first:
                S = S.masked_fill(~causal_mask(S.shape[-1]).to(S.device), -math.inf)
            higher = torch.maximum(m, S.amax(-1, keepdim=True))
            shrink, E = torch.exp(m - higher), torch.exp(S - higher)
            total = shrink * total + E.sum(-1, keepdim=True)
            read = shrink * read + E @ V[..., start : start + size, :]
            m = higher
        reads.append(read / total)
    return torch.cat(reads, -2)
