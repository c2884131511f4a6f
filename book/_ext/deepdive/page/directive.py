"""The base class of directives that generate pages, and the book's data, loaded once before any page is read."""

from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from deepdive.book import records, systems
from deepdive.book.records import Book
from deepdive.book.systems import System


class BookDirective(SphinxDirective):
    """What the directives share: the book's records and systems, and reading Markdown with maths."""

    @property
    def book(self) -> Book:
        return self.env.book_records

    @property
    def systems(self) -> tuple[System, ...]:
        return self.env.book_systems

    def markdown(self, text: str) -> list[nodes.Node]:
        """Markdown as block nodes."""
        box = nodes.Element()
        self.state.nested_parse(StringList(text.splitlines(), source=self.env.docname), 0, box)
        return box.children

    def inline(self, text: str) -> list[nodes.Node]:
        """One line of Markdown as inline nodes."""
        return [child for block in self.markdown(text) for child in block.children]


def read_book(app: Sphinx) -> None:
    root = Path(app.srcdir)
    app.env.book_records = records.read_book(root)
    app.env.book_systems = systems.read_systems(root / "book/systems.csv")


def setup(app: Sphinx) -> None:
    app.connect("builder-inited", read_book)
