"""efficient."""

import numpy as np

from smalltorch.efficient import sparse

from ..judge import Entry
from ..kinds import Count, Mask, Real, Rng


def window(n, w, gap):
    offset = np.subtract.outer(np.arange(n), np.arange(n))
    return np.isin(offset, gap * np.arange(-w, w + 1))


def everywhere(n, g):
    mask = np.eye(n, dtype=bool)
    mask[:g] = mask[:, :g] = True
    return mask


def counts(mask):
    """What does not depend on the draw."""
    return mask.sum(1), mask.diagonal()


def top(S, k):
    n = S.shape[-1]
    first = (S[..., None, :] == S[..., None]) & np.tri(n, k=-1, dtype=bool)  # equal ones that stand before
    rank = ((S[..., None, :] > S[..., None]) | first).sum(-1)
    return (rank < k) & (S > -np.inf)


def rounds(mask, source):
    """Layers, one after the other."""
    layers = np.full(len(mask), np.inf)
    heard = np.arange(len(mask)) == source
    for layer in range(len(mask) + 1):
        layers = np.where(heard, np.minimum(layers, layer), layers)
        heard = heard | (mask & heard).any(1)
    return layers


ENTRIES = [
    Entry(
        "efficient.sparse.window_mask",
        lambda n, w, gap: sparse.window_mask(n, w, gap),
        window,
        {"n": Count("n"), "w": Count(2, least=0), "gap": Count(2)},
    ),
    Entry(
        "efficient.sparse.global_mask",
        lambda n, g: sparse.global_mask(n, g),
        everywhere,
        {"n": Count("n"), "g": Count(2, least=0)},
        where=lambda **a: a["g"] <= a["n"],
        relation="g ≤ n",
    ),
    Entry(
        "efficient.sparse.random_mask",
        lambda n, r, rng: counts(sparse.random_mask(n, r, rng)),
        lambda n, r, rng: (np.full(n, r + 1), np.ones(n, dtype=bool)),
        {"n": Count("n"), "r": Count(2, least=0), "rng": Rng()},
        where=lambda **a: a["r"] < a["n"],
        relation="r < n",
    ),
    Entry(
        "efficient.sparse.expander_mask",
        lambda n, degree, rng: counts(sparse.expander_mask(n, degree, rng)),
        lambda n, degree, rng: (np.full(n, degree + 1), np.ones(n, dtype=bool)),
        {"n": Count(24, least=16), "degree": Count(4, least=2), "rng": Rng()},
        where=lambda **a: a["degree"] % 2 == 0 and a["degree"] <= 12 and a["n"] >= 4 * a["degree"],
        relation="degree is even, at most 12 and a quarter of n",
    ),
    Entry(
        "efficient.sparse.top_mask",
        lambda S, k: sparse.top_mask(S, k),
        top,
        {"S": Real("... n m"), "k": Count(2)},
        sizes={"m": 5},
    ),
    Entry(
        "efficient.sparse.hops",
        lambda mask, source: sparse.hops(mask, source),
        rounds,
        {"mask": Mask("n n"), "source": Count(1, least=0)},
        where=lambda **a: a["source"] < len(a["mask"]),
        relation="source < n",
    ),
]
