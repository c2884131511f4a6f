"""Diagrams of boxes, arrows and matrices as SVG, in the colours of the page that shows them.

A drawing is put together from its shapes, each a piece of SVG; lengths are in units of the drawing, y grows downwards.
Within a page of the book it takes on the page's colours; elsewhere it is dark on nothing.

    >>> drawing("One step", "An arrow leads from a box x to a box y.", 200, 60,
    ...         box(40, 13, "x", width=60), arrow((70, 30), (128, 30)), box(160, 13, "y", width=60))
    a drawing: One step
"""

import math
import re
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

STYLE = """\
.drawn{max-width:100%;height:auto}
.drawn text{font:13px system-ui,sans-serif;text-anchor:middle;fill:var(--pst-color-text-base,#222832)}
.drawn .note{font-size:11px;fill:var(--pst-color-text-muted,#48566b)}
.drawn .start{text-anchor:start}.drawn .end{text-anchor:end}
.drawn :is(path,rect,circle){fill:none;stroke:var(--pst-color-text-muted,#48566b);stroke-width:1.2}
.drawn .box{fill:var(--pst-color-surface,#f3f4f5)}
.drawn .solid{fill:var(--pst-color-text-muted,#48566b);stroke:none}
.drawn .cell{fill:var(--drawn-cell,#0072b2);stroke:none}
.drawn .dashed{stroke-dasharray:2 4}
.drawn .here .box{fill:var(--drawn-here,#ffe2b8)}
.drawn .here :is(path,rect,circle){stroke:var(--drawn-edge,#b45309);stroke-width:2.5}
.drawn .here :is(.solid,.cell){fill:var(--drawn-edge,#b45309);stroke:none}"""
HEAD = 7.0  # the length of an arrow's head
SCRIPT = re.compile(r"([_^])(?:\{([^}]*)\}|(\w))")  # W_Q, d_h, x_{ij}, r^2


class Drawing(NamedTuple):
    """An SVG and its title."""

    svg: str
    title: str

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"a drawing: {self.title}"


def drawing(title: str, description: str, width: float, height: float, *shapes: str, scale: float = 1.35) -> Drawing:
    """Shapes on a sheet of so many units, `scale` times as large on the page. The title names it; the description says
    what is seen, to those who cannot see it.

    Raises:
        ValueError: if title, description or shapes are missing, or a length is not positive.
    """
    if not (title.strip() and description.strip() and shapes):
        raise ValueError("drawing: expected a title, a description and at least one shape")
    if not all(0 < size < math.inf for size in (width, height, scale)):
        raise ValueError(f"width, height, scale: expected positive numbers, got {width}, {height}, {scale}")
    return Drawing(
        f'<svg xmlns="http://www.w3.org/2000/svg" class="drawn" role="img" viewBox="0 0 {width:g} {height:g}" '
        f'width="{scale * width:.0f}" height="{scale * height:.0f}"><title>{escape(title)}</title>'
        f"<desc>{escape(description)}</desc><style>{STYLE}</style>{''.join(shapes)}</svg>",
        title,
    )


def words(x: float, y: float, text: str, kind: str = "") -> str:
    """A line of text, its middle at x and its foot at y; `_` and `^` lower and raise what follows, as in W_Q or d_{kv}.

    kind: "note" for small ones; "start" or "end" if it begins or ends at x; several, with spaces.
    """
    parts, last = [], 0
    for script in SCRIPT.finditer(text):
        parts.append(escape(text[last : script.start()], quote=False))
        shift = 4 if script[1] == "_" else -5
        parts.append(f'<tspan dy="{shift}" font-size="75%">{escape(script[2] or script[3], quote=False)}</tspan>')
        parts.append(f'<tspan dy="{-shift}">&#8203;</tspan>')  # nothing, on the line again
        last = script.end()
    parts.append(escape(text[last:], quote=False))
    shown = f' class="{kind}"' if kind else ""
    return f'<text{shown} x="{x:g}" y="{y:g}">{"".join(parts)}</text>'


def note(x: float, y: float, text: str) -> str:
    """A small line of text, as `words`."""
    return words(x, y, text, "note")


def box(x: float, y: float, name: str, under: str = "", width: float = 150, height: float = 34) -> str:
    """A box with its name, from y down, its middle at x; `under` is a note below the name."""
    rect = f'<rect class="box" x="{x - width / 2:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="5"/>'
    middle = y + height / 2 + (-2 if under else 5)
    return rect + (words(x, middle, name) if name else "") + (note(x, middle + 14, under) if under else "")


def line(*points: tuple[float, float], dashed: bool = False) -> str:
    """A line through points.

    Raises:
        ValueError: if there are fewer than two.
    """
    if len(points) < 2:
        raise ValueError(f"points: expected two at least, got {len(points)}")
    kind = ' class="dashed"' if dashed else ""
    return f'<path{kind} d="M{" L".join(f"{x:g} {y:g}" for x, y in points)}"/>'


def arrow(*points: tuple[float, float], dashed: bool = False) -> str:
    """A line through points with a head at the last one.

    Raises:
        ValueError: if there are fewer than two, or the last two are one.
    """
    drawn = line(*points, dashed=dashed)
    (x0, y0), (x1, y1) = points[-2:]
    length = math.hypot(x1 - x0, y1 - y0)
    if length == 0:
        raise ValueError(f"points: expected the last two apart, got {points[-1]} twice")
    u, v = (x1 - x0) / length, (y1 - y0) / length  # along the arrow; (−v, u) is across
    back, across = (x1 - HEAD * u, y1 - HEAD * v), (-4 * v, 4 * u)
    corners = [(x1, y1), *((back[0] + s * across[0], back[1] + s * across[1]) for s in (1, -1))]
    return drawn + f'<path class="solid" d="M{"L".join(f"{x:.4g} {y:.4g}" for x, y in corners)}z"/>'


def plus(x: float, y: float) -> str:
    """A sum: ⊕."""
    return f'<circle class="box" cx="{x:g}" cy="{y:g}" r="9"/><path d="M{x - 5:g} {y:g}h10m-5 -5v10"/>'


def grid(x: float, y: float, shades: Sequence[Sequence[float]], size: float = 14) -> str:
    """A matrix as cells, its upper left corner at (x, y); a shade from 0, empty, to 1, full, for each entry.

    Raises:
        ValueError: if rows differ in length, there is none, or a shade is not from 0 to 1.
    """
    lengths = {len(row) for row in shades}
    if len(lengths) != 1 or 0 in lengths or not all(0 <= shade <= 1 for row in shades for shade in row):
        raise ValueError("shades: expected rows of one length, with numbers from 0 to 1")
    cells = "".join(
        f'<rect class="cell" style="opacity:{shade:g}" x="{x + size * j:g}" y="{y + size * i:g}" '
        f'width="{size:g}" height="{size:g}"/>'
        for i, row in enumerate(shades)
        for j, shade in enumerate(row)
        if shade
    )
    rows, columns = len(shades), lengths.pop()
    lines = "".join(f"M{x:g} {y + size * i:g}h{size * columns:g}" for i in range(rows + 1))
    lines += "".join(f"M{x + size * j:g} {y:g}v{size * rows:g}" for j in range(columns + 1))
    return f'{cells}<path d="{lines}"/>'


def marked(*shapes: str) -> str:
    """Shapes in the colour of what matters most."""
    return f'<g class="here">{"".join(shapes)}</g>'
