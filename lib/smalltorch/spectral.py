"""The spectral norm of a non-negative matrix, enclosed; and the matrices that trained attention is compared with.

Source: Collatz (1942) and Wielandt (1950) for the upper bound; Higham, "Accuracy and Stability of Numerical
Algorithms" (2nd ed., 2002), sections 3.1 and 10.1, for the rounding errors.
"""

import math
import warnings
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from smalltorch.attention import causal_mask
from smalltorch.shapes import check_finite, check_shapes

EPS = torch.finfo(torch.float64).eps  # twice the unit roundoff u
FLOOR = 1e-200  # added to the vectors, so that v > 0; far from underflow
STEPS = 200  # of power iteration at most, where no other method is at hand
SMALL = 32  # up to this size, M^64 costs less than 64 steps of power iteration
HALF = (torch.float16, torch.bfloat16)
FUSED = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION]  # none forms A


class Enclosure(NamedTuple):
    """lower <= ||A||_2 <= upper, one of each per matrix, in float64."""

    lower: Float[Tensor, "*batch"]
    upper: Float[Tensor, "*batch"]


class Estimate(NamedTuple):
    """A number near ||A||_2, one per matrix; nothing is promised about how near."""

    value: Float[Tensor, "*batch"]


@torch.no_grad()
def spectral_norm(A: Float[Tensor, "*batch row column"], rtol: float = 1e-4) -> Enclosure:
    r"""Numbers lower <= ||A||_2 <= upper for each matrix, with upper <= (1 + rtol) lower.

    What the norm of attention can be: chapter `norm-bounds`.

    The bounds hold for the matrices as stored, with all rounding accounted for; if rtol is out of reach they are
    wider, still hold, and a warning says so.

        >>> one_hot = torch.tensor([[1.0, 0.0], [1.0, 0.0]]).double()       # both tokens attend to the first
        >>> spectral_norm(one_hot)                                          # the greatest there is for n = 2
        Enclosure(lower=tensor(1.4142, dtype=torch.float64), upper=tensor(1.4142, dtype=torch.float64))

    *Lower.* ||A v|| / ||v|| for the vectors v of a power iteration on M = A^T A.

    *Upper.* For M >= 0 and v > 0, ||A||_2^2 = rho(M) <= max_i (M v)_i / v_i (Collatz and Wielandt). M is symmetric, so
    after a permutation it is block diagonal with irreducible blocks, and positive semidefinite, so on each block the
    quotients tend to that block's rho: the bound converges for reducible A as well, and a column of zeros has the
    quotient 0. Where it does so too slowly, the fallback takes v from an eigendecomposition and certifies
    t = (1 + rtol/2) lower: if Cholesky's algorithm runs through on t^2 I - M, then ||A||_2 <= t, up to rounding.

    *Rounding.* All arithmetic is in float64. Let A have m rows and n columns, and gamma_k = k u / (1 - k u). A sum of
    k non-negative products has relative error at most gamma_k, in any order of summation; hence A v has gamma_n and
    M v has gamma_{m+n}, and after norms, quotient and root both bounds err by less than a relative (m + n + 16) 2u, by
    which they are widened. A is first divided by its largest entry, which changes each entry, hence the norm, by a
    relative u; multiplying back is rounded outwards. Underflow changes M v by less than 1e-300, and v >= 1e-250; the
    greatest quotient is at least 1, for so is the norm after the division. Cholesky: the computed M differs from M by
    at most gamma_m M, in norm gamma_m ||M||, and the algorithm runs through only if the matrix H that it was given has
    lambda_min(H) >= -gamma_{n+1} / (1 - gamma_{n+1}) trace(H), where trace(H) <= n t^2. So t is widened by a relative
    (n (n + 2) + m + 16) 2u, at least twice what this asks for.

    Raises:
        ValueError: if A is not a tensor of matrices with finite, non-negative entries, or rtol is not positive.
    """
    check_shapes(A=(A, "... row column"))
    rows, columns = A.shape[-2:]
    if rows == 0 or columns == 0:
        raise ValueError(f"A: expected at least one row and one column, got shape {tuple(A.shape)}")
    if not A.is_floating_point():
        raise ValueError(f"A: expected floating-point entries, got {A.dtype}")
    _check_rtol(rtol)

    given, batch = A, A.shape[:-2]
    A = A.reshape(-1, rows, columns)
    if columns > rows:  # of the same norm, with the smaller A^T A
        A, rows, columns = A.mT, columns, rows
    least, largest = A.amin((-2, -1)), A.amax((-2, -1))
    if not ((least >= 0) & (largest < torch.inf)).all():  # also where they are NaN
        check_finite(A=given)
        raise ValueError(f"A: expected non-negative entries, got {A.min().item()}")

    # Part by part: a part fits a CPU's cache, where it stays while the iteration runs; on a GPU, it bounds the memory.
    size = max(1, (2**17 if A.device.type == "cpu" else 2**28) // (rows * columns))
    largest = largest.double()
    divisor = torch.where(largest > 0, largest, 1)[:, None, None]
    parts = [_enclose(part / by, rtol) for part, by in zip(A.split(size), divisor.split(size), strict=True)]
    lower, upper = (torch.cat(bounds) for bounds in zip(*parts, strict=True))
    lower = torch.nextafter(lower * largest, torch.zeros_like(lower))
    upper = torch.nextafter(upper * largest, torch.full_like(upper, torch.inf)).masked_fill(largest == 0, 0)
    _warn_if_wide("spectral_norm", lower, upper, rtol)
    return Enclosure(lower.reshape(batch), upper.reshape(batch))


def _enclose(A: Tensor, rtol: float) -> tuple[Tensor, Tensor]:
    """Bounds for matrices with largest entry 1. Vectors are rows: a row times a matrix is faster than the column."""
    _, rows, columns = A.shape
    v = A.sum(-2, keepdim=True)
    if max(rows, columns) > SMALL:
        # n steps cost about as much as the fallback.
        return _iterate(A, v, [4] + [2**k for k in range(2, columns.bit_length() - 1)], rtol)
    trace = A.square().sum((-2, -1), keepdim=True).clamp(min=1)  # at least 1 anyway, unless A = 0
    M = A.mT @ A / trace  # no power has an entry above 1
    return _iterate(A, v @ torch.linalg.matrix_power(M, 64), [1], rtol)


def _iterate(A: Tensor, v: Tensor, rounds: list[int], rtol: float) -> tuple[Tensor, Tensor]:
    """One round of power iteration, then a look at the bounds: where they are wide, another round without the rest."""
    for _ in range(rounds[0] - 1):
        v = _positive(v) @ A.mT @ A
    v = _positive(v)
    Av = v @ A.mT
    Mv = Av @ A
    lower, upper = _quotients(v, Av, Mv, 1 + (A.shape[-2] + A.shape[-1] + 16) * EPS)
    wide = (~(upper <= (1 + rtol) * lower)).nonzero()[:, 0]
    if len(wide) > 0:
        if len(rounds) > 1:
            low, high = _iterate(A[wide], Mv[wide], rounds[1:], rtol)
        else:
            low, high = _dense(A[wide], lower[wide], rtol)
        lower[wide] = torch.maximum(lower[wide], low)
        upper[wide] = torch.minimum(upper[wide], high)
    return lower, upper


def _positive(v: Tensor) -> Tensor:
    """v > 0 with largest entry 1."""
    v = v + FLOOR
    return v / v.amax(-1, keepdim=True)


def _quotients(v: Tensor, Av: Tensor, Mv: Tensor, widen: float) -> tuple[Tensor, Tensor]:
    """The lower bound of Rayleigh, the upper one of Collatz and Wielandt."""
    lower = Av.norm(dim=(-2, -1)) / v.norm(dim=(-2, -1)) / widen
    upper = (Mv / v).amax((-2, -1)).sqrt() * widen
    return lower, upper


def _dense(A: Tensor, lower: Tensor, rtol: float) -> tuple[Tensor, Tensor]:
    """Bounds from an eigenvector of M and a Cholesky certificate; the upper one infinite where that is refused."""
    _, rows, columns = A.shape
    M = A.mT @ A
    v = torch.linalg.eigh(M).eigenvectors[:, None, :, -1].abs()  # absolute values: the sums stay free of cancellation
    v = _positive(v)
    Av = v @ A.mT
    lower = torch.maximum(lower, _quotients(v, Av, Av @ A, 1 + (rows + columns + 16) * EPS)[0])
    t = lower * (1 + rtol / 2)
    H = t.square()[:, None, None] * torch.eye(columns, dtype=A.dtype, device=A.device) - M
    certified = torch.linalg.cholesky_ex(H).info == 0
    t = t * (1 + (columns * (columns + 2) + rows + 16) * EPS)
    return lower, torch.where(certified, t, torch.inf)


@torch.no_grad()
def attention_spectral_norm(
    q: Float[Tensor, "*#batch n d_h"],
    k: Float[Tensor, "*#batch n d_h"],
    *,
    causal: bool,
    scale: float | None = None,
    rtol: float = 1e-3,
) -> Enclosure | Estimate:
    r"""The same for A = softmax(scale q k^T), which is never formed: the memory grows like n, not like n^2.

    *Fused attention proposes.* Fused kernels give A v with v as the values, and A^T u by their backward pass. A power
    iteration with them, in the dtype of q (float32 for float64), ends with a vector v. How such a kernel rounds is not
    documented, so nothing is built on it.

    *float64 certifies.* From v on the iteration goes through A in blocks of rows, in float64, and its quotients are the
    bounds, as in `spectral_norm`. One such step is enough unless rtol is below 1e-5 or so.

    *Rounding.* A is the exact softmax of the q, k and scale given, in float32 as in float64. Let B be the largest
    |q_i| |k_j| times |scale|. A logit errs by less than (d_h + 3) u B, less the row's maximum by (d_h + 5) u B, and exp
    by 8 u relative; so each entry of the computed A has a relative error of 2 (d_h + 5) u B + (n + 18) u at most, to
    first order. Both bounds are widened by the factor exp((2 n + (d_h + 8) B + 32) 2u), which covers this and the
    sums; what underflows is far below v >= 1e-250, and ||A||_2 >= 1. For float16 and bfloat16 there are no such steps:
    the result is an `Estimate` and no enclosure, good to about two digits while float32 can tell the logits apart.

    Args:
        q, k: queries and keys; further axes in front (batch, head) broadcast.
        causal: whether token i sees only tokens j <= i.
        scale: 1 / sqrt(d_h) unless given.
        rtol: as for `spectral_norm`.

    Raises:
        ValueError: if the shapes do not fit, or the types; if entries are not finite, or q or k so large that the
            logits overflow (in float32, for float16 and bfloat16); if rtol is not positive.
    """
    n, d_h = (check_shapes(q=(q, "... n d_h"), k=(k, "... n d_h"))[axis] for axis in ("n", "d_h"))
    if n == 0 or d_h == 0:
        raise ValueError(f"q: expected at least one token and one coordinate, got shape {tuple(q.shape)}")
    for name, x in (("q", q), ("k", k)):
        if x.dtype != q.dtype or x.dtype not in (*HALF, torch.float32, torch.float64):
            raise ValueError(f"{name}: expected entries of float16, 32 or 64 or bfloat16, as in q, got {x.dtype}")
    check_finite(q=q, k=k)
    _check_rtol(rtol)
    scale = 1 / math.sqrt(d_h) if scale is None else scale
    q, k = torch.broadcast_tensors(q, k)
    batch = q.shape[:-2]
    q, k = q.reshape(-1, n, d_h), k.reshape(-1, n, d_h)

    heads = max(1, 2**17 // n)  # at a time, which bounds the memory
    pairs = zip(q.split(heads), k.split(heads), strict=True)
    parts = [_enclose_attention(*pair, causal, scale, rtol) for pair in pairs]
    lower, upper = (torch.cat(bounds).reshape(batch) for bounds in zip(*parts, strict=True))
    if q.dtype in HALF:
        return Estimate(lower)
    _warn_if_wide("attention_spectral_norm", lower, upper, rtol)
    return Enclosure(lower, upper)


def _enclose_attention(q: Tensor, k: Tensor, causal: bool, scale: float, rtol: float) -> tuple[Tensor, Tensor]:
    _, n, d_h = q.shape
    v = torch.ones(len(q), 1, n, dtype=torch.float64, device=q.device)
    lower, upper = torch.zeros_like(v[:, 0, 0]), torch.full_like(v[:, 0, 0], torch.inf)
    if len(q) == 0:
        return lower, upper
    # Below 1e-150 the squares underflow, and B would be too small.
    longest_q, longest_k = (x.double().norm(dim=-1).amax().clamp(min=1e-150).item() for x in (q, k))
    B = abs(scale) * (longest_q * longest_k)
    used = torch.float32 if q.dtype in HALF else torch.float64  # for the logits
    if not B <= torch.finfo(used).max:
        raise ValueError(f"q, k, scale: expected logits that are finite in {used}, got the bound {B}")

    # Fused attention: until the quotients are near, or the lower one stops rising by more than the precision.
    dtype = q.dtype if q.dtype in HALF else torch.float32
    steps, go_on = 0, True
    while go_on and steps < STEPS:
        Av, Mv = _fused(q.to(dtype), k.to(dtype), v.to(dtype), causal, scale)
        before, (lower, upper) = lower, _quotients(v, Av, Mv, 1.0)
        v, steps = _positive(Mv), steps + 1
        wide, rising = upper > (1 + rtol / 2) * lower, lower > (1 + torch.finfo(dtype).eps) * before
        go_on = bool((wide & rising).any())
    if q.dtype in HALF:
        return lower, upper

    # float64. Where the logits overflow in float32, the vector so far is NaN, and another start is needed.
    v = torch.where(((v > 0) & (v <= 1)).all(-1, keepdim=True), v, 1)  # whatever the kernel did: the bounds need v > 0
    widen = math.exp(min(700.0, (2 * n + (d_h + 8) * B + 32) * EPS))
    lower, upper = torch.zeros_like(lower), torch.full_like(upper, torch.inf)
    for _ in range(max(1, STEPS - steps)):
        Av, Mv = _by_rows(q, k, v, causal, scale)
        low, high = _quotients(v, Av, Mv, widen)
        lower, upper = torch.fmax(lower, low), torch.fmin(upper, high)
        v = _positive(Mv)
        if (upper <= (1 + rtol) * lower).all():
            break
    return lower, upper


def _fused(q: Tensor, k: Tensor, v: Tensor, causal: bool, scale: float) -> tuple[Tensor, Tensor]:
    """A v and A^T A v by fused attention and its backward pass: with v as the values, and A v as their gradient."""
    width = q.shape[-1] + -q.shape[-1] % 8  # the kernels want one width for all three, and some a multiple of 8
    with torch.inference_mode(False), torch.enable_grad(), sdpa_kernel(FUSED):  # the caller may have gradients off
        q, k, values = (F.pad(x.detach(), (0, width - x.shape[-1]))[:, None] for x in (q, k, v.mT))
        values.requires_grad_()
        Av = F.scaled_dot_product_attention(q, k, values, is_causal=causal, scale=scale)
        (Mv,) = torch.autograd.grad(Av, values, Av.detach())
    return Av.detach()[..., 0].double(), Mv[..., 0].double()


def _by_rows(q: Tensor, k: Tensor, v: Tensor, causal: bool, scale: float) -> tuple[Tensor, Tensor]:
    """A v and A^T A v in float64, from one block of rows of A after the other."""
    n = q.shape[1]
    q, k = q.double(), k.double()
    Av, Mv = torch.empty_like(v), torch.zeros_like(v)
    size = max(1, (2**20 if q.device.type == "cpu" else 2**24) // (len(q) * n))
    for start in range(0, n, size):
        stop = min(start + size, n)
        seen = stop if causal else n
        S = scale * q[:, start:stop] @ k[:, :seen].mT
        if causal:
            S[:, :, start:].masked_fill_(~causal_mask(stop - start).to(S.device), -math.inf)
        A = S.softmax(-1)
        Av[:, :, start:stop] = v[:, :, :seen] @ A.mT
        Mv[:, :, :seen] += Av[:, :, start:stop] @ A
    return Av, Mv


def uniform_causal(n: int) -> Float[Tensor, "n n"]:
    """Causal attention without an opinion: row i is 1/i on the first i tokens. Also known as the Cesaro matrix.

    Chapter `causal`.

        >>> uniform_causal(3)
        tensor([[1.0000, 0.0000, 0.0000],
                [0.5000, 0.5000, 0.0000],
                [0.3333, 0.3333, 0.3333]], dtype=torch.float64)
    """
    return torch.ones(n, n, dtype=torch.float64).tril() / torch.arange(1, n + 1, dtype=torch.float64)[:, None]


def _check_rtol(rtol: float) -> None:
    if not rtol > 0:
        raise ValueError(f"rtol: expected a positive number, got {rtol}")


def _warn_if_wide(name: str, lower: Tensor, upper: Tensor, rtol: float) -> None:
    if not ((upper <= (1 + rtol) * lower) & upper.isfinite()).all():
        warnings.warn(f"{name}: rtol={rtol} is out of reach; the bounds hold but are wider", stacklevel=4)
