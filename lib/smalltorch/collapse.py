r"""Rank collapse: how far the tokens are from being all the same, and how attention drives them there.

States X have one row for each token; X = 1 x^T + R with the mean token x and the *residual* R, whose columns sum to 0.

Source: Dong, Cordonnier & Loukas, "Attention is not all you need: pure attention loses rank doubly exponentially with
depth" (2021), for the residual, the composite norm and the paths. The propagation of the residual is this book's,
chapter `cubic-law`.

No square overflows or underflows, however large or small the states are. Where they are float16 or bfloat16, all is
computed in float32; measures and `Split` then are float32, states have the dtype of X.
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from smalltorch.attention import softmax
from smalltorch.shapes import (
    anywhere,
    at_least_float32,
    check_finite,
    check_floats,
    check_integers,
    check_mask,
    check_numbers,
    check_range,
    check_shapes,
    check_type,
    computed_wide,
    largest,
)

# --- measures ---------------------------------------------------------------------------------------------------------


def residual(X: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n d"]:
    """X - 1 x^T with x the mean token: what is left of X without the part that all tokens share.

    Of all vectors x the mean makes the Frobenius norm of the difference least.

        >>> residual(torch.tensor([[1.0, 2.0], [3.0, 6.0]]))
        tensor([[-1., -2.],
                [ 1.,  2.]])
    """
    check_floats(X=(X, "... n d"))
    return (X - _mean(X, -2)).to(X.dtype)


def relative_residual(X: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch"]:
    """||res X||_F / ||X||_F, between 0 (all tokens equal) and 1 (their mean is zero); units of X cancel.

    Raises:
        ValueError: if X is zero throughout.
    """
    check_floats(X=(X, "... n d"))
    X, _ = _scaled(at_least_float32(X), (-2, -1))
    length = torch.linalg.matrix_norm(X)
    if anywhere(length == 0):
        raise ValueError("X: expected states that are not all zero, got zeros")
    R, unit = _scaled(residual(X), (-2, -1))
    return torch.linalg.matrix_norm(R) / length * unit[..., 0, 0]


def spread(X: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch"]:
    """The largest distance between two tokens, r(X) in the formulas."""
    check_floats(X=(X, "... n d"))
    X, unit = _scaled(at_least_float32(X), (-2, -1))
    differences, part = _scaled(X[..., :, None, :] - X[..., None, :, :], (-3, -2, -1))
    return differences.square().sum(-1).amax((-2, -1)).sqrt() * part[..., 0, 0, 0] * unit[..., 0, 0]


def composite_norm(R: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch"]:
    """sqrt(||R||_1 ||R||_inf), of the largest column sum and the largest row sum of |R|.

    Written ||R||_{1,inf} by Dong et al. It is homogeneous and at least ||R||_2, but no norm: the triangle inequality
    fails.
    """
    check_floats(R=(R, "... n d"))
    R, unit = _scaled(at_least_float32(R), (-2, -1))
    return (R.abs().sum(-2).amax(-1) * R.abs().sum(-1).amax(-1)).sqrt() * unit[..., 0, 0]


def mean_cosine(X: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch"]:
    """The mean of cos(X_i, X_j) over all pairs of different tokens.

    Raises:
        ValueError: if there are fewer than two tokens, or one is zero.
    """
    n = check_floats(X=(X, "... n d"))["n"]
    X, _ = _scaled(at_least_float32(X), -1)
    length = X.norm(dim=-1, keepdim=True)
    if n < 2 or anywhere(length == 0):
        got = "a token that is zero" if n > 1 else "one token"
        raise ValueError(f"X: expected at least two tokens, none of them zero, got {got}")
    total = (X / length).sum(-2).square().sum(-1)  # of the cosines of all n^2 pairs, the n of a token with itself too
    return (total - n) / (n * (n - 1))


def stable_rank(X: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch"]:
    """||X||_F^2 / ||X||_2^2, between 1 (rank one) and the rank; small changes of X change it little.

        >>> stable_rank(torch.diag(torch.tensor([2.0, 2.0, 1e-9])))       # two, though the rank is three
        tensor(2.)

    Raises:
        ValueError: if X is zero throughout, or an entry is not finite.
    """
    check_floats(X=(X, "... n d"))
    check_finite(X=X)
    X, _ = _scaled(at_least_float32(X), (-2, -1))
    sigma = torch.linalg.svdvals(X)
    if (sigma[..., 0] == 0).any():
        raise ValueError("X: expected states that are not all zero, got zeros")
    return (sigma / sigma[..., :1]).square().sum(-1)


def _scaled(X: Tensor, dim: int | tuple[int, ...], least: float = 0.0) -> tuple[Tensor, Tensor]:
    """X in units in which the largest entry along `dim` has a square that is a float, and the units.

    A unit is 1 unless that entry, or `least` if it is larger, is extreme; so ordinary results keep every bit. Others
    are powers of two, of which nothing is rounded either.
    """
    size = X.detach().abs().amax(dim, keepdim=True).clamp(min=least)
    small = torch.finfo(X.dtype).tiny ** (1 / 3)
    extreme = ((0 < size) & (size < small)) | ((1 / small < size) & (size < torch.inf))
    unit = torch.where(extreme, size / (2 * torch.frexp(size).mantissa), 1)
    return X / unit, unit


def _mean(X: Tensor, dim: int) -> Tensor:
    """Along an axis, which is kept."""
    X, unit = _scaled(at_least_float32(X), dim)
    return X.mean(dim, keepdim=True) * unit


# --- a layer ----------------------------------------------------------------------------------------------------------


def layer(
    X: Float[Tensor, "*#batch n d"],
    W_QK: Float[Tensor, "*#batch head d d"],
    W_VO: Float[Tensor, "*#batch head d d"],
    mask: Bool[Tensor, "n n"] | None = None,
) -> Float[Tensor, "... n d"]:
    """sum_h A_h X W_VO[h] with A_h = softmax(X W_QK[h] X^T): attention without a skip, in plain arithmetic.

    Raises:
        ValueError: if shapes or dtypes do not fit, or scores or results overflow.
    """
    check_floats(X=(X, "... n d"), W_QK=(W_QK, "... head d d"), W_VO=(W_VO, "... head d d"))
    Y = at_least_float32(X)[..., None, :, :]
    S = check_range(Y @ at_least_float32(W_QK) @ Y.mT, X=X, W_QK=W_QK)
    if mask is not None:
        check_mask(mask, S.shape if X.ndim > 2 else S.shape[-2:], S.device, pairs=True)
        S = S.masked_fill(~mask, -torch.inf)
    return check_range((softmax(S) @ Y @ at_least_float32(W_VO)).sum(-3), X=X, W_QK=W_QK, W_VO=W_VO).to(X.dtype)


# --- propagation without cancellation ---------------------------------------------------------------------------------


class Split(NamedTuple):
    """X = 1 mean^T + exp(log_scale) direction, where direction has columns of sum 0 and Frobenius norm 1.

    The scale has a place of its own since it soon falls below what X can carry beside its mean (1e-16), and then below
    the least positive float (1e-308). A residual of zero has log_scale = -inf.
    """

    mean: Float[Tensor, "*batch d"]
    direction: Float[Tensor, "*batch n d"]
    log_scale: Float[Tensor, "*batch"]

    @property
    def scale(self) -> Float[Tensor, "*batch 1 1"]:
        return self.log_scale.exp()[..., None, None]


def split(X: Float[Tensor, "*batch n d"]) -> Split:
    """The mean token of X and its residual."""
    check_floats(X=(X, "... n d"))
    check_finite(X=X)
    X = at_least_float32(X)
    return _split(_mean(X, -2)[..., 0, :], residual(X), X.new_zeros(X.shape[:-2]), X=X)


def join(state: Split) -> Float[Tensor, "*batch n d"]:
    """X again, as well as a single matrix can hold it."""
    state, _ = _given("state", state)
    return check_range(state.mean[..., None, :] + state.scale * state.direction, state=_size(state))


def attend(state: Split, W_QK: Float[Tensor, "*batch head d d"], W_VO: Float[Tensor, "*batch head d d"]) -> Split:
    r"""The states sum_h A_h X W_VO[h] with A_h = softmax(X W_QK[h] X^T), to full relative accuracy in the residual.

    W_QK = W_Q W_K^T / sqrt(d_h) and W_VO = W_V W_O of each head. With X = 1 x^T + R a row of scores is, up to a
    constant, u_j + v_ij with u = x^T W_QK R^T and v = R W_QK R^T. Let p = softmax(u), the row that all tokens share,
    and m_i = sum_k p_k exp(v_ik). Then

        A_ij - p_j = p_j (expm1(v_ij) - sum_k p_k expm1(v_ik)) / m_i =: E_ij,

    a number of the size of v, hence of R^2, found without subtracting the nearly equal A_ij and p_j. The new residual
    is that of sum_h E_h R W_VO[h], of the size of R^3. (Where some |v| exceeds 1, E is A - p.) The rows of E have sum
    0, which gives the entry at the largest p_j: where p is nearly 1 there, the sum has digits that a difference of
    numbers near 1 has lost. A p_j below 1e-308, 1e-38 in float32, counts as 0.

    Raises:
        ValueError: if shapes or dtypes do not fit, an entry is not finite, or scores or results overflow.
    """
    state, (W_QK, W_VO) = _given("state", state, W_QK=(W_QK, "... head d d"), W_VO=(W_VO, "... head d d"))
    mean, direction, _ = state
    size = _size(state)
    r = state.scale[..., None]  # batch 1 1 1
    R = direction[..., None, :, :]  # batch 1 n d
    u = check_range(r * (mean[..., None, None, :] @ W_QK @ R.mT), state=size, W_QK=W_QK)  # batch head 1 n
    w = R @ W_QK @ R.mT  # batch head n n
    v = check_range(r.square() * w, state=size, W_QK=W_QK)
    p = softmax(u)

    small = v.abs().amax((-2, -1), keepdim=True) <= 1
    v_small = torch.where(small, v, 0)
    growth = torch.where(v_small == 0, 1, torch.expm1(v_small) / torch.where(v_small == 0, 1, v_small))
    e = w * growth  # expm1(v) / r^2
    e_mean = (p * e).sum(-1, keepdim=True)
    E_small = p * (e - e_mean) / (1 + r.square() * e_mean)
    E_large = (softmax(u + v) - p) / torch.where(small, 1, r.square())
    E = torch.where(small, E_small, E_large)  # (A - p) / r^2
    top = p.argmax(-1, keepdim=True).expand(*E.shape[:-1], 1)
    E = E.scatter(-1, top, 0)
    E = E.scatter(-1, top, -E.sum(-1, keepdim=True))  # the rows have sum 0

    change = (E @ R @ W_VO).sum(-3)  # batch n d; times r^3
    shared = mean[..., None, :] + (r * (p @ R))[..., 0, :]  # batch head d: p^T X of each head
    new_mean = (shared[..., None, :] @ W_VO)[..., 0, :].sum(-2) + (r[..., 0].pow(3) * change).mean(-2)
    return _split(new_mean, residual(change), 3 * state.log_scale, state=size, W_VO=W_VO)


def log_relative_residual(state: Split) -> Float[Tensor, "*batch"]:
    """log(||res X||_F / ||X||_F), also where the residual itself is no longer a float.

    Raises:
        ValueError: if X is zero throughout.
    """
    state, _ = _given("state", state)
    n = state.direction.shape[-2]
    mean, unit = _scaled(state.mean, -1)
    log_mean = (n**0.5 * mean.norm(dim=-1)).log() + unit[..., 0].log()
    total = torch.logaddexp(2 * state.log_scale, 2 * log_mean) / 2
    if anywhere(total == -torch.inf):
        raise ValueError("state: expected states that are not all zero, got zeros")
    return state.log_scale - total


def add(state: Split, other: Split) -> Split:
    """The sum of two states, as at a skip connection."""
    (state, _), (other, _) = _given("state", state), _given("other", other)
    check_floats(**{"state.direction": (state.direction, "... n d"), "other.direction": (other.direction, "... n d")})
    top = torch.maximum(state.log_scale, other.log_scale)
    top = top.masked_fill(top == -torch.inf, 0)
    one, two = ((s.log_scale - top).exp()[..., None, None] * s.direction for s in (state, other))
    return _split(state.mean + other.mean, one + two, top, state=_size(state), other=_size(other))


def normalise(state: Split, eps: float = 1e-5) -> Split:
    r"""LayerNorm of each token, without gain and bias. Chapter `skips-and-mlps`.

    With a = Pi x, b = Pi R_i and N^2 = ||a||^2 + d eps, N_i the same for a + b, the change of a token is
    sqrt(d) (b / N_i + a (1/N_i - 1/N)), and 1/N_i - 1/N = -(2 a.b + b.b) / (N N_i (N + N_i)) has nothing to cancel.

    Raises:
        ValueError: if an entry is not finite; for a negative eps; if eps is 0 and a token, or the mean, is constant.
    """
    state, _ = _given("state", state)
    eps = check_numbers(0, eps=eps)
    mean, direction, log_scale = state
    d, r = mean.shape[-1], state.scale
    a = (mean - _mean(mean, -1))[..., None, :]  # batch 1 d
    b = direction - direction.mean(-1, keepdim=True)  # batch n d; times r
    N, N_i = _root(a, eps), _root(a + r * b, eps)  # batch 1 1, batch n 1
    if anywhere((N == 0) | (N_i == 0)):
        raise ValueError(f"state: expected tokens and a mean that are not constant, for eps = {eps}, got one that is")
    excess = (2 * a * b + r * b.square()).sum(-1, keepdim=True)  # batch n 1; times r
    change = d**0.5 * (b / N_i - a / N * (excess / N_i / (N + N_i)))
    new_mean = (d**0.5 * a / N + (r * change).mean(-2, keepdim=True))[..., 0, :]
    return _split(new_mean, residual(change), log_scale)


def _root(a: Tensor, eps: float) -> Tensor:
    """sqrt(||a||^2 + d eps), row by row."""
    a, unit = _scaled(a, -1, least=eps**0.5)
    return (a.square().sum(-1, keepdim=True) + a.shape[-1] * eps / unit / unit).sqrt() * unit


def mlp(
    state: Split,
    W_1: Float[Tensor, "*batch d d_ff"],
    b_1: Float[Tensor, "*batch d_ff"],
    W_2: Float[Tensor, "*batch d_ff d"],
    b_2: Float[Tensor, "*batch d"],
) -> Split:
    """relu(X W_1 + b_1) W_2 + b_2. A unit that stays on or off with all tokens changes linearly or not at all.

    Raises:
        ValueError: if shapes or dtypes do not fit, an entry is not finite, or the result overflows.
    """
    weights = dict(W_1=(W_1, "... d d_ff"), b_1=(b_1, "... d_ff"), W_2=(W_2, "... d_ff d"), b_2=(b_2, "... d"))
    state, (W_1, b_1, W_2, b_2) = _given("state", state, **weights)
    mean, direction, log_scale = state
    a = mean[..., None, :] @ W_1 + b_1[..., None, :]  # batch 1 d_ff
    b = direction @ W_1  # batch n d_ff; times r
    r = state.scale
    kept = (r * b).abs() < a.abs()
    crossing = (torch.relu(a + r * b) - torch.relu(a)) / torch.where(r == 0, 1, r)
    change = torch.where(kept, b * (a > 0), torch.where(a == 0, torch.relu(b), crossing)) @ W_2
    new_mean = (torch.relu(a) @ W_2)[..., 0, :] + b_2 + (r * change).mean(-2)
    return _split(new_mean, residual(change), log_scale, state=_size(state), W_1=W_1, W_2=W_2, b_2=b_2)


def _given(name: str, state: Split, **weights: tuple[Tensor, str]) -> tuple[Split, list[Tensor]]:
    """A state and the weights that it meets, all in float32 at least.

    Raises:
        ValueError: if shapes or dtypes do not fit, or an entry is not finite; a scale may be 0.
    """
    check_type(Split, **{name: state})
    mean, direction, log_scale = (f"{name}.{part}" for part in Split._fields)
    check_floats(
        **{mean: (state.mean, "... d"), direction: (state.direction, "... n d"), log_scale: (state.log_scale, "...")},
        **weights,
    )
    values = {key: W for key, (W, _) in weights.items()}
    check_finite(**{mean: state.mean, direction: state.direction}, **values)
    state = Split(*(at_least_float32(part) for part in state))
    most = math.log(torch.finfo(state.mean.dtype).max)
    if not (state.log_scale < most).all():
        raise ValueError(f"{log_scale}: expected numbers below {most:.1f}, got {state.log_scale.max().item()}")
    return state, [at_least_float32(W) for W in values.values()]


def _size(state: Split) -> float:
    """Of the largest of its numbers, about."""
    return max(largest(state.mean), largest(state.scale))


def _split(mean: Tensor, R: Tensor, log_scale: Tensor, **origin: Tensor | float) -> Split:
    """A state with the residual exp(log_scale) R; `origin` is what it was computed from."""
    batch = torch.broadcast_shapes(mean.shape[:-1], R.shape[:-2], log_scale.shape)
    mean, R = check_range(mean, **origin).expand(*batch, -1), check_range(R, **origin).expand(*batch, -1, -1)
    R, unit = _scaled(R, (-2, -1))
    length = torch.linalg.matrix_norm(R)
    safe = torch.where(length == 0, 1, length)
    return Split(mean, R / safe[..., None, None], log_scale + length.log() + unit[..., 0, 0].log())


# --- paths ------------------------------------------------------------------------------------------------------------


def with_skip(
    P: Float[Tensor, "*batch layer head n n"], W: Float[Tensor, "layer head d d"]
) -> tuple[Float[Tensor, "*batch layer head+1 n n"], Float[Tensor, "layer head+1 d d"]]:
    """The same layers with the skip connection as head 0: P_0 = I, W_0 = I."""
    check_floats(P=(P, "... layer head n n"), W=(W, "layer head d d"))
    eye_P, eye_W = (torch.eye(M.shape[-1], dtype=M.dtype, device=M.device).expand_as(M[..., :1, :, :]) for M in (P, W))
    return torch.cat([eye_P, P], -3), torch.cat([eye_W, W], -3)


def all_paths(layers: int, heads: int) -> Int[Tensor, "path layer"]:
    """Every choice of one head per layer: heads^layers rows.

    Raises:
        ValueError: if they are more than 2^24.
    """
    layers, heads = check_integers(1, layers=layers, heads=heads)
    if heads**layers > 2**24:
        raise ValueError(f"layers, heads: expected at most 2^24 paths, got {heads}^{layers}")
    return torch.cartesian_prod(*[torch.arange(heads)] * layers).reshape(-1, layers)


def sample_paths(
    layers: int, probabilities: Float[Tensor, " head"], count: int, rng: np.random.Generator
) -> tuple[Int[Tensor, "count layer"], Float[Tensor, " count"]]:
    """Paths whose heads are drawn independently, and 1 / (the probability of each path). Chapter `paths`.

    The mean of weight * term over the drawn paths estimates the sum of the terms over all paths, without bias.

    Raises:
        ValueError: if the probabilities are not positive with sum 1.
    """
    check_floats(probabilities=(probabilities, "head"))
    check_finite(probabilities=probabilities)
    layers, count = check_integers(1, layers=layers, count=count)
    check_type(np.random.Generator, rng=rng)
    p = probabilities.double()
    if not ((p > 0).all() and abs(float(p.sum()) - 1) < 1e-6):
        raise ValueError(f"probabilities: expected positive numbers with sum 1, got {probabilities.tolist()}")
    p = p / p.sum()
    drawn = torch.from_numpy(rng.choice(len(p), size=(count, layers), p=p.numpy()))
    return drawn, 1 / p[drawn].prod(-1)


@computed_wide
def path_terms(
    X: Float[Tensor, "*#batch n d"],
    P: Float[Tensor, "*#batch layer head n n"],
    W: Float[Tensor, "layer head d d"],
    paths: Int[Tensor, "path layer"],
) -> Float[Tensor, "... path n d"]:
    """P_{h_L} ... P_{h_1} X W_{h_1} ... W_{h_L} for each path (h_1, ..., h_L).

    Their sum over all paths is the output of the network X <- sum_h P_h X W_h. Chapter `paths`.

    Raises:
        ValueError: if shapes or dtypes do not fit, a path names a head that does not exist, or a term overflows.
    """
    heads = check_floats(X=(X, "... n d"), P=(P, "... layer head n n"), W=(W, "layer head d d"))["head"]
    check_shapes(W=(W, "layer head d d"), paths=(paths, "path layer"))
    if paths.dtype not in (torch.int32, torch.int64):
        raise ValueError(f"paths: expected integers, got {paths.dtype}")
    check_finite(paths=paths)
    if paths.numel() and not (0 <= paths.min() and paths.max() < heads):
        raise ValueError(f"paths: expected heads from 0 to {heads - 1}, got {paths.min()} to {paths.max()}")
    terms = X[..., None, :, :].expand(*X.shape[:-2], len(paths), *X.shape[-2:])
    for layer, head in enumerate(paths.mT):
        terms = P[..., layer, head, :, :] @ terms @ W[layer, head]
    return check_range(terms, X=X, P=P, W=W)
