"""What a chapter opens with: its title, what it found in short, and the picture that shows it.

The picture is the chapter's first figure; the map of the machine, which some chapters draw where they import, shows
where they are and not what they found. A notebook has to import before it draws; on the page the code up to the picture
is folded into one line below it, and what the first cell says besides follows.
"""

from collections.abc import Sequence

from docutils import nodes
from sphinx.application import Sphinx

from deepdive.page.fold import fold, summary

IN_SHORT = "In short."


def answer(draws: Sequence[bool]) -> int | None:
    """The position of the code cell that draws the picture; `draws` tells of each before the first section if it draws.

    The second cell imports, and what it draws is the map: it is taken if no other draws.
    """
    return next((k for k in (*range(2, len(draws)), *range(2)) if draws[k : k + 1] == [True]), None)


def open_page(app: Sphinx, doctree: nodes.document) -> None:
    if app.env.docname not in app.env.book_records.notebooks:
        return
    chapter = doctree[0]
    cells = [child for child in chapter.children if child.get("nb_element") == "cell_code"]
    place = answer(["figure" in cell["cell_metadata"].get("mystnb", ()) for cell in cells])
    short = next((k for k, child in enumerate(chapter.children) if child.astext().startswith(IN_SHORT)), None)
    if place is None or short is None:
        return
    code, shown = [], []
    for cell in cells[: place + 1]:
        chapter.remove(cell)
        folded, *outputs = cell.children
        cell.children = folded.children[1:]  # without its own line
        code.append(cell)
        shown.append(nodes.container("", *outputs, classes=["cell"]))
    lines = sum(len(cell.astext().splitlines()) for cell in code)
    line = summary("", f"the code up to here: {lines} lines")
    sections = [k for k, child in enumerate(chapter.children) if isinstance(child, nodes.section)]
    first_section = min(sections, default=len(chapter.children))
    *others, picture = shown
    chapter[first_section:first_section] = [output for output in others if output.children]
    chapter[short + 1 : short + 1] = [picture, fold("", line, *code, classes=["code"])]


def setup(app: Sphinx) -> None:
    app.connect("doctree-read", open_page, priority=950)  # when each cell is folded (`code`)
