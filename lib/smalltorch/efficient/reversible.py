"""Reversible residual layers: inputs are recomputed from outputs in the backward pass, so they need not be stored.

Source: Gomez et al., "The Reversible Residual Network" (2017); Kitaev, Kaiser and Levskaya, "Reformer" (2020), for F an
attention layer and G a feed-forward layer. Chapter `low-rank`.
"""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from smalltorch.shapes import check_floats, check_type


class Reversible(nn.Module):
    """Y_1 = X_1 + F(X_2), Y_2 = X_2 + G(Y_1), for any two functions of states. Chapter `low-rank`."""

    def __init__(self, F: nn.Module, G: nn.Module):
        super().__init__()
        check_type(nn.Module, F=F, G=G)
        self.F, self.G = F, G

    def forward(
        self, X_1: Float[Tensor, "*batch n d"], X_2: Float[Tensor, "*batch n d"]
    ) -> tuple[Float[Tensor, "*batch n d"], Float[Tensor, "*batch n d"]]:
        _check_halves(X_1=X_1, X_2=X_2)
        Y_1 = X_1 + self.F(X_2)
        return Y_1, X_2 + self.G(Y_1)

    def inverse(
        self, Y_1: Float[Tensor, "*batch n d"], Y_2: Float[Tensor, "*batch n d"]
    ) -> tuple[Float[Tensor, "*batch n d"], Float[Tensor, "*batch n d"]]:
        """X_2 = Y_2 - G(Y_1), X_1 = Y_1 - F(X_2): up to rounding, what went in."""
        _check_halves(Y_1=Y_1, Y_2=Y_2)
        X_2 = Y_2 - self.G(Y_1)
        return Y_1 - self.F(X_2), X_2


def _check_halves(**halves: Tensor) -> None:
    """Both of the same shape: of a sum that is broadcast, what went in could not be computed back."""
    (one, X_1), (other, X_2) = halves.items()
    check_floats(**{one: (X_1, "... n d")})
    same = " ".join(map(str, X_1.shape))
    check_floats(**{one: (X_1, same), other: (X_2, same)})


class _WithoutStorage(torch.autograd.Function):
    """All layers; what is saved for the gradient is their last output alone."""

    @staticmethod
    def forward(ctx: Any, layers: Sequence[Reversible], X_1: Tensor, X_2: Tensor, *parameters: Tensor) -> Any:
        for layer in layers:
            X_1, X_2 = layer(X_1, X_2)
        ctx.layers = layers
        ctx.save_for_backward(X_1, X_2)
        return X_1, X_2

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        Y = ctx.saved_tensors
        found: dict[Tensor, Tensor | None] = {}
        for layer in reversed(ctx.layers):
            weights = tuple(weight for weight in layer.parameters() if weight.requires_grad)
            with torch.no_grad():
                X = layer.inverse(*Y)
            with torch.enable_grad():
                X = tuple(x.detach().requires_grad_() for x in X)
                again = torch.autograd.grad(layer(*X), (*X, *weights), gradients, allow_unused=True)
            Y, gradients = tuple(x.detach() for x in X), again[:2]
            found.update(zip(weights, again[2:], strict=True))
        return None, *gradients, *(found.get(weight) for layer in ctx.layers for weight in layer.parameters())


def run_reversible(
    layers: Sequence[Reversible], X_1: Float[Tensor, "*batch n d"], X_2: Float[Tensor, "*batch n d"]
) -> tuple[Float[Tensor, "*batch n d"], Float[Tensor, "*batch n d"]]:
    """The layers one after the other; for the gradient the inputs of each are computed back from its outputs.

    So what is stored does not grow with the number of layers, and each layer is computed twice more in the backward
    pass: once for its inputs, once for its gradient. Each time it must do the same. Chapter `low-rank`.

    Raises:
        ValueError: if the layers are not reversible, share a weight, or hold a dropout that is on; or as the layers do.
    """
    check_type(Sequence, layers=layers)
    for layer in layers:
        check_type(Reversible, layers=layer)
        if any(isinstance(part, nn.Dropout) and part.training and part.p > 0 for part in layer.modules()):
            raise ValueError("layers: expected layers that do the same each time, got a dropout that is on")
    weights = [weight for layer in layers for weight in layer.parameters()]
    if len({id(weight) for weight in weights}) < len(weights):
        raise ValueError("layers: expected layers with weights of their own, got a weight twice")
    _check_halves(X_1=X_1, X_2=X_2)
    Y_1, Y_2 = _WithoutStorage.apply(layers, X_1, X_2, *weights)  # type: ignore[no-untyped-call]
    return Y_1, Y_2
