"""LayerNorm in its two conventions, and RMSNorm. The variance is the biased one: the mean of the squared deviations.

Source: Ba, Kiros and Hinton, "Layer Normalization" (2016); Zhang and Sennrich, "Root Mean Square Layer Normalization"
(2019).
"""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from smalltorch.shapes import check_shapes

Convention = Literal["inside", "outside"]


def layer_norm(
    X: Float[Tensor, "*batch d"],
    gamma: Float[Tensor, " d"] | None = None,
    beta: Float[Tensor, " d"] | None = None,
    eps: float = 1e-5,
    convention: Convention = "inside",
) -> Float[Tensor, "*batch d"]:
    """gamma * (x - mu) / sqrt(sigma^2 + eps) + beta, each row with its own mean mu and deviation sigma.

    Chapter `layer-norm`.

    `convention="inside"` puts eps inside the root, as torch and every checkpoint do; `"outside"` divides by
    sigma + eps, as many notes write it. They agree to the order of eps where sigma is of order one. They part where
    sigma is small: near a constant row the one is smooth with slope 1/sqrt(eps), the other has slope 1/eps, no second
    derivative at sigma = 0, and NaN there for a gradient from autograd. The same eps is therefore not the same
    strength: inside, sqrt(eps) plays the part of eps.

        >>> layer_norm(torch.tensor([1.0, 2.0, 6.0]).double())
        tensor([-0.9258, -0.4629,  1.3887], dtype=torch.float64)

    Raises:
        ValueError: if gamma or beta does not have the width of X, or for another convention.
    """
    _check(X=X, gamma=gamma, beta=beta)
    centred = X - X.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    if convention == "inside":
        Y = centred / torch.sqrt(variance + eps)
    elif convention == "outside":
        Y = centred / (torch.sqrt(variance) + eps)
    else:
        raise ValueError(f'convention: expected "inside" or "outside", got {convention!r}')
    if gamma is not None:
        Y = gamma * Y
    return Y if beta is None else Y + beta


def rms_norm(
    X: Float[Tensor, "*batch d"], gamma: Float[Tensor, " d"] | None = None, eps: float = 1e-6
) -> Float[Tensor, "*batch d"]:
    """gamma * x / sqrt(mean(x^2) + eps): LayerNorm without the centring. Chapter `layer-norm`.

        >>> rms_norm(torch.tensor([3.0, 4.0]).double())
        tensor([0.8485, 1.1314], dtype=torch.float64)

    Raises:
        ValueError: if gamma does not have the width of X.
    """
    _check(X=X, gamma=gamma)
    Y = X / torch.sqrt(X.square().mean(-1, keepdim=True) + eps)
    return Y if gamma is None else gamma * Y


class LayerNorm(nn.Module):
    """`layer_norm` with its own gamma and beta."""

    def __init__(self, d: int, eps: float = 1e-5, convention: Convention = "inside"):
        super().__init__()
        self.gamma, self.beta = nn.Parameter(torch.ones(d)), nn.Parameter(torch.zeros(d))
        self.eps, self.convention = eps, convention

    def forward(self, X: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        return layer_norm(X, self.gamma, self.beta, self.eps, self.convention)


class RMSNorm(nn.Module):
    """`rms_norm` with its own gamma."""

    def __init__(self, d: int, eps: float = 1e-6):
        super().__init__()
        self.gamma, self.eps = nn.Parameter(torch.ones(d)), eps

    def forward(self, X: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        return rms_norm(X, self.gamma, self.eps)


def _check(X: object, **vectors: object) -> None:
    present = {name: (vector, "d") for name, vector in vectors.items() if vector is not None}
    check_shapes(X=(X, "... d"), **present)
