"""Tables in a container that scrolls horizontally."""

from collections.abc import Iterable, Sequence

from docutils import nodes
from sphinx.application import Sphinx


class scroll_region(nodes.General, nodes.Element):
    """A box that scrolls sideways, also by keyboard, and has a name for those who cannot see it."""


def visit_scroll_region(self, node: scroll_region) -> None:
    label = self.attval(node["label"])
    self.body.append(f'<div class="scroll-region" role="region" tabindex="0" aria-label="{label}">')


def depart_scroll_region(self, node: scroll_region) -> None:
    self.body.append("</div>\n")


def table(
    titles: Sequence[str | nodes.Node],
    rows: Iterable[Sequence[Sequence[nodes.Node]]],
    widths: Sequence[int],
    label: str,
    ids: Sequence[str] = (),
    classes: Sequence[Sequence[str]] = (),
    kind: str = "",
) -> scroll_region:
    """A table in a region that scrolls; a cell is a list of block nodes.

    `ids` are the anchors of the rows and `classes` their classes, `kind` is a class of the table: where it is
    "filtered", filters.js can hide rows.
    """
    group = nodes.tgroup(cols=len(titles))
    group += [nodes.colspec(colwidth=width) for width in widths]
    head = nodes.row()
    head += [
        nodes.entry("", nodes.paragraph("", "", nodes.Text(title) if isinstance(title, str) else title))
        for title in titles
    ]
    group += nodes.thead("", head)
    body = nodes.tbody()
    for number, cells in enumerate(rows):
        row = nodes.row(ids=[ids[number]] if ids else [], classes=classes[number] if classes else [])
        row += [nodes.entry("", *cell) for cell in cells]
        body += row
    group += body
    made = nodes.table("", group, classes=["ledger", "colwidths-given", *([kind] if kind else [])])
    return scroll_region("", made, label=label)


def setup(app: Sphinx) -> None:
    app.add_node(scroll_region, html=(visit_scroll_region, depart_scroll_region))
