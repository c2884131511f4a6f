"""Export a Matplotlib figure as SVG whose text, formulas included, can be searched and set in the page's font.

`smalltorch.figures.plot` draws the figures. Matplotlib writes their texts as text; what it would draw are formulas, and
those of a line become text here: letters in italics, scripts small. What is seen by no reader is left out.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from html import escape
from io import StringIO
from itertools import groupby
from typing import NamedTuple

from matplotlib.axis import Axis, Tick
from matplotlib.cbook import is_math_text
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import Formatter, NullFormatter

from smalltorch.shapes import check_type


def picture(drawn: Figure) -> str:
    """The figure as an SVG with text that can be found, selected and set in the page's own type.

        >>> from smalltorch.figures.plot import figure
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
