"""The index of systems: a directive that renders `book.systems`; a build fails if a row is wrong.

{systems-table}   every system with its kind and the places where it works
"""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

from deepdive.book import systems
from deepdive.book.records import Book
from deepdive.book.systems import KINDS, STATES, System
from deepdive.page.directive import BookDirective
from deepdive.page.filters import controls, facet, part_choices
from deepdive.page.links import link
from deepdive.page.tables import table

logger = logging.getLogger(__name__)


class SystemsTable(BookDirective):
    def run(self) -> list[nodes.Node]:
        book, rows = self.book, self.systems
        counts = [
            f"{sum(system.state == state for system in rows)} {words}"
            for state, words in zip(STATES, ("work in this book", "are named only"), strict=True)
        ]
        states = {state: state for state in STATES}
        parts = part_choices(book, {chapter for system in rows for chapter in system.chapters})
        form = controls("systems", {"kind": KINDS, "part": parts, "state": states})
        return [
            nodes.paragraph("", f"Of {len(rows)} systems, {counts[0]} and {counts[1]}."),
            form,
            table(
                ("System", "Kind", "Where"),
                [self.row(system, book) for system in rows],
                (54, 16, 30),
                "Systems",
                [f"system-{system.number}" for system in rows],
                [self.facets(system, book) for system in rows],
                "filtered",
            ),
        ]

    def row(self, system: System, book: Book) -> tuple[list[nodes.Node], ...]:
        origin = nodes.paragraph("", f"{system.number} · {system.source}, {system.section}", classes=["origin"])
        name = nodes.paragraph(
            "", "", nodes.strong("", "", *self.inline(system.name)), nodes.Text(": "), *self.inline(system.what)
        )
        kind = nodes.paragraph("", ", ".join(KINDS[letter] for letter in system.kinds))
        where = [nodes.paragraph("", system.state)] if system.state == "named only" else []
        for chapter, anchor in system.places:
            chapter = book.chapters[chapter]
            text = self.inline(f"{chapter.name}: {chapter.headings[anchor]}")
            where.append(nodes.paragraph("", "", link(text, chapter.page, f"#{anchor}")))
        return [origin, name], [kind], where

    def facets(self, system: System, book: Book) -> list[str]:
        parts = [part.title for part in book.parts if set(part.chapters) & set(system.chapters)]
        return [
            *(facet("kind", letter) for letter in system.kinds),
            *(facet("part", title) for title in parts),
            facet("state", system.state),
        ]


def report_problems(app: Sphinx) -> None:
    for problem in systems.problems(app.env.book_systems, app.env.book_records):
        logger.warning("%s", problem, type="systems")


def setup(app: Sphinx) -> None:
    app.add_directive("systems-table", SystemsTable)
    app.connect("builder-inited", report_problems)
