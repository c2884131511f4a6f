"""How pages display verdicts and how many there are of each."""

from docutils import nodes

from deepdive.page.filters import chosen
from deepdive.page.links import link

WORDS = {"true if": "true if …"}


def mark(kind: str, *text: nodes.Node) -> nodes.inline:
    """A verdict: its word, or the text given, and a sign before it that the style sheet draws."""
    words = text or (nodes.Text(WORDS.get(kind, kind)),)
    return nodes.inline("", "", *words, classes=["verdict", "verdict-" + kind.replace(" ", "-")])


def sentence(counts: dict[str, int], part: str = "") -> nodes.paragraph:
    """“3 true · 1 false”: the counts that are not zero, of a part with links to its claims."""
    line = nodes.paragraph(classes=["muted"])
    for kind, count in counts.items():
        if count:
            if line.children:
                line += nodes.Text(" · ")
            words = mark(kind, nodes.Text(f"{count} {WORDS.get(kind, kind)}"))
            line += link([words], "book/ledger", chosen(part=part, verdict=kind)) if part else words
    return line if line.children else nodes.paragraph("", "no claims", classes=["muted"])
