"""The claims ledger's pages: directives that render `book.records`; a build fails if the ledger is incomplete.

{corrections}      a line for each of the corrections that matter most, with its verdict, and the way to its evidence
{ledger-counts}    how many claims got which verdict, with bars, and links to them
{ledger-table}     every claim, chapter by chapter, with verdict and statement, and what was done, at a glance
{chapter-ledger}   on the page book/ledger/<chapter>: its claims, and the evidence in full

A chapter itself says in one line what it settles, and leads there.
"""

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

from deepdive.book import contents, records
from deepdive.book.chapter import Chapter
from deepdive.book.contents import ledger_page
from deepdive.book.records import SOURCES, Book
from deepdive.page.directive import BookDirective
from deepdive.page.filters import chosen, controls, facet, part_choices
from deepdive.page.fold import fold, summary
from deepdive.page.links import link
from deepdive.page.tables import table
from deepdive.page.verdicts import WORDS, mark, sentence
from smalltorch.engine.objects import in_common
from smalltorch.engine.schema import VERDICTS, Claim, Evidence, Record, anchor

logger = logging.getLogger(__name__)


CORRECTED = ("true if", "imprecise", "false")  # the verdicts on what is not true as it stands
NAMED = 8  # of the objects that a claim and its evidence have in common
TITLES, WIDTHS = ("Claim", "Verdict", "What holds, and on what evidence"), (33, 17, 50)


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
        total = nodes.paragraph("", f"{sum(counts.values())} of {len(book.claims)} claims have a verdict:")
        return [total, table(("Verdict", "Claims"), rows, (40, 60), "How many claims got which verdict", kind="counts")]


def signs(record: Record, chapter: Chapter) -> list[nodes.inline]:
    """What was done for a claim, at a glance."""
    labels = {label(piece, chapter): piece.kind for piece in record.evidence}
    return [
        nodes.inline("", words, classes=["shown", f"shown-{nodes.make_id(kind)}"]) for words, kind in labels.items()
    ]


class ClaimDirective(BookDirective):
    """What both ledgers share: rows of claims, up to the evidence."""

    def row(self, claim: Claim, record: Record, *evidence: nodes.Node) -> tuple[list[nodes.Node], ...]:
        holds = self.markdown(record.statement)
        if record.assumptions.strip():
            holds.append(nodes.paragraph("", "", nodes.emphasis("", "Assuming: "), *self.inline(record.assumptions)))
        verdict = nodes.paragraph("", "", mark(record.kind, *self.inline(record.verdict)))
        return self.claim(claim), [verdict], [*holds, *evidence]

    def claim(self, claim: Claim) -> list[nodes.Node]:
        origin = nodes.Text(f"{claim.source}, ")
        return [
            *self.markdown(claim.claim),
            nodes.paragraph("", "", origin, *self.inline(claim.place), classes=["origin"]),
        ]


class Corrections(BookDirective):
    """Lines `id: what is true instead`, each of a claim that is not true as it stands, and each claim once."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        lines = [line.partition(": ") for line in self.content if line.strip()]
        list_, seen = nodes.enumerated_list(classes=["corrections"]), set()
        for claim, _, said in lines:
            record = self.book.records.get(claim)
            if record is None or record.kind not in CORRECTED or claim in seen or not said:
                expected = "a claim that is not true as it stands, once, and what is true instead"
                logger.warning("corrections: expected %s; got %s: %s", expected, claim, said, type="ledger")
                continue
            seen.add(claim)
            way = link([mark(record.kind)], ledger_page(record.chapter), f"#{anchor(claim)}")
            list_ += nodes.list_item("", nodes.paragraph("", "", *self.inline(said), nodes.Text(" "), way))
        return [list_]


class LedgerTable(ClaimDirective):
    def run(self) -> list[nodes.Node]:
        book = self.book
        found = [self.settled(book, chapter) for chapter in book.chapters.values() if book.claims_of(chapter.name)]
        verdicts = {kind: WORDS.get(kind, kind) for kind in VERDICTS}
        notes = {name: name for name in SOURCES if any(claim.source == name for claim in book.claims)}
        parts = part_choices(book, {claim.chapter for claim in book.claims})
        form = controls("claims", {"verdict": verdicts, "part": parts, "notes": notes})
        return [form, *found]

    def section(self, name: str) -> nodes.section:
        return nodes.section(ids=[name], names=[name], classes=["hidden-when-empty"])

    def facets(self, claim: Claim, book: Book) -> list[str]:
        parts = [part.title for part in book.parts if claim.chapter in part.chapters]
        return [
            facet("verdict", book.records[claim.id].kind or ""),
            *(facet("part", title) for title in parts),
            facet("notes", claim.source),
        ]

    def settled(self, book: Book, chapter: Chapter) -> nodes.section:
        claims = [claim for claim in book.claims_of(chapter.name) if claim.id in book.records]
        page = ledger_page(chapter.name)
        section = self.section(f"chapter-{chapter.name}")
        section += nodes.title("", "", *self.inline(chapter.title))
        ways = [link([nodes.Text("Read the chapter")], chapter.page), link([nodes.Text("see its evidence")], page)]
        section += nodes.paragraph("", "", ways[0], nodes.Text(" · "), ways[1])
        section += sentence(book.counts(book.claims_of(chapter.name)))
        rows = []
        for claim in claims:
            record = book.records[claim.id]
            shown = link(signs(record, chapter), page, f"#{anchor(claim.id)}")
            rows.append(self.row(claim, record, nodes.paragraph("", "", shown, classes=["glance"])))
        section += table(
            TITLES,
            rows,
            WIDTHS,
            f"Claims settled in the chapter {chapter.title}",
            [f"claim-{claim.id}" for claim in claims],
            [self.facets(claim, book) for claim in claims],
            "filtered",
        )
        return section


class ChapterLedger(ClaimDirective):
    def run(self) -> list[nodes.Node]:
        book = self.book
        chapter = next(chapter for chapter in book.chapters.values() if ledger_page(chapter.name) == self.env.docname)
        claims = [claim for claim in book.claims_of(chapter.name) if claim.id in book.records]
        about = nodes.paragraph("", "What the notes claim, and the chapter “")
        about += [*self.inline(chapter.title), nodes.Text("” settles: each claim with its verdict and its evidence.")]
        line = nodes.paragraph("", "", link([nodes.Text("Read the chapter")], chapter.page), nodes.Text(" · "))
        line += link([nodes.Text("all claims of the book")], "book/ledger", f"#chapter-{chapter.name}")
        rows = [
            self.row(claim, book.records[claim.id], self.evidence(book.records[claim.id], chapter)) for claim in claims
        ]
        label = f"Claims settled in the chapter {chapter.title}"
        made = table(TITLES, rows, WIDTHS, label, [anchor(claim.id) for claim in claims], kind="claims")
        return [about, line, sentence(book.counts(claims)), made]

    def evidence(self, record: Record, chapter: Chapter) -> fold:
        """What was done, at a glance, with what it shows folded under it."""
        pieces = nodes.bullet_list(classes=["evidence"])
        said = next(claim.claim for claim in self.book.claims if claim.id == record.claim)
        named = ", ".join(in_common(record, said)[:NAMED]) or "nothing"
        pieces += nodes.list_item("", nodes.paragraph("", f"In the claim and in its evidence: {named}."))
        for piece in record.evidence:
            shown = nodes.paragraph("", "", *self.piece(piece, chapter))
            pieces += nodes.list_item("", shown, *self.conclusions(piece))
        return fold("", summary("", "", *signs(record, chapter)), pieces, classes=["evidence"])

    def piece(self, piece: Evidence, chapter: Chapter) -> list[nodes.Node]:
        """The kind of evidence, as a link to the cell that gave it, and what it says."""
        text = piece.text.removesuffix(f" ({', '.join(piece.about)})") if piece.kind == "cited" else piece.text
        rest = text.removeprefix(piece.kind) if text.startswith(piece.kind) else f": {text}"
        works = f" {{cite}}`{','.join(piece.about)}`" if piece.kind == "cited" else ""
        kind, *said = [node for node in self.inline(f"**{piece.kind}**{rest}{works}") if node.astext()]
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


def settled_line(book: Book, chapter: Chapter) -> nodes.paragraph:
    """What a chapter settles, in one line, which leads to its page of the ledger."""
    claims = [record.claim for record, _ in chapter.records]
    said = f"This chapter settles {len(claims)} claim{'' if len(claims) == 1 else 's'} of the notes: "
    counts = sentence(book.counts(claim for claim in book.claims if claim.id in claims))
    way = link([nodes.Text("its page of the ledger")], ledger_page(chapter.name))
    line = nodes.paragraph("", "", nodes.Text(said), *counts.children, nodes.Text(" → "), way)
    line["classes"].append("settled")
    return line


def settle(app: Sphinx, doctree: nodes.document) -> None:
    """Put this line where a chapter's closing shows the table of its claims."""
    chapter = app.env.book_records.pages.get(app.env.docname)
    closings = {cell for _, cell in chapter.closings} if chapter else ()
    for cell in doctree.findall(nodes.container):
        if cell.get("nb_element") == "cell_code" and cell["cell_index"] in closings:
            output = cell.children[-1]
            output.children = [settled_line(app.env.book_records, chapter)] if chapter.records else []
            cell["cell_metadata"] = {"tags": ["hide-input"]}  # the line is seen, whatever is folded


def report_problems(app: Sphinx) -> None:
    """Say what is wrong before any page is read: under -W, as in `make book`, the build then fails."""
    app.env.book_anchors = {}
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
    app.add_directive("corrections", Corrections)
    app.add_directive("ledger-counts", LedgerCounts)
    app.add_directive("ledger-table", LedgerTable)
    app.add_directive("chapter-ledger", ChapterLedger)
    app.connect("builder-inited", report_problems)
    app.connect("doctree-read", anchor_cells)
    app.connect("doctree-read", settle)
