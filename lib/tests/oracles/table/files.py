"""data, files, plot, picture, diagram, experiments."""

import errno
import math
import os
import re
import tempfile
from functools import cache
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch

from smalltorch import data, diagram, files, picture, plot, train
from smalltorch.engine.sample import generator
from smalltorch.experiments import depth_without_skips as depth
from smalltorch.experiments import first_steps, past_length, placement, reach
from smalltorch.models import TinyLM
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
    Entry("files.place", placed, lambda path: ["old.txt", "old.txt", "new.txt"], {"path": PATH}),
    Entry(
        "files.in_one_line",
        ended,
        lambda number: "table.csv: No such file or directory",
        {"number": Other("of an error of the system", lambda given: errno.ENOENT, types=False)},
    ),
]

# --- plot, diagram ----------------------------------------------------------------------------------------------------

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
        "diagram.machine",
        lambda mark: repr(diagram.machine(mark)),
        lambda mark: "a drawing: The whole machine" + (f"; marked: {MARKED[mark]}" if mark else ""),
        {"mark": Choice(*MARKED, None)},
    ),
    Entry(
        "plot.figure",
        sizes_of,
        lambda width, height, columns: [np.array([width, height]), columns, "ConstrainedLayoutEngine"],
        {"width": Number(5.0, above=0), "height": Number(2.5, above=0), "columns": Count(3)},
        where=lambda width, height, columns: max(width, height) < math.inf,
    ),
    Entry(
        "plot.rough",
        lambda artists: (plot.rough(artists), artists in plot._ROUGH)[1],
        lambda artists: True,
        {"artists": Other("a line", lambda given: drawing().axes[0].lines[0])},
    ),
    Entry(
        "plot.described",
        lambda drawn: np.array(
            [int(count) for count in re.findall(r"(\d+) (?:line|shape|point)", plot.described(drawn))]
        ),
        lambda drawn: np.array([2, 0, 3 + 2]),
        {"drawn": Other("a curve of three points and a level", lambda given: drawing())},
    ),
    Entry(
        "picture.picture",
        lambda drawn: picture.picture(drawn).count("stroke: #0072b2"),
        lambda drawn: 2,
        {"drawn": Other("a curve of three points and a level", lambda given: drawing())},
    ),
    Entry(
        "picture.slim",
        lambda svg: picture.slim(svg),
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
    letter = sampled(reach.CHAIN.P.numpy(), rng, count, n)
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
    with patch.object(reach, "HELD_OUT", [part[:FEW] for part in reach.HELD_OUT]):
        return read(reach.rows(**arguments))


def reach_rows(code, remedy, seeds, steps, tuning):
    """By a plain loop, as far as weights go; what is read off them by the formulas."""
    held, asked = (part[:FEW] for part in reach_texts(generator("reach, held out"), 64, 256))
    letter = np.where(held > 7, held - 8, held)
    own = np.zeros(held.shape)
    own[:, 2:] = -np.log(reach.CHAIN.P.numpy()[letter[:, 1:-1], letter[:, 2:], np.clip(asked[:, 2:], 0, 3)])
    lines = []
    for seed in range(seeds):
        model, rng = reach._Reader(code, remedy), generator(f"reach, data {seed}, 32 tokens")
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
    W = Known({name: value.numpy() for name, value in model.state_dict().items()})
    logits = f.decoder(W, read[None, :-1], len(model.E), 576, 30, 9, 1536, 3, 1e5, model.norm.eps)[0][0]
    size = tokens // 24
    bins = [(k, f.cross_entropy(logits[k : k + size], read[1:][k : k + size])) for k in range(0, len(logits), size)]
    return [[text, window, reading, start + k, loss] for k, loss in bins]


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
        "experiments.reach.rows",
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
]

ENTRIES = [*FILES, *PLOT, *EXPERIMENTS]
