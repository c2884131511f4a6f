"""Links to the book as a PDF and as an archive, where these files were made (`make takeaway`).

{takeaway}   a list of the files that stand in the folder of the HTML book; where there is none, nothing
"""

from __future__ import annotations

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

NAME = "deep-dive-into-the-transformer"
PDF, ARCHIVE = f"{NAME}.pdf", f"{NAME}.zip"
WORDS = {
    PDF: "The whole book as a PDF",
    ARCHIVE: "These pages to read offline, as an archive: unpack it and open index.html",
}


class takeaway(nodes.General, nodes.Element):
    """Stands for the links until the page is written: the files are made from the other pages."""


class Takeaway(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        return [takeaway()]


def megabytes(file: Path) -> str:
    return f"{max(file.stat().st_size / 1e6, 0.1):.1f} MB"


def visit_takeaway(self, node: takeaway) -> None:
    folder = Path(self.builder.outdir)
    root = "../" * self.builder.current_docname.count("/")
    links = [
        f'<li><a class="reference download" href="{root}{name}">{words}</a> ({name.rpartition(".")[2].upper()}, '
        f"{megabytes(folder / name)})</li>"
        for name, words in WORDS.items()
        if (folder / name).exists()
    ]
    if links:
        self.body.append('<ul class="takeaway">\n' + "\n".join(links) + "\n</ul>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    app.add_node(takeaway, html=(visit_takeaway, None))
    app.add_directive("takeaway", Takeaway)
