"""One digest of all inputs of the build: if it has not changed, nothing is built."""

import os
import site
import sys
from hashlib import sha256
from pathlib import Path

READ = ("_config.yml", "_toc.yml", "CITATION.cff", "requirements.txt", "book", "notebooks", "lib/smalltorch")


def digest(root: Path) -> str:
    """The digest of each file that a page may show something of, by its path, and of what is around them.

    That is where the book is, the interpreter with its packages, and the choices that the environment makes.
    """
    packages = sorted(path.name for folder in site.getsitepackages() for path in Path(folder).glob("*.dist-info"))
    around = (root, sys.version, packages, os.environ.get("NODE"), os.environ.get("SOURCE_DATE_EPOCH"))
    files = sorted(path for name in READ for path in [root / name, *(root / name).rglob("*")] if path.is_file())
    shown = [path for path in files if is_shown(path.relative_to(root))]
    read = [(path.relative_to(root).as_posix(), sha256(path.read_bytes()).hexdigest()) for path in shown]
    return sha256(repr((around, read)).encode()).hexdigest()


def is_shown(path: Path) -> bool:
    """Whether a page may show something of a file: neither of a test nor of what Python or Jupyter leave behind."""
    return not path.name.startswith("test_") and not any(part.startswith((".", "__pycache__")) for part in path.parts)
