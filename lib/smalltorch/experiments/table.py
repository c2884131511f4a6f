"""The tables of the long runs: written with how they were made, read by the chapters.

A table's head states how many lines it has, so that what was cut off is not taken for the whole.
"""

import csv
import platform
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch

from smalltorch.files import place, replacing

FOLDER = Path(__file__).parent

Row = Sequence[object]  # one line of a table


@contextmanager
def growing(out: Path) -> Iterator[Path]:
    """Where a table can be stored case by case; when the `with` ends, it takes the place of `out`.

    What is there already stays until then, and is named on standard error. A run that is stopped leaves its cases in
    `NAME.unfinished.csv`.
    """
    out = place(out)
    part = out.with_name(f"{out.stem}.unfinished{out.suffix}")
    for path, when in ((part, "after the first case"), (out, "when all cases are done")):
        if path.exists():
            print(f"{path} exists and will be replaced {when}", file=sys.stderr, flush=True)
    yield part
    part.replace(out)


def store(out: Path, script: str, seeds: str, time: str, columns: Sequence[str], lines: Sequence[Row]) -> None:
    """Write the table of a long run, headed by how it was made: what `stored` reads.

    Raises:
        ValueError: if a line has more or fewer entries than there are columns.
        OSError: where the folder cannot be written to, or the disk is full; a table that was there stays.
    """
    if any(len(line) != len(columns) for line in lines):
        odd = next(len(line) for line in lines if len(line) != len(columns))
        raise ValueError(f"lines: expected {len(columns)} entries in each, as there are columns, got {odd}")
    head = [
        f"command: {shlex.join(['python', '-m', f'smalltorch.experiments.{Path(script).stem}', *sys.argv[1:]])}",
        f"seeds: {seeds}",
        f"versions: Python {platform.python_version()}, torch {torch.__version__}",
        f"hardware: CPU ({platform.machine()}, {torch.backends.cpu.get_cpu_capability()}), "
        f"threads: {torch.get_num_threads()}, {time}",
        f"lines: {len(lines)}",
    ]
    with replacing(out) as new, new.open("w", encoding="utf-8", newline="") as file:
        file.writelines(f"# {line}\n" for line in head)
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
    text = path.read_text(encoding="utf-8")
    head = [line.removeprefix("# ") for line in text.splitlines() if line.startswith("#")]
    lines = list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))
    stated = head.pop() if head else "no head"
    if stated != f"lines: {len(lines)}" or not text.endswith("\n"):
        raise ValueError(f"{path.name}: expected a whole table ({stated}), got {len(lines)} lines: it was cut off")
    return head, lines
