"""The claims ledger: directives that show what `records` reads, and the failures of a build whose ledger is not whole.

    {ledger-counts}   how many claims got which verdict
    {ledger-parts}    the parts of the book, the chapters each has, and their counts
    {ledger-table}    every claim, chapter by chapter, with verdict, statement and evidence
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

import records
from records import Book, Chapter, Claim, Record

logger = logging.getLogger(__name__)

WORDS = {"true if": "true if …"}


class scroll_region(nodes.General, nodes.Element):
    """A box that scrolls sideways, also by keyboard, and has a name for those who cannot see it."""


def visit_scroll_region(self, node: scroll_region) -> None:
    label = self.attval(node["label"])
    self.body.append(f'<div class="scroll-region" role="region" tabindex="0" aria-label="{label}">')


def depart_scroll_region(self, node: scroll_region) -> None:
    self.body.append("</div>\n")


def mark(kind: str, *text: nodes.Node) -> nodes.inline:
    """A verdict: its word, or the text given, and a sign before it that the style sheet draws."""
    words = text or (nodes.Text(WORDS.get(kind, kind)),)
    return nodes.inline("", "", *words, classes=["verdict", "verdict-" + kind.replace(" ", "-")])


def link(text: Sequence[nodes.Node], page: str, cell: int | None = None) -> nodes.reference:
    """A link to a chapter or to a cell of it; its address is filled in by `resolve_links`."""
    return nodes.reference("", "", *text, internal=True, book_target=(page, cell))


def sentence(counts: dict[str, int]) -> nodes.paragraph:
    """“3 true · 1 false · 4 not yet examined”: the counts that are not zero."""
    line = nodes.paragraph(classes=["ledger-counts"])
    for kind, count in counts.items():
        if count:
            if line.children:
                line += nodes.Text(" · ")
            line += mark(kind, nodes.Text(f"{count} {WORDS.get(kind, kind)}"))
    return line if line.children else nodes.paragraph("", "no claims", classes=["ledger-counts"])


def table(titles: Sequence[str], rows: Iterable[Sequence[Sequence[nodes.Node]]], widths: Sequence[int],
          label: str, ids: Sequence[str] = ()) -> scroll_region:
    """A table in a region that scrolls; a cell is a list of block nodes, `ids` are the anchors of the rows."""
    group = nodes.tgroup(cols=len(titles))
    group += [nodes.colspec(colwidth=width) for width in widths]
    head = nodes.row()
    head += [nodes.entry("", nodes.paragraph("", title)) for title in titles]
    group += nodes.thead("", head)
    body = nodes.tbody()
    for number, cells in enumerate(rows):
        row = nodes.row(ids=[ids[number]] if ids else [])
        row += [nodes.entry("", *cell) for cell in cells]
        body += row
    group += body
    return scroll_region("", nodes.table("", group, classes=["ledger", "colwidths-given"]), label=label)


class LedgerDirective(SphinxDirective):
    """What the three directives share: the book's records, and reading Markdown with maths."""

    @property
    def book(self) -> Book:
        for name in ("claims.csv", "parts.yml"):
            self.env.note_dependency(str(Path(self.env.srcdir) / "book" / name))
        for chapter in self.env.book_records.chapters.values():
            self.env.note_dependency(str(Path(self.env.srcdir) / f"{chapter.page}.ipynb"))
        return self.env.book_records

    def markdown(self, text: str) -> list[nodes.Node]:
        """Markdown as block nodes."""
        box = nodes.Element()
        self.state.nested_parse(StringList(text.splitlines(), source=self.env.docname), 0, box)
        return box.children

    def inline(self, text: str) -> list[nodes.Node]:
        """One line of Markdown as inline nodes."""
        return [child for block in self.markdown(text) for child in block.children]


class LedgerCounts(LedgerDirective):
    def run(self) -> list[nodes.Node]:
        book = self.book
        rows = [([nodes.paragraph("", "", mark(kind))], [nodes.paragraph("", str(count))])
                for kind, count in book.counts(book.claims).items()]
        rows.append(([nodes.paragraph("", "all claims")], [nodes.paragraph("", str(len(book.claims)))]))
        return [table(("Verdict", "Claims"), rows, (3, 1), "How many claims got which verdict")]


class LedgerParts(LedgerDirective):
    def run(self) -> list[nodes.Node]:
        book = self.book
        written = [part for part in book.parts if any(name in book.chapters for name in part.chapters)]
        items = nodes.enumerated_list(enumtype="arabic", prefix="", suffix=".", classes=["book-parts"])
        for part in written:
            item = nodes.list_item("", nodes.paragraph("", "", nodes.strong("", part.title)))
            chapters = nodes.bullet_list()
            for name in part.chapters:
                if name in book.chapters:
                    chapter = book.chapters[name]
                    line = nodes.paragraph("", "", link(self.inline(chapter.title), chapter.page))
                    chapters += nodes.list_item("", line)
            item += [chapters, sentence(book.counts(book.claims_of(*part.chapters)))]
            items += item
        rest = [part for part in book.parts if part not in written]
        if not rest:
            return [items]
        claims = [claim for part in rest for claim in book.claims_of(*part.chapters)]
        titles = ", ".join(part.title for part in rest)
        return [items, nodes.paragraph("", f"To come, with {len(claims)} claims not yet examined: {titles}.")]


class LedgerTable(LedgerDirective):
    def run(self) -> list[nodes.Node]:
        book = self.book
        found = [self.settled(book, chapter) for chapter in book.chapters.values()]
        waiting = [claim for claim in book.claims if claim.id not in book.records]
        return found + ([self.waiting(waiting)] if waiting else [])

    def settled(self, book: Book, chapter: Chapter) -> nodes.section:
        claims = [claim for claim in book.claims_of(chapter.name) if claim.id in book.records]
        section = nodes.section(ids=[f"chapter-{chapter.name}"], names=[f"chapter-{chapter.name}"])
        section += nodes.title("", "", *self.inline(chapter.title))
        section += nodes.paragraph("", "", link([nodes.Text("Read the chapter")], chapter.page))
        section += sentence(book.counts(book.claims_of(chapter.name)))
        rows = [self.row(claim, book.records[claim.id], book) for claim in claims]
        section += table(("Claim", "Verdict", "What holds, and on what evidence"), rows, (30, 16, 54),
                         f"Claims settled in the chapter {chapter.title}", [f"claim-{claim.id}" for claim in claims])
        return section

    def row(self, claim: Claim, record: Record, book: Book) -> tuple[list[nodes.Node], ...]:
        holds = self.markdown(record.statement)
        if record.assumptions.strip():
            holds.append(nodes.paragraph("", "", nodes.emphasis("", "Assuming: "), *self.inline(record.assumptions)))
        evidence = nodes.bullet_list(classes=["evidence"])
        for kind, text in record.evidence:
            rest = text.removeprefix(kind) if text.startswith(kind) else f": {text}"
            evidence += nodes.list_item("", nodes.paragraph("", "", *self.inline(f"**{kind}**{rest}")))
        page = book.chapters[record.chapter].page
        evidence += nodes.list_item("", nodes.paragraph("", "", link([nodes.Text("see the check")], page, record.cell)))
        verdict = nodes.paragraph("", "", mark(record.kind, *self.inline(record.verdict)))
        return self.claim(claim), [verdict], [*holds, evidence]

    def claim(self, claim: Claim) -> list[nodes.Node]:
        origin = nodes.paragraph("", "", nodes.literal("", claim.id), nodes.Text(f" {claim.source}, "),
                                 *self.inline(claim.place), classes=["claim-origin"])
        return [origin, *self.markdown(claim.claim)]

    def waiting(self, claims: list[Claim]) -> nodes.section:
        section = nodes.section(ids=["not-yet-examined"], names=["not-yet-examined"])
        section += nodes.title("", "Not yet examined")
        section += nodes.paragraph("", f"{len(claims)} claims wait for chapters that are not yet written.")
        rows = [(self.claim(claim), [nodes.paragraph("", claim.chapter)]) for claim in claims]
        section += table(("Claim", "Chapter to come"), rows, (80, 20), "Claims not yet examined",
                         [f"claim-{claim.id}" for claim in claims])
        return section


def read_records(app: Sphinx) -> None:
    """Read the records before any page, and report what is wrong: under -W, as in `make book`, the build then fails."""
    root = Path(app.srcdir)
    app.env.book_records = records.read_book(root)
    app.env.book_anchors = getattr(app.env, "book_anchors", {})
    for problem in [*records.problems(app.env.book_records), *records.stray_notebooks(root)]:
        logger.warning("ledger: %s", problem, type="ledger")


def anchor_cells(app: Sphinx, doctree: nodes.document) -> None:
    """Give the cells that settle claims an anchor, for the ledger to link to."""
    page = app.env.docname
    chapter = next((chapter for chapter in app.env.book_records.chapters.values() if chapter.page == page), None)
    if chapter is None:
        return
    settling = {record.cell for record in chapter.records}
    app.env.book_anchors[page] = set()
    for cell in doctree.findall(nodes.container):
        if cell.get("nb_element") == "cell_code" and cell["cell_index"] in settling:
            cell["ids"].append(f"cell-{cell['cell_index']}")
            app.env.book_anchors[page].add(cell["cell_index"])


def resolve_links(app: Sphinx, doctree: nodes.document, page: str) -> None:
    for reference in doctree.findall(nodes.reference):
        if "book_target" in reference:
            target, cell = reference["book_target"]
            anchor = f"#cell-{cell}" if cell in app.env.book_anchors.get(target, ()) else ""
            reference["refuri"] = app.builder.get_relative_uri(page, target) + anchor


def setup(app: Sphinx) -> dict:
    app.add_node(scroll_region, html=(visit_scroll_region, depart_scroll_region))
    app.add_directive("ledger-counts", LedgerCounts)
    app.add_directive("ledger-parts", LedgerParts)
    app.add_directive("ledger-table", LedgerTable)
    app.connect("builder-inited", read_records)
    app.connect("doctree-read", anchor_cells)
    app.connect("doctree-resolved", resolve_links)
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": True}
