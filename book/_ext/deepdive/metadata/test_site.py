"""A small book with and without a public address: what its pages say of where they stand, and what stands there."""

import json
import re
from html import unescape

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output
from sphinx.errors import ConfigError

import pages
from deepdive.metadata import site
from small_build import notebook, small_build

ADDRESS = "https://reader.example/deep/"
HEAD = '<svg class="plot" xmlns="http://www.w3.org/2000/svg" width="16" height="16" viewBox="0 0 16 16">'
SVG = HEAD + '<rect width="16" height="16" fill="#0000ff"/></svg>'
SENTENCE = 'Attention is an average, `"<&lt;"` is text, and no average of $n$ values is larger than all & each of them.'
CELLS = [
    new_markdown_cell(f"# Sinks & sources\n\n**In short.** {SENTENCE}"),
    new_code_cell(
        "1",
        metadata={"mystnb": {"image": {"alt": 'A "square"'}}},
        outputs=[new_output("display_data", {"image/svg+xml": SVG})],
    ),
]
PARTS = """\
root: index
before: []
parts:
- {title: One, folder: one, chapters: [sinks]}
after: []
moved: {old: index}
"""
FILES = {
    "book/parts.yml": PARTS,
    "index.md": f"# Book\n\n{SENTENCE}\n\n```{{toctree}}\nbook/parts/one\nnotebooks/one/sinks\n```\n",
    "book/parts/one.md": f"# One\n\n{SENTENCE}\n",
    "notebooks/one/sinks.ipynb": notebook(*CELLS),
    "book/_static/favicon.svg": SVG,
    "book/_static/cover.svg": SVG,
    "CITATION.cff": "authors: [{name: We}]\ntitle: A book\nversion: 1.0\n",
}
CHAPTER = "notebooks/one/sinks.html"
SAID = 'Attention is an average, "<&lt;" is text, and no average of n values is larger than all & each of them.'
ROOMS = ["moved", "metadata.site", "metadata.head"]
SETTINGS = {"html_favicon": "book/_static/favicon.svg", "html_title": "The book"}


def build(folder, address, **more):
    settings = SETTINGS | {"html_baseurl": address} | more
    assert small_build(folder, FILES, ROOMS, unsaid=["ledger"], settings=settings) == ""
    return folder / "html"


@pytest.fixture(scope="module")
def nowhere(tmp_path_factory):
    """The folder of the book built without an address."""
    return build(tmp_path_factory.mktemp("book"), "")


@pytest.fixture(scope="module")
def html(tmp_path_factory):
    """The folder of the book built with an address, of which the last slash was forgotten."""
    return build(tmp_path_factory.mktemp("book"), ADDRESS.removesuffix("/"))


def tags(html):
    """What the meta tags of a page say, and where its links of each kind lead."""
    found = re.findall(r'<meta (?:name|property)="([^"]+)" content="([^"]*)"', html)
    links = re.findall(r'<link rel="([^"]+)" href="([^"]*)"', html)
    return {name: unescape(value) for name, value in found} | dict(links)


def facts(html):
    found = re.search(r'<script type="application/ld\+json">(.*?)</script>', html)
    return found and json.loads(found[1])


def read(html, name):
    return (html / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["index.html", CHAPTER, "book/parts/one.html"])
@pytest.mark.parametrize("built", ["nowhere", "html"])
def test_every_page_says_what_it_is_about_and_has_an_icon(request, built, name):
    folder = request.getfixturevalue(built)
    said = tags(read(folder, name))
    assert said["description"] == SAID
    assert ((folder / name).parent / said["apple-touch-icon"]).read_bytes()[1:4] == b"PNG"
    assert "description" not in tags(read(folder, "search.html"))


def test_without_an_address_no_page_says_where_it_stands(nowhere):
    for page in nowhere.rglob("*.html"):
        assert not re.search(r'rel="canonical"|property="og:|twitter|ld\+json', page.read_text(encoding="utf-8"))
    assert not any((nowhere / name).exists() for name in ("sitemap.xml", "robots.txt", "404.html", "_static/cards"))


@pytest.mark.parametrize(
    ("name", "card", "alt", "title"),
    [(CHAPTER, "sinks", 'A "square"', "Sinks & sources"), ("index.html", "cover", "A figure of the book.", "Book")],
)
def test_with_an_address_a_page_says_where_it_and_its_card_are(html, name, card, alt, title):
    said = tags(read(html, name))
    assert said["canonical"] == said["og:url"] == f"{ADDRESS}{name}"
    assert said["og:image"] == f"{ADDRESS}_static/cards/{card}.png" and said["og:image:alt"] == alt
    assert (html / f"_static/cards/{card}.png").exists() and said["twitter:card"] == "summary_large_image"
    assert (said["og:title"], said["og:description"], said["og:site_name"]) == (title, SAID, "The book")


def test_the_book_and_its_chapters_are_named_for_machines(html):
    whole, chapter = facts(read(html, "index.html")), facts(read(html, CHAPTER))
    assert (whole["@type"], whole["name"], whole["url"]) == ("Book", "A book", f"{ADDRESS}index.html")
    assert whole["author"] == [{"@type": "Organization", "name": "We"}] and whole["description"] == SAID
    assert (chapter["@type"], chapter["name"]) == ("Chapter", "Sinks & sources")
    assert chapter["isPartOf"].items() <= whole.items() and chapter["url"] == f"{ADDRESS}{CHAPTER}"
    assert facts(read(html, "book/parts/one.html")) is None


def test_the_sitemap_lists_the_pages_and_neither_stubs_nor_what_searches(html):
    listed = re.findall("<loc>(.*?)</loc>", read(html, "sitemap.xml"))
    assert sorted(listed) == [f"{ADDRESS}{name}" for name in ("book/parts/one.html", "index.html", CHAPTER)]
    assert (html / "old.html").exists()
    assert f"Sitemap: {ADDRESS}sitemap.xml" in read(html, "robots.txt").splitlines()


def test_the_page_for_dead_links_works_at_any_address(html):
    text = read(html, "404.html")
    found = [place for place in re.findall(r'(?:href|src)="([^"#]+)"', text) if "://" not in place]
    assert "/deep/" in found and all(place.startswith("/deep/") for place in found)
    assert 'rel="canonical"' not in text and "og:url" not in text
    assert not [problem for problem in pages.problems(html)[0] if problem.startswith("404.html: /")]


@pytest.mark.parametrize("address", ["reader.example/deep", "/deep/", "https://", "https://reader.example/?page=1"])
def test_what_is_no_address_is_refused(address):
    with pytest.raises(ConfigError, match="html: baseurl: expected an address"):
        site.normal(address)
