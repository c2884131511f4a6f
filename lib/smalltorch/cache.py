"""The KV cache: its size in bytes, and the error when entries are evicted, merged or quantised.

An entry of a cache is a key, a value and a bias on its logit: 0 for an entry as it was, ln m for one that stands for m,
and -inf for one that was evicted. So all that is done to a cache can be tried by one function, `continued`.

Source: Zhang et al., "H2O" (2023), for heavy hitters; Liu et al., "KIVI" (2024), for keys that are rounded by channel
and values by token.
"""

import math
from collections.abc import Iterable, Sequence
from typing import cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from smalltorch.attention import causal_mask, softmax
from smalltorch.block import PreLN
from smalltorch.models import Decoder
from smalltorch.shapes import (
    check_finite,
    check_floats,
    check_integers,
    check_range,
    check_shapes,
    check_tokens,
    check_type,
    computed_wide,
)

Entries = tuple[Tensor, Tensor, Tensor]  # keys, values and biases


def cache_bytes(tokens: int, layers: int, numbers: int, bits: int = 16) -> float:
    """tokens · layers · numbers · bits / 8, where a token leaves so many numbers in a layer.

    These are 2 kv_heads d_h for keys and values that heads share, and the width of what is kept in their place.

        >>> cache_bytes(tokens=1, layers=30, numbers=2 * 3 * 64)
        23040.0

    Chapter `kv-cache`.

    Raises:
        ValueError: unless all are whole numbers, tokens at least 0 and the others at least 1.
    """
    tokens = check_integers(0, tokens=tokens)
    layers, numbers, bits = check_integers(1, layers=layers, numbers=numbers, bits=bits)
    return tokens * layers * numbers * bits / 8


def kept_bias(keep: Bool[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """0 for an entry that is kept, -inf for one that is evicted.

        >>> kept_bias(torch.tensor([True, False, True]))
        tensor([0., -inf, 0.])

    Chapter `kv-cache`.

    Raises:
        ValueError: unless keep is a boolean tensor.
    """
    check_type(Tensor, keep=keep)
    if keep.dtype != torch.bool:
        raise ValueError(f"keep: expected a boolean tensor, True for what stays, got {keep.dtype}")
    check_finite(keep=keep)  # refuses what cannot be read
    return torch.zeros(keep.shape, device=keep.device).masked_fill(~keep, -math.inf)


@computed_wide
def attend(
    Q: Float[Tensor, "*batch query d_h"],
    K: Float[Tensor, "*batch key d_h"],
    V: Float[Tensor, "*batch key d_v"],
    bias: Float[Tensor, "*batch key"],
) -> Float[Tensor, "*batch query d_v"]:
    """softmax(Q K^T / sqrt(d_h) + bias) V: every query reads all entries that are not evicted; zeros if all are.

        >>> K = torch.ones(3, 2).double()
        >>> attend(K[:1], K, torch.tensor([[1.0], [2.0], [9.0]]).double(), torch.tensor([0.0, 0.0, -math.inf]).double())
        tensor([[1.5000]], dtype=torch.float64)

    Chapter `kv-cache`.

    Raises:
        ValueError: if shapes, dtypes or devices do not fit, or the scores overflow.
    """
    sizes = check_floats(Q=(Q, "... query d_h"), K=(K, "... key d_h"), V=(V, "... key d_v"), bias=(bias, "... key"))
    gone = bias[..., None, :] == -math.inf
    S = Q @ K.mT / math.sqrt(sizes["d_h"]) + bias[..., None, :]  # (..., query, key)
    origin = dict(Q=Q, K=K, bias=bias.masked_fill(gone[..., 0, :], 0))
    check_range(S.masked_fill(gone, 0), **origin)
    return check_range(softmax(S) @ V, **origin, V=V)


@computed_wide
def merged(
    K: Float[Tensor, "*batch key d_h"], V: Float[Tensor, "*batch key d_v"], keep: Bool[Tensor, "*batch key"]
) -> Entries:
    """Each evicted entry joins the kept one with the nearest key: their mean key and value, with the bias ln m.

    Of equally near ones the first. Where the m keys are equal, no query can tell.

        >>> K, V = torch.tensor([[1.0], [1.0], [5.0]]).double(), torch.tensor([[2.0], [4.0], [7.0]]).double()
        >>> K, V, bias = merged(K, V, torch.tensor([True, False, True]))
        >>> V, bias
        (tensor([[3.],
                [4.],
                [7.]], dtype=torch.float64), tensor([0.6931,   -inf, 0.0000], dtype=torch.float64))

    Chapter `kv-cache`.

    Raises:
        ValueError: if shapes or dtypes do not fit, an entry is not finite, keep is not boolean, or nothing is kept
            somewhere.
    """
    n = check_floats(K=(K, "... key d_h"), V=(V, "... key d_v"))["key"]
    check_type(Tensor, keep=keep)
    check_shapes(K=(K, "... key d_h"), keep=(keep, "... key"))
    check_finite(K=K, V=V, keep=keep)
    if keep.dtype != torch.bool or not keep.any(-1).all():
        raise ValueError(f"keep: expected a boolean tensor with an entry that stays in each row, got {keep.dtype}")
    far = torch.cdist(K, K, compute_mode="donot_use_mm_for_euclid_dist")  # equal keys are at 0, without rounding
    nearest = far.masked_fill(~keep[..., None, :], math.inf).argmin(-1)
    home = torch.where(keep, torch.arange(n, device=K.device), nearest)
    joins = torch.nn.functional.one_hot(home, n).to(K.dtype).mT  # (kept, entry)
    count = joins.sum(-1)
    mean = joins / count.clamp(min=1)[..., None]
    return (
        torch.where(keep[..., None], mean @ K, K),
        torch.where(keep[..., None], mean @ V, V),
        count.log(),
    )


@computed_wide
def quantised(X: Float[Tensor, "*batch n d"], bits: int, dim: int) -> Float[Tensor, "*batch n d"]:
    """X rounded to 2^bits values at equal steps from the least to the largest along `dim`.

    dim = -2 gives each channel (column) its own scale, dim = -1 each token (row). The error of an entry is half a step
    at most, (max - min) / (2^bits - 1) / 2.

        >>> quantised(torch.tensor([[0.0, 1.0, 2.0, 9.0]]).double(), bits=2, dim=-1)
        tensor([[0., 0., 3., 9.]], dtype=torch.float64)

    Chapter `kv-cache`. Source: Liu et al. (2024), who round keys by channel and values by token.

    Raises:
        ValueError: unless X is of floating point and finite, bits lies between 1 and 16, and dim is -1 or -2.
    """
    check_floats(X=(X, "... n d"))
    check_finite(X=X)
    bits = check_integers(1, bits=bits)
    if bits > 16 or dim not in (-1, -2):
        raise ValueError(f"bits, dim: expected at most 16 bits, and -1 or -2, got {bits} and {dim}")
    least = X.amin(dim, keepdim=True)
    step = check_range(X.amax(dim, keepdim=True) - least, X=X) / (2**bits - 1)
    step = step.masked_fill(step == 0, 1)
    return least + step * ((X - least) / step).round()


@torch.no_grad()
def continued(
    model: Decoder, tokens: Int[Tensor, "batch n"], cache: Sequence[Entries], past: int
) -> Float[Tensor, "batch n d"]:
    """The states of tokens that continue a text of `past` tokens, of which this cache was kept; as `model.states`.

    A cache has for each layer keys, values (batch, kv_head, entry, d_h) and biases (batch, kv_head, entry), of any
    number of entries. The new tokens keep their positions, and see each other causally.

    Chapter `kv-cache`.

    Raises:
        ValueError: for another model than a `Decoder`, a cache with another number of layers, or shapes that do not
            fit.
    """
    check_type(Decoder, model=model)
    n = check_tokens(tokens=(tokens, "batch n", len(model.E)))["n"]
    past = check_integers(0, past=past)
    if len(cache) != len(model.blocks):
        raise ValueError(f"cache: expected a part for each of {len(model.blocks)} layers, got {len(cache)}")
    X = model.E[tokens]
    new = kept_bias(causal_mask(n)).to(X)
    for block, (K, V, bias) in zip(cast(Iterable[PreLN], model.blocks), cache, strict=True):
        heads = block.attention
        # what stands before the new tokens has a place, for their positions, but is not read
        before = X.new_zeros(len(X), heads.kv_heads, past, heads.d_h)
        Q, K_new, V_new = heads._project(block.norm_1(X), None, [before, before])
        K, V = (
            torch.cat([old.to(X), added[:, :, past:]], -2).repeat_interleave(heads.heads // heads.kv_heads, 1)
            for old, added in ((K, K_new), (V, V_new))
        )
        bias = bias.to(X).repeat_interleave(heads.heads // heads.kv_heads, 1)
        bias = torch.cat([bias[:, :, None].expand(-1, -1, n, -1), new.expand(*bias.shape[:2], n, n)], -1)
        A = softmax(Q @ K.mT / math.sqrt(heads.d_h) + bias)
        X = X + (A @ V).transpose(1, 2).flatten(2) @ heads.W_O
        X = X + block.ffn(block.norm_2(X))
    return model.norm(X)
