"""Puts a fault into a copy of the book, runs the test that owns it, and says whether it was noticed.

A fault is an entry of a file in `faults/`, whose path there, without `.toml`, is that of the file which it breaks:
`faults/lib/smalltorch/norm.py.toml` holds the faults of `lib/smalltorch/norm.py`. Nothing here knows a module's name.
"""

import argparse
import configparser
import gc
import multiprocessing
import os
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[3]
FAULTS = Path("lib/tests/sabotage/faults")
COPIED = ("lib", "book")  # what a fault may be in; the rest is linked
PARALLEL = 2
SECONDS = 300  # a fault that makes its test hang is noticed
PYTEST = ["-x", "-q", "-c", os.devnull, "--rootdir=.", "-p", "no:cacheprovider", "--disable-plugin-autoload"]
NBVAL = [
    *("-p", "nbval.plugin", "--nbval", "--nbval-current-env", f"--nbval-cell-timeout={SECONDS}"),
    "--nbval-sanitize-with=book/_tools/nbval.sanitize",
]

# A test runs in a process forked from one that has imported these, but nothing of the book: half a second, not five.
# At its first step an optimiser of torch imports torch._dynamo.
PRELOAD = {
    "lib": ["pytest", "torch._dynamo", "sympy", "hypothesis", "jaxtyping", "beartype", "IPython"],
    "book": ["pytest", "nbformat", "yaml", "jupyter_book.sphinx"],
}
SERVER = multiprocessing.get_context("forkserver")


class Fault(NamedTuple):
    """In the file `target` the text `old`, which stands there once, becomes `new`; then `test` must fail.

    `target` is a path from the root; `test` a test as pytest names it from there, a file of tests, or a notebook.
    """

    target: str
    old: str
    new: str
    test: str

    def __str__(self):
        change = f"{self.old.strip()} → {self.new.strip() or 'nothing'}".replace("\n", " ↵ ")
        return f"{self.target}: {change}   [{self.test}]"

    def is_of(self, names: Iterable[str]) -> bool:
        """Whether one of the names is the target, its name without the ending, or that of a folder that it is in."""
        return not {self.target, *Path(self.target).parts, Path(self.target).stem}.isdisjoint(names)


def read(root: Path = ROOT) -> list[Fault]:
    """All faults, file by file."""
    found = []
    for path in sorted((root / FAULTS).rglob("*.toml")):
        target = path.relative_to(root / FAULTS).with_suffix("").as_posix()
        entries = tomllib.loads(path.read_text(encoding="utf-8"))["fault"]
        found += [Fault(target, **entry) for entry in entries]
    return found


def not_applied(fault: Fault, root: Path = ROOT) -> str:
    """Why the fault cannot be put in, or ""."""
    if Path(fault.target).parts[0] not in COPIED:
        return f"it lies outside of {' and '.join(COPIED)}"
    if not (root / fault.target).is_file():
        return "there is no such file"
    count = (root / fault.target).read_text(encoding="utf-8").count(fault.old)
    return "" if count == 1 else f"the text stands there {count} times"


def examine(fault: Fault, root: Path = ROOT) -> tuple[str, str]:
    """What became of the fault, "noticed" if all is well; and what there is to read about it."""
    if reason := not_applied(fault, root):
        return f"NOT APPLIED, {reason}", ""
    status, output = run([fault.test], root, fault)
    if status == 1:  # a test failed; whatever else goes wrong has another status
        return "noticed", ""
    return ("NOT NOTICED", "") if status == 0 else (f"TESTS DID NOT RUN (status {status})", output[-2000:])


def run(tests: list[str], root: Path = ROOT, fault: Fault | None = None) -> tuple[int, str]:
    """The exit status of pytest on a copy of the book with the fault, and its output."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder).resolve()
        copy(root, work / "copy", fault)
        process = SERVER.Process(target=forked, args=(work, tests))
        process.start()
        process.join(SECONDS)
        if process.exitcode is None:
            process.kill()
            process.join()
            return 1, "timed out"
        # The status is read from a file: when two threads look at one process, multiprocessing can lose its exit code.
        status, output = (
            path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
            for path in (work / "status", work / "output")
        )
        return int(status or 3), output


def copy(root: Path, to: Path, fault: Fault | None) -> None:
    """A copy of the folders that can be broken, links to all else, and the fault."""
    to.mkdir()
    for entry in root.iterdir():
        if entry.name in COPIED:
            shutil.copytree(entry, to / entry.name, ignore=shutil.ignore_patterns("__pycache__"))
        elif not entry.name.startswith("."):
            (to / entry.name).symlink_to(entry)
    if fault is not None:
        file = to / fault.target
        file.write_text(file.read_text(encoding="utf-8").replace(fault.old, fault.new), encoding="utf-8")


def forked(work: Path, tests: list[str]) -> None:
    """What the new process does; tests may start others, and these too import from the copy."""
    gc.freeze()  # what was imported before is not searched for garbage again and again
    os.chdir(work / "copy")
    with (work / "output").open("w", encoding="utf-8") as file:
        os.dup2(file.fileno(), 1), os.dup2(file.fileno(), 2)
    settings = configparser.ConfigParser()
    settings.read(ROOT / ".pytest.ini", encoding="utf-8")
    paths = [str(work / "copy" / path) for path in settings["pytest"]["pythonpath"].split()]
    sys.path[:0] = paths  # in front of an installed library
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    sys.dont_write_bytecode = True
    import pytest

    options = NBVAL if tests[0].endswith(".ipynb") else []
    status = pytest.main([*PYTEST, *options, *tests])
    (work / "status").write_text(str(int(status)), encoding="utf-8")


def report(faults: list[Fault], root: Path = ROOT) -> bool:
    """Print what became of each fault; whether all were noticed, by tests that pass without a fault."""
    by_folder: dict[Path, dict[str, None]] = {}
    for fault in faults:
        by_folder.setdefault(Path(fault.test.partition("::")[0]).parent, {})[fault.test] = None
    missed = broken = 0
    with ThreadPoolExecutor(PARALLEL) as pool:
        results = pool.map(lambda fault: examine(fault, root), faults)
        sound = [pool.submit(run, list(tests), root) for tests in by_folder.values()]
        for fault, (verdict, output) in zip(faults, results, strict=True):
            missed += verdict != "noticed"
            print("\n".join([f"{verdict}: {fault}", *output.splitlines()]), flush=True)
        for status, output in (done.result() for done in sound):
            if status != 0:
                broken += 1
                print(f"WITHOUT A FAULT the tests do not pass (status {status}):\n{output[-3000:]}")
    print(f"{len(faults) - missed} passed, {missed + broken} failed")
    return not missed and not broken


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """The command line; the exit status."""
    parser = argparse.ArgumentParser(
        prog="python lib/tests/sabotage",
        description="Put in one fault at a time; the test that owns it must fail.",
        epilog="A NAME is a module's, such as norm, a folder's, such as engine, lib or book, or a path from the root.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="only the faults of these; all where none is named")
    parser.add_argument("--but", nargs="+", metavar="NAME", default=[], help="all but the faults of these")
    given = parser.parse_args(arguments)
    every = read(root)
    for name in (*given.names, *given.but):
        if not any(fault.is_of([name]) for fault in every):
            parser.error(f"NAME: expected the name of a module or folder with faults, got {name!r}")
    faults = [f for f in every if (not given.names or f.is_of(given.names)) and not f.is_of(given.but)]
    folders = dict.fromkeys(Path(fault.target).parts[0] for fault in faults)
    SERVER.set_forkserver_preload(list(dict.fromkeys(name for folder in folders for name in PRELOAD.get(folder, ()))))
    os.environ |= {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    return 0 if report(faults, root) else 1
