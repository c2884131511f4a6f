"""What the book is built from: a digest of each file, and of what is around them."""

from __future__ import annotations

import os
import site
import sys
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path, PurePosixPath

READ = ("_config.yml", "_toc.yml", "CITATION.cff", "requirements.txt", "book", "notebooks", "lib/smalltorch")
AROUND = "around"


def digest(content: bytes) -> str:
    return sha256(content).hexdigest()


def read(root: Path) -> dict[str, str]:
    """The digest of each file that a page may show something of, by its path, and one of what is around them.

    That is where the book is, the interpreter with its packages, and the choices that the environment makes.
    """
    packages = sorted(path.name for folder in site.getsitepackages() for path in Path(folder).glob("*.dist-info"))
    around = [root, sys.version, packages, os.environ.get("NODE"), os.environ.get("SOURCE_DATE_EPOCH")]
    return {AROUND: digest(repr(around).encode())} | {
        path.relative_to(root).as_posix(): digest(path.read_bytes())
        for name in READ
        for path in [root / name, *(root / name).rglob("*")]
        if path.is_file() and shown(path.relative_to(root))
    }


def shown(path: Path) -> bool:
    """Whether a page may show something of a file: neither of a test nor of what Python or Jupyter leave behind."""
    return not path.name.startswith("test_") and not any(part.startswith((".", "__pycache__")) for part in path.parts)


def is_page(name: str) -> bool:
    return PurePosixPath(name).suffix in (".md", ".ipynb")


def changed_pages(before: Mapping[str, str], now: Mapping[str, str]) -> set[str] | None:
    """The pages that have changed, come or gone; None where other files have, for these may change any page."""
    changed = {name for name in {*before, *now} if before.get(name) != now.get(name)}
    return changed if all(map(is_page, changed)) else None
