"""Figures: one look for the whole book. SVG, transparent, with text that is text, legible without colour.

A notebook stores one picture of a figure, as light pages show it. Where the book's pages are dark, its build exchanges
the palette's colours, black and the greys; other colours, such as those of a heat map, stay.
"""

import math
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from html import escape
from io import StringIO
from itertools import groupby
from numbers import Real
from typing import NamedTuple
from weakref import WeakSet

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from cycler import cycler
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis, Tick
from matplotlib.cbook import is_math_text
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import Formatter, NullFormatter
from numpy.typing import NDArray

from smalltorch.shapes import check_integers, check_type

# Okabe and Ito's palette, which colour-blind readers can tell apart; each colour has its own dashes and marker as well.
BLUE, ORANGE, GREEN, PINK, SKY, BLACK = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#000000"
GREY = "#808080"  # of what is there for comparison
COLOURS = [BLUE, ORANGE, GREEN, PINK, SKY, BLACK]
DASHES = ["-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1))]
MARKERS = ["o", "s", "^", "D", "v", "x"]

mpl.rcParams.update(
    {
        "figure.facecolor": "none",
        "axes.facecolor": "none",
        "savefig.facecolor": "none",
        "legend.frameon": False,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.alpha": 0.3,
        "font.size": 10,
        "font.sans-serif": ["DejaVu Sans"],  # its letters are wider than those of the fonts that readers see
        "mathtext.fontset": "stix",
        "svg.fonttype": "none",
        "lines.markersize": 4,
        "axes.prop_cycle": cycler(color=COLOURS, linestyle=DASHES),
        "svg.hashsalt": "smalltorch",  # the same figure gives the same file
    }
)


def figure(width: float = 6.4, height: float = 3.6, columns: int = 1) -> tuple[Figure, Axes]:
    """A figure in inches with one row of axes: (figure, axes), or an array of axes for several columns.

    Raises:
        ValueError: if a size is not positive and finite, or there is no column.
    """
    for name, size in (("width", width), ("height", height)):
        if not (isinstance(size, Real) and 0 < size < math.inf):
            raise ValueError(f"{name}: expected a positive number, got {size!r}")
    check_integers(1, columns=columns)
    return plt.subplots(1, columns, figsize=(width, height), layout="constrained")


_ROUGH: WeakSet[Artist] = WeakSet()


def rough(*artists: Artist) -> None:
    """Leave lines, or whole axes, out of what is compared, but for texts: rounding or a chaotic training draws them.

    Raises:
        ValueError: if one is nothing that matplotlib draws.
    """
    for artist in artists:
        check_type(Artist, artists=artist)
        _ROUGH.add(artist)


def described(drawn: Figure) -> str:
    """What is drawn, as one line of text: a chapter's test compares it, because drawings differ between machines.

        >>> fig, ax = figure()
        >>> _ = ax.plot([1, 2, 4])
        >>> described(fig)
        'figure: 1 line, 0 shapes, 3 points, digest a505c694'

    The digest is of all texts, scales and limits, and of every point, as a share of the width and the height of its
    axes to three digits, which is what can be seen; but for those that are `rough`.

    Raises:
        ValueError: if it is no figure.
    """
    check_type(Figure, drawn=drawn)
    lines = sum(len(axes.lines) for axes in drawn.axes)
    shapes = sum(len(axes.collections) + len(axes.patches) + len(axes.images) for axes in drawn.axes)
    compared = [axes for axes in drawn.axes if axes not in _ROUGH]
    points = [xy for axes in compared for xy in _points(axes)]
    parts = [_texts(drawn), *map(_frame, compared), *map(_rounded, points)]
    digest = sha256("\n".join(parts).encode()).hexdigest()[:8]
    counted = [(lines, "line"), (shapes, "shape"), (sum(map(len, points)), "point")]
    counts = ", ".join(f"{count} {what}{'' if count == 1 else 's'}" for count, what in counted)
    return f"figure: {counts}, digest {digest}"


def _points(axes: Axes) -> Iterator[NDArray[np.float64]]:
    """The points of lines, of bands, scatters and bars, and the values of images: an array for each."""
    seen = axes.transScale + axes.transLimits  # from data to shares of the axes
    with np.errstate(all="ignore"):  # 0 on a logarithmic axis, where a line across the whole figure begins
        for line in (line for line in axes.lines if line not in _ROUGH):
            yield seen.transform(line.get_xydata())
        for shapes in axes.collections:
            offsets = np.ma.filled(shapes.get_offsets(), np.nan).reshape(-1, 2)
            paths = [] if offsets.any() else [path.vertices for path in shapes.get_paths()]
            yield from map(seen.transform, [offsets, *paths])
        for patch in axes.patches:
            yield seen.transform(patch.get_patch_transform().transform(patch.get_path().vertices))
    for image in axes.images:
        if (values := image.get_array()) is not None:
            yield np.ma.filled(image.norm(values), np.nan).reshape(-1, 1).astype(float)


def _rounded(points: NDArray[np.float64]) -> str:
    """Shares to three digits; what is far outside is there, and no more. A tie is moved to one side of it."""
    shares = np.clip(np.nan_to_num(points, nan=9, posinf=9, neginf=-9), -9, 9) + 1e-7
    return str((np.floor(1000 * shares + 0.5).astype(int)).tolist())


def _frame(axes: Axes) -> str:
    limits = [f"{float(limit):.3g}" for limit in (*axes.get_xlim(), *axes.get_ylim())]
    return " ".join([axes.get_xscale(), axes.get_yscale(), *limits])


def _texts(drawn: Figure) -> str:
    """Titles, labels, notes and legends."""
    texts = [text for axes in drawn.axes for text in (axes.title, axes.xaxis.label, axes.yaxis.label, *axes.texts)]
    legends = [*drawn.legends, *(axes.legend_ for axes in drawn.axes if axes.legend_)]
    texts += [text for legend in legends for text in legend.get_texts()]
    return "\n".join(text.get_text() for text in (*drawn.texts, *texts))


def picture(drawn: Figure) -> str:
    """The figure as an SVG with text that can be found, selected and set in the page's own type.

        >>> fig, ax = figure()
        >>> _ = ax.set_xlabel("width $d_h$")
        >>> "width <tspan" in picture(fig)
        True

    Formulas of a line, such as `$\\sqrt{d_h}$`, become text as well; others, such as fractions, are set by matplotlib.
    Names beginning with "over-" mark the texts on heat maps, whose colours stay with what they lie on.

    Raises:
        ValueError: if it is no figure.
    """
    check_type(Figure, drawn=drawn)
    drawn.draw_without_rendering()  # this makes the ticks, and whatever else is made late
    written = StringIO()
    with _as_text(drawn) as formulas:
        drawn.savefig(written, format="svg", bbox_inches="tight", metadata={"Date": None, "Creator": None})
    svg = slim(written.getvalue())
    for name, lines in formulas.items():
        before, group, after = svg.partition(f'<g id="{name}">')
        if group:  # it is drawn
            words, end, after = after.partition("</g>")
            svg = before + group + _filled(words, lines) + end + after
    return svg


def _filled(words: str, lines: list[str]) -> str:
    """Elements <text>, with these lines instead of what they have."""
    texts = iter(lines)
    return re.sub(r"(<text[^>]*>)[^<]*", lambda found: found[1] + next(texts), words)


_ROOT = 'class="plot" font-family="system-ui, sans-serif" stroke-linejoin="round"'
_NOISE = re.compile(
    r"<metadata>.*?</metadata>|<!--.*?-->|<style[^>]*>.*?</style>"
    r"|(?<=[;\"]) ?font-family: 'DejaVu Sans', sans-serif;? ?| transform=\"rotate\(-?0 [^\"]*\"",
    re.DOTALL,
)


def slim(svg: str) -> str:
    """A figure's SVG without what no reader sees: metadata, comments, white space and more than two decimals."""
    check_type(str, svg=svg)
    svg = _NOISE.sub("", svg[max(0, svg.find("<svg")) :])
    svg = re.sub(r'( (?:d|x|y|points)=")([^"]*)', lambda found: found[1] + _short(found[2]), svg)
    svg = re.sub(r">\s*\n\s*<", "><", svg).replace("<defs></defs>", "").replace("><g id=", ">\n<g id=")
    return svg if 'class="plot"' in svg else svg.replace("<svg", f"<svg {_ROOT}", 1)


def _short(numbers: str) -> str:
    numbers = re.sub(r"-?\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), numbers)
    return re.sub(r"\s*([A-DF-Za-df-z])\s*", r"\1", re.sub(r"\s+", " ", numbers)).strip()


@contextmanager
def _as_text(drawn: Figure) -> Iterator[dict[str, list[str]]]:
    """While it lasts, the figure has plain text for its formulas; given is their markup, a line each, by the names of
    their groups in the SVG."""
    axes_of: list[Axis] = [axis for axes in drawn.axes for axis in (axes.xaxis, axes.yaxis)]
    ticks = {label for axis in axes_of for tick in _ticks(axis) for label in (tick.label1, tick.label2)}
    ticks |= {axis.offsetText for axis in axes_of}
    sets = [tickers for axis in axes_of for tickers in (axis.major, axis.minor)]
    formatters = [tickers.formatter or NullFormatter() for tickers in sets]
    mapped = [axes for axes in drawn.axes if axes.images or any(isinstance(one, QuadMesh) for one in axes.collections)]
    on_maps = {text for axes in mapped for text in axes.texts}
    texts = {text: text.get_text() for text in drawn.findobj(Text) if text not in ticks and text.get_text()}
    formulas = {}
    try:
        for tickers, formatter in zip(sets, formatters, strict=True):
            tickers.formatter = _Plain(formatter)
        for number, (text, said) in enumerate(texts.items()):
            name = f"{'over' if text in on_maps else 'text'}-{number}"
            parsed = _parsed(said) if text.get_parse_math() else None
            if parsed or text in on_maps:
                text.set_gid(name)
            if parsed:
                text.set_text("\n".join("".join(piece.text for piece in line) for line in parsed))
                formulas[name] = [_markup(line, float(text.get_fontsize())) for line in parsed]
        yield formulas
    finally:
        for tickers, formatter in zip(sets, formatters, strict=True):
            tickers.formatter = formatter
        for text, said in texts.items():
            text.set_text(said)
            text.set_gid(None)


def _ticks(axis: Axis) -> list[Tick]:
    return [*axis.majorTicks, *axis.minorTicks]


class _Plain(Formatter):
    """What another formatter writes, with formulas as plain text: 10⁻³."""

    def __init__(self, inner: Formatter) -> None:
        self.inner = inner

    def __call__(self, x: float, pos: int | None = None) -> str:
        return _plain(self.inner(x, pos))

    def format_ticks(self, values: Iterable[float]) -> list[str]:
        return list(map(_plain, self.inner.format_ticks(list(values))))

    def get_offset(self) -> str:
        return _plain(self.inner.get_offset())


class _Piece(NamedTuple):
    """Text of one look: words, upright or italic in a formula; on the line, above it (1) or below it (−1)."""

    text: str
    kind: str = "words"
    level: int = 0


_GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ϵ", "varepsilon": "ε", "eta": "η", "theta": "θ",
    "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "phi": "φ",
    "varphi": "φ", "chi": "χ", "psi": "ψ", "omega": "ω", "ell": "ℓ",
}  # fmt: skip
_SIGNS = {
    "Delta": "Δ", "Gamma": "Γ", "Lambda": "Λ", "Pi": "Π", "Sigma": "Σ", "Phi": "Φ", "Omega": "Ω", "Vert": "‖", "|": "‖",
    "vert": "|", "cdot": "·", "odot": "⊙", "infty": "∞", "top": "⊤", "partial": "∂", "nabla": "∇", "star": "⋆",
    "ast": "∗", "prime": "′", "ldots": "…", "dots": "…", "langle": "⟨", "rangle": "⟩", "left": "", "right": "",
    ",": "\u2009", ":": "\u2009", ";": "\u2009", " ": " ", "quad": "\u2003", "!": "",
    "{": "{", "}": "}", "%": "%", "$": "$", "#": "#",
}  # fmt: skip
_RELATIONS = {
    "le": "≤", "leq": "≤", "ge": "≥", "geq": "≥", "approx": "≈", "sim": "∼", "propto": "∝", "to": "→", "times": "×",
    "pm": "±", "neq": "≠", "ne": "≠", "in": "∈", "ll": "≪", "gg": "≫",
}  # fmt: skip
_FUNCTIONS = {"log", "ln", "exp", "cosh", "sinh", "tanh", "cos", "sin", "max", "min", "det", "Pr"}
_UPRIGHT = {"mathrm", "mathdefault", "text", "operatorname", "mathsf", "rm"}
_TOKEN = re.compile(r"\\([A-Za-z]+|.)|(\s+)|(.)", re.DOTALL)
_RAISED = str.maketrans("0123456789+−-=()niTLk", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ⁿⁱᵀᴸᵏ")
_LOWERED = str.maketrans("0123456789+−-=()aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉₊₋₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ")


def _parsed(text: str) -> list[list[_Piece]] | None:
    """The pieces of each line; None if there is no formula, or one that does not fit a line."""
    if not is_math_text(text):
        return None
    try:
        return [list(_line(line)) for line in text.split("\n")]
    except LookupError:
        return None


def _line(line: str) -> Iterator[_Piece]:
    for k, part in enumerate(re.split(r"(?<!\\)\$", line)):
        if k % 2:
            yield from _formula([found.groups("") for found in _TOKEN.finditer(part)], 0)
        elif part:
            yield _Piece(part.replace("\\$", "$"))


def _formula(tokens: list[tuple[str, ...]], level: int, upright: bool = False) -> Iterator[_Piece]:
    """The pieces of a formula; its tokens are taken away from the list, up to the end of the group."""
    before = "("  # a sign after a bracket belongs to what follows it
    while tokens:
        command, space, sign = tokens.pop(0)
        if sign == "}":
            return
        if space:
            continue
        if sign == "{":
            yield from _formula(tokens, level, upright)
        elif sign in ("_", "^"):
            if level:
                raise LookupError(sign)
            yield from _formula(_group(tokens), 1 if sign == "^" else -1, upright)
        elif command == "sqrt":
            inner = list(_formula(_group(tokens), level))
            single = sum(piece.level == level for piece in inner) == 1
            yield _Piece("√", "upright", level)
            yield from inner if single else [_Piece("(", "upright", level), *inner, _Piece(")", "upright", level)]
        elif command in _UPRIGHT:
            yield from _formula(_group(tokens), level, upright=True)
        elif command in _FUNCTIONS:
            follows = tokens and (tokens[0][0] or tokens[0][1] or tokens[0][2].isalnum())
            yield _Piece(command + ("\u2009" if follows and not level else ""), "upright", level)
        elif command in _GREEK:
            yield _Piece(_GREEK[command], "italic", level)
        elif command in _RELATIONS or (sign and sign in "=<>+-"):
            shown = _RELATIONS[command] if command else sign.replace("-", "−")
            yield _Piece(shown if before in "([{,=" or level else f"\u2009{shown}\u2009", "upright", level)
        elif command:
            yield _Piece(_SIGNS[command], "upright", level)
        else:
            yield _Piece(sign, "italic" if sign.isalpha() and not upright else "upright", level)
        before = sign or command


def _group(tokens: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The next token, or all of the group that begins with it, taken away from the list."""
    while tokens and tokens[0][1]:
        tokens.pop(0)
    if not tokens:
        raise LookupError("a group")
    taken, depth = [tokens.pop(0)], 1
    if taken[0][2] != "{":
        return taken
    while tokens and depth:
        taken.append(tokens.pop(0))
        depth += {"{": 1, "}": -1}.get(taken[-1][2], 0)
    return taken[1:-1]


def _markup(line: list[_Piece], size: float) -> str:
    """SVG of a line of text with formulas; size is its font's."""
    written, level = [], 0
    for (italic, at), pieces in groupby(line, key=lambda piece: (piece.kind == "italic", piece.level)):
        looks = ['class="italic" font-style="italic" font-family="Times New Roman, serif"'] if italic else []
        looks += ['font-size="75%"'] if at else []
        looks += [f'dy="{0.3 * size * (level - at):.3g}"'] if at != level else []
        level = at
        text = escape("".join(piece.text for piece in pieces), quote=False)
        written.append(f"<tspan {' '.join(looks)}>{text}</tspan>" if looks else text)
    return "".join(written)


def _plain(text: str) -> str:
    """A line of text with its formulas in Unicode, if they fit a line: 10⁻³, d_h as dₕ."""
    shifts = {0: {}, 1: _RAISED, -1: _LOWERED}
    parsed = _parsed(text)
    return "\n".join("".join(p.text.translate(shifts[p.level]) for p in line) for line in parsed) if parsed else text


# Where a figure is shown inline, it is this picture. Only IPython shows figures so, with matplotlib_inline.
if "IPython" in sys.modules and (shell := sys.modules["IPython"].get_ipython()):
    from matplotlib_inline.backend_inline import set_matplotlib_formats

    set_matplotlib_formats("svg")
    shell.display_formatter.formatters["image/svg+xml"].for_type(Figure, picture)
    shell.display_formatter.formatters["text/plain"].for_type(
        Figure, lambda drawn, printer, cycle: printer.text(described(drawn))
    )
