"""Directives for the map of all parts, and for the page that opens each part.

{book-map}   every part with its chapters, how many claims got which verdict there, and how long each runs
{part}       on the page book/parts/<folder>: its chapters, each with its result in short, and the way to its questions
"""

from collections.abc import Iterable

from docutils import nodes
from sphinx.application import Sphinx

from deepdive.book.chapter import Chapter
from deepdive.book.contents import Part, ledger_page
from deepdive.page.directive import BookDirective
from deepdive.page.filters import chosen
from deepdive.page.links import link
from deepdive.page.tables import table
from deepdive.page.verdicts import WORDS, mark, sentence
from smalltorch.engine.schema import VERDICTS


def seconds(chapters: Iterable[Chapter]) -> str:
    """How long they run; nothing for an essay, which does not."""
    runs = [chapter.seconds for chapter in chapters if chapter.seconds is not None]
    return f"{sum(runs)} s" if runs else ""


class BookMap(BookDirective):
    def run(self) -> list[nodes.Node]:
        book = self.book
        rows, classes = [], []
        for part in book.parts:
            chapters = book.written(part)
            if chapters:
                title = link([nodes.strong("", part.title)], part.opening)
                rows.append(self.row([title], part.chapters, seconds(chapters)))
                classes.append(["part"])
            for chapter in chapters:
                title = link(self.inline(chapter.title), chapter.page)
                rows.append(self.row([title], [chapter.name], seconds([chapter])))
                classes.append([])
        titles = [nodes.Text("Part and chapter"), *(self.sign(kind) for kind in VERDICTS), nodes.Text("runs")]
        made = table(titles, rows, (60, *[6] * len(VERDICTS), 10), "The parts of the book", classes=classes, kind="map")
        return [made]

    def row(self, title: list[nodes.Node], chapters: Iterable[str], time: str) -> list[list[nodes.Node]]:
        counts = self.book.counts(self.book.claims_of(*chapters))
        numbers = [
            [nodes.paragraph("", "", mark(kind, nodes.Text(str(counts[kind]))))] if counts[kind] else []
            for kind in VERDICTS
        ]
        return [[nodes.paragraph("", "", *title)], *numbers, [nodes.paragraph("", time)]]

    def sign(self, kind: str) -> nodes.inline:
        """The verdict's sign; its word is for those who cannot see it."""
        return mark(kind, nodes.inline("", WORDS.get(kind, kind), classes=["visually-hidden"]))


class PartOverview(BookDirective):
    def run(self) -> list[nodes.Node]:
        book = self.book
        part = next(part for part in book.parts if part.opening == self.env.docname)
        entries = nodes.definition_list(classes=["chapters"])
        for chapter in book.written(part):
            title = nodes.term("", "", link(self.inline(chapter.title), chapter.page))
            about = [nodes.paragraph("", "", *self.inline(chapter.result)), self.state_of(chapter)]
            entries += nodes.definition_list_item("", title, nodes.definition("", *about, *self.systems_of(chapter)))
        return [self.total(part), entries, *self.review(part)]

    def review(self, part: Part) -> list[nodes.paragraph]:
        """A link to the part's questions, where they are written."""
        if part.review not in self.env.found_docs:
            return []
        page = link([nodes.Text("ten questions")], part.review)
        return [nodes.paragraph("", "", nodes.Text("Whoever has read this part can answer "), page, nodes.Text("."))]

    def total(self, part: Part) -> nodes.paragraph:
        """The part's counts, each a link to its rows in the ledger, and to the systems in their index."""
        line = sentence(self.book.counts(self.book.claims_of(*part.chapters)), part.title)
        own = sum(bool(set(part.chapters) & set(system.chapters)) for system in self.systems)
        if own:
            line += [nodes.Text(" · "), link([nodes.Text(f"{own} systems")], "book/systems", chosen(part=part.title))]
        return line

    def state_of(self, chapter: Chapter) -> nodes.paragraph:
        claims = self.book.claims_of(chapter.name)
        line = sentence(self.book.counts(claims))
        if claims:
            line += [nodes.Text(" · "), link([nodes.Text("in the ledger")], ledger_page(chapter.name))]
        line += nodes.Text(f" · runs in {seconds([chapter])}")
        return line

    def systems_of(self, chapter: Chapter) -> list[nodes.paragraph]:
        line = nodes.paragraph("", "Systems: ", classes=["muted"])
        own = [(system, dict(reversed(system.places))) for system in self.systems]  # the first place in each chapter
        places = [(system.name, anchors[chapter.name]) for system, anchors in own if chapter.name in anchors]
        for number, (name, anchor) in enumerate(places):
            line += [nodes.Text(" · " if number else ""), link(self.inline(name), chapter.page, f"#{anchor}")]
        return [line] if places else []


def setup(app: Sphinx) -> None:
    app.add_directive("book-map", BookMap)
    app.add_directive("part", PartOverview)
