"""The curvature of a loss: the largest eigenvalue of a matrix known only by its products, such as a Hessian (Lanczos).

    >>> H = torch.diag(torch.tensor([6.0, 1.0, -8.0])).double()
    >>> largest_eigenvalue(lambda V: V @ H, torch.ones(1, 3).double(), steps=3)
    tensor([6.0000], dtype=torch.float64)

No Hessian is ever written down: a product with it is the derivative of a product with the gradient.

Source: Lanczos, "An Iteration Method for the Solution of the Eigenvalue Problem of Linear Differential and Integral
Operators" (1950); Pearlmutter, "Fast Exact Multiplication by the Hessian" (1994), for the products.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from smalltorch.shapes import anywhere, check_finite, check_floats, check_integers

Product = Callable[[Tensor], Tensor]  # of a symmetric matrix for each model: "model p" to "model p"


def largest_eigenvalue(product: Product, start: Float[Tensor, "model p"], steps: int = 16) -> Float[Tensor, " model"]:
    """The largest eigenvalue of a symmetric matrix H, from products with it: Lanczos with full reorthogonalisation.

    It is the largest eigenvalue of H on the span of v, H v, ..., H^(steps-1) v; so it is never above that of H, and
    equal to it when `steps` is the size of H, unless v is orthogonal to the eigenvector. Chapter `training-collapse`.

    Args:
        product: V -> H V, for each model its own H.
        start: v of each model, not zero.
        steps: how many products.

    Raises:
        ValueError: for fewer than one step, a start that is zero or not finite, or a product of another shape or that
            is not finite.
    """
    check_floats(start=(start, "model p"))
    check_finite(start=start)
    steps = check_integers(1, steps=steps)
    start = start.double()
    size = start.abs().amax(1, keepdim=True)
    if anywhere(size == 0):
        raise ValueError("start: expected vectors other than 0, got 0")
    basis = [start / size / (start / size).norm(dim=1, keepdim=True)]
    T = start.new_zeros(len(start), steps, steps)
    for k in range(steps):
        w = product(basis[k])
        check_floats(product=(w, f"{start.shape[0]} {start.shape[1]}"))
        check_finite(product=w)
        scale = w.norm(dim=1, keepdim=True)
        over = (basis[k] == 0).all(1)  # the span was exhausted before: no eigenvalue may be invented
        T[:, k, k] = torch.where(over, T[:, 0, 0], (w * basis[k]).sum(1))
        for _ in range(2):  # once more, for what rounding has left
            for v in basis:
                w = w - (w * v).sum(1, keepdim=True) * v
        beta = w.norm(dim=1, keepdim=True)
        lost = beta <= 1e-10 * scale
        if k + 1 < steps:
            basis.append(torch.where(lost, 0, w / beta.masked_fill(lost, 1)))
            T[:, k, k + 1] = T[:, k + 1, k] = beta.masked_fill(lost, 0)[:, 0]
    return torch.linalg.eigvalsh(T)[:, -1]
