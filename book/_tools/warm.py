"""A build that begins from the one before: it reads and writes again only the pages that have changed.

Sphinx remembers each page that it has read. What it cannot know is whether a page shows others something else now: its
title, a number, a label that they refer to. So everything that others can see of a page is its surface, and where the
surface of one changes, or a page comes or goes, the book is built anew (`Stale`).
"""

from __future__ import annotations

from collections.abc import Collection
from hashlib import sha256
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.environment.collectors.toctree import TocTreeCollector
from sphinx.errors import SphinxError
from sphinx.ext import viewcode

SHOWN = ("ids", "names", "label", "number", "entries")  # the last are of the index, or of a list of pages
TITLES = nodes.title | nodes.caption | nodes.term


class Stale(SphinxError):
    """Pages that have not changed would have to be written otherwise than they are."""


def surface(doctree: nodes.document) -> str:
    """A digest of what other pages can see of a page: names and titles, in the order by which things are numbered."""
    seen: list[object] = []
    for node in doctree.findall(nodes.Element):
        if shown := [(key, node[key]) for key in SHOWN if node.get(key)]:
            seen.append((node.tagname, shown))
        if isinstance(node, TITLES):
            seen.append(node.pformat())
    return sha256(repr(seen).encode()).hexdigest()


def watch(app: Sphinx, changed: Collection[str] | None) -> None:
    """Let a build note the surfaces of pages and, where it begins from another, read the pages again that `changed`.

    The build ends with Stale where this does not suffice.
    """
    app.env.book_surfaces = getattr(app.env, "book_surfaces", {})
    before, numbers = dict(app.env.book_surfaces), dict(app.env.toc_fignumbers)

    def note(app: Sphinx, doctree: nodes.document) -> None:
        app.env.book_surfaces[app.env.docname] = surface(doctree)

    def outdated(app: Sphinx, env: BuildEnvironment, added: set[str], read: set[str], removed: set[str]) -> set[str]:
        pages = {env.path2doc(path) for path in changed}
        if added or removed or not pages <= env.found_docs:
            raise Stale("pages have come or gone")
        return pages | {page for page, files in env.dependencies.items() if not files.isdisjoint(changed)}

    def compare(app: Sphinx, env: BuildEnvironment) -> None:
        if env.book_surfaces != before:
            raise Stale("a page shows others something else")

    def keep_numbers(env: BuildEnvironment) -> list[str]:
        env.toc_fignumbers = numbers  # to find them again, Sphinx would load every page
        return []

    app.connect("doctree-read", note, priority=1000)  # when all that changes a page has run
    if changed is not None:
        app.connect("env-get-outdated", outdated)
        app.connect("env-updated", compare)
        app.connect("html-collect-pages", tidy)
        app.config.sitemap_excludes = ["*"]  # the last one stays: a new one would list the pages that are written now
        for listener in app.events.listeners["env-get-updated"]:
            if isinstance(collector := getattr(listener.handler, "__self__", None), TocTreeCollector):
                collector.assign_figure_numbers = keep_numbers
        # The pages of source follow from the library and from surfaces, and there are many of them.
        pages = app.events.listeners["html-collect-pages"]
        pages[:] = [listener for listener in pages if listener.handler is not viewcode.collect_pages]


def tidy(app: Sphinx) -> list[tuple]:
    """Remove what only the pages had that are written now: words of the search, and pictures. It collects no page."""
    for words in (app.builder.indexer._mapping, app.builder.indexer._title_mapping):
        for word in [word for word, pages in words.items() if not pages]:
            del words[word]
    pictures = {name for _, name in app.env.images.values()}
    for file in Path(app.outdir).glob("_images/*"):
        if file.name not in pictures:
            file.unlink()
    return []


def entries(app: Sphinx) -> dict[str, list]:
    """What the search has of the index, page by page: the next build cannot load it with all else that is searched."""
    return app.env._search_index_index_entries


def put_back(app: Sphinx, entries: dict[str, list]) -> None:
    app.env._search_index_index_entries = {page: [tuple(entry) for entry in found] for page, found in entries.items()}
