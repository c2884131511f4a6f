"""efficient.low_rank, efficient.hashing, efficient.reversible."""

import numpy as np
import torch
from torch import nn

from smalltorch.efficient import hashing, low_rank, reversible

from .. import formulas as f
from ..judge import Entry, Outside
from ..kinds import Count, Flag, Mask, Maybe, Other, Precision, Real, Tokens


def matrices(A):
    f.real(A)
    if A.ndim < 2 or 0 in A.shape[-2:] or not np.isfinite(A.astype(float)).all():
        raise Outside("matrices of finite entries")
    size = np.abs(A).max()
    return np.linalg.svd((A / (size or 1)).astype(float), full_matrices=False), size


def rank_floors(A):
    """From the sum of all squares, and what the first singular values take away."""
    (_, sigma, _), size = matrices(A)
    left = [(sigma[..., k:] ** 2).sum(-1) ** 0.5 for k in range(sigma.shape[-1] + 1)]
    return np.stack(left, -1) * size


def best_rank(A, k):
    (U, sigma, V_T), size = matrices(A)
    if k < 0:
        raise Outside("a rank")
    return np.einsum("...ik,...k,...kj->...ij", U[..., :k], sigma[..., :k], V_T[..., :k, :]) * size


def linformer(Q, K, V, E, F):
    f.real(Q, K, V, E, F)
    return f.attention(Q, E @ K, F @ V)[0]


def latte(Q, K, V, causal):
    f.real(Q, K, V)
    if 0 in (*Q.shape[-2:], *K.shape[-2:], *V.shape[-2:]) or (causal and Q.shape[-2] != K.shape[-2]):
        raise Outside("a query for each key")
    if not np.isfinite(K.astype(float)).all():
        raise Outside("finite keys")
    P = f.softmax(Q)
    if not causal:
        return P @ (f.T(f.softmax(K, -2)) @ V)
    rows = [P[..., [t], :] @ (f.T(f.softmax(K[..., : t + 1, :], -2)) @ V[..., : t + 1, :]) for t in range(K.shape[-2])]
    return np.concatenate(rows, -2)


def hash_buckets(X, R):
    f.real(X, R)
    if R.ndim != 2 or 0 in R.shape or 0 in X.shape[-2:]:
        raise Outside("vectors")
    if not (np.isfinite(X.astype(float)).all() and np.isfinite(R.astype(float)).all()):
        raise Outside("finite entries")
    return np.concatenate([X @ R, -(X @ R)], -1).argmax(-1)


def chunk_mask(buckets, size):
    if buckets.ndim != 2 or buckets.shape[-1] == 0 or buckets.dtype.kind not in "iu" or (buckets < 0).any() or size < 1:
        raise Outside("buckets")
    seen = np.zeros((*buckets.shape, buckets.shape[-1]), bool)
    for row, of_row in zip(buckets, seen, strict=True):
        order = sorted(range(len(row)), key=lambda token: (row[token], token))
        for place, token in enumerate(order):
            first = max(0, (place // size - 1) * size)
            of_row[token, order[first : (place // size + 1) * size]] = True
    return seen


def shared_attention(Q, V, mask):
    f.real(Q, V)
    n = Q.shape[-2]
    if 0 in (*Q.shape[-2:], V.shape[-1]) or not np.isfinite(Q.astype(float)).all() or (Q == 0).all(-1).any():
        raise Outside("queries with a direction")
    seen = np.ones((n, n), bool) if mask is None else np.broadcast_to(mask, np.broadcast_shapes(mask.shape, (n, n)))
    others = seen & ~np.eye(n, dtype=bool)
    K = Q / (Q**2).sum(-1, keepdims=True) ** 0.5
    return f.attention(Q, K, V, np.where(others.any(-1, keepdims=True), others, seen & np.eye(n, dtype=bool)), 1.0)


def layers(count):
    torch.manual_seed(3)
    parts = [reversible.Reversible(nn.Tanh(), nn.Softsign()) for _ in range(count)]
    return parts


def forwards(X_1, X_2, count=1):
    f.real(X_1, X_2)
    if X_1.shape != X_2.shape or 0 in X_1.shape[-2:] or X_1.ndim < 2:
        raise Outside("a pair of states")
    for _ in range(count):
        X_1 = X_1 + np.tanh(X_2.astype(float))
        X_2 = X_2 + X_1 / (1 + np.abs(X_1))
    return X_1, X_2


def backwards(Y_1, Y_2):
    f.real(Y_1, Y_2)
    if Y_1.shape != Y_2.shape or 0 in Y_1.shape[-2:] or Y_1.ndim < 2:
        raise Outside("a pair of states")
    X_2 = Y_2 - Y_1 / (1 + np.abs(Y_1))
    return Y_1 - np.tanh(X_2.astype(float)), X_2


class Buckets(Tokens):
    """Whole numbers from 0 on, however large."""

    def bad(self, x, given):
        for bad in super().bad(x, given):
            yield bad._replace(outside=bad.outside and bad.kind not in ("range", "extreme"))


A = Real("... m n")
STATES = Real("... n d")
SIZE = {"m": 4, "k": 2, "l": 2, "half": 3}

ENTRIES = [
    Entry(
        "efficient.low_rank.rank_floors",
        lambda A: low_rank.rank_floors(A),
        rank_floors,
        {"A": A},
        sizes=SIZE,
    ),
    Entry(
        "efficient.low_rank.best_rank",
        lambda A, k: low_rank.best_rank(A, k),
        best_rank,
        {"A": A, "k": Count(2, least=0)},
        sizes=SIZE,
    ),
    Entry(
        "efficient.low_rank.linformer",
        lambda Q, K, V, E, F: low_rank.linformer(Q, K, V, E, F),
        linformer,
        {
            "Q": Real("... query d_h"),
            "K": Real("... key d_h"),
            "V": Real("... key d_v"),
            "E": Real("... k key"),
            "F": Real("... k key"),
        },
        sizes=SIZE,
    ),
    Entry(
        "efficient.low_rank.latte",
        lambda Q, K, V, causal: low_rank.latte(Q, K, V, causal),
        latte,
        {"Q": Real("... query l"), "K": Real("... query l"), "V": Real("... query d_v"), "causal": Flag(True)},
        sizes=SIZE,
    ),
    Entry(
        "efficient.hashing.hash_buckets",
        lambda X, R: hashing.hash_buckets(X, R),
        hash_buckets,
        {"X": STATES, "R": Real("d half")},
        sizes=SIZE,
    ),
    Entry(
        "efficient.hashing.chunk_mask",
        lambda buckets, size: hashing.chunk_mask(buckets, size),
        chunk_mask,
        {"buckets": Buckets("batch n", "vocabulary"), "size": Count(2)},
    ),
    Entry(
        "efficient.hashing.shared_attention",
        lambda Q, V, mask: hashing.shared_attention(Q, V, mask),
        shared_attention,
        {"Q": Real("... n d_h"), "V": Real("... n d_v"), "mask": Maybe(Mask("n n", free=True))},
        relation="the mask does not enlarge the output",
    ),
    Entry(
        "efficient.reversible.Reversible",
        lambda dtype, X_1, X_2: layers(1)[0](X_1, X_2),
        lambda dtype, X_1, X_2: forwards(X_1, X_2),
        {"dtype": Precision(), "X_1": STATES, "X_2": STATES},
    ),
    Entry(
        "efficient.reversible.Reversible.inverse",
        lambda dtype, Y_1, Y_2: layers(1)[0].inverse(Y_1, Y_2),
        lambda dtype, Y_1, Y_2: backwards(Y_1, Y_2),
        {"dtype": Precision(), "Y_1": STATES, "Y_2": STATES},
    ),
    Entry(
        "efficient.reversible.run_reversible",
        lambda layers, X_1, X_2: reversible.run_reversible(layers, X_1, X_2),
        lambda layers, X_1, X_2: forwards(X_1, X_2, 3),
        {"layers": Other("reversible layers", lambda given: layers(3)), "X_1": STATES, "X_2": STATES},
    ),
]
