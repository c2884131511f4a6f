"""Cards and the icon: PNG of the right size that show what the SVG does, with text, on every machine the same."""

import json
from io import BytesIO

import matplotlib.image
import numpy as np
import pytest

from deepdive.metadata import preview_image
from smalltorch.figures import draw

HEAD = '<svg class="plot" width="400pt" height="200pt" viewBox="0 0 400 200" xmlns="http://www.w3.org/2000/svg">'
BLUE = HEAD + '<path d="M0 0L400 0L400 200L0 200Z" style="fill: #0000ff"/></svg>'


def pixels(png):
    return np.round(255 * matplotlib.image.imread(BytesIO(png), format="png")).astype(int)


def test_a_card_shows_the_whole_figure_on_white():
    image = pixels(preview_image.card(BLUE))
    assert image.shape[:2] == (630, 1200)
    blue = (image[..., :3] == (0, 0, 255)).all(axis=-1)
    rows, columns = np.flatnonzero(blue.any(axis=1)), np.flatnonzero(blue.any(axis=0))
    assert rows[0] >= 40 and rows[-1] < 590 and columns[0] >= 40 and columns[-1] < 1160
    assert len(columns) == pytest.approx(2 * len(rows), abs=2)
    assert (image[0, 0, :3] == 255).all() and (image[..., 3] == 255).all()


@pytest.mark.parametrize("family", ["system-ui, sans-serif", "Times New Roman, serif"])
@pytest.mark.parametrize("style", ["normal", "italic"])
def test_a_card_has_the_figures_text(family, style):
    text = f'<text x="9" y="99" font-size="60" font-family="{family}" font-style="{style}">‖C√n‖</text></svg>'
    assert (pixels(preview_image.card(HEAD + text))[..., :3] < 128).any()


def test_the_icon_fills_its_square():
    head = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16">'
    image = pixels(preview_image.icon(f'{head}<rect width="16" height="16" rx="3" fill="#00ff00"/></svg>'))
    assert image.shape == (180, 180, 4) and (image == (0, 255, 0, 255)).all()


def test_the_figure_of_a_chapter_is_its_first_that_shows_numbers(tmp_path):
    drawn = '<svg class="drawn" xmlns="http://www.w3.org/2000/svg"></svg>'
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": []},
        *(
            {"metadata": {"mystnb": {"image": {"alt": alt}}}, "outputs": [{"data": {"image/svg+xml": svg}}]}
            for alt, svg in [("The map", drawn), ("Blue", [BLUE[:9], BLUE[9:]]), ("Later", BLUE)]
        ),
    ]
    (notebook := tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells}))
    assert preview_image.first_plot(notebook) == (BLUE, "Blue")
    notebook.write_text(json.dumps({"cells": cells[:2]}))
    assert preview_image.first_plot(notebook) is None


def test_a_drawing_has_the_colours_of_a_light_page():
    """Its style sheet has variables and `:is(…)`, which what draws the PNG does not know: it would fill boxes black."""
    drawn = draw.drawing("a", "b", 100, 40, draw.box(50, 5, "", width=90, height=30))
    image = pixels(preview_image.png(drawn.svg, 200, "white"))
    assert tuple(image[40, 30, :3]) == (0xF3, 0xF4, 0xF5)
    rules = preview_image.STYLE.sub(preview_image.without_variables, f"<style>{draw.STYLE}</style>")
    assert "var(" not in rules and ":is(" not in rules
    assert ".drawn .here path,.drawn .here rect,.drawn .here circle{stroke:#b45309;stroke-width:2.5}" in rules
