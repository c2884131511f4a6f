"""The models: LLaMA's decoder, BERT's encoder, GPT-1 and GPT-2, the encoder–decoder of 2017, and a tiny language model.

Taken apart and put together in chapter `machine`. What happens inside one can be looked at by `observe`.

Source: Vaswani et al., "Attention Is All You Need" (2017); Radford et al., "Improving Language Understanding by
Generative Pre-Training" (2018) and "Language Models are Unsupervised Multitask Learners" (2019); Touvron et al.,
"LLaMA" (2023); Devlin et al., "BERT" (2019).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from smalltorch.attention import MultiHead, causal_mask, weight
from smalltorch.block import FFN, CrossPostLN, PostLN, PreLN, SwiGLU
from smalltorch.norm import LayerNorm, RMSNorm
from smalltorch.shapes import check_shapes

Place = Literal["pre", "post"]  # where a norm stands: before a sub-layer, or after its sum

gelu_tanh = partial(F.gelu, approximate="tanh")  # x/2 (1 + tanh(√(2/π)(x + 0.044715 x³))), as in OpenAI's code


# --- of today: LLaMA and BERT ----------------------------------------------------------------------------------------


def open_cache(cache: list[list[Tensor]] | None, blocks: nn.ModuleList) -> tuple[int, Sequence[list[Tensor] | None]]:
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
        """The states after the last norm. A mask, broadcastable to (batch, head, n, n), can only hide further keys.

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
        """The states after the last block.

        Args:
            tokens: token numbers, at most as many per row as there are positions.
            segments: 0 for the first text of a pair, 1 for the second; all 0 unless given.
            mask: who may attend, broadcastable to (batch, head, n, n).
        """
        n = check_shapes(tokens=(tokens, "batch n"))["n"]
        if n > len(self.P):
            raise ValueError(f"tokens: expected at most {len(self.P)} per row, got {n}")
        segments = torch.zeros_like(tokens) if segments is None else segments
        check_shapes(tokens=(tokens, "batch n"), segments=(segments, "batch n"))
        X = self.norm(self.E[tokens] + self.P[:n] + self.E_segment[segments])
        for block in self.blocks:
            X = block(X, mask)
        return X


# --- of 2017 to 2019 --------------------------------------------------------------------------------------------------


class GPT(nn.Module):
    """X = E[tokens] + P[:n], then causal blocks, and the logits X E^T.

    GPT-1 is `norm="post"`: the decoder of 2017 without cross-attention, with learned positions and GELU. GPT-2 is
    `norm="pre"`: the norms at the inputs of the sub-layers, and one more norm after the last block.

    Raises:
        ValueError: for more tokens than positions.
    """

    def __init__(
        self,
        vocabulary: int,
        d: int,
        layers: int,
        heads: int,
        positions: int,
        norm: Place,
        d_ff: int | None = None,
        eps: float = 1e-5,
    ):
        super().__init__()
        Block = {"pre": PreLN, "post": PostLN}[norm]
        self.E = nn.Parameter(torch.empty(vocabulary, d).normal_())
        self.P = nn.Parameter(torch.empty(positions, d).normal_())
        self.blocks = nn.ModuleList(
            Block(
                MultiHead(d, heads, bias=True), FFN(d, d_ff or 4 * d, gelu_tanh), LayerNorm(d, eps), LayerNorm(d, eps)
            )
            for _ in range(layers)
        )
        self.norm = LayerNorm(d, eps) if norm == "pre" else nn.Identity()

    def forward(
        self, tokens: Int[Tensor, "batch n"], cache: list[list[Tensor]] | None = None
    ) -> Float[Tensor, "batch n vocabulary"]:
        """The logits of the next token, at every position. With a cache the tokens continue those before."""
        n = check_shapes(tokens=(tokens, "batch n"))["n"]
        past, caches = open_cache(cache, self.blocks)
        if past + n > len(self.P):
            raise ValueError(f"tokens: expected at most {len(self.P)} per row, got {past + n}")
        causal = causal_mask(past + n)[past:].to(tokens.device)
        X = self.E[tokens] + self.P[past : past + n]
        for block, kept in zip(self.blocks, caches, strict=True):
            X = block(X, causal, cache=kept)
        return self.norm(X) @ self.E.T


def initialise_gpt2(model: GPT, rng: np.random.Generator, std: float = 0.02) -> GPT:
    """GPT-2's initial weights: N(0, std^2); biases 0; what a residual layer adds is scaled by 1/sqrt(N).

    N counts residual layers. A block has two, attention and FFN, so N = 2 L.
    """
    N = 2 * len(model.blocks)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim == 2:
                scale = std / math.sqrt(N) if name.endswith((".W_O", ".W_2")) else std
                parameter.copy_(torch.from_numpy(scale * rng.standard_normal(parameter.shape)))
            elif not name.endswith("gamma"):
                parameter.zero_()
    return model


def sinusoids(n: int, d: int, start: int = 0) -> Float[Tensor, "n d"]:
    """The position codes of 2017: sin and cos of p / 10000^(2i/d), in columns 2i and 2i + 1; float64."""
    angle = torch.arange(start, start + n, dtype=torch.float64)[:, None] * 10_000.0 ** (
        -torch.arange(0, d, 2, dtype=torch.float64) / d
    )
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :d]


class EncoderDecoder(nn.Module):
    """The Transformer of 2017, without dropout: one matrix E for both embeddings and the logits.

    `E` holds sqrt(d) times the paper's matrix, which the paper multiplies by sqrt(d) where it embeds; so here tokens
    are embedded as they stand, and the logits are X E^T / sqrt(d).
    """

    def __init__(self, vocabulary: int, d: int = 512, layers: int = 6, heads: int = 8, d_ff: int = 2048):
        super().__init__()
        self.E = nn.Parameter(torch.empty(vocabulary, d).normal_())
        self.encoder = nn.ModuleList(
            PostLN(MultiHead(d, heads, bias=True), FFN(d, d_ff, F.relu), LayerNorm(d), LayerNorm(d))
            for _ in range(layers)
        )
        self.decoder = nn.ModuleList(CrossPostLN(d, heads, d_ff) for _ in range(layers))

    def embed(self, tokens: Int[Tensor, "batch n"], start: int = 0) -> Float[Tensor, "batch n d"]:
        """Tokens and their positions."""
        check_shapes(tokens=(tokens, "batch n"))
        return self.E[tokens] + sinusoids(tokens.shape[1], self.E.shape[1], start).to(self.E)

    def encode(
        self, source: Int[Tensor, "batch m"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "batch m d"]:
        """The memory. The mask, broadcastable to (batch, head, m, m), hides padding."""
        X = self.embed(source)
        for block in self.encoder:
            X = block(X, mask)
        return X

    def decode(
        self,
        target: Int[Tensor, "batch n"],
        memory: Float[Tensor, "batch m d"],
        memory_mask: Bool[Tensor, "..."] | None = None,
        cache: list[list[Tensor]] | None = None,
    ) -> Float[Tensor, "batch n vocabulary"]:
        """The logits of the next target token, at every position. With a cache the target continues those before."""
        past, caches = open_cache(cache, self.decoder)
        X = self.embed(target, past)
        causal = causal_mask(past + X.shape[1])[past:].to(target.device)
        for block, kept in zip(self.decoder, caches, strict=True):
            X = block(X, memory, causal, memory_mask, kept)
        return X @ self.E.T / math.sqrt(self.E.shape[1])

    def forward(
        self, source: Int[Tensor, "batch m"], target: Int[Tensor, "batch n"]
    ) -> Float[Tensor, "batch n vocabulary"]:
        return self.decode(target, self.encode(source))


# --- small ones, to be trained ----------------------------------------------------------------------------------------


class AblationLayer(nn.Module):
    """Attention, then an FFN; each with its norm before it ("pre"), after the sum ("post"), or none.

    Without `residual` nothing is added to a sub-layer's output; without `mlp` there is no FFN. With both it is `PreLN`
    or `PostLN` of `block`.
    """

    def __init__(self, d: int, heads: int, d_ff: int, norm: Place | None, residual: bool, mlp: bool):
        super().__init__()
        self.place, self.residual = norm, residual
        self.attention = MultiHead(d, heads)
        self.ffn = FFN(d, d_ff) if mlp else None
        self.norm_1 = nn.Identity() if norm is None else LayerNorm(d)
        self.norm_2 = nn.Identity() if norm is None or not mlp else LayerNorm(d)

    def forward(self, X: Float[Tensor, "*batch n d"], mask: Tensor | None = None) -> Float[Tensor, "*batch n d"]:
        X = self._sublayer(X, lambda Y: self.attention(Y, mask=mask)[0], self.norm_1)
        return X if self.ffn is None else self._sublayer(X, self.ffn, self.norm_2)

    def _sublayer(self, X: Tensor, f: Callable[[Tensor], Tensor], norm: nn.Module) -> Tensor:
        Y = f(norm(X) if self.place == "pre" else X)
        Y = X + Y if self.residual else Y
        return norm(Y) if self.place == "post" else Y


class TinyLM(nn.Module):
    """The language model of the small trainings: E[tokens] + P[:n], layers, a last norm if "pre", and X W_U.

    Args:
        vocabulary: number of tokens; a masked language model counts its mask token.
        positions: the longest sequence.
        norm: "pre", "post" or None.
        residual, mlp: leave them out with False.
        causal: False for a model that sees both sides.

    Raises:
        ValueError: for more tokens than positions.
    """

    def __init__(
        self,
        vocabulary: int,
        positions: int,
        d: int = 16,
        layers: int = 2,
        heads: int = 2,
        d_ff: int | None = None,
        norm: Place | None = "pre",
        residual: bool = True,
        mlp: bool = True,
        causal: bool = True,
    ):
        super().__init__()
        self.causal = causal
        self.E, self.P = nn.Parameter(torch.zeros(vocabulary, d)), nn.Parameter(torch.zeros(positions, d))
        self.layers = nn.ModuleList(AblationLayer(d, heads, d_ff or 4 * d, norm, residual, mlp) for _ in range(layers))
        self.norm = LayerNorm(d) if norm == "pre" else nn.Identity()
        self.W_U = nn.Parameter(torch.zeros(d, vocabulary))

    def states(self, tokens: Int[Tensor, "batch n"]) -> Float[Tensor, "batch n d"]:
        """The states that the logits are read from."""
        n = check_shapes(tokens=(tokens, "batch n"))["n"]
        if n > len(self.P):
            raise ValueError(f"tokens: expected at most {len(self.P)} per row, got {n}")
        X = self.E[tokens] + self.P[:n]
        for layer in self.layers:
            X = layer(X, causal_mask(n) if self.causal else None)
        return self.norm(X)

    def forward(self, tokens: Int[Tensor, "batch n"]) -> Float[Tensor, "batch n vocabulary"]:
        return self.states(tokens) @ self.W_U


# --- what happens inside ----------------------------------------------------------------------------------------------


class Call(NamedTuple):
    """One call of a module: which, with what, to what."""

    module: Any
    inputs: tuple[Any, ...]
    output: Any


@contextmanager
def observe(model: nn.Module, kind: type | tuple[type, ...]) -> Iterator[list[Call]]:
    """The calls of every submodule of a kind, in order, while the `with` lasts.

        >>> model = Decoder(vocabulary=20, d=12, layers=4, heads=2, d_ff=16)
        >>> with observe(model, PreLN) as calls:
        ...     logits = model(torch.tensor([[1, 2, 3]]))
        >>> len(calls), calls[3].inputs[0].shape       # the states that enter the last of the four blocks
        (4, torch.Size([1, 3, 12]))

    After it the model is as it was before.
    """
    calls: list[Call] = []

    def keep(module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
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
