"""attribute."""

import itertools

import numpy as np

from smalltorch import attribute

from .. import formulas as f
from ..judge import Entry, Outside
from ..kinds import Count, Real


def shapley(values):
    """An order at a time."""
    f.real(values)
    m = values.shape[-1].bit_length() - 1
    if m < 1 or values.shape[-1] != 2**m or not np.isfinite(values.astype(float)).all():
        raise Outside("a power of 2 of them, all finite")
    shares = [0 * values[..., 0] for _ in range(m)]
    orders = list(itertools.permutations(range(m)))
    for order in orders:
        inside = 0
        for i in order:
            shares[i] = shares[i] + (values[..., inside + 2**i] - values[..., inside]) / len(orders)
            inside += 2**i
    return np.stack(shares, -1)


def along_a_plane(x, baseline):
    f.real(x, baseline)
    if not (np.isfinite(x.astype(float)).all() and np.isfinite(baseline.astype(float)).all()):
        raise Outside("finite")
    return 3 * (x - baseline)


def relevance(x, W, R):
    f.real(x, W, R)
    if not all(np.isfinite(part.astype(float)).all() for part in (x, W, R)):
        raise Outside("finite")
    parts = x[..., :, None] * W
    total = parts.sum(-2, keepdims=True)
    if (total == 0).any():
        raise Outside("sums that are not 0")
    return (parts / total * R[..., None, :]).sum(-1)


def rollout(A):
    f.real(A)
    if not np.isfinite(A.astype(float)).all():
        raise Outside("finite")
    eye = np.eye(A.shape[-1])
    product = eye + 0 * A[..., :1, :, :].sum(-3)
    for k in range(A.shape[-3]):
        product = (A[..., k, :, :] + eye) / 2 @ product
    return product


ENTRIES = [
    Entry(
        "attribute.shapley",
        lambda values: attribute.shapley(values),
        shapley,
        {"values": Real("... coalitions")},
        sizes={"coalitions": 8},
    ),
    Entry(
        "attribute.integrated_gradients",
        lambda x, baseline, steps: attribute.integrated_gradients(
            lambda z: 3 * z.sum(tuple(range(1, z.ndim))), x, baseline, steps
        ),
        lambda x, baseline, steps: along_a_plane(x, baseline),
        {"x": Real("n d"), "baseline": Real("n d"), "steps": Count(4)},
    ),
    Entry(
        "attribute.relevance",
        lambda x, W, R: attribute.relevance(x, W, R),
        relevance,
        {"x": Real("... d"), "W": Real("d d_v"), "R": Real("... d_v")},
    ),
    Entry("attribute.rollout", lambda A: attribute.rollout(A), rollout, {"A": Real("... layer n n")}),
]
