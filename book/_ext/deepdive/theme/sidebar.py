"""The sidebar lists the pages of the book: it is made once, and each page gets it with its own place marked.

Sphinx and the theme would make it anew for each page, which was a fifth of a build.
"""

import re
from posixpath import dirname, relpath

from bs4 import BeautifulSoup
from docutils import nodes
from pydata_sphinx_theme.toctree import add_collapse_checkboxes
from sphinx.application import Sphinx
from sphinx.builders import Builder
from sphinx.environment.adapters.toctree import global_toctree_for_doc

from deepdive.metadata.site import NOT_FOUND

LINK = re.compile(r'href="([^"#:]+)"')
AROUND = re.compile(r"<(/?)(?:ul|li|details)\b[^>]*>")  # what an entry stands in


def of_book(app: Sphinx, builder: Builder) -> None:
    """Make the sidebar as the theme does, for a page at the root that is not in it."""
    if builder.format != "html":
        return
    tree = global_toctree_for_doc(app.env, "", builder, titles_only=True, collapse=False, includehidden=True)
    soup = BeautifulSoup(builder.render_partial(tree)["fragment"], "html.parser")
    for entries in soup("ul", recursive=False):
        entries["class"] = ["nav", "bd-sidenav"]
    add_collapse_checkboxes(soup)
    app.sidebar = str(soup)


def of_page(sidebar: str, page: str) -> str:
    """The sidebar of a page: with links that start there, and open where the page stands, which is marked."""
    before, entry, after = sidebar.partition(f'<a class="reference internal" href="{page}.html">')
    if entry:
        around: list[re.Match[str]] = []
        for tag in AROUND.finditer(before):
            around.pop() if tag[1] else around.append(tag)
        for tag in reversed(around):
            before = before[: tag.start()] + current(tag[0]) + before[tag.end() :]
        sidebar = f'{before}<a class="current reference internal" href="#">' + re.sub(
            r"\A(.*?</a>)<details>", r'\1<details open="open">', after
        )
    return LINK.sub(lambda link: f'href="{relpath(link[1], dirname(page) or ".")}"', sidebar)


def current(tag: str) -> str:
    """The start of an element with the marks of the page that is read."""
    tag = tag.replace("<details>", '<details open="open">').replace("<ul>", '<ul class="current">')
    return re.sub(r"toctree-l\d", r"\g<0> current active", tag).replace('"nav bd', '"current nav bd')


def add(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None) -> None:
    if pagename == NOT_FOUND:  # it is shown at any address, and says all others in full
        context["book_sidebar"] = LINK.sub(rf'href="{app.config.notfound_urls_prefix}\1"', app.sidebar)
    else:
        context["book_sidebar"] = of_page(app.sidebar, pagename)


def setup(app: Sphinx) -> None:
    app.connect("write-started", of_book)
    app.connect("html-page-context", add, priority=100)  # before the theme looks what its templates give
