"""efficient.kernels."""

import numpy as np

from smalltorch.efficient import kernels

from .. import formulas as f
from ..judge import Entry, Outside
from ..kinds import Count, Flag, Real, Rng


def positive(X, W):
    f.real(X, W)
    return f.exp(X @ W.T - (X * X).sum(-1, keepdims=True) / 2) / np.sqrt(len(W))


def trigonometric(X, W):
    f.real(X, W)
    angle = X @ W.T
    waves = np.concatenate([f.lift(np.cos, f.mpmath.cos)(angle), f.lift(np.sin, f.mpmath.sin)(angle)], -1)
    return f.exp((X * X).sum(-1, keepdims=True) / 2) * waves / np.sqrt(len(W))


def attention(Q, K, V, W, causal):
    if any(not all(np.isfinite(float(x)) for x in np.ravel(array)) for array in (Q, K, V, W)):
        raise Outside("finite")
    weights = positive(Q, W) @ f.T(positive(K, W))
    if causal:
        weights = weights * np.tri(weights.shape[-1])
    total = weights.sum(-1, keepdims=True)
    if not (total > 0).all():
        raise Outside("a sum above 0")
    return weights @ V / total


def mixed(X):
    f.real(X)
    if not np.isfinite(X.astype(float)).all():
        raise Outside("finite")
    n, d = X.shape[-2:]
    angle = lambda size: 2 * np.pi * np.outer(np.arange(size), np.arange(size)) / size  # noqa: E731
    cos, sin = ([g(angle(size)) for size in (n, d)] for g in (np.cos, np.sin))
    return cos[0] @ X @ cos[1] - sin[0] @ X @ sin[1]


def gram(m, d, rng):
    W = kernels.orthogonal_rows(m, d, rng)
    return (W / W.norm(dim=1, keepdim=True)) @ W[:1].T / W[:1].norm()


ENTRIES = [
    Entry(
        "efficient.kernels.positive_features",
        lambda X, W: kernels.positive_features(X, W),
        positive,
        {"X": Real("... n d"), "W": Real("m d")},
        sizes={"m": 5},
    ),
    Entry(
        "efficient.kernels.trigonometric_features",
        lambda X, W: kernels.trigonometric_features(X, W),
        trigonometric,
        {"X": Real("... n d"), "W": Real("m d")},
        sizes={"m": 5},
        digits=400,
    ),
    Entry(
        "efficient.kernels.orthogonal_rows",
        gram,
        lambda m, d, rng: np.eye(m, 1),
        {"m": Count(3), "d": Count(4), "rng": Rng()},
        where=lambda m, d, rng: m <= d,
    ),
    Entry(
        "efficient.kernels.kernel_attention",
        lambda Q, K, V, W, causal: kernels.kernel_attention(Q, K, V, W, causal),
        attention,
        {
            "Q": Real("... query d"),
            "K": Real("... key d"),
            "V": Real("... key d_v"),
            "W": Real("m d"),
            "causal": Flag(False),
        },
        sizes={"m": 5, "query": 5},
    ),
    Entry("efficient.kernels.fourier_mix", lambda X: kernels.fourier_mix(X), mixed, {"X": Real("... n d")}),
]
