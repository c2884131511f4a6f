"""What the library reads from the book around it: the list of claims, and the texts that chapters measure on."""

from pathlib import Path

BOOK = Path(__file__).resolve().parents[2] / "book"


def path(name: str) -> Path:
    """A file of the book's folder, such as `data/essay.txt`.

    Raises:
        FileNotFoundError: if it is not there: the library was installed without the book around it.
    """
    file = BOOK / name
    if not file.exists():
        raise FileNotFoundError(
            f"name: expected a file of the book's folder, got {name!r}; "
            "where there is no such folder, install the library from a clone of the book"
        )
    return file


def text(name: str) -> str:
    """A text of `book/data`, by its name without ending: `text("essay")`."""
    return path(f"data/{name}.txt").read_text(encoding="utf-8")
