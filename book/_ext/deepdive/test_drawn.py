"""A drawing stands within the page, and a plot beside it."""

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from deepdive.small_build import small_build
from smalltorch.diagram import machine

PLOT = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><title>A plot</title></svg>'
FILES = {
    "book/parts.yml": "root: index\nbefore: []\nparts: []\nafter: []\nmoved: {}\n",
    "book/claims.csv": "id,source,place,claim,chapter\n",
    "book/systems.csv": "number,source,section,name,what,kind,where\n",
}


def test_a_drawing_stands_within_the_page_and_a_plot_beside_it(tmp_path):
    cells = [new_markdown_cell("# Page")]
    for k, svg in enumerate((machine().svg, PLOT)):
        shown = new_output("display_data", {"image/svg+xml": svg, "text/plain": "a drawing"})
        figure = {"figure": {"name": f"fig-{k}", "caption": "See."}, "image": {"alt": "what it shows"}}
        cells.append(new_code_cell(f"show({k})", outputs=[shown], metadata={"mystnb": figure}))
    page = nbformat.writes(new_notebook(cells=cells, metadata={"language_info": {"name": "python"}}))
    small_build(tmp_path, FILES | {"index.ipynb": page}, rooms=["drawn"])
    html = (tmp_path / "html/index.html").read_text(encoding="utf-8")
    assert html.count("<svg") == 1 and machine().svg in html
    assert html.count("<img") == 1 and html.count("<figcaption>") == 2
