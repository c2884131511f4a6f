"""Compression: quantisation, pruning and knowledge distillation.

Source: Gray and Neuhoff, "Quantization" (1998); Li and Liu, "Ternary Weight Networks" (2016); Hassibi and Stork,
"Second order derivatives for network pruning: Optimal Brain Surgeon" (1992); Hinton et al., "Distilling the Knowledge
in a Neural Network" (2015). Chapter `compression`.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from smalltorch.shapes import (
    anywhere,
    check_finite,
    check_floats,
    check_integers,
    check_numbers,
    check_range,
    computed_wide,
)


def quantise(X: Float[Tensor, "*batch group"], bits: int) -> Float[Tensor, "*batch group"]:
    """h round(x / h) for each group of numbers, with the step h = max |x| / (2^(bits-1) - 1) of the group.

    Whole numbers from -(2^(bits-1) - 1) on, and one h for each group, are all that has to be kept. Computed in float64,
    which can tell the steps of up to 54 bits apart. Chapter `compression`.

        >>> quantise(torch.tensor([0.1, 0.4, -0.8, 3.0]), bits=3)
        tensor([ 0.,  0., -1.,  3.])

    Raises:
        ValueError: for fewer than 2 bits or more than 54, an empty group, or an entry that is not finite.
    """
    check_floats(X=(X, "... group"))
    check_finite(X=X)
    bits = check_integers(2, bits=bits)
    if bits > 54:
        raise ValueError(f"bits: expected at most 54, got {bits}")
    most = 2 ** (bits - 1) - 1
    largest = X.double().abs().amax(-1, keepdim=True)
    unit = X.double() / torch.where(largest == 0, 1, largest)
    return ((unit * most).round() / most * largest).to(X.dtype)


def ternarise(X: Float[Tensor, "*batch group"]) -> Float[Tensor, "*batch group"]:
    """The nearest group of the three values -a, 0 and a, over all a: the k largest become their mean size.

    With k the number for which (sum of the k largest |x|)^2 / k is largest. Computed in float64. Chapter `compression`.
    Source: Li and Liu (2016) for the distance that is minimised.

        >>> ternarise(torch.tensor([0.1, 0.2, -0.8, 1.0]))
        tensor([ 0.0000,  0.0000, -0.9000,  0.9000])

    Raises:
        ValueError: for an empty group, or an entry that is not finite.
    """
    check_floats(X=(X, "... group"))
    check_finite(X=X)
    size = X.double().abs()
    largest = size.amax(-1, keepdim=True)
    ordered = (size / torch.where(largest == 0, 1, largest)).sort(dim=-1, descending=True, stable=True)
    k = torch.arange(1, X.shape[-1] + 1, device=X.device)
    sums = ordered.values.cumsum(-1)
    best = (sums.square() / k).argmax(-1, keepdim=True)
    a = sums.gather(-1, best) / (best + 1) * largest
    keeps = torch.zeros_like(size).scatter(-1, ordered.indices, (k <= best + 1).double().expand_as(size))
    return (a * keeps * X.sign()).to(X.dtype)


def remove_weight(w: Float[Tensor, "d"], G: Float[Tensor, "d d"], q: int) -> Float[Tensor, "d"]:
    """The weights nearest to w in the squared distance (v - w)^T G (v - w), among those whose q-th is 0.

    v = w - w_q g / g_q with g the q-th column of the inverse of G: the others make up for what is taken out. Chapter
    `compression`. Source: Hassibi and Stork (1992).

        >>> remove_weight(torch.tensor([1.0, 1.0]), torch.tensor([[2.0, 1.0], [1.0, 2.0]]), 0)
        tensor([0.0000, 1.5000])

    Raises:
        ValueError: if an entry is not finite, G is not symmetric and positive definite, or there is no q-th weight.
    """
    d = check_floats(w=(w, "d"), G=(G, "d d"))["d"]
    check_finite(w=w, G=G)
    q = check_integers(0, q=q)
    if q >= d:
        raise ValueError(f"q: expected a number below {d}, got {q}")
    if (G - G.mT).abs().max() > 1e-6 * G.abs().max():
        raise ValueError("G: expected a symmetric matrix, got another")
    root, failed = torch.linalg.cholesky_ex(G.double())
    if failed:
        raise ValueError("G: expected a positive definite matrix, got another")
    unit = torch.zeros(d, 1, dtype=torch.float64, device=w.device)
    unit[q] = 1
    g = torch.cholesky_solve(unit, root)[:, 0]
    v = w.double() - w[q].double() * g / g[q]
    v[q] = 0
    return v.to(w.dtype)


@computed_wide
def distillation_loss(
    student: Float[Tensor, "*batch classes"], teacher: Float[Tensor, "*batch classes"], T: float
) -> Float[Tensor, ""]:
    """T^2 times the mean of KL(softmax(teacher / T) || softmax(student / T)), in nats.

    With the factor T^2 its gradient neither vanishes nor grows with the temperature T. It is never negative, and for
    high T half the variance of student - teacher over the classes. Chapter `compression`. Source: Hinton et al. (2015).

        >>> distillation_loss(torch.tensor([0.0, 0.0]), torch.tensor([0.0, 0.0]), T=2.0)
        tensor(0.)

    Raises:
        ValueError: if the logits are not of one shape or not finite, there are none, T is not above 0, or logits / T
            overflow.
    """
    check_floats(student=(student, "... classes"))
    check_floats(
        student=(student, " ".join(map(str, student.shape))), teacher=(teacher, " ".join(map(str, student.shape)))
    )
    check_finite(student=student, teacher=teacher)
    T = check_numbers(0, T=T)
    if not torch.finfo(torch.float64).tiny <= T * T < math.inf or student.numel() == 0:
        raise ValueError(
            f"T, student: expected a temperature above 0 whose square is a float, and some logits, "
            f"got {T!r}, {student.numel()}"
        )
    origin: dict[str, Tensor | float] = dict(student=student, teacher=teacher, T=T)
    log_p, log_q = (check_range(logits.double() / T, **origin).log_softmax(-1) for logits in (teacher, student))
    p = log_p.exp()
    divergence = (p * (log_p - log_q)).sum(-1)
    loss = T * T * divergence.mean()
    if anywhere(divergence < 1e-6):  # too much of it has cancelled
        loss = torch.where(divergence < 1e-6, _nearly_equal(student, teacher, log_p, T), T * T * divergence).mean()
    return check_range(loss, **origin).to(student.dtype)


def _nearly_equal(student: Tensor, teacher: Tensor, log_p: Tensor, T: float) -> Tensor:
    """T^2 KL = T^2 log(1 + s) for s = sum p (e^x - 1 - x), whose terms are not negative; for small s.

    x = g / T, with g = student - teacher less its mean under p. Where x is small, a series has nothing to cancel.
    """
    p, g = log_p.exp(), student.double() - teacher.double()
    g = g - (p * g).sum(-1, keepdim=True)
    x = (g / T).clamp(-1, 1)
    series = p * g.square() / 2 * (1 + x / 3 * (1 + x / 4 * (1 + x / 5 * (1 + x / 6))))
    direct = T * T * ((log_p + g / T).clamp(max=1).exp() - p - p * g / T)
    S = torch.where(x.abs() < 0.01, series, direct).sum(-1)
    s = S / T / T
    return S * (1 - s / 2 + s * s / 3)
