"""superpose."""

import itertools

import numpy as np

from smalltorch import superpose

from .. import formulas as f
from ..judge import Entry, Outside
from ..kinds import Count, Precision, Real
from .parts import made


def welch_bound(m, d):
    if m < 2 or not 1 <= d <= m:
        raise Outside("vectors, no fewer than dimensions")
    return np.sqrt((m - d) / (d * (m - 1)))


def coherence(W):
    f.real(W)
    if W.shape[-2] < 2 or 0 in W.shape or not np.isfinite(W.astype(float)).all() or (W == 0).all(-1).any():
        raise Outside("two vectors at least, none of them 0")
    unit = W / np.sqrt((W * W).sum(-1, keepdims=True))
    products = abs(unit @ np.swapaxes(unit, -1, -2))
    return (products * (1 - np.eye(W.shape[-2]))).max((-2, -1))


def polynomial_code(p, k):
    """A word at a time."""
    if p < 2 or any(p % factor == 0 for factor in range(2, p)) or not 1 <= k <= p:
        raise Outside("a prime, and no more coefficients")
    rows = []
    for polynomial in itertools.product(range(p), repeat=k):
        word = np.zeros((p, p))
        for x in range(p):
            word[x, sum(c * x**power for power, c in enumerate(polynomial)) % p] = p**-0.5
        rows.append(word.ravel())
    return np.array(rows)


def winners(X, k):
    f.real(X)
    if not 1 <= k <= X.shape[-1]:
        raise Outside("one unit at least, and no more than there are")
    return np.where(X >= np.sort(X, -1)[..., [-k]], X, 0)


def autoencoder(dtype, d, m, x):
    W = f.Weights(dtype)
    W_E, W_D, b, c = W("W_E", d, m), W("W_D", m, d), W("b", d), W("c", m)
    z = f.relu((x - b) @ W_E + c)
    return b + z @ W_D, z * np.sqrt((W_D**2).sum(-1))


ENTRIES = [
    Entry(
        "superpose.welch_bound",
        lambda m, d: superpose.welch_bound(m, d),
        welch_bound,
        {"m": Count(7, least=2), "d": Count(4)},
    ),
    Entry("superpose.coherence", lambda W: superpose.coherence(W), coherence, {"W": Real("... n d")}),
    Entry(
        "superpose.polynomial_code",
        lambda p, k: superpose.polynomial_code(p, k),
        polynomial_code,
        {"p": Count(3, least=2), "k": Count(2)},
    ),
    Entry("superpose.winners", lambda X, k: superpose.winners(X, k), winners, {"X": Real("... d"), "k": Count(2)}),
    Entry(
        "superpose.SparseAutoencoder",
        lambda dtype, d, m, x: made(superpose.SparseAutoencoder, dtype, d, m)(x),
        autoencoder,
        {"dtype": Precision(), "d": Count("d"), "m": Count(5), "x": Real("... d")},
        where=lambda d, x, **_: x.shape[-1] == d,
    ),
]
