"""Run notebooks and keep them in one form.

notebooks.py run [-j N] [--again IDS] [NAME ...]   execute in place, then normalise, and write manifests
                                      (NAME: a path or a chapter; all if none;
                                      IDS: claims whose sentence was read again, and stands)
notebooks.py check                   complain about every notebook that is not as `run` leaves it
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import sha256
from itertools import count
from pathlib import Path

import nbformat
from nbformat import NotebookNode

import cover
import setup_cell
from smalltorch.engine.schema import Record, read_records, unsaid
from smalltorch.files import in_one_line, write_text

ROOT = Path(__file__).resolve().parents[2]
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
KEPT = ("tags", "mystnb")
FOLDED = ["hide-input"]
ID = re.compile(r"[A-Za-z][\w-]{0,63}", re.ASCII)  # what nbformat and HTML both take for an id
LARGEST = 500_000  # bytes
TIMEOUT = 300  # seconds a cell
KERNELS = set()  # of the notebooks that are being run


def all_notebooks(root: Path = ROOT) -> list[Path]:
    return sorted(path for path in (root / "notebooks").glob("**/*.ipynb") if ".ipynb_checkpoints" not in path.parts)


def find(names: list[str], root: Path = ROOT) -> list[Path]:
    """The notebooks of these paths or chapter names; all of them where none is named."""
    everything = {path.resolve(): path for path in all_notebooks(root)}
    by_name = {path.stem: path for path in everything.values()}
    found = []
    for name in names:
        path = everything.get(Path(name).resolve()) or by_name.get(name)
        if path is None:
            sys.exit(f"There is no notebook {name!r}; there are: {', '.join(by_name) or 'none'}")
        found.append(path)
    return found or list(everything.values())


def read(path: Path) -> NotebookNode:
    """A notebook as it is stored; `nbformat.read` would give random ids to cells that have none, or one twice."""
    return nbformat.v4.reads(path.read_text(encoding="utf-8"))


def text_of(notebook: NotebookNode) -> str:
    return nbformat.writes(notebook).rstrip("\n") + "\n"


def without_paths(text: str) -> str:
    """Text without what differs from machine to machine: temporary files of cells, and where the book lies."""
    text = re.sub(r"[^\s'\"]*ipykernel_\d+[/\\]\d+\.py", "cell", text)
    return text.replace(f"{ROOT}/", "")


def normalise(notebook: NotebookNode, root: Path = ROOT) -> NotebookNode:
    """The canonical form: fixed metadata, an id for each cell, all counts 1, the setup cell in place, no local paths.

    Ids stay as they are and counts say nothing of the order, so a new cell changes no other one.
    """
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    notebook.metadata = nbformat.from_dict(METADATA)
    notebook.cells = [cell for cell in notebook.cells if cell.source.strip()]
    for cell in notebook.cells:
        cell.source = "\n".join(line.rstrip() for line in cell.source.strip("\n").split("\n"))
        cell.metadata = nbformat.from_dict({key: cell.metadata[key] for key in KEPT if key in cell.metadata})
        if is_setup(cell):
            cell.source = setup_cell.source(setup_cell.repository(root))
            cell.metadata.tags = setup_cell.TAGS
        if "figure" in cell.metadata.get("mystnb", {}):  # the page shows the drawing, and its code to who unfolds it
            cell.metadata.tags = FOLDED
        if cell.cell_type == "code":
            cell.execution_count = 1
            for output in cell.outputs:
                _normalise_output(output)
    give_ids(notebook.cells)
    nbformat.validate(notebook)
    return notebook


def give_ids(cells: list[NotebookNode]) -> None:
    """Give each cell an id that it alone has: its own where it can stay, else one made from its source."""
    taken = set()
    for cell in cells:
        if ID.fullmatch(cell.get("id", "")) and cell.id not in taken:
            taken.add(cell.id)
        else:
            cell.id = None
    for cell in cells:
        if cell.id is None:
            names = (f"cell-{sha256(f'{n}{cell.source}'.encode()).hexdigest()[:8]}" for n in count())
            cell.id = next(name for name in names if name not in taken)
            taken.add(cell.id)


def _normalise_output(output: NotebookNode) -> None:
    if output.output_type == "execute_result":
        output.execution_count = 1
    if output.output_type == "stream":
        output.text = without_paths(output.text)
    if output.output_type == "error":
        output.traceback = [without_paths(line) for line in output.traceback]
    for kind, data in output.get("data", {}).items():
        if isinstance(data, str) and kind.startswith("text/"):
            output.data[kind] = without_paths(data)


def is_setup(cell: NotebookNode) -> bool:
    return cell.cell_type == "code" and "setup" in cell.metadata.get("tags", [])


def problems(path: Path, root: Path = ROOT) -> list[str]:
    """What is wrong with a notebook's form, one line each."""
    notebook = read(path)
    text = path.read_text(encoding="utf-8")
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    found = []
    if len(text.encode()) > LARGEST:
        found.append(f"it has {len(text.encode()) // 1000} kB; {LARGEST // 1000} kB are allowed")
    if [number for number, cell in enumerate(code) if is_setup(cell)] != [0]:
        found.append("its first code cell, and no other, must carry the tag 'setup'")
    elif code[0].source != setup_cell.source(setup_cell.repository(root)):
        found.append("its setup cell is not the one in book/_tools/setup_cell.py")
    for number, cell in enumerate(code, start=1):
        if cell.execution_count is None:
            found.append(f"code cell {number} was never run")
        if any(output.output_type == "error" for output in cell.outputs):
            found.append(f"code cell {number} ends in an error")
        if any(output.get("name") == "stderr" for output in cell.outputs):
            found.append(f"code cell {number} gives a warning, or writes to stderr")
        if cell.source.rstrip().endswith(";"):
            found.append(f"code cell {number} ends with ';', which hides nothing under nbval: assign to _ instead")
        if re.search(r"(?i)#\s*nbval[-_]|^nbval-", cell.source) or any(
            tag.startswith("nbval-") or tag == "raises-exception" for tag in cell.metadata.get("tags", [])
        ):
            found.append(f"code cell {number} asks nbval to look away")
    if not found and text != text_of(normalise(notebook, root)):
        found.append(f"it is not in normal form: make execute NB={path.stem}")
    return found


def records_in(notebook: NotebookNode) -> list[Record]:
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return [record for output in outputs for record in read_records(output.get("data", {}))]


def execute(path: Path, again: Collection[str] = ()) -> str:
    """Run a notebook with this Python, and store it with its outputs only if every cell ran.

    Nor is it stored if what the evidence of a record shows has changed and its words have not, unless its claim is
    among those whose words were read again.
    """
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, DeadKernelError
    from nbval.kernel import CURRENT_ENV_KERNEL_NAME, NbvalKernelspecManager

    notebook = normalise(read(path))
    stored = records_in(notebook)
    manager = AsyncKernelManager(kernel_name=CURRENT_ENV_KERNEL_NAME, kernel_spec_manager=NbvalKernelspecManager())
    KERNELS.add(manager)
    client = NotebookClient(
        notebook, km=manager, timeout=TIMEOUT, record_timing=False, store_widget_state=False, coalesce_streams=True
    )
    try:
        client.execute(cwd=str(path.parent), stderr=subprocess.DEVNULL, cleanup_kc=True)
    except CellExecutionError as error:
        return f"{path.relative_to(ROOT)}: not stored, a cell failed\n{error}"
    except DeadKernelError:
        return f"{path.relative_to(ROOT)}: not stored, its kernel was killed; is there enough memory?"
    finally:
        KERNELS.remove(manager)
    if changed := [claim for claim in unsaid(stored, records_in(notebook)) if claim not in again]:
        return (
            f"{path.relative_to(ROOT)}: not stored, what these records rest on has changed and their words have not: "
            f"{', '.join(changed)}; change the words or, if they still say what is shown: "
            f'make execute NB={path.stem} AGAIN="{" ".join(changed)}"'
        )
    write_text(path, text_of(normalise(notebook)))
    return ""


def run(names: list[str], jobs: int, again: Collection[str] = ()) -> bool:
    import manifest  # which imports this module

    paths = find(names)
    with ThreadPoolExecutor(jobs) as pool:
        failures = []
        try:
            for path, failure in zip(paths, pool.map(partial(execute, again=again), paths), strict=True):
                print(failure or f"ran {path.relative_to(ROOT)}", flush=True)
                failures += [failure] if failure else []
        except KeyboardInterrupt:  # those that wait are not begun, and those that run need not be waited for
            for manager in [*KERNELS]:
                if manager.has_kernel:
                    os.kill(manager.provisioner.pid, signal.SIGKILL)
            raise
    if not failures:
        failures = manifest.write(names)
        print(*failures, sep="\n", end="\n" if failures else "")
    if ROOT / cover.CHAPTER in paths and not failures:
        cover.write(ROOT)
    return not failures


def check() -> bool:
    sys.path.insert(0, str(ROOT / "book/_ext"))
    from deepdive.book import contents, records

    paths = all_notebooks()
    found = [f"{path.relative_to(ROOT)}: {problem}" for path in paths for problem in problems(path)]
    found += cover.problems(ROOT)
    found += records.problems(records.read_book(ROOT)) + contents.stray_notebooks(ROOT)
    print("\n".join(found) or f"{len(paths)} notebooks: run in full, in normal form, with all their records")
    return not found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("run", "check"))
    parser.add_argument("names", nargs="*")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("--again", type=str.split, default=[])
    arguments = parser.parse_intermixed_args()  # options may stand between the names
    fine = check() if arguments.command == "check" else run(arguments.names, arguments.jobs, arguments.again)
    sys.exit(not fine)


if __name__ == "__main__":
    with in_one_line():
        main()
