"""The glossary page: each term with its definition and the chapter that introduces it.

{terms}   all terms of book/glossary.yml
"""

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

from deepdive.book import glossary
from deepdive.page.directive import BookDirective
from deepdive.page.links import link


def anchor(term: str) -> str:
    return nodes.make_id(f"term-{term}")


class Terms(BookDirective):
    def run(self) -> list[nodes.Node]:
        listed = nodes.definition_list(classes=["terms"])
        for term in glossary.read_terms(Path(self.env.srcdir)):
            means = nodes.paragraph("", "", *self.inline(term.means))
            if chapter := self.book.chapters.get(term.chapters[-1]):
                means += [nodes.Text(" → "), link(self.inline(chapter.title), chapter.page)]
            name = nodes.term("", term.term, ids=[anchor(term.term)])
            listed += nodes.definition_list_item("", name, nodes.definition("", means))
        return [listed]


def setup(app: Sphinx) -> None:
    app.add_directive("terms", Terms)
