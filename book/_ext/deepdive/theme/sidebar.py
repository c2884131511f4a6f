"""The sidebar lists the pages of the book, and Sphinx is to look at no more than these when it makes it.

For the sidebar of each page it would copy every heading of every page, to drop all but the titles: a third of a build,
and more than that in a longer book. Here the headings are dropped once.
"""

from __future__ import annotations

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.builders import Builder
from sphinx.environment import BuildEnvironment
from sphinx.environment.adapters.toctree import global_toctree_for_doc


class TitlesOnly:
    """The environment, but in its tables of contents there are no headings below a page's title."""

    def __init__(self, env: BuildEnvironment):
        self._env = env
        self.master_doctree = env.master_doctree  # which would be read again for each page
        self.tocs = {page: without_headings(toc) for page, toc in env.tocs.items()}

    def __getattr__(self, name: str) -> object:
        return getattr(self._env, name)


def without_headings(toc: nodes.bullet_list) -> nodes.bullet_list:
    """The table of contents of a page: its title, and the lists of pages below it."""
    toc = toc.deepcopy()
    for title in toc.children:
        if len(title) > 1:
            title[1][:] = list(title.findall(addnodes.toctree))
            if not title[1].children:
                title.pop(1)
    return toc


def prepare(app: Sphinx, builder: Builder) -> None:
    app.titles_only = TitlesOnly(app.env)


def set_toctree(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None) -> None:
    every = context["toctree"]

    def toctree(titles_only: bool = False, **options) -> str:
        if not titles_only:
            return every(**options)
        tree = global_toctree_for_doc(app.titles_only, pagename, app.builder, titles_only=True, **options)
        return app.builder.render_partial(tree)["fragment"]

    context["toctree"] = toctree


def setup(app: Sphinx) -> None:
    app.connect("write-started", prepare)
    app.connect("html-page-context", set_toctree, priority=100)  # before the theme makes its sidebar from it
