"""collapse, spectral, measure."""

import contextlib
import csv
import io
import math
import re
import tempfile
from html import escape
from pathlib import Path
from unittest import mock

import numpy as np
import torch
from torch import nn

from smalltorch import collapse, curvature, measure, models, spectral

from .. import formulas as f
from ..judge import TOLERANCE, Enclosed, Entry, Outside
from ..kinds import (
    Bad,
    Count,
    Distribution,
    Flag,
    Kind,
    Mask,
    Maybe,
    Nonnegative,
    Number,
    Other,
    Precision,
    Real,
    Rng,
    Tokens,
)
from .machines import SMALL, Words, decoder, decoder_formula, made

# --- collapse ---------------------------------------------------------------------------------------------------------


class State(Kind):
    """States as a mean, a direction and a scale, whose logarithm is extreme where states are."""

    words = "Split (..., n, d)"
    typed = True
    parts = {"mean": Real("... d"), "direction": Real("... n d"), "log_scale": Real("...")}

    def draw(self, given):
        n, d = given.sizes["n"], given.sizes["d"]
        R = given.rng.standard_normal((*given.batch, n, d))
        R = R - R.mean(-2, keepdims=True) if n else R
        mean, log_scale = given.rng.standard_normal((*given.batch, d)), given.rng.standard_normal(given.batch)
        length = np.sqrt((R**2).sum((-2, -1), keepdims=True))
        state = mean, R / np.where(length == 0, 1, length), np.where(length[..., 0, 0] == 0, -math.inf, log_scale)
        return collapse.Split(*(torch.from_numpy(np.asarray(x)).to(given.dtype) for x in state))

    def shapes(self, name, value):
        for part, kind in self.parts.items():
            yield part, getattr(value, part, None), kind.shape

    def bad(self, state, given):
        for part, kind in self.parts.items():
            for bad in kind.bad(getattr(state, part), given):
                if bad.kind == "extreme" and part != "mean":
                    continue
                if (part, bad.kind) == ("direction", "dtype") or (part, bad.note) == ("log_scale", "-inf"):
                    continue  # what is left of it is no direction; a residual of zero
                yield bad._replace(note=f"{part} {bad.note}".strip(), value=state._replace(**{part: bad.value}))
        for power in (-160, 160) if given.dtype == torch.float64 else (-20, 20) if given.dtype == torch.float32 else ():
            shifted = state._replace(log_scale=state.log_scale + power * math.log(10))
            yield Bad("extreme", f"{given.dtype} scale times 1e{power}", shifted)
        if given.dtype == torch.float64:
            yield Bad("type", "a matrix", state.direction, outside=True)
            yield Bad("type", "None", None, outside=True)


STATE = State()
FULL = torch.float64, torch.float32
X = Real("... n d")
DIGITS = 500  # of the cube of a residual of 1e-160, beside its mean


def entry(
    name, oracle, digits=40, where=lambda **_: True, sizes=None, dtypes=tuple(TOLERANCE), absolute=0.0, **arguments
):
    """A function of `collapse` that takes its arguments by name."""
    target = getattr(collapse, name)
    return Entry(
        f"collapse.{name}",
        lambda **a: target(**a),
        oracle,
        arguments,
        where=where,
        digits=digits,
        sizes=sizes or {},
        dtypes=dtypes,
        absolute=absolute,
    )


def split_of(mean, R):
    """The mean, and of the residual its direction and the logarithm of its length."""
    batch = np.broadcast_shapes(mean.shape[:-1], R.shape[:-2])
    mean, R = np.broadcast_to(mean, (*batch, mean.shape[-1])), np.broadcast_to(R, (*batch, *R.shape[-2:]))
    length = np.asarray(f.frobenius(R))
    safe = np.where(length == 0, 1, length)
    return mean, R / safe[..., None, None], np.where(length == 0, -math.inf, f.log(safe))


def whole(X, shift=0):
    """Of states X, all of them moved by the same."""
    if X.shape[-2] == 0:
        raise Outside("no tokens")
    return split_of(X.mean(-2) + shift, f.residual(X))


def parts_of(state):
    """Mean and residual: the one may be NaN without the other."""
    mean, direction, log_scale = state
    f.real(*state)
    if 0 in direction.shape[-2:]:
        raise Outside("no tokens")
    return mean, f.exp(log_scale)[..., None, None] * direction


def added(state, other):
    (mean, R), (shift, S) = parts_of(state), parts_of(other)
    return split_of(mean + shift, R + S)


def log_relative_residual(state):
    mean, direction, log_scale = state
    f.real(*state)
    if (abs((direction**2).sum((-2, -1)) - 1) > 1e-2).any():  # zero, and so no direction
        with_direction = (direction != 0).any((-2, -1))
        if not ((log_scale == -math.inf) | with_direction).all():
            raise Outside("a direction")
    n, scale = direction.shape[-2], f.exp(log_scale)
    total = f.sqrt(n * (mean**2).sum(-1) + scale**2)
    if (total == 0).any():
        raise Outside("all zero")
    return log_scale - f.log(total)


def normalised(state, eps):
    X = f.joined(state)
    if eps == 0 and (X - X.mean(-1, keepdims=True) == 0).all(-1).any():
        raise Outside("a token without variance")
    return whole(f.layer_norm(X, eps=eps))


def attended(state, W_QK, W_VO):
    """Weights below the least float count as 0."""
    mean, direction, log_scale = whole(f.layer(f.joined(state), W_QK, W_VO))
    lost = log_scale < 3 * state[2] - 700
    return mean, np.where(lost[..., None, None], 0, direction), np.where(lost, -math.inf, log_scale)


def mlp(state, W_1, b_1, W_2, b_2):
    f.real(W_1, b_1, W_2, b_2)
    return whole(f.relu(f.joined(state) @ W_1 + b_1[..., None, :]) @ W_2, b_2)


def path_terms(X, P, W, paths):
    return f.path_terms(X, P, W, paths) if len(paths) else np.zeros((*X.shape[:-2], 0, *X.shape[-2:]))


def with_skip(P, W):
    f.real(P, W)
    eye_P, eye_W = np.zeros_like(P[..., :1, :, :]), np.zeros_like(W[..., :1, :, :])
    eye_P[...], eye_W[...] = np.eye(P.shape[-1]), np.eye(W.shape[-1])
    return np.concatenate([eye_P, P], -3), np.concatenate([eye_W, W], -3)


def all_paths(layers, heads):
    paths = [[]]
    for _ in range(layers):
        paths = [[*path, head] for path in paths for head in range(heads)]
    return np.array(paths)


def sampled_paths(layers, probabilities, count, rng):
    p = probabilities / probabilities.sum()
    drawn = rng.choice(len(p), size=(count, layers), p=p)
    return drawn, 1 / p[drawn].prod(-1)


def is_distribution(probabilities, **_):
    return probabilities.dtype.kind == "f" and (probabilities > 0).all() and abs(probabilities.sum() - 1) < 1e-6


W_QK, W_VO = Real("... head d d"), Real("... head d d")
COLLAPSE = [
    entry("residual", f.residual, X=X),
    entry("relative_residual", lambda X: f.frobenius(f.residual(f.nonzero(X))) / f.frobenius(X), X=X),
    entry("spread", f.spread, X=X),
    entry("composite_norm", f.composite_norm, R=Real("... n d")),
    entry("mean_cosine", f.mean_cosine, X=X),
    entry("stable_rank", lambda X: (f.frobenius(f.nonzero(X)) / f.norm_2(X)) ** 2, X=X),
    entry("layer", f.layer, X=X, W_QK=W_QK, W_VO=W_VO, mask=Maybe(Mask("n n"))),
    entry("split", whole, X=X),
    entry("join", f.joined, state=STATE),
    entry("attend", attended, digits=DIGITS, state=STATE, W_QK=W_QK, W_VO=W_VO),
    entry("log_relative_residual", log_relative_residual, digits=DIGITS, absolute=1e-9, state=STATE),
    entry("add", added, digits=DIGITS, state=STATE, other=STATE),
    entry("normalise", normalised, digits=DIGITS, state=STATE, eps=Number(1e-3, least=0)),
    entry(
        "mlp",
        mlp,
        digits=DIGITS,
        state=STATE,
        W_1=Real("... d d_ff"),
        b_1=Real("... d_ff"),
        W_2=Real("... d_ff d"),
        b_2=Real("... d"),
    ),
    entry("with_skip", with_skip, P=Real("... layer head n n"), W=Real("layer head d d")),
    entry("all_paths", all_paths, layers=Count(3), heads=Count(2)),
    entry(
        "sample_paths",
        sampled_paths,
        where=is_distribution,
        dtypes=FULL,
        layers=Count(3),
        probabilities=Distribution("head"),
        count=Count(5, least=0),
        rng=Rng(),
    ),
    entry(
        "path_terms",
        path_terms,
        X=X,
        P=Real("... layer head n n"),
        W=Real("layer head d d"),
        paths=Tokens("path layer", below="head"),
        sizes={"path": 5, "layer": 3},
    ),
    Entry(
        "collapse.Split.scale",
        lambda state: state.scale,
        lambda state: f.exp(state.log_scale)[..., None, None],
        {"state": Other("Split", STATE.draw, types=False)},
    ),
]

# --- spectral ---------------------------------------------------------------------------------------------------------


def width(rtol):
    """How wide bounds may be without a warning."""
    return max(rtol, 1e-12) if rtol < 1 else 1e300


def enclosed_norm(A, rtol):
    if A.dtype.kind not in "fO" or 0 in A.shape[-2:] or (A < 0).any():
        raise Outside("at least 0")
    return Enclosed(f.norm_2(A), width(rtol))


def attention_norm(q, k, causal, scale, rtol):
    n = q.shape[-2]
    A = f.attention(q, k, np.zeros((*k.shape[:-1], 1)), f.causal(n) if causal else None, scale)[1]
    return Enclosed(f.norm_2(A), width(rtol))


def estimate(q, k):
    return [f.norm_2(f.attention(q, k, np.zeros((*k.shape[:-1], 1)), f.causal(q.shape[-2]))[1])]


SPECTRAL = [
    Entry(
        "spectral.spectral_norm",
        lambda A, rtol: spectral.spectral_norm(A, rtol),
        enclosed_norm,
        {"A": Nonnegative("... n m"), "rtol": Number(1e-4, above=0)},
        sizes={"m": 4},
    ),
    Entry(
        "spectral.attention_spectral_norm",
        lambda q, k, **options: spectral.attention_spectral_norm(q, k, **options),
        attention_norm,
        {
            "q": Real("... n d_h"),
            "k": Real("... n d_h"),
            "causal": Flag(True),
            "scale": Maybe(Number(0.7)),
            "rtol": Number(1e-3, above=0),
        },
        where=lambda q, k, **_: q.dtype.kind in "fO" and k.dtype.kind in "fO",
        dtypes=FULL,
        sizes={"d_h": 8},  # of which fused kernels make no copy
    ),
    Entry(
        "spectral.attention_spectral_norm, an estimate",
        lambda q, k: list(spectral.attention_spectral_norm(q, k, causal=True)),
        estimate,
        {"q": Real("... n d_h"), "k": Real("... n d_h")},
        dtypes=(torch.float16, torch.bfloat16),
        tolerance=0.5,
        sizes={"d_h": 8},
    ),
    Entry(
        "spectral.uniform_causal",
        lambda n: spectral.uniform_causal(n),
        lambda n: np.array([[(j <= i) / (i + 1) for j in range(n)] for i in range(n)]).reshape(n, n),
        {"n": Count("n", least=0)},
    ),
]

# --- measure ----------------------------------------------------------------------------------------------------------

TEXTS = ["the gulls", "nets", "nets", "a"]


def lengths(texts):
    return np.array([len(text) for text in texts])


def tokens(text):
    return np.array([[ord(letter) % 7 for letter in text]])


def norms(texts):
    """||A||_2 of every layer, text and head."""
    A = [np.stack(decoder_formula(torch.float64, tokens(text))[2])[:, 0] for text in texts]
    return np.stack([np.linalg.norm(a, 2, (-2, -1)) for a in A], 1)


def uniform_norm(n):
    return np.linalg.norm(np.tri(n) / np.arange(1, n + 1)[:, None], 2)


class Lengths(Tokens):
    """Numbers of tokens, from 1 on."""

    def draw(self, given):
        return 1 + super().draw(given)

    def bad(self, x, given):
        for bad in super().bad(x, given):
            if bad.kind not in ("range", "extreme", "meta") and bad.note != "complex":
                yield bad
        yield Bad("range", "zero", 0 * x, outside=True)


class Spectra(Kind):
    """Bounds for heads on texts."""

    words = "Spectrum"

    def draw(self, given):
        lower = 1 + torch.from_numpy(given.rng.random((2, 3, 2)))
        rows = 1 - torch.from_numpy(given.rng.random((2, 3, 2))) / 2
        return measure.Spectrum(torch.tensor([2, 5, 3]), lower, lower * 1.0001, [2, 7], rows)

    def bad(self, value, given):
        if given.dtype == torch.float64:
            yield Bad("size", "lower of a text less", value._replace(lower=value.lower[:, 1:]), outside=True)
            yield Bad("size", "rows of a text less", value._replace(rows=value.rows[:, 1:]), outside=True)
            yield Bad("nan", "rows", value._replace(rows=value.rows * torch.nan), outside=True)
            empty = measure.Spectrum(value.n[:0], value.lower[:, :0], value.upper[:, :0])
            yield Bad("empty", "no texts", empty, outside=True)

    def shapes(self, name, value):
        for part, shape in (("n", "text"), *dict.fromkeys(("lower", "upper", "rows"), "layer text head").items()):
            yield part, getattr(value, part, None), shape


SPECTRUM = Spectra()


def rows_of(spectrum):
    heads = spectrum[1].mean(1)
    return [[k, h.mean(), h.min(), h.max()] for k, h in zip(spectrum[3], heads, strict=True)]


def extremes(spectrum):
    """The least and the greatest that a head's norm can be for its rows."""
    root = np.sqrt(spectrum[0])[None, :, None]
    return spectrum[4].mean(1).min(), (root * spectrum[4]).mean(1).max()


def printed(call, stream=contextlib.redirect_stdout):
    with stream(io.StringIO()) as said:
        call()
    return said.getvalue()


def baselines(n, rows):
    rows = np.ones((1, len(n), 1)) if rows is None else rows
    f.real(rows)
    least, root = extremes([n, None, None, None, rows])
    return [least, np.mean([uniform_norm(k) for k in n]), root]


def table_text(spectrum):
    n, rows, (least, root) = spectrum[0], spectrum[4], extremes(spectrum)
    uniform = np.mean([uniform_norm(k) for k in n])
    lines = [
        f"{len(n)} texts of {n.min()} to {n.max()} tokens, each by itself; spectral norms, mean over texts",
        f"to compare with: least possible {least:.3f}, uniform causal {uniform:.3f}, greatest possible {root:.3f}",
        f"rows of A do not sum to 1 (root mean square of a head's: {rows.min():.3f} to {rows.max():.3f}); "
        "what is possible is said for such rows",
        "layer    mean  heads from      to",
        *("{:5d} {:7.3f}     {:7.3f} {:7.3f}".format(*row) for row in rows_of(spectrum)),
    ]
    return "".join(f"{line}\n" for line in lines)


def csv_text(n, lower, upper, numbers, _):
    lines = ["layer,head,text,tokens,lower,upper"]
    layers, texts, heads = np.shape(lower)
    for layer, head, text in np.ndindex(layers, heads, texts):
        bounds = f"{lower[layer, text, head]},{upper[layer, text, head]}"
        lines.append(f"{numbers[layer]},{head + 1},{text + 1},{n[text]},{bounds}")
    return lines


def drawn(spectrum):
    """The curves of the figure."""
    from smalltorch.figures.plot import figure

    _, ax = figure()
    measure.draw(ax, spectrum)
    return [np.asarray(line.get_ydata(), dtype=float) for line in ax.lines]


def curves(spectrum):
    rows, n, (least, root) = rows_of(spectrum), spectrum[0], extremes(spectrum)
    uniform = np.mean([uniform_norm(k) for k in n])
    return [np.array([row[1] for row in rows]), *(np.full(2, y) for y in (root, uniform, least))]


def written(write, *arguments):
    """What a function of a path leaves in a new folder."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "out", *arguments)
        return {path.name: path.read_text(encoding="utf-8") for path in Path(folder).iterdir()}


def paths_of(svg):
    """The curves in a file, without their names."""
    return re.findall(r'<path d="[^"]*"', svg)


def figure_file(title, spectrum):
    (svg,) = written(measure.write_figure, title, spectrum).values()
    return paths_of(svg), f">{escape(title, quote=False)}</text>" in svg


def figure_by_hand(title, spectrum):
    """The same figure, drawn with matplotlib alone: band, curve, baselines, and what belongs to them."""
    from smalltorch.figures.plot import figure

    rows, n, (low, root) = rows_of(spectrum), spectrum[0], extremes(spectrum)
    fig, ax = figure()
    layer, mean, least, greatest = zip(*rows, strict=True)
    ax.fill_between(layer, least, greatest, alpha=0.25, lw=0)
    ax.plot(layer, mean, marker=".", label="mean over heads")
    uniform = measure.baselines(torch.from_numpy(n)).uniform  # as an enclosure gives it
    for y, style in (
        (root, dict(ls=":", label="greatest possible")),
        (uniform, dict(ls="--", label="uniform causal")),
    ):
        ax.axhline(y, color="grey", **style)
    ax.axhline(low, color="grey", lw=0.8)
    ax.set(xlabel="layer", ylabel="spectral norm", title=title)
    ax.legend()
    file = io.StringIO()
    fig.savefig(file, format="svg")
    return paths_of(file.getvalue()), True


def command(MODEL, texts, out):
    """`main`, on a model that `load` is made to give; the table that it leaves."""
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(measure, "load", lambda name: (decoder(), Words())):
        (Path(folder) / "texts.txt").write_text("\n".join(TEXTS), encoding="utf-8")
        said = io.StringIO()
        try:
            with contextlib.redirect_stderr(said):
                measure.main([MODEL, "--texts", f"{folder}/{texts}", "--out", f"{folder}/{out}"])
        except SystemExit as exit:
            raise ValueError(said.getvalue().strip().splitlines()[-1].partition("error: ")[2]) from exit
        rows = list(csv.DictReader((Path(folder) / f"{out}.csv").read_text(encoding="utf-8").splitlines()))
        found = {path.suffix for path in Path(folder).iterdir()}
    return sorted(found), [[float(row["lower"]), float(row["upper"])] for row in rows]


def command_formula(**_):
    norm = norms(TEXTS)
    bounds = [Enclosed(norm[layer, text, head], 1e-4) for layer in (0, 1) for head in (0, 1) for text in range(4)]
    return [".csv", ".svg", ".txt"], bounds


MEASURE = [
    Entry(
        "measure.positions",
        lambda model: measure.positions(model),
        lambda model: 6,
        {
            "model": Other(
                "module", lambda given: made(models.Encoder, torch.float64, **SMALL, positions=6), types=False
            )
        },
    ),
    Entry(
        "measure.attention_of",
        lambda dtype, model, tokens: measure.attention_of(model, tokens),
        lambda dtype, model, tokens: np.stack(decoder_formula(dtype, tokens)[2]),
        {
            "dtype": Precision(),
            "model": Other(
                "module",
                lambda given: decoder(given.dtype),
                ("type", "no transformer", lambda _: nn.Linear(3, 3)),
                types=False,
            ),
            "tokens": Tokens("batch n", below="vocabulary"),
        },
    ),
    Entry(
        "measure.norms_by_layer",
        lambda model, tokenizer, texts, rtol: pairs(measure.norms_by_layer(model, tokenizer, texts, rtol)),
        lambda model, tokenizer, texts, rtol: [lengths(texts), Enclosed(norms(texts), width(rtol))],
        {
            "model": Other(
                "module", lambda given: decoder(), ("type", "no transformer", lambda _: nn.Linear(3, 3)), types=False
            ),
            "tokenizer": Other("tokenizer", lambda given: Words(), types=False),
            "texts": Other(
                "texts with a token at least",
                lambda given: TEXTS,
                ("empty", "none", lambda _: []),
                ("empty", "one of them", lambda texts: [*texts, ""]),
                ("type", "one text", lambda texts: texts[0]),
                ("type", "of numbers", lambda texts: [1, 2]),
                types=False,
            ),
            "rtol": Number(1e-4, above=0),
        },
        also=("text",),
    ),
    Entry(
        "measure.baselines",
        lambda n, rows: measure.baselines(n, rows),
        baselines,
        {"n": Lengths("text", below="vocabulary"), "rows": Maybe(Nonnegative("layer text head"))},
        tolerance=1e6,
    ),
    Entry("measure.table", lambda spectrum: measure.table(spectrum), rows_of, {"spectrum": SPECTRUM}),
    Entry("measure.draw", drawn, curves, {"spectrum": SPECTRUM}, tolerance=1e6),
    Entry(
        "measure.main",
        command,
        command_formula,
        {
            "MODEL": Other("name of a model", lambda given: "smollm2", types=False),
            "texts": Other(
                "file with a line of text",
                lambda given: "texts.txt",
                ("range", "missing", lambda _: "nothing.txt"),
                ("type", "a folder", lambda _: "."),
                types=False,
            ),
            "out": Other(
                "name in a folder that is there",
                lambda given: "out",
                ("range", "no such folder", lambda _: "none/out"),
                ("empty", "", lambda _: ""),
                types=False,
            ),
        },
    ),
    Entry(
        "measure.bar",
        lambda items, width: [
            list(measure.bar(items, width)),
            printed(lambda: list(measure.bar(items, width)), contextlib.redirect_stderr),
        ],
        lambda items, width: [
            items,
            "".join(
                f"\r[{'#' * (width * k // max(1, len(items))):{width}}] {k}/{len(items)}" for k in range(len(items) + 1)
            )
            + "\n",
        ],
        {
            "items": Other("items", lambda given: [np.array(4), np.array(5), np.array(7)], types=False),
            "width": Count(30, least=0),
        },
    ),
    Entry(
        "measure.print_table",
        lambda spectrum: printed(lambda: measure.print_table(spectrum)),
        table_text,
        {"spectrum": SPECTRUM},
    ),
    Entry(
        "measure.write_csv",
        lambda spectrum: written(measure.write_csv, spectrum)["out"].splitlines(),
        lambda spectrum: csv_text(*spectrum),
        {"spectrum": SPECTRUM},
    ),
    Entry(
        "measure.write_figure",
        figure_file,
        figure_by_hand,
        {"title": Other("text", lambda given: "gulls", types=False), "spectrum": SPECTRUM},
    ),
]


def pairs(spectrum):
    return [spectrum.n, [spectrum.lower, spectrum.upper]]


# --- curvature --------------------------------------------------------------------------------------------------------


def between(size):
    """A symmetric matrix, with eigenvalues of both signs."""
    k = np.arange(size)
    return np.cos(k[:, None] + k[None, :]) - 0.3 * np.eye(size)


def ritz(start, steps):
    """The largest eigenvalue of H on the span of v, H v, ..., by an orthonormal basis of all of them at once."""
    found = []
    for v in start.numpy():
        H = between(len(v))
        powers = [v / np.abs(v).max()]
        for _ in range(steps - 1):
            powers.append(H @ powers[-1])
        Q = np.linalg.qr(np.stack(powers, 1))[0]
        found.append(np.linalg.eigvalsh(Q.T @ H @ Q)[-1])
    return np.array(found)


CURVATURE = [
    Entry(
        "curvature.largest_eigenvalue",
        lambda start, steps: curvature.largest_eigenvalue(
            lambda V: V @ torch.from_numpy(between(V.shape[-1])).to(V.device), start, steps
        ),
        ritz,
        {"start": Real("m d"), "steps": Count(2)},
        raw=True,
        sizes={"m": 3, "d": 5},
        dtypes=(torch.float64,),
    ),
]
