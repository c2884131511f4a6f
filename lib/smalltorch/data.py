"""What the library reads from the book around it: the list of claims, the texts that chapters measure on, and the long
runs that chapters read the tables of."""

import csv
import importlib.util
import platform
import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType

import torch

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


def store(out: Path, script: str, seeds: str, time: str, columns: Sequence[str], lines: Iterable[Sequence]) -> None:
    """Write the table of a long run, headed by how it was made: what `stored` reads."""
    head = [
        f"command: {shlex.join(['python', f'lib/experiments/{Path(script).name}', *sys.argv[1:]])}",
        f"seeds: {seeds}",
        f"versions: Python {platform.python_version()}, torch {torch.__version__}",
        f"hardware: CPU ({platform.machine()}, {torch.backends.cpu.get_cpu_capability()}), "
        f"threads: {torch.get_num_threads()}, {time}",
    ]
    with out.open("w", encoding="utf-8", newline="") as file:
        file.writelines(f"# {line}\n" for line in head)
        table = csv.writer(file, lineterminator="\n")
        table.writerow(columns)
        table.writerows(lines)


def stored(name: str) -> tuple[list[str], list[dict[str, str]]]:
    """The table of a long run: how it was made (command, seeds, versions, hardware), and its lines by column."""
    lines = path(f"../lib/experiments/{name}.csv").read_text(encoding="utf-8").splitlines()
    head = [line.removeprefix("# ") for line in lines if line.startswith("#")]
    return head, list(csv.DictReader(line for line in lines if not line.startswith("#")))
