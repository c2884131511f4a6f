"""Build the HTML book with Sphinx from the committed outputs; any warning is an error.

    build.py _build/html
    build.py _build/links linkcheck     asks instead whether the links to other hosts are alive

This is `jupyter-book build . -W -n --keep-going`, saying only what went wrong. Where nothing has changed since the last
build, nothing is built; else the book is built from nothing, and what was built before stays until the new book is
whole. The folder around it holds what the build needs besides, and so must be one that make has made.
"""

import gc
import os
import shutil
import sys
import warnings
from functools import cache
from pathlib import Path
from typing import TextIO

import pybtex.plugin
from jupyter_book import sphinx as jupyter_book
from sphinx.cmd.build import handle_exception
from sphinx.search.en import SearchEnglish

import output_folder
import sources
from deepdive.moved import write_stub
from smalltorch.files import in_one_line, write_text

ROOT = Path(__file__).resolve().parents[2]


def report(app: object, arguments: object, exception: BaseException, stderr: TextIO) -> None:
    """Leave what one line can say to `in_one_line`, and all else to Sphinx, which keeps a traceback."""
    if isinstance(exception, OSError | KeyboardInterrupt):
        raise exception
    handle_exception(app, arguments, exception, stderr)


jupyter_book.handle_exception = report
# What the search and the citations would find again for each page and each citation.
SearchEnglish.stem = cache(SearchEnglish.stem)
pybtex.plugin.find_plugin = cache(pybtex.plugin.find_plugin)
# Sphinx looks at every object that there is, and after a first build some are torch's.
warnings.filterwarnings("ignore", "`torch.distributed.reduce_op`", FutureWarning)


def build(html: Path, doctrees: Path, builder: str) -> bool:
    """Build the book, and say whether nothing is wrong with it."""
    overrides = {"nitpicky": True, "latex_individualpages": False}
    if os.environ.get("NODE") == "none":
        overrides["formulas_by_node"] = False
    status = jupyter_book.build_sphinx(
        ROOT,
        html,
        builder=builder,
        noconfig=True,
        path_config=ROOT / "_config.yml",
        confoverrides=overrides,
        doctreedir=doctrees,
        quiet=True,
        warningiserror=True,
        keep_going=True,
    )
    return status == 0


def remove(*folders: Path) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def build_beside(html: Path, builder: str) -> None:
    """Build the book beside `html` and put it there when it is whole."""
    new, old, doctrees = (html.with_name(name) for name in (".new", ".old", ".doctrees"))
    last = html.with_name(f".{html.name}.digest")
    if old.exists() and not html.exists():  # the last build was stopped between the two renames
        old.rename(html)
    remove(new, old, doctrees)
    now = sources.digest(ROOT)  # before they are read: what changes meanwhile has changed for the next build
    if html.exists() and last.exists() and last.read_text(encoding="utf-8") == now:
        return
    if not build(new, doctrees, builder):
        sys.exit("The book was not built: mend what is said above.")
    last.unlink(missing_ok=True)  # until all is in its place, the next build builds
    if builder == "html":
        write_stub(new, "index", "book/index", "Deep Dive into the Transformer")
    if html.exists():
        html.rename(old)
    new.rename(html)
    remove(old, doctrees)
    if builder == "html":
        write_text(last, now)


def main() -> None:
    html = Path(sys.argv[1]).resolve()
    gc.set_threshold(100_000, 20, 100)  # trees of pages are large, and most of what is made stays
    with output_folder.taken(html.parent):
        build_beside(html, sys.argv[2] if len(sys.argv) > 2 else "html")


if __name__ == "__main__":
    with in_one_line():
        main()
