"""Write and read the experiments' CSV tables, whose heads say how they were made.

A table's head states how many lines it has, so that what was cut off is not taken for the whole.
"""

import csv
import platform
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from smalltorch.files import replacing, write_text

FOLDER = Path(__file__).parent

Row = Sequence[object]  # one line of a table
MADE = ("command", "seeds", "versions", "hardware")  # of the head, what a reader is told


def store(
    out: Path,
    module: str,
    seeds: str,
    time: str,
    columns: Sequence[str],
    lines: Sequence[Row],
    fingerprints: Mapping[str, str],
) -> None:
    """Write the table of a long run, headed by how it was made: what `stored` reads.

    Raises:
        ValueError: if a line has more or fewer entries than there are columns.
        OSError: where the folder cannot be written to, or the disk is full; a table that was there stays.
    """
    if any(len(line) != len(columns) for line in lines):
        odd = next(len(line) for line in lines if len(line) != len(columns))
        raise ValueError(f"lines: expected {len(columns)} entries in each, as there are columns, got {odd}")
    head = {
        "command": shlex.join(["python", "-m", module, *sys.argv[1:]]),
        "seeds": seeds,
        "versions": f"Python {platform.python_version()}, torch {torch.__version__}",
        "hardware": f"CPU ({platform.machine()}, {torch.backends.cpu.get_cpu_capability()}), threads: 1, {time}",
        **fingerprints,
        "lines": len(lines),
    }
    with replacing(out) as new, new.open("w", encoding="utf-8", newline="") as file:
        file.write(_shown(head))
        table = csv.writer(file, lineterminator="\n")
        table.writerow(columns)
        table.writerows(lines)


def stored(name: str) -> tuple[list[str], list[dict[str, str]]]:
    """The table of a long run: how it was made (command, seeds, versions, hardware), and its lines by column.

    Raises:
        FileNotFoundError: if there is no such table.
        ValueError: if it has not as many lines as its head states, or the last one has no end.
    """
    path = FOLDER / f"{name}.csv"
    return [f"{what}: {said}" for what, said in head_of(path).items() if what in MADE], read(path)


def read(path: Path) -> list[dict[str, str]]:
    """The lines of a table by column, if they are all there."""
    text = path.read_text(encoding="utf-8")
    lines = list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))
    stated = head_of(path).get("lines", "no number")
    if stated != str(len(lines)) or not text.endswith("\n"):
        raise ValueError(
            f"{path.name}: expected a whole table ({stated} lines), got {len(lines)} lines: it was cut off"
        )
    return lines


def head_of(path: Path) -> dict[str, str]:
    """What the head of a table says, by what it speaks of."""
    head = [line.removeprefix("# ") for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    return {what: said for what, _, said in (line.partition(": ") for line in head)}


def renewed(path: Path, fingerprints: Mapping[str, str]) -> None:
    """Write other fingerprints into the head of a table, and leave the rest as it is."""
    head = head_of(path)
    lines = path.read_text(encoding="utf-8").removeprefix(_shown(head))
    write_text(path, _shown(head | dict(fingerprints)) + lines)


def _shown(head: Mapping[str, object]) -> str:
    return "".join(f"# {what}: {said}\n" for what, said in head.items())
