"""Blocks: an FFN or SwiGLU, and attention and FFN with residuals and norms around them.

Source: Vaswani et al. (2017) for the block with the norm after the sum (Post-LN); Xiong et al., "On Layer
Normalization in the Transformer Architecture" (2020) for both orders; Takase et al., "B2T Connection: Serving Stability
and Performance in Deep Transformers" (2023) for B2T; Wang et al., "DeepNet: Scaling Transformers to 1,000 Layers"
(2022) for DeepNorm; Shazeer, "GLU Variants Improve Transformer" (2020) for SwiGLU.

A block maps states X (..., n, d), n tokens of width d, to states of the same shape. Each takes besides X:

- `mask`, who may attend: (n, n), or all axes of the attention matrices (..., head, n, m), each of its size or 1;
- `cache`, K and V of the tokens before those of X, [] at the start, to which those of X are appended in place.

What does not fit raises a ValueError that names it: states of another width, dtype or device, or so large that a
product overflows.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from smalltorch.attention import MultiHead, weight
from smalltorch.norm import LayerNorm
from smalltorch.shapes import check_floats, check_integers, check_mask, check_numbers, check_range


class FFN(nn.Module):
    """s(X W_1 + b_1) W_2 + b_2, the same for every token; s is GELU unless given.

    Called with X (..., n, d), it gives (..., n, d). Chapter `machine`.

        >>> FFN(d=4, d_ff=16)(torch.ones(5, 4)).shape
        torch.Size([5, 4])

    Args:
        d: width of the states.
        d_ff: width between the two maps: W_1 is (d, d_ff), W_2 (d_ff, d).
        activation: s, entry by entry.

    Raises:
        ValueError: for a width below 1; when called, for an X of another width or dtype, or an overflow.
    """

    def __init__(self, d: int, d_ff: int, activation: Callable[[Tensor], Tensor] = F.gelu):
        super().__init__()
        d, d_ff = check_integers(1, d=d, d_ff=d_ff)
        self.W_1, self.b_1 = weight(d, d_ff), nn.Parameter(torch.zeros(d_ff))
        self.W_2, self.b_2 = weight(d_ff, d), nn.Parameter(torch.zeros(d))
        self.activation = activation

    def forward(self, X: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n d"]:
        check_floats(W_1=(self.W_1, "d d_ff"), X=(X, "... n d"))
        hidden = self.activation(X @ self.W_1 + self.b_1)  # (..., n, d) to (..., n, d_ff)
        return check_range(hidden @ self.W_2 + self.b_2, X=X)  # back to (..., n, d)


class SwiGLU(nn.Module):
    """(silu(X W_gate) * X W_up) W_down, with silu(t) = t / (1 + exp(-t)).

    Called with X (..., n, d), it gives (..., n, d). Chapter `machine`.

        >>> SwiGLU(d=4, d_ff=11)(torch.ones(5, 4)).shape
        torch.Size([5, 4])

    Args:
        d: width of the states.
        d_ff: width between the maps: W_gate and W_up are (d, d_ff), W_down (d_ff, d).

    Raises:
        ValueError: for a width below 1; when called, for an X of another width or dtype, or an overflow.
    """

    def __init__(self, d: int, d_ff: int):
        super().__init__()
        d, d_ff = check_integers(1, d=d, d_ff=d_ff)
        self.W_gate, self.W_up, self.W_down = weight(d, d_ff), weight(d, d_ff), weight(d_ff, d)

    def forward(self, X: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n d"]:
        check_floats(W_gate=(self.W_gate, "d d_ff"), X=(X, "... n d"))
        hidden = F.silu(X @ self.W_gate) * (X @ self.W_up)  # (..., n, d) to (..., n, d_ff)
        return check_range(hidden @ self.W_down, X=X)  # back to (..., n, d)


class _Block(nn.Module):
    """Attention, an FFN and two norms; each kind of block below says in which order they act."""

    def __init__(self, attention: MultiHead, ffn: nn.Module, norm_1: nn.Module, norm_2: nn.Module):
        super().__init__()
        self.attention, self.ffn, self.norm_1, self.norm_2 = attention, ffn, norm_1, norm_2


class PreLN(_Block):
    """X + attention(norm_1(X)), then X + ffn(norm_2(X)): the residual stream itself is never normalised.

    Chapter `add-and-norm`.

        >>> block = PreLN(MultiHead(8, heads=2), FFN(8, 32), LayerNorm(8), LayerNorm(8))
        >>> block(torch.ones(5, 8)).shape
        torch.Size([5, 8])

    Args:
        attention: the first sub-layer.
        ffn: the second, a module that maps (..., n, d) to the same shape.
        norm_1: acts on the input of attention.
        norm_2: acts on the input of the FFN.

    Raises:
        ValueError: when called, as its parts.
    """

    def forward(
        self,
        X: Float[Tensor, "*batch n d"],
        mask: Bool[Tensor, "..."] | None = None,
        cache: list[Tensor] | None = None,
    ) -> Float[Tensor, "*batch n d"]:
        X = X + self.attention(self.norm_1(X), mask=mask, cache=cache)[0]
        return X + self.ffn(self.norm_2(X))


class PostLN(_Block):
    """norm_1(X + attention(X)), then norm_2(X + ffn(X)): every sum is normalised. Chapter `add-and-norm`.

        >>> block = PostLN(MultiHead(8, heads=2), FFN(8, 32), LayerNorm(8), LayerNorm(8))
        >>> block(torch.ones(5, 8)).shape
        torch.Size([5, 8])

    Args:
        attention: the first sub-layer.
        ffn: the second, a module that maps (..., n, d) to the same shape.
        norm_1: acts on the sum after attention.
        norm_2: acts on the sum after the FFN.

    Raises:
        ValueError: when called, as its parts.
    """

    def forward(
        self,
        X: Float[Tensor, "*batch n d"],
        mask: Bool[Tensor, "..."] | None = None,
        cache: list[Tensor] | None = None,
    ) -> Float[Tensor, "*batch n d"]:
        X = self.norm_1(X + self.attention(X, mask=mask, cache=cache)[0])
        return self.norm_2(X + self.ffn(X))


class B2T(_Block):
    """Y = norm_1(X + attention(X)), then norm_2(X + Y + ffn(Y)): `PostLN` with one more skip, past the first norm.

    "Bottom to top": X meets no norm of its block but the last. Chapter `gradient-factor`.

        >>> block = B2T(MultiHead(8, heads=2), FFN(8, 32), LayerNorm(8), LayerNorm(8))
        >>> block(torch.ones(5, 8)).shape
        torch.Size([5, 8])

    Args:
        attention: the first sub-layer.
        ffn: the second, a module that maps (..., n, d) to the same shape.
        norm_1: acts on the sum after attention.
        norm_2: acts on the sum of three.

    Raises:
        ValueError: when called, as its parts.
    """

    def forward(
        self,
        X: Float[Tensor, "*batch n d"],
        mask: Bool[Tensor, "..."] | None = None,
        cache: list[Tensor] | None = None,
    ) -> Float[Tensor, "*batch n d"]:
        Y = self.norm_1(X + self.attention(X, mask=mask, cache=cache)[0])
        return self.norm_2(X + Y + self.ffn(Y))


class DeepNorm(_Block):
    """norm_1(attention(X) + alpha X), then norm_2(ffn(X) + alpha X): `PostLN` whose skips weigh more.

    `deepnorm_scales` says what alpha is to be, and how small the initial weights. Chapter `gradient-factor`.

        >>> alpha, beta = deepnorm_scales(layers=8)
        >>> block = DeepNorm(MultiHead(8, heads=2), FFN(8, 32), LayerNorm(8), LayerNorm(8), alpha)
        >>> block(torch.ones(5, 8)).shape
        torch.Size([5, 8])

    Args:
        attention: the first sub-layer.
        ffn: the second, a module that maps (..., n, d) to the same shape.
        norm_1: acts on the sum after attention.
        norm_2: acts on the sum after the FFN.
        alpha: the weight of the skips.

    Raises:
        ValueError: for an alpha that is negative or not finite; when called, as its parts.
    """

    def __init__(self, attention: MultiHead, ffn: nn.Module, norm_1: nn.Module, norm_2: nn.Module, alpha: float):
        super().__init__(attention, ffn, norm_1, norm_2)
        alpha = check_numbers(0, alpha=alpha)
        self.alpha = alpha

    def forward(
        self,
        X: Float[Tensor, "*batch n d"],
        mask: Bool[Tensor, "..."] | None = None,
        cache: list[Tensor] | None = None,
    ) -> Float[Tensor, "*batch n d"]:
        X = self.norm_1(self.attention(X, mask=mask, cache=cache)[0] + self.alpha * X)
        return self.norm_2(self.ffn(X) + self.alpha * X)


class Scales(NamedTuple):
    """DeepNorm's two numbers: alpha multiplies the skips, beta the initial W_V, W_O, W_1 and W_2.

    `deepnorm_scales` gives them, with an example. Chapter `gradient-factor`.
    """

    alpha: float
    beta: float


def deepnorm_scales(layers: int) -> Scales:
    """alpha = (2 L)^(1/4) and beta = (8 L)^(-1/4), for an encoder or a decoder alone, of L blocks.

        >>> deepnorm_scales(8)
        Scales(alpha=2.0, beta=0.3535533905932738)

    Chapter `gradient-factor`.

    Args:
        layers: L, the number of blocks.

    Raises:
        ValueError: for fewer than one layer.
    """
    layers = check_integers(1, layers=layers)
    return Scales((2 * layers) ** 0.25, (8 * layers) ** -0.25)


class CrossPostLN(nn.Module):
    """The decoder's block of 2017: `PostLN` with attention to a memory between its two sub-layers.

    norm_1(X + attention(X)), then norm_2(X + cross(X, memory)), then norm_3(X + ffn(X)). Chapter `machine`.

        >>> CrossPostLN(d=8, heads=2, d_ff=32)(torch.ones(5, 8), memory=torch.ones(3, 8)).shape
        torch.Size([5, 8])

    Args:
        d, heads, d_ff, eps: as in `MultiHead`, `FFN` and `LayerNorm`.

    Raises:
        ValueError: for sizes below 1, or heads that do not divide d; when called, as its parts, without a memory
            (..., m, d), or for a memory mask that is neither (n, m) nor (..., head, n, m), or 1 in place of a size.
    """

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
