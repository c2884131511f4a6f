"""The site's public address, and the files for its root: sitemap, robots.txt and the 404 page.

The address is `baseurl` under `html` in `_config.yml`. While it is empty there is none of these, and no page says where
it stands: all of it would be false.
"""

from pathlib import Path
from urllib.parse import urlsplit

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ConfigError

from smalltorch.files import write_text

EXTENSIONS = ("sphinxext.opengraph", "sphinx_sitemap", "notfound.extension")
NOT_FOUND = "404"
ONLINE = (f"{NOT_FOUND}.html", "robots.txt", "sitemap.xml", "_static/cards/*")  # of no use in a folder
NOT_LISTED = [f"{NOT_FOUND}.html", "search.html", "genindex.html", "_modules/*"]
ROBOTS = "User-agent: *\nDisallow:\n\nSitemap: {}sitemap.xml\n"
LARGE_CARD = '<meta name="twitter:card" content="summary_large_image" />'
BODY = """\
<h1>There is no such page</h1>
<p>The address may have been mistyped, or it is of a page that has gone.
The <a href="{first}">first page</a> leads to every chapter, and the <a href="{search}">search</a> finds words and
names.</p>
"""


def normal(address: str) -> str:
    """The address with a slash at its end; none stays none."""
    parts = urlsplit(address)
    if address and (parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment):
        raise ConfigError(f"html: baseurl: expected an address such as https://host/folder/ or none, got {address!r}")
    return f"{address.rstrip('/')}/" if address else ""


def set_address(app: Sphinx, config: Config) -> None:
    """Hand the address to the extensions."""
    config.html_baseurl = address = normal(config.html_baseurl)
    if not address:
        return
    prefix = urlsplit(address).path
    config.ogp_site_url = address
    config.ogp_site_name = config.html_title
    config.ogp_custom_meta_tags = (LARGE_CARD,)
    config.sitemap_url_scheme = "{link}"
    config.sitemap_excludes = NOT_LISTED
    config.notfound_pagename = NOT_FOUND
    config.notfound_urls_prefix = prefix
    body = BODY.format(first=prefix, search=f"{prefix}search.html")
    config.notfound_context = {"title": "There is no such page", "body": body}


def stand_nowhere(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: object) -> None:
    """The page for dead links is shown at any address, and has none of its own."""
    if pagename == NOT_FOUND:
        context["pageurl"] = None


def write_robots(app: Sphinx, exception: Exception | None) -> None:
    if exception is None and app.config.html_baseurl and app.builder.name == "html":
        write_text(Path(app.outdir, "robots.txt"), ROBOTS.format(app.config.html_baseurl))


def setup(app: Sphinx) -> None:
    if app.config.html_baseurl:
        for extension in EXTENSIONS:
            app.setup_extension(extension)
    app.connect("config-inited", set_address)
    app.connect("html-page-context", stand_nowhere)
    app.connect("build-finished", write_robots)
