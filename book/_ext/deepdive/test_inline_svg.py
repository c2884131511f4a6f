"""Drawings and figures stand within the page, with the theme's colours and nothing that meets another's."""

import re

import matplotlib.pyplot as plt
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from deepdive.inline_svg import themed
from small_build import notebook, small_build
from smalltorch.figures import plot, svg_export
from smalltorch.figures.machine import machine

OTHER = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><title>Another</title></svg>'
OLD = """<?xml version="1.0"?>
<svg xmlns:xlink="http://www.w3.org/1999/xlink" xmlns="http://www.w3.org/2000/svg" width="9pt" viewBox="0 0 9 9">
 <defs><style type="text/css">*{stroke-linejoin: round}</style></defs>
 <g id="figure_1"><g id="text_1"><!-- 0.25 --><defs><path id="DejaVuSans-30" d="M 1 2"/></defs>
  <g transform="scale(0.125)"><use xlink:href="#DejaVuSans-30"/></g></g>
  <path clip-path="url(#p1)" style="fill: none; stroke: #0072b2"/><path style="stroke: #808080"/></g>
 <defs><clipPath id="p1"/></defs>
</svg>"""


def drawn(colour: str = plot.BLUE) -> str:
    fig, ax = plot.figure(3, 2)
    ax.plot([0, 1], color=colour, marker="o")
    ax.axhline(0.5, color="grey")
    ax.set_xlabel("width $d_h$")
    svg = svg_export.picture(fig)
    plt.close(fig)
    return svg


def test_pictures_stand_within_the_page_and_other_files_beside_it(tmp_path):
    cells = [new_markdown_cell("# Page")]
    for k, svg in enumerate((machine().svg, drawn(), drawn(plot.GREEN), OLD, OTHER)):
        shown = new_output("display_data", {"image/svg+xml": svg, "text/plain": "a drawing"})
        figure = {"figure": {"name": f"fig-{k}", "caption": "See."}, "image": {"alt": "what it shows"}}
        cells.append(new_code_cell(f"show({k})", outputs=[shown], metadata={"mystnb": figure}))
    small_build(tmp_path, {"index.ipynb": notebook(*cells)}, rooms=["inline_svg"])
    html = (tmp_path / "html/index.html").read_text(encoding="utf-8")
    assert (html.count("<svg"), html.count("<img"), html.count("<figcaption>")) == (4, 1, 5)
    assert html.count('role="img" aria-label="what it shows"') == 3
    ids = re.findall(r' id="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    assert {name for name in re.findall(r'(?:url\(|<use [^>]*href=")#([^")]+)', html)} <= set(ids)
    assert html.count('class="picture" style="--least: 327px"') == 1  # 0.55 of 594, of the machine
    body = html[html.index("<svg") : html.rindex("</svg>")]
    assert body.count('<title class="nohighlight">') == body.count('<desc class="nohighlight">') == 1
    assert "<title>" not in body and "<style" not in body
    assert ".drawn text" in (tmp_path / "html/_static/drawn.css").read_text(encoding="utf-8")


@pytest.mark.parametrize("svg", [drawn(), OLD])
def test_the_palette_black_and_greys_are_the_themes(svg):
    shown = themed(svg, "seen")
    assert "var(--plot-blue)" in shown and "var(--grey-80)" in shown
    assert "--grey-80: color-mix(in srgb, var(--plot-black) 50%, var(--plot-white))" in shown
    assert not re.search(r"(fill|stroke): #", shown)


def test_a_heat_map_and_its_texts_keep_their_colours():
    fig, ax = plot.figure(3, 2)
    ax.pcolormesh([[0.0, 1.0]], cmap="Greys")
    ax.text(0.5, 0.5, "$p$", color="white")
    ax.set_title("title", color="grey")
    shown = themed(svg_export.picture(fig), "seen")
    plt.close(fig)
    assert '<g class="over"><path' in shown and '<g class="over"><text style=' in shown and "fill: #ffffff" in shown
    assert re.search(r"fill: var\(--grey-80\)[^>]*>title", shown)


def test_the_white_paper_of_a_picture_goes():
    paper = '<rect width="100%" height="100%" fill="white"/>'
    assert 'fill="white"' not in themed(re.sub("(<svg[^>]*>)", rf"\1{paper}", drawn()), "seen")
