"""Random-feature attention (Performer), and a Fourier transform in place of attention (FNet).

The softmax weighs key k for query q by exp(q^T k); a scale is put into q and k first. Rows w_1 .. w_m of W drawn from
N(0, I) make features whose products have this mean, and sums over keys are then made once for all queries.
"""

import math

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from smalltorch.shapes import (
    anywhere,
    check_finite,
    check_floats,
    check_integers,
    check_range,
    check_type,
    computed_wide,
    largest,
)


def _log_features(X: Tensor, W: Tensor) -> Tensor:
    """The logarithms of `positive_features`, which do not overflow."""
    return X @ W.T - X.square().sum(-1, keepdim=True) / 2 - math.log(len(W)) / 2


@computed_wide
def positive_features(X: Float[Tensor, "*batch n d"], W: Float[Tensor, "m d"]) -> Float[Tensor, "*batch n m"]:
    """exp(w_r^T x - |x|^2 / 2) / sqrt(m): products of two rows have the mean exp(x^T y) over normal W.

        >>> x = torch.tensor([[1.0]]).double()
        >>> positive_features(x, torch.tensor([[-1.0], [0.0], [1.0]]).double())
        tensor([[0.1288, 0.3502, 0.9519]], dtype=torch.float64)

    Chapter `kernels`. Source: Choromanski et al., "Rethinking Attention with Performers" (2021), lemma 1.

    Raises:
        ValueError: if W has no rows, or not the columns of X; if the numbers overflow.
    """
    check_floats(X=(X, "... n d"), W=(W, "m d"))
    return check_range(check_range(_log_features(X, W), X=X, W=W).exp(), X=X, W=W)


@computed_wide
def trigonometric_features(
    X: Float[Tensor, "*batch n d"], W: Float[Tensor, "m d"]
) -> Float[Tensor, "*batch n features"]:
    """exp(|x|^2 / 2) [cos(w_r^T x), sin(w_r^T x)] / sqrt(m): 2 m features, of the same mean, with both signs.

        >>> x = torch.tensor([[1.0]]).double()
        >>> Z = trigonometric_features(x, torch.tensor([[0.5], [2.0]]).double())
        >>> Z @ Z.T                        # e, for equal vectors, whatever W is
        tensor([[2.7183]], dtype=torch.float64)

    Chapter `kernels`. Source: Rahimi and Recht, "Random Features for Large-Scale Kernel Machines" (2007), with the
    factor that turns a Gaussian kernel into exp(x^T y).

    Raises:
        ValueError: if W has no rows, or not the columns of X; if the numbers overflow, or the angles w_r^T x are so
            large that rounding makes turns of them.
    """
    m = check_floats(X=(X, "... n d"), W=(W, "m d"))["m"]
    angle = X @ W.T
    if 1 / 16 < largest(angle) * torch.finfo(angle.dtype).eps < math.inf:
        raise ValueError(f"X, W: expected angles that {angle.dtype} can tell apart, got up to {largest(angle):.3g}")
    size = (X.square().sum(-1, keepdim=True) / 2).exp() / math.sqrt(m)
    return check_range(size * torch.cat([angle.cos(), angle.sin()], dim=-1), X=X, W=W)


def orthogonal_rows(m: int, d: int, rng: np.random.Generator) -> Float[Tensor, "m d"]:
    """Rows that are each N(0, I), those of each block of d orthogonal to each other; blocks are independent. float64.

        >>> W = orthogonal_rows(3, 3, np.random.default_rng(0))
        >>> bool(((W @ W.T).tril(-1).abs() < 1e-12).all())
        True

    Directions come from the QR decomposition of normal matrices, with the signs that make them uniform, lengths from
    normal vectors of their own.

    Chapter `kernels`. Source: Yu et al., "Orthogonal Random Features" (2016).
    """
    m, d = check_integers(1, m=m, d=d)
    check_type(np.random.Generator, rng=rng)
    blocks = -(-m // d)
    Q, R = np.linalg.qr(rng.standard_normal((blocks, d, d)))
    directions = (Q * np.sign(np.einsum("bii->bi", R))[:, None, :]).swapaxes(1, 2).reshape(-1, d)[:m]
    lengths = np.linalg.norm(rng.standard_normal((m, d)), axis=1, keepdims=True)
    return torch.from_numpy(lengths * directions)


@computed_wide
def kernel_attention(
    Q: Float[Tensor, "*batch query d"],
    K: Float[Tensor, "*batch key d"],
    V: Float[Tensor, "*batch key d_v"],
    W: Float[Tensor, "m d"],
    causal: bool = False,
) -> Float[Tensor, "*batch query d_v"]:
    """Attention with the kernel of `positive_features`: (phi(Q) (phi(K)^T V)) / (phi(Q) (phi(K)^T 1)), row by row.

    It costs O(n m d_v) for n queries and keys; the (n, n) matrix of weights is never made. What cancels in the
    quotient is divided out first: the largest feature of each query, and that of all keys.

        >>> K, W = torch.zeros(3, 2).double(), torch.ones(4, 2).double()
        >>> kernel_attention(K, K, torch.eye(3).double(), W)[0]          # equal keys: the mean of the values
        tensor([0.3333, 0.3333, 0.3333], dtype=torch.float64)

    Chapter `kernels`. Source: Choromanski et al., "Rethinking Attention with Performers" (2021), section 2.

    Args:
        Q, K: queries and keys, with the scale put in: those of a head, divided by the fourth root of d_h.
        V: values.
        W: rows of features.
        causal: each query reads the keys up to its own position; then there are as many keys as queries.

    Raises:
        ValueError: if the shapes do not fit; for entries that are not finite; if all features of a query vanish beside
            those of the keys.
    """
    sizes = check_floats(Q=(Q, "... query d"), K=(K, "... key d"), V=(V, "... key d_v"), W=(W, "m d"))
    check_type(bool, causal=causal)
    if causal and sizes["query"] != sizes["key"]:
        raise ValueError(f"K: expected as many keys as queries, {sizes['query']}, got {sizes['key']}")
    for name, value in {"Q": Q, "K": K, "V": V, "W": W}.items():  # a bad key would spoil queries that do not see it
        if anywhere(~value.isfinite()):
            raise ValueError(f"{name}: expected finite entries, got NaN or infinite ones")
    log_q, log_k = check_range(_log_features(Q, W), Q=Q, W=W), check_range(_log_features(K, W), K=K, W=W)
    phi_q = (log_q - log_q.amax(-1, keepdim=True)).exp()  # (..., query, m)
    phi_k = (log_k - log_k.amax((-2, -1), keepdim=True)).exp()  # (..., key, m)
    read = torch.cat([V, torch.ones_like(V[..., :1])], dim=-1)  # the last column sums the weights
    if causal:
        states = (phi_k[..., :, :, None] * read[..., :, None, :]).cumsum(-3)  # (..., key, m, d_v + 1)
        sums = (phi_q[..., None, :] @ states).squeeze(-2)
    else:
        sums = phi_q @ (phi_k.mT @ read)  # (..., query, d_v + 1)
    if anywhere(sums[..., -1] <= 0):
        raise ValueError("Q, K, W: expected features large for a query and a key at once, got a sum of 0")
    return sums[..., :-1] / sums[..., -1:]


@computed_wide
def fourier_mix(X: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n d"]:
    """FNet's mixing: the real part of the Fourier transform over tokens and features, without a weight.

    Entry (s, t) is the sum of X[j, c] cos(2 pi (s j / n + t c / d)); O(n d log(n d)).

        >>> fourier_mix(torch.eye(2).double())
        tensor([[2., 0.],
                [0., 2.]], dtype=torch.float64)

    Chapter `kernels`. Source: Lee-Thorp et al., "FNet: Mixing Tokens with Fourier Transforms" (2022), section 3.2.

    Raises:
        ValueError: if X is no matrix of floats, has an empty one, or an entry that is not finite.
    """
    check_floats(X=(X, "... n d"))
    check_finite(X=X)
    return check_range(torch.fft.fft2(X).real, X=X) if X.numel() else X
