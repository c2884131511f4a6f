"""Blocks: an FFN or SwiGLU, and attention and FFN with residuals and norms around them.

Source: Vaswani et al. (2017) for the block with the norm after the sum (Post-LN); Xiong et al., "On Layer
Normalization in the Transformer Architecture" (2020) for both orders; Shazeer, "GLU Variants Improve Transformer"
(2020) for SwiGLU.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from smalltorch.attention import MultiHead, weight
from smalltorch.norm import LayerNorm
from smalltorch.shapes import check_floats, check_integers, check_mask, check_range


class FFN(nn.Module):
    """s(X W_1 + b_1) W_2 + b_2, the same for every token; s is GELU unless given."""

    def __init__(self, d: int, d_ff: int, activation: Callable[[Tensor], Tensor] = F.gelu):
        super().__init__()
        check_integers(1, d=d, d_ff=d_ff)
        self.W_1, self.b_1 = weight(d, d_ff), nn.Parameter(torch.zeros(d_ff))
        self.W_2, self.b_2 = weight(d_ff, d), nn.Parameter(torch.zeros(d))
        self.activation = activation

    def forward(self, X: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n d"]:
        check_floats(W_1=(self.W_1, "d d_ff"), X=(X, "... n d"))
        return check_range(self.activation(X @ self.W_1 + self.b_1) @ self.W_2 + self.b_2, X=X)


class SwiGLU(nn.Module):
    """(silu(X W_gate) * X W_up) W_down, with silu(t) = t / (1 + exp(-t))."""

    def __init__(self, d: int, d_ff: int):
        super().__init__()
        check_integers(1, d=d, d_ff=d_ff)
        self.W_gate, self.W_up, self.W_down = weight(d, d_ff), weight(d, d_ff), weight(d_ff, d)

    def forward(self, X: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n d"]:
        check_floats(W_gate=(self.W_gate, "d d_ff"), X=(X, "... n d"))
        return check_range((F.silu(X @ self.W_gate) * (X @ self.W_up)) @ self.W_down, X=X)


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
        check_floats(X=(X, "... n d"), memory=(memory, "... m d"))
        if memory_mask is not None:
            batch = torch.broadcast_shapes(X.shape[:-2], memory.shape[:-2])
            scores = (*batch, self.cross.heads, X.shape[-2], memory.shape[-2])
            check_mask(memory_mask, scores, X.device, "memory_mask", pairs=True)
        X = self.norm_1(X + self.attention(X, mask=mask, cache=cache)[0])
        X = self.norm_2(X + self.cross(X, memory, memory_mask)[0])
        return self.norm_3(X + self.ffn(X))
