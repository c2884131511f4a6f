"""Attention: softmax, masks, one head, many heads.

A mask is boolean and says who *may attend*: `mask[i, j]` is True where query i sees key j. It has two axes, (query,
key), for all batches and heads, or all axes of the scores; a size may be 1. So a padding mask (batch, key) is written
`padding[:, None, None, :]`, for scores (batch, head, query, key). Where a batch has as many rows as there are queries,
a mask of two axes could be either: unless it is causal it is refused, and one for all is written `mask[None, None]`.

Source: Vaswani et al., "Attention Is All You Need" (2017); shared key and value heads: Ainslie et al., "GQA" (2023).
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from smalltorch.position import frequencies, rotate
from smalltorch.shapes import (
    at_least_float32,
    check_floats,
    check_integers,
    check_mask,
    check_numbers,
    check_range,
    check_type,
)


def softmax(S: Float[Tensor, "*shape"], dim: int = -1) -> Float[Tensor, "*shape"]:
    """exp(S_j) / sum_k exp(S_k) along `dim`. Chapter `softmax`.

    The largest score is subtracted first: the value does not change, and exp cannot overflow. A row that is -inf
    throughout (every key masked) gives zeros, where the formula says 0/0. NaN spreads over its row, as in torch.
    float16 and bfloat16 are summed in float32.

        >>> softmax(torch.tensor([0.0, 1.0, 2.0]).double())
        tensor([0.0900, 0.2447, 0.6652], dtype=torch.float64)

    Args:
        S: scores, of any shape.
        dim: the axis along which the result sums to 1; unless given the last, that of the keys.

    Raises:
        ValueError: if S is not of floating point, or has no such axis or nothing along it.
    """
    check_floats(S=(S, "..."))
    dim = check_integers(-S.ndim, dim=dim)
    if dim >= S.ndim or S.shape[dim] == 0:
        raise ValueError(f"dim: expected an axis of S that is not empty, got {dim} for shape {tuple(S.shape)}")
    wide = at_least_float32(S)
    top = wide.detach().amax(dim, keepdim=True)  # 1 along dim
    E = torch.exp(wide - top.masked_fill(top == -math.inf, 0))
    Z = E.sum(dim, keepdim=True)  # 1 along dim
    return (E / Z.masked_fill(Z == 0, 1)).to(S.dtype)


def causal_mask(n: int) -> Bool[Tensor, "n n"]:
    """Token i sees tokens j <= i.

        >>> causal_mask(3).int()
        tensor([[1, 0, 0],
                [1, 1, 0],
                [1, 1, 1]], dtype=torch.int32)

    Chapter `causal`.

    Args:
        n: number of tokens; the mask is (query, key), n of each.

    Raises:
        ValueError: for fewer than one token.
    """
    n = check_integers(1, n=n)
    return torch.ones(n, n, dtype=torch.bool).tril()  # (query, key)


def attention(
    Q: Float[Tensor, "*#batch query d_h"],
    K: Float[Tensor, "*#batch key d_h"],
    V: Float[Tensor, "*#batch key d_v"],
    mask: Bool[Tensor, "..."] | None = None,
    scale: float | None = None,
) -> tuple[Float[Tensor, "... query d_v"], Float[Tensor, "... query key"]]:
    """A V and A = softmax(scale Q K^T), row by row. Chapter `attention`; the scale: chapter `scaling`.

        >>> X = torch.eye(3).double()
        >>> H, A = attention(X, X, X, causal_mask(3), scale=1.0)
        >>> A
        tensor([[1.0000, 0.0000, 0.0000],
                [0.2689, 0.7311, 0.0000],
                [0.2119, 0.2119, 0.5761]], dtype=torch.float64)

    Args:
        Q: queries (..., query, d_h); further axes in front, such as (batch, head), broadcast.
        K: keys (..., key, d_h).
        V: values (..., key, d_v).
        mask: who may attend: (query, key), or all axes of A, each of its size or 1. A query that sees nothing gets
            zeros.
        scale: 1 / sqrt(d_h) unless given.

    Raises:
        ValueError: if shapes, dtypes or devices do not fit, the mask is not boolean, or the scores overflow: they are
            computed in float32 at least, but must be numbers of the type of Q.
    """
    sizes = check_floats(Q=(Q, "... query d_h"), K=(K, "... key d_h"), V=(V, "... key d_v"))
    if scale is None:
        scale = 1 / math.sqrt(sizes["d_h"])
    scale = check_numbers(-math.inf, scale=scale)
    S = scale * at_least_float32(Q) @ at_least_float32(K).mT  # (..., query, key)
    return _attend(S, V, mask, Q=Q, K=K, scale=scale)


def _attend(S: Tensor, V: Tensor, mask: Tensor | None, **origin: Tensor | float) -> tuple[Tensor, Tensor]:
    """softmax(S) V and softmax(S), for the scores S that the mask leaves; `origin` is what they were computed from.

    Scores must be numbers of the type of V, in which a model has them, also where they are given in another.
    """
    check_range(S.to(V.dtype), **origin)
    if mask is not None:
        check_mask(mask, S.shape, S.device, pairs=True)
        S = S.masked_fill(~mask, -math.inf)
    A = softmax(at_least_float32(S))  # (..., query, key)
    H = check_range((A @ at_least_float32(V)).to(V.dtype), **origin, V=V)
    return H, A.to(V.dtype)  # (..., query, d_v) and (..., query, key)


def weight(d_in: int, d_out: int) -> nn.Parameter:
    """A matrix for X @ W with entries N(0, 1/d_in): unit variance in, unit variance out.

    W is (d_in, d_out): a row vector is multiplied from the right, so W is what torch's `nn.Linear` calls W^T. Chapter
    `scaling`.

        >>> weight(3, 2).shape
        torch.Size([3, 2])

    Raises:
        ValueError: for a size below 1.
    """
    d_in, d_out = check_integers(1, d_in=d_in, d_out=d_out)
    return nn.Parameter(torch.empty(d_in, d_out).normal_(std=d_in**-0.5))


def _affine(X: Tensor, W: Tensor, b: Tensor | None) -> Tensor:
    """X W + b, on row vectors, as the formulas of the book have it: (..., d_in) to (..., d_out)."""
    return X @ W if b is None else X @ W + b


def cached_tokens(cache: list[Tensor]) -> int:
    """The number of tokens whose keys and values a cache holds: [K, V], or [] at the start.

        >>> cached_tokens([]), cached_tokens([torch.zeros(2, 5, 4), torch.zeros(2, 5, 4)])
        (0, 5)

    Chapter `generation`.

    Args:
        cache: K and V of one layer, (..., kv_head, token, d_h) each.

    Raises:
        ValueError: for what is neither empty nor two tensors.
    """
    check_type(list, cache=cache)
    if not cache:
        return 0
    if len(cache) != 2 or not all(isinstance(part, Tensor) and part.ndim > 1 for part in cache):
        layer = "; try cache[0], of the first layer" if isinstance(cache[0], list) else ""
        raise ValueError(f"cache: expected [] or keys and values, got {[type(part).__name__ for part in cache]}{layer}")
    return cache[0].shape[-2]  # of (..., kv_head, token, d_h)


def _check_heads(d: int, heads: int, kv_heads: int, rotary: bool) -> None:
    """The heads must divide the width, and shared heads the heads; rotary positions turn a head's columns in pairs."""

    def divisor(whole: int, most: int) -> int:
        return next(k for k in range(min(whole, most), 0, -1) if whole % k == 0)

    if d % heads:
        raise ValueError(f"heads: expected a divisor of d = {d}, got {heads}; try {divisor(d, heads)}")
    if heads % kv_heads:
        near = divisor(heads, kv_heads)
        raise ValueError(f"kv_heads: expected a divisor of heads = {heads}, got {kv_heads}; try {near}")
    if rotary and d // heads % 2:
        even = "an even d" if d % 2 else f"{divisor(d // 2, heads)}"
        raise ValueError(f"heads: expected an even width d / heads to turn in pairs, got {d} / {heads}; try {even}")


class MultiHead(nn.Module):
    """Multi-head attention: [A_1 V_1, ..., A_H V_H] W_O + b_O with Q = X W_Q + b_Q, K = Y W_K + b_K, V = Y W_V + b_V.

    Y is the memory, or X itself. Head h owns columns h d_h to (h+1) d_h - 1 of W_Q, and d_h = d / H. With fewer
    `kv_heads` than heads, neighbouring query heads share a key and a value head. Chapter `heads`.

    With `rope_base`, queries and keys carry rotary positions: the pair i at position p turns by p theta_i. Three
    attributes may be set to have other positions: `theta` and `attention_factor`, by which turned queries and keys are
    multiplied, together as `smalltorch.position.yarn` and its neighbours give them; and `score_bias`, which is asked
    for a number of tokens and answers with what is added to their scores, (head, query, key) or (query, key), as
    `smalltorch.position.alibi_bias` does. A module there is trained with the others.

        >>> output, A = MultiHead(d=8, heads=2)(torch.ones(5, 8))
        >>> output.shape, A.shape
        (torch.Size([5, 8]), torch.Size([2, 5, 5]))

    Args:
        d: width of the states (..., n, d).
        heads: H, the number of query heads.
        kv_heads: the number of key and value heads, a divisor of H; H unless given.
        bias: whether there are b_Q, b_K, b_V and b_O, which begin as zeros.
        rope_base: theta_i = rope_base^(-2i / d_h); no rotary positions unless given.

    Raises:
        ValueError: if H does not divide d, or kv_heads does not divide H; if d_h is odd with rotary positions.
    """

    def __init__(
        self, d: int, heads: int, kv_heads: int | None = None, bias: bool = False, rope_base: float | None = None
    ):
        super().__init__()
        kv_heads = heads if kv_heads is None else kv_heads
        d, heads, kv_heads = check_integers(1, d=d, heads=heads, kv_heads=kv_heads)
        check_type(bool, bias=bias)
        if rope_base is not None:
            rope_base = check_numbers(1, rope_base=rope_base)
        _check_heads(d, heads, kv_heads, rotary=rope_base is not None)
        self.d, self.heads, self.kv_heads, self.d_h = d, heads, kv_heads, d // heads
        with torch.device("cpu"):  # a model may be made on meta, and get its weights later; these are no weights
            self.theta = None if rope_base is None else frequencies(self.d_h, rope_base)
        self.attention_factor = 1.0
        self.score_bias: Callable[[int], Tensor] | None = None
        d_kv = kv_heads * self.d_h
        self.W_Q, self.W_K, self.W_V, self.W_O = weight(d, d), weight(d, d_kv), weight(d, d_kv), weight(d, d)
        self.b_Q, self.b_K, self.b_V, self.b_O = (
            nn.Parameter(torch.zeros(size)) if bias else None for size in (d, d_kv, d_kv, d)
        )

    def project(
        self, X: Float[Tensor, "*batch n d"], memory: Float[Tensor, "*batch m d"] | None = None
    ) -> tuple[
        Float[Tensor, "*batch head n d_h"], Float[Tensor, "*batch head m d_h"], Float[Tensor, "*batch head m d_h"]
    ]:
        """Q, K and V of every head, as they meet in the dot products: turned by position, shared heads repeated.

        Args:
            X: states that queries are made from.
            memory: states that keys and values are made from; X unless given.

        Raises:
            ValueError: if shapes, dtypes or devices do not fit.
        """
        Q, K, V = self._project(X, memory, cache=[])
        return Q, self._share(K), self._share(V)

    def _project(self, X: Tensor, memory: Tensor | None, cache: list[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """Q of every head; K and V of every shared head, after those in the cache."""
        Y = X if memory is None else memory
        check_floats(W_Q=(self.W_Q, "d d"), X=(X, "... n d"), memory=(Y, "... m d"))
        Q = _affine(X, self.W_Q, self.b_Q).unflatten(-1, (self.heads, self.d_h))  # (..., n, head, d_h)
        K = _affine(Y, self.W_K, self.b_K).unflatten(-1, (self.kv_heads, self.d_h))  # (..., m, kv_head, d_h)
        V = _affine(Y, self.W_V, self.b_V).unflatten(-1, (self.kv_heads, self.d_h))  # (..., m, kv_head, d_h)
        Q, K, V = (part.transpose(-3, -2) for part in (Q, K, V))  # (..., head, n, d_h), (..., kv_head, m, d_h) twice
        past, batch = cached_tokens(cache), " ".join(map(str, K.shape[:-2]))
        for part in cache:
            check_floats(X=(K, "..."), cache=(part, f"{batch} {past} {self.d_h}"))
        Q, K = self._turn(Q, past), self._turn(K, past)
        if past:
            K, V = torch.cat([cache[0], K], dim=-2), torch.cat([cache[1], V], dim=-2)  # (..., kv_head, past + m, d_h)
        return Q, K, V

    def _turn(self, X: Tensor, start: int) -> Tensor:
        """The rows of X (..., n, d_h) turned by their positions, of which the first is `start`."""
        if self.theta is None:
            return X
        check_floats(theta=(self.theta, f"{self.d_h // 2}"))
        check_numbers(0, attention_factor=self.attention_factor)
        p = torch.arange(start, start + X.shape[-2], dtype=torch.float64)  # (n)
        return self.attention_factor * rotate(X, torch.outer(p, self.theta.to(p)).to(X.device))  # by (n, d_h / 2)

    def _share(self, K: Tensor) -> Tensor:
        return K.repeat_interleave(self.heads // self.kv_heads, dim=-3)  # (..., kv_head, m, d_h) to (..., head, m, d_h)

    def forward(
        self,
        X: Float[Tensor, "*batch n d"],
        memory: Float[Tensor, "*batch m d"] | None = None,
        mask: Bool[Tensor, "..."] | None = None,
        cache: list[Tensor] | None = None,
    ) -> tuple[Float[Tensor, "*batch n d"], Float[Tensor, "*batch head n m"]]:
        """The output and the attention matrices.

        Args:
            X: states that ask.
            memory: states that are read (cross-attention); X unless given.
            mask: who may attend: (n, m), or all axes of A, each of its size or 1.
            cache: K and V of the tokens before those of X, [] at the start; those of X are appended to it in place,
                and are read with the others (then m counts all of them).

        Raises:
            ValueError: if shapes, dtypes or devices do not fit, the mask is not boolean, or scores or output overflow;
                for a memory beside a `score_bias`.
        """
        Q, K, V = self._project(X, memory, [] if cache is None else cache)
        origin = {"X": X} | ({} if memory is None else {"memory": memory}) | ({"cache": cache[0]} if cache else {})
        S = 1 / math.sqrt(self.d_h) * Q @ self._share(K).mT  # (..., head, n, d_h) @ (..., head, d_h, m)
        if self.score_bias is not None:
            if memory is not None:
                raise ValueError("memory: expected none beside a score_bias, got one; try score_bias = None")
            n, m = S.shape[-2:]
            bias = self.score_bias(m)
            check_floats(score_bias=(bias, f"... {m} {m}"))
            S = S + bias[..., m - n :, :].to(S)  # (head, n, m): with a cache, the n queries are the last of m tokens
        if isinstance(mask, Tensor) and X.ndim == mask.ndim == 2:
            mask = mask[None]  # (query, key), for there is no batch
        H, A = _attend(S, self._share(V), mask, **origin)  # (..., head, n, d_h) and (..., head, n, m)
        H = H.transpose(-3, -2).flatten(-2)  # (..., n, head, d_h) to (..., n, d)
        output = check_range(_affine(H, self.W_O, self.b_O), **origin)
        if cache is not None:
            cache[:] = K, V  # at the very end: what is interrupted leaves no trace
        return output, A
