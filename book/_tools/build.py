"""Build the HTML book from the committed outputs; any warning is a failure.

    build.py _build/html
    build.py _build/links/html linkcheck     asks instead whether the links to other hosts are alive

This is `jupyter-book build . -W -n --keep-going`, saying only what went wrong.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from jupyter_book.sphinx import build_sphinx

from deepdive.moved import write_stub

ROOT = Path(__file__).resolve().parents[2]


def build(html: Path, *pages: str, builder: str = "html") -> None:
    """Build the book, or write only these of its pages again."""
    overrides = {"nitpicky": True, "latex_individualpages": False}
    status = build_sphinx(
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


def main() -> None:
    html = Path(sys.argv[1]).resolve()
    # Pages that are not read again do not warn again: a second build would pass where the first failed.
    shutil.rmtree(html.parent, ignore_errors=True)
    builder = sys.argv[2] if len(sys.argv) > 2 else "html"
    build(html, builder=builder)
    if builder == "html":
        write_stub(html, "index", "book/index", "Deep Dive into the Transformer")


if __name__ == "__main__":
    main()
