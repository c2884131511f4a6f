"""Redirects: a stub page at each old address that `moved` in `book/parts.yml` lists.

A stub is no page of the book: no search finds it, and neither the PDF nor the archive has it.
"""

from html import escape
from pathlib import Path
from posixpath import relpath

from sphinx.application import Sphinx
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
    folder = Path(old).parent.as_posix()
    address, script = relpath(f"{new}.html", folder), relpath("_static/moved.js", folder)
    (html / folder).mkdir(parents=True, exist_ok=True)
    write_text(html / f"{old}.html", STUB.format(title=escape(title), address=address, script=script))


def write_stubs(app: Sphinx) -> list[tuple]:
    for old, new in contents.read(Path(app.srcdir)).moved.items():
        if old in app.env.found_docs or new not in app.env.found_docs:
            logger.warning("moved: %s leads to %s: expected no page there, and one here", old, new, type="moved")
        else:
            write_stub(Path(app.outdir), old, new, app.env.titles[new].astext())
    return []  # no page that Sphinx is to write


def setup(app: Sphinx) -> None:
    app.connect("html-collect-pages", write_stubs)
