"""What stands in for the softmax in SmolLM2's heads, by random features and at equal cost: the error of what is read.

    python -m smalltorch.experiments.stand_ins --workers 1     # the whole table, a minute of one core

The heads read passages of 128 tokens of the book's unrelated sentences, and their last 64 queries count. The error of a
head is that of what it reads, relative to the length of what it should read, all 64 queries together; the table,
`stand_ins.csv`, has the median over all 270 heads for each passage, stand-in and size.

Passages 0 to 5 are read by random features, 16 to 1,024 of them: `as they are`; `keys moved, orthogonal`, where one
vector is added to all keys of a head, so that queries and keys are nearly opposite, and the rows of the features are
orthogonal; and `a quarter as long`, which is another attention, with queries and keys a quarter as long. Beside them
stand the 16 nearest keys and the first one (`nearest`). Passages 6 to 11 are read at the cost of 4, 16 or 32 keys for
each query: the largest weights, the nearest matrix of that rank, the first token and the nearest, keys by lot, positive
features, and random columns, A G Gᵀ in place of A with entries of G of variance 1/s.

Chapter `kernels` states its contrasts.
"""

import math
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from smalltorch import data
from smalltorch.attention import MultiHead, causal_mask
from smalltorch.efficient.kernels import orthogonal_rows
from smalltorch.efficient.sparse import top_mask
from smalltorch.engine.sample import generator, normal
from smalltorch.experiments import runner
from smalltorch.experiments.runner import Case, Experiment
from smalltorch.experiments.table import Row
from smalltorch.files import in_one_line
from smalltorch.models import observe
from smalltorch.shapes import check_integers
from smalltorch.weights import load, tokens_of

KEYS, FIRST, LAST, D_H = 128, 256, 64, 64  # tokens of a passage; where the first one begins; queries that count
BY_FEATURES, ALL = 6, 12  # passages
FEATURES, SIZES, NEAREST = (16, 64, 256, 1024), (4, 16, 32), 16
WAYS = ("as they are", "keys moved, orthogonal", "a quarter as long")
COLUMNS = ("passage", "way", "size", "error")
HIDDEN = ~causal_mask(KEYS)[-LAST:]

Heads = Float[Tensor, "head n d_h"]
Weights = Float[Tensor, "head query key"]


@cache
def _model() -> tuple[Any, Any]:
    return load("smollm2")


def _heads_of(passage: int) -> tuple[Heads, Heads, Heads]:
    """Q, K and V of all heads; half of the scale is put into the queries and half into the keys."""
    model, tokenizer = _model()
    start = FIRST + passage * KEYS
    ids = tokens_of(tokenizer, " ".join(data.text("longer").splitlines()))[start : start + KEYS]
    with observe(model, MultiHead) as calls:
        model.states(torch.tensor([ids]))
    parts = zip(*([x[0] for x in call.module.project(call.inputs[0])] for call in calls), strict=True)
    Q, K, V = (torch.cat(part).double() for part in parts)
    return Q / Q.shape[-1] ** 0.25, K / K.shape[-1] ** 0.25, V


def _moved(Q: Heads, K: Heads) -> Heads:
    """Keys to which one vector is added, so that the means of queries and keys are opposite."""
    return K - Q.mean(-2, keepdim=True) - K.mean(-2, keepdim=True)


def _softmax_of(Q: Float[Tensor, "head query d_h"], K: Float[Tensor, "head key d_h"]) -> Weights:
    return (Q @ K.mT).masked_fill(HIDDEN, -math.inf).softmax(-1)


def _by_features(
    Q: Float[Tensor, "head query d_h"], K: Float[Tensor, "head key d_h"], W: Float[Tensor, "row d_h"]
) -> Weights:
    """The weights that positive features make, written out."""
    log_q, log_k = Q @ W.T, K @ W.T - K.square().sum(-1, keepdim=True) / 2
    products = (log_q - log_q.amax(-1, keepdim=True)).exp() @ (log_k - log_k.amax((-2, -1), keepdim=True)).exp().mT
    products = products * ~HIDDEN
    return products / products.sum(-1, keepdim=True)


def _only(A: Weights, mask: Bool[Tensor, "..."]) -> Weights:
    """The weights that stay, spread anew."""
    return A * mask / (A * mask).sum(-1, keepdim=True)


def _first_and_last(keys: int) -> Bool[Tensor, "query key"]:
    """The first key, and so many up to the query's own."""
    recent = ~torch.ones(KEYS, KEYS).tril(-keys).bool() | (torch.arange(KEYS) == 0)
    return recent[-LAST:] & ~HIDDEN


def _error(B: Weights, A: Weights, V: Heads) -> float:
    """The median head's error of what it reads by B in place of A."""
    return float((((B - A) @ V).square().sum((1, 2)) / (A @ V).square().sum((1, 2))).sqrt().median())


def _feature_errors(Q: Heads, K: Heads, V: Heads) -> Iterator[tuple[str, int, float]]:
    drawn = {m: normal(f"{m} rows of features", m, D_H) for m in FEATURES}
    blocks = {m: orthogonal_rows(m, D_H, generator(f"{m} orthogonal rows")) for m in FEATURES}
    for way, scale, rows_of in zip(WAYS, (1, 1, 1 / 4), (drawn, blocks, drawn), strict=True):
        q, k = scale * Q[:, -LAST:], scale * K
        A, keys = _softmax_of(q, k), _moved(Q, K) if way == WAYS[1] else k
        for m, W in rows_of.items():
            # three heads at a time, for all features of all heads at once would fill the caches
            made = [_by_features(*parts, W) for parts in zip(q.split(3), keys.split(3), strict=True)]
            yield way, m, _error(torch.cat(made), A, V)
    A = _softmax_of(Q[:, -LAST:], K)
    yield "nearest", NEAREST, _error(_only(A, _first_and_last(NEAREST)), A, V)


def _errors_at_equal_cost(Q: Heads, K: Heads, V: Heads, passage: int) -> Iterator[tuple[str, int, float]]:
    Q = Q[:, -LAST:]
    A = _softmax_of(Q, K)
    U, sizes, W = torch.linalg.svd(A, full_matrices=False)
    for s in SIZES:
        lot = torch.from_numpy(generator(f"keys by lot, {s} in {passage}").random(HIDDEN.shape)).masked_fill(HIDDEN, -1)
        G = normal(f"columns, {s} in {passage}", KEYS, s) / s**0.5
        made = {
            "largest weights": _only(A, top_mask(A, s)),
            "best rank": (U[..., :s] * sizes[..., None, :s]) @ W[..., :s, :],
            "first and nearest": _only(A, _first_and_last(s - 1)),
            "keys by lot": _only(A, top_mask(lot, s)),
            "features": _by_features(Q, K, normal(f"features, {s} in {passage}", s, D_H)),
            "random columns": A @ G @ G.T,
        }
        for name, B in made.items():
            yield name, s, _error(B, A, V)


@torch.no_grad()
def rows(passage: int) -> Iterator[Row]:
    """The table's lines for one passage.

    Raises:
        ValueError: for a passage that is none of the twelve.
    """
    check_integers(0, passage=passage)
    if passage >= ALL:
        raise ValueError(f"passage: expected one of {ALL}, from 0 on, got {passage}")
    heads = _heads_of(passage)
    found = _feature_errors(*heads) if passage < BY_FEATURES else _errors_at_equal_cost(*heads, passage)
    for way, size, error in found:
        yield passage, way, size, f"{error:.6g}"


def experiment(arguments: Sequence[str] | None = None) -> Experiment:
    """The experiment that a command asks for; the table has all of it."""
    options = runner.parser(__doc__.splitlines()[0]).parse_args(arguments)
    cases: list[Case] = [{"passage": passage} for passage in range(ALL)]
    drawn = "rows and columns by their number, keys by lot by number and passage; the text: the book's sentences"
    return Experiment(__spec__.name, COLUMNS, COLUMNS[:3], cases, drawn, tolerance=1e-3, options=options)


if __name__ == "__main__":
    with in_one_line():
        runner.run(experiment())
