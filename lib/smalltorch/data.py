"""Data files of the book that the library reads: the list of claims, and the texts that chapters measure on."""

from pathlib import Path

BOOK = Path(__file__).resolve().parents[2] / "book"
PACKED = Path(__file__).with_name("book")  # in a wheel, which brings what chapters read (book/_tools/library_wheel.py)


def path(name: str) -> Path:
    """A file of the book's folder, such as `data/essay.txt`.

    Raises:
        FileNotFoundError: if it is not there: the library was installed neither in a clone nor from the book's wheel.
    """
    file = next((folder / name for folder in (BOOK, PACKED) if (folder / name).exists()), BOOK / name)
    if not file.exists():
        raise FileNotFoundError(
            f"name: expected a file of the book's folder, got {name!r}; "
            "install the library from a clone of the book, or from the wheel that `make wheel` builds"
        )
    return file


def text(name: str) -> str:
    """A text of `book/data`, by its name without ending: `text("essay")`."""
    return path(f"data/{name}.txt").read_text(encoding="utf-8")
