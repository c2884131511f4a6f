"""The claims ledger: directives that show what `records` reads, and the failures of a build whose ledger is not whole.

    {ledger-counts}   how many claims got which verdict, with bars, and links to them
    {ledger-table}    every claim, chapter by chapter, with verdict, statement and evidence

What the index of systems (`systemsext`) and the map of the parts (`partsext`) share with it stands here too: tables,
whose rows can be filtered, and counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

import records
import systems
from records import NOT_YET, SOURCES, VERDICTS, Book, Chapter, Claim, Record
from systems import System

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


def link(text: Sequence[nodes.Node], page: str, rest: str = "") -> nodes.reference:
    """A link to a page and, with `rest`, to an anchor (#…) or a choice of rows (?…); `resolve_links` fills it in."""
    return nodes.reference("", "", *text, internal=True, book_target=(page, rest))


def chosen(**values: str) -> str:
    """The end of an address that shows only the rows with these values of facets, as filters.js reads it."""
    return "?" + "&".join(f"{name}={nodes.make_id(value)}" for name, value in values.items())


def sentence(counts: dict[str, int], part: str = "") -> nodes.paragraph:
    """“3 true · 1 false · 4 not yet examined”: the counts that are not zero, of a part with links to its claims."""
    line = nodes.paragraph(classes=["muted"])
    for kind, count in counts.items():
        if count:
            if line.children:
                line += nodes.Text(" · ")
            words = mark(kind, nodes.Text(f"{count} {WORDS.get(kind, kind)}"))
            line += link([words], "book/ledger", chosen(part=part, verdict=kind)) if part else words
    return line if line.children else nodes.paragraph("", "no claims", classes=["muted"])


def table(
    titles: Sequence[str | nodes.Node],
    rows: Iterable[Sequence[Sequence[nodes.Node]]],
    widths: Sequence[int],
    label: str,
    ids: Sequence[str] = (),
    classes: Sequence[Sequence[str]] = (),
    kind: str = "",
) -> scroll_region:
    """A table in a region that scrolls; a cell is a list of block nodes.

    `ids` are the anchors of the rows and `classes` their classes, `kind` is a class of the table: where it is
    "filtered", filters.js can hide rows.
    """
    group = nodes.tgroup(cols=len(titles))
    group += [nodes.colspec(colwidth=width) for width in widths]
    head = nodes.row()
    head += [
        nodes.entry("", nodes.paragraph("", "", nodes.Text(title) if isinstance(title, str) else title))
        for title in titles
    ]
    group += nodes.thead("", head)
    body = nodes.tbody()
    for number, cells in enumerate(rows):
        row = nodes.row(ids=[ids[number]] if ids else [], classes=classes[number] if classes else [])
        row += [nodes.entry("", *cell) for cell in cells]
        body += row
    group += body
    made = nodes.table("", group, classes=["ledger", "colwidths-given", *([kind] if kind else [])])
    return scroll_region("", made, label=label)


def facet(name: str, value: str) -> str:
    """The class of rows that have this value: what a choice in `controls` selects by."""
    return nodes.make_id(f"{name}-is-{value}")


def controls(noun: str, choices: Mapping[str, Mapping[str, str]]) -> nodes.raw:
    """The form by which filters.js hides rows: words to search for, and for each facet its values with the words shown.

    It is hidden until that script runs, for without it the form could do nothing.
    """
    html = [
        f'<form class="filters" aria-label="Filter the {noun}" data-noun="{noun}" hidden>',
        '<label>Search <input type="search" name="words" autocomplete="off" spellcheck="false"></label>',
    ]
    for name, values in choices.items():
        html.append(f'<label>{name.capitalize()} <select name="{name}"><option value="">any</option>')
        html += [f'<option value="{nodes.make_id(value)}">{escape(words)}</option>' for value, words in values.items()]
        html.append("</select></label>")
    html.append('<button type="reset">Show all</button><output></output></form>')
    return nodes.raw("", "\n".join(html), format="html")


def part_choices(book: Book) -> dict[str, str]:
    return {part.title: part.title for part in book.parts}


class LedgerDirective(SphinxDirective):
    """What the directives share: the book's records and systems, and reading Markdown with maths."""

    @property
    def book(self) -> Book:
        for name in ("claims.csv", "systems.csv", "parts.yml"):
            self.env.note_dependency(str(Path(self.env.srcdir) / "book" / name))
        for chapter in self.env.book_records.chapters.values():
            self.env.note_dependency(str(Path(self.env.srcdir) / f"{chapter.page}.ipynb"))
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


class LedgerCounts(LedgerDirective):
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


class LedgerTable(LedgerDirective):
    def run(self) -> list[nodes.Node]:
        book = self.book
        found = [self.settled(book, chapter) for chapter in book.chapters.values()]
        waiting = [claim for claim in book.claims if claim.id not in book.records]
        verdicts = {kind: WORDS.get(kind, kind) for kind in (*VERDICTS, NOT_YET)}
        notes = {name: name for name in SOURCES if any(claim.source == name for claim in book.claims)}
        form = controls("claims", {"verdict": verdicts, "part": part_choices(book), "notes": notes})
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
        rows = [self.row(claim, book.records[claim.id], book) for claim in claims]
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

    def row(self, claim: Claim, record: Record, book: Book) -> tuple[list[nodes.Node], ...]:
        holds = self.markdown(record.statement)
        if record.assumptions.strip():
            holds.append(nodes.paragraph("", "", nodes.emphasis("", "Assuming: "), *self.inline(record.assumptions)))
        evidence = nodes.bullet_list(classes=["evidence"])
        for kind, text in record.evidence:
            rest = text.removeprefix(kind) if text.startswith(kind) else f": {text}"
            evidence += nodes.list_item("", nodes.paragraph("", "", *self.inline(f"**{kind}**{rest}")))
        page = book.chapters[record.chapter].page
        check = link([nodes.Text("see the check")], page, f"#cell-{record.cell}")
        evidence += nodes.list_item("", nodes.paragraph("", "", check))
        verdict = nodes.paragraph("", "", mark(record.kind, *self.inline(record.verdict)))
        return self.claim(claim), [verdict], [*holds, evidence]

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


def read_records(app: Sphinx) -> None:
    """Read the records before any page, and report what is wrong: under -W, as in `make book`, the build then fails."""
    root = Path(app.srcdir)
    app.env.book_records = records.read_book(root)
    app.env.book_systems = systems.read_systems(root / "book/systems.csv")
    app.env.book_anchors = getattr(app.env, "book_anchors", {})
    for problem in [*records.problems(app.env.book_records), *records.stray_notebooks(root)]:
        logger.warning("ledger: %s", problem, type="ledger")


def anchor_cells(app: Sphinx, doctree: nodes.document) -> None:
    """Give the cells that settle claims an anchor, for the ledger to link to."""
    page = app.env.docname
    if page not in app.env.book_records.pages:
        return
    settling = {record.cell for record in app.env.book_records.pages[page].records}
    app.env.book_anchors[page] = set()
    for cell in doctree.findall(nodes.container):
        if cell.get("nb_element") == "cell_code" and cell["cell_index"] in settling:
            cell["ids"].append(f"cell-{cell['cell_index']}")
            app.env.book_anchors[page].add(f"#cell-{cell['cell_index']}")


def resolve_links(app: Sphinx, doctree: nodes.document, page: str) -> None:
    for reference in doctree.findall(nodes.reference):
        if "book_target" in reference:
            target, rest = reference["book_target"]
            if rest.startswith("#cell-") and rest not in app.env.book_anchors.get(target, ()):
                rest = ""  # the cell is not shown
            reference["refuri"] = app.builder.get_relative_uri(page, target) + rest


def setup(app: Sphinx) -> dict:
    app.add_node(scroll_region, html=(visit_scroll_region, depart_scroll_region))
    # Before MathJax (500): a search reads the formulas' TeX, which typesetting takes away.
    app.add_js_file("filters.js", priority=400, loading_method="defer")
    app.add_directive("ledger-counts", LedgerCounts)
    app.add_directive("ledger-table", LedgerTable)
    app.connect("builder-inited", read_records)
    app.connect("doctree-read", anchor_cells)
    app.connect("doctree-resolved", resolve_links)
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": True}
