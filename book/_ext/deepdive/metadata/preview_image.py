"""PNG images made from SVG: the link preview of each chapter, and the touch icon.

The book's figures are SVG. They are drawn here with the fonts of matplotlib, so that every machine draws the same.
"""

import re
from pathlib import Path
from typing import NamedTuple

import matplotlib
from resvg_py import svg_to_bytes

from smalltorch.files import read_notebook

CARD = (1200, 630)  # the shape that the large sites show whole
MARGIN = 40
ICON = 180
FIRST_TAG = re.compile(r"<svg\b[^>]*>")
SIZE = re.compile(r'\s(?:width|height)="[^"]*"')
STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)
RULE = re.compile(r"(?:<style>)?\s*([^{}]+)\{([^}]*)\}")
VARIABLE = re.compile(r"var\(--[\w-]+,(#\w+)\)")
SQUARE = re.compile(r'<rect [^>]*?fill="(#\w+)"')


class Figure(NamedTuple):
    """A picture as the notebook stores it, and what is seen in it."""

    svg: str
    alt: str


def first_plot(notebook: Path) -> Figure | None:
    """The first figure of a chapter that shows numbers; what stands before it is the map of where the chapter is."""
    for cell in read_notebook(notebook)["cells"]:
        for output in cell.get("outputs", ()):
            svg = "".join(output.get("data", {}).get("image/svg+xml", ""))
            head = FIRST_TAG.search(svg)
            if head and 'class="plot"' in head[0]:
                return Figure(svg, cell["metadata"].get("mystnb", {}).get("image", {}).get("alt", ""))
    return None


def without_variables(style: re.Match[str]) -> str:
    """A style sheet in what resvg knows: the colours that stand where a page gives none, and no `:is(…)`."""
    rules = []
    for selectors, looks in RULE.findall(VARIABLE.sub(r"\1", style[0])):
        head, either, names = selectors.partition(":is(")
        listed = [f"{head}{name}" for name in names.rstrip(")").split(",")] if either else [selectors]
        rules.append(f"{','.join(listed)}{{{looks}}}")
    return f"<style>{''.join(rules)}</style>"


def png(svg: str, width: int, background: str) -> bytes:
    fonts = Path(matplotlib.get_data_path(), "fonts/ttf")
    return svg_to_bytes(
        svg_string=STYLE.sub(without_variables, svg),
        width=width,
        dpi=96,
        background=background,
        skip_system_fonts=True,
        font_dirs=[str(fonts)],
        font_family="DejaVu Sans",
        sans_serif_family="DejaVu Sans",
        serif_family="DejaVu Serif",
    )


def card(svg: str) -> bytes:
    """A figure on white, whole, in the shape of a card."""
    (width, height), head = CARD, FIRST_TAG.search(svg)
    place = f'<svg x="{MARGIN}" y="{MARGIN}" width="{width - 2 * MARGIN}" height="{height - 2 * MARGIN}"'
    inner = place + SIZE.sub("", head[0]).removeprefix("<svg") + svg[head.end() :]
    outer = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">{inner}</svg>'
    return png(outer, width, "white")


def icon(svg: str) -> bytes:
    """A square icon with full corners in its own colour: who shows it cuts them."""
    return png(svg, ICON, SQUARE.search(svg)[1])
