"""cache."""

import numpy as np
import torch
from torch import nn

from smalltorch import cache
from smalltorch.models import Decoder

from .. import formulas as f
from ..judge import Entry, Outside
from ..kinds import Count, Mask, Other, Precision, Real
from .machines import TOKENS, decoder


def attend(Q, K, V, bias):
    f.real(Q, K, V, bias)
    S = Q @ f.T(K) / np.sqrt(Q.shape[-1]) + bias[..., None, :]
    return f.softmax(S) @ V


def merged(K, V, keep):
    """Entry by entry, as loops."""
    f.real(K, V)
    if not all(np.isfinite(X.astype(float)).all() for X in (K, V)):
        raise Outside("finite entries")
    if max(K.ndim, V.ndim, keep.ndim + 1) > 2:
        batch = np.broadcast_shapes(K.shape[:-2], keep.shape[:-1])
        more = (0,) * (V.ndim - 2 - len(batch))  # keys and biases lack the axes that values alone have
        batch = np.broadcast_shapes(batch, V.shape[:-2])
        K, V, keep = (np.broadcast_to(x, (*batch, *x.shape[-k:])) for x, k in ((K, 2), (V, 2), (keep, 1)))
        keys, values, counts = (np.stack(part) for part in zip(*map(merged, K, V, keep), strict=True))
        return keys[more], values, counts[more]
    if not keep.any():
        raise Outside("something kept")
    home = [
        i if keep[i] else min(np.flatnonzero(keep), key=lambda j: ((K[i] - K[j]) ** 2).sum()) for i in range(len(K))
    ]
    members = [[i for i in range(len(K)) if home[i] == j] for j in range(len(K))]
    means = [np.array([X[m].mean(0) if m else X[j] for j, m in enumerate(members)]) for X in (K, V)]
    return *means, np.array([float(len(m)) for m in members])


def merged_counts(K, V, keep):
    K, V, bias = cache.merged(K, V, keep)
    return K, V, bias.exp()


def quantised(X, bits, dim):
    f.real(X)
    least, most = X.min(dim, keepdims=True), X.max(dim, keepdims=True)
    step = (most - least) / (2**bits - 1)
    step = np.where(step == 0, 1, step)
    return least + step * np.rint(((X - least) / step).astype(float))


def unread(dtype, model, tokens):
    """The cache of no tokens."""
    if not isinstance(model, Decoder):
        return []
    empty = [
        torch.zeros(
            tokens.shape[0] if isinstance(tokens, torch.Tensor) and not tokens.is_nested and tokens.ndim else 1,
            block.attention.kv_heads,
            0,
            block.attention.d_h,
            dtype=dtype,
        )
        for block in model.blocks
    ]
    return [(part, part, part.sum(-1)) for part in empty]


ENTRIES = [
    Entry(
        "cache.cache_bytes",
        lambda tokens, layers, numbers, bits: cache.cache_bytes(tokens, layers, numbers, bits),
        lambda tokens, layers, numbers, bits: tokens * layers * numbers * bits / 8,
        {"tokens": Count(5, least=0), "layers": Count(2), "numbers": Count(6), "bits": Count(4)},
    ),
    Entry(
        "cache.kept_bias",
        lambda keep: cache.kept_bias(keep).exp(),
        lambda keep: keep.astype(float),
        {"keep": Mask("...")},
    ),
    Entry(
        "cache.attend",
        lambda Q, K, V, bias: cache.attend(Q, K, V, bias),
        attend,
        {"Q": Real("... n d_h"), "K": Real("... m d_h"), "V": Real("... m d_v"), "bias": Real("... m")},
        sizes={"m": 5},
    ),
    Entry(
        "cache.merged",
        merged_counts,
        merged,
        {"K": Real("... n d_h"), "V": Real("... n d_v"), "keep": Mask("... n")},
        relation="something is kept",
    ),
    Entry(
        "cache.quantised",
        lambda X, bits: cache.quantised(X, bits, -2),
        lambda X, bits: quantised(X, bits, -2),
        {"X": Real("... n d"), "bits": Count(3)},
        where=lambda **a: a["bits"] <= 16,
        relation="at most 16 bits",
    ),
    Entry(
        "cache.continued",
        lambda dtype, model, tokens: cache.continued(model, tokens, unread(dtype, model, tokens), past=0),
        lambda dtype, model, tokens: decoder(dtype).double().states(torch.as_tensor(tokens)).detach().numpy(),
        {
            "dtype": Precision(),
            "model": Other(
                "Decoder", lambda given: decoder(given.dtype), ("type", "no transformer", lambda _: nn.Linear(3, 3))
            ),
            "tokens": TOKENS,
        },
    ),
]
