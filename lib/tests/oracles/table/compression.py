"""compress."""

import itertools

import mpmath
import numpy as np
import torch

from smalltorch import compress

from .. import formulas as f
from ..judge import Entry, Outside
from ..kinds import Count, Number, Other, Real


def finite(*arrays):
    f.real(*arrays)
    if any(0 in A.shape or not np.isfinite(A.astype(float)).all() for A in arrays):
        raise Outside("finite entries, some of them")


def quantise(X, bits):
    finite(X)
    steps = 2 ** (bits - 1) - 1
    size = np.abs(X).max(-1, keepdims=True)
    return np.rint((X / np.where(size == 0, 1, size)).astype(float) * steps) * size / steps


def ternarise(X):
    """The best of all patterns of signs."""
    finite(X)
    rows = []
    for x in X.reshape(-1, X.shape[-1]):
        signs = [np.array(s) for s in itertools.product((-1, 0, 1), repeat=len(x)) if any(s)]
        s = max(signs, key=lambda s: abs(x @ s) * (x @ s) / (s @ s))
        rows.append((x @ s) / (s @ s) * s)
    return np.array(rows).reshape(X.shape)


def remove_weight(w, G, q):
    finite(w, G)
    if not 0 <= q < len(w) or abs(G - G.T).max() > 1e-6 * abs(G).max():
        raise Outside("a weight and a symmetric matrix")
    if np.linalg.eigvalsh(G.astype(float)).min() <= 0:
        raise Outside("a weight and a distance")
    G, size = G.astype(float), abs(w).max() or 1
    w = (w / size).astype(float)
    rest = [i for i in range(len(w)) if i != q]
    v = np.zeros(len(w))
    v[rest] = w[rest] + np.linalg.solve(G[np.ix_(rest, rest)], G[rest, q] * w[q])
    return v * size


def distillation_loss(student, teacher, T):
    finite(student, teacher)
    if student.shape != teacher.shape or not T > 0:
        raise Outside("logits of one shape, and a temperature")
    p, q = (f.softmax(np.vectorize(mpmath.mpf, otypes=[object])(X) / T) for X in (teacher, student))
    return mpmath.mpf(T) ** 2 * np.mean((p * (f.log(p) - f.log(q))).sum(-1))


def form(given):
    A = torch.from_numpy(given.rng.standard_normal((given.sizes["d"], given.sizes["d"])))
    return (A @ A.T + torch.eye(len(A))).to(given.dtype)


ENTRIES = [
    Entry(
        "compress.quantise",
        lambda X, bits: compress.quantise(X, bits),
        quantise,
        {"X": Real("... d"), "bits": Count(4, least=2)},
    ),
    Entry("compress.ternarise", lambda X: compress.ternarise(X), ternarise, {"X": Real("... d")}),
    Entry(
        "compress.remove_weight",
        lambda w, G, q: compress.remove_weight(w, G, q),
        remove_weight,
        {"w": Real("d"), "G": Other("a symmetric, positive definite matrix", form), "q": Count(1, least=0)},
    ),
    Entry(
        "compress.distillation_loss",
        lambda student, teacher, T: compress.distillation_loss(student, teacher, T),
        distillation_loss,
        {"student": Real("... d"), "teacher": Real("... d"), "T": Number(2.0, above=0)},
        digits=700,
    ),
]
