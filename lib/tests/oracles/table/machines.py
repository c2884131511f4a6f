"""models, generate, source, train, weights."""

import contextlib
import importlib.util
import io
import math
import tempfile
from functools import cache

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call

from smalltorch import attention, generate, models, source, train, weights
from smalltorch.engine.sample import generator, normal

from .. import formulas as f
from ..judge import Entry, Outside
from ..kinds import Choice, Count, Distribution, Flag, Mask, Maybe, Number, Other, Precision, Real, Rng, Tokens
from .parts import EPS, SCORES, Cache, divisors, made, with_cache


class Whole(Tokens):
    """Whole numbers, whatever they mean."""

    def __init__(self, shape: str):
        super().__init__(shape, below="vocabulary")
        self.words = f"whole numbers ({shape})"

    def bad(self, x, given):
        yield from self.layouts(x)


class Logits(Real):
    """Logits that a model gave: of any shape and order, but not of another kind."""

    def bad(self, x, given):
        unlike = ("type", "dtype", "half", "meta")
        yield from (bad for bad in super().bad(x, given) if bad.kind not in unlike and bad.value.ndim)


class Rate(Number):
    """A number that may be large or small, but not out of all proportion."""

    def bad(self, value, given):
        yield from (bad for bad in super().bad(value, given) if bad.kind != "extreme")


TOKENS = Tokens("batch n", below="vocabulary")
MASK = Mask("batch one n n", free=True)
SHAPE = {
    "dtype": Precision(),
    "vocabulary": Count("vocabulary"),
    "d": Count("d"),
    "layers": Count(2, least=0),
    "heads": Count(2),
    "d_ff": Count("d_ff"),
}
SMALL = dict(vocabulary=7, d=4, layers=2, heads=2, d_ff=5)


def known(vocabulary, tokens=None, target=None, **a):
    """Tokens that the vocabulary has."""
    return divisors(**a) and all(x is None or x.size == 0 or x.max() < vocabulary for x in (tokens, target))


def decoder(dtype=torch.float64, **options):
    return made(models.Decoder, dtype, **(SMALL | dict(kv_heads=1) | options))


def decoder_formula(dtype, tokens, **options):
    return f.decoder(f.Weights(dtype), tokens, **(SMALL | dict(kv_heads=1) | options))


def encoder_formula(dtype, tokens, segments=None, mask=None):
    return f.encoder(f.Weights(dtype), tokens, segments, **SMALL, positions=6, mask=mask)


def bilingual(dtype):
    return made(models.EncoderDecoder, dtype, **SMALL)


# --- models -----------------------------------------------------------------------------------------------------------


def initialised(model, rng, std):
    return dict(models.initialise_gpt2(model, rng, std).named_parameters())


def initialised_formula(rng, std, d=4, vocabulary=7, positions=6, layers=2, **_):
    found = {"E": std * rng.standard_normal((vocabulary, d)), "P": std * rng.standard_normal((positions, d))}
    for layer in range(layers):
        block = f"blocks.{layer}."
        for which in "QKVO":
            factor = std / math.sqrt(2 * layers) if which == "O" else std
            found[f"{block}attention.W_{which}"] = factor * rng.standard_normal((d, d))
        found |= {f"{block}attention.b_{which}": np.zeros(d) for which in "QKVO"}
        found[f"{block}ffn.W_1"], found[f"{block}ffn.b_1"] = std * rng.standard_normal((d, 4 * d)), np.zeros(4 * d)
        found[f"{block}ffn.W_2"] = std / math.sqrt(2 * layers) * rng.standard_normal((4 * d, d))
        found[f"{block}ffn.b_2"] = np.zeros(d)
        found |= {f"{block}norm_{k}.{name}": value for k in (1, 2) for name, value in gains(d).items()}
    return found | {f"norm.{name}": value for name, value in gains(d).items()}


def gains(d):
    return {"gamma": np.ones(d), "beta": np.zeros(d)}


def observed(model, kind, tokens):
    with models.observe(model, kind) as calls:
        model(tokens)
    assert not any(module._forward_hooks for module in model.modules())
    return [call.output for call in calls]


MODELS = [
    Entry("models.gelu_tanh", lambda X: models.gelu_tanh(X), lambda X: f.gelu_tanh(X), {"X": Real("... n", free=True)}),
    Entry(
        "models.Decoder",
        lambda tokens, mask, **shape: made(models.Decoder, **shape)(tokens, mask),
        lambda dtype, tokens, **shape: f.decoder(f.Weights(dtype), tokens, **shape)[0],
        SHAPE
        | {
            "kv_heads": Maybe(Count(1)),
            "rope_base": Number(100.0, above=0),
            "eps": EPS,
            "tied": Flag(True),
            "tokens": TOKENS,
            "mask": Maybe(MASK),
        },
        where=known,
        relation="heads divides d, kv_heads divides heads",
        also=SCORES,
    ),
    Entry(
        "models.Decoder.states",
        lambda dtype, tokens, cache: with_cache_only(decoder(dtype).states, tokens, cache),
        lambda dtype, tokens, cache: decoder_formula(dtype, tokens, cache=cache)[1::2],
        {"dtype": Precision(), "tokens": TOKENS, "cache": Cache(2, heads=1)},
    ),
    Entry(
        "models.Encoder",
        lambda tokens, segments, mask, segment_kinds, **shape: made(models.Encoder, segments=segment_kinds, **shape)(
            tokens, segments, mask
        ),
        lambda dtype, tokens, segments, segment_kinds, **shape: f.encoder(
            f.Weights(dtype), tokens, segments, segments_of=segment_kinds, **shape
        )[0],
        SHAPE
        | {
            "positions": Count(6),
            "segment_kinds": Count(2),
            "eps": EPS,
            "tokens": TOKENS,
            "segments": Maybe(Tokens("batch n", below="two")),
            "mask": Maybe(MASK),
        },
        where=lambda **a: (
            known(**a)
            and a["tokens"].shape[1] <= a["positions"]
            and (a["segments"] is None or a["segments"].size == 0 or a["segments"].max() < a["segment_kinds"])
        ),
        relation="heads divides d; at most as many tokens as positions",
        sizes={"two": 2},
        also=(*SCORES, "segments"),
    ),
    Entry(
        "models.GPT",
        lambda tokens, cache, **shape: with_cache(made(models.GPT, **shape), tokens, cache),
        lambda dtype, tokens, **shape: f.gpt(f.Weights(dtype), tokens, **shape),
        {name: kind for name, kind in SHAPE.items() if name != "d_ff"}
        | {
            "positions": Count(6),
            "norm": Choice("pre", "post"),
            "d_ff": Maybe(Count("d_ff")),
            "eps": EPS,
            "tokens": TOKENS,
            "cache": Cache(2),
        },
        where=lambda **a: known(**a),
        relation="heads divides d; at most as many tokens as positions",
        also=SCORES,
    ),
    Entry(
        "models.initialise_gpt2",
        initialised,
        lambda model, rng, std: initialised_formula(rng, std),
        {
            "model": Other("GPT", lambda given: models.GPT(7, 4, 2, 2, 6, "pre").double()),
            "rng": Rng(),
            "std": Number(0.02),
        },
    ),
    Entry(
        "models.EncoderDecoder",
        lambda source, target, **shape: made(models.EncoderDecoder, **shape)(source, target),
        lambda dtype, source, target, **shape: f.decoded(
            f.Weights(dtype), target, f.memory_of(f.Weights(dtype), source, **shape), **shape
        )[0],
        SHAPE | {"source": Tokens("batch m", below="vocabulary"), "target": TOKENS},
        where=lambda source, **a: known(tokens=source, **a),
        relation="heads divides d",
        sizes={"m": 4},
        also=SCORES,
    ),
    Entry(
        "models.EncoderDecoder.embed",
        lambda dtype, tokens, start: bilingual(dtype).embed(tokens, start),
        lambda dtype, tokens, start: f.embedded(f.Weights(dtype), tokens, 7, 4, start),
        {"dtype": Precision(), "tokens": TOKENS, "start": Count(3, least=-10)},
    ),
    Entry(
        "models.EncoderDecoder.encode",
        lambda dtype, source, mask: bilingual(dtype).encode(source, mask),
        lambda dtype, source, mask: f.memory_of(f.Weights(dtype), source, **SMALL, mask=mask),
        {"dtype": Precision(), "source": TOKENS, "mask": Maybe(MASK)},
        also=("tokens",),
    ),
    Entry(
        "models.EncoderDecoder.decode",
        lambda dtype, target, memory, memory_mask, cache: with_cache(
            bilingual(dtype).decode, target, cache, memory, memory_mask
        ),
        lambda dtype, target, memory, memory_mask, cache: f.decoded(
            f.Weights(dtype), target, memory, **SMALL, memory_mask=memory_mask, cache=cache
        ),
        {
            "dtype": Precision(),
            "target": TOKENS,
            "memory": Real("batch m d"),
            "memory_mask": Maybe(Mask("batch one n m", free=True)),
            "cache": Cache(2),
        },
        sizes={"m": 4},
        also=(*SCORES, "tokens"),
    ),
    Entry(
        "models.AblationLayer",
        lambda dtype, d, heads, d_ff, norm, residual, mlp, X, mask: made(
            models.AblationLayer, dtype, d, heads, d_ff, norm, residual, mlp
        )(X, mask),
        lambda dtype, X, d, **options: f.ablation_layer(f.Weights(dtype), X, **options),
        {
            "dtype": Precision(),
            "d": Count("d"),
            "heads": Count(2),
            "d_ff": Count("d_ff"),
            "norm": Choice("pre", "post", None),
            "residual": Flag(True),
            "mlp": Flag(True),
            "X": Real("... n d"),
            "mask": Maybe(Mask("... one n n", free=True)),
        },
        where=lambda **a: divisors(**a) and a["X"].shape[-1] == a["d"],
        relation="heads divides d",
        also=SCORES,
    ),
    Entry(
        "models.TinyLM",
        lambda tokens, **shape: made(models.TinyLM, **shape)(tokens),
        lambda dtype, causal, **shape: f.tiny_lm(f.Weights(dtype), causal_mask=causal, **shape)[0],
        {name: kind for name, kind in SHAPE.items() if name != "d_ff"}
        | {
            "positions": Count(6),
            "d_ff": Maybe(Count("d_ff")),
            "norm": Choice("pre", "post", None),
            "residual": Flag(True),
            "mlp": Flag(True),
            "causal": Flag(True),
            "tokens": TOKENS,
        },
        where=known,
        relation="heads divides d; at most as many tokens as positions",
        also=SCORES,
    ),
    Entry(
        "models.TinyLM.states",
        lambda dtype, tokens: made(models.TinyLM, dtype, 7, 6, 4).states(tokens),
        lambda dtype, tokens: f.tiny_lm(f.Weights(dtype), tokens, 7, 6, 4)[1],
        {"dtype": Precision(), "tokens": TOKENS},
    ),
    Entry(
        "models.observe",
        observed,
        lambda model, kind, tokens: [[o, A] for o, A in attention_outputs(tokens)],
        {
            "model": Other("module", lambda given: decoder()),
            "kind": Other("a class of modules", lambda given: attention.MultiHead, ("type", "a word", lambda _: "x")),
            "tokens": TOKENS,
        },
    ),
    Entry(
        "models.attention_matrices",
        lambda dtype, tokens, mask: models.attention_matrices(decoder(dtype), tokens, mask),
        lambda dtype, tokens, mask: np.stack(decoder_formula(dtype, tokens, mask=mask)[2]),
        {"dtype": Precision(), "tokens": TOKENS, "mask": Maybe(MASK)},
    ),
    Entry(
        "models.attention_matrices, of another",
        lambda model, tokens: models.attention_matrices(model, tokens),
        lambda model, tokens: np.stack(encoder_formula(torch.float64, tokens)[1]),
        {
            "model": Other(
                "Decoder or Encoder",
                lambda given: made(models.Encoder, torch.float64, **SMALL, positions=6),
                ("type", "no transformer", lambda _: nn.Linear(3, 3)),
                ("type", "a GPT", lambda _: made(models.GPT, torch.float64, 7, 4, 2, 2, 6, "pre")),
            ),
            "tokens": TOKENS,
        },
    ),
    Entry(
        "models.queries_and_keys",
        lambda dtype, model, tokens: models.queries_and_keys(model, tokens),
        lambda dtype, model, tokens: queries_and_keys(dtype, tokens),
        {
            "dtype": Precision(),
            "model": Other(
                "Decoder or Encoder",
                lambda given: decoder(given.dtype),
                ("type", "no transformer", lambda _: nn.Linear(3, 3)),
            ),
            "tokens": TOKENS,
        },
    ),
]


def with_cache_only(states, tokens, cache):
    return [states(tokens, cache=cache), cache]


def attention_outputs(tokens):
    """What the attention of every layer gives: its output is found from A and the states before it."""
    W, (_, _, A, _) = f.Weights(), decoder_formula(torch.float64, tokens)
    X, found = W("E", 7, 4)[tokens], []
    for layer in range(2):
        block = W.of(f"blocks.{layer}")
        V = np.repeat(f.heads_of(f.rms_of(block.of("norm_1"), X) @ block("attention.W_V", 4, 2), 1), 2, -3)
        H = np.moveaxis(A[layer] @ V, -3, -2)
        output = H.reshape(*H.shape[:-2], 4) @ block("attention.W_O", 4, 4)
        found.append((output, A[layer]))
        X = X + output
        X = X + f.swiglu(block.of("ffn"), f.rms_of(block.of("norm_2"), X), 5)
    return found


def queries_and_keys(dtype, tokens):
    W, Q, K = f.Weights(dtype), [], []
    X = W("E", 7, 4)[tokens]
    for layer in range(2):
        block = W.of(f"blocks.{layer}")
        Y = f.rms_of(block.of("norm_1"), X)
        Q.append(f.rope(f.heads_of(Y @ block("attention.W_Q", 4, 4), 2)))
        K.append(np.repeat(f.rope(f.heads_of(Y @ block("attention.W_K", 4, 2), 1)), 2, -3))
        X = f.pre_ln(
            block,
            X,
            lambda W, X: f.multi_head(W, X, 2, mask=f.causal(X.shape[-2]), kv_heads=1, rope_base=1e4),
            lambda W, X: f.swiglu(W, X, 5),
            f.rms_of,
        )[0]
    return np.stack(Q), np.stack(K)


# --- generate ---------------------------------------------------------------------------------------------------------


def generated_formula(prompt, new, stop=None, **_):
    if prompt.shape[1] == 0:
        raise Outside("a token at least")
    text, logits = prompt, []
    for _ in range(new):
        logits.append(decoder_formula(torch.float64, text)[0][:, -1])
        text = np.concatenate([text, logits[-1].argmax(-1)[:, None]], 1)
        if stop is not None and (text[:, prompt.shape[1] :] == stop).any(1).all():
            break
    return text[:, prompt.shape[1] :], np.stack(logits, 1)


def law_formula(logits, temperature=1.0, top_k=None, top_p=1.0):
    if not (0 < temperature < math.inf and 0 < top_p <= 1):
        raise Outside("a temperature above 0, and a share")
    laws = []
    rows = logits.reshape(-1, logits.shape[-1])
    for row, p in zip(rows, f.softmax(rows / temperature), strict=True):
        order = sorted(range(len(p)), key=lambda token: -row[token])[:top_k]
        total, kept = p[order].sum(), []
        for token in order:
            if p[kept].sum() < top_p * total:
                kept.append(token)
        laws.append([p[token] / p[kept].sum() if token in kept else 0.0 for token in range(len(p))])
    return np.array(laws).reshape(logits.shape)


def drawn(rng, temperature, top_k, top_p):
    return generate.sampler(rng, temperature, top_k, top_p)(TWO_LAWS)


def drawn_formula(rng, temperature, top_k, top_p):
    p = law_formula(TWO_LAWS.numpy(), temperature, top_k, top_p)
    return np.array([np.searchsorted(row.cumsum(), u, side="right") for row, u in zip(p, rng.random(2), strict=True)])


TWO_LAWS = normal("two laws to draw from", 2, 7)
LAW = {
    "temperature": Number(0.7, above=0),
    "top_k": Maybe(Count(4)),
    "top_p": Number(0.8, above=0),
}
GENERATE = [
    Entry(
        "generate.probabilities",
        lambda **a: generate.probabilities(**a),
        law_formula,
        {"logits": Logits("... vocabulary"), **LAW},
    ),
    Entry("generate.sampler", drawn, drawn_formula, {"rng": Rng(), **LAW}),
    Entry(
        "generate.most_probable",
        lambda logits: generate.most_probable(logits),
        lambda logits: logits.argmax(-1),
        {"logits": Logits("... vocabulary")},
    ),
    Entry(
        "generate.generate",
        lambda **a: generate.generate(**a),
        generated_formula,
        {
            "model": Other("function of tokens", lambda given: decoder(), types=False),
            "prompt": TOKENS,
            "new": Count(3),
            "cached": Flag(True),
            "stop": Maybe(Count(3, least=-1)),
            "choose": Other("function of logits", lambda given: generate.most_probable, types=False),
        },
        also=("tokens",),  # of the model
    ),
    Entry(
        "generate.Generated.margin",
        lambda logits: generate.Generated(torch.zeros(2, 3), logits).margin,
        lambda logits: np.sort(logits, -1)[..., -1] - np.sort(logits, -1)[..., -2],
        {"logits": Logits("batch new vocabulary", free=True)},
        sizes={"new": 3},
    ),
]


# --- source -----------------------------------------------------------------------------------------------------------

FLOAT64 = (torch.float64,)
P = torch.from_numpy(f.softmax(2 * np.random.default_rng(3).standard_normal((3, 3, 3))))  # a chain of order 2


def of_chain(name, call, oracle, **arguments):
    """A method or property of that chain."""
    return Entry(
        f"source.Markov.{name}",
        lambda **a: call(source.Markov(P), **a),
        lambda **a: oracle(P.numpy(), **a),
        arguments,
        sizes={"vocabulary": 3},
    )


def markov_formula(P):
    """Its distribution, where P is a chain."""
    f.real(P)
    if P.ndim < 2 or len(set(P.shape)) > 1 or not (P > 0).all() or abs(P.sum(-1) - 1).max() > 1e-9:
        raise Outside("probabilities")
    return P, f.blocks_of(P, P.ndim - 1)


def conditional(P, before):
    """p(token | tokens before it)."""
    joint = f.blocks_of(P, before + 1)
    return joint / joint.sum(-1, keepdims=True)


def sampled(P, rng, sequences, n):
    u, tokens = rng.random((sequences, n, 1)), np.zeros((sequences, n), int)
    for t in range(n):
        before = min(t, P.ndim - 1)
        p = conditional(P, before)[tuple(tokens[:, t - before : t].T)]
        tokens[:, t] = (np.cumsum(p, -1)[..., :-1] < u[:, t]).sum(-1)
    return tokens


def surprise(P, tokens):
    columns = []
    for t in range(tokens.shape[1]):
        before = min(t, P.ndim - 1)
        columns.append(-np.log(conditional(P, before)[tuple(tokens[:, t - before : t + 1].T)]))
    return np.stack(columns, 1)


def entropy(P, before, behind):
    joint = f.blocks_of(P, before + 1 + behind)
    return f.entropy(joint) - f.entropy(joint.sum(before))


SOURCE = [
    Entry(
        "source.Markov",
        lambda P: (source.Markov(P).P, source.Markov(P).stationary),
        markov_formula,
        {"P": Distribution("v v v", free=True)},
        relation="P has at least two axes, all of one size",
        sizes={"v": 3},
        dtypes=FLOAT64,
    ),
    of_chain("vocabulary", lambda s: s.vocabulary, lambda P: P.shape[-1]),
    of_chain("order", lambda s: s.order, lambda P: P.ndim - 1),
    of_chain("stationary", lambda s: s.stationary, lambda P: f.blocks_of(P, 2)),
    of_chain("rate", lambda s: s.rate, lambda P: entropy(P, 2, 0)),
    of_chain("block", lambda s, m: s.block(m), lambda P, m: f.blocks_of(P, m), m=Count(3, least=0)),
    of_chain(
        "entropy",
        lambda s, before, behind: s.entropy(before, behind),
        entropy,
        before=Count(2, least=0),
        behind=Count(1, least=0),
    ),
    of_chain("next", lambda s, before: s.next(before), conditional, before=Count(1, least=0)),
    of_chain(
        "sample", lambda s, **a: s.sample(**a), sampled, rng=Rng(), sequences=Count(5, least=0), n=Count(4, least=0)
    ),
    of_chain("surprise", lambda s, tokens: s.surprise(tokens), surprise, tokens=TOKENS),
    of_chain(
        "batches",
        lambda s, n, size, rng: s.batches(n, size)(rng),
        lambda P, n, size, rng: sampled(P, rng, size, n),
        n=Count(4, least=0),
        size=Count(5, least=0),
        rng=Rng(),
    ),
    Entry(
        "source.markov",
        lambda name, vocabulary, order, sharpness: source.markov(name, vocabulary, order, sharpness).P,
        lambda name, vocabulary, order, sharpness: f.softmax(
            sharpness * normal(name, *[vocabulary] * (order + 1)).numpy()
        ),
        {
            "name": Other("text", lambda given: "oracle"),
            "vocabulary": Count(3),
            "order": Count(2),
            "sharpness": Number(2.0),
        },
    ),
    Entry(
        "source.characters",
        lambda text: source.characters(text),
        lambda text: (np.array([sorted(set(text)).index(c) for c in text], dtype=int), "".join(sorted(set(text)))),
        {"text": Other("text", lambda given: "the water is grey", ("dtype", "bytes", lambda text: text.encode()))},
    ),
    Entry(
        "source.windows",
        lambda tokens, n, size, rng: source.windows(tokens, n, size)(rng),
        lambda tokens, n, size, rng: stretches(tokens, n)[rng.integers(len(tokens) - n + 1, size=size)],
        {
            "tokens": Whole("length"),
            "n": Count(3, least=0),
            "size": Count(5, least=0),
            "rng": Other("numpy.random.Generator", lambda given: np.random.default_rng(7), types=False),
        },
        sizes={"length": 9},
    ),
]


def stretches(tokens, n):
    if len(tokens) < n:
        raise Outside("a text of n tokens")
    return np.array([tokens[k : k + n] for k in range(len(tokens) - n + 1)])


# --- train ------------------------------------------------------------------------------------------------------------

TINY = dict(vocabulary=7, positions=6, d=4, layers=1)


def tiny(given=None):
    return made(models.TinyLM, torch.float64, **TINY)


def tiny_formula(tokens, times=1):
    return f.tiny_lm(f.Weights(times=times), tokens, **TINY)[0]


def masked(predict, tokens, hidden, mask_token):
    logits = tiny_formula(np.where(hidden, mask_token, tokens))[..., :mask_token]
    rows = -np.log(f.softmax(logits))
    surprise = np.take_along_axis(rows, tokens[..., None], -1)[..., 0]
    return (surprise * hidden).sum() / hidden.sum()


def initial_formula(model, rng):
    """In the order of the modules: embeddings, layers, readout."""
    V, d = 7, 4
    draw = rng.standard_normal
    found = {"E": draw((V, d)), "P": draw((6, d)), "W_U": 0.1 * d**-0.5 * draw((d, V))}
    block = "layers.0."
    found |= {f"{block}attention.W_{which}": d**-0.5 * draw((d, d)) for which in "QKVO"}
    found[f"{block}ffn.W_1"], found[f"{block}ffn.b_1"] = d**-0.5 * draw((d, 4 * d)), f.Weights()(f"{block}ffn.b_1", 16)
    found[f"{block}ffn.W_2"], found[f"{block}ffn.b_2"] = (
        (4 * d) ** -0.5 * draw((4 * d, d)),
        f.Weights()(f"{block}ffn.b_2", d),
    )
    for norm in (f"{block}norm_1", f"{block}norm_2", "norm"):
        found |= {f"{norm}.{name}": f.Weights()(f"{norm}.{name}", d) for name in ("gamma", "beta")}
    return found


def batch(rng):
    return torch.from_numpy(rng.integers(7, size=(3, 5)))


def trained(model, loss, batch, name, seeds, steps, rate, start):
    """By a plain loop for each seed, with torch's own Adam."""
    losses, parameters, rate = [], [], float(rate)
    for seed in range(seeds):
        weights = start(model, generator(f"{name}, weights {seed}"))
        weights = {key: value.clone().requires_grad_() for key, value in weights.items()}
        rng, history = generator(f"{name}, data {seed}"), []
        optimiser = torch.optim.Adam(weights.values(), lr=rate)
        for step in range(steps):
            for group in optimiser.param_groups:
                group["lr"] = rate * (1 - step / steps)
            value = loss(lambda tokens, weights=weights: functional_call(model, weights, (tokens,)), batch(rng))
            history.append(value.item())
            optimiser.zero_grad()
            value.backward()
            optimiser.step()
        losses.append(history)
        parameters.append({key: value.detach() for key, value in weights.items()})
    return {"losses": np.array(losses), "parameters": {k: np.stack([p[k] for p in parameters]) for k in parameters[0]}}


def train_it(**arguments):
    run = train.train(arguments.pop("model"), arguments.pop("loss"), arguments.pop("batch"), **arguments)
    return {"losses": run.losses, "parameters": dict(run.parameters)}


def two_seeds(given=None):
    return {name: torch.stack([p.detach(), 2 * p.detach()]) for name, p in tiny().named_parameters()}


def run_of(parameters):
    return train.Run(tiny(), parameters, torch.zeros(2, 1))


def without(start):
    return lambda model, rng: {name: p for name, p in start(model, rng).items() if name != "W_U"}


def with_more(start):
    return lambda model, rng: {**start(model, rng), "W_X": torch.ones(2, 2).double()}


def misshapen(start):
    return lambda model, rng: {**start(model, rng), "W_U": torch.ones(2, 2).double()}


TRAIN = [
    Entry(
        "train.initial",
        lambda model, rng: train.initial(model, rng),
        initial_formula,
        {"model": Other("module", tiny), "rng": Rng()},
    ),
    Entry(
        "train.cross_entropy",
        lambda logits, targets: train.cross_entropy(logits, targets),
        f.cross_entropy,
        {"logits": Real("... vocabulary"), "targets": Tokens("...", below="vocabulary", free=True)},
    ),
    Entry(
        "train.next_token_loss",
        lambda predict, tokens: train.next_token_loss(predict, tokens),
        lambda predict, tokens: f.cross_entropy(tiny_formula(tokens[:, :-1]), tokens[:, 1:]),
        {"predict": Other("function of tokens", tiny, types=False), "tokens": TOKENS},
        also=("targets",),
    ),
    Entry(
        "train.masked_loss",
        lambda predict, tokens, hidden, mask_token: train.masked_loss(predict, tokens, hidden, mask_token),
        masked,
        {
            "predict": Other("function of tokens", tiny, types=False),
            "tokens": Tokens("batch n", below="six"),
            "hidden": Mask("batch n"),
            "mask_token": Count(6),
        },
        where=lambda predict, tokens, hidden, mask_token: hidden.any() and (tokens.max() < mask_token < 7),
        relation="tokens below the mask token; some are hidden",
        sizes={"six": 6},
        also=("targets",),
    ),
    Entry(
        "train.train",
        train_it,
        trained,
        {
            "model": Other("module", tiny),
            "loss": Other(
                "function of predict and a batch",
                lambda given: train.next_token_loss,
                ("rank", "of every row", lambda _: lambda predict, tokens: predict(tokens).mean((1, 2))),
                types=False,
            ),
            "batch": Other(
                "function of a generator",
                lambda given: batch,
                ("range", "tokens", lambda _: lambda rng: batch(rng) + 5),
                types=False,
            ),
            "name": Other("text", lambda given: "oracle", types=False),
            "seeds": Count(2),
            "steps": Count(3),
            "rate": Rate(3e-3, least=0),
            "start": Other(
                "function of model and generator",
                lambda given: train.initial,
                ("size", "a parameter less", without),
                ("size", "a parameter more", with_more),
                ("size", "another shape", misshapen),
                types=False,
            ),
        },
        raw=True,
        also=("tokens", "targets"),
    ),
    Entry(
        "train.Run",
        lambda parameters, tokens: run_of(parameters)(tokens),
        lambda parameters, tokens: np.stack([tiny_formula(tokens, times) for times in (1, 2)]),
        {
            "parameters": Other("mapping", two_seeds, ("size", "one less", lambda p: {"E": p["E"]}), types=False),
            "tokens": TOKENS,
        },
    ),
    Entry(
        "train.Run.evaluate",
        lambda loss, tokens: run_of(two_seeds()).evaluate(loss, tokens),
        lambda loss, tokens: np.array(
            [f.cross_entropy(tiny_formula(tokens[:, :-1], times), tokens[:, 1:]) for times in (1, 2)]
        ),
        {"loss": Other("function", lambda given: train.next_token_loss, types=False), "tokens": TOKENS},
        also=("targets",),
    ),
    Entry(
        "train.Run.at",
        lambda seed: run_of(two_seeds()).at(seed)(torch.tensor([[1, 2, 6]])),
        lambda seed: [tiny_formula(np.array([[1, 2, 6]]), times) for times in (1, 2)][seed],
        {"seed": Other("0 or 1", lambda given: 1, ("negative", "", lambda _: -1), ("range", "", lambda _: 2))},
    ),
    Entry(
        "train.every",
        lambda steps: reported(train.every(steps)),
        lambda steps: "".join(f"step {step}: loss 0.500\n" for step in range(0, 7, steps)),
        {"steps": Count(3)},
    ),
]


def reported(report):
    with contextlib.redirect_stderr(io.StringIO()) as said:
        for step in range(7):
            report(step, torch.tensor([0.25, 0.75]))
    return said.getvalue()


# --- weights ----------------------------------------------------------------------------------------------------------


class Words:
    """A tokenizer that knows the letters."""

    def encode(self, text):
        return type("Encoding", (), {"ids": [ord(letter) % 7 for letter in text]})


def torch_transformer(**options):
    """torch's own, without the norms behind both stacks, which the paper does not have."""
    options = dict(d_model=4, nhead=2, dim_feedforward=5, dropout=0.0, batch_first=True) | options
    stacks = (
        nn.TransformerEncoder(nn.TransformerEncoderLayer(**options), 2, enable_nested_tensor=False),
        (nn.TransformerDecoder(nn.TransformerDecoderLayer(**options), 2)),
    )
    whole = nn.Transformer(4, 2, custom_encoder=stacks[0], custom_decoder=stacks[1], batch_first=True)
    return f.fill(whole, torch.float64)


STATES = torch.linspace(-1, 1, 24, dtype=torch.float64).reshape(2, 3, 4)


def through(theirs):
    """Of our model, what its blocks make of given states."""
    X, ours = STATES, weights.same_weights(theirs)
    for layer in ours.encoder:
        X = layer(X)
    Y = STATES.flip(0)
    for layer in ours.decoder:
        Y = layer(Y, X, attention.causal_mask(3))
    return X, Y


def through_torch(theirs):
    X = theirs.encoder(STATES)
    hidden = nn.Transformer.generate_square_subsequent_mask(3, dtype=torch.float64)
    return X, theirs.decoder(STATES.flip(0), X, tgt_mask=hidden)


hub = importlib.import_module("smalltorch.hub") if importlib.util.find_spec("smalltorch.hub") else None
TOKENS_OF_THREE = torch.tensor([[1, 7, 12]])


def loaded(name):
    model, tokenizer = weights.load(name, torch.float64)
    return model(TOKENS_OF_THREE), weights.tokens_of(tokenizer, "this")


def loaded_formula(name):
    package, file, _ = weights.MINILM
    folder = importlib.util.find_spec(package).submodule_search_locations[0]
    return bert(f"{folder}/{file}", heads=12, eps=1e-12), [101, 2023, 102]


def loaded_from_a_folder(name):
    model, tokenizer = hub.load(name, torch.float64)
    return model(TOKENS_OF_THREE).last_hidden_state, tokenizer("gulls")["input_ids"]


def bert(file, heads, eps):
    """The states of the last layer, from the file's tensors, through torch's own encoder."""
    from safetensors.torch import load_file

    theirs = {name: tensor.double() for name, tensor in load_file(file).items()}
    E, P, S = (theirs[f"embeddings.{part}_embeddings.weight"] for part in ("word", "position", "token_type"))
    X, d = E[TOKENS_OF_THREE] + P[:3] + S[0], E.shape[1]
    X = F.layer_norm(X, (d,), theirs["embeddings.LayerNorm.weight"], theirs["embeddings.LayerNorm.bias"], eps)
    parts = {
        "self_attn.out_proj": "attention.output.dense",
        "linear1": "intermediate.dense",
        "linear2": "output.dense",
        "norm1": "attention.output.LayerNorm",
        "norm2": "output.LayerNorm",
    }
    number = 0
    while (at := f"encoder.layer.{number}.") + "output.dense.bias" in theirs:
        d_ff = len(theirs[f"{at}intermediate.dense.bias"])
        layer = nn.TransformerEncoderLayer(d, heads, d_ff, 0.0, "gelu", eps, batch_first=True, dtype=torch.float64)
        state = {f"{a}.{kind}": theirs[f"{at}{b}.{kind}"] for a, b in parts.items() for kind in ("weight", "bias")}
        for kind in ("weight", "bias"):
            own = [theirs[f"{at}attention.self.{which}.{kind}"] for which in ("query", "key", "value")]
            state[f"self_attn.in_proj_{kind}"] = torch.cat(own)
        layer.load_state_dict(state)
        X, number = layer.train()(X), number + 1  # in training, without dropout: the plain path, not the fused one
    return X


@cache
def saved(change=dict):
    """A folder with a small model of another library, whose tensors may be changed."""
    from safetensors.torch import load_file, save_file
    from tiny import tiny_bert
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from transformers import PreTrainedTokenizerFast

    folder = tempfile.TemporaryDirectory()
    f.fill(tiny_bert(), torch.float64).save_pretrained(folder.name)
    words = Tokenizer(WordLevel({"[UNK]": 0, "gulls": 1}, unk_token="[UNK]"))
    PreTrainedTokenizerFast(tokenizer_object=words).save_pretrained(folder.name)
    file = f"{folder.name}/model.safetensors"
    save_file(change(load_file(file)), file, metadata={"format": "pt"})
    return folder  # which goes at the end of the process


def without_one(tensors):
    return {name: tensor for name, tensor in tensors.items() if "layer.1.output.dense.bias" not in name}


def with_one_more(tensors):
    return tensors | {"encoder.layer.1.gate": torch.ones(2)}


NO_NAMES = ("type", "misspelt", lambda _: "MiniLM "), ("empty", "", lambda _: "")
WEIGHTS = [
    Entry(
        "weights.tokens_of",
        lambda tokenizer, text: weights.tokens_of(tokenizer, text),
        lambda tokenizer, text: [ord(letter) % 7 for letter in text],
        {
            "tokenizer": Other("tokenizer", lambda given: Words(), types=False),
            "text": Other("text", lambda given: "the gulls"),
        },
    ),
    Entry(
        "weights.same_weights",
        through,
        through_torch,
        {
            "theirs": Other(
                "a model of a known class",
                lambda given: torch_transformer(),
                ("type", "another class", lambda _: nn.Linear(2, 2)),
                ("type", "norms first", lambda _: torch_transformer(norm_first=True)),
                ("type", "another eps", lambda _: torch_transformer(layer_norm_eps=1e-2)),
                ("type", "GELU", lambda _: torch_transformer(activation="gelu")),
                ("type", "no biases", lambda _: torch_transformer(bias=False)),
            )
        },
        raw=True,
    ),
    Entry(
        "weights.load",
        loaded,
        loaded_formula,
        {"name": Other("an installed model, a folder, or a name on a hub", lambda given: "minilm", *NO_NAMES)},
        raw=True,
        needs=(weights.MINILM[0], "safetensors", "tokenizers", "transformers"),
    ),
    Entry(
        "hub.load",
        loaded_from_a_folder,
        lambda name: [bert(f"{name}/model.safetensors", heads=6, eps=1e-3), [1]],
        {
            "name": Other(
                "a folder, or a name on a hub",
                lambda given: saved().name,
                *NO_NAMES,
                ("size", "a tensor less", lambda _: saved(without_one).name),
                ("size", "a tensor more", lambda _: saved(with_one_more).name),
            )
        },
        raw=True,
        needs=("safetensors", "tokenizers", "transformers"),
    ),
    Entry(
        "hub.one_line",
        lambda said: hub.one_line(ValueError(said)),
        lambda said: f"ValueError: {said.strip().splitlines()[0]}",
        {"said": Other("text", lambda given: "\n the file is damaged \nat byte 7", types=False)},
    ),
]

ENTRIES = [*MODELS, *GENERATE, *SOURCE, *TRAIN, *WEIGHTS]
