"""Files that are whole or not there: each is written beside its place and then renamed, which happens at once.

Standard library only: the book's tools write through it as well.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new empty file beside `path`, to be written; when the `with` ends, it takes the place of `path`.

    Where the writing fails or is interrupted, the file that was there stays as it was and the new one goes. A link is
    followed, and the mode of a file that was there is kept.

        >>> folder = Path(tempfile.mkdtemp())
        >>> with replacing(folder / "table.csv") as new:
        ...     _ = new.write_text("n,norm\\n")
        >>> [file.name for file in folder.iterdir()]
        ['table.csv']

    Raises:
        OSError: where the folder cannot be written to, or the disk is full.
    """
    path = path.resolve()
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=path.suffix)
    os.close(handle)
    new = Path(name)
    try:
        yield new
        new.chmod(path.stat().st_mode & 0o7777 if path.exists() else 0o666 & ~_umask())
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)  # there no longer, where all went well


def write_text(path: Path, text: str) -> None:
    """Write a file in UTF-8 with its line ends as they are in the text, at once or not at all.

    Raises:
        OSError: where the folder cannot be written to, or the disk is full.
    """
    with replacing(path) as new:
        new.write_text(text, encoding="utf-8", newline="")


def _umask() -> int:
    mask = os.umask(0)  # the only way to read it is to set it
    os.umask(mask)
    return mask
