"""What a figure and a file of the book cannot be; how figures look is seen in the chapters."""

import math
import re

import matplotlib.pyplot as plt
import pytest

from smalltorch import data
from smalltorch.figures import plot


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.mark.parametrize(
    "sizes", [{"width": 0}, {"width": math.nan}, {"height": -1}, {"height": math.inf}, {"columns": 0}]
)
def test_a_figure_has_a_size(sizes):
    ((name, size),) = sizes.items()
    with pytest.raises(
        ValueError, match=f"^{name}: expected (a positive number|an integer of at least 1), got {size}$"
    ):
        plot.figure(**sizes)


def test_a_text_that_the_book_lacks_is_named():
    with pytest.raises(FileNotFoundError, match="^name: expected a file of the book's folder, got 'data/poem.txt'; "):
        data.text("poem")


def drawing(values=(1.0, 2.0, 4.0), label="norm", level=3.0, scale="linear", upper=5.0):
    fig, ax = plot.figure()
    ax.plot(values, label=label)
    ax.axhline(level)
    ax.fill_between([0, 1], [1, 1], [2, upper])
    ax.bar([0.5], [1.5])
    ax.set(yscale=scale, ylim=(0.5, 6), title="One")
    ax.legend()
    return plot.described(fig)


def test_what_is_drawn_is_told_apart_and_rounding_is_not():
    one = drawing()
    assert re.fullmatch(r"figure: 2 lines, 2 shapes, \d+ points, digest [0-9a-f]{8}", one)
    assert drawing(values=(1.0 + 1e-12, 2.0, 4.0 - 1e-12)) == one
    others = [{"values": (1.0, 2.02, 4.0)}, {"label": "bound"}, {"level": 3.02}, {"scale": "log"}, {"upper": 5.02}]
    assert len({one, *(drawing(**change) for change in others)}) == 6


def test_a_scatter_and_an_image_are_compared():
    def two(where, value):
        fig, axes = plt.subplots(1, 2)
        axes[0].scatter([0.0, 1.0], [0.0, where])
        axes[0].set(xlim=(-1, 2), ylim=(-1, 2))
        axes[1].imshow([[0.0, value], [0.2, 1.0]])
        return plot.described(fig)

    assert two(1.0, 0.5) != two(1.01, 0.5) and two(1.0, 0.5) != two(1.0, 0.6)


def test_a_tie_of_rounding_falls_to_one_side_everywhere():
    def at(share):
        fig, ax = plot.figure()
        ax.plot([0.0], [share])
        ax.set(xlim=(-1, 1), ylim=(0, 1))
        return plot.described(fig)

    assert at(0.1235 - 1e-12) == at(0.1235) == at(0.1235 + 1e-12)


def test_what_is_rough_is_not_compared():
    def at(height, rough):
        fig, ax = plot.figure()
        (line,) = ax.plot([0.0, 1.0], [0.5, height])
        ax.set(xlim=(0, 1), ylim=(0, 1))
        plot.rough(*[line] * rough)
        return plot.described(fig)

    assert at(0.2, False) != at(0.7, False) and at(0.2, True) == at(0.7, True) != at(0.2, False)


def test_rough_axes_are_not_compared():
    def at(height):
        fig, (left, right) = plt.subplots(1, 2)
        left.plot([0.0, 1.0])
        right.plot([0.0, height])
        plot.rough(right)
        return plot.described(fig)

    assert at(1.0) == at(7.0)
