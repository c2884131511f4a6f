"""The book's style of Matplotlib figures: transparent SVG, searchable text, legible without colour.

A notebook stores one picture of a figure, as light pages show it. Where the book's pages are dark, its build exchanges
the palette's colours, black and the greys; other colours, such as those of a heat map, stay.
"""

import math
import sys
from collections.abc import Iterator
from hashlib import sha256
from numbers import Real
from weakref import WeakSet

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from cycler import cycler
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from smalltorch.figures.svg_export import picture
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
        if not isinstance(size, Real) or isinstance(size, bool) or not 0 < size < math.inf:
            raise ValueError(f"{name}: expected a positive number, got {size!r}")
    columns = check_integers(1, columns=columns)
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


# Where a figure is shown inline, it is this picture. Only IPython shows figures so, with matplotlib_inline.
if "IPython" in sys.modules and (shell := sys.modules["IPython"].get_ipython()):
    from matplotlib_inline.backend_inline import set_matplotlib_formats

    set_matplotlib_formats("svg")
    shell.display_formatter.formatters["image/svg+xml"].for_type(Figure, picture)
    shell.display_formatter.formatters["text/plain"].for_type(
        Figure, lambda drawn, printer, cycle: printer.text(described(drawn))
    )
