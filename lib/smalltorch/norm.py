"""LayerNorm in its two conventions, and RMSNorm. The variance is the biased one: the mean of the squared deviations.

Both forget the size of a row but for eps; so here no square overflows or underflows, however large or small the entries
are, and float16 and bfloat16 are computed in float32.

Source: Ba, Kiros and Hinton, "Layer Normalization" (2016); Zhang and Sennrich, "Root Mean Square Layer Normalization"
(2019).
"""

import math
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from smalltorch.shapes import (
    anywhere,
    at_least_float32,
    check_choice,
    check_floats,
    check_integers,
    check_numbers,
    largest,
)

Convention = Literal["inside", "outside"]
CONVENTIONS = ("inside", "outside")


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

    Args:
        X: rows (..., d), each normalised by itself.
        gamma: a factor for each column, (d).
        beta: what is added to each column, (d).
        eps: keeps the root away from 0.
        convention: "inside" or "outside", as above.

    Raises:
        ValueError: if gamma or beta does not have the width of X; for another convention, or a negative eps; if eps is
            0 and a row constant, which would be 0/0.
    """
    _check(eps, X=X, gamma=gamma, beta=beta)
    check_choice(CONVENTIONS, convention=convention)
    x, unit = _scaled(X, math.sqrt(eps) if convention == "inside" else eps)
    if eps < torch.finfo(x.dtype).tiny and anywhere(x.amax(-1) == x.amin(-1)):
        raise ValueError(f"X: expected rows that are not constant, for eps = {eps}, got one that is; try eps=1e-5")
    centred = x - x.mean(-1, keepdim=True)  # (..., d) - (..., 1)
    variance = centred.square().mean(-1, keepdim=True)  # (..., 1), one number for each row
    if convention == "inside":
        Y = centred / torch.sqrt(variance + eps / unit / unit)
    else:
        Y = centred / (torch.sqrt(variance) + eps / unit)
    if gamma is not None:
        Y = gamma * Y
    return (Y if beta is None else Y + beta).to(X.dtype)


def rms_norm(
    X: Float[Tensor, "*batch d"], gamma: Float[Tensor, " d"] | None = None, eps: float = 1e-6
) -> Float[Tensor, "*batch d"]:
    """gamma * x / sqrt(mean(x^2) + eps): LayerNorm without the centring. Chapter `layer-norm`.

        >>> rms_norm(torch.tensor([3.0, 4.0]).double())
        tensor([0.8485, 1.1314], dtype=torch.float64)

    Args:
        X: rows (..., d), each normalised by itself.
        gamma: a factor for each column, (d).
        eps: keeps the root away from 0.

    Raises:
        ValueError: if gamma does not have the width of X; for a negative eps; if eps is 0 and a row too.
    """
    _check(eps, X=X, gamma=gamma)
    x, unit = _scaled(X, math.sqrt(eps))
    if eps < torch.finfo(x.dtype).tiny and anywhere(~x.any(-1)):
        raise ValueError(f"X: expected rows that are not zero, for eps = {eps}, got one that is; try eps=1e-6")
    Y = x / torch.sqrt(x.square().mean(-1, keepdim=True) + eps / unit / unit)  # (..., d) / (..., 1)
    return (Y if gamma is None else gamma * Y).to(X.dtype)


class LayerNorm(nn.Module):
    """gamma * (x - mu) / sqrt(sigma^2 + eps) + beta for each row x of X (..., d).

    gamma and beta, (d) each, are trained, and begin as ones and zeros. `layer_norm` is the function without weights of
    its own. Chapter `layer-norm`.

        >>> LayerNorm(3)(torch.tensor([1.0, 2.0, 6.0])).detach()
        tensor([-0.9258, -0.4629,  1.3887])

    Args:
        d: width of the rows.
        eps: keeps the root away from 0; 1e-5 as in torch.
        convention: eps "inside" the root, or "outside" of it.

    Raises:
        ValueError: for a width below 1, a negative eps, or another convention; when called, as `layer_norm`.
    """

    def __init__(self, d: int, eps: float = 1e-5, convention: Convention = "inside"):
        super().__init__()
        d = check_integers(1, d=d)
        eps = check_numbers(0, eps=eps)
        check_choice(CONVENTIONS, convention=convention)
        self.gamma, self.beta = nn.Parameter(torch.ones(d)), nn.Parameter(torch.zeros(d))
        self.eps, self.convention = eps, convention

    def forward(self, X: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        check_floats(gamma=(self.gamma, "d"), X=(X, "... d"))
        return layer_norm(X, self.gamma, self.beta, self.eps, self.convention)


class RMSNorm(nn.Module):
    """gamma * x / sqrt(mean(x^2) + eps) for each row x of X (..., d).

    gamma, (d), is trained, and begins as ones. `rms_norm` is the function without a weight of its own. Chapter
    `layer-norm`.

        >>> RMSNorm(2)(torch.tensor([3.0, 4.0])).detach()
        tensor([0.8485, 1.1314])

    Args:
        d: width of the rows.
        eps: keeps the root away from 0; 1e-6 as in LLaMA.

    Raises:
        ValueError: for a width below 1 or a negative eps; when called, as `rms_norm`.
    """

    def __init__(self, d: int, eps: float = 1e-6):
        super().__init__()
        d = check_integers(1, d=d)
        eps = check_numbers(0, eps=eps)
        self.gamma, self.eps = nn.Parameter(torch.ones(d)), eps

    def forward(self, X: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        check_floats(gamma=(self.gamma, "d"), X=(X, "... d"))
        return rms_norm(X, self.gamma, self.eps)


def _check(eps: float, X: object, **vectors: object) -> None:
    eps = check_numbers(0, eps=eps)
    check_floats(X=(X, "... d"), **{name: (vector, "d") for name, vector in vectors.items() if vector is not None})


def _scaled(X: Tensor, least: float) -> tuple[Tensor, Tensor | float]:
    """X in units in which its squares neither overflow nor underflow, and the units: 1, but for rows of extreme size.

    They are powers of two, so nothing is rounded. Of a row much smaller than `least`, which is eps in the units of X,
    the squares may underflow: they do not count beside eps. Where both are extreme, its entries may too; what that
    loses is below 2^-874 (float32: 2^-123) once normalised.
    """
    X = at_least_float32(X)
    exponent = 400.0 if X.dtype == torch.float64 else 50.0
    if least > 2**-exponent and largest(X) < 2**exponent:
        return X, 1.0
    size = X.detach().abs().amax(-1, keepdim=True).clamp(min=least)  # (..., 1)
    unit = torch.ones_like(size)
    unit = unit.masked_fill(size >= 2**exponent, 2 ** (1.5 * exponent))
    unit = unit.masked_fill(size <= 2**-exponent, 2 ** (-1.5 * exponent))
    return X / unit, unit
