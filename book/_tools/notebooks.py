"""Execute notebooks, and normalise and check their format.

notebooks.py run [-j N] [--again IDS] [NAME ...]   execute in place, then normalise
                                      (NAME: a path or a chapter; all if none;
                                      IDS: claims and figures that changed, and were looked at)
notebooks.py check [NAME ...]        complain about every notebook that is not as `run` leaves it
notebooks.py fix [NAME ...]          normalise what an editor has saved, without running it
"""

from __future__ import annotations

import argparse
import ast
import codecs
import copy
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from difflib import SequenceMatcher
from functools import partial
from hashlib import sha256
from itertools import count
from pathlib import Path

import nbformat
from nbformat import NotebookNode

import cover
import kernel_server
import pictures
import setup_cell
import solutions
from smalltorch.engine.schema import Record, read_records
from smalltorch.files import in_one_line, read_notebook, write_text

ROOT = Path(__file__).resolve().parents[2]
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
KEPT = ("tags", "mystnb")
FOLDED = ["hide-input"]
ID = re.compile(r"[A-Za-z][\w-]{0,63}", re.ASCII)  # what nbformat and HTML both take for an id
ANSI = re.compile(r"\x1b\[[\d;]*m")
LARGEST = 500_000  # bytes
TIMEOUT = 300  # seconds a cell
# Processor time of a chapter, which its metadata note as SECONDS, and its box says: how far the two may be apart.
SECONDS, ALIKE = "seconds", 2.0
CLOCK = "sum(__import__('os').times()[:4])"  # of a kernel and its children, each with what its system did
# What says what was shown; a chapter that made it by hand could say anything.
MADE_BY_CHECKS = {"ClaimTable", "Closing", "Evidence", "Record", "bundle", "schema", "_left"}
MADE_BY_CHECKS |= {"_executed", "_stated", "_failed", "_begun", "_promised", "_settled"}
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
    return nbformat.v4.to_notebook(read_notebook(path))


def text_of(notebook: NotebookNode) -> str:
    return nbformat.v4.writes(notebook).rstrip("\n") + "\n"


def without_paths(text: str) -> str:
    """Text without what differs from machine to machine: temporary files of cells, and where the book lies."""
    text = re.sub(r"[^\s'\"]*ipykernel_\d+[/\\]\d+\.py", "cell", text)
    return text.replace(f"{ROOT}/", "")


def normalise(notebook: NotebookNode, root: Path = ROOT) -> NotebookNode:
    """The canonical form: fixed metadata, an id for each cell, all counts 1, the setup cell in place, no local paths.

    Ids stay as they are and counts say nothing of the order, so a new cell changes no other one.
    """
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    noted = {SECONDS: notebook.metadata[SECONDS]} if SECONDS in notebook.metadata else {}
    notebook.metadata = nbformat.from_dict(METADATA | noted)
    notebook.cells = [cell for cell in notebook.cells if cell.source.strip()]
    for cell in notebook.cells:
        cell.source = "\n".join(line.rstrip() for line in cell.source.strip("\n").split("\n"))
        cell.metadata = nbformat.from_dict({key: cell.metadata[key] for key in KEPT if key in cell.metadata})
        if is_setup(cell):
            cell.source = setup_cell.source(setup_cell.release(root))
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


def names_in(source: str) -> set[str]:
    """The names that code uses or imports, also as attributes and as parts of modules' names."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        found |= {getattr(node, field, None) for field in ("id", "attr")}  # type: ignore[arg-type]
        for alias in node.names if isinstance(node, ast.Import | ast.ImportFrom) else ():
            found |= {*alias.name.split("."), *(getattr(node, "module", None) or "").split(".")}
    return found - {None, ""}


def problems(path: Path, root: Path = ROOT) -> list[str]:
    """What is wrong with a notebook's form, one line each."""
    notebook = read(path)
    text = path.read_text(encoding="utf-8")
    found = lapses(notebook, root)
    if len(text.encode()) > LARGEST:
        found.append(f"it has {len(text.encode()) // 1000} kB; {LARGEST // 1000} kB are allowed")
    if not found and text != text_of(normalise(notebook, root)):
        name = path.stem
        found.append(
            f"it is not in normal form: make form-fix NB={name} (make execute NB={name} if code or outputs changed)"
        )
    return found


def lapses(notebook: NotebookNode, root: Path = ROOT) -> list[str]:
    """What only its author can mend, one line each."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    found = []
    if [number for number, cell in enumerate(code) if is_setup(cell)] != [0]:
        found.append("its first code cell, and no other, must carry the tag 'setup'")
    elif code[0].source != setup_cell.source(setup_cell.release(root)):
        found.append("its setup cell is not the one in book/_tools/setup_cell.py")
    found += [f"the picture of {name} is not what its cell drew" for name in pictures.exchanged(notebook)]
    found += slow(notebook) + solutions.problems(notebook)
    for number, cell in enumerate(code, start=1):
        if cell.execution_count is None:
            found.append(f"code cell {number} was never run")
        if any(output.output_type == "error" for output in cell.outputs):
            found.append(f"code cell {number} ends in an error")
        if any(output.get("name") == "stderr" for output in cell.outputs):
            found.append(f"code cell {number} gives a warning, or writes to stderr")
        if cell.source.rstrip().endswith(";"):
            found.append(f"code cell {number} ends with ';', which hides nothing under nbval: assign to _ instead")
        if made := sorted(MADE_BY_CHECKS & names_in(cell.source)) or re.findall(r"vnd\.smalltorch\.\w+", cell.source):
            found.append(f"code cell {number} names {', '.join(made)}: records are made by `chapter.settle` only")
        if re.search(r"(?i)#\s*nbval[-_]|^nbval-", cell.source) or any(
            tag.startswith("nbval-") or tag == "raises-exception" for tag in cell.metadata.get("tags", [])
        ):
            found.append(f"code cell {number} asks nbval to look away")
    return found


def slow(notebook: NotebookNode) -> list[str]:
    """A line, if the box of a chapter says another time than the one that was measured."""
    box = re.search(r"^- \*\*It runs\*\* in about (\d+) s", "\n".join(cell.source for cell in notebook.cells), re.M)
    if not box or SECONDS not in notebook.metadata:
        return []
    said, took = int(box[1]), notebook.metadata[SECONDS]
    return (
        []
        if abs(said - took) < 5 or said / ALIKE <= took <= said * ALIKE
        else [f"its box says {said} s, and {took} s were measured"]
    )


def timed(notebook: NotebookNode, took: float) -> None:
    """Note how many seconds a chapter took; what differs by a second or a quarter only is left as it was."""
    was = notebook.metadata.get(SECONDS, -1)
    if abs(took - was) > max(1, was / 4):
        notebook.metadata[SECONDS] = round(took)


def fix(names: list[str], root: Path = ROOT) -> bool:
    """Normalise notebooks without running them, and print what else is wrong with them; that is not mended."""
    found = []
    for path in find(names, root):
        data = path.read_bytes()
        if data.startswith(codecs.BOM_UTF8):
            write_text(path, data.decode("utf-8-sig"))
        notebook = read(path)
        if wrong := lapses(notebook, root):
            found += [f"{path.relative_to(root)}: {problem}" for problem in wrong]
            continue
        restore(notebook, committed(path, root))
        if (text := text_of(normalise(notebook, root))).encode() != path.read_bytes():
            write_text(path, text)
            print(f"{path.relative_to(root)}: in normal form")
    print("\n".join(found) or "notebooks: in normal form")
    return not found


def committed(path: Path, root: Path) -> NotebookNode:
    """A notebook as it was committed last; without cells where it was not."""
    git = ["git", "-C", root, "show", f"HEAD:./{path.relative_to(root).as_posix()}"]
    shown = subprocess.run(git, capture_output=True, check=False)
    return nbformat.v4.reads(shown.stdout.decode() if shown.returncode == 0 else '{"cells": [], "metadata": {}}')


def restore(notebook: NotebookNode, before: NotebookNode) -> None:
    """Give cells that say what they said their ids back, and outputs that show what they showed all that they had."""
    sources = [[(cell.cell_type, cell.source.strip()) for cell in one.cells] for one in (before, notebook)]
    for old, new, size in SequenceMatcher(None, *sources, autojunk=False).get_matching_blocks():
        for was, cell in zip(before.cells[old : old + size], notebook.cells[new : new + size], strict=True):
            if not ID.fullmatch(cell.get("id", "")):
                cell.id = was.id
            if cell.cell_type == "code" and _shown(cell) == _shown(was):
                cell.outputs = was.outputs


def _shown(cell: NotebookNode) -> str:
    """What the outputs of a cell show, whatever is noted beside it."""
    return json.dumps([[out.output_type, out.get("data"), out.get("text")] for out in cell.outputs], sort_keys=True)


def records_in(notebook: NotebookNode) -> list[Record]:
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return [record for output in outputs for record in read_records(output.get("data", {}))]


def failure(notebook: NotebookNode) -> str:
    """Which code cell of a notebook ends in an error, in which of its lines, and in which error; in one line."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    errors = [(n, out) for n, cell in enumerate(code, start=1) for out in cell.outputs if out.output_type == "error"]
    number, error = errors[0]
    line = re.search(r"Cell In\[\d+\], (line \d+)", ANSI.sub("", "\n".join(error.traceback)))
    said = re.sub(r" \(\d+\.py, line \d+\)$", "", " ".join(ANSI.sub("", error.evalue).split()))
    return f"code cell {number} failed{f' in {line[1]}' if line else ''}: {error.ename}: {said}"


def execute(path: Path, again: Collection[str] = ()) -> str:
    """Run a notebook with this Python, and store it with its outputs only if every cell ran.

    Nor is it stored if a picture shows something else than the stored one, or a record says or rests on something else,
    unless its name is among those that were looked at again.
    """
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, DeadKernelError
    from nbval.kernel import CURRENT_ENV_KERNEL_NAME

    notebook = normalise(read(path))
    stored = copy.deepcopy(notebook)
    notebook.cells.append(nbformat.v4.new_code_cell(CLOCK))
    manager = AsyncKernelManager(
        kernel_name=CURRENT_ENV_KERNEL_NAME, kernel_spec_manager=kernel_server.specifications()
    )
    KERNELS.add(manager)
    client = NotebookClient(
        notebook, km=manager, timeout=TIMEOUT, record_timing=False, store_widget_state=False, coalesce_streams=True
    )
    try:
        client.execute(cwd=str(path.parent), stderr=subprocess.DEVNULL, cleanup_kc=True)
    except CellExecutionError:
        return f"{path.relative_to(ROOT)}: not stored, {failure(notebook)}"
    except DeadKernelError:
        return f"{path.relative_to(ROOT)}: not stored, its kernel was killed; is there enough memory?"
    finally:
        KERNELS.remove(manager)
    timed(notebook, float(notebook.cells.pop().outputs[0].data["text/plain"]))
    pictures.note(notebook)
    changed = pictures.changes(stored, notebook, records_in(stored), records_in(notebook))
    if changed.keys() - {*again}:
        lines = [f"{path.relative_to(ROOT)}: not stored, look at what has changed:"]
        lines += [f"  {name}: {change}" for name, change in changed.items()]
        return "\n".join([*lines, f'If all of this is right: make execute NB={path.stem} AGAIN="{" ".join(changed)}"'])
    write_text(path, text_of(normalise(notebook)))
    return ""


def run(names: list[str], jobs: int, again: Collection[str] = ()) -> bool:
    paths = find(names)
    with kernel_server.server(), ThreadPoolExecutor(jobs) as pool:
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
    if ROOT / cover.CHAPTER in paths and not failures:
        cover.write(ROOT)
    return not failures


def check(names: list[str]) -> bool:
    """Print what is wrong with the form of notebooks, and with the records of the whole book."""
    sys.path.insert(0, str(ROOT / "book/_ext"))
    from deepdive.book import contents, records

    paths = find(names)
    found = [f"{path.relative_to(ROOT)}: {problem}" for path in paths for problem in problems(path)]
    found += cover.problems(ROOT)
    found += records.problems(records.read_book(ROOT)) + contents.stray_notebooks(ROOT)
    print("\n".join(found) or f"{len(paths)} notebooks: run in full, in normal form, with all their records")
    return not found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("run", "check", "fix"))
    parser.add_argument("names", nargs="*")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("--again", type=str.split, default=[])
    arguments = parser.parse_intermixed_args()  # options may stand between the names
    names = arguments.names
    if arguments.command == "run":
        sys.exit(not run(names, arguments.jobs, arguments.again))
    sys.exit(not (check if arguments.command == "check" else fix)(names))


if __name__ == "__main__":
    with in_one_line():
        main()
