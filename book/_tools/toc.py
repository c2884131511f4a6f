"""Write _toc.yml as book/parts.yml and the notebooks that exist say, or compare it with them.

toc.py write
toc.py check
"""

from __future__ import annotations

import sys
from pathlib import Path

from deepdive.book import contents
from smalltorch.files import in_one_line, write_text

ROOT = Path(__file__).resolve().parents[2]
FILE = "_toc.yml"


def wanted(root: Path) -> str:
    return contents.toc(root, contents.read(root))


def write(root: Path) -> None:
    write_text(root / FILE, wanted(root))


def problems(root: Path) -> list[str]:
    """A line if the stored file says something else."""
    same = (root / FILE).read_text(encoding="utf-8") == wanted(root)
    return [] if same else [f"{FILE} is not what {contents.FILE} says: make toc"]


def main() -> None:
    if sys.argv[1:] == ["write"]:
        write(ROOT)
    elif found := problems(ROOT):
        sys.exit(found[0])


if __name__ == "__main__":
    with in_one_line():
        main()
