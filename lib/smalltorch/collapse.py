r"""Rank collapse: how far the tokens are from being all the same, and how attention drives them there.

States X have one row for each token; X = 1 x^T + R with the mean token x and the *residual* R, whose columns sum to 0.

Source: Dong, Cordonnier & Loukas, "Attention is not all you need: pure attention loses rank doubly exponentially with
depth" (2021), for the residual, the composite norm and the paths. The propagation of the residual is this book's,
chapter `cubic-law`.
"""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from smalltorch.attention import softmax
from smalltorch.shapes import check_finite, check_shapes

# --- measures ---------------------------------------------------------------------------------------------------------


def residual(X: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n d"]:
    """X - 1 x^T with x the mean token: what is left of X without the part that all tokens share.

    Of all vectors x the mean makes the Frobenius norm of the difference least.

        >>> residual(torch.tensor([[1.0, 2.0], [3.0, 6.0]]))
        tensor([[-1., -2.],
                [ 1.,  2.]])
    """
    check_shapes(X=(X, "... n d"))
    return X - X.mean(-2, keepdim=True)


def relative_residual(X: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch"]:
    """||res X||_F / ||X||_F, between 0 (all tokens equal) and 1 (their mean is zero); units of X cancel.

    Raises:
        ValueError: if X is zero throughout.
    """
    check_shapes(X=(X, "... n d"))
    length = torch.linalg.matrix_norm(X)
    if (length == 0).any():
        raise ValueError("X: expected states that are not all zero")
    return torch.linalg.matrix_norm(residual(X)) / length


def spread(X: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch"]:
    """The largest distance between two tokens, r(X) in the formulas."""
    check_shapes(X=(X, "... n d"))
    return (X[..., :, None, :] - X[..., None, :, :]).square().sum(-1).amax((-2, -1)).sqrt()


def composite_norm(R: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch"]:
    """sqrt(||R||_1 ||R||_inf), of the largest column sum and the largest row sum of |R|.

    Written ||R||_{1,inf} by Dong et al. It is homogeneous and at least ||R||_2, but no norm: the triangle inequality
    fails.
    """
    check_shapes(R=(R, "... n d"))
    return (R.abs().sum(-2).amax(-1) * R.abs().sum(-1).amax(-1)).sqrt()


def mean_cosine(X: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch"]:
    """The mean of cos(X_i, X_j) over all pairs of different tokens.

    Raises:
        ValueError: if there are fewer than two tokens, or one is zero.
    """
    n = check_shapes(X=(X, "... n d"))["n"]
    length = X.norm(dim=-1, keepdim=True)
    if n < 2 or (length == 0).any():
        raise ValueError("X: expected at least two tokens, none of them zero")
    total = (X / length).sum(-2).square().sum(-1)  # of the cosines of all n^2 pairs, the n of a token with itself too
    return (total - n) / (n * (n - 1))


def stable_rank(X: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch"]:
    """||X||_F^2 / ||X||_2^2, between 1 (rank one) and the rank; small changes of X change it little.

        >>> stable_rank(torch.diag(torch.tensor([2.0, 2.0, 1e-9])))       # two, though the rank is three
        tensor(2.)

    Raises:
        ValueError: if X is zero throughout.
    """
    check_shapes(X=(X, "... n d"))
    sigma = torch.linalg.svdvals(X)
    if (sigma[..., 0] == 0).any():
        raise ValueError("X: expected states that are not all zero")
    return (sigma / sigma[..., :1]).square().sum(-1)


# --- a layer ----------------------------------------------------------------------------------------------------------


def layer(
    X: Float[Tensor, "*batch n d"],
    W_QK: Float[Tensor, "*batch head d d"],
    W_VO: Float[Tensor, "*batch head d d"],
    mask: Bool[Tensor, "n n"] | None = None,
) -> Float[Tensor, "*batch n d"]:
    """sum_h A_h X W_VO[h] with A_h = softmax(X W_QK[h] X^T): attention without a skip, in plain arithmetic."""
    check_shapes(X=(X, "... n d"), W_QK=(W_QK, "... head d d"), W_VO=(W_VO, "... head d d"))
    X = X[..., None, :, :]
    S = X @ W_QK @ X.mT
    S = S if mask is None else S.masked_fill(~mask, -torch.inf)
    return (softmax(S) @ X @ W_VO).sum(-3)


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
    return _split(X.mean(-2), residual(X), X.new_zeros(X.shape[:-2]))


def join(state: Split) -> Float[Tensor, "*batch n d"]:
    """X again, as well as a single matrix can hold it."""
    return state.mean[..., None, :] + state.scale * state.direction


def attend(state: Split, W_QK: Float[Tensor, "*batch head d d"], W_VO: Float[Tensor, "*batch head d d"]) -> Split:
    r"""The states sum_h A_h X W_VO[h] with A_h = softmax(X W_QK[h] X^T), to full relative accuracy in the residual.

    W_QK = W_Q W_K^T / sqrt(d_h) and W_VO = W_V W_O of each head. With X = 1 x^T + R a row of scores is, up to a
    constant, u_j + v_ij with u = x^T W_QK R^T and v = R W_QK R^T. Let p = softmax(u), the row that all tokens share,
    and m_i = sum_k p_k exp(v_ik). Then

        A_ij - p_j = p_j (expm1(v_ij) - sum_k p_k expm1(v_ik)) / m_i =: E_ij,

    a number of the size of v, hence of R^2, found without subtracting the nearly equal A_ij and p_j. The new residual
    is that of sum_h E_h R W_VO[h], of the size of R^3. (Where some |v| exceeds 1 there is nothing to lose, and E is
    A - p.)

    Raises:
        ValueError: if the shapes do not fit, or an entry is not finite.
    """
    mean, direction, _ = state
    check_shapes(mean=(mean, "... d"), W_QK=(W_QK, "... head d d"), W_VO=(W_VO, "... head d d"))
    check_shapes(mean=(mean, "... d"), direction=(direction, "... n d"))
    check_finite(mean=mean, direction=direction, W_QK=W_QK, W_VO=W_VO)
    r = state.scale[..., None]  # batch 1 1 1
    R = direction[..., None, :, :]  # batch 1 n d
    u = r * (mean[..., None, None, :] @ W_QK @ R.mT)  # batch head 1 n
    w = R @ W_QK @ R.mT  # batch head n n
    v = r.square() * w
    p = softmax(u)

    small = v.abs().amax((-2, -1), keepdim=True) <= 1
    v_small = torch.where(small, v, 0)
    growth = torch.where(v_small == 0, 1, torch.expm1(v_small) / torch.where(v_small == 0, 1, v_small))
    e = w * growth  # expm1(v) / r^2
    e_mean = (p * e).sum(-1, keepdim=True)
    E_small = p * (e - e_mean) / (1 + r.square() * e_mean)
    E_large = (softmax(u + v) - p) / torch.where(small, 1, r.square())
    E = torch.where(small, E_small, E_large)  # (A - p) / r^2

    change = (E @ R @ W_VO).sum(-3)  # batch n d; times r^3
    shared = mean[..., None, :] + (r * (p @ R))[..., 0, :]  # batch head d: p^T X of each head
    new_mean = (shared[..., None, :] @ W_VO)[..., 0, :].sum(-2) + (r[..., 0].pow(3) * change).mean(-2)
    return _split(new_mean, residual(change), 3 * state.log_scale)


def log_relative_residual(state: Split) -> Float[Tensor, "*batch"]:
    """log(||res X||_F / ||X||_F), also where the residual itself is no longer a float.

    Raises:
        ValueError: if X is zero throughout.
    """
    n = state.direction.shape[-2]
    mean = (n**0.5 * state.mean.norm(dim=-1)).log()
    total = torch.logaddexp(2 * state.log_scale, 2 * mean) / 2
    if (total == -torch.inf).any():
        raise ValueError("state: expected states that are not all zero")
    return state.log_scale - total


def add(state: Split, other: Split) -> Split:
    """The sum of two states, as at a skip connection."""
    top = torch.maximum(state.log_scale, other.log_scale)
    top = top.masked_fill(top == -torch.inf, 0)
    one, two = ((s.log_scale - top).exp()[..., None, None] * s.direction for s in (state, other))
    return _split(state.mean + other.mean, one + two, top)


def normalise(state: Split, eps: float = 1e-5) -> Split:
    r"""LayerNorm of each token, without gain and bias. Chapter `skips-and-mlps`.

    With a = Pi x, b = Pi R_i and N^2 = ||a||^2 + d eps, N_i the same for a + b, the change of a token is
    sqrt(d) (b / N_i + a (1/N_i - 1/N)), and 1/N_i - 1/N = -(2 a.b + b.b) / (N N_i (N + N_i)) has nothing to cancel.
    """
    mean, direction, log_scale = state
    d, r = mean.shape[-1], state.scale
    a = (mean - mean.mean(-1, keepdim=True))[..., None, :]  # batch 1 d
    b = direction - direction.mean(-1, keepdim=True)  # batch n d; times r
    N = (a.square().sum(-1, keepdim=True) + d * eps).sqrt()  # batch 1 1
    N_i = ((a + r * b).square().sum(-1, keepdim=True) + d * eps).sqrt()  # batch n 1
    excess = (2 * a * b + r * b.square()).sum(-1, keepdim=True)  # batch n 1; times r
    change = d**0.5 * (b / N_i - a * excess / (N * N_i * (N + N_i)))
    new_mean = (d**0.5 * a / N + (r * change).mean(-2, keepdim=True))[..., 0, :]
    return _split(new_mean, residual(change), log_scale)


def mlp(
    state: Split,
    W_1: Float[Tensor, "*batch d d_ff"],
    b_1: Float[Tensor, "*batch d_ff"],
    W_2: Float[Tensor, "*batch d_ff d"],
    b_2: Float[Tensor, "*batch d"],
) -> Split:
    """relu(X W_1 + b_1) W_2 + b_2. A unit that stays on or off with all tokens changes linearly or not at all."""
    mean, direction, log_scale = state
    check_shapes(mean=(mean, "... d"), W_1=(W_1, "... d d_ff"), b_1=(b_1, "... d_ff"))
    check_shapes(b_1=(b_1, "... d_ff"), W_2=(W_2, "... d_ff d"), b_2=(b_2, "... d"))
    a = mean[..., None, :] @ W_1 + b_1[..., None, :]  # batch 1 d_ff
    b = direction @ W_1  # batch n d_ff; times r
    r = state.scale
    kept = (r * b).abs() < a.abs()
    crossing = (torch.relu(a + r * b) - torch.relu(a)) / torch.where(r == 0, 1, r)
    change = torch.where(kept, b * (a > 0), torch.where(a == 0, torch.relu(b), crossing)) @ W_2
    new_mean = (torch.relu(a) @ W_2)[..., 0, :] + b_2 + (r * change).mean(-2)
    return _split(new_mean, residual(change), log_scale)


def _split(mean: Tensor, R: Tensor, log_scale: Tensor) -> Split:
    """A state with the residual exp(log_scale) R."""
    length = torch.linalg.matrix_norm(R)
    safe = torch.where(length == 0, 1, length)
    return Split(mean, R / safe[..., None, None], log_scale + length.log())


# --- paths ------------------------------------------------------------------------------------------------------------


def with_skip(
    P: Float[Tensor, "*batch layer head n n"], W: Float[Tensor, "layer head d d"]
) -> tuple[Float[Tensor, "*batch layer head+1 n n"], Float[Tensor, "layer head+1 d d"]]:
    """The same layers with the skip connection as head 0: P_0 = I, W_0 = I."""
    check_shapes(P=(P, "... layer head n n"), W=(W, "layer head d d"))
    eye_P, eye_W = (torch.eye(M.shape[-1], dtype=M.dtype, device=M.device).expand_as(M[..., :1, :, :]) for M in (P, W))
    return torch.cat([eye_P, P], -3), torch.cat([eye_W, W], -3)


def all_paths(layers: int, heads: int) -> Int[Tensor, "path layer"]:
    """Every choice of one head per layer: heads^layers rows."""
    return torch.cartesian_prod(*[torch.arange(heads)] * layers).reshape(-1, layers)


def sample_paths(
    layers: int, probabilities: Float[Tensor, " head"], count: int, rng: np.random.Generator
) -> tuple[Int[Tensor, "count layer"], Float[Tensor, " count"]]:
    """Paths whose heads are drawn independently, and 1 / (the probability of each path). Chapter `paths`.

    The mean of weight * term over the drawn paths estimates the sum of the terms over all paths, without bias.

    Raises:
        ValueError: if the probabilities are not positive with sum 1.
    """
    check_shapes(probabilities=(probabilities, "head"))
    if not ((probabilities > 0).all() and abs(float(probabilities.sum()) - 1) < 1e-6):
        raise ValueError(f"probabilities: expected positive numbers with sum 1, got {probabilities.tolist()}")
    p = probabilities.double() / probabilities.double().sum()
    drawn = torch.from_numpy(rng.choice(len(p), size=(count, layers), p=p.numpy()))
    return drawn, 1 / p[drawn].prod(-1)


def path_terms(
    X: Float[Tensor, "*#batch n d"],
    P: Float[Tensor, "*#batch layer head n n"],
    W: Float[Tensor, "layer head d d"],
    paths: Int[Tensor, "path layer"],
) -> Float[Tensor, "... path n d"]:
    """P_{h_L} ... P_{h_1} X W_{h_1} ... W_{h_L} for each path (h_1, ..., h_L).

    Their sum over all paths is the output of the network X <- sum_h P_h X W_h. Chapter `paths`.

    Raises:
        ValueError: if the shapes do not fit, or a path names a head that does not exist.
    """
    sizes = check_shapes(
        X=(X, "... n d"), P=(P, "... layer head n n"), W=(W, "layer head d d"), paths=(paths, "path layer")
    )
    heads = sizes["head"]
    if paths.numel() and not (0 <= paths.min() and paths.max() < heads):
        raise ValueError(f"paths: expected heads from 0 to {heads - 1}, got {paths.min()} to {paths.max()}")
    terms = X[..., None, :, :].expand(*X.shape[:-2], len(paths), *X.shape[-2:])
    for layer, head in enumerate(paths.mT):
        terms = P[..., layer, head, :, :] @ terms @ W[layer, head]
    return terms
