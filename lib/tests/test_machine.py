"""The drawing of the machine: well-formed, with words for those who cannot see it, and one part in colour."""

import xml.etree.ElementTree as ET

import pytest

from smalltorch.figures.machine import DESCRIPTION, HEIGHT, PARTS, WIDTH, machine

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("mark", [None, *PARTS])
def test_a_drawing_says_what_it_shows_and_marks_one_part(mark):
    drawing = machine(mark)
    root = ET.fromstring(drawing._repr_svg_())
    title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title.text == drawing.title and description.text == DESCRIPTION and root.get("role") == "img"
    classes = [group.get("class") for group in root.iter(f"{SVG}g")]
    assert classes.count("here") == (mark is not None)
    assert sorted(c for c in classes if c) == sorted("here" if part == mark else part for part in PARTS)
    assert (float(root.get("width")) < WIDTH) == (mark is not None)


def test_boxes_stay_within_the_drawing():
    for box in ET.fromstring(machine().svg).iter(f"{SVG}rect"):
        x, y, width, height = (float(box.get(key)) for key in ("x", "y", "width", "height"))
        assert 0 <= x and x + width <= WIDTH and 0 <= y and y + height <= HEIGHT


def test_what_is_no_part_cannot_be_marked():
    with pytest.raises(ValueError, match="mark: expected None or 'tokens' or .*, got 'dropout'"):
        machine("dropout")
