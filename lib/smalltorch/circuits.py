"""Circuits: an induction head built by hand, scores that detect heads, and interventions (ablation, patching).

Source: Olsson et al., "In-context Learning and Induction Heads" (2022); Cover, "Geometrical and Statistical Properties
of Systems of Linear Inequalities with Applications in Pattern Recognition" (1965). Chapter `circuits`.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from smalltorch.attention import MultiHead
from smalltorch.models import Call, TinyLM
from smalltorch.shapes import check_finite, check_floats, check_integers, check_numbers, check_type, computed_wide


def induction_lm(vocabulary: int, n: int, c: float, beta: float, g: float, copies: int = 1) -> TinyLM:
    """Two layers of attention that continue a text as it went on before, with every weight set by hand.

    The state of a token has four blocks: itself, one-hot; its predecessor; what comes next; and its place on a circle,
    (cos 2 pi i / n, sin 2 pi i / n). Layer 1 scores c cos(2 pi (i - 1 - j) / n) and copies tokens into the second
    block; layer 2 scores beta <token i, predecessor of j> and copies tokens into the third, which is all that the
    logits are read from, times g. Chapter `circuits`.

        >>> model = induction_lm(vocabulary=4, n=6, c=40.0, beta=20.0, g=20.0)
        >>> model(torch.tensor([[0, 1, 2, 3, 1]]))[0, -1].argmax()       # after 1 came 2
        tensor(2)

    Args:
        vocabulary: number of tokens.
        n: the longest text.
        c, beta, g: sharpness of the first layer, of the second, and of the logits.
        copies: equal heads in the second layer; each writes its share, so that the logits are the same.

    Raises:
        ValueError: unless there are one token, two places and one copy at least; for a number that is not finite.
    """
    vocabulary, copies = check_integers(1, vocabulary=vocabulary, copies=copies)
    n = check_integers(2, n=n)
    c, beta, g = check_numbers(-math.inf, c=c, beta=beta, g=g)
    d_h = max(-(-(3 * vocabulary + 2) // copies), vocabulary, 2)
    model = TinyLM(vocabulary, n, d=copies * d_h, layers=2, heads=copies, norm=None, mlp=False).double()
    token, before, after = (slice(k * vocabulary, (k + 1) * vocabulary) for k in range(3))
    place = slice(3 * vocabulary, 3 * vocabulary + 2)
    eye = torch.eye(vocabulary, dtype=torch.float64)
    angle = 2 * math.pi * torch.arange(n, dtype=torch.float64) / n
    step = 2 * math.pi / n
    back = torch.tensor([[math.cos(step), -math.sin(step)], [math.sin(step), math.cos(step)]], dtype=torch.float64)
    root = math.sqrt(d_h)  # by which attention divides its scores
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.E[:, token] = eye
        model.P[:, place] = torch.stack([angle.cos(), angle.sin()], 1)
        previous, induction = (layer.get_submodule("attention") for layer in model.layers)
        assert isinstance(previous, MultiHead) and isinstance(induction, MultiHead)
        previous.W_Q[place, :2], previous.W_K[place, :2] = c * root * back, torch.eye(2, dtype=torch.float64)
        previous.W_V[token, :vocabulary], previous.W_O[:vocabulary, before] = eye, eye
        for k in range(copies):
            own = slice(k * d_h, k * d_h + vocabulary)
            induction.W_Q[token, own], induction.W_K[before, own] = beta * root * eye, eye
            induction.W_V[token, own], induction.W_O[own, after] = eye, eye / copies
        model.W_U[after] = g * eye
    return model.requires_grad_(False)


@computed_wide
def looking_back(A: Float[Tensor, "*head n n"], distance: int, rows: int) -> Float[Tensor, "*head"]:
    """The mean attention that the last `rows` tokens pay to the token `distance` places before them.

    With distance 1 it finds heads that look at the previous token. In a text whose last p tokens repeat the p before
    them, distance p - 1 and p rows find those that look at what came next the last time. Chapter `circuits`.

        >>> looking_back(torch.eye(4).roll(-1, dims=1), distance=1, rows=3)
        tensor(1.)

    Raises:
        ValueError: if a row has no token so far back.
    """
    n = check_floats(A=(A, "... n n"))["n"]
    distance = check_integers(0, distance=distance)
    rows = check_integers(1, rows=rows)
    if rows + distance > n:
        raise ValueError(f"rows: expected at most n - distance = {n - distance}, got {rows}")
    return A.diagonal(-distance, dim1=-2, dim2=-1)[..., -rows:].mean(-1)


def head_values(calls: Sequence[Call]) -> Float[Tensor, "layer *batch head n d_h"]:
    """A_h V_h of every head, from the calls of a model's `MultiHead` that `models.observe` has kept.

    These rows, times the head's rows of W_O, are what the head adds to the residual stream. Chapter `circuits`.

    Raises:
        ValueError: if there are no calls.
    """
    if not calls:
        raise ValueError("calls: expected one at least, got none")
    return torch.stack([call.output[1] @ call.module.project(*call.inputs)[2] for call in calls])


@contextmanager
def heads_set(
    model: nn.Module, where: Bool[Tensor, "layer batch head n"], values: Float[Tensor, "layer #batch head #n d_h"]
) -> Iterator[None]:
    """While the `with` lasts, A_h V_h is replaced by the given values wherever `where` is true.

    Zeros, or the mean over other texts, ablate a head; what `head_values` has kept of another run patches it.
    Chapter `circuits`.

        >>> model = induction_lm(vocabulary=4, n=6, c=40.0, beta=20.0, g=20.0)
        >>> first = torch.tensor([True, False]).view(2, 1, 1, 1).expand(2, 1, 1, 5)
        >>> with heads_set(model, first, torch.zeros(2, 1, 1, 1, 14).double()):
        ...     logits = model(torch.tensor([[0, 1, 2, 3, 1]]))
        >>> logits[0, -1]       # without the first layer each token gets its share of the text
        tensor([4., 8., 4., 4.], dtype=torch.float64)

    Args:
        model: any with `MultiHead` in it; a layer of `where` and `values` for each, in their order.
        where: which heads, in which texts, at which tokens.
        values: one for each head, and for each text and token or for all of them.

    Raises:
        ValueError: if shapes do not fit.
    """
    check_type(nn.Module, model=model)
    check_type(Tensor, where=where)
    check_finite(where=where)  # refuses what cannot be read
    heads = [module for module in model.modules() if isinstance(module, MultiHead)]
    sizes = [len(heads), *{module.heads for module in heads}]
    if where.dtype != torch.bool or where.ndim != 4 or [len(where), where.shape[2]] != sizes:
        raise ValueError(
            f"where: expected booleans of shape (layer, batch, head, n) with layers and heads {sizes}, "
            f"got {where.dtype} of shape {tuple(where.shape)}"
        )
    check_floats(values=(values, f"{len(heads)} batch {where.shape[2]} n d_h"))

    def setting(chosen: Tensor, new: Tensor) -> Any:
        def hook(module: Any, inputs: tuple[Any, ...], output: Any) -> Any:
            H = output[1] @ module.project(*inputs)[2]
            if H.shape[:-1] != chosen.shape:
                raise ValueError(f"where: expected {tuple(H.shape[:-1])} in each layer, got {tuple(chosen.shape)}")
            check_floats(output=(H, "batch head n d_h"), values=(new, "#batch head #n d_h"))
            check_finite(output=output[0])
            change = torch.where(chosen[..., None], new - H, 0)
            return output[0] + change.transpose(-3, -2).flatten(-2) @ module.W_O, output[1]

        return hook

    hooks = [
        module.register_forward_hook(setting(chosen, new))
        for module, chosen, new in zip(heads, where, values, strict=True)
        if chosen.any()
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def dichotomies(N: int, d: int) -> int:
    """2 (C(N-1, 0) + ... + C(N-1, d-1)): in how many ways hyperplanes through 0 part N points of d entries.

    The points are in general position: any d of them, or all if they are fewer, are linearly independent. Of 2^N
    labellings these are the ones that a linear probe reads without error. Chapter `circuits`. Source: Cover (1965).

        >>> dichotomies(3, 2), dichotomies(4, 2)
        (6, 8)
    """
    N, d = check_integers(1, N=N, d=d)
    return 2 * sum(math.comb(N - 1, k) for k in range(min(d, N)))
