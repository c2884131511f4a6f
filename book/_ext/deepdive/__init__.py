"""The book's Sphinx extension: what its pages show beyond what Sphinx and its themes do.

    book                             parts, chapters, claims and systems as plain data; it knows nothing of Sphinx
    page                             what the pages share: their directives, tables, folds, filters, links, verdicts,
                                     and when a generated one is read again
    ledger  systems  parts  blocks   the pages that are generated: claims, mechanisms, parts, theorems and exercises,
    glossary                         and terms
    essay                            chapters of prose, with their verdicts
    proof  rests                     proofs that begin with a list; the map of what rests on what
    code                             the code of the chapters, folded
    formulas                         formulas, typeset
    moved                            old addresses, which lead on
    search                           what is found by name
    library                          the library's page, from its docstrings
    drawn  explore  takeaway         drawings within the page, figures that move; links to the PDF and the archive
    theme                            what stands around a page: options, buttons, how to cite
    outward                          what others see of the book: descriptions, cards, the sitemap, the public address
    finish                           the last hand on each page

Importing the package imports none of them.
"""

from __future__ import annotations

from importlib import import_module

ROOMS = (
    "page.again",
    "page.directive",
    "page.tables",
    "page.fold",
    "page.filters",
    "page.links",
    "ledger",
    "essay",
    "systems",
    "parts",
    "blocks",
    "rests",
    "proof",
    "code",
    "formulas",
    "glossary",
    "moved",
    "search",
    "library.page",
    "theme.surroundings",
    "theme.sidebar",
    "theme.buttons",
    "drawn",
    "explore",
    "takeaway",
    "outward.site",
    "outward.head",
    "finish",
)


def setup(app) -> dict:
    """Set up every room, those first on which others build."""
    for room in ROOMS:
        import_module(f"deepdive.{room}").setup(app)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
