"""Blocks and the two models built from them: a LLaMA-style decoder and a BERT-style encoder.

Source: Vaswani et al. (2017) for the block with the norm behind the sum (Post-LN); Xiong et al., "On Layer
Normalization in the Transformer Architecture" (2020) for both orders; Shazeer, "GLU Variants Improve Transformer"
(2020) for SwiGLU; Touvron et al., "LLaMA" (2023) and Devlin et al., "BERT" (2019) for the models.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from smalltorch.attention import MultiHead, affine, causal_mask, weight
from smalltorch.norm import LayerNorm, RMSNorm
from smalltorch.shapes import check_shapes


class FFN(nn.Module):
    """s(X W_1 + b_1) W_2 + b_2, the same for every token; s is GELU unless given."""

    def __init__(self, d: int, d_ff: int, activation: Callable[[Tensor], Tensor] = F.gelu):
        super().__init__()
        self.W_1, self.b_1 = weight(d, d_ff), nn.Parameter(torch.zeros(d_ff))
        self.W_2, self.b_2 = weight(d_ff, d), nn.Parameter(torch.zeros(d))
        self.activation = activation

    def forward(self, X: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n d"]:
        check_shapes(X=(X, f"... n {len(self.W_1)}"))
        return affine(self.activation(affine(X, self.W_1, self.b_1)), self.W_2, self.b_2)


class SwiGLU(nn.Module):
    """(silu(X W_gate) * X W_up) W_down, with silu(t) = t / (1 + exp(-t))."""

    def __init__(self, d: int, d_ff: int):
        super().__init__()
        self.W_gate, self.W_up, self.W_down = weight(d, d_ff), weight(d, d_ff), weight(d_ff, d)

    def forward(self, X: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n d"]:
        check_shapes(X=(X, f"... n {len(self.W_gate)}"))
        return (F.silu(X @ self.W_gate) * (X @ self.W_up)) @ self.W_down


class PreLN(nn.Module):
    """X + attention(norm_1(X)), then X + ffn(norm_2(X)): the residual stream itself is never normalised.

    Chapter `add-and-norm`.
    """

    def __init__(self, attention: MultiHead, ffn: nn.Module, norm_1: nn.Module, norm_2: nn.Module):
        super().__init__()
        self.attention, self.ffn, self.norm_1, self.norm_2 = attention, ffn, norm_1, norm_2

    def forward(
        self,
        X: Float[Tensor, "*batch n d"],
        mask: Bool[Tensor, "..."] | None = None,
        cache: list[Tensor] | None = None,
    ) -> Float[Tensor, "*batch n d"]:
        X = X + self.attention(self.norm_1(X), mask=mask, cache=cache)[0]
        return X + self.ffn(self.norm_2(X))


class PostLN(nn.Module):
    """norm_1(X + attention(X)), then norm_2(X + ffn(X)): every sum is normalised. Chapter `add-and-norm`."""

    def __init__(self, attention: MultiHead, ffn: nn.Module, norm_1: nn.Module, norm_2: nn.Module):
        super().__init__()
        self.attention, self.ffn, self.norm_1, self.norm_2 = attention, ffn, norm_1, norm_2

    def forward(
        self,
        X: Float[Tensor, "*batch n d"],
        mask: Bool[Tensor, "..."] | None = None,
        cache: list[Tensor] | None = None,
    ) -> Float[Tensor, "*batch n d"]:
        X = self.norm_1(X + self.attention(X, mask=mask, cache=cache)[0])
        return self.norm_2(X + self.ffn(X))


def open_cache(cache: list[list[Tensor]] | None, blocks: nn.ModuleList) -> tuple[int, list]:
    """The number of tokens that a cache holds, and its part for each block ([] is filled with empty parts in place)."""
    if cache is None:
        return 0, [None] * len(blocks)
    if not cache:
        cache.extend([] for _ in blocks)
    return (cache[0][0].shape[-2] if cache[0] else 0), cache


class Decoder(nn.Module):
    """LLaMA's shape: E, then Pre-LN blocks (RMSNorm, rotary causal attention, SwiGLU), RMSNorm, and W_U for the logits.

    With `tied=True` there is no W_U and the logits are X E^T.
    """

    def __init__(
        self,
        vocabulary: int,
        d: int,
        layers: int,
        heads: int,
        d_ff: int,
        kv_heads: int | None = None,
        rope_base: float = 10_000.0,
        eps: float = 1e-6,
        tied: bool = True,
    ):
        super().__init__()
        self.E = nn.Parameter(torch.empty(vocabulary, d).normal_())
        self.blocks = nn.ModuleList(
            PreLN(MultiHead(d, heads, kv_heads, rope_base=rope_base), SwiGLU(d, d_ff), RMSNorm(d, eps), RMSNorm(d, eps))
            for _ in range(layers)
        )
        self.norm = RMSNorm(d, eps)
        self.W_U = None if tied else weight(d, vocabulary)

    def states(
        self,
        tokens: Int[Tensor, "batch n"],
        mask: Bool[Tensor, "..."] | None = None,
        cache: list[list[Tensor]] | None = None,
    ) -> Float[Tensor, "batch n d"]:
        """The states behind the last norm. A mask, broadcastable to (batch, head, n, n), can only hide further keys.

        With a cache, [] at the start, the tokens continue those of the calls before; it excludes a mask.
        """
        n = check_shapes(tokens=(tokens, "batch n"))["n"]
        past, caches = open_cache(cache, self.blocks)
        causal = causal_mask(past + n)[past:].to(tokens.device)
        if mask is not None:
            check_shapes(tokens=(tokens, "batch n"), mask=(mask, "... #n #n"))
            if cache is not None:
                raise ValueError("mask: expected none beside a cache, got one")
            causal = mask.masked_fill(~causal, False)
        X = self.E[tokens]
        for block, kept in zip(self.blocks, caches, strict=True):
            X = block(X, causal, cache=kept)
        return self.norm(X)

    def forward(
        self,
        tokens: Int[Tensor, "batch n"],
        mask: Bool[Tensor, "..."] | None = None,
        cache: list[list[Tensor]] | None = None,
    ) -> Float[Tensor, "batch n vocabulary"]:
        """The logits of the next token, at every position."""
        return self.states(tokens, mask, cache) @ (self.E.T if self.W_U is None else self.W_U)


class Encoder(nn.Module):
    """BERT's shape: token, position and segment embeddings, LayerNorm, then Post-LN blocks with biases and GELU."""

    def __init__(
        self,
        vocabulary: int,
        d: int,
        layers: int,
        heads: int,
        d_ff: int,
        positions: int = 512,
        segments: int = 2,
        eps: float = 1e-12,
    ):
        super().__init__()
        self.E = nn.Parameter(torch.empty(vocabulary, d).normal_())
        self.P = nn.Parameter(torch.empty(positions, d).normal_())
        self.E_segment = nn.Parameter(torch.empty(segments, d).normal_())
        self.norm = LayerNorm(d, eps)
        self.blocks = nn.ModuleList(
            PostLN(MultiHead(d, heads, bias=True), FFN(d, d_ff), LayerNorm(d, eps), LayerNorm(d, eps))
            for _ in range(layers)
        )

    def forward(
        self,
        tokens: Int[Tensor, "batch n"],
        segments: Int[Tensor, "batch n"] | None = None,
        mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "batch n d"]:
        """The states behind the last block.

        Args:
            tokens: token numbers, at most as many a row as there are positions.
            segments: 0 for the first text of a pair, 1 for the second; all 0 unless given.
            mask: who may attend, broadcastable to (batch, head, n, n).
        """
        n = check_shapes(tokens=(tokens, "batch n"))["n"]
        if n > len(self.P):
            raise ValueError(f"tokens: expected at most {len(self.P)} a row, got {n}")
        segments = torch.zeros_like(tokens) if segments is None else segments
        check_shapes(tokens=(tokens, "batch n"), segments=(segments, "batch n"))
        X = self.norm(self.E[tokens] + self.P[:n] + self.E_segment[segments])
        for block in self.blocks:
            X = block(X, mask)
        return X


class Call(NamedTuple):
    """One call of a module: which, with what, to what."""

    module: nn.Module
    inputs: tuple
    output: object


@contextmanager
def observe(model: nn.Module, kind: type | tuple[type, ...]) -> Iterator[list[Call]]:
    """The calls of every submodule of a kind, in order, while the `with` lasts.

    with observe(model, (PreLN, PostLN)) as calls:
        model(tokens)
    X = calls[3].inputs[0]          # the state that enters layer 3
    """
    calls: list[Call] = []

    def keep(module, inputs, output):
        calls.append(Call(module, inputs, output))

    hooks = [module.register_forward_hook(keep) for module in model.modules() if isinstance(module, kind)]
    try:
        yield calls
    finally:
        for hook in hooks:
            hook.remove()


def attention_matrices(
    model: Decoder | Encoder, tokens: Int[Tensor, "batch n"], mask: Bool[Tensor, "..."] | None = None
) -> Float[Tensor, "layer batch head n n"]:
    """A of every layer and head. The mask is the model's own; a decoder's can only hide further keys."""
    run = model.states if isinstance(model, Decoder) else model  # without the logits, which cost as much as five layers
    with observe(model, MultiHead) as calls:
        run(tokens, mask=mask)
    return torch.stack([call.output[1] for call in calls])


def queries_and_keys(
    model: Decoder | Encoder, tokens: Int[Tensor, "batch n"]
) -> tuple[Float[Tensor, "layer batch head n d_h"], Float[Tensor, "layer batch head n d_h"]]:
    """Q and K of every layer and head, as they meet in the dot products."""
    with observe(model, MultiHead) as calls:
        model(tokens)
    Q, K, _ = zip(*(call.module.project(*call.inputs) for call in calls), strict=True)
    return torch.stack(Q), torch.stack(K)
