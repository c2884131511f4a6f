"""Whole files: written beside their place and then renamed, so that they are whole or not there; notebooks read whole.

Standard library only: the book's tools write through it as well.
"""

import codecs
import errno
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new empty file beside `path`, to be written; when the `with` ends, it takes the place of `path`.

    Where the writing fails or is interrupted, the file that was there stays as it was and the new one goes. Only a
    process that is killed leaves the new one behind: a hidden file that ends in `.unfinished`, which nothing reads and
    `make clean` removes. A link is followed, and the mode of a file that was there is kept.

        >>> folder = Path(tempfile.mkdtemp())
        >>> with replacing(folder / "table.csv") as new:
        ...     _ = new.write_text("n,norm\\n")
        >>> [file.name for file in folder.iterdir()]
        ['table.csv']

    Raises:
        OSError: where the folder cannot be written to, the disk is full, or something else than a file is there.
    """
    path = place(path)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-", suffix=".unfinished")
    os.close(handle)
    new = Path(name)
    try:
        yield new
        with new.open("rb") as written:
            os.fsync(written.fileno())  # on the disk before it takes the other's place
        new.chmod(path.stat().st_mode & 0o7777 if path.exists() else 0o666 & ~_umask())
        new.replace(path)
    except OSError as error:
        if error.filename in (None, name):  # a full disk does not say which file it has no room for
            error.filename = str(path)
        raise
    finally:
        new.unlink(missing_ok=True)  # there no longer, where all went well


def place(path: Path) -> Path:
    """Where a file is or can be, links followed.

    Raises:
        OSError: where something else is: a folder, or a device such as /dev/null, which must not be replaced; and
            where there is no folder for it.
    """
    path = path.resolve()
    if not path.parent.is_dir():
        raise OSError(errno.ENOENT, "there is no such folder", str(path.parent))
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "expected a file, or nothing there yet", str(path))
    return path


def write_text(path: Path, text: str) -> None:
    """Write a file in UTF-8 with its line ends as they are in the text, at once or not at all.

    Raises:
        OSError: where the folder cannot be written to, or the disk is full.
    """
    with replacing(path) as new:
        new.write_text(text, encoding="utf-8", newline="")


def read_notebook(path: Path) -> dict[str, Any]:
    """What a notebook has, as its JSON says it: at least a list of cells.

        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "cut.ipynb").write_text('{"cells": [')
        >>> try:
        ...     read_notebook(folder / "cut.ipynb")
        ... except OSError as error:
        ...     print(error.strerror)
        this is no whole notebook (Expecting value: line 1 column 12 (char 11)): git restore it, or save it again

    Raises:
        OSError: that names it, where it begins with a byte order mark, is cut off, or is something else.
    """
    data, reason = path.read_bytes(), "its cells are no list"
    if data.startswith(codecs.BOM_UTF8):
        reason = f"it begins with a byte order mark: make form-fix NB={path.stem}"
        raise OSError(errno.EINVAL, reason, str(path))
    try:
        found = json.loads(data.decode())
        if isinstance(found["cells"], list):
            return found
    except (ValueError, LookupError, TypeError) as error:
        reason = str(error) if isinstance(error, ValueError) else "it has no cells"
    raise OSError(errno.EINVAL, f"this is no whole notebook ({reason}): git restore it, or save it again", str(path))


@contextmanager
def in_one_line() -> Iterator[None]:
    """For a command: what goes wrong with a file, and Ctrl-C, end it with one line in place of a traceback.

        >>> with in_one_line():
        ...     Path("nowhere/table.csv").read_text()
        Traceback (most recent call last):
        SystemExit: nowhere/table.csv: No such file or directory

    Raises:
        SystemExit: with that line, or with the status 130 that a shell gives to what was interrupted.
    """
    try:
        yield
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    except OSError as error:
        sys.exit(f"{error.filename}: {error.strerror}" if error.filename else str(error))


def _umask() -> int:
    mask = os.umask(0)  # the only way to read it is to set it
    os.umask(mask)
    return mask
