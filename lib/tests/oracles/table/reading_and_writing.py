"""data, files, figures, experiments."""

import errno
import itertools
import json
import math
import os
import re
import tempfile
from functools import cache
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch

from smalltorch import data, files, train
from smalltorch.attention import MultiHead
from smalltorch.efficient.kernels import orthogonal_rows
from smalltorch.engine.sample import generator, normal
from smalltorch.experiments import (
    changed_images,
    eviction,
    few_labels,
    first_steps,
    forecasts,
    past_length,
    placement,
    position_codes,
    recall,
    stand_ins,
    stopped_pairs,
)
from smalltorch.experiments import depth_without_skips as depth
from smalltorch.figures import machine, plot, svg_export
from smalltorch.models import TinyLM, observe
from smalltorch.weights import SMOLLM2, load, tokens_of

from .. import formulas as f
from ..judge import Entry
from ..kinds import Choice, Count, Number, Other, Rng, Tokens
from .machines import sampled, surprise, trained

# --- data, files ------------------------------------------------------------------------------------------------------

ROOT = Path(data.__file__).resolve().parents[2]
MISSING = (
    ("range", "of no file", lambda _: "nothing"),
    ("range", "outside of the book", lambda _: "../../nothing"),
    ("empty", "", lambda _: ""),
)


def in_a_folder(write):
    """What a function of a path leaves beside a file that is there."""

    def call(path, **arguments):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "old.txt").write_text("old", encoding="utf-8")
            write(path(folder) if callable(path) else path, **arguments)
            return {file.name: file.read_bytes() for file in Path(folder).iterdir()}

    return call


def replaced(path, text):
    with files.replacing(path) as new:
        new.write_bytes(text.encode())


PATH = Other(
    "path in a folder that is there",
    lambda given: lambda folder: Path(folder) / "old.txt",
    ("range", "no such folder", lambda _: lambda folder: Path(folder) / "none" / "new.txt"),
    ("range", "a folder", lambda _: lambda folder: Path(folder)),
    types=False,
)
TEXT = Other("text", lambda given: "a\r\nnaïve\u2028\n", types=False)


def left(path, text):
    return {"old.txt": text.encode()}


def placed(path):
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "old.txt").write_text("old", encoding="utf-8")
        (Path(folder) / "link.txt").symlink_to("old.txt")
        return [files.place(path(folder).with_name(name)).name for name in (path(folder).name, "link.txt", "new.txt")]


def ended(number):
    """What ends a command when a file is not there."""
    try:
        with files.in_one_line():
            raise OSError(number, os.strerror(number), "table.csv")
    except SystemExit as end:
        return end.code


WHOLE = '{"cells": [{"cell_type": "markdown", "source": "é"}, {"cell_type": "code", "source": "1", "outputs": []}]}'


def read_back(text):
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "a.ipynb").write_text(text, encoding="utf-8")
        return files.read_notebook(Path(folder) / "a.ipynb")


FILES = [
    Entry(
        "data.path",
        lambda name: data.path(name).read_bytes(),
        lambda name: (ROOT / "book" / name).read_bytes(),
        {"name": Other("path in the book", lambda given: "data/essay.txt", *MISSING, types=False)},
    ),
    Entry(
        "data.text",
        lambda name: data.text(name),
        lambda name: (ROOT / "book/data" / f"{name}.txt").read_bytes().decode().replace("\r\n", "\n"),
        {"name": Other("name of a text", lambda given: "essay", *MISSING)},
    ),
    Entry("files.replacing", in_a_folder(replaced), left, {"path": PATH, "text": TEXT}),
    Entry("files.write_text", in_a_folder(files.write_text), left, {"path": PATH, "text": TEXT}),
    Entry(
        "files.read_notebook",
        read_back,
        lambda text: json.loads(text),
        {
            "text": Other(
                "of a notebook",
                lambda given: WHOLE,
                ("range", "cut in half", lambda _: WHOLE[:50]),
                ("range", "with a byte order mark", lambda _: f"\ufeff{WHOLE}"),
                ("range", "without cells", lambda _: "{}"),
                ("range", "cells that are no list", lambda _: '{"cells": 2}'),
                types=False,
            )
        },
    ),
    Entry("files.place", placed, lambda path: ["old.txt", "old.txt", "new.txt"], {"path": PATH}),
    Entry(
        "files.in_one_line",
        ended,
        lambda number: "table.csv: No such file or directory",
        {"number": Other("of an error of the system", lambda given: errno.ENOENT, types=False)},
    ),
]

# --- figures ----------------------------------------------------------------------------------------------------------

MARKED = {"attention": "attention", "ffn": "the feed-forward network"}


def sizes_of(width, height, columns):
    fig, axes = plot.figure(width, height, columns)
    count = len(np.ravel(axes))
    plot.plt.close(fig)
    return fig.get_size_inches(), count, fig.get_layout_engine().__class__.__name__


def drawing():
    fig, ax = plot.figure()
    ax.plot([1, 2, 4])
    ax.axhline(3)
    plot.plt.close(fig)
    return fig


SLIM = '<?xml version="1.0"?>\n<svg class="plot">\n <!-- seen by nobody -->\n <path d="M 0.12345 1 \nL 2 3"/>\n</svg>'

PLOT = [
    Entry(
        "figures.machine.machine",
        lambda mark: repr(machine.machine(mark)),
        lambda mark: "a drawing: The whole machine" + (f"; marked: {MARKED[mark]}" if mark else ""),
        {"mark": Choice(*MARKED, None)},
    ),
    Entry(
        "figures.plot.figure",
        sizes_of,
        lambda width, height, columns: [np.array([width, height]), columns, "ConstrainedLayoutEngine"],
        {"width": Number(5.0, above=0), "height": Number(2.5, above=0), "columns": Count(3)},
        where=lambda width, height, columns: max(width, height) < math.inf,
    ),
    Entry(
        "figures.plot.rough",
        lambda artists: (plot.rough(artists), artists in plot._ROUGH)[1],
        lambda artists: True,
        {"artists": Other("a line", lambda given: drawing().axes[0].lines[0])},
    ),
    Entry(
        "figures.plot.described",
        lambda drawn: np.array(
            [int(count) for count in re.findall(r"(\d+) (?:line|shape|point)", plot.described(drawn))]
        ),
        lambda drawn: np.array([2, 0, 3 + 2]),
        {"drawn": Other("a curve of three points and a level", lambda given: drawing())},
    ),
    Entry(
        "figures.svg_export.picture",
        lambda drawn: svg_export.picture(drawn).count("stroke: #0072b2"),
        lambda drawn: 2,
        {"drawn": Other("a curve of three points and a level", lambda given: drawing())},
    ),
    Entry(
        "figures.svg_export.slim",
        lambda svg: svg_export.slim(svg),
        lambda svg: '<svg class="plot"><path d="M0.12 1L2 3"/></svg>',
        {"svg": Other("a path, a comment", lambda given: SLIM)},
    ),
]

# --- experiments ------------------------------------------------------------------------------------------------------


class Known(f.Weights):
    """Weights by name, as they were trained."""

    def __init__(self, parameters, prefix=""):
        super().__init__(prefix=prefix)
        self.parameters = parameters

    def __call__(self, name, *shape):
        return np.asarray(self.parameters[self.prefix + name]).reshape(shape)

    def of(self, part):
        return Known(self.parameters, f"{self.prefix}{part}.")


KINDS = {
    "bare": (False, False),
    "mlp": (False, True),
    "skip": (True, False),
    "full": (True, True),
    "self": (False, False),
}
LATE = slice(8, None)


def options_of(variant="full", place="pre"):
    residual, mlp = KINDS[variant]
    return dict(residual=residual, mlp=mlp, norm=place)


def built(module, layers, **options):
    return TinyLM(4, module.N, d=16, layers=layers, heads=module.HEADS, **options).double()


def eyes(model, rng):
    """Initial weights, but W_Q = W_K = 2 I."""
    found = train.initial(model, rng)
    return {k: 2 * torch.eye(16).double() if k[-3:] in ("W_Q", "W_K") else v for k, v in found.items()}


def start_of(variant):
    return eyes if variant == "self" else train.initial


def run_by_hand(module, name, layers, seeds, steps, rate, start=train.initial, **options):
    """The run of an experiment, by the plain loop."""

    def batch(rng):
        return torch.from_numpy(sampled(module.SOURCE.P.numpy(), rng, module.BATCH, module.N + 1))

    return trained(built(module, layers, **options), train.next_token_loss, batch, name, seeds, steps, rate, start)


def depth_run(layers, variant, seeds, steps):
    name = f"depth without skips, {layers} layers"
    return run_by_hand(depth, name, layers, seeds, steps, 3e-3, start_of(variant), **options_of(variant))


def placement_run(layers, place, rate, seeds, steps):
    return run_by_hand(placement, f"placement, {layers} layers", layers, seeds, steps, rate, norm=place)


def logits(module, parameters, tokens, layers=1, **options):
    return f.tiny_lm(Known(parameters), tokens, 4, module.N, 16, layers, module.HEADS, **options)[0]


def of_seeds(found):
    return [{k: v[seed] for k, v in found["parameters"].items()} for seed in range(len(found["losses"]))]


def depth_excess(found, **options):
    P, tokens = depth.SOURCE.P.numpy(), depth.HELD_OUT.numpy()
    truth = P[tokens[:, LATE]]
    rows = [np.log(truth) - np.log(f.softmax(logits(depth, p, tokens, **options)[:, LATE])) for p in of_seeds(found)]
    return np.array([(truth * row).sum(-1).mean() for row in rows])


def placement_excess(found, **options):
    P, tokens = placement.SOURCE.P.numpy(), placement.HELD_OUT.numpy()
    own = surprise(P, tokens)[:, 1:].mean()
    return np.array(
        [f.cross_entropy(logits(placement, p, tokens[:, :-1], **options), tokens[:, 1:]) - own for p in of_seeds(found)]
    )


def placement_norms(found, seed, place="pre"):
    """Of every layer (one), held-out sequence and head."""
    W, tokens = Known(of_seeds(found)[seed]), placement.HELD_OUT.numpy()[:, :-1]
    X = W("E", 4, 16)[tokens] + W("P", 32, 16)
    layer = W.of("layers.0")
    X = f.norm_of(layer.of("norm_1"), X) if place == "pre" else X
    return f.norm_2(f.multi_head(layer.of("attention"), X, 4, mask=f.causal(32))[1])[None]


def residual_at_start(layers, variant, seed):
    drawn = start_of(variant)(
        built(depth, layers, **options_of(variant)), generator(f"depth without skips, {layers} layers, weights {seed}")
    )
    X = f.tiny_lm(Known(drawn), depth.HELD_OUT.numpy(), 4, depth.N, 16, layers, 2, **options_of(variant))[1][:, LATE]
    return (f.frobenius(f.residual(X)) / f.frobenius(X)).mean()


def depth_rows(layers, variant, seeds, steps):
    above = depth_excess(depth_run(layers, variant, seeds, steps), **options_of(variant))
    left = [residual_at_start(layers, variant, seed) for seed in range(seeds)]
    return [[layers, variant, steps, seed, left[seed], above[seed]] for seed in range(seeds)]


def placement_rows(layers, place, rate, seeds, steps):
    found = placement_run(layers, place, rate, seeds, steps if rate else 1)
    above, A = placement_excess(found, norm=place), [placement_norms(found, k, place)[0] for k in range(seeds)]
    return [[layers, rate, place, seed, above[seed], 1, A[seed].mean(), A[seed].max(1).mean()] for seed in range(seeds)]


def first_steps_rows(layers, place, rate, warmup, seeds, steps):
    """One step: what is written after it. The gradient of the one block is as long as itself."""
    name, N, tokens = f"first steps, {layers} layers", first_steps.N, first_steps.HELD_OUT.numpy()
    before, after = (run_by_hand(first_steps, name, layers, seeds, steps, r, norm=place) for r in (0.0, rate))
    own = surprise(first_steps.SOURCE.P.numpy(), tokens)[:, 1:].mean()
    lines = []
    for seed, weights in enumerate(zip(of_seeds(before), of_seeds(after), strict=True)):
        (_, start), (scores, X) = (
            f.tiny_lm(Known(W), tokens[:, :-1], 4, N, 16, layers, first_steps.HEADS, norm=place) for W in weights
        )
        shares = [N * (Y.mean(1) ** 2).sum() / (Y**2).sum() for Y in (X - start, X)]
        above, moved = f.cross_entropy(scores, tokens[:, 1:]) - own, ((X - start) ** 2).mean() ** 0.5
        lines.append([layers, place, rate, warmup, seed, steps, above, 0.0, moved, *shares, 0.0])
    return lines


def reach_texts(rng, count, n):
    """The tokens, and the answers: a name, and then letters that may be capitals."""
    name = rng.integers(4, size=(count, 1))
    letter = sampled(position_codes.CHAIN.P.numpy(), rng, count, n)
    capital = rng.random((count, n - 1)) < 0.25
    tokens, answers = np.concatenate([4 + name, letter], 1)[:, :n], np.concatenate([0 * name - 1, letter[:, 1:]], 1)
    tokens[:, 1:] += 8 * capital
    answers[:, 1:] = np.where(capital, 4 + name, letter[:, 1:])
    return tokens, answers


def reach_losses(W, code, tokens, answers):
    """-log p of each answer, and 0 where nothing is asked; codes that act on the states, or none."""
    n = tokens.shape[1]
    X = W("E", 12, 32)[tokens] + (W("P", 256, 32)[:n] if code == "learned" else 0)
    for k in range(2):
        X = f.pre_ln(
            W.of(f"blocks.{k}"),
            X,
            lambda V, Y: f.multi_head(V, Y, 4, mask=f.causal(n)),
            lambda V, Y: f.ffn(V, Y, 128),
            f.norm_of,
        )[0]
    p = f.softmax(f.norm_of(W.of("norm"), X) @ W("W_U", 32, 8))
    chosen = np.take_along_axis(p, np.maximum(answers, 0)[..., None], -1)[..., 0]
    return np.where(answers < 0, 0, -np.log(chosen))


FEW = 4  # of the 64 texts that are held out: reading all takes a minute


def reach_on_few(**arguments):
    with patch.object(position_codes, "HELD_OUT", [part[:FEW] for part in position_codes.HELD_OUT]):
        return read(position_codes.rows(**arguments))


def reach_rows(code, remedy, seeds, steps, tuning):
    """By a plain loop, as far as weights go; what is read off them by the formulas."""
    held, asked = (part[:FEW] for part in reach_texts(generator("reach, held out"), 64, 256))
    letter = np.where(held > 7, held - 8, held)
    own = np.zeros(held.shape)
    own[:, 2:] = -np.log(position_codes.CHAIN.P.numpy()[letter[:, 1:-1], letter[:, 2:], np.clip(asked[:, 2:], 0, 3)])
    lines = []
    for seed in range(seeds):
        model, rng = position_codes._Reader(code, remedy), generator(f"reach, data {seed}, 32 tokens")
        W = train.initial(model, generator(f"reach, weights {seed}"))
        W = {key: value.requires_grad_() for key, value in W.items()}
        optimiser = torch.optim.Adam(W.values())
        for step in range(steps):
            tokens, answers = map(torch.from_numpy, reach_texts(rng, 32, 32))
            scores = torch.func.functional_call(model, W, (tokens,)).log_softmax(-1)
            loss = -(scores * torch.nn.functional.one_hot(answers.clamp(min=0), 8))[:, 1:].sum() / answers.numel()
            optimiser.param_groups[0]["lr"] = 1e-2 * min((step + 1) / 20, 1 - step / steps)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        known = Known({key: value.detach() for key, value in W.items()})
        for n in (32, 64, 128, 256):
            losses = reach_losses(known, code, held[:, :n], asked[:, :n])[:, n // 2 :]
            answers = asked[:, n // 2 : n]
            near = (losses - own[:, n // 2 : n])[answers < 4].mean()
            lines.append([code, remedy, 0, seed, n, near, losses[answers > 3].mean()])
    return sorted(lines, key=lambda line: (line[4], line[3]))


@cache
def smollm2():
    return load("smollm2")


def past_length_on_one(**arguments):
    """With the model that is loaded already: the controls, which the oracle knows, change nothing in it."""
    with patch.object(past_length, "load", lambda name: smollm2()):
        return read(past_length.rows(**arguments))


def past_length_rows(text, window, reading, tokens, texts):
    """Of the essay, and the controls, which need neither a remedy nor a window."""
    model, tokenizer = smollm2()
    first = window * (tokens + 1)
    start = {"shifted": tokens // 3, "fresh": 2 * tokens // 3}[reading]
    read = np.array(tokens_of(tokenizer, data.text(text))[first : first + tokens + 1])[start:]
    logits = decoded_by(model, read[:-1])
    size = tokens // 24
    bins = [(k, f.cross_entropy(logits[k : k + size], read[1:][k : k + size])) for k in range(0, len(logits), size)]
    return [[text, window, reading, start + k, loss] for k, loss in bins]


def decoded_by(model, tokens, mask=None, **other):
    """SmolLM2's logits of one text; `other` weights in place of its own."""
    W = Known({name: value.numpy() for name, value in model.state_dict().items()} | other)
    return f.decoder(W, tokens[None], len(model.E), 576, 30, 9, 1536, 3, 1e5, model.norm.eps, mask=mask)[0][0]


def own_integer(value):
    """NumPy's whole numbers as Python's: the code of a stored table stays, and it multiplies them in their own type."""
    return value.item() if isinstance(value, np.integer) else value


def eviction_on_one(**arguments):
    with patch.object(eviction, "load", lambda name: smollm2()):
        return read(eviction.rows(**arguments | {"passages": own_integer(arguments["passages"])}))


def eviction_rows(way, keys, passages):
    """In one pass, with a mask that hides what is evicted from all tokens that come after the reading."""
    model, tokenizer = smollm2()
    place, lines = np.arange(96), []
    kept = (place >= 96 - keys) if way == "recent" else (place < 4) | (place >= 100 - keys)
    seen = np.ones((1, 1, 128, 128), dtype=bool)
    seen[..., 96:, :96] = kept
    for k, ids in enumerate(np.array(tokens_of(tokenizer, data.text("essay"))[: 128 * passages]).reshape(-1, 128)):
        again = np.concatenate([ids[:96], ids[16:48]])
        losses = [
            f.cross_entropy(decoded_by(model, text, seen)[first:127], text[first + 1 :])
            for text, first in ((ids, 96), (again, 104))
        ]
        lines.append([way, keys, k, keys, keys, keys, *losses])
    return lines


def stopped_pairs_on_one(**arguments):
    with patch.object(stopped_pairs, "load", lambda name: smollm2()):
        return [[*row[:-1], float(row[-1])] for row in stopped_pairs.rows(**arguments)]


def stopped_pairs_rows(way, text, count):
    """Pairs that are taken away are columns of 0."""
    model, tokenizer = smollm2()
    ids, other = tokens_of(tokenizer, data.text("longer")), {}
    for layer, block in enumerate(model.blocks if way == "12 fastest away" else ()):
        W = block.attention.W_Q.detach().numpy().reshape(576, 9, 2, 32).copy()
        W[..., :12] = 0
        other[f"blocks.{layer}.attention.W_Q"] = W.reshape(576, 576)
    texts = [np.array(ids[start : start + 64]) for start in range(110, 110 + 220 * count, 220)]
    losses = [f.cross_entropy(decoded_by(model, read, **other)[:-1], read[1:]) for read in texts]
    return [[way, text, k, 0, loss] for k, loss in enumerate(losses)]


def stand_ins_on_few(passage):
    """With few features: a thousand take a while."""
    with patch.object(stand_ins, "load", lambda name: smollm2()), patch.object(stand_ins, "FEATURES", (16,)):
        return read(stand_ins.rows(own_integer(passage)))


def stand_ins_rows(passage):
    """One head after the other; queries, keys and values are the library's."""
    (model, tokenizer), start = smollm2(), 256 + 128 * passage
    ids = tokens_of(tokenizer, " ".join(data.text("longer").splitlines()))[start : start + 128]
    with observe(model, MultiHead) as calls, torch.no_grad():
        model.states(torch.tensor([ids]))
    parts = [[x[0].double().numpy() for x in call.module.project(call.inputs[0])] for call in calls]
    heads = [(Q[h], K[h], V[h]) for Q, K, V in parts for h in range(9)]
    plain = normal("16 rows of features", 16, 64).numpy()
    orthogonal = orthogonal_rows(16, 64, generator("16 orthogonal rows")).numpy()
    i, j = np.arange(64, 128)[:, None], np.arange(128)

    def error(A, B, V):
        return np.linalg.norm(B @ V - A @ V) / np.linalg.norm(A @ V)

    def by_features(q, k, W):
        logits = (q @ W.T)[:, None] + k @ W.T - (k**2).sum(1)[:, None] / 2  # query key feature
        weights = np.exp(logits - logits.max((1, 2), keepdims=True)).sum(2) * (j <= i)
        return weights / weights.sum(1, keepdims=True)

    found = []
    for Q, K, V in heads:
        q, k = Q / 64**0.25, K / 64**0.25
        c = q.mean(0) + k.mean(0)
        late = q[64:]
        A, short = (f.softmax(np.where(j <= i, s * late @ k.T, -np.inf)) for s in (1, 1 / 16))
        near = A * ((j > i - 16) | (j == 0))
        made = [(A, by_features(late, k, plain)), (A, by_features(late, k - c, orthogonal)),
                (short, by_features(late / 4, k / 4, plain)), (A, near / near.sum(1, keepdims=True))]  # fmt: skip
        found.append([error(*pair, V) for pair in made])
    median = np.sort(found, axis=0)[(len(found) - 1) // 2]
    return [[passage, way, 16, value] for way, value in zip((*stand_ins.WAYS, "nearest"), median, strict=True)]


def recall_rows(way, seeds, steps):
    """By a plain loop, as far as weights go; their answers by the formulas, where tokens are mixed by a mean."""
    name = f"recall, {way}"

    def loss(predict, batch):
        return recall._loss(predict, *batch)

    found = trained(
        recall._Recall(way), loss, lambda rng: recall._texts(rng, 32), name, seeds, steps, 1e-2, train.initial
    )
    tokens, value = (part.numpy() for part in recall._texts(generator("pairs to be recalled"), 1000))
    lines = []
    for seed, parameters in enumerate(of_seeds(found)):
        W = Known(parameters)
        X = W("E", 33, 16)[tokens].sum(2)
        for k in range(2):
            X = X + f.norm_of(W.of(f"norms.{2 * k}"), X).mean(1, keepdims=True)
            X = X + f.ffn(W.of(f"ffn.{k}"), f.norm_of(W.of(f"norms.{2 * k + 1}"), X), 64)
        lines.append([way, seed, f.cross_entropy(X[:, -1] @ W("W_U", 16, 16), value)])
    return lines


def forecasts_on_few(**arguments):
    with patch.object(forecasts, "TESTED", 50):
        return read(forecasts.rows(**arguments))


def forecasts_rows(process, seeds, steps):
    """By a plain loop, as far as weights go; forecasts by the formulas, and regression by the normal equations."""
    name = {"one series": "signals, series", "either sign": "signals, series of either sign"}[process]

    def draw(rng, size=16):
        return forecasts._drawn(process, rng, size)

    found = trained(forecasts._Forecaster(), forecasts._loss, draw, name, seeds, steps, 6e-3, train.initial)
    lines = []
    for seed, parameters in enumerate(of_seeds(found)):
        W, rng = Known(parameters), generator(f"{name}, data {seed}")
        old = np.concatenate([draw(rng).double().numpy() for _ in range(steps)])
        new = draw(generator(f"{name} to forecast, seed {seed}"), 50).double().numpy()
        X = new[:, :-1, None] * W("W_in", 1, 16) + W("P", 31, 16)
        for k in range(2):
            X = f.ablation_layer(W.of(f"layers.{k}"), X, 2, 64, "pre", True, True, mask=f.causal(31))
        said = W("skip") * new[:, :-1] + 3 * f.norm_of(W.of("norm"), X) @ W("w_out", 16)
        D, T = (np.stack([x[t - 8 : t + 1] for x in given for t in range(8, 32)]) for given in (old, new))
        w = np.linalg.solve(D[:, :8].T @ D[:, :8], D[:, :8].T @ D[:, 8])
        errors = ((said[:, 7:] - new[:, 8:]) ** 2).mean(), ((T[:, :8] @ w - T[:, 8]) ** 2).mean()
        lines.append([process, seed, *errors, new[:, 8:].var(ddof=1)])
    return lines


FEW = 12


def few_labels_on_few(draw):
    """With the first sentences of each text only."""
    few_labels._trained.cache_clear()
    whole = few_labels._sentences
    with patch.object(few_labels, "_sentences", lambda tokenizer: [text[:FEW] for text in whole(tokenizer)]):
        lines = read(few_labels.rows(draw))
    few_labels._trained.cache_clear()
    return lines


def few_labels_rows(draw):
    """Distances one by one, and MiniLM by the formulas; what is random is drawn as torch draws it."""
    model, tokenizer = load("minilm")
    texts = [re.split("[.?]", data.text(name).replace("\n", " ")) for name in ("essay", "longer")]
    ids = [[tokenizer.encode(sentence.strip()).ids for sentence in text] for text in texts]
    ids = [[sentence for sentence in text if len(sentence) > 13][:FEW] for text in ids]
    tokens = np.array([sentence[:13] + sentence[-1:] for sentence in ids[0] + ids[1]])

    def vectors(weights):
        W = Known({name: value.detach().double().numpy() for name, value in weights})
        X = f.encoder(W, tokens, None, len(model.E), 384, 6, 12, 1536, len(model.P))[0].mean(1)
        return X / np.linalg.norm(X, axis=1, keepdims=True)

    torch.manual_seed(draw)
    weights = [
        (name, 0.02 * torch.randn(value.shape) if value.ndim == 2 else value * 0 + ("gamma" in name))
        for name, value in model.named_parameters()
    ]
    lengths, lines = np.array([[len(sentence)] for sentence in ids[0] + ids[1]], dtype=float), []
    kinds = {"trained": vectors(model.named_parameters()), "untrained": vectors(weights), "lengths": lengths}
    for way, X in kinds.items():
        for k in (1, 5):
            rng = generator(f"labels, equal lengths, {k} sentences, draw {draw}")
            mixed = [X[FEW * number :][rng.permutation(FEW)] for number in (0, 1)]
            means = [text[:k].mean(0) for text in mixed]
            for number, text in enumerate(("essay", "longer")):
                far = [[np.linalg.norm(x - mean) for mean in means] for x in mixed[number][k:]]
                right = np.mean([np.argmin(pair) == number for pair in far])
                lines.append([draw, way, k, text, FEW - k, right])
    return lines


def changed_images_on_few(**arguments):
    with patch.object(changed_images, "TESTED", 120):
        return read(changed_images.rows(**arguments))


def changed_images_rows(model, seeds, steps):
    """By a plain loop, as far as weights go; their answers by the formulas, a shape and a change after the other."""

    def loss(predict, batch):
        return changed_images._loss(predict, *batch)

    name, rate = f"images, {model}", {"ViT": 6e-3, "CNN": 1e-2}[model]
    found = trained(
        changed_images.MODELS[model](),
        loss,
        lambda rng: changed_images._drawn(rng, 64)[:2],
        name,
        seeds,
        steps,
        rate,
        train.initial,
    )
    i, j = np.indices((12, 12))
    changes = (
        lambda x: x,
        lambda x: x[:, :, ::-1],
        lambda x: x.transpose(0, 2, 1)[:, ::-1],
        lambda x: x[:, i - 1, j - 1],
        lambda x: x + np.where((i + j) % 2 == 1, 0.5, -0.5),
    )
    lines = []
    for seed, parameters in enumerate(of_seeds(found)):
        drawn = changed_images._drawn(generator(f"images, test {seed}"), 120)
        images, kind, row, column = (part.numpy() for part in drawn)
        says = [{"ViT": vit, "CNN": cnn}[model](Known(parameters), change(images)).argmax(-1) for change in changes]
        for shape, whole in itertools.product(range(4), (0, 1)):
            these = (kind == shape) & ((np.maximum(row, column) < 7) == whole)
            shares = [np.mean(said[these] == shape) for said in says]
            lines.append([model, seed, "LT+O"[shape], whole, these.sum(), *shares])
    return lines


def vit(W, images):
    patches = images.reshape(-1, 4, 3, 4, 3).swapaxes(2, 3).reshape(-1, 16, 9)
    X = patches @ W("W_E", 9, 24) + W("P", 16, 24)
    for k in range(2):
        X = f.ablation_layer(W.of(f"layers.{k}"), X, 2, 48, "pre", True, True)
    return f.norm_of(W.of("norm"), X).mean(1) @ W("W_U", 24, 4)


def cnn(W, images):
    first, second = W("W_1", 5, 5, 20), W("W_2", 20, 5, 5, 20)
    windows = np.lib.stride_tricks.sliding_window_view(images, (5, 5), (1, 2))
    X = f.relu(np.einsum("sijab,abc->sijc", windows, first))
    windows = np.lib.stride_tricks.sliding_window_view(X, (5, 5), (1, 2))
    return f.relu(np.einsum("sijcab,cabd->sijd", windows, second)).mean((1, 2)) @ W("W_U", 20, 4)


def read(rows):
    """Numbers where text is one."""
    return [[float(x) if isinstance(x, str) and x[:1].isdigit() else x for x in row] for row in rows]


def result(run):
    return {"losses": run.losses, "parameters": dict(run.parameters)}


class Variant(Choice):
    """One of the variants, and no other tried."""

    def bad(self, value, given):
        yield from (bad for bad in super().bad(value, given) if bad.kind != "valid")


RATE = Other(
    "learning rate",
    lambda given: 1e-3,
    ("negative", "", lambda _: -1e-3),
    ("type", "a word", lambda _: "x"),
    types=False,
)
TRAINING = {"seeds": Count(1), "steps": Count(1)}
OF_DEPTH = {"layers": Count(1), "variant": Variant("skip", "self"), **TRAINING}
OF_PLACE = {"layers": Count(1), "place": Variant("pre", "post"), "rate": RATE, **TRAINING}
SIX_DIGITS = 1e3  # of 1e-9: what is stored


def a_run(module, **options):
    """A model of one layer with two seeds, as the plain loop would give it."""

    def draw(given):
        model = built(module, 1, **options)
        drawn = [train.initial(model, generator(f"oracle {k}")) for k in range(2)]
        return train.Run(model, {k: torch.stack([p[k] for p in drawn]) for k in drawn[0]}, torch.zeros(2, 1))

    return Other("Run", draw, types=False)


def found_of(run):
    return {"losses": run.losses.numpy(), "parameters": {k: v.numpy() for k, v in run.parameters.items()}}


EXPERIMENTS = [
    Entry(
        "experiments.depth_without_skips.attending_to_itself",
        lambda model, rng: dict(depth.attending_to_itself(model, rng)),
        eyes,
        {"model": Other("TinyLM", lambda given: built(depth, 1)), "rng": Rng()},
        raw=True,
    ),
    Entry(
        "experiments.depth_without_skips.model",
        lambda layers, variant, tokens: f.fill(depth.model(layers, variant))(tokens),
        lambda layers, variant, tokens: f.tiny_lm(
            f.Weights(), tokens, 4, depth.N, 16, layers, 2, **options_of(variant)
        )[0],
        {"layers": Count(2, least=0), "variant": Choice(*KINDS), "tokens": Tokens("batch n", below="vocabulary")},
        sizes={"vocabulary": 4},
    ),
    Entry(
        "experiments.depth_without_skips.start",
        lambda variant, rng: dict(depth.start(variant)(built(depth, 1), rng)),
        lambda variant, rng: start_of(variant)(built(depth, 1), rng),
        {"variant": Choice(*KINDS), "rng": Rng()},
        raw=True,
    ),
    Entry(
        "experiments.depth_without_skips.run_name",
        lambda layers: depth.run_name(layers),
        lambda layers: f"depth without skips, {layers} layers",
        {"layers": Other("whole number", lambda given: 3, types=False)},
    ),
    Entry("experiments.depth_without_skips.trained", lambda **a: result(depth.trained(**a)), depth_run, OF_DEPTH),
    Entry(
        "experiments.depth_without_skips.excess",
        lambda run: depth.excess(run),
        lambda run: depth_excess(found_of(run)),
        {"run": a_run(depth)},
    ),
    Entry(
        "experiments.depth_without_skips.residual_at_start",
        lambda **a: depth.residual_at_start(**a),
        residual_at_start,
        {
            "layers": Count(1),
            "variant": Variant("skip", "self"),
            "seed": Other("whole number", lambda given: 0, types=False),
        },
    ),
    Entry(
        "experiments.depth_without_skips.rows",
        lambda **a: read(depth.rows(**a)),
        depth_rows,
        OF_DEPTH,
        tolerance=SIX_DIGITS,
    ),
    Entry(
        "experiments.placement.trained",
        lambda **a: result(placement.trained(**a)),
        placement_run,
        OF_PLACE,
        also=("norm",),
    ),
    Entry(
        "experiments.placement.excess",
        lambda run: placement.excess(run),
        lambda run: placement_excess(found_of(run)),
        {"run": a_run(placement)},
    ),
    Entry(
        "experiments.placement.norms",
        lambda run, seed: placement.norms(run, seed),
        lambda run, seed: placement_norms(found_of(run), seed),
        {"run": a_run(placement), "seed": Count(1, least=0)},
        where=lambda run, seed: seed < 2,
        tolerance=1e5,  # the lower ends of enclosures
    ),
    Entry(
        "experiments.placement.rows",
        lambda **a: read(placement.rows(**a)),
        placement_rows,
        OF_PLACE,
        also=("norm",),  # of the model
        tolerance=1e5,
    ),
    Entry(
        "experiments.first_steps.rows",
        lambda **a: read(first_steps.rows(**a)),
        first_steps_rows,
        {**OF_PLACE, "warmup": Count(0, least=0)},
        tolerance=1e5,
    ),
    Entry(
        "experiments.position_codes.rows",
        reach_on_few,
        reach_rows,
        {"code": Variant("none", "learned"), "remedy": Variant("plain"), **TRAINING, "tuning": Count(0, least=0)},
        tolerance=1e5,
    ),
    Entry(
        "experiments.past_length.rows",
        past_length_on_one,
        past_length_rows,
        {
            "text": Variant("essay"),
            "window": Count(0, least=0),
            "reading": Variant("shifted", "fresh"),
            "tokens": Count(24, least=24),
            "texts": Other("folder", lambda given: "texts"),
        },
        needs=(SMOLLM2[0],),
        tolerance=1e5,  # float32
    ),
    Entry(
        "experiments.eviction.rows",
        eviction_on_one,
        eviction_rows,
        {"way": Variant("recent", "sinks and recent"), "keys": Count(48, least=4), "passages": Count(1)},
        needs=(SMOLLM2[0],),
        tolerance=1e5,  # float32
    ),
    Entry(
        "experiments.stopped_pairs.rows",
        stopped_pairs_on_one,
        stopped_pairs_rows,
        {"way": Variant("as it is", "12 fastest away"), "text": Variant("passages"), "count": Count(2)},
        needs=(SMOLLM2[0],),
        tolerance=1e5,  # float32
    ),
    Entry(
        "experiments.stand_ins.rows",
        stand_ins_on_few,
        stand_ins_rows,
        {"passage": Count(0, least=0)},
        needs=(SMOLLM2[0],),
        tolerance=1e5,  # float32
    ),
    Entry(
        "experiments.recall.rows",
        lambda **a: read(recall.rows(**a)),
        recall_rows,
        {"way": Variant("mean of all tokens"), **TRAINING},
        tolerance=SIX_DIGITS,
    ),
    Entry(
        "experiments.changed_images.rows",
        changed_images_on_few,
        changed_images_rows,
        {"model": Variant("ViT", "CNN"), **TRAINING},
        tolerance=1e5,  # five decimals
    ),
    Entry(
        "experiments.forecasts.rows",
        forecasts_on_few,
        forecasts_rows,
        {"process": Variant("one series", "either sign"), **TRAINING},
        tolerance=1e5,  # float32
    ),
    Entry(
        "experiments.few_labels.rows",
        few_labels_on_few,
        few_labels_rows,
        {"draw": Count(3, least=0)},
        tolerance=SIX_DIGITS,
    ),
]

ENTRIES = [*FILES, *PLOT, *EXPERIMENTS]
