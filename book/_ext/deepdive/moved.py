"""Old addresses lead on: a stub stands at each old page, and each old anchor stands beside the new one.

`moved` in `book/parts.yml` lists both. A stub is no page of the book: no search finds it, and neither the PDF nor the
archive has it.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from posixpath import relpath

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

from deepdive.book import contents
from smalltorch.files import write_text

logger = logging.getLogger(__name__)

# moved.js takes the reader on, with what followed the old address; without script the browser does, without that.
STUB = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'self'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<noscript><meta http-equiv="refresh" content="0; url={address}"></noscript>
</head>
<body>
<main><p>Go on to <a href="{address}">{title}</a>.</p></main>
<script src="{script}"></script>
</body>
</html>
"""


def write_stub(html: Path, old: str, new: str, title: str) -> None:
    """Write a page at the address `old` that leads to the page `new`."""
    path = html / f"{old}.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(old).parent.as_posix()
    address, script = relpath(f"{new}.html", folder), relpath("_static/moved.js", folder)
    write_text(path, STUB.format(title=escape(title), address=address, script=script))


def read_moved(app: Sphinx) -> None:
    moved = contents.read(Path(app.srcdir)).moved
    app.env.book_stubs = {old: new for old, new in moved.items() if "#" not in old}
    app.env.book_aliases = [(old.partition("#")[2], *new.split("#")) for old, new in moved.items() if "#" in old]


def check(app: Sphinx, env: BuildEnvironment) -> None:
    for old, new in list(env.book_stubs.items()):
        if old in env.found_docs or new not in env.found_docs:
            logger.warning("moved: %s leads to %s: expected no page there, and one here", old, new, type="moved")
            del env.book_stubs[old]


def add_aliases(app: Sphinx, doctree: nodes.document, page: str) -> None:
    for old, new_page, new in app.env.book_aliases:
        if new_page == page:
            node = next((node for node in doctree.findall(nodes.Element) if new in node["ids"]), None)
            if node is None:
                logger.warning("moved: %s has no anchor %s, where %s leads", page, new, old, type="moved")
            else:
                node["ids"].append(old)


def write_stubs(app: Sphinx, exception: Exception | None) -> None:
    if exception is None and app.builder.name == "html":
        for old, new in app.env.book_stubs.items():
            write_stub(Path(app.outdir), old, new, app.env.titles[new].astext())


def setup(app: Sphinx) -> None:
    app.connect("builder-inited", read_moved)
    app.connect("env-check-consistency", check)
    app.connect("doctree-resolved", add_aliases)
    app.connect("build-finished", write_stubs)
