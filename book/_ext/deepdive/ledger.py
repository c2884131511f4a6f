"""The claims ledger: directives that show what `book.records` reads, and failures of a build whose ledger is not whole.

{ledger-counts}   how many claims got which verdict, with bars, and links to them
{ledger-table}    every claim, chapter by chapter, with verdict, statement and evidence
"""

from __future__ import annotations

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

from deepdive.book import contents, records
from deepdive.book.chapter import Chapter
from deepdive.book.records import NOT_YET, SOURCES, Book
from deepdive.page.directive import BookDirective
from deepdive.page.filters import chosen, controls, facet, part_choices
from deepdive.page.links import link
from deepdive.page.tables import table
from deepdive.page.verdicts import WORDS, mark, sentence
from smalltorch.engine.schema import VERDICTS, Claim, Evidence, Record

logger = logging.getLogger(__name__)


class folded(nodes.General, nodes.Element):
    """What is folded away under its first child, a `summary`."""


class summary(nodes.General, nodes.TextElement):
    """The line under which something is folded away."""


def visit_folded(self, node: folded) -> None:
    self.body.append('<details class="evidence">')


def depart_folded(self, node: folded) -> None:
    self.body.append("</details>\n")


def visit_summary(self, node: summary) -> None:
    self.body.append("<summary>")


def depart_summary(self, node: summary) -> None:
    self.body.append("</summary>\n")


def label(piece: Evidence, chapter: Chapter) -> str:
    """What was done, at a glance; of a written proof also how much of it is words."""
    proof = chapter.proofs.get(" ".join(piece.about)) if piece.kind == "proved in text" else None
    if proof is None:
        return piece.label
    unit = "step" if proof.numbered else "sentence"
    plural = "" if len(proof.steps) == 1 else "s"
    return f"{piece.label}: {len(proof.steps)} {unit}{plural}, {proof.resting} by checked identities"


class LedgerCounts(BookDirective):
    def run(self) -> list[nodes.Node]:
        book = self.book
        counts = book.counts(book.claims)
        most = max(counts.values())
        rows = []
        for kind, count in counts.items():
            bar = nodes.raw("", f'<span class="bar" style="width: {count / most:.1%}"></span>', format="html")
            number = nodes.inline("", str(count), classes=["count"])
            verdict = link([mark(kind)], "book/ledger", chosen(verdict=kind))
            rows.append(([nodes.paragraph("", "", verdict)], [nodes.paragraph("", "", number, bar)]))
        total = nodes.paragraph("", f"Of {len(book.claims)} claims, {len(book.claims) - counts[NOT_YET]} are examined.")
        return [total, table(("Verdict", "Claims"), rows, (40, 60), "How many claims got which verdict", kind="counts")]


class LedgerTable(BookDirective):
    def run(self) -> list[nodes.Node]:
        book = self.book
        found = [self.settled(book, chapter) for chapter in book.chapters.values() if book.claims_of(chapter.name)]
        waiting = [claim for claim in book.claims if claim.id not in book.records]
        verdicts = {kind: WORDS.get(kind, kind) for kind in (*VERDICTS, NOT_YET)}
        notes = {name: name for name in SOURCES if any(claim.source == name for claim in book.claims)}
        parts = part_choices(book, {claim.chapter for claim in book.claims})
        form = controls("claims", book, {"verdict": verdicts, "part": parts, "notes": notes})
        return [form, *found, *([self.waiting(waiting, book)] if waiting else [])]

    def section(self, name: str) -> nodes.section:
        return nodes.section(ids=[name], names=[name], classes=["hidden-when-empty"])

    def facets(self, claim: Claim, book: Book) -> list[str]:
        parts = [part.title for part in book.parts if claim.chapter in part.chapters]
        kind = book.records[claim.id].kind if claim.id in book.records else NOT_YET
        return [facet("verdict", kind or ""), *(facet("part", title) for title in parts), facet("notes", claim.source)]

    def settled(self, book: Book, chapter: Chapter) -> nodes.section:
        claims = [claim for claim in book.claims_of(chapter.name) if claim.id in book.records]
        section = self.section(f"chapter-{chapter.name}")
        section += nodes.title("", "", *self.inline(chapter.title))
        section += nodes.paragraph("", "", link([nodes.Text("Read the chapter")], chapter.page))
        section += sentence(book.counts(book.claims_of(chapter.name)))
        rows = [self.row(claim, book.records[claim.id], chapter) for claim in claims]
        section += table(
            ("Claim", "Verdict", "What holds, and on what evidence"),
            rows,
            (30, 16, 54),
            f"Claims settled in the chapter {chapter.title}",
            [f"claim-{claim.id}" for claim in claims],
            [self.facets(claim, book) for claim in claims],
            "filtered",
        )
        return section

    def row(self, claim: Claim, record: Record, chapter: Chapter) -> tuple[list[nodes.Node], ...]:
        holds = self.markdown(record.statement)
        if record.assumptions.strip():
            holds.append(nodes.paragraph("", "", nodes.emphasis("", "Assuming: "), *self.inline(record.assumptions)))
        evidence = nodes.bullet_list(classes=["evidence"])
        for piece in record.evidence:
            shown = nodes.paragraph("", "", *self.evidence(piece, chapter))
            evidence += nodes.list_item("", shown, *self.conclusions(piece))
        labels = {label(piece, chapter): piece.kind for piece in record.evidence}
        signs = [
            nodes.inline("", words, classes=["shown", f"shown-{nodes.make_id(kind)}"]) for words, kind in labels.items()
        ]
        holds.append(folded("", summary("", "", *signs), evidence))
        verdict = nodes.paragraph("", "", mark(record.kind, *self.inline(record.verdict)))
        return self.claim(claim), [verdict], holds

    def evidence(self, piece: Evidence, chapter: Chapter) -> list[nodes.Node]:
        """The kind of evidence, as a link to the cell that gave it, and what it says."""
        rest = piece.text.removeprefix(piece.kind) if piece.text.startswith(piece.kind) else f": {piece.text}"
        kind, *said = [node for node in self.inline(f"**{piece.kind}**{rest}") if node.astext()]
        cell = chapter.cell_of(piece)
        return [link([kind], chapter.page, f"#{cell}" if cell else ""), *said]

    def conclusions(self, piece: Evidence) -> list[nodes.Node]:
        """What the evidence shows, where its text does not say that: under which hypotheses, and how it was closed."""
        exact = piece.kind in ("derived", "proved in text")
        lines = [("shown", line) for line in piece.shows if exact or piece.kind in ("computed", "fact")]
        lines += [("given", line) for line in piece.given]
        lines += [("which holds at", piece.instance)] if piece.instance else []
        found = []
        for what, line in lines:
            said = nodes.literal("", line) if exact else nodes.Text(line)
            found.append(nodes.paragraph("", "", nodes.emphasis("", f"{what}: "), said, classes=["conclusion"]))
        if piece.by:
            closed = nodes.emphasis("", "closed by: ")
            found.append(nodes.paragraph("", "", closed, nodes.Text(", ".join(piece.by)), classes=["conclusion"]))
        return found

    def claim(self, claim: Claim) -> list[nodes.Node]:
        origin = nodes.paragraph(
            "",
            "",
            nodes.literal("", claim.id),
            nodes.Text(f" {claim.source}, "),
            *self.inline(claim.place),
            classes=["claim-origin"],
        )
        return [origin, *self.markdown(claim.claim)]

    def waiting(self, claims: list[Claim], book: Book) -> nodes.section:
        section = self.section("not-yet-examined")
        section += nodes.title("", "Not yet examined")
        section += nodes.paragraph("", f"{len(claims)} claims wait for chapters that are not yet written.")
        rows = [(self.claim(claim), [nodes.paragraph("", claim.chapter)]) for claim in claims]
        section += table(
            ("Claim", "Chapter to come"),
            rows,
            (80, 20),
            "Claims not yet examined",
            [f"claim-{claim.id}" for claim in claims],
            [self.facets(claim, book) for claim in claims],
            "filtered",
        )
        return section


def report_problems(app: Sphinx) -> None:
    """Say what is wrong before any page is read: under -W, as in `make book`, the build then fails."""
    app.env.book_anchors = getattr(app.env, "book_anchors", {})
    for problem in [*records.problems(app.env.book_records), *contents.stray_notebooks(Path(app.srcdir))]:
        logger.warning("ledger: %s", problem, type="ledger")


def anchor_cells(app: Sphinx, doctree: nodes.document) -> None:
    """Make the ids of the cells that gave evidence anchors, for the ledger to link to."""
    page = app.env.docname
    if page not in app.env.book_records.pages:
        return
    chapter = app.env.book_records.pages[page]
    wanted = {chapter.cell_of(piece) for record, _ in chapter.records for piece in record.evidence}
    app.env.book_anchors[page] = set()
    for cell in doctree.findall(nodes.container):
        if cell.get("nb_element") == "cell_code" and (name := chapter.cells[cell["cell_index"]]) in wanted:
            cell["ids"].append(name)
            app.env.book_anchors[page].add(f"#{name}")


def setup(app: Sphinx) -> None:
    app.add_node(folded, html=(visit_folded, depart_folded))
    app.add_node(summary, html=(visit_summary, depart_summary))
    app.add_directive("ledger-counts", LedgerCounts)
    app.add_directive("ledger-table", LedgerTable)
    app.connect("builder-inited", report_problems)
    app.connect("doctree-read", anchor_cells)
