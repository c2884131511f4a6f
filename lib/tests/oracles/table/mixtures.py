"""experts."""

import itertools

import numpy as np

from smalltorch import block, experts

from .. import formulas as f
from ..judge import Entry, Outside
from ..kinds import Count, Flag, Maybe, Precision, Real

SIZES = {"E": 4}
S = Real("... n E")


def softmax(S):
    weights = f.exp(S - S.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def chosen(ranked, K):
    """1 where the expert is one of the token's K best."""
    if K > ranked.shape[-1]:
        raise Outside("no more than there are")
    best = np.argsort(-ranked, axis=-1, kind="stable")[..., :K]
    picked = np.zeros(ranked.shape)
    np.put_along_axis(picked, best, 1.0, -1)
    return picked


def gated(S, K, renormalise, bias=None):
    f.real(S)
    if any(not np.isfinite(np.asarray(x, dtype=float)).all() for x in (S, 0 if bias is None else bias)):
        raise Outside("finite logits")
    G = softmax(S) * (picked := chosen(S if bias is None else S + bias, K))
    if not renormalise:
        return G
    weights = f.exp(S - np.where(picked == 1, S, S.min()).max(-1, keepdims=True)) * picked
    return weights / weights.sum(-1, keepdims=True)


def kept(G, capacity):
    f.real(G)
    earlier = np.cumsum(G != 0, axis=-2)
    return np.where(earlier <= capacity, G, 0 * G)


def balanced(S, K):
    f.real(S)
    if not np.isfinite(np.asarray(S, dtype=float)).all():
        raise Outside("finite logits")
    load = chosen(S, K).mean(0) / K
    P = softmax(S).mean(0)
    return load, P, S.shape[-1] * (load * P).sum()


def mixed(dtype, d, X, K, renormalise):
    W = f.Weights(dtype)
    G = gated(X @ W("W_R", d, 3), K, renormalise)
    outputs = [f.swiglu(W.of(f"experts.{i}"), X, 5) for i in range(3)]
    return sum(G[..., i, None] * Y for i, Y in enumerate(outputs)) + f.swiglu(W.of("shared.0"), X, 5)


def of_library(dtype, d, X, K, renormalise):
    networks = [block.SwiGLU(d, 5) for _ in range(4)]
    return f.fill(experts.Mixture(d, networks[:3], K, renormalise, networks[3:]), dtype)(X)


def size(d, d_e, E, K, gated, shared):
    if K > E:
        raise Outside("no more than there are")
    matrices = [(d, d_e)] * (3 if gated else 2)
    one = sum(a * b for a, b in matrices)
    return sum([one] * (E + shared)) + d * E, sum([one] * (K + shared)) + d * E


def dropped(n, E, capacity):
    """Over all choices of all tokens."""
    loads = [[choices.count(i) for i in range(E)] for choices in itertools.product(range(E), repeat=n)]
    return sum(max(load - capacity, 0) for batch in loads for load in batch) / len(loads) / n


ENTRIES = [
    Entry(
        "experts.gates",
        lambda **a: experts.gates(**a),
        gated,
        {"S": S, "K": Count(2), "renormalise": Flag(False), "bias": Maybe(Real("E"))},
        sizes=SIZES,
    ),
    Entry(
        "experts.within_capacity",
        lambda **a: experts.within_capacity(**a),
        kept,
        {"G": S, "capacity": Count(1, least=0)},
        sizes=SIZES,
    ),
    Entry(
        "experts.balance", lambda **a: experts.balance(**a), balanced, {"S": Real("n E"), "K": Count(1)}, sizes=SIZES
    ),
    Entry(
        "experts.Mixture",
        of_library,
        mixed,
        {"dtype": Precision(), "d": Count("d"), "X": Real("... n d"), "K": Count(2), "renormalise": Flag(True)},
        where=lambda d, X, **_: X.shape[-1] == d,
    ),
    Entry(
        "experts.mixture_size",
        lambda **a: experts.mixture_size(**a),
        size,
        {
            "d": Count(4),
            "d_e": Count(5),
            "E": Count(8),
            "K": Count(2),
            "gated": Flag(True),
            "shared": Count(1, least=0),
        },
    ),
    Entry(
        "experts.dropped_share",
        lambda **a: experts.dropped_share(**a),
        dropped,
        {"n": Count(5), "E": Count(3), "capacity": Count(1, least=0)},
    ),
]
