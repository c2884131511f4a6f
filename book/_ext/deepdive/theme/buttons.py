"""The buttons in each page's header: download the notebook, open it on Colab, cite. None needs a script."""

from dataclasses import replace
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

from deepdive.theme import citation

GITHUB = "https://github.com/"
COLAB = "https://colab.research.google.com/github/"
EDITIONS = "notebooks"  # a branch


def read_citation(app: Sphinx) -> None:
    cited = citation.read(Path(app.srcdir) / "CITATION.cff", app.config.copyright)
    app.env.book_citation = replace(cited, url=app.config.public_address)


def add_buttons(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None) -> None:
    """Tell the templates how to cite the page and, for a chapter, where its notebook is."""
    cited, key, notebook, colab = app.env.book_citation, citation.KEY, "", ""
    if chapter := app.env.book_records.pages.get(pagename):
        address = address_of(app, chapter.file)
        cited = replace(cited, chapter=app.env.titles[pagename].astext(), url=address)
        key += f"-{chapter.name}"
        if pagename in app.env.book_records.notebooks:
            notebook = f"{pagename}.ipynb"  # the reader's edition
            colab = colab_of(app, pagename)
    context |= {
        "notebook": notebook,
        "colab": colab,
        "citation_text": cited.text(),
        "citation_bibtex": cited.bibtex(key),
    }


def colab_of(app: Sphinx, page: str) -> str:
    """Where Colab opens the reader's edition of a chapter: on the branch that holds the editions (docs/release.md)."""
    address = app.config.public_address
    edition = f"{address}/blob/{EDITIONS}/{page.removeprefix('notebooks/')}.ipynb"
    return edition.replace(GITHUB, COLAB) if address.startswith(GITHUB) else ""


def address_of(app: Sphinx, file: str) -> str:
    """The public address of a chapter: that of its file on GitHub, elsewhere that of the book."""
    address = app.config.public_address
    return f"{address}/blob/{app.config.public_branch}/{file}" if address.startswith(GITHUB) else address


def setup(app: Sphinx) -> None:
    app.connect("builder-inited", read_citation)
    app.connect("html-page-context", add_buttons)
