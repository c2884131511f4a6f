"""Links to the PDF and the offline archive, if they have been built (`make takeaway`).

{takeaway}   the place of the links to them; it is filled in when the files are made, from the pages that were built
"""

import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from smalltorch.files import write_text

NAME = "deep-dive-into-the-transformer"
PDF, ARCHIVE = f"{NAME}.pdf", f"{NAME}.zip"
WORDS = {
    PDF: "The whole book as a PDF",
    ARCHIVE: "These pages to read offline, as an archive: unpack it and open index.html",
}
PLACE = '<div class="takeaway">{}</div>'
FILLED = re.compile(PLACE.format(".*?"), re.DOTALL)


class Takeaway(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        return [nodes.raw("", PLACE.format(""), format="html")]


def megabytes(file: Path) -> str:
    return f"{max(file.stat().st_size / 1e6, 0.1):.1f} MB"


def fill(html: Path, page: str) -> None:
    """Link on a built page the files that stand in the folder of the HTML book."""
    root = "../" * page.count("/")
    links = [
        f'<li><a class="reference download" href="{root}{name}">{words}</a> ({name.rpartition(".")[2].upper()}, '
        f"{megabytes(html / name)})</li>"
        for name, words in WORDS.items()
        if (html / name).exists()
    ]
    listed = "<ul>\n" + "\n".join(links) + "\n</ul>" if links else ""
    file = html / f"{page}.html"
    write_text(file, FILLED.sub(PLACE.format(listed), file.read_text(encoding="utf-8")))


def setup(app: Sphinx) -> None:
    app.add_directive("takeaway", Takeaway)
