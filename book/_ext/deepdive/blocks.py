"""Theorem, exercise and solution blocks: their permalinks, the pages that list them, and the checks on their form.

    {theorem-list}    every theorem with its statement, chapter by chapter
    {exercise-list}   every exercise with its statement, its checker and its solution

A theorem here is whatever sphinx-proof numbers: also a lemma, a definition and so on. A checker is a function
`check_…`; a chapter has one for each exercise, in the same order.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import docname_join, logging

from deepdive.page.directive import BookDirective
from deepdive.page.links import link

logger = logging.getLogger(__name__)

LEAST = 2  # exercises in a chapter
CHECKER = re.compile(r"^def (check_\w+)\(", re.MULTILINE)
NO_LABEL = re.compile(r"[a-z]+-\d+|.*/.*")  # what sphinx-proof and sphinx-exercise make up
SHARED_IDS = {"proof", "proof-content", "exercise-content", "solution-content"}  # they give these to every block alike


@dataclass(frozen=True)
class Block:
    """A theorem or an exercise; its title is plain text."""

    kind: str
    label: str
    title: str


@dataclass(frozen=True)
class Contents:
    """What a page has of them: the blocks, the labels of the exercises that are solved, the names of the checkers."""

    blocks: tuple[Block, ...]
    solved: tuple[str, ...]
    checkers: tuple[str, ...]

    @property
    def exercises(self) -> list[Block]:
        return [block for block in self.blocks if block.kind == "exercise"]

    @property
    def theorems(self) -> list[Block]:
        return [block for block in self.blocks if block.kind != "exercise"]


def problems(contents: Contents) -> list[str]:
    """What a chapter lacks, one line each."""
    found = []
    for block in contents.blocks:
        if not block.title:
            found.append(f"the {block.kind} {block.label} has no title")
        if "\\" in block.title:
            found.append(f"the title of {block.label} holds a formula, which no search finds: say it in words")
        if NO_LABEL.fullmatch(block.label):
            found.append(f"the {block.kind} “{block.title}” has no label")
    labels = [block.label for block in contents.exercises]
    if len(labels) < LEAST:
        found.append(f"it should have {LEAST} exercises at least, and has {len(labels)}")
    found += [f"the exercise {label} has no solution" for label in labels if label not in contents.solved]
    if len(labels) != len(contents.checkers):
        found.append(f"it has {len(labels)} exercises and {len(contents.checkers)} checkers (functions check_…)")
    return found


# --- reading a page ---------------------------------------------------------------------------------------------------


def kind_of(node: nodes.Element) -> str:
    """theorem, lemma, …; exercise, solution; or nothing."""
    return node.get("realtype") or (node["type"] if node.get("type") in ("exercise", "solution") else "")


def find(tree: nodes.Element) -> Iterator[nodes.Element]:
    return (node for node in tree.findall(nodes.Element) if kind_of(node))


def block_of(node: nodes.Element) -> Block:
    kind, title = kind_of(node), node.children[0]
    if kind == "exercise":
        return Block(kind, node["label"], "".join(child.astext() for child in title.children[1:]))
    return Block(kind, node["label"], title.astext().strip()[1:-1])  # it stands in brackets


def read_contents(doctree: nodes.document) -> Contents:
    found = list(find(doctree))
    code = [cell.astext() for cell in doctree.findall(nodes.container) if cell.get("nb_element") == "cell_code"]
    return Contents(
        blocks=tuple(block_of(node) for node in found if kind_of(node) != "solution"),
        solved=tuple(node["target_label"] for node in found if kind_of(node) == "solution"),
        checkers=tuple(name for text in code for name in CHECKER.findall(text)),
    )


def solution_of(label: str) -> str:
    """The anchor of an exercise's solution."""
    return f"{label}-solution"


def mend_anchors(doctree: nodes.document) -> None:
    """The anchor of a solution does not change with what stands before it, and the checkers get one."""
    for node in find(doctree):
        if kind_of(node) == "solution":
            node["ids"] = [solution_of(node["target_label"])]
    for cell in doctree.findall(nodes.container):
        if cell.get("nb_element") == "cell_code" and CHECKER.search(cell.astext()):
            cell["ids"].append("checkers")
            break


def read_page(app: Sphinx, doctree: nodes.document) -> None:
    mend_anchors(doctree)
    if app.env.docname in app.env.book_records.notebooks:
        app.env.book_blocks[app.env.docname] = contents = read_contents(doctree)
        for problem in problems(contents):
            logger.warning("%s", problem, location=app.env.docname, type="blocks")


# --- titles with permalinks -------------------------------------------------------------------------------------------


class linked_title(nodes.TextElement):
    """The title of a block, with a permalink. It is no `title`, so Sphinx's search does not list it among the headings:
    it is found by its name (`search`)."""


def visit_linked_title(self, node: linked_title) -> None:
    self.visit_title(node)


def depart_linked_title(self, node: linked_title) -> None:
    self.add_permalink_ref(node.parent, f"Link to this {kind_of(node.parent)}")
    self.depart_title(node)


def link_titles(app: Sphinx, doctree: nodes.document, page: str) -> None:
    for block in find(doctree):
        title = block.children[0]
        block.replace(title, linked_title("", "", *title.children, **title.attributes))
    for node in doctree.findall(nodes.Element):
        if not SHARED_IDS.isdisjoint(node.get("ids", ())):  # an anchor stands once on a page
            node["ids"] = []


# --- the pages that list them -----------------------------------------------------------------------------------------


class tally(nodes.General, nodes.Element):
    """Holds the place of a count: how many theorems or exercises (`noun`) stand in how many of these `pages`."""


class listing(nodes.General, nodes.Element):
    """Holds the place of the theorems or exercises (`noun`) of a `page`, until all pages are read."""


class BlockList(BookDirective):
    noun = ""

    def run(self) -> list[nodes.Node]:
        book = self.book
        found = [tally(noun=self.noun, pages=list(book.notebooks))]
        for part in book.parts:
            chapters = [chapter for chapter in book.written(part) if chapter.page in book.notebooks]
            if not chapters:
                continue
            section = self.section(f"part-{nodes.make_id(part.title)}", part.title)
            section += tally(noun=self.noun, pages=[chapter.page for chapter in chapters])
            for chapter in chapters:
                section += self.section(f"chapter-{chapter.name}", chapter.title)
                section[-1] += listing(noun=self.noun, page=chapter.page)
            found.append(section)
        return found

    def section(self, anchor: str, title: str) -> nodes.section:
        return nodes.section("", nodes.title("", "", *self.inline(title)), ids=[anchor], names=[anchor])


class TheoremList(BlockList):
    noun = "theorems"


class ExerciseList(BlockList):
    noun = "exercises"


def chapter(app: Sphinx, page: str) -> nodes.document:
    """A chapter as it was read; several pages list what it has, and to load it takes time."""
    if page not in app.book_chapters:
        app.book_chapters[page] = app.env.get_doctree(page)
    return app.book_chapters[page]


class FillLists(SphinxPostTransform):
    """Put the blocks of the chapters where a list wants them."""

    default_priority = 1  # before anything resolves the references in what is copied

    def run(self, **options) -> None:
        for place in list(self.document.findall(tally)):
            counts = [len(getattr(self.env.book_blocks[page], place["noun"])) for page in place["pages"]]
            text = f"{sum(counts)} {place['noun']} in {sum(map(bool, counts))} chapters"
            place.replace_self(nodes.paragraph("", text, classes=["muted"]))
        for place in list(self.document.findall(listing)):
            doctree = chapter(self.app, place["page"])
            entries = list(self.entries(doctree, place)) or [nodes.paragraph("", f"It has no {place['noun']}.")]
            place.replace_self([self.head(doctree, place), *entries])

    def head(self, doctree: nodes.document, place: listing) -> nodes.paragraph:
        """A link to the chapter; with exercises, also what it needs, as its box says it."""
        line = nodes.paragraph("", "", link([nodes.Text("Read the chapter")], place["page"]))
        if place["noun"] == "exercises":
            for item in doctree.findall(nodes.list_item):
                if item.astext().startswith("You need"):
                    line += [nodes.Text(" · "), *self.copies(item.children[0])]
        return line

    def entries(self, doctree: nodes.document, place: listing) -> Iterator[nodes.Node]:
        page, contents = place["page"], self.env.book_blocks[place["page"]]
        boxes = {node["label"]: node for node in find(doctree)}
        checkers = iter(contents.checkers)
        for block in getattr(contents, place["noun"]):
            title = f"{block.kind.title()} {number(self.env, page, block)} ({block.title})"
            head = nodes.paragraph("", "", link([nodes.Text(title)], page, f"#{block.label}"))
            head["classes"].append("admonition-title")
            statement = self.copies(boxes[block.label].children[-1])
            if place["noun"] == "theorems":
                yield nodes.admonition("", head, *statement, classes=["proof", block.kind])
            else:
                checker = link([nodes.literal("", next(checkers, "?"))], page, "#checkers")
                solution = link([nodes.Text("solution")], page, f"#{solution_of(block.label)}")
                aids = nodes.paragraph("", "", checker, nodes.Text(" checks it · "), solution)
                yield nodes.admonition("", head, *statement, aids, classes=["exercise"])

    def copies(self, box: nodes.Element) -> list[nodes.Node]:
        """What stands in a box, to be shown on this page: without anchors and numbers, with links that start here."""
        found = [child.deepcopy() for child in box.children]
        for node in (node for child in found for node in child.findall(nodes.Element)):
            node["ids"], node["names"] = [], []
            if isinstance(node, addnodes.pending_xref):
                if node["reftype"] == "doc":
                    node["reftarget"] = "/" + docname_join(node["refdoc"], node["reftarget"])
                node["refdoc"] = self.env.docname
            if isinstance(node, nodes.math_block):
                node["label"] = node["number"] = None
        return found


def number(env, page: str, block: Block) -> str:
    """The number of a block, as its title shows it."""
    return ".".join(map(str, env.toc_fignumbers[page][block.kind][block.label]))


def start(app: Sphinx) -> None:
    app.book_chapters = {}
    app.env.book_blocks = {}


def setup(app: Sphinx) -> None:
    visitors = (visit_linked_title, depart_linked_title)
    app.add_node(linked_title, html=visitors, singlehtml=visitors)
    app.add_directive("theorem-list", TheoremList)
    app.add_directive("exercise-list", ExerciseList)
    app.add_post_transform(FillLists)
    app.connect("builder-inited", start)
    app.connect("doctree-read", read_page)
    app.connect("doctree-resolved", link_titles)
