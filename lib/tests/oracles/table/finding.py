"""circuits."""

import numpy as np
import torch

from smalltorch import circuits, models
from smalltorch.attention import MultiHead

from .. import formulas as f
from ..judge import Entry, Outside
from ..kinds import Count, Mask, Number, Other, Precision, Real
from .machines import TOKENS, attention_outputs, decoder
from .parts import made


def causal(S):
    return f.softmax(np.where(np.tri(len(S), dtype=bool), S, -np.inf))


def induction(vocabulary, n, c, beta, g, copies):
    """The two softmaxes themselves, without states and weights."""
    if vocabulary < 1 or n < 2 or copies < 1 or not np.isfinite([float(c), float(beta), float(g)]).all():
        raise Outside("a token, two places and a copy at least; finite numbers")
    own = np.eye(vocabulary)[np.arange(n) % vocabulary]
    back = np.arange(n)[:, None] - 1 - np.arange(n)
    before = causal(c * np.cos(2 * np.pi * back / n)) @ own
    return g * causal(beta * (own @ before.T)) @ own


def looking_back(A, distance, rows):
    """A token at a time."""
    f.real(A)
    n = A.shape[-1]
    if distance < 0 or rows < 1 or rows + distance > n:
        raise Outside("rows with a token so far back")
    return sum(A[..., i, i - distance] for i in range(n - rows, n)) / rows


def observed(model, tokens):
    """What the heads add, which is the output of their layer."""
    with models.observe(model, MultiHead) as calls:
        model(tokens)
    heads = circuits.head_values(calls)
    return [H.transpose(-3, -2).flatten(-2) @ call.module.W_O for H, call in zip(heads, calls, strict=True)]


def with_heads_set(dtype, X, where, values):
    model = made(MultiHead, dtype, 4, 2, bias=True)
    with circuits.heads_set(model, where, values):
        output = model(X)[0]
    assert not model._forward_hooks
    return output


def heads_set(dtype, X, where, values):
    f.real(X, values)
    W = f.Weights(dtype)
    _, A, (_, V) = f.multi_head(W, X, 2, bias=True)
    H = np.moveaxis(np.where(where[0][..., None], values[0], A @ V), -3, -2)
    return H.reshape(*H.shape[:-2], 4) @ W("W_O", 4, 4) + W("b_O", 4)


def dichotomies(N, d):
    """By Cover's recurrence."""
    if N < 1 or d < 1:
        raise Outside("a point, and a dimension")
    if N == 1:
        return 2
    return dichotomies(N - 1, d) + (dichotomies(N - 1, d - 1) if d > 1 else 0)


ENTRIES = [
    Entry(
        "circuits.induction_lm",
        lambda vocabulary, n, **rest: circuits.induction_lm(vocabulary, n, **rest)(torch.arange(n)[None] % vocabulary)[
            0
        ],
        induction,
        {
            "vocabulary": Count(3),
            "n": Count(5, least=2),
            "c": Number(3.0),
            "beta": Number(2.0),
            "g": Number(4.0),
            "copies": Count(2),
        },
    ),
    Entry(
        "circuits.looking_back",
        lambda A, distance, rows: circuits.looking_back(A, distance, rows),
        looking_back,
        {"A": Real("... n n"), "distance": Count(1, least=0), "rows": Count(2)},
    ),
    Entry(
        "circuits.head_values",
        observed,
        lambda model, tokens: [output for output, _ in attention_outputs(tokens)],
        {"model": Other("module", lambda given: decoder()), "tokens": TOKENS},
    ),
    Entry(
        "circuits.heads_set",
        with_heads_set,
        heads_set,
        {
            "dtype": Precision(),
            "X": Real("batch n d"),
            "where": Mask("one batch head n"),
            "values": Real("one batch head n d_h"),
        },
        sizes={"one": 1, "d_h": 2},
        also=("output",),
    ),
    Entry(
        "circuits.dichotomies",
        lambda N, d: circuits.dichotomies(N, d),
        dichotomies,
        {"N": Count(6), "d": Count(3)},
    ),
]
