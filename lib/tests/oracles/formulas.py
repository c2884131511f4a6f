"""What the library computes, written a second time: for arrays of float64, and for arrays of mpmath's numbers.

Nothing of the library is called. Weights are known by name and shape: a module is given those that `Weights` draws.
"""

import math
import zlib
from collections.abc import Callable

import mpmath
import numpy as np
import torch
from torch import nn

from .judge import Outside


def lift(plain: Callable, exact: Callable) -> Callable:
    """A function of numbers, entry by entry, for both kinds of arrays."""
    each = np.frompyfunc(exact, 1, 1)
    return lambda x: np.asarray(each(x), dtype=object) if np.asarray(x).dtype == object else plain(x)


exp, log, sqrt, tanh = (lift(getattr(np, f), getattr(mpmath, f)) for f in ("exp", "log", "sqrt", "tanh"))
erf = lift(np.vectorize(math.erf, otypes=[float]), mpmath.erf)
cos, sin = (np.vectorize(getattr(math, f), otypes=[float]) for f in ("cos", "sin"))


def T(x):
    return np.swapaxes(x, -1, -2)


def real(*arrays):
    """Refuse what is no number to compute with."""
    if any(np.asarray(x).dtype.kind == "c" for x in arrays):
        raise Outside("complex")


# --- weights ----------------------------------------------------------------------------------------------------------


class Weights:
    """A parameter's numbers, from its name and shape; `times` a factor."""

    def __init__(self, dtype: torch.dtype = torch.float64, prefix: str = "", times: float = 1):
        self.dtype, self.prefix, self.times = dtype, prefix, times

    def __call__(self, name: str, *shape: int) -> np.ndarray:
        rng = np.random.default_rng([zlib.crc32((self.prefix + name).encode()), *shape])
        return self.times * torch.from_numpy(0.5 * rng.standard_normal(shape)).to(self.dtype).double().numpy()

    def of(self, part: str) -> "Weights":
        return Weights(self.dtype, f"{self.prefix}{part}.", self.times)


def fill(model: nn.Module, dtype: torch.dtype = torch.float64) -> nn.Module:
    """The module with those weights."""
    weights = Weights(dtype)
    with torch.no_grad():
        for name, parameter in model.to(dtype).named_parameters():
            parameter.copy_(torch.from_numpy(weights(name, *parameter.shape)))
    return model.eval()


# --- the parts --------------------------------------------------------------------------------------------------------


def softmax(S, axis=-1):
    real(S)
    if S.ndim == 0:
        return softmax(S.reshape(1)).reshape(())
    if S.shape[axis] == 0:
        raise Outside("an axis of numbers")
    top = S.max(axis, keepdims=True)
    E = exp(S - np.where(top == -math.inf, 0, top))
    Z = E.sum(axis, keepdims=True)
    return E / np.where(Z == 0, 1, Z)


def causal(n, past=0):
    return np.tri(past + n, dtype=bool)[past:]


def attention(Q, K, V, mask=None, scale=None):
    real(Q, K, V)
    S = Q @ T(K) * (1 / math.sqrt(Q.shape[-1]) if scale is None else scale)
    if mask is not None:
        if np.broadcast_shapes(mask.shape, S.shape) != S.shape or mask.ndim < 2:
            raise Outside("a mask must not enlarge the output")
        S = np.where(mask, S, -math.inf)
    A = softmax(S)
    return A @ V, A


def layer_norm(X, gamma=None, beta=None, eps=1e-5, convention="inside"):
    real(X, *(x for x in (gamma, beta) if x is not None))
    centred = X - X.mean(-1, keepdims=True)
    variance = (centred**2).mean(-1, keepdims=True)
    Y = centred / (sqrt(variance + eps) if convention == "inside" else sqrt(variance) + eps)
    return (1 if gamma is None else gamma) * Y + (0 if beta is None else beta)


def rms_norm(X, gamma=None, eps=1e-6):
    real(X, *(x for x in (gamma,) if x is not None))
    return (1 if gamma is None else gamma) * X / sqrt((X**2).mean(-1, keepdims=True) + eps)


def gelu(x):
    return x / 2 * (1 + erf(x / math.sqrt(2)))


def gelu_tanh(x):
    return x / 2 * (1 + tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def silu(x):
    return x / (1 + exp(-x))


def relu(x):
    return np.maximum(x, 0)


def heads_of(X, heads):
    """(..., n, heads d_h) to (..., heads, n, d_h)."""
    return np.moveaxis(X.reshape(*X.shape[:-1], heads, X.shape[-1] // heads), -2, -3)


def multi_head(W, X, heads, memory=None, mask=None, cache=None, kv_heads=None, bias=False, rope_base=None):
    """The output, A, and the cache afterwards."""
    d, kv_heads = X.shape[-1], kv_heads or heads
    Y, width = X if memory is None else memory, d // heads * kv_heads
    real(X, Y)
    b = {which: W(f"b_{which}", size) if bias else 0 for which, size in zip("QKVO", (d, width, width, d), strict=True)}
    Q = heads_of(X @ W("W_Q", d, d) + b["Q"], heads)
    K, V = (heads_of(Y @ W(f"W_{which}", d, width) + b[which], kv_heads) for which in "KV")
    past = cache[0].shape[-2] if cache else 0
    if rope_base is not None:
        Q, K = rope(Q, rope_base, past), rope(K, rope_base, past)
    if cache:
        if len(cache) != 2 or cache[0].shape != cache[1].shape or cache[0].shape[:-2] != K.shape[:-2]:
            raise Outside("cache")
        K, V = np.concatenate([cache[0], K], -2), np.concatenate([cache[1], V], -2)
    H, A = attention(Q, *(np.repeat(x, heads // kv_heads, -3) for x in (K, V)), mask)
    H = np.moveaxis(H, -3, -2)
    return H.reshape(*H.shape[:-2], d) @ W("W_O", d, d) + b["O"], A, [K, V]


def ffn(W, X, d_ff, activation=gelu):
    real(X)
    d = X.shape[-1]
    return activation(X @ W("W_1", d, d_ff) + W("b_1", d_ff)) @ W("W_2", d_ff, d) + W("b_2", d)


def swiglu(W, X, d_ff):
    real(X)
    d = X.shape[-1]
    return (silu(X @ W("W_gate", d, d_ff)) * (X @ W("W_up", d, d_ff))) @ W("W_down", d_ff, d)


def norm_of(W, X, eps=1e-5):
    return layer_norm(X, W("gamma", X.shape[-1]), W("beta", X.shape[-1]), eps)


def rms_of(W, X, eps=1e-6):
    return rms_norm(X, W("gamma", X.shape[-1]), eps)


def pre_ln(W, X, attend, feed, norm):
    """The output, and what `attend` gave besides."""
    H, *rest = attend(W.of("attention"), norm(W.of("norm_1"), X))
    X = X + H
    return X + feed(W.of("ffn"), norm(W.of("norm_2"), X)), *rest


def post_ln(W, X, attend, feed, norm):
    H, *rest = attend(W.of("attention"), X)
    X = norm(W.of("norm_1"), X + H)
    return norm(W.of("norm_2"), X + feed(W.of("ffn"), X)), *rest


def b2t(W, X, attend, feed, norm):
    A, *rest = attend(W.of("attention"), X)
    H = norm(W.of("norm_1"), X + A)
    return norm(W.of("norm_2"), X + (H + feed(W.of("ffn"), H))), *rest


def deep_norm(W, X, attend, feed, norm, alpha):
    H, *rest = attend(W.of("attention"), X)
    H = norm(W.of("norm_1"), H + X * alpha)
    return norm(W.of("norm_2"), feed(W.of("ffn"), H) + H * alpha), *rest


def cross_post_ln(W, X, memory, heads, d_ff, eps=1e-5, mask=None, memory_mask=None, cache=None):
    H, _, kept = multi_head(W.of("attention"), X, heads, mask=mask, cache=cache, bias=True)
    X = norm_of(W.of("norm_1"), X + H, eps)
    H, _, _ = multi_head(W.of("cross"), X, heads, memory, memory_mask, bias=True)
    X = norm_of(W.of("norm_2"), X + H, eps)
    return norm_of(W.of("norm_3"), X + ffn(W.of("ffn"), X, d_ff, relu), eps), kept


# --- steps ------------------------------------------------------------------------------------------------------------


def adam_steps(G, beta_1=0.9, beta_2=0.999, eps=1e-8):
    """Each step by the sums that the running means stand for."""
    real(G)
    if G.ndim != 2 or len(G) == 0 or not (0 <= beta_1 < 1 and 0 <= beta_2 < 1 and eps > 0):
        raise Outside("steps")
    found = []
    for t in range(1, len(G) + 1):
        ages = np.arange(t)[::-1, None]
        m, v = (
            (float(b) ** ages * G[:t] ** k).sum(0) / (float(b) ** ages).sum() for b, k in ((beta_1, 1), (beta_2, 2))
        )
        found.append(m / (v**0.5 + eps))
    return np.stack(found)


def adafactor_steps(G):
    """Row and column sums of one weighted sum of squares."""
    real(G)
    if G.ndim != 3 or 0 in G.shape:
        raise Outside("gradients")
    found, V = [], 0 * G[0]
    for t, g in enumerate(G, 1):
        share = float(t) ** -0.8
        V = V + share * (g**2 + 1e-30 - V)
        found.append(g * (V.sum() / (V.sum(1)[:, None] * V.sum(0))) ** 0.5)
    return np.stack(found)


def sm3_bounds(G):
    """The lesser of the largest of the row and the largest of the column, with what is new."""
    real(G)
    if G.ndim != 3 or 0 in G.shape:
        raise Outside("gradients")
    found = [G[0] ** 2]
    for g in G[1:]:
        before = found[-1]
        found.append(np.minimum(before.max(1)[:, None] + g**2, before.max(0) + g**2))
    return np.stack(found)


def lion_steps(G):
    """Signs of sums with the weights that the running mean stands for."""
    real(G)
    if G.ndim != 2 or 0 in G.shape:
        raise Outside("gradients")
    found = []
    for t in range(len(G)):
        ages = np.arange(t)[::-1, None]
        mixed = 0.1 * G[t] + 0.009 * (0.99**ages * G[:t]).sum(0)
        found.append((mixed > 0).astype(float) - (mixed < 0).astype(float))
    return np.stack(found)


def adam_mini_steps(G):
    """Each step by the sums that the running means stand for."""
    real(G)
    if G.ndim != 3 or 0 in G.shape:
        raise Outside("gradients")
    found = []
    for t in range(1, len(G) + 1):
        ages = np.arange(t)[::-1, None, None]
        m = (0.9**ages * G[:t]).sum(0) / (0.9**ages).sum()
        v = (0.999**ages * G[:t] ** 2).sum(0).sum(1) / (0.999**ages).sum() / G.shape[2]
        found.append(m / (v[:, None] ** 0.5 + 1e-8))
    return np.stack(found)


# --- positions --------------------------------------------------------------------------------------------------------


def rope(X, base=10_000.0, start=0):
    real(X)
    n, d = X.shape[-2:]
    if d % 2:
        raise Outside("pairs")
    angle = np.arange(start, start + n)[:, None] * base ** (-2 * np.arange(d // 2) / d)
    c, s, x, y = cos(angle), sin(angle), X[..., : d // 2], X[..., d // 2 :]
    return np.concatenate([x * c - y * s, x * s + y * c], -1)


def sinusoids(n, d, start=0):
    if d == 0:
        return np.zeros((n, 0))
    angle = np.arange(start, start + n)[:, None] / 10_000.0 ** (np.arange(0, d + 1, 2) / d)
    codes = np.empty((n, 2 * angle.shape[1]))
    codes[:, 0::2], codes[:, 1::2] = sin(angle) if n else 0, cos(angle) if n else 0
    return codes[:, :d]


def tape(n, d):
    codes = np.empty((n, d))
    for p in range(n):
        for column in range(d):
            angle = p * (d / n) / 10_000.0 ** (2 * (column // 2) / d)
            codes[p, column] = math.cos(angle) if column % 2 else math.sin(angle)
    return codes


def frequencies(d_h, base=10_000.0):
    if d_h % 2:
        raise Outside("pairs")
    return np.array([base ** (-2 * i / d_h) for i in range(d_h // 2)])


def rotated(X, angle):
    real(X, angle)
    if X.shape[-1] != 2 * angle.shape[1]:
        raise Outside("an angle for each pair")
    c, s = (wave(angle.astype(float)) for wave in (np.cos, np.sin))
    x, y = np.split(X, 2, -1)
    return np.concatenate([x * c - y * s, x * s + y * c], -1)


def dynamic_ntk(d_h, base, factor, trained, n):
    if n <= trained:
        return frequencies(d_h, base), 1.0
    with mpmath.workdps(40):
        grown = mpmath.mpf(base) * (mpmath.mpf(factor) * n / trained - (factor - mpmath.mpf(1))) ** (
            mpmath.mpf(d_h) / (d_h - 2)
        )
        return np.array([float(grown ** (-2 * mpmath.mpf(i) / d_h)) for i in range(d_h // 2)]), 1.0


def yarn(d_h, base, factor, trained, fast, slow):
    """From pair to pair; the ends of the ramp are where base^(2i/d_h) is the trained length over 2 pi turns."""
    low, high = (
        math.log(trained / (2 * math.pi * turns), base) * d_h / 2 if base > 1 else math.nan for turns in (fast, slow)
    )
    low, high = max(math.floor(low), 0), min(math.ceil(high), d_h - 1)
    theta = frequencies(d_h, base)
    for i in range(len(theta)):
        slowed = min(max((i - low) / (high - low if high != low else 0.001), 0), 1)
        theta[i] *= 1 - slowed * (1 - 1 / factor)
    return theta, 1 + math.log(factor) / 10


def llama3(d_h, base, factor, trained, low, high):
    theta = frequencies(d_h, base)
    for i in range(len(theta)):
        length = 2 * math.pi / theta[i]
        if length * low > trained:
            theta[i] /= factor
        elif length * high > trained:
            kept = (trained / length - low) / (high - low)
            theta[i] *= kept + (1 - kept) / factor
    return theta, 1.0


def longrope(d_h, base, stretch, factor, trained):
    real(stretch)
    if not (np.isfinite(stretch.astype(float)) & (stretch > 0)).all():
        raise Outside("positive")
    theta = frequencies(d_h, base)
    if stretch.shape != theta.shape:
        raise Outside("a number for each pair")
    return theta / stretch, math.sqrt(1 + math.log(factor, trained))


def offsets(n):
    return np.array([[j - i for j in range(n)] for i in range(n)])


def by_offset(n, table):
    """Of shape (n, n, width)."""
    k, even = divmod(len(table) - 1, 2)
    if even or k < 0:
        raise Outside("a row for each offset")
    return np.array([[table[min(max(j - i, -k), k) + k] for j in range(n)] for i in range(n)])


def shaw_logits(Q, table):
    real(Q, table)
    vectors = by_offset(Q.shape[-2], table)
    return (Q[..., :, None, :] * vectors).sum(-1)


def shaw_values(A, table):
    real(A, table)
    vectors = by_offset(A.shape[-1], table)
    return (A[..., None] * vectors).sum(-2)


def t5_bucket(offset, buckets, furthest, causal):
    if not causal:
        return (buckets // 2 if offset > 0 else 0) + t5_bucket(-abs(offset), buckets // 2, furthest, True)
    distance, small = max(-offset, 0), buckets // 2
    if distance < small:
        return distance
    grown = mpmath.log(mpmath.mpf(distance) / small) / mpmath.log(mpmath.mpf(furthest) / small) * (buckets - small)
    return min(small + int(mpmath.floor(grown + mpmath.mpf(10) ** -30)), buckets - 1)


def t5_buckets(n, buckets=32, furthest=128, causal=False):
    side = buckets if causal else buckets // 2
    if buckets % 2 or side < 2 or furthest <= side // 2:
        raise Outside("buckets")
    return np.array([[t5_bucket(j - i, buckets, furthest, causal) for j in range(n)] for i in range(n)])


def t5_bias(table, n, furthest=128, causal=False):
    real(table)
    return np.moveaxis(table[t5_buckets(n, len(table), furthest, causal)], -1, 0)


def alibi_slopes(heads):
    """As in the paper's code: by recursion."""
    power = 2 ** int(math.log2(heads))
    slopes = [2 ** (-8 * (h + 1) / power) for h in range(power)]
    return np.array(slopes if power == heads else [*slopes, *alibi_slopes(2 * power)[::2][: heads - power]])


def alibi_bias(n, heads):
    return -alibi_slopes(heads)[:, None, None] * abs(offsets(n))


def tupe_logits(P, U_Q, U_K):
    real(P, U_Q, U_K)
    return P @ U_Q @ T(P @ U_K) / math.sqrt(2 * U_Q.shape[-1])


def erpe(A, w):
    real(A, w)
    n = A.shape[-1]
    if w.shape[-1] != 2 * n - 1:
        raise Outside("a number for each offset")
    return A + np.stack([w[..., i : i + n][..., ::-1] for i in range(n)], -2)


def axial(rows, columns):
    real(rows, columns)
    return np.array([[*row, *column] for row in rows for column in columns])


def tree_codes(paths, branches, depth):
    codes = np.zeros((len(paths), branches * depth))
    for code, path in zip(codes, paths, strict=True):
        for choice in path:
            code[branches:] = code[:-branches].copy()
            code[:branches] = np.eye(branches)[choice]
    return codes


def graph(G):
    """Its weights, in units of the largest."""
    real(G)
    whole = np.asarray(G / G.max() if G.size and G.max() > 0 else G, dtype=float)
    if not np.isfinite(whole).all() or (whole < 0).any() or (whole != whole.T).any() or not whole.any(0).all():
        raise Outside("a graph")
    return whole


def laplacian(G):
    """Eigenvalues, the matrix, and the products of its eigenvectors."""
    degree = graph(G).sum(0)
    L = np.eye(len(G)) - graph(G) / np.sqrt(np.outer(degree, degree))
    return np.linalg.eigvalsh(L), L, np.eye(len(G))


def random_walk_codes(G, steps):
    walk = graph(G) / graph(G).sum(1, keepdims=True)
    return np.stack([np.linalg.matrix_power(walk, k).diagonal() for k in range(1, steps + 1)], 1)


def graph_distances(G):
    """Floyd and Warshall's."""
    distance = np.where(graph(G) > 0, 1.0, math.inf)
    np.fill_diagonal(distance, 0)
    for k in range(len(G)):
        distance = np.minimum(distance, distance[:, k, None] + distance[None, k])
    return distance


def spe_kernel(n, frequency, gain, phase):
    real(frequency, gain, phase)
    if not ((frequency >= 0) & (frequency <= 0.5)).all():
        raise Outside("turns")
    angles = 2 * math.pi * frequency * -offsets(n)[..., None] + phase
    return (gain**2 * cos(angles) if n else np.zeros((0, 0, 1))).sum(-1)


# --- the machines -----------------------------------------------------------------------------------------------------


def decoder(
    W,
    tokens,
    vocabulary,
    d,
    layers,
    heads,
    d_ff,
    kv_heads=None,
    rope_base=1e4,
    eps=1e-6,
    tied=True,
    mask=None,
    cache=None,
):
    """Logits, states, A of every layer, caches."""
    X, A, kept = W("E", vocabulary, d)[tokens], [], []
    for layer in range(layers):
        own = cache[layer] if cache else None
        seen = causal(tokens.shape[1], own[0].shape[-2] if own else 0)
        if mask is not None:
            seen = seen & broadcast_mask(mask, (len(tokens), heads, *seen.shape))

        def attend(W, X, own=own, seen=seen):
            return multi_head(W, X, heads, mask=seen, cache=own, kv_heads=kv_heads, rope_base=rope_base)

        X, weights, keys = pre_ln(
            W.of(f"blocks.{layer}"), X, attend, lambda W, X: swiglu(W, X, d_ff), lambda W, X: rms_of(W, X, eps)
        )
        A.append(weights)
        kept.append(keys)
    X = rms_of(W.of("norm"), X, eps)
    return X @ (W("E", vocabulary, d).T if tied else W("W_U", d, vocabulary)), X, A, kept


def broadcast_mask(mask, shape):
    if mask.ndim < 2 or np.broadcast_shapes(mask.shape, shape) != shape:
        raise Outside("a mask must not enlarge the output")
    return np.broadcast_to(mask, shape)


def encoder(W, tokens, segments, vocabulary, d, layers, heads, d_ff, positions, segments_of=2, eps=1e-12, mask=None):
    """States and A of every layer."""
    n = tokens.shape[1]
    segments = 0 * tokens if segments is None else segments
    X = W("E", vocabulary, d)[tokens] + W("P", positions, d)[:n] + W("E_segment", segments_of, d)[segments]
    X, A = norm_of(W.of("norm"), X, eps), []
    if mask is not None:
        mask = broadcast_mask(mask, (len(tokens), heads, n, n))
    for layer in range(layers):
        X, weights, _ = post_ln(
            W.of(f"blocks.{layer}"),
            X,
            lambda W, X: multi_head(W, X, heads, mask=mask, bias=True),
            lambda W, X: ffn(W, X, d_ff),
            lambda W, X: norm_of(W, X, eps),
        )
        A.append(weights)
    return X, A


def gpt(W, tokens, vocabulary, d, layers, heads, positions, norm, d_ff=None, eps=1e-5, cache=None):
    """Logits and caches."""
    past = cache[0][0].shape[-2] if cache else 0
    n = tokens.shape[1]
    if past + n > positions:
        raise Outside("positions")
    X, kept = W("E", vocabulary, d)[tokens] + W("P", positions, d)[past : past + n], []
    for layer in range(layers):
        own = cache[layer] if cache else None
        X, _, keys = (pre_ln if norm == "pre" else post_ln)(
            W.of(f"blocks.{layer}"),
            X,
            lambda W, X, own=own: multi_head(W, X, heads, mask=causal(n, past), cache=own, bias=True),
            lambda W, X: ffn(W, X, d_ff or 4 * d, gelu_tanh),
            lambda W, X: norm_of(W, X, eps),
        )
        kept.append(keys)
    X = norm_of(W.of("norm"), X, eps) if norm == "pre" else X
    return X @ W("E", vocabulary, d).T, kept


def embedded(W, tokens, vocabulary, d, start=0):
    codes = torch.from_numpy(sinusoids(tokens.shape[1], d, start)).to(W.dtype).double().numpy()
    return W("E", vocabulary, d)[tokens] + codes


def memory_of(W, source, vocabulary, d, layers, heads, d_ff, mask=None):
    X = embedded(W, source, vocabulary, d)
    if mask is not None:
        mask = broadcast_mask(mask, (len(source), heads, source.shape[1], source.shape[1]))
    for layer in range(layers):
        X, *_ = post_ln(
            W.of(f"encoder.{layer}"),
            X,
            lambda W, X: multi_head(W, X, heads, mask=mask, bias=True),
            lambda W, X: ffn(W, X, d_ff, relu),
            norm_of,
        )
    return X


def decoded(W, target, memory, vocabulary, d, layers, heads, d_ff, memory_mask=None, cache=None):
    """Logits and caches."""
    past, n = cache[0][0].shape[-2] if cache else 0, target.shape[1]
    if np.broadcast_shapes(memory.shape[:-2], (len(target),)) != (len(target),):
        raise Outside("one memory for each row")
    X, kept = embedded(W, target, vocabulary, d, past), []
    for layer in range(layers):
        own = cache[layer] if cache else None
        X, keys = cross_post_ln(
            W.of(f"decoder.{layer}"), X, memory, heads, d_ff, mask=causal(n, past), memory_mask=memory_mask, cache=own
        )
        kept.append(keys)
    return X @ W("E", vocabulary, d).T / math.sqrt(d), kept


def ablation_layer(W, X, heads, d_ff, norm, residual, mlp, mask=None):
    def sublayer(X, f, number):
        def own_norm(Y):
            return Y if norm is None else norm_of(W.of(f"norm_{number}"), Y)

        Y = f(own_norm(X) if norm == "pre" else X)
        Y = X + Y if residual else Y
        return own_norm(Y) if norm == "post" else Y

    X = sublayer(X, lambda Y: multi_head(W.of("attention"), Y, heads, mask=mask)[0], 1)
    return sublayer(X, lambda Y: ffn(W.of("ffn"), Y, d_ff), 2) if mlp else X


def tiny_lm(
    W,
    tokens,
    vocabulary,
    positions,
    d=16,
    layers=2,
    heads=2,
    d_ff=None,
    norm="pre",
    residual=True,
    mlp=True,
    causal_mask=True,
):
    """Logits and states."""
    n = tokens.shape[1]
    if n > positions:
        raise Outside("positions")
    X = W("E", vocabulary, d)[tokens] + W("P", positions, d)[:n]
    for layer in range(layers):
        mask = causal(n) if causal_mask else None
        X = ablation_layer(W.of(f"layers.{layer}"), X, heads, d_ff or 4 * d, norm, residual, mlp, mask)
    X = norm_of(W.of("norm"), X) if norm == "pre" else X
    return X @ W("W_U", d, vocabulary), X


# --- probabilities ----------------------------------------------------------------------------------------------------


def blocks_of(P, m):
    """The probability of m consecutive tokens of the stationary source with transitions P."""
    V, k = P.shape[-1], P.ndim - 1
    T = np.zeros((V,) * (2 * k))
    for context in np.ndindex(*(V,) * k):
        for b in range(V):
            T[(*context, *context[1:], b)] = P[(*context, b)]
    T = T.reshape(V**k, V**k)
    pi = np.linalg.lstsq(np.vstack([T.T - np.eye(V**k), np.ones(V**k)]), np.r_[np.zeros(V**k), 1], rcond=None)[0]
    joint = pi.reshape((V,) * k)
    while joint.ndim < m:
        joint = joint[..., None] * P.reshape((1,) * (joint.ndim - k) + P.shape)
    return joint.sum(tuple(range(m, joint.ndim))) if joint.ndim > m else joint


def entropy(joint):
    return float(-(joint * np.log(joint)).sum())


def cross_entropy(logits, targets):
    real(logits)
    if targets.size != logits[..., 0].size or targets.size == 0:
        raise Outside("a target for each row of logits")
    targets = np.broadcast_to(targets, logits.shape[:-1])
    rows = np.log(softmax(logits)) if logits.dtype != object else log(softmax(logits))
    return -np.take_along_axis(rows, targets[..., None], -1).mean()


# --- measures ---------------------------------------------------------------------------------------------------------


def residual(X):
    real(X)
    return X - X.mean(-2, keepdims=True)


def frobenius(X, axis=(-2, -1)):
    return sqrt((X**2).sum(axis))


def singular_values(X):
    """In descending order, along the last axis."""
    if X.dtype != object:
        return np.linalg.svd(X, compute_uv=False)
    found = [
        sorted(map(abs, mpmath.svd_r(mpmath.matrix(A.tolist()), compute_uv=False)), reverse=True)
        for A in X.reshape(-1, *X.shape[-2:])
    ]
    return np.array(found, dtype=object).reshape(*X.shape[:-2], -1)


def norm_2(A):
    return singular_values(A)[..., 0]


def spread(X):
    real(X)
    return np.asarray(frobenius(X[..., :, None, :] - X[..., None, :, :], -1)).max((-2, -1))


def composite_norm(R):
    real(R)
    return sqrt(abs(R).sum(-2).max(-1) * abs(R).sum(-1).max(-1))


def mean_cosine(X):
    real(X)
    n = X.shape[-2]
    length = sqrt((X**2).sum(-1, keepdims=True))
    if n < 2 or (length == 0).any():
        raise Outside("two tokens, none of them zero")
    cosines = X / length @ T(X / length)
    return (cosines.sum((-2, -1)) - np.trace(cosines, axis1=-2, axis2=-1)) / (n * (n - 1))


def nonzero(X):
    real(X)
    if (X == 0).all((-2, -1)).any() or 0 in X.shape[-2:]:
        raise Outside("not all zero")
    return X


# --- states that collapse: (mean, direction, log_scale) ---------------------------------------------------------------


def joined(state):
    mean, direction, log_scale = state
    real(mean, direction, log_scale)
    return mean[..., None, :] + exp(log_scale)[..., None, None] * direction


def layer(X, W_QK, W_VO, mask=None):
    real(X, W_QK, W_VO)
    X = X[..., None, :, :]
    S = X @ W_QK @ T(X)
    if mask is not None:
        S = np.where(mask, S, -math.inf)
    return (softmax(S) @ X @ W_VO).sum(-3)


def path_terms(X, P, W, paths):
    real(X, P, W)
    terms = []
    for path in paths:
        term = X
        for depth, head in enumerate(path):
            term = P[..., depth, head, :, :] @ term @ W[depth, head]
        terms.append(term)
    return np.stack(terms, -3)
