"""Run the chapters, or the tests of the library, and leave out what has passed here and cannot end otherwise.

    outcomes.py notebooks [NAME ...] [-n JOBS]     chapters against their stored outputs
    outcomes.py library [-n JOBS]                  the files of lib/tests

A file that has passed leaves an entry in `.cache/ran`, named by a digest of all that its outcome rests on
(`ingredients`), which holds besides what it has read while it ran, such as tables and texts, with their digests. With
FRESH=1 in the environment everything runs. Entries are of this machine: a clone proves everything itself.

The tests of the library, all together, must reach each of its guards and defaults (`guards.py`).
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import platform
import re
import site
import sys
from collections import defaultdict
from collections.abc import Iterable
from contextlib import nullcontext
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import guards
import kernel_server
import notebooks
from smalltorch.experiments.closure import closure, digest, fingerprint, imported, meaning
from smalltorch.files import in_one_line, read_notebook, write_text

ROOT = Path(__file__).resolve().parents[2]
KEPT = Path(".cache/ran")
FOLDERS = (
    "lib",
    "lib/tests",
    "book",
    "book/_ext",
    "book/paper",
    "book/_tools",
    "book/_tools/tests",
)  # where tests look for modules
VERSION = "lib/smalltorch/__init__.py"  # says which version it is, and does nothing
# What runs a file and compares what comes out, besides what it imports.
TOOLS = (
    "nbreport.py",
    "kernel_server.py",
    "kernel_stub.py",
    "nbval.sanitize",
    "opened_files.py",
    "outcomes.py",
    "guards.py",
)
RUNNERS = (*(f"book/_tools/{name}" for name in TOOLS), "lib/tests/conftest.py")
NBVAL = [
    *("-p", "nbreport", "--nbval", "--nbval-current-env", "--nbval-cell-timeout=900", "--dist", "loadfile"),
    "--nbval-sanitize-with=book/_tools/nbval.sanitize",
]
SUITES = {
    "notebooks": NBVAL,
    "library": ["-p", "opened_files", "-m", "not deep and not processes"],
}  # pytest's arguments
CALLED = {"notebooks": ("chapter", "chapters"), "library": ("file of tests", "files of tests")}
REACH = "reach"  # begins a note on a guard or default of the library
LISTS = ("requirements.lock", "lib/weights.txt", ".pytest.ini")
# Variables that the libraries below read.
READ_BY_LIBRARIES = re.compile(
    r"(OMP|MKL|KMP|GOMP|OPENBLAS|BLIS|NUMEXPR|ATEN|TORCH|PYTORCH|ONEDNN|DNNL|CUDA|NVIDIA|PYTHON|LC|LANG|LANGUAGE|TZ"
    r"|MPL|SYMPY|MPMATH|SMALLTORCH|TRANSFORMERS|HF|TOKENIZERS|JAXTYPING|DASK|NODE|LD|MALLOC|GLIBC)(_.*|[A-Z]*)?"
)
# Of what all chapters read, the part that is one chapter's.
PARTS = {
    "book/claims.csv": lambda text, chapter: [
        row for row in csv.DictReader(io.StringIO(text)) if row["chapter"] == chapter
    ],
    "book/references.bib": lambda text, chapter: sorted(re.findall(r"^@\w+\{([^,\s]+)", text, re.MULTILINE)),
}


# -- what an outcome rests on ------------------------------------------------------------------------------------------


def ingredients(path: str, root: Path = ROOT) -> dict[str, object]:
    """What can change how a file ends, by kind, as far as it can be known before it runs; `key` is a digest of it."""
    file = root / path
    return {
        "cells and outputs" if file.suffix == ".ipynb" else "source": _content(file),
        "imports": fingerprint(used_by(path, root), root),
        "what runs it": fingerprint({used for name in RUNNERS for used in used_by(name, root)}, root),
        "lists": {name: meaning(root / name) for name in LISTS if (root / name).is_file()},
        "packages": _packages(),
        "Python": sys.version,
        "processor": _processor(),
        "environment": {name: value for name, value in os.environ.items() if READ_BY_LIBRARIES.fullmatch(name)},
    }


def key(path: str, root: Path = ROOT) -> str:
    return digest(ingredients(path, root))


def used_by(path: str, root: Path = ROOT) -> set[str]:
    """The files that a file uses, itself among them, by what imports tell; the sanitiser and other lists use none."""
    folders = (*FOLDERS, Path(path).parent.as_posix())  # pytest finds a test's neighbours
    return closure(path, root, folders) - {VERSION} if path.endswith((".py", ".ipynb")) else {path}


def _content(file: Path) -> str:
    """Of a notebook the code with its outputs, as prose changes no number; of tests all: some read themselves."""
    return notebook_code(file) if file.suffix == ".ipynb" else sha256(file.read_bytes()).hexdigest()


def notebook_code(file: Path) -> str:
    cells = read_notebook(file)["cells"]
    return digest([[cell["source"], cell["outputs"]] for cell in cells if cell["cell_type"] == "code"])


@cache
def _packages() -> list[str]:
    """The installed packages with their versions; torch's also says for which processor it was built."""
    return sorted(path.name for folder in site.getsitepackages() for path in Path(folder).glob("*.dist-info"))


@cache
def _processor() -> list[object]:
    cpus = Path("/proc/cpuinfo")
    lines = cpus.read_text(encoding="utf-8").splitlines() if cpus.exists() else []
    kinds = {line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))}
    return [platform.machine(), platform.processor(), os.cpu_count(), sorted(kinds)]


def read_digest(path: str, chapter: str, root: Path = ROOT) -> str | None:
    """A digest of what a file, or a folder, has for a chapter; None where nothing is."""
    file = root / path
    if file.is_dir():
        return digest(sorted(entry.name for entry in file.iterdir() if entry.name != "__pycache__"))
    if not file.is_file():
        return None
    if path in PARTS:
        return digest(PARTS[path](file.read_text(encoding="utf-8"), chapter))
    return sha256(file.read_bytes()).hexdigest()


# -- the entries -------------------------------------------------------------------------------------------------------


def stands(path: str, key: str, root: Path = ROOT) -> bool:
    """Whether the file has passed here, with all that it rests on as it is now."""
    read = _entry(key, root).get("read")
    return read is not None and all(read_digest(other, Path(path).stem, root) == then for other, then in read.items())


def _entry(key: str, root: Path) -> dict:
    entry = root / KEPT / key
    return json.loads(entry.read_text(encoding="utf-8")) if entry.is_file() else {}


def keep(path: str, key: str, notes: Iterable[str], root: Path = ROOT) -> str:
    """Keep that a file has passed, with what it has read; what speaks against keeping it, or nothing.

    `notes` are lines of `kernel_server.opened`. A program that was started reads what nobody notes. And what a chapter
    imports its code must tell, for only that is known where nothing has run: in a clone, to `affected.py`.
    """
    known, read, reached = used_by(path, root), {}, []
    for kind, _, other in (note.partition(" ") for note in sorted(notes)):
        if kind == REACH:
            reached.append(other)
            continue
        if kind == "start" and other != "uname":  # which Python asks for the name of the processor
            return f"{path} starts a program ({other})"
        if kind == "import" and (other in known or not other.endswith(".py") or other == VERSION):
            continue
        if kind == "import" and path.endswith(".ipynb"):
            return f"{path} uses {other}, which its imports do not tell"
        if kind != "start" and (now := read_digest(other, Path(path).stem, root)) is not None:
            read[other] = now
    (root / KEPT).mkdir(parents=True, exist_ok=True)
    write_text(root / KEPT / key, json.dumps({"read": read, "reached": reached}, indent=0))
    return ""


# -- a run -------------------------------------------------------------------------------------------------------------


class Outcomes:
    """A plugin of pytest that counts how the tests of each file end, and gathers what was noted while they ran."""

    def __init__(self) -> None:
        self.collected: dict[str, set[str]] = defaultdict(set)  # file -> tests
        self.passed: dict[str, set[str]] = defaultdict(set)
        self.spoilt: set[str] = set()
        self.notes: dict[str, set[str]] = defaultdict(set)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: object, ids: list[str]) -> None:
        for test in ids:
            self.collected[test.partition("::")[0]].add(test)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        file = report.nodeid.partition("::")[0]
        self.notes[file].update(getattr(report, "notes", ()))
        if report.when == "call" and report.passed:
            self.passed[file].add(report.nodeid)
        elif not report.passed:  # one that is skipped here may not be skipped elsewhere
            self.spoilt.add(file)

    def whole(self) -> list[str]:
        """The files of which each test has run and passed."""
        return [
            file for file, tests in self.collected.items() if self.passed[file] == tests and file not in self.spoilt
        ]


def run(suite: str, files: list[str], jobs: int, root: Path = ROOT) -> int:
    """Run the files that do not stand, and keep those that pass; pytest's exit status."""
    keys = {file: key(file, root) for file in files}
    fresh = os.environ.get("FRESH", "") not in ("", "0")
    standing = [] if fresh else [file for file in files if stands(file, keys[file], root)]
    waiting = [file for file in files if file not in standing]
    if standing:
        one, many = CALLED[suite]
        stand = f"1 {one} stands as it was" if len(standing) == 1 else f"{len(standing)} {many} stand as they were"
        print(f"{stand} run here, {len(waiting)} run now (FRESH=1 runs all)", flush=True)
    reached = {name for file in standing for name in _entry(keys[file], root)["reached"]}
    outcomes, status = Outcomes(), 0
    if waiting:
        status = _run(suite, waiting, keys, jobs, outcomes, root)
        notes = {note for notes in outcomes.notes.values() for note in notes}
        reached |= {note.removeprefix(f"{REACH} ") for note in notes if note.startswith(f"{REACH} ")}
    if status == 0 and suite == "library" and (missing := guards.unreached(reached, root)):
        print(*missing, sep="\n")
        return 1
    return status


def _run(suite: str, waiting: list[str], keys: dict[str, str], jobs: int, outcomes: Outcomes, root: Path) -> int:
    """Run these files, and keep those that pass; pytest's exit status."""
    with (
        kernel_server.server() if suite == "notebooks" else nullcontext(),
        TemporaryDirectory(prefix="opened-") as notes,
    ):
        os.environ[kernel_server.OPENED] = notes
        status = pytest.main(["-q", "-n", str(jobs), *SUITES[suite], *waiting], plugins=[outcomes])
        imported.cache_clear()  # files may have changed meanwhile
        for file in outcomes.whole():
            place = Path(notes, Path(file).stem)
            noted = place.read_text(encoding="utf-8").splitlines() if place.exists() else outcomes.notes[file]
            if key(file, root) == keys[file] and (why := keep(file, keys[file], noted, root)):
                print(f"not kept: {why}")
    return int(status)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("names", nargs="*")
    parser.add_argument("-n", "--jobs", type=int, default=2)
    arguments = parser.parse_intermixed_args()
    if arguments.suite == "notebooks":
        files = notebooks.find(arguments.names)
    else:
        files = sorted(ROOT.glob("lib/tests/**/test_*.py"))
    sys.exit(run(arguments.suite, [file.relative_to(ROOT).as_posix() for file in files], arguments.jobs))


if __name__ == "__main__":
    with in_one_line():
        main()
