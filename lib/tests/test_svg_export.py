"""Pictures of figures: text is text, formulas of a line too, and nothing is stored that nobody sees."""

import re
import xml.etree.ElementTree as ET

import matplotlib.pyplot as plt
import pytest

from smalltorch.figures import plot, svg_export


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


SVG = "{http://www.w3.org/2000/svg}"


def texts(fig) -> list[str]:
    return ["".join(text.itertext()) for text in ET.fromstring(svg_export.picture(fig)).iter(f"{SVG}text")]


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
    (line,) = svg_export._parsed(f"${formula}$")
    root = ET.fromstring(f"<text>{svg_export._markup(line, 10)}</text>")
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
    assert svg_export._parsed(ax.get_xlabel()) is None
    assert "STIXGeneral" in svg_export.picture(fig)


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
    over = re.findall(r'<g id="over-\d+"><text[^>]*>([^<]*)', svg_export.picture(fig))
    assert over == ["at 0", "at 1"]


def test_a_picture_has_no_more_than_is_seen_and_each_is_as_the_last():
    def one():
        fig, ax = plot.figure()
        ax.plot([0, 1 / 3, 2])
        return svg_export.picture(fig)

    svg = one()
    assert svg == one() and svg.startswith("<svg class=")
    assert not re.search(r"metadata|<!--|<style|DejaVu", svg)
    assert not re.search(r' d="[^"]*\.\d{3}', svg)
    assert svg_export.slim(svg) == svg
