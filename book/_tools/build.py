"""Build the HTML book from the committed outputs; any warning is a failure.

    build.py _build/html
    build.py _build/links linkcheck     asks instead whether the links to other hosts are alive

This is `jupyter-book build . -W -n --keep-going`, saying only what went wrong. What was built before stays until the
new book is whole. The folder around it holds what the build needs besides, and so must be one that make has made.

Where only pages have changed since the last build, this one begins from that (`warm.py`). It says nothing, and where it
fails for any reason, the book is built anew, which decides.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import warnings
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TextIO

from jupyter_book import sphinx as jupyter_book
from sphinx.application import Sphinx
from sphinx.cmd.build import handle_exception

import own
import sources
import warm
from deepdive.moved import write_stub
from deepdive.takeaway import ARCHIVE, PDF
from smalltorch.files import in_one_line, write_text

ROOT = Path(__file__).resolve().parents[2]


def report(app: object, arguments: object, exception: BaseException, stderr: TextIO) -> None:
    """Leave what one line can say to `in_one_line`, and all else to Sphinx, which keeps a traceback."""
    if isinstance(exception, OSError | KeyboardInterrupt | warm.Stale):
        raise exception
    handle_exception(app, arguments, exception, stderr)


jupyter_book.handle_exception = report
# Sphinx looks at every object that there is, and after a first build some are torch's.
warnings.filterwarnings("ignore", "`torch.distributed.reduce_op`", FutureWarning)


def build(
    html: Path,
    doctrees: Path,
    builder: str = "html",
    changed: Collection[str] | None = None,
    entries: Mapping[str, list] | None = None,
) -> dict[str, list] | None:
    """Build the book, and return the entries of its index (`warm.entries`); None where something is wrong with it.

    With `changed` pages it begins, without a word, from what is in both folders and from the `entries` of that build.
    """
    overrides = {"nitpicky": True, "latex_individualpages": False}
    if os.environ.get("NODE") == "none":
        overrides["formulas_by_node"] = False
    made: list[Sphinx] = []

    def begin(**settings: object) -> Sphinx:
        made.append(Sphinx(**settings))
        warm.watch(made[0], changed)
        warm.put_back(made[0], entries or {})
        return made[0]

    jupyter_book.Sphinx = begin
    status = jupyter_book.build_sphinx(
        ROOT,
        html,
        builder=builder,
        noconfig=True,
        path_config=ROOT / "_config.yml",
        confoverrides=overrides,
        doctreedir=doctrees,
        quiet=True,
        really_quiet=changed is not None,
        warningiserror=True,
        keep_going=True,
    )
    return warm.entries(made[0]) if status == 0 else None


def build_from(html: Path, new: Path, changed: Collection[str], entries: Mapping[str, list]) -> dict[str, list] | None:
    """Build the book from a copy of the last one; None where that cannot be done."""
    try:
        shutil.copytree(html, new, ignore=shutil.ignore_patterns("_static", PDF, ARCHIVE))
        shutil.copytree(doctrees(html), doctrees(new))
        return build(new, doctrees(new), "html", changed, entries)
    except (warm.Stale, OSError):
        return None


def build_anew(new: Path, builder: str) -> dict[str, list]:
    remove(new)
    entries = build(new, doctrees(new), builder)
    if entries is None:
        sys.exit("The book was not built: mend what is said above.")
    return entries


def doctrees(html: Path) -> Path:
    """Where Sphinx keeps what it has read of the book that is in this folder."""
    return html.with_name(f".doctrees-{html.name}")


def remove(html: Path) -> None:
    for folder in (html, doctrees(html)):
        shutil.rmtree(folder, ignore_errors=True)


def build_beside(html: Path, builder: str) -> None:
    """Build the book beside `html` and put it there when it is whole."""
    new, old, last = html.with_name(".new"), html.with_name(".old"), html.with_name(f".{html.name}.json")
    if old.exists() and not html.exists():  # the last build was stopped between the two renames
        old.rename(html)
    remove(new), remove(old)
    now = sources.read(ROOT)  # before they are read: what changes meanwhile has changed for the next build
    before = json.loads(last.read_text(encoding="utf-8")) if last.exists() and html.exists() else None
    if before and before["sources"] == now:
        return
    changed = sources.changed_pages(before["sources"], now) if before else None
    entries = build_from(html, new, changed, before["entries"]) if changed is not None else None
    if entries is None:
        entries = build_anew(new, builder)
    if builder == "html":
        write_stub(new, "index", "book/index", "Deep Dive into the Transformer")

    last.unlink(missing_ok=True)  # until all is in its place, the next build begins from nothing
    if html.exists():
        html.rename(old)
    new.rename(html)
    shutil.rmtree(doctrees(html), ignore_errors=True)
    doctrees(new).rename(doctrees(html))
    remove(old)
    if builder == "html":
        write_text(last, json.dumps({"sources": now, "entries": entries}))


def main() -> None:
    html = Path(sys.argv[1]).resolve()
    with own.taken(html.parent):
        build_beside(html, sys.argv[2] if len(sys.argv) > 2 else "html")


if __name__ == "__main__":
    with in_one_line():
        main()
