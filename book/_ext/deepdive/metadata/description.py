"""The description of a page, taken from its first sentences: for search results and link previews."""

import textwrap
from collections.abc import Iterator

from docutils import nodes

from deepdive.metadata.plain import plain

IN_SHORT = "In short. "  # how a chapter begins
LEAST, MOST = 80, 320  # letters: another sentence is added below the one, and none goes beyond the other
UNSAID = "\0"  # stands for what has no words


def text_of(node: nodes.Node) -> str:
    """The text of a paragraph without its markup."""
    if isinstance(node, nodes.math):
        said = plain(node.astext())
        return UNSAID if said is None else said
    if isinstance(node, nodes.Text):
        return str(node)
    if isinstance(node, nodes.raw | nodes.image | nodes.footnote_reference):
        return ""
    return "".join(map(text_of, node.children))


def sentences(doctree: nodes.document) -> Iterator[str]:
    """The sentences of the page's paragraphs that can be said without markup. Each stands on a line (`make lint`)."""
    for paragraph in doctree.findall(nodes.paragraph):
        if isinstance(paragraph.parent, nodes.section | nodes.document):
            for line in text_of(paragraph).splitlines():
                sentence = " ".join(line.removeprefix(IN_SHORT).split())
                if sentence and UNSAID not in sentence:
                    yield sentence


def describe(doctree: nodes.document) -> str:
    """The first sentence of a page and, where that is a short one, those after it."""
    said = ""
    for sentence in sentences(doctree):
        if len(said) < LEAST:
            said = f"{said} {sentence}".lstrip()
    return textwrap.shorten(said, MOST, placeholder=" …")
