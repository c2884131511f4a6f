"""The book's Sphinx extension: directives, page components and checks beyond what Sphinx and its themes provide.

    book                             parts, chapters, claims and systems as plain data; it knows nothing of Sphinx
    page                             what the pages share: their directives, tables, folds, filters, links, verdicts
    claims  systems  parts  blocks   the pages that are generated: claims, mechanisms, parts, theorems and exercises,
    glossary                         and terms
    essay                            chapters of prose, with their verdicts
    proof  theorem_graph             proofs that begin with a list; the map of what rests on what
    code  first_screen               the code of the chapters, folded; what a chapter opens with
    formulas                         formulas, typeset
    moved                            old addresses, which lead on
    search_index                     what is found by name
    library                          the library's page, from its docstrings
    inline_svg  explore  takeaway    drawings within the page, figures that move; links to the PDF and the archive
    theme                            what stands around a page: options, buttons, how to cite
    metadata                         what others see of the book: descriptions, cards, the sitemap, the public address
    reader                           the notebooks that readers open
    postprocess                      the last changes of each page, when all are written

Importing the package imports none of them.
"""

from importlib import import_module

ROOMS = (
    "page.directive",
    "page.tables",
    "page.fold",
    "page.filters",
    "page.links",
    "claims",
    "essay",
    "systems",
    "parts",
    "blocks",
    "theorem_graph",
    "proof",
    "code",
    "first_screen",
    "formulas",
    "glossary",
    "moved",
    "search_index",
    "library.page",
    "theme.surroundings",
    "theme.sidebar",
    "theme.buttons",
    "inline_svg",
    "explore",
    "takeaway",
    "metadata.site",
    "metadata.head",
    "reader.write",
    "postprocess",
)


def setup(app) -> dict:
    """Set up every room, those first on which others build."""
    for room in ROOMS:
        import_module(f"deepdive.{room}").setup(app)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
