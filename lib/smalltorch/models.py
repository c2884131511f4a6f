"""The models: LLaMA's decoder, BERT's encoder, GPT-1 and GPT-2, the encoder–decoder of 2017, and a tiny language model.

Taken apart and put together in chapter `machine`. What happens inside one can be looked at by `observe`.

The mask of a model has all four axes, (batch, head, query, key), each of its size or 1: a padding mask (batch, key) is
written `padding[:, None, None, :]`, and one for all sequences `seen[None, None]`.

Source: Vaswani et al., "Attention Is All You Need" (2017); Radford et al., "Improving Language Understanding by
Generative Pre-Training" (2018) and "Language Models are Unsupervised Multitask Learners" (2019); Touvron et al.,
"LLaMA" (2023); Devlin et al., "BERT" (2019).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from smalltorch.attention import MultiHead, cached_tokens, causal_mask, weight
from smalltorch.block import FFN, CrossPostLN, PostLN, PreLN, SwiGLU
from smalltorch.norm import LayerNorm, RMSNorm
from smalltorch.position import sinusoids
from smalltorch.shapes import (
    check_choice,
    check_floats,
    check_integers,
    check_mask,
    check_numbers,
    check_tokens,
    check_type,
)

Place = Literal["pre", "post"]  # where a norm stands: before a sub-layer, or after its sum


def gelu_tanh(X: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """x/2 (1 + tanh(√(2/π)(x + 0.044715 x³))), as in OpenAI's code. Chapter `machine`.

        >>> gelu_tanh(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([-0.1588,  0.0000,  0.8412])

    Raises:
        ValueError: if X is not of floating point.
    """
    check_floats(X=(X, "..."))
    return F.gelu(X, approximate="tanh")


# --- of today: LLaMA and BERT ----------------------------------------------------------------------------------------


@contextmanager
def _opened(
    cache: list[list[Tensor]] | None, blocks: nn.ModuleList
) -> Iterator[tuple[int, Sequence[list[Tensor] | None]]]:
    """The number of tokens that a cache holds, and for each block a copy of its part ([] at the start), to be extended.

    The copies become the cache when the `with` ends. So a call that is interrupted leaves the cache as it was, and the
    next one does not find tokens in it that were never answered.
    """
    if cache is None:
        yield 0, [None] * len(blocks)
        return
    check_type(list, cache=cache)
    lengths = {cached_tokens(part) for part in cache} or {0}
    parts = [list(part) for part in cache] or [[] for _ in blocks]
    if len(parts) != len(blocks):
        raise ValueError(
            f"cache: expected [] or a part for each of {len(blocks)} layers, got {len(parts)} parts; try []"
        )
    if len(lengths) > 1:
        raise ValueError(f"cache: expected the same tokens in all layers, got {sorted(lengths)} of them; try []")
    yield lengths.pop(), parts
    cache[:] = parts


def _check_length(n: int, P: Tensor, past: int = 0) -> None:
    """There must be a position in P for each of n tokens, and for those in a cache."""
    if past + n > len(P):
        new = " with a new cache" if past else ""
        raise ValueError(f"tokens: expected at most {len(P)} per row, got {past + n}; try tokens[:, -{len(P)}:]{new}")


class Decoder(nn.Module):
    """LLaMA's shape: E, then Pre-LN blocks (RMSNorm, rotary causal attention, SwiGLU), RMSNorm, and W_U for the logits.

    With `tied=True` there is no W_U and the logits are X E^T. Chapter `machine`.

        >>> model = Decoder(vocabulary=20, d=12, layers=2, heads=6, kv_heads=2, d_ff=16)
        >>> model(torch.tensor([[1, 2, 3]])).shape
        torch.Size([1, 3, 20])

    Args:
        vocabulary: number of tokens: E is (vocabulary, d), W_U (d, vocabulary).
        d: width of the states.
        layers: number of blocks.
        heads, kv_heads, rope_base: as in `MultiHead`.
        d_ff: as in `SwiGLU`.
        eps: as in `RMSNorm`.
        tied: whether the logits are computed with E.

    Raises:
        ValueError: for a size below 1, or as its parts; when called, as `forward` says.
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
        vocabulary, d, layers = check_integers(1, vocabulary=vocabulary, d=d, layers=layers)
        check_type(bool, tied=tied)
        self.heads = heads
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
        """The states after the last norm, from which the logits are read. Arguments and errors as in `forward`."""
        with _opened(cache, self.blocks) as (past, parts):
            return self._states(tokens, mask, past, parts)

    def _states(
        self, tokens: Tensor, mask: Tensor | None, past: int, parts: Sequence[list[Tensor] | None]
    ) -> Float[Tensor, "batch n d"]:
        n = check_tokens(tokens=(tokens, "batch n", len(self.E)))["n"]
        causal = causal_mask(past + n)[past:].to(tokens.device)  # (n, past + n)
        if mask is not None:
            check_mask(mask, (len(tokens), self.heads, n, n), tokens.device)
            if parts[0] is not None:
                raise ValueError("mask: expected none beside a cache, got one; try cache=None")
            causal = mask.masked_fill(~causal, False)  # (batch, head, n, n)
        X = self.E[tokens]  # (batch, n, d)
        for block, part in zip(self.blocks, parts, strict=True):
            X = block(X, causal, cache=part)
        return self.norm(X)

    def forward(
        self,
        tokens: Int[Tensor, "batch n"],
        mask: Bool[Tensor, "..."] | None = None,
        cache: list[list[Tensor]] | None = None,
    ) -> Float[Tensor, "batch n vocabulary"]:
        """The logits of the next token, at every position.

        Args:
            tokens: token numbers.
            mask: (batch, head, n, n), which can only hide further keys.
            cache: [] at the start; the tokens continue those of the calls before, to which they are appended.

        Raises:
            ValueError: for tokens that the vocabulary does not have, a mask of another shape or beside a cache, or a
                cache that another model has filled.
        """
        with _opened(cache, self.blocks) as (past, parts):
            W_U = self.E.T if self.W_U is None else self.W_U  # (d, vocabulary)
            return self._states(tokens, mask, past, parts) @ W_U  # (batch, n, vocabulary)


class Encoder(nn.Module):
    """BERT's shape: token, position and segment embeddings, LayerNorm, then Post-LN blocks with biases and GELU.

    X = LayerNorm(E[tokens] + P[:n] + E_segment[segments]), then the blocks, without a causal mask. Chapter `machine`.

        >>> Encoder(vocabulary=20, d=12, layers=2, heads=3, d_ff=16)(torch.tensor([[1, 2, 3]])).shape
        torch.Size([1, 3, 12])

    Args:
        vocabulary: number of tokens: E is (vocabulary, d).
        d: width of the states.
        layers: number of blocks.
        heads: as in `MultiHead`.
        d_ff: as in `FFN`.
        positions: the longest sequence: P is (positions, d).
        segments: number of segments: E_segment is (segments, d).
        eps: as in `LayerNorm`.

    Raises:
        ValueError: for a size below 1, or as its parts; when called, as `forward` says.
    """

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
        vocabulary, d, layers = check_integers(1, vocabulary=vocabulary, d=d, layers=layers)
        positions, segments = check_integers(1, positions=positions, segments=segments)
        self.heads = heads
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
            mask: who may attend (batch, head, n, n).

        Raises:
            ValueError: for tokens or segments that there are not, more tokens than positions, or a mask of another
                shape.
        """
        n = check_tokens(tokens=(tokens, "batch n", len(self.E)))["n"]
        if n > len(self.P):
            raise ValueError(f"tokens: expected at most {len(self.P)} per row, got {n}; try tokens[:, :{len(self.P)}]")
        segments = torch.zeros_like(tokens) if segments is None else segments
        check_tokens(segments=(segments, f"{len(tokens)} {n}", len(self.E_segment)))
        if mask is not None:
            check_mask(mask, (len(tokens), self.heads, n, n), tokens.device)
        X = self.norm(self.E[tokens] + self.P[:n] + self.E_segment[segments])  # (batch, n, d), of which P has (n, d)
        for block in self.blocks:
            X = block(X, mask)
        return X


# --- of 2017 to 2019 --------------------------------------------------------------------------------------------------


class GPT(nn.Module):
    """X = E[tokens] + P[:n], then causal blocks, and the logits X E^T.

    GPT-1 is `norm="post"`: the decoder of 2017 without cross-attention, with learned positions and GELU. GPT-2 is
    `norm="pre"`: the norms at the inputs of the sub-layers, and one more norm after the last block. Chapter `machine`.

        >>> model = GPT(vocabulary=20, d=8, layers=2, heads=2, positions=16, norm="pre")
        >>> model(torch.tensor([[1, 2, 3]])).shape
        torch.Size([1, 3, 20])

    Args:
        vocabulary: number of tokens: E is (vocabulary, d).
        d: width of the states.
        layers: number of blocks.
        heads: as in `MultiHead`.
        positions: the longest sequence: P is (positions, d).
        norm: "pre" or "post".
        d_ff: as in `FFN`; 4 d unless given.
        eps: as in `LayerNorm`.

    Raises:
        ValueError: for a size below 1, another norm, or as its parts; when called, for tokens that the vocabulary does
            not have, more tokens than positions (those in the cache count), or a cache that another model has filled.
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
        vocabulary, d, layers = check_integers(1, vocabulary=vocabulary, d=d, layers=layers)
        positions = check_integers(1, positions=positions)
        check_choice(("pre", "post"), norm=norm)
        Block = {"pre": PreLN, "post": PostLN}[norm]
        d_ff = 4 * d if d_ff is None else d_ff
        self.E = nn.Parameter(torch.empty(vocabulary, d).normal_())
        self.P = nn.Parameter(torch.empty(positions, d).normal_())
        self.blocks = nn.ModuleList(
            Block(MultiHead(d, heads, bias=True), FFN(d, d_ff, gelu_tanh), LayerNorm(d, eps), LayerNorm(d, eps))
            for _ in range(layers)
        )
        self.norm = LayerNorm(d, eps) if norm == "pre" else nn.Identity()

    def forward(
        self, tokens: Int[Tensor, "batch n"], cache: list[list[Tensor]] | None = None
    ) -> Float[Tensor, "batch n vocabulary"]:
        """The logits of the next token, at every position. With a cache the tokens continue those before."""
        n = check_tokens(tokens=(tokens, "batch n", len(self.E)))["n"]
        with _opened(cache, self.blocks) as (past, parts):
            _check_length(n, self.P, past)
            causal = causal_mask(past + n)[past:].to(tokens.device)  # (n, past + n)
            X = self.E[tokens] + self.P[past : past + n]  # (batch, n, d) + (n, d)
            for block, part in zip(self.blocks, parts, strict=True):
                X = block(X, causal, cache=part)
            return self.norm(X) @ self.E.T  # (batch, n, d) @ (d, vocabulary)


def initialise_gpt2(model: GPT, rng: np.random.Generator, std: float = 0.02) -> GPT:
    """GPT-2's initial weights: N(0, std^2); biases 0; what a residual layer adds is scaled by 1/sqrt(N).

    N counts residual layers. A block has two, attention and FFN, so N = 2 L. Chapter `machine`.

        >>> model = GPT(vocabulary=20, d=8, layers=2, heads=2, positions=16, norm="pre")
        >>> bool(initialise_gpt2(model, np.random.default_rng(0)).E.abs().max() < 0.1)
        True

    Args:
        model: gets the weights, in place.
        rng: draws them.
        std: of all weights but those scaled.

    Raises:
        ValueError: for another model, another kind of generator, or a negative std.
    """
    check_type(GPT, model=model)
    check_type(np.random.Generator, "np.random.default_rng(0)", rng=rng)
    std = check_numbers(0, std=std)
    N = 2 * len(model.blocks)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim == 2:
                scale = std / math.sqrt(N) if name.endswith((".W_O", ".W_2")) else std
                parameter.copy_(torch.from_numpy(scale * rng.standard_normal(parameter.shape)))
            elif not name.endswith("gamma"):
                parameter.zero_()
    return model


class EncoderDecoder(nn.Module):
    """The Transformer of 2017, without dropout: one matrix E for both embeddings and the logits.

    `E` holds sqrt(d) times the paper's matrix, which the paper multiplies by sqrt(d) where it embeds; so here tokens
    are embedded as they stand, and the logits are X E^T / sqrt(d). Chapter `machine`.

        >>> model = EncoderDecoder(vocabulary=20, d=12, layers=2, heads=3, d_ff=16)
        >>> model(torch.tensor([[1, 2, 3]]), torch.tensor([[4, 5]])).shape
        torch.Size([1, 2, 20])

    Args:
        vocabulary: number of tokens: E is (vocabulary, d).
        layers: number of blocks in the encoder, `PostLN`, and in the decoder, `CrossPostLN`.
        d, heads, d_ff: as in these.

    Raises:
        ValueError: for a size below 1, or as its parts; when called, for tokens that the vocabulary does not have, or
            another batch of sources than of targets.
    """

    def __init__(self, vocabulary: int, d: int = 512, layers: int = 6, heads: int = 8, d_ff: int = 2048):
        super().__init__()
        vocabulary, d, layers = check_integers(1, vocabulary=vocabulary, d=d, layers=layers)
        self.heads = heads
        self.E = nn.Parameter(torch.empty(vocabulary, d).normal_())
        self.encoder = nn.ModuleList(
            PostLN(MultiHead(d, heads, bias=True), FFN(d, d_ff, F.relu), LayerNorm(d), LayerNorm(d))
            for _ in range(layers)
        )
        self.decoder = nn.ModuleList(CrossPostLN(d, heads, d_ff) for _ in range(layers))

    def embed(self, tokens: Int[Tensor, "batch n"], start: int = 0) -> Float[Tensor, "batch n d"]:
        """Tokens and their positions, of which the first is `start`."""
        check_tokens(tokens=(tokens, "batch n", len(self.E)))
        return self.E[tokens] + sinusoids(tokens.shape[1], self.E.shape[1], start).to(self.E)  # (batch, n, d) + (n, d)

    def encode(
        self, source: Int[Tensor, "batch m"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "batch m d"]:
        """The memory. The mask (batch, head, m, m) hides padding."""
        m = check_tokens(source=(source, "batch m", len(self.E)))["m"]
        if mask is not None:
            check_mask(mask, (len(source), self.heads, m, m), source.device)
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
        """The logits of the next target token, at every position. With a cache the target continues those before.

        The memory mask (batch, head, n, m) hides padding.
        """
        n = check_tokens(target=(target, "batch n", len(self.E)))["n"]
        m = check_floats(E=(self.E, "vocabulary d"), memory=(memory, f"{len(target)} m d"))["m"]
        if memory_mask is not None:
            check_mask(memory_mask, (len(target), self.heads, n, m), target.device, "memory_mask")
        with _opened(cache, self.decoder) as (past, parts):
            X = self.embed(target, past)
            causal = causal_mask(past + n)[past:].to(target.device)  # (n, past + n)
            for block, part in zip(self.decoder, parts, strict=True):
                X = block(X, memory, causal, memory_mask, part)
            return X @ self.E.T / math.sqrt(self.E.shape[1])  # (batch, n, d) @ (d, vocabulary)

    def forward(
        self, source: Int[Tensor, "batch m"], target: Int[Tensor, "batch n"]
    ) -> Float[Tensor, "batch n vocabulary"]:
        """The logits of the next target token, at every position, without a mask or a cache."""
        check_tokens(source=(source, "batch m", len(self.E)), target=(target, "batch n", len(self.E)))
        return self.decode(target, self.encode(source))


# --- small ones, to be trained ----------------------------------------------------------------------------------------


class AblationLayer(nn.Module):
    """Attention, then an FFN; each with its norm before it ("pre"), after the sum ("post"), or none.

    Without `residual` nothing is added to a sub-layer's output; without `mlp` there is no FFN. With both it is `PreLN`
    or `PostLN` of `block`. Chapter `placement`.

        >>> AblationLayer(8, heads=2, d_ff=32, norm="post", residual=True, mlp=False)(torch.ones(5, 8)).shape
        torch.Size([5, 8])

    Args:
        d: width of the states (..., n, d).
        heads: as in `MultiHead`.
        d_ff: as in `FFN`.
        norm: "pre", "post" or None.
        residual, mlp: leave them out with False.

    Raises:
        ValueError: for a size below 1, heads that do not divide d, or another norm; when called, as its parts.
    """

    def __init__(self, d: int, heads: int, d_ff: int, norm: Place | None, residual: bool, mlp: bool):
        super().__init__()
        check_choice(("pre", "post", None), norm=norm)
        check_type(bool, residual=residual, mlp=mlp)
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

    E, P and W_U begin as zeros: `smalltorch.train.initial` draws all weights. Chapter `placement`.

        >>> TinyLM(vocabulary=4, positions=8)(torch.tensor([[0, 3, 1]])).shape
        torch.Size([1, 3, 4])

    Args:
        vocabulary: number of tokens; a masked language model counts its mask token.
        positions: the longest sequence.
        d: width of the states: E is (vocabulary, d), P (positions, d), W_U (d, vocabulary).
        layers: number of layers, each an `AblationLayer`.
        heads: as in `MultiHead`.
        d_ff: as in `FFN`; 4 d unless given.
        norm: "pre", "post" or None.
        residual, mlp: leave them out with False.
        causal: False for a model that sees both sides.

    Raises:
        ValueError: for a size below 1, another norm, or as its parts; when called, for tokens that the vocabulary does
            not have, or more tokens than positions.
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
        vocabulary, positions = check_integers(1, vocabulary=vocabulary, positions=positions)
        d, layers = check_integers(1, d=d, layers=layers)
        check_type(bool, causal=causal)
        d_ff = 4 * d if d_ff is None else d_ff
        self.causal = causal
        self.E, self.P = nn.Parameter(torch.zeros(vocabulary, d)), nn.Parameter(torch.zeros(positions, d))
        self.layers = nn.ModuleList(AblationLayer(d, heads, d_ff, norm, residual, mlp) for _ in range(layers))
        self.norm = LayerNorm(d) if norm == "pre" else nn.Identity()
        self.W_U = nn.Parameter(torch.zeros(d, vocabulary))

    def states(self, tokens: Int[Tensor, "batch n"]) -> Float[Tensor, "batch n d"]:
        """The states that the logits are read from."""
        n = check_tokens(tokens=(tokens, "batch n", len(self.E)))["n"]
        _check_length(n, self.P)
        X = self.E[tokens] + self.P[:n]  # (batch, n, d) + (n, d)
        mask = causal_mask(n).to(tokens.device) if self.causal else None
        for layer in self.layers:
            X = layer(X, mask)
        return self.norm(X)

    def forward(self, tokens: Int[Tensor, "batch n"]) -> Float[Tensor, "batch n vocabulary"]:
        """The logits, at every position: of the next token, or of the token that is masked."""
        return self.states(tokens) @ self.W_U  # (batch, n, d) @ (d, vocabulary)


# --- what happens inside ----------------------------------------------------------------------------------------------


class Call(NamedTuple):
    """One call of a module: which, with what, to what. `observe` lists them, with an example."""

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

    Args:
        model: whose submodules are looked at.
        kind: a class of modules, or several.

    Raises:
        ValueError: if the model is no module, or the kind no class.
    """
    check_type(nn.Module, model=model)
    check_type(type | tuple, "the class itself, such as MultiHead", kind=kind)
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
    """A of every layer and head. The mask is the model's own; a decoder's can only hide further keys.

        >>> model = Decoder(vocabulary=20, d=12, layers=4, heads=2, d_ff=16)
        >>> attention_matrices(model, torch.tensor([[1, 2, 3]])).shape
        torch.Size([4, 1, 2, 3, 3])

    Chapter `attention`.

    Args:
        model: of these two kinds.
        tokens: token numbers (batch, n).
        mask: (batch, head, n, n), each of its size or 1.

    Raises:
        ValueError: for another model; for tokens and masks as the model.
    """
    return torch.stack([call.output[1] for call in _attention_calls(model, tokens, mask)])  # each (batch, head, n, n)


def queries_and_keys(
    model: Decoder | Encoder, tokens: Int[Tensor, "batch n"]
) -> tuple[Float[Tensor, "layer batch head n d_h"], Float[Tensor, "layer batch head n d_h"]]:
    """Q and K of every layer and head, as they meet in the dot products: softmax(Q K^T / sqrt(d_h)) is A.

        >>> Q, K = queries_and_keys(Decoder(vocabulary=20, d=12, layers=4, heads=2, d_ff=16), torch.tensor([[1, 2, 3]]))
        >>> Q.shape, K.shape
        (torch.Size([4, 1, 2, 3, 6]), torch.Size([4, 1, 2, 3, 6]))

    Chapter `scaling`.

    Args:
        model: of these two kinds.
        tokens: token numbers (batch, n).

    Raises:
        ValueError: for another model; for tokens as the model.
    """
    calls = _attention_calls(model, tokens, None)
    Q, K, _ = zip(*(call.module.project(*call.inputs) for call in calls), strict=True)  # each (batch, head, n, d_h)
    return torch.stack(Q), torch.stack(K)  # (layer, batch, head, n, d_h)


def _attention_calls(model: Decoder | Encoder, tokens: Tensor, mask: Tensor | None) -> list[Call]:
    """The calls of attention, layer by layer."""
    check_type(Decoder | Encoder, "observe(model, MultiHead)", model=model)
    run = model.states if isinstance(model, Decoder) else model  # without the logits, which cost as much as five layers
    with observe(model, MultiHead) as calls:
        run(tokens, mask=mask)
    return calls
