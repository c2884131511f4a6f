"""What the library reads from the book around it: the list of claims, the texts that chapters measure on, and the long
runs that chapters read the tables of."""

import csv
import importlib.util
from pathlib import Path
from types import ModuleType

BOOK = Path(__file__).resolve().parents[2] / "book"


def path(name: str) -> Path:
    """A file of the book's folder, such as `data/essay.txt`.

    Raises:
        FileNotFoundError: if it is not there: the library was installed without the book around it.
    """
    file = BOOK / name
    if not file.exists():
        raise FileNotFoundError(f"book/{name} not found: install the library from a clone of the book")
    return file


def text(name: str) -> str:
    """A text of `book/data`, by its name without ending: `text("essay")`."""
    return path(f"data/{name}.txt").read_text(encoding="utf-8")


def experiment(name: str) -> ModuleType:
    """A long run of `lib/experiments`, as a module: `experiment("placement").rows(...)`."""
    file = path(f"../lib/experiments/{name}.py")
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def stored(name: str) -> tuple[list[str], list[dict[str, str]]]:
    """The table of a long run: how it was made (command, seeds, versions, hardware), and its lines by column."""
    lines = path(f"../lib/experiments/{name}.csv").read_text(encoding="utf-8").splitlines()
    head = [line.removeprefix("# ") for line in lines if line.startswith("#")]
    return head, list(csv.DictReader(line for line in lines if not line.startswith("#")))
