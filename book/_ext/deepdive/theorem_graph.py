"""The dependency graph of the theorems: a map of all, and for each in the list which others its proof uses.

{theorem-map}   a row for each chapter, a dot for each theorem, a line to each that its statement or proof names

What is named is what stands in a {prf:ref} within the statement or within a proof that follows it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx_proof.nodes import proof_node

from deepdive.blocks import Block, chapter, kind_of, number
from deepdive.page.directive import BookDirective
from deepdive.page.links import link

logger = logging.getLogger(__name__)

NAME, STEP, ROW, RADIUS, BEND = 150, 44, 30, 11, 0.16  # of the drawing, in pixels; a line's bend, over its height


@dataclass(frozen=True)
class Dot:
    """A theorem: its kind, its number within the chapter, and what it is listed as: “Theorem 2.1 (The winner)”."""

    label: str
    kind: str
    number: str
    title: str


@dataclass(frozen=True)
class Row:
    """A chapter with its theorems."""

    page: str
    name: str
    dots: tuple[Dot, ...]


def named(doctree: nodes.document) -> dict[str, tuple[str, ...]]:
    """For each theorem of a page, the others that its statement or its proofs name, each once."""
    found: dict[str, dict[str, None]] = {}
    own = None
    for node in doctree.findall(nodes.Element):
        if kind_of(node) not in ("", "exercise", "solution"):
            own = node["label"]
            found[own] = {}
        elif own is None or not isinstance(node, proof_node):
            continue
        for reference in node.findall(addnodes.pending_xref):
            if (reference["refdomain"], reference["reftype"]) == ("prf", "ref") and reference["reftarget"] != own:
                found[own][reference["reftarget"]] = None
    return {label: tuple(others) for label, others in found.items()}


def circles(rests: Mapping[str, Iterable[str]]) -> list[str]:
    """The theorems that rest on themselves, by way of others."""

    def reached(label: str) -> set[str]:
        seen, rest = set(), list(rests.get(label, ()))
        while rest:
            if (other := rest.pop()) not in seen:
                seen.add(other)
                rest += rests.get(other, ())
        return seen

    return [label for label in rests if label in reached(label)]


def shape(kind: str, x: float, y: float) -> str:
    """A circle for a theorem, a square for a lemma and the like, which are counted by themselves."""
    if kind == "theorem":
        return f'<circle cx="{x:.0f}" cy="{y:.0f}" r="{RADIUS}"/>'
    return f'<rect x="{x - RADIUS:.0f}" y="{y - RADIUS:.0f}" width="{2 * RADIUS}" height="{2 * RADIUS}"/>'


def drawing(rows: list[Row], rests: Mapping[str, Iterable[str]], addresses: Mapping[str, str]) -> str:
    """The map as SVG; `addresses` of pages, from where it stands."""
    places = {
        dot.label: (NAME + STEP * (k + 0.5), ROW * (r + 0.5))
        for r, row in enumerate(rows)
        for k, dot in enumerate(row.dots)
    }
    width = NAME + STEP * (max(len(row.dots) for row in rows) + 1)
    height = ROW * len(rows)
    lines, dots = [], []
    for label, others in rests.items():
        for other in others:
            (x, y), (x2, y2) = places[label], places[other]
            bend = STEP / 2 + BEND * abs(y - y2)
            mid = max(x, x2) + bend if y != y2 else (x + x2) / 2
            lines.append(
                f'<path class="rests" d="M{x:.0f} {y:.0f} C{mid:.0f} {y - (y == y2) * ROW:.0f} {mid:.0f} '
                f'{y2 - (y == y2) * ROW:.0f} {x2:.0f} {y2:.0f}"/>'
            )
            width = max(width, x + bend, x2 + bend)
    for row in rows:
        _, y = places[row.dots[0].label]
        dots.append(
            f'<a href="{escape(addresses[row.page])}"><text class="name" x="{NAME - 8}" y="{y + 5:.0f}">'
            f"{escape(row.name)}</text></a>"
        )
        for dot in row.dots:
            x, y = places[dot.label]
            dots.append(
                f'<a href="{escape(addresses[row.page])}#{dot.label}" aria-label="{escape(dot.title)}">'
                f'<title class="nohighlight">{escape(dot.title)}</title>{shape(dot.kind, x, y)}'
                f'<text x="{x:.0f}" y="{y + 5:.0f}">{dot.number}</text></a>'
            )
    about = "Each chapter’s theorems, with lines to those that they rest on; the list below says the same"
    return (
        f'<div class="picture" style="--least: {0.55 * width:.0f}px"><svg xmlns="http://www.w3.org/2000/svg" '
        f'class="drawn rests-map" role="group" aria-label="{about}" width="{width:.0f}" height="{height}" '
        f'viewBox="0 0 {width:.0f} {height}">{"".join(lines)}{"".join(dots)}</svg></div>'
    )


# --- on the page ------------------------------------------------------------------------------------------------------


class theorem_map(nodes.General, nodes.Element):
    """Holds the place of the map until all pages are read."""


class TheoremMap(BookDirective):
    def run(self) -> list[nodes.Node]:
        return [theorem_map(pages=list(self.book.notebooks))]


class DrawMap(SphinxPostTransform):
    default_priority = 1

    def run(self, **options) -> None:
        for place in list(self.document.findall(theorem_map)):
            rows = [self.row(page, found) for page in place["pages"] if (found := self.env.book_blocks[page].theorems)]
            places = [name for row in rows for name in named(chapter(self.app, row.page)).items()]
            known = {label for label, _ in places}
            rests = {label: tuple(other for other in others if other in known) for label, others in places}
            for label in circles(rests):
                logger.warning("%s rests on itself, by way of others", label, location=self.env.docname, type="blocks")
            addresses = {row.page: self.app.builder.get_relative_uri(self.env.docname, row.page) for row in rows}
            picture = nodes.raw("", drawing(rows, rests, addresses), format="html")
            place.replace_self([picture, self.in_words(rows, rests)] if rows else [])

    def in_words(self, rows: list[Row], rests: Mapping[str, Iterable[str]]) -> nodes.bullet_list:
        """What the map shows, as links, for who cannot see or print it."""
        links = {dot.label: (dot.title, row.page) for row in rows for dot in row.dots}
        found = nodes.bullet_list(classes=["rests-list"])
        for label, others in rests.items():
            line = nodes.paragraph()
            for k, other in enumerate((label, *others)):
                title, page = links[other]
                line += [
                    nodes.Text(("", " rests on ", " and on ")[min(k, 2)]),
                    link([nodes.Text(title)], page, f"#{other}"),
                ]
            if others:
                found += nodes.list_item("", line)
        return found

    def row(self, page: str, theorems: list[Block]) -> Row:
        return Row(page, page.rpartition("/")[2].replace("-", " "), tuple(self.dot(page, block) for block in theorems))

    def dot(self, page: str, block: Block) -> Dot:
        whole = number(self.env, page, block)
        title = f"{block.kind.title()} {whole} ({block.title})"
        return Dot(block.label, block.kind, whole.rpartition(".")[2], title)


def setup(app: Sphinx) -> None:
    app.add_directive("theorem-map", TheoremMap)
    app.add_post_transform(DrawMap)
