"""Metadata in a page's HTML head: description and icon; with a public address, Open Graph and schema.org data too.

Where the book has a public address (site), also what sites show of a page that somebody shares, by sphinxext-opengraph,
and what the book and its chapters are, in the words of schema.org.
"""

import json
from html import escape
from pathlib import Path
from posixpath import join

from docutils import nodes
from sphinx.application import Sphinx

from deepdive.metadata import preview_image
from deepdive.metadata.description import describe
from deepdive.theme import citation

ICON = "_static/touch-icon.png"
COVER, COVER_ALT = "book/_static/cover.svg", "A figure of the book."
CARDS = "_static/cards"
LICENSE = "https://creativecommons.org/licenses/by/4.0/"


def add_to_head(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None) -> None:
    tags = [f'<link rel="apple-touch-icon" href="{context["pathto"](ICON, True)}" />']
    about = describe(doctree) if doctree else ""
    if about:
        tags.append(f'<meta name="description" content="{escape(about)}" />')
    if doctree and app.config.html_baseurl:
        shared(app, pagename, context, about)
        if facts := facts_of(app, pagename, about):
            data = json.dumps(facts, ensure_ascii=False).replace("<", r"\u003c")
            tags.append(f'<script type="application/ld+json">{data}</script>')
    context["metatags"] = context.get("metatags", "") + "".join(f"\n    {tag}" for tag in tags) + "\n"


def shared(app: Sphinx, page: str, context: dict, about: str) -> None:
    """Say what sphinxext-opengraph is to write; the page may say it itself, in its front matter."""
    chapter = app.env.book_records.pages.get(page)
    figure = figure_of(app, page)
    name = chapter.name if chapter and figure else "cover"
    own = {
        "og:title": app.env.titles[page].astext(),
        "og:type": "article" if chapter else "website",
        "og:description": about,
        "og:image:alt": figure.alt if figure else COVER_ALT,
    }
    context["meta"] = {key: escape(value) for key, value in own.items()} | (context["meta"] or {})
    context["meta"].setdefault("og:image", f"{CARDS}/{name}.png")


def figure_of(app: Sphinx, page: str) -> preview_image.Figure | None:
    chapter = app.env.book_records.notebooks.get(page)
    return preview_image.first_plot(Path(app.srcdir, chapter.file)) if chapter else None


def facts_of(app: Sphinx, page: str, about: str) -> dict | None:
    """What the page is, for schema.org: the book, one of its chapters, or nothing of its own."""
    base, book = app.config.html_baseurl, app.env.outward_citation
    chapter = app.env.book_records.pages.get(page)
    if page != app.config.root_doc and chapter is None:
        return None
    whole = {"@type": "Book", "name": book.title, "url": join(base, app.builder.get_target_uri(app.config.root_doc))}
    if chapter is None:
        authors = [{"@type": "Organization", "name": name} for name in book.authors]
        about_book = {"author": authors, "inLanguage": app.config.language, "isAccessibleForFree": True}
        facts = whole | about_book | {"license": LICENSE, "bookEdition": book.version, "description": about}
    else:
        address = join(base, app.builder.get_target_uri(page))
        title = app.env.titles[page].astext()
        facts = {"@type": "Chapter", "name": title, "url": address, "description": about, "isPartOf": whole}
    return {"@context": "https://schema.org"} | facts


def write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def start(app: Sphinx) -> None:
    app.env.outward_citation = citation.read(Path(app.srcdir, "CITATION.cff"), app.config.copyright)


def draw(app: Sphinx, exception: Exception | None) -> None:
    """Draw the icon, which all pages share, and the cards."""
    if exception is None and app.builder.name == "html":
        icon = Path(app.srcdir, app.config.html_favicon).read_text(encoding="utf-8")
        write(Path(app.outdir, ICON), preview_image.icon(icon))
        if app.config.html_baseurl:
            cover = Path(app.srcdir, COVER).read_text(encoding="utf-8")
            write(Path(app.outdir, CARDS, "cover.png"), preview_image.card(cover))
            for page, chapter in app.env.book_records.pages.items():
                if figure := figure_of(app, page):
                    write(Path(app.outdir, CARDS, f"{chapter.name}.png"), preview_image.card(figure.svg))


def setup(app: Sphinx) -> None:
    app.connect("builder-inited", start)
    app.connect("html-page-context", add_to_head, priority=450)  # notfound has come, opengraph has not
    app.connect("build-finished", draw)
