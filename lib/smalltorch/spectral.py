"""Rigorous bounds on the spectral norm of a non-negative matrix, and matrices to compare trained attention with.

Source: Collatz (1942) and Wielandt (1950) for the upper bound; Higham, "Accuracy and Stability of Numerical
Algorithms" (2nd ed., 2002), sections 3.1 and 10.1, for the rounding errors.
"""

import math
import warnings
from numbers import Real
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from smalltorch.attention import causal_mask
from smalltorch.shapes import check_finite, check_floats, check_integers, check_numbers, check_type, largest

EPS = torch.finfo(torch.float64).eps  # twice the unit roundoff u
FLOOR = 1e-200  # added to the vectors, so that v > 0; far from underflow
STEPS = 200  # of power iteration at most, where no other method is at hand
SMALL = 32  # up to this size, M^64 costs less than 64 steps of power iteration
APART = 1e5  # up to this size fused attention can tell logits apart: it computes them in float32
HALF = (torch.float16, torch.bfloat16)
FUSED = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION]  # none forms A


class Enclosure(NamedTuple):
    """lower <= ||A||_2 <= upper, one of each per matrix, in float64."""

    lower: Float[Tensor, "*batch"]
    upper: Float[Tensor, "*batch"]


class Estimate(NamedTuple):
    """A number near ||A||_2, one per matrix, in float64; nothing is promised about how near."""

    value: Float[Tensor, "*batch"]


@torch.no_grad()
def spectral_norm(A: Float[Tensor, "*batch row column"], rtol: float = 1e-4) -> Enclosure:
    r"""Numbers lower <= ||A||_2 <= upper for each matrix, with upper <= (1 + rtol) lower.

    What the norm of attention can be: chapter `norm-bounds`.

    The bounds hold for the matrices as stored, with all rounding accounted for; if rtol is out of reach they are
    wider, still hold, and a warning says so. One setting of torch takes entries away before they can be looked at:
    under `torch.set_flush_denormal(True)` those below the least normal number, 2.3e-308 (1.2e-38 in float32 and
    bfloat16), count as 0. The bounds then hold for the matrices without them, and a warning says that there are some.

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
    check_floats(A=(A, "... row column"))
    rows, columns = A.shape[-2:]
    _check_rtol(rtol)

    given, batch = A, A.shape[:-2]
    A = A.reshape(-1, rows, columns)
    if columns > rows:  # of the same norm, with the smaller A^T A
        A, rows, columns = A.mT, columns, rows
    least, most = A.amin((-2, -1)), A.amax((-2, -1))
    if A.is_meta or not ((least >= 0) & (most < torch.inf)).all():  # also where they are NaN
        check_finite(A=given)
        raise ValueError(f"A: expected non-negative entries, got {A.min().item()}")
    _warn_if_flushed("spectral_norm", A)

    # Part by part: a part fits a CPU's cache, where it stays while the iteration runs; on a GPU, it bounds the memory.
    size = max(1, (2**17 if A.device.type == "cpu" else 2**28) // (rows * columns))
    most = most.double()
    divisor = torch.where(most > 0, most, 1)[:, None, None]
    parts = [_enclose(part / by, rtol) for part, by in zip(A.split(size), divisor.split(size), strict=True)]
    lower, upper = (torch.cat(bounds) for bounds in zip(*parts, strict=True))
    lower = torch.nextafter(lower * most, torch.zeros_like(lower))
    upper = torch.nextafter(upper * most, torch.full_like(upper, torch.inf)).masked_fill(most == 0, 0)
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
    documented, so nothing is built on it; for logits beyond 1e5, which float32 cannot tell apart, v = 1 takes its
    place. (If q or k are of extreme size, a power of two goes over to the scale first.)

    *float64 certifies.* From v on the iteration goes through A in blocks of rows, in float64, and its quotients are the
    bounds, as in `spectral_norm`. One such step is enough unless rtol is below 1e-5 or so.

    *Rounding.* A is the exact softmax of the q, k and scale given, in float32 as in float64. Let B be the largest
    |q_i| |k_j| times |scale|. A logit errs by less than (d_h + 3) u B, less the row's maximum by (d_h + 5) u B, and exp
    by 8 u relative; so each entry of the computed A has a relative error of 2 (d_h + 5) u B + (n + 18) u at most, to
    first order. Both bounds are widened by the factor exp((2 n + (d_h + 8) B + 32) 2u), which covers this and the
    sums; what underflows is far below v >= 1e-250, and ||A||_2 >= 1. Entries below the least normal number count as 0
    where `spectral_norm` says so. For float16 and bfloat16 there are no such steps but for logits beyond 1e5: the
    result is an `Estimate` and no enclosure, good to about two digits.

    Args:
        q, k: queries and keys; further axes in front (batch, head) broadcast.
        causal: whether token i sees only tokens j <= i.
        scale: 1 / sqrt(d_h) unless given.
        rtol: as for `spectral_norm`.

    Raises:
        ValueError: if the shapes do not fit, or the types; if entries are not finite, or q or k so large that the
            logits overflow; if rtol is not positive.
    """
    n, d_h = check_floats(q=(q, "... n d_h"), k=(k, "... n d_h")).values()
    check_finite(q=q, k=k)
    _check_rtol(rtol)
    check_type(bool, causal=causal)
    scale = 1 / math.sqrt(d_h) if scale is None else scale
    scale = check_numbers(-math.inf, scale=scale)
    _warn_if_flushed("attention_spectral_norm", q, k)
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
    upper = torch.full((len(q),), torch.inf, dtype=torch.float64, device=q.device)
    if len(q) == 0:
        return upper, upper
    q, k, scale = _balanced(q, k, scale)
    longest_q, longest_k = (x.double().norm(dim=-1).amax().item() for x in (q, k))
    B = abs(scale) * (longest_q * longest_k)
    if not B <= torch.finfo(torch.float64).max:
        raise ValueError(f"q, k, scale: expected logits that are finite in torch.float64, got the bound {B}")

    half, steps = q.dtype in HALF, 0
    v = torch.ones(len(q), 1, n, dtype=torch.float64, device=q.device)
    if B < APART:
        lower, v, steps = _propose(q, k, v, causal, scale, rtol)
        if half and (lower > 0.9).all():  # less than 1 it cannot be, unless the kernel overflowed
            return lower, upper

    # float64. Where the kernel overflowed, the vector so far is NaN, and another start is needed.
    v = torch.where(((v > 0) & (v <= 1)).all(-1, keepdim=True), v, 1)  # whatever the kernel did: the bounds need v > 0
    widen = 1.0 if half else math.exp(min(700.0, (2 * n + (d_h + 8) * B + 32) * EPS))
    lower = torch.zeros_like(upper)
    for _ in range(max(1, STEPS - steps)):
        Av, Mv = _by_rows(q, k, v, causal, scale)
        low, high = _quotients(v, Av, Mv, widen)
        lower, upper = torch.fmax(lower, low), torch.fmin(upper, high)
        v = _positive(Mv)
        if (upper <= (1 + rtol) * lower).all():
            break
    return lower, upper


def _balanced(q: Tensor, k: Tensor, scale: float) -> tuple[Tensor, Tensor, float]:
    """The same logits from numbers of ordinary size: q and k by powers of two that the scale takes over.

    Where entries underflow, they are 1e-45 beside the largest.
    """
    sizes = largest(q), largest(k), abs(scale)
    if all(2**-30 < size < 2**30 for size in sizes if size):
        return q, k, scale
    tiny = torch.finfo(q.dtype).tiny  # of less, the reciprocal may be infinite
    unit_q, unit_k = (math.ldexp(1, math.frexp(max(size, tiny))[1] - 1) for size in sizes[:2])
    least, middle, most = sorted((scale, unit_q, unit_k), key=abs)  # in this order, no product is beyond the last one
    return q / unit_q, k / unit_k, least * most * middle


def _propose(q: Tensor, k: Tensor, v: Tensor, causal: bool, scale: float, rtol: float) -> tuple[Tensor, Tensor, int]:
    """By fused attention, until the quotients are near, or the lower one stops rising by more than the precision.

    The lower quotient, a vector, and the number of steps.
    """
    dtype = q.dtype if q.dtype in HALF else torch.float32
    lower, steps, go_on = torch.zeros_like(v[:, 0, 0]), 0, True
    while go_on and steps < STEPS:
        Av, Mv = _fused(q.to(dtype), k.to(dtype), v.to(dtype), causal, scale)
        before, (lower, upper) = lower, _quotients(v, Av, Mv, 1.0)
        v, steps = _positive(Mv), steps + 1
        wide, rising = upper > (1 + rtol / 2) * lower, lower > (1 + torch.finfo(dtype).eps) * before
        go_on = bool((wide & rising).any())
    return lower, v, steps


def _fused(q: Tensor, k: Tensor, v: Tensor, causal: bool, scale: float) -> tuple[Tensor, Tensor]:
    """A v and A^T A v by fused attention and its backward pass: with v as the values, and A v as their gradient."""
    width = q.shape[-1] + -q.shape[-1] % 8  # the kernels want one width for all three, and some a multiple of 8
    with torch.inference_mode(False), torch.enable_grad(), sdpa_kernel(FUSED):  # the caller may have gradients off
        q, k, values = (F.pad(x.detach(), (0, width - x.shape[-1])).contiguous()[:, None] for x in (q, k, v.mT))
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
    n = check_integers(1, n=n)
    return torch.ones(n, n, dtype=torch.float64).tril() / torch.arange(1, n + 1, dtype=torch.float64)[:, None]


def _check_rtol(rtol: float) -> None:
    if not isinstance(rtol, Real) or isinstance(rtol, bool) or not 0 < rtol < math.inf:
        raise ValueError(f"rtol: expected a positive number, got {rtol!r}")


def _warn_if_wide(name: str, lower: Tensor, upper: Tensor, rtol: float) -> None:
    if not ((upper <= (1 + rtol) * lower) & upper.isfinite()).all():
        warnings.warn(f"{name}: rtol={rtol} is out of reach; the bounds hold but are wider", stacklevel=4)


def _warn_if_flushed(name: str, *arguments: Tensor) -> None:
    """Warn where subnormal entries count as 0. Only their bits can be looked at then: to a comparison they are 0."""
    least = torch.full((), torch.finfo(torch.float64).tiny, dtype=torch.float64, device=arguments[0].device)
    if least / 2 > 0:
        return
    for x in arguments:
        integers = {torch.float64: torch.int64, torch.float32: torch.int32, torch.bfloat16: torch.int16}.get(x.dtype)
        if integers is None:  # float16 becomes float32 without a loss
            continue
        size = x.view(integers) & torch.iinfo(integers).max
        if ((size > 0) & (size < torch.tensor(torch.finfo(x.dtype).tiny, dtype=x.dtype).view(integers))).any():
            warnings.warn(f"{name}: subnormal entries count as 0 (torch.set_flush_denormal)", stacklevel=4)
            return
