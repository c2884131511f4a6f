"""Output folders of make, marked and locked: one process works in each, and no unmarked folder is ever emptied.

The mark is a file, and who works in the folder holds a lock on it, so that two builds at once take turns. A lock goes
with the last process that holds it, however that ends.
"""

import fcntl
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MARK = ".made-by-deep-dive"
TEXT = "make made this folder for Deep Dive into the Transformer, and may empty it.\n"


@contextmanager
def taken(folder: Path) -> Iterator[int]:
    """Take a folder: one that is marked, or empty, or not there yet. Gives the lock, for programs that are started.

    Raises:
        SystemExit: if there are files in it and no mark.
    """
    folder.mkdir(parents=True, exist_ok=True)
    mark = folder / MARK
    if not mark.exists() and any(folder.iterdir()):
        sys.exit(
            f"{folder}: make fills and empties only folders that it has made, and not this one; "
            "name another (VENV=… or HTML=…)"
        )
    with mark.open("a", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"{folder}: another make works there; waiting for it", file=sys.stderr, flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        if file.tell() == 0:
            file.write(TEXT)
            file.flush()
        yield file.fileno()


def empty(folder: Path, *kept: str) -> None:
    """Remove what is in a folder that was taken, but for these files and the mark, which is there to the last."""
    for entry in folder.iterdir():
        if entry.name not in (MARK, *kept):
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()
