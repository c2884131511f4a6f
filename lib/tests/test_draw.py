"""Drawings: well-formed, within their words, with arrows that point where they lead."""

import re
import xml.etree.ElementTree as ET

import pytest

from smalltorch.figures.draw import arrow, box, drawing, grid, line, marked, note, plus, words

SVG = "{http://www.w3.org/2000/svg}"


def parsed(*shapes: str) -> ET.Element:
    return ET.fromstring(drawing("A title", "What is seen, x < y", 200, 100, *shapes).svg)


def test_a_drawing_carries_its_words_and_its_size():
    root = parsed(box(50, 20, "a & b", "under"))
    assert root.find(f"{SVG}title").text == "A title" and root.find(f"{SVG}desc").text == "What is seen, x < y"
    assert (root.get("role"), root.get("viewBox"), root.get("width")) == ("img", "0 0 200 100", "270")
    assert [text.text for text in root.iter(f"{SVG}text")] == ["a & b", "under"]


def test_scripts_are_lowered_and_raised_and_the_line_goes_on():
    text = next(parsed(words(0, 0, "W_Q x_{ij}^2 <")).iter(f"{SVG}text"))
    spans = [(float(span.get("dy")), span.text) for span in text]
    assert [span for span in spans if span[1] != "\u200b"] == [(4, "Q"), (4, "ij"), (-5, "2")]
    assert sum(dy for dy, _ in spans) == 0
    assert "".join(text.itertext()).replace("\u200b", "") == "WQ xij2 <"


@pytest.mark.parametrize("end, corners", [
    ((30, 0), [(30, 0), (23, 4), (23, -4)]), ((0, 30), [(0, 30), (-4, 23), (4, 23)]),
    ((-30, 0), [(-30, 0), (-23, -4), (-23, 4)]),
])  # fmt: skip
def test_an_arrow_ends_in_its_head(end, corners):
    path = list(parsed(arrow((0, 0), end)).iter(f"{SVG}path"))[-1]
    assert path.get("class") == "solid"
    assert [tuple(map(float, xy)) for xy in re.findall(r"(-?[\d.]+) (-?[\d.]+)", path.get("d"))] == corners


def test_a_grid_has_a_cell_for_each_shade():
    cells = [cell for cell in parsed(grid(10, 20, [[1, 0], [0.5, 0.25]], size=10)).iter(f"{SVG}rect")]
    placed = {(cell.get("x"), cell.get("y")): cell.get("style") for cell in cells}
    assert placed == {("10", "20"): "opacity:1", ("10", "30"): "opacity:0.5", ("20", "30"): "opacity:0.25"}


def test_what_is_marked_is_in_colour():
    root = parsed(plus(10, 10), marked(plus(40, 10)))
    (here,) = root.iter(f"{SVG}g")
    assert here.get("class") == "here" and [circle.get("cx") for circle in here.iter(f"{SVG}circle")] == ["40"]


@pytest.mark.parametrize("wrong, message", [
    (lambda: drawing("", "seen", 1, 1, note(0, 0, "x")), "a title"),
    (lambda: drawing("title", " ", 1, 1, note(0, 0, "x")), "a description"),
    (lambda: drawing("title", "seen", 1, 1), "at least one shape"),
    (lambda: drawing("title", "seen", 0, 1, note(0, 0, "x")), "positive numbers, got 0"),
    (lambda: line((0, 0)), "two at least, got 1"),
    (lambda: arrow((0, 0), (1, 1), (1, 1)), "the last two apart"),
    (lambda: grid(0, 0, [[0, 1], [1]]), "rows of one length"),
    (lambda: grid(0, 0, []), "rows of one length"),
    (lambda: grid(0, 0, [[1.5]]), "from 0 to 1"),
    (lambda: grid(0, 0, [[float("nan")]]), "from 0 to 1"),
])  # fmt: skip
def test_what_cannot_be_drawn_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()
