"""The tables of the long runs: written with how they were made, read by the chapters."""

import csv
import platform
import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch

FOLDER = Path(__file__).parent

Row = Sequence[object]  # one line of a table


def store(out: Path, script: str, seeds: str, time: str, columns: Sequence[str], lines: Iterable[Row]) -> None:
    """Write the table of a long run, headed by how it was made: what `stored` reads."""
    head = [
        f"command: {shlex.join(['python', '-m', f'smalltorch.experiments.{Path(script).stem}', *sys.argv[1:]])}",
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
    """The table of a long run: how it was made (command, seeds, versions, hardware), and its lines by column.

    Raises:
        FileNotFoundError: if there is no such table.
    """
    lines = (FOLDER / f"{name}.csv").read_text(encoding="utf-8").splitlines()
    head = [line.removeprefix("# ") for line in lines if line.startswith("#")]
    return head, list(csv.DictReader(line for line in lines if not line.startswith("#")))
