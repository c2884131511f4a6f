"""Collapsible sections, by `<details>`: they open without script, and when a search in the page finds text in them."""

from docutils import nodes
from sphinx.application import Sphinx


class fold(nodes.General, nodes.Element):
    """What is folded away under its first child, a `summary`; `open` says whether it is open at first."""


class summary(nodes.General, nodes.TextElement):
    """The line under which something is folded away."""


def visit_fold(self, node: fold) -> None:
    self.body.append(self.starttag(node, "details", **({"open": "open"} if node.get("open") else {})))


def depart_fold(self, node: fold) -> None:
    self.body.append("</details>\n")


def visit_summary(self, node: summary) -> None:
    self.body.append("<summary>")


def depart_summary(self, node: summary) -> None:
    self.body.append("</summary>\n")


def setup(app: Sphinx) -> None:
    app.add_node(fold, html=(visit_fold, depart_fold))
    app.add_node(summary, html=(visit_summary, depart_summary))
