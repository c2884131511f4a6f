"""The machines of 2017 to 2019: the encoder–decoder, GPT-1 and GPT-2. (`block` has BERT's encoder, LLaMA's decoder.)

Taken apart and put together in chapter `machine`.

Source: Vaswani et al., "Attention Is All You Need" (2017); Radford et al., "Improving Language Understanding by
Generative Pre-Training" (2018) and "Language Models are Unsupervised Multitask Learners" (2019).
"""

import math
from functools import partial
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from smalltorch.attention import MultiHead, causal_mask
from smalltorch.block import FFN, PostLN, PreLN, open_cache
from smalltorch.norm import LayerNorm
from smalltorch.shapes import check_shapes

gelu_tanh = partial(F.gelu, approximate="tanh")  # x/2 (1 + tanh(√(2/π)(x + 0.044715 x³))), as in OpenAI's code


class GPT(nn.Module):
    """X = E[tokens] + P[:n], then causal blocks, and the logits X E^T.

    GPT-1 is `norm="post"`: the decoder of 2017 without cross-attention, with learned positions and GELU. GPT-2 is
    `norm="pre"`: the norms at the inputs of the sub-layers, and one more norm behind the last block.

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
        norm: Literal["pre", "post"],
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
            raise ValueError(f"tokens: expected at most {len(self.P)} a row, got {past + n}")
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


class CrossPostLN(nn.Module):
    """The decoder's block of 2017: `PostLN` with attention to a memory between its two sub-layers."""

    def __init__(self, d: int, heads: int, d_ff: int, eps: float = 1e-5):
        super().__init__()
        self.attention, self.cross = MultiHead(d, heads, bias=True), MultiHead(d, heads, bias=True)
        self.ffn = FFN(d, d_ff, F.relu)
        self.norm_1, self.norm_2, self.norm_3 = LayerNorm(d, eps), LayerNorm(d, eps), LayerNorm(d, eps)

    def forward(
        self,
        X: Float[Tensor, "*batch n d"],
        memory: Float[Tensor, "*batch m d"],
        mask: Bool[Tensor, "..."] | None = None,
        memory_mask: Bool[Tensor, "..."] | None = None,
        cache: list[Tensor] | None = None,
    ) -> Float[Tensor, "*batch n d"]:
        X = self.norm_1(X + self.attention(X, mask=mask, cache=cache)[0])
        X = self.norm_2(X + self.cross(X, memory, memory_mask)[0])
        return self.norm_3(X + self.ffn(X))


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
