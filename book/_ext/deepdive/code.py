"""Fold each code cell under a summary line that says what it is: “derivation: 12 lines”.

Cells that are tagged as hidden are closed at first, all others open. code.js shows or hides all of them.
"""

import re
from collections.abc import Mapping

from docutils import nodes
from sphinx.application import Sphinx

from deepdive.page.fold import fold, summary

HIDDEN = {"hide-input", "hide-cell"}
CHECKS = "Checks|at_most|fails|equal|measured|computed|fact"
# What a cell is, by the first of these that is found in it.
KINDS = {
    "records": r"\bchapter\.(settle|close)\(",
    "words held": r"\bheld\(",
    "exercise checkers": r"^def check_",
    "solutions tried": r"^(?!def ).*\bcheck_\w+\(",
    "derivation": r"\b(Derivation|WrittenProof|identity)\(",
    "figure": r"\bfigure\(",
    "check": rf"(?<![.\w])({CHECKS})\(",
}


def kind_of(code: str, metadata: Mapping) -> str:
    """What the code of a cell is: setup, one of KINDS, or just code."""
    if "setup" in metadata.get("tags", ()):
        return "setup"
    if "figure" in metadata.get("mystnb", ()):
        return "figure"
    return next((kind for kind, sign in KINDS.items() if re.search(sign, code, re.MULTILINE)), "code")


def line_of(code: str, metadata: Mapping) -> str:
    """The line under which a cell is folded."""
    lines = len(code.splitlines())
    return f"{kind_of(code, metadata)}: {lines} line{'' if lines == 1 else 's'}"


def fold_cells(app: Sphinx, doctree: nodes.document) -> None:
    """Fold the code of each cell, and of one with the tag hide-cell also what it shows; myst-nb then folds nothing."""
    for cell in list(doctree.findall(nodes.container)):
        if cell.get("nb_element") != "cell_code" or cell[0].get("nb_element") != "cell_code_source":
            continue
        tags = cell["cell_metadata"].get("tags", ())
        inside = cell.children if "hide-cell" in tags else cell.children[:1]
        line = summary("", line_of(cell[0].astext(), cell["cell_metadata"]))
        folded = fold("", line, *inside, classes=["code"], open=HIDDEN.isdisjoint(tags))
        cell.children = [folded, *cell.children[len(inside) :]]
        folded.parent = cell
        cell.attributes.pop("hide_mode", None)


def setup(app: Sphinx) -> None:
    app.connect("doctree-read", fold_cells, priority=900)  # last: others look for what stands in a cell
    app.add_js_file("code.js", loading_method="defer")
