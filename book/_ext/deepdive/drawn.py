"""Drawings: SVGs of `smalltorch.diagram` stand within the page, not beside it as a file, and so take on its colours.

A file of its own has no colours of the page's theme, and no text that can be found or read aloud.
"""

from __future__ import annotations

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx


def put_in(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Replace every image that is such a drawing by the drawing itself."""
    if app.builder.format != "html":
        return
    for image in list(doctree.findall(nodes.image)):
        file = Path(app.srcdir) / image["uri"]
        if file.suffix == ".svg" and file.is_file():
            svg = file.read_text(encoding="utf-8")
            if svg.startswith("<svg") and 'class="drawn"' in svg.partition(">")[0]:
                image.replace_self(nodes.raw("", svg, format="html"))


def setup(app: Sphinx) -> None:
    app.connect("doctree-resolved", put_in)
