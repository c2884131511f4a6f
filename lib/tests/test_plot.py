"""What a figure and a file of the book cannot be; how figures look is seen in the chapters."""

import math
import re
import xml.etree.ElementTree as ET

import matplotlib.pyplot as plt
import pytest

from smalltorch import data, plot


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


SVG = "{http://www.w3.org/2000/svg}"


def texts(fig) -> list[str]:
    return ["".join(text.itertext()) for text in ET.fromstring(plot.picture(fig)).iter(f"{SVG}text")]


def test_text_stays_text_and_so_do_formulas():
    fig, ax = plot.figure()
    ax.plot([1, 1000], [1, 2], label=r"bound $1+e^{\Delta/2}$, $5 & more")
    ax.set(xscale="log", xlabel="width $d_h$", ylabel=r"$\Vert A\Vert_2 / \sqrt{d_h}$", title="two\n$-x$ lines")
    ax.legend()
    before = plot.described(fig)
    shown = texts(fig)
    assert {"width dh", "‖A‖2/√dh", "two", "−x lines", "10⁰", "10³"} <= set(shown)
    assert plot.described(fig) == before
    assert texts(fig) == shown  # nothing of the first picture is left


@pytest.mark.parametrize("formula, markup", [
    ("d_h", ("d", ("h", 3))), (r"r_*^2", ("r", ("*", 3), ("2", -6))),
    (r"\sqrt{a+b}", ("√(", "a", "\u2009+\u2009", "b", ")")),
    (r"\log(-x)", ("log(−", "x", ")")), (r"\mathrm{max}\, x", ("max\u2009", "x")), ("n - 1", ("n", "\u2009−\u20091")),
])  # fmt: skip
def test_a_formula_is_set_in_a_line(formula, markup):
    (line,) = plot._parsed(f"${formula}$")
    root = ET.fromstring(f"<text>{plot._markup(line, 10)}</text>")
    found = [(root.text, None)] if root.text else []
    for span in root:
        found += [(span.text, span.get("dy"))] + ([(span.tail, None)] if span.tail else [])
    expected = [one if isinstance(one, tuple) else (one, None) for one in markup]
    assert [(text, float(dy) if dy else None) for text, dy in found] == expected
    letters = {span.text for span in root if span.get("font-style")}
    assert letters == {text for text, _ in found if text.isalpha() and len(text) == 1}


def test_a_formula_that_does_not_fit_a_line_is_left_to_matplotlib():
    fig, ax = plot.figure()
    ax.set_xlabel(r"$\frac{a}{b}$ of it")
    assert plot._parsed(ax.get_xlabel()) is None
    assert "STIXGeneral" in plot.picture(fig)


def test_dollars_that_are_no_formula_stay():
    fig, ax = plot.figure()
    ax.set_title("$d_h$ as it is", parse_math=False)
    assert "$d_h$ as it is" in texts(fig)


def test_texts_on_a_heat_map_are_named():
    fig, axes = plt.subplots(1, 3)
    axes[0].imshow([[0.0, 1.0]])
    axes[1].pcolormesh([[0.0, 1.0]])
    for k, ax in enumerate(axes):
        ax.text(0, 0, f"at {k}")
        ax.set_title("title")
    over = re.findall(r'<g id="over-\d+"><text[^>]*>([^<]*)', plot.picture(fig))
    assert over == ["at 0", "at 1"]


def test_a_picture_has_no_more_than_is_seen_and_each_is_as_the_last():
    def one():
        fig, ax = plot.figure()
        ax.plot([0, 1 / 3, 2])
        return plot.picture(fig)

    svg = one()
    assert svg == one() and svg.startswith("<svg class=")
    assert not re.search(r"metadata|<!--|<style|DejaVu", svg)
    assert not re.search(r' d="[^"]*\.\d{3}', svg)
    assert plot.slim(svg) == svg
