"""attention, norm, block, shapes."""

import math
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F

from smalltorch import attention, block, norm, shapes

from .. import formulas as f
from ..judge import Entry, Outside
from ..kinds import Bad, Choice, Count, Flag, Kind, Mask, Maybe, Number, Other, Precision, Real, Rng, Tokens


class Cache(Kind):
    """Keys and values of earlier tokens: of one block, or, as a list, of several."""

    words = "[], or [K, V] of the tokens before, for each block"
    typed = True

    def __init__(self, blocks: int | None = None, heads: int = 2, past: int = 2, d_h: int = 2, inside: bool = True):
        self.blocks, self.shape, self.inside = blocks, (heads, past, d_h), inside

    def pair(self, given, *shape):
        return [torch.from_numpy(given.rng.standard_normal(shape)).to(given.dtype) for _ in "KV"]

    def draw(self, given):
        if not given.full:
            return []
        if self.blocks is None:
            return self.pair(given, *given.batch, *self.shape)
        return [self.pair(given, given.sizes["batch"], *self.shape) for _ in range(self.blocks)]

    def bad(self, value, given):
        if given.dtype != torch.float64:
            return

        if self.blocks is not None:
            yield Bad("size", "a block less", value[1:], outside=True)
            yield Bad("size", "a block more", [*value, value[0]], outside=True)
        yield Bad("type", "a number", 3, outside=True)
        if not self.inside:  # what is in it is not looked at
            return

        def each(change):
            return change(*value) if self.blocks is None else [change(*pair) for pair in value]

        for kind, note, change in (
            ("size", "V shorter", lambda K, V: [K, V[..., 1:, :]]),
            ("size", "K only", lambda K, V: [K]),
            ("size", "another batch", lambda K, V: [torch.cat([x, x]) for x in (K, V)]),
            ("size", "another head", lambda K, V: [torch.cat([x, x], -3) for x in (K, V)]),
            ("size", "wider heads", lambda K, V: [torch.cat([x, x], -1) for x in (K, V)]),
            ("rank", "an axis less", lambda K, V: [K[0], V[0]]),
            ("half", "this one only", lambda K, V: [K.half(), V.half()]),
            ("meta", "", lambda K, V: [K.to("meta"), V.to("meta")]),
        ):
            yield Bad(kind, note, each(change), outside=kind != "meta")


def made(kind, dtype, *arguments, **options):
    """A module with the oracle's weights."""
    return f.fill(kind(*arguments, **options), dtype)


def with_cache(module, X, cache, *others, **options):
    """The module's results, and the cache that it leaves."""
    found = module(X, *others, cache=cache, **options)
    return [*(found if isinstance(found, tuple) else (found,)), cache]


def multi_head(dtype, d, heads, kv_heads, bias, rope_base, X, mask, cache):
    return with_cache(made(attention.MultiHead, dtype, d, heads, kv_heads, bias, rope_base), X, cache, None, mask)


def multi_head_oracle(dtype, d, heads, kv_heads, bias, rope_base, X, mask, cache):
    return f.multi_head(f.Weights(dtype), X, heads, None, mask, cache, kv_heads, bias, rope_base)


def divisors(d, heads, kv_heads=None, **_):
    return d % heads == 0 and heads % (kv_heads or heads) == 0


def attend(heads, **options):
    return lambda W, X: f.multi_head(W, X, heads, bias=True, **options)[::2]


def block_of(kind):
    """A call of a block that is put together from its parts."""

    def call(dtype, attention, ffn, norm_1, norm_2, X, mask, cache):
        return with_cache(made(kind, dtype, attention, ffn, norm_1, norm_2), X, cache, mask=mask)

    return call


def block_oracle(order):
    def oracle(dtype, X, mask, cache, **parts):
        return order(f.Weights(dtype), X, attend(2, mask=mask, cache=cache), lambda W, X: f.ffn(W, X, 5), f.norm_of)

    return oracle


def module(words, make):
    """A module as an argument. Of what is none, Python says that it cannot be called."""
    return Other(words, make, types=False)


STATES = Real("... n d")
MASK = Mask("... one #n #m", free=True)  # the same for all heads
BLOCK = {
    "dtype": Precision(),
    "attention": module("MultiHead", lambda given: attention.MultiHead(4, 2, bias=True)),
    "ffn": module("module", lambda given: block.FFN(4, 5)),
    "norm_1": module("module", lambda given: norm.LayerNorm(4)),
    "norm_2": module("module", lambda given: norm.LayerNorm(4)),
    "X": STATES,
    "mask": Maybe(MASK),
    "cache": Cache(),
}
CACHED = {"m": 5}  # the tokens of X, and two before


def init(d_in, d_out):
    """torch's own numbers, from the same seed."""
    return torch.randn(d_in, d_out) / math.sqrt(d_in)


class Tensors(Real):
    """Tensors of any kind, for what only looks at them: numbers that are there."""

    def bad(self, x, given):
        wanted = ("rank", "strided", "nan", "inf", "extreme")
        yield from (bad for bad in super().bad(x, given) if bad.kind in wanted and not bad.outside)


def sizes_of(Q, K):
    f.real(Q, K)
    return {"query": Q.shape[-2], "d_h": Q.shape[-1], "key": K.shape[-2]}


def refuse(reason):
    raise Outside(reason)


SCORES = ("Q", "K", "S")  # what an error may name where they are computed from X
EPS = Number(1e-3, least=0)


def halved(X):
    shapes.check_floats(X=(X, "... d"))
    return X / 2


ENTRIES = [
    # --- attention
    Entry(
        "attention.softmax",
        lambda S, dim: attention.softmax(S, dim),
        lambda S, dim: f.softmax(S, dim),
        {
            "S": Real("... n", free=True),
            "dim": Other(
                "an axis of S", lambda given: -1, ("range", "", lambda _: 5), ("type", "a word", lambda _: "x")
            ),
        },
    ),
    Entry(
        "attention.causal_mask",
        lambda n: attention.causal_mask(n),
        lambda n: np.array([[j <= i for j in range(n)] for i in range(n)]).reshape(n, n),
        {"n": Count("n", least=0)},
    ),
    Entry(
        "attention.attention",
        lambda Q, K, V, mask, scale: attention.attention(Q, K, V, mask, scale),
        f.attention,
        {
            "Q": Real("... query d_h"),
            "K": Real("... key d_h"),
            "V": Real("... key d_v"),
            "mask": Maybe(Mask("... #query #key")),
            "scale": Maybe(Number(0.7)),
        },
        relation="the mask does not enlarge the output",
        also=("S",),
    ),
    Entry(
        "attention.weight",
        lambda d_in, d_out: attention.weight(d_in, d_out),
        init,
        {"d_in": Count("d"), "d_out": Count("d_ff", least=0)},
        raw=True,
    ),
    Entry(
        "attention.cached_tokens",
        lambda cache: attention.cached_tokens(cache),
        lambda cache: cache[0].shape[-2] if cache else 0,
        {"cache": Cache(inside=False)},
    ),
    Entry(
        "attention.MultiHead",
        multi_head,
        multi_head_oracle,
        {
            "dtype": Precision(),
            "d": Count("d"),
            "heads": Count(4),
            "kv_heads": Maybe(Count(2)),
            "bias": Flag(True),
            "rope_base": Maybe(Number(100.0, above=0)),
            "X": STATES,
            "mask": Maybe(MASK),
            "cache": Cache(),
        },
        where=lambda **a: divisors(**a) and a["X"].shape[-1] == a["d"],
        relation="heads divides d, kv_heads divides heads",
        sizes={"d": 8} | CACHED,
        also=SCORES,
    ),
    Entry(
        "attention.MultiHead, of a memory",
        lambda dtype, X, memory, mask: made(attention.MultiHead, dtype, 4, 2)(X, memory, mask),
        lambda dtype, X, memory, mask: f.multi_head(f.Weights(dtype), X, 2, memory, mask)[:2],
        {"dtype": Precision(), "X": STATES, "memory": Maybe(Real("... m d")), "mask": Maybe(MASK)},
        sizes=CACHED,
        also=SCORES,
    ),
    Entry(
        "attention.MultiHead.project",
        lambda dtype, X, memory: made(attention.MultiHead, dtype, 4, 2, 1, rope_base=100.0).project(X, memory),
        lambda dtype, X, memory: projected(f.Weights(dtype), X, X if memory is None else memory),
        {"dtype": Precision(), "X": STATES, "memory": Maybe(Real("... m d"))},
        sizes=CACHED,
    ),
    # --- norm
    Entry(
        "norm.layer_norm",
        lambda X, gamma, beta, eps, convention: norm.layer_norm(X, gamma, beta, eps, convention),
        f.layer_norm,
        {
            "X": Real("... d"),
            "gamma": Maybe(Real("d")),
            "beta": Maybe(Real("d")),
            "eps": EPS,
            "convention": Choice("inside", "outside"),
        },
    ),
    Entry(
        "norm.rms_norm",
        lambda X, gamma, eps: norm.rms_norm(X, gamma, eps),
        f.rms_norm,
        {"X": Real("... d"), "gamma": Maybe(Real("d")), "eps": EPS},
    ),
    Entry(
        "norm.LayerNorm",
        lambda dtype, d, eps, convention, X: made(norm.LayerNorm, dtype, d, eps, convention)(X),
        lambda dtype, d, eps, convention, X: f.layer_norm(
            X, f.Weights(dtype)("gamma", d), f.Weights(dtype)("beta", d), eps, convention
        ),
        {
            "dtype": Precision(),
            "d": Count("d"),
            "eps": EPS,
            "convention": Choice("inside", "outside"),
            "X": Real("... d"),
        },
        where=lambda d, X, **_: X.shape[-1] == d,
    ),
    Entry(
        "norm.RMSNorm",
        lambda dtype, d, eps, X: made(norm.RMSNorm, dtype, d, eps)(X),
        lambda dtype, d, eps, X: f.rms_norm(X, f.Weights(dtype)("gamma", d), eps),
        {"dtype": Precision(), "d": Count("d"), "eps": EPS, "X": Real("... d")},
        where=lambda d, X, **_: X.shape[-1] == d,
    ),
    # --- block
    Entry(
        "block.FFN",
        lambda dtype, d, d_ff, activation, X: made(block.FFN, dtype, d, d_ff, activation)(X),
        lambda dtype, d, d_ff, activation, X: f.ffn(f.Weights(dtype), X, d_ff, f.relu),
        {
            "dtype": Precision(),
            "d": Count("d"),
            "d_ff": Count("d_ff"),
            "activation": Other("function", lambda given: F.relu, types=False),
            "X": STATES,
        },
        where=lambda d, X, **_: X.shape[-1] == d,
    ),
    Entry(
        "block.SwiGLU",
        lambda dtype, d, d_ff, X: made(block.SwiGLU, dtype, d, d_ff)(X),
        lambda dtype, d, d_ff, X: f.swiglu(f.Weights(dtype), X, d_ff),
        {"dtype": Precision(), "d": Count("d"), "d_ff": Count("d_ff"), "X": STATES},
        where=lambda d, X, **_: X.shape[-1] == d,
    ),
    Entry("block.PreLN", block_of(block.PreLN), block_oracle(f.pre_ln), BLOCK, sizes=CACHED, also=SCORES),
    Entry("block.PostLN", block_of(block.PostLN), block_oracle(f.post_ln), BLOCK, sizes=CACHED, also=SCORES),
    Entry("block.B2T", block_of(block.B2T), block_oracle(f.b2t), BLOCK, sizes=CACHED, also=SCORES),
    Entry(
        "block.DeepNorm",
        lambda dtype, attention, ffn, norm_1, norm_2, alpha, X, mask, cache: with_cache(
            made(block.DeepNorm, dtype, attention, ffn, norm_1, norm_2, alpha), X, cache, mask=mask
        ),
        lambda alpha, **given: block_oracle(partial(f.deep_norm, alpha=alpha))(**given),
        BLOCK | {"alpha": Number(1.7, least=0)},
        sizes=CACHED,
        also=SCORES,
    ),
    Entry(
        "block.deepnorm_scales",
        lambda layers: block.deepnorm_scales(layers),
        lambda layers: [math.exp(math.log(2 * layers) / 4), math.exp(-math.log(8 * layers) / 4)],
        {"layers": Count(5)},
    ),
    Entry(
        "block.CrossPostLN",
        lambda dtype, d, heads, d_ff, eps, X, memory, mask, memory_mask, cache: with_cache(
            made(block.CrossPostLN, dtype, d, heads, d_ff, eps), X, cache, memory, mask, memory_mask
        ),
        lambda dtype, d, heads, d_ff, eps, X, memory, mask, memory_mask, cache: f.cross_post_ln(
            f.Weights(dtype), X, memory, heads, d_ff, eps, mask, memory_mask, cache
        ),
        {
            "dtype": Precision(),
            "d": Count("d"),
            "heads": Count(2),
            "d_ff": Count("d_ff"),
            "eps": EPS,
            "X": STATES,
            "memory": Real("... k d"),
            "mask": Maybe(MASK),
            "memory_mask": Maybe(Mask("... one #n #k", free=True)),
            "cache": Cache(),
        },
        where=lambda **a: divisors(**a) and a["X"].shape[-1] == a["d"],
        sizes=CACHED | {"k": 4},
        also=SCORES,
    ),
    # --- shapes
    Entry(
        "shapes.check_shapes",
        lambda Q, K: shapes.check_shapes(Q=(Q, "... query d_h"), K=(K, "... #key d_h")),
        lambda Q, K: {"query": Q.shape[-2], "d_h": Q.shape[-1], "key": K.shape[-2]},
        {"Q": Real("... query d_h"), "K": Real("... key d_h")},
    ),
    Entry(
        "shapes.check_floats",
        lambda Q, K: shapes.check_floats(Q=(Q, "... query d_h"), K=(K, "... #key d_h")),
        sizes_of,
        {"Q": Real("... query d_h"), "K": Real("... key d_h")},
    ),
    Entry(
        "shapes.check_tokens",
        lambda tokens: shapes.check_tokens(tokens=(tokens, "batch n", 7)),
        lambda tokens: {"batch": tokens.shape[0], "n": tokens.shape[1]},
        {"tokens": Tokens("batch n", below="vocabulary")},
    ),
    Entry(
        "shapes.check_mask",
        lambda mask: str(shapes.check_mask(mask, (2, 3, 5), torch.device("cpu"))),
        lambda mask: "None",
        {"mask": Mask("batch n m")},
        where=lambda mask: mask.shape in ((2, 3, 5), (2, 1, 5)),  # one row for all queries will do
        sizes={"m": 5},
    ),
    Entry(
        "shapes.check_finite",
        lambda X: str(shapes.check_finite(X=X)),
        lambda X: "None" if X.dtype.kind == "O" or np.isfinite(X).all() else refuse("not finite"),
        {"X": Real("n d", free=True)},
    ),
    Entry(
        "shapes.check_range",
        lambda X: shapes.check_range(X * X, X=X),
        lambda X: X * X,
        {"X": Tensors("n d", free=True)},
    ),
    Entry("shapes.look", lambda X: shapes.look(X), lambda X: X, {"X": Tensors("n d", free=True)}),
    Entry(
        "shapes.largest", lambda X: shapes.largest(X), lambda X: abs(X).max(initial=0), {"X": Tensors("n d", free=True)}
    ),
    Entry(
        "shapes.computed_wide",
        lambda X: shapes.computed_wide(halved)(X),
        lambda X: X / 2,
        {"X": Real("... d")},
    ),
    Entry(
        "shapes.at_least_float32",
        lambda value: shapes.at_least_float32(value),
        lambda value: value,
        {"value": Tensors("n d", free=True)},
    ),
    Entry(
        "shapes.anywhere",
        lambda X: shapes.anywhere(X > 1),
        lambda X: bool((X > 1).any()),
        {"X": Tensors("n d", free=True)},
    ),
    Entry(
        "shapes.check_integers",
        lambda number: shapes.check_integers(2, number=number),
        lambda number: number,
        {"number": Count(3, least=2)},
    ),
    Entry(
        "shapes.check_numbers",
        lambda number: shapes.check_numbers(0, number=number),
        lambda number: number if math.isfinite(number) else refuse("not finite"),
        {"number": Number(0.5, least=0)},
    ),
    Entry(
        "shapes.check_choice",
        lambda choice: str(shapes.check_choice(("pre", "post", None), choice=choice)),
        lambda choice: "None",
        {"choice": Choice("pre", "post", None)},
    ),
    Entry(
        "shapes.check_type",
        lambda rng: str(shapes.check_type(np.random.Generator, rng=rng)),
        lambda rng: "None",
        {"rng": Rng()},
    ),
]


def projected(W, X, Y):
    d = X.shape[-1]
    Q, K, V = f.heads_of(X @ W("W_Q", d, d), 2), f.heads_of(Y @ W("W_K", d, 2), 1), f.heads_of(Y @ W("W_V", d, 2), 1)
    K, V = np.repeat(f.rope(K, 100.0), 2, -3), np.repeat(V, 2, -3)
    return f.rope(Q, 100.0), K, V
