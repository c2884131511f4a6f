"""The sidebar keeps the titles of pages and the lists of pages below them, wherever on a page these stand."""

from docutils import nodes
from sphinx import addnodes

from deepdive.theme import sidebar


def entry(title, *below):
    line = addnodes.compact_paragraph("", "", nodes.reference("", title, refuri="page", anchorname=""))
    return nodes.list_item("", line, *([nodes.bullet_list("", *below)] if below else []))


def test_headings_go_and_lists_of_pages_stay():
    pages = addnodes.toctree(entries=[(None, "below")])
    toc = nodes.bullet_list(
        "", entry("One", entry("a heading", entry("a smaller one")), pages), entry("Two", entry("x"))
    )
    left = sidebar.without_headings(toc)
    assert left.pformat() == nodes.bullet_list("", entry("One", pages.deepcopy()), entry("Two")).pformat()
    assert "a smaller one" in toc.astext()  # the page's own table of contents
