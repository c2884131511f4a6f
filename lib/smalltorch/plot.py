"""Figures: one look for the whole book. SVG, transparent, legible in both themes and without colour."""

import math
import sys

import matplotlib as mpl
import matplotlib.pyplot as plt
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Okabe and Ito's palette, which colour-blind readers can tell apart; each colour has its own dashes and marker as well.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#000000"]
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
        "lines.markersize": 4,
        "axes.prop_cycle": cycler(color=COLOURS, linestyle=DASHES),
        "svg.hashsalt": "smalltorch",  # the same figure gives the same file
    }
)
# Where a figure is shown inline, it is an SVG. Only IPython shows figures so, and matplotlib_inline comes with it.
if "IPython" in sys.modules and sys.modules["IPython"].get_ipython():
    from matplotlib_inline.backend_inline import set_matplotlib_formats

    set_matplotlib_formats("svg", metadata={"Date": None, "Creator": None})


def figure(width: float = 6.4, height: float = 3.6, columns: int = 1) -> tuple[Figure, Axes]:
    """A figure in inches with one row of axes: (figure, axes), or an array of axes for several columns.

    Raises:
        ValueError: if a size is not positive and finite, or there is no column.
    """
    for name, size in (("width", width), ("height", height), ("columns", columns)):
        if not 0 < size < math.inf:
            raise ValueError(f"{name}: expected a positive number, got {size}")
    return plt.subplots(1, columns, figsize=(width, height), layout="constrained")
