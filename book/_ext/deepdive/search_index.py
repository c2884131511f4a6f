"""Add theorems, exercises, systems and symbols of the notation to Sphinx's search index, to be found by name.

Sphinx's search lists the objects of domains by name, before the pages in which words occur. This domain offers the
book's, and scorer.js puts first what is called as it was typed.
"""

import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.domains import Domain
from sphinx.util import logging

from deepdive.blocks import number

logger = logging.getLogger(__name__)

NOTATION = "book/notation"
SPOKEN = "spoken"  # the title of the column that says how a symbol is read aloud
FIRST, THEN = 0, 1  # Sphinx's priorities: before what has the words in a heading, and after it


def plain(name: str) -> str:
    """A name as others type it, without accents and with American spelling: Cesaro for Cesàro, normalization."""
    letters = "".join(letter for letter in unicodedata.normalize("NFKD", name) if not unicodedata.combining(letter))
    return letters.replace("isation", "ization")


def symbol_names(row: nodes.row, column: int) -> list[str]:
    """How a row's symbols are called: the spoken names, with commas between them, and what else code calls them."""
    if not row[column].astext():
        return []
    spoken = row[column].astext().split(", ")
    known = {name.lower() for name in spoken}
    code = [name.astext() for name in row.findall(nodes.literal)]
    return spoken + [name for name in code if name.replace("_", " ").lower() not in known]


def anchor_symbols(app: Sphinx, doctree: nodes.document) -> None:
    """Give each row of the table of symbols an anchor, and remember its names."""
    if app.env.docname != NOTATION:
        return
    app.env.book_symbols = {}
    for group in doctree.findall(nodes.tgroup):
        titles = [entry.astext() for entry in next(group.findall(nodes.thead)).findall(nodes.entry)]
        for row in next(group.findall(nodes.tbody)).children:
            names = symbol_names(row, titles.index(SPOKEN))
            if not names:
                logger.warning("the symbol %s has no spoken name", row[0].astext(), location=NOTATION, type="notation")
                continue
            anchor = "symbol-" + re.sub(r"\W+", "-", names[0])
            if anchor in app.env.book_symbols:
                logger.warning("two symbols are called %s first", names[0], location=NOTATION, type="notation")
            row["ids"].append(anchor)
            app.env.book_symbols[anchor] = names


class BookDomain(Domain):
    """It declares no types of objects: the search then shows their names as they are, and not “Book theorem”."""

    name = "book"
    label = "Book"

    def get_objects(self) -> Iterator[tuple[str, str, str, str, str, int]]:
        for page, contents in self.env.book_blocks.items():
            for block in contents.blocks:
                name = f"{number(self.env, page, block)} {block.title}"
                place = THEN if block in contents.exercises else FIRST
                yield from self.spellings(name, block.kind, page, block.label, place)
        chapters = self.env.book_records.chapters
        for system in self.env.book_systems:
            places = [(chapters[name].page, anchor) for name, anchor in system.places if name in chapters]
            if places and "$" not in system.name:  # a formula, which nobody types
                yield from self.spellings(system.name, "system", *places[0], THEN)
        for anchor, names in self.env.book_symbols.items():
            for name in names:
                yield from self.spellings(name, "symbol", NOTATION, anchor, FIRST)

    @staticmethod
    def spellings(name: str, *rest: str | int) -> Iterator[tuple]:
        for spelling in dict.fromkeys([name, plain(name)]):
            yield spelling, spelling, *rest


def start(app: Sphinx) -> None:
    app.env.book_symbols = {}


def set_scorer(app: Sphinx, config: Config) -> None:
    config.html_search_scorer = str(Path(__file__).with_name("scorer.js"))


def setup(app: Sphinx) -> None:
    app.add_domain(BookDomain)
    app.connect("config-inited", set_scorer)
    app.connect("builder-inited", start)
    app.connect("doctree-read", anchor_symbols)
