"""The spectral norm of a non-negative matrix, enclosed; and the matrices that trained attention is compared with.

Source: Collatz (1942) and Wielandt (1950) for the upper bound; Higham, "Accuracy and Stability of Numerical
Algorithms" (2nd ed., 2002), sections 3.1 and 10.1, for the rounding errors.
"""

import warnings
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from smalltorch.shapes import check_finite, check_shapes

EPS = torch.finfo(torch.float64).eps  # twice the unit roundoff u
TINY = 1e-280  # components below this are too near to underflow for a relative error bound
STEPS = 200  # of power iteration, before the dense fallback


class Enclosure(NamedTuple):
    """lower <= ||A||_2 <= upper, one of each per matrix, in float64."""

    lower: Float[Tensor, "*batch"]
    upper: Float[Tensor, "*batch"]


@torch.no_grad()
def spectral_norm(A: Float[Tensor, "*batch row column"], rtol: float = 1e-6) -> Enclosure:
    r"""Numbers lower <= ||A||_2 <= upper for each matrix, with upper <= (1 + rtol) lower.

    The bounds hold for the matrices as stored, with all rounding accounted for; if rtol is out of reach they are
    wider, still hold, and a warning says so.

    *Lower.* ||A v|| / ||v|| for the vectors v of a power iteration on M = A^T A.

    *Upper.* For M >= 0 and v > 0, ||A||_2^2 = rho(M) <= max_i (M v)_i / v_i (Collatz and Wielandt). A column of zeros
    changes no norm and is left out. M is symmetric, so after a permutation it is block diagonal with irreducible
    blocks, and positive semidefinite, so on each block the quotients tend to that block's rho: the bound converges for
    reducible A as well. Where it does so too slowly, the fallback takes v from an eigendecomposition and certifies
    t = (1 + rtol/2) lower: if Cholesky's algorithm runs through on t^2 I - M, then ||A||_2 <= t, up to rounding.

    *Rounding.* Let A have m rows and n columns, and gamma_k = k u / (1 - k u). A sum of k non-negative products has
    relative error at most gamma_k, in any order of summation; hence A v has gamma_n and M v has gamma_{m+n}, and after
    norms, quotient and root both bounds err by less than a relative (m + n + 16) 2u, by which they are widened. A is
    first divided by its largest entry, which changes each entry, hence the norm, by a relative u; multiplying back is
    rounded outwards. A quotient is used only while v >= 1e-280, where what underflow adds is far below u. Cholesky:
    the computed M differs from M by at most gamma_m M, in norm gamma_m ||M||, and the algorithm runs through only if
    the matrix H that it was given has lambda_min(H) >= -gamma_{n+1} / (1 - gamma_{n+1}) trace(H), where
    trace(H) <= n t^2. So t is widened by a relative (n (n + 2) + m + 16) 2u, at least twice what this asks for.

    Raises:
        ValueError: if A is not a tensor of matrices with finite, non-negative entries, or rtol is not positive.
    """
    check_shapes(A=(A, "... row column"))
    rows, columns = A.shape[-2:]
    if rows == 0 or columns == 0:
        raise ValueError(f"A: expected at least one row and one column, got shape {tuple(A.shape)}")
    if not A.is_floating_point():
        raise ValueError(f"A: expected floating-point entries, got {A.dtype}")
    check_finite(A=A)
    if (A < 0).any():
        raise ValueError(f"A: expected non-negative entries, got {A.min().item()}")
    if not rtol > 0:
        raise ValueError(f"rtol: expected a positive number, got {rtol}")

    batch = A.shape[:-2]
    A = A.to(torch.float64).reshape(-1, rows, columns)
    largest = A.amax((-2, -1))
    A = A / torch.where(largest > 0, largest, 1)[:, None, None]
    lower, upper = _power_iteration(A, rtol)
    slow = upper > (1 + rtol) * lower
    if slow.any():
        lower[slow], upper[slow] = _dense(A[slow], rtol, lower[slow], upper[slow])
    if (upper > (1 + rtol) * lower).any():
        warnings.warn(f"spectral_norm: rtol={rtol} is out of reach; the bounds hold but are wider", stacklevel=2)
    lower = torch.nextafter(lower * largest, torch.zeros_like(lower))
    upper = torch.nextafter(upper * largest, torch.full_like(upper, torch.inf)).masked_fill(largest == 0, 0)
    return Enclosure(lower.reshape(batch), upper.reshape(batch))


def _power_iteration(A: Tensor, rtol: float) -> tuple[Tensor, Tensor]:
    """The best Rayleigh and Collatz-Wielandt bounds of at most STEPS steps from the vector of ones."""
    _, rows, columns = A.shape
    widen = 1 + (rows + columns + 16) * EPS
    lower, upper = A.new_zeros(len(A)), A.new_full((len(A),), torch.inf)
    used = (A > 0).any(-2)
    v = used.to(A.dtype)
    for _ in range(STEPS):
        Av = (A @ v[:, :, None])[:, :, 0]
        Mv = (A.mT @ Av[:, :, None])[:, :, 0]
        quotient = torch.where(used, Mv / v, 0).masked_fill(used & (v < TINY), torch.inf)
        upper = torch.minimum(upper, quotient.amax(-1).sqrt() * widen)
        length = v.norm(dim=-1)
        lower = torch.maximum(lower, torch.where(length > 0, Av.norm(dim=-1) / length, 0) / widen)
        if (upper <= (1 + rtol) * lower).all():
            break
        v = torch.where(used, Mv / Mv.amax(-1, keepdim=True), 0)
    return lower, upper


def _dense(A: Tensor, rtol: float, lower: Tensor, upper: Tensor) -> tuple[Tensor, Tensor]:
    """Better bounds, where there are any, from an eigenvector of M and a Cholesky certificate."""
    _, rows, columns = A.shape
    M = A.mT @ A
    v = torch.linalg.eigh(M).eigenvectors[:, :, -1].abs()  # absolute values: the sums stay free of cancellation
    Av = (A @ v[:, :, None])[:, :, 0]
    lower = torch.maximum(lower, Av.norm(dim=-1) / v.norm(dim=-1) / (1 + (rows + columns + 16) * EPS))
    t = lower * (1 + rtol / 2)
    H = t.square()[:, None, None] * torch.eye(columns, dtype=A.dtype, device=A.device) - M
    certified = torch.linalg.cholesky_ex(H).info == 0
    t = t * (1 + (columns * (columns + 2) + rows + 16) * EPS)
    return lower, torch.where(certified, torch.minimum(upper, t), upper)


def uniform_causal(n: int) -> Float[Tensor, "n n"]:
    """Causal attention without an opinion: row i is 1/i on the first i tokens. Also known as the Cesaro matrix."""
    return torch.ones(n, n, dtype=torch.float64).tril() / torch.arange(1, n + 1, dtype=torch.float64)[:, None]
