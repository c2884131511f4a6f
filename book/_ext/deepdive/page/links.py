"""Links between pages of the book, made before their relative addresses are known."""

from collections.abc import Sequence

from docutils import nodes
from sphinx.application import Sphinx


def link(text: Sequence[nodes.Node], page: str, rest: str = "") -> nodes.reference:
    """A link to a page and, with `rest`, to an anchor (#…) or a choice of rows (?…); `resolve_links` fills it in."""
    return nodes.reference("", "", *text, internal=True, book_target=(page, rest))


def resolve_links(app: Sphinx, doctree: nodes.document, page: str) -> None:
    for reference in doctree.findall(nodes.reference):
        if "book_target" in reference:
            target, rest = reference["book_target"]
            if rest.startswith("#cell-") and rest not in app.env.book_anchors.get(target, ()):
                rest = ""  # the page does not show the cell
            reference["refuri"] = app.builder.get_relative_uri(page, target) + rest


def setup(app: Sphinx) -> None:
    app.connect("doctree-resolved", resolve_links)
