"""Build the HTML book from the committed outputs; any warning is a failure.

    build.py _build/html
    build.py _build/links linkcheck     asks instead whether the links to other hosts are alive

This is `jupyter-book build . -W -n --keep-going`, saying only what went wrong. What was built before stays until the
new book is whole. The folder around it holds what the build needs besides, and so must be one that make has made.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TextIO

from jupyter_book import sphinx as jupyter_book
from sphinx.cmd.build import handle_exception

import own
from deepdive.moved import write_stub
from smalltorch.files import in_one_line

ROOT = Path(__file__).resolve().parents[2]


def report(app: object, arguments: object, exception: BaseException, stderr: TextIO) -> None:
    """Leave what one line can say to `in_one_line`, and all else to Sphinx, which keeps a traceback."""
    if isinstance(exception, OSError | KeyboardInterrupt):
        raise exception
    handle_exception(app, arguments, exception, stderr)


jupyter_book.handle_exception = report


def build(html: Path, *pages: str, builder: str = "html") -> None:
    """Build the book, or write only these of its pages again."""
    overrides = {"nitpicky": True, "latex_individualpages": False}
    if pages:
        overrides["sitemap_anew"] = False
    if os.environ.get("NODE") == "none":
        overrides["formulas_by_node"] = False
    status = jupyter_book.build_sphinx(
        ROOT,
        html,
        builder=builder,
        noconfig=True,
        path_config=ROOT / "_config.yml",
        confoverrides=overrides,
        filenames=[str(ROOT / page) for page in pages],
        quiet=True,
        warningiserror=True,
        keep_going=True,
    )
    if status != 0:
        sys.exit("The book was not built: mend what is said above.")


def build_anew(html: Path, builder: str) -> None:
    """Build the book beside `html` and put it there when it is whole."""
    new, old = html.with_name(".new"), html.with_name(".old")
    if old.exists() and not html.exists():  # the last build was stopped between the two renames
        old.rename(html)
    # Pages that are not read again do not warn again: a second build would pass where the first failed.
    for remains in (new, old, html.with_name(".doctrees"), html.with_name("jupyter_execute")):
        shutil.rmtree(remains, ignore_errors=True)
    build(new, builder=builder)
    if builder == "html":
        write_stub(new, "index", "book/index", "Deep Dive into the Transformer")
    if html.exists():
        html.rename(old)
    new.rename(html)
    shutil.rmtree(old, ignore_errors=True)


def main() -> None:
    html = Path(sys.argv[1]).resolve()
    with own.taken(html.parent):
        build_anew(html, sys.argv[2] if len(sys.argv) > 2 else "html")


if __name__ == "__main__":
    with in_one_line():
        main()
