"""efficient.cost and efficient.online."""

import numpy as np
import torch

from smalltorch.efficient import cost, online

from .. import formulas as f
from ..judge import Entry, Outside
from ..kinds import Count, Flag, Maybe, Number, Other, Real


def weights(d, heads, d_ff, kv_heads, gated):
    kv_heads = heads if kv_heads is None else kv_heads
    if min(d, heads, d_ff, kv_heads) < 1 or d % heads or heads % kv_heads:
        raise Outside("heads that share the width")
    return d * d + 2 * d * (d * kv_heads / heads) + d * d + (d_ff * d * 3 if gated else d_ff * d * 2)


def in_parts(Q, K, V, size, causal, scale):
    if causal and Q.shape[-2] != K.shape[-2]:
        raise Outside("keys for the queries")
    mask = np.tril(np.ones((Q.shape[-2], K.shape[-2]), dtype=bool)) if causal else None
    return f.attention(Q, K, V, mask, scale)[0]


RUN = Other("a function without arguments", lambda given: lambda: (torch.ones(3, 4, requires_grad=True).exp()).sum())

ENTRIES = [
    Entry(
        "efficient.cost.layer_weights",
        lambda **sizes: cost.layer_weights(**sizes),
        weights,
        {"d": Count(12), "heads": Count(6), "d_ff": Count(5), "kv_heads": Maybe(Count(2)), "gated": Flag(True)},
    ),
    Entry(
        "efficient.cost.layer_flops",
        lambda **sizes: cost.layer_flops(**sizes),
        lambda n, d, weights, causal: n * (2 * weights + (2 * (n + 1) * d if causal else 4 * n * d)),
        {"n": Count(5), "d": Count(12), "weights": Count(100), "causal": Flag(True)},
    ),
    Entry(
        "efficient.cost.crossover",
        lambda **sizes: cost.crossover(**sizes),
        lambda d, weights: weights / d / 2,
        {"d": Count(12), "weights": Count(100)},
    ),
    Entry(
        "efficient.cost.kept_floats",
        lambda **sizes: cost.kept_floats(**sizes),
        lambda n, d, heads, d_ff, stored: (
            n * (d + 2 + d + 3 * d + d + d + 2 + d + 2 * d_ff + heads * (n if stored else 1))
        ),
        {"n": Count(5), "d": Count(12), "heads": Count(3), "d_ff": Count(7), "stored": Flag(False)},
    ),
    Entry(
        "efficient.cost.peak_bytes",
        lambda call: cost.peak_bytes(call),
        lambda call: 4 * (12 + 12 + 1),
        {"call": RUN},
    ),
    Entry(
        "efficient.cost.kept_bytes",
        lambda call, besides: cost.kept_bytes(call, besides),
        lambda call, besides: 4 * 12,
        {
            "call": RUN,
            "besides": Other("tensors", lambda given: [torch.ones(2)], ("type", "of a number", lambda _: [3])),
        },
    ),
    Entry(
        "efficient.online.chunked_attention",
        lambda Q, K, V, size, causal, scale: online.chunked_attention(Q, K, V, size, causal, scale),
        in_parts,
        {
            "Q": Real("... query d_h"),
            "K": Real("... key d_h"),
            "V": Real("... key d_v"),
            "size": Count(2),
            "causal": Flag(True),
            "scale": Maybe(Number(0.7)),
        },
        sizes=dict(query=3, key=3),
        relation="a key for each query, where it is causal",
        also=("S",),
    ),
]
