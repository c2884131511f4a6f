"""Run the cases of an experiment as Dask tasks; each result is saved at once, so that a stopped run can resume.

    python -m smalltorch.experiments.NAME                               # on this machine's cores
    python -m smalltorch.experiments.NAME --scheduler tcp://HOST:PORT   # on a cluster of your own
    python -m smalltorch.experiments.NAME --confirm                     # one case again, against the stored table

An experiment is a function from a case to rows. What is done is kept in a folder beside the table, so that a run which
was stopped or killed goes on where it was; when all is done, the table is written in the order of the cases.

A table's head has two fingerprints of the code that made it: of the experiment, that is its script and its cases, and
of the library's modules that it imports, directly or not. Both are of syntax trees, without comments and docstrings.
A table whose experiment has changed must be made anew. Where the library has changed, one case shows that the numbers
are the same: `--confirm` computes it and renews the second fingerprint. A training multiplies differences of rounding,
so that on another processor a seed may end elsewhere; then the seeds of the case are compared as a sample.

What was computed by other code goes into no table: a kept case is named by the fingerprints, and each worker says with
which code it computes.
"""

import argparse
import ast
import json
import logging
import math
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

import smalltorch
from smalltorch.experiments.closure import closure, digest, fingerprint, tree
from smalltorch.experiments.table import FOLDER, Row, head_of, read, renewed, store
from smalltorch.files import place, write_text

Case = Mapping[str, Any]  # keyword arguments of an experiment's `rows`
LIBRARY = Path(smalltorch.__file__).resolve().parents[1]
# They keep the numbers, or name the version, and do not make them.
STORING = {
    f"smalltorch/{name}.py"
    for name in (
        "__init__",
        "experiments/__init__",
        "experiments/closure",
        "experiments/runner",
        "experiments/table",
        "files",
    )
}
PATIENCE = "10s"  # for a scheduler to answer
GO_ON = "then the same command goes on with what is missing"


class Stopped(Exception):
    """Why a run cannot go on, and what to do, in one line."""


@dataclass(frozen=True)
class Experiment:
    """What is run, and where its table goes.

    `module`: the name of the module whose function `rows` takes a case, as keyword arguments, and gives its lines.
    `keys`: the columns that tell the lines apart; the others hold what was measured.
    `seeds`: what the table's head says of them. `tolerance`: by how much, relative to its size, a number may differ
    when it is computed on another machine. `given`: what all cases get besides and no number depends on, such as a
    folder. `again`: the cases that `--confirm` may compute, where these are not all.
    """

    module: str
    columns: Sequence[str]
    keys: Sequence[str]
    cases: Sequence[Case]
    seeds: str
    tolerance: float
    options: argparse.Namespace
    given: Case = field(default_factory=dict)
    again: Sequence[Case] | None = None

    @property
    def name(self) -> str:
        return self.module.rpartition(".")[2]

    @property
    def out(self) -> Path:
        return self.options.out or FOLDER / f"{self.name}.csv"


def parser(description: str) -> argparse.ArgumentParser:
    """The options that every long run has; an experiment adds its own."""
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--out", type=Path, help="the table, in place of the one beside the script")
    options.add_argument("--scheduler", metavar="ADDRESS", help="of Dask, such as tcp://HOST:PORT; else this machine")
    options.add_argument("--workers", type=int, help="processes on this machine, in place of one for each core")
    options.add_argument("--confirm", action="store_true", help="compute one case of the stored table again")
    return options


def run(experiment: Experiment) -> None:
    """Make the table, or with `--confirm` compare one of its cases.

    Raises:
        ValueError: if the numbers of a confirmed case differ, or its experiment has changed.
        OSError: where nothing can be written.
        SystemExit: with a line that says what to do, where no scheduler answers, it or its workers die, or these have
            other code. What was done by then is kept.
    """
    if experiment.options.confirm:
        confirm(experiment)
        return
    try:
        _make(experiment)
    except Stopped as why:
        sys.exit(str(why))


def _make(experiment: Experiment) -> None:
    begun, out, prints = time.monotonic(), place(experiment.out), fingerprints(experiment)
    if out.exists():
        print(f"{out} exists and will be replaced when all cases are done", file=sys.stderr, flush=True)
    kept = out.with_name(f"{out.stem}.unfinished")
    kept.mkdir(exist_ok=True)
    files = [kept / f"{digest([prints, case])}.json" for case in experiment.cases]
    missing = [k for k, file in enumerate(files) if not file.exists()]
    if done := len(files) - len(missing):
        print(f"{done} of {len(files)} cases were done before", file=sys.stderr, flush=True)
    for k, lines in _computed(experiment, missing):
        write_text(files[k], json.dumps(lines))
    lines = [line for file in files for line in json.loads(file.read_text(encoding="utf-8"))]
    minutes = f"{(time.monotonic() - begun) / 60:.0f} minutes" + (" for what was missing" if done else "")
    store(out, experiment.module, experiment.seeds, minutes, experiment.columns, lines, prints)
    shutil.rmtree(kept)


def with_code(module: str, case: Case) -> tuple[str, list[list[str]]]:
    """For a worker: what it computes with, as `code_of` says it before the module is imported; and the lines."""
    return _code_here(module), rows_of(module, case)


def rows_of(module: str, case: Case) -> list[list[str]]:
    """The lines of one case, on one thread, as text. A worker imports the module; names and numbers travel, no code."""
    torch.set_num_threads(1)
    rows: Callable[..., Iterable[Row]] = import_module(module).rows
    return [[str(entry) for entry in line] for line in rows(**case)]


def confirm(experiment: Experiment) -> None:
    """Compute one case of the stored table again, and renew the table's fingerprint of the library."""
    path = experiment.out
    now, then = fingerprints(experiment), head_of(path)
    if then.get("experiment") != now["experiment"]:
        raise ValueError(f"{path.name}: its experiment has changed; make the table anew")

    def named(line: Mapping[str, str]) -> tuple[str, ...]:
        return tuple(line[key] for key in experiment.keys)

    lines = {named(line): list(line.values()) for line in read(path)}
    cases = experiment.cases if experiment.again is None else experiment.again
    case = cases[int(digest(now), 16) % len(cases)]
    found = rows_of(experiment.module, {**case, **experiment.given})
    then_found = [lines.get(named(dict(zip(experiment.columns, new, strict=True))), []) for new in found]
    parted = [
        (new, old)
        for new, old in zip(found, then_found, strict=True)
        if len(new) != len(old) or not all(_close(*pair, experiment.tolerance) for pair in zip(new, old, strict=True))
    ]
    if parted and not _same_sample(found, then_found, experiment.tolerance):
        raise ValueError(f"{path.name}: a case gives {parted[0][0]}, and the table has {parted[0][1]}; make it anew")
    renewed(path, now)
    how = f"as stored on average; {len(parted)} of them part, by rounding" if parted else "as stored"
    few = f", one of the {len(cases)} of {len(experiment.cases)} cases that can be computed here,"
    which = f"{dict(case)}{few if len(cases) < len(experiment.cases) else ''}"
    print(f"{path.name}: the {len(found)} lines of {which} are {how}")


def _same_sample(new: Sequence[Sequence[str]], old: Sequence[Sequence[str]], tolerance: float) -> bool:
    """Whether each column is the same line by line, or its differences have a mean within three standard errors of 0.

    Fewer than eight lines are no sample.
    """
    if len(new) < 8 or any(len(a) != len(b) for a, b in zip(new, old, strict=True)):
        return False
    for column in zip(zip(*new, strict=True), zip(*old, strict=True), strict=True):
        pairs = list(zip(*column, strict=True))
        if not all(_close(*pair, tolerance) for pair in pairs):
            gaps = torch.tensor([float(a) - float(b) for a, b in pairs], dtype=torch.float64)
            if not gaps.mean().abs() <= 3 * gaps.std() / len(gaps) ** 0.5:
                return False
    return True


def fingerprints(experiment: Experiment) -> dict[str, str]:
    """Of the experiment (its script and its cases) and of the library that it uses."""
    cases = [dict(case) for case in experiment.cases]
    script, library = _code(experiment.module)
    return {"experiment": digest([script, list(experiment.columns), cases])[:16], "library": library}


def code_of(module: str) -> str:
    """A digest of the code that computes: of the module, and of the library that it uses."""
    return digest(_code(module))


_code_here = cache(code_of)  # a worker goes on with what it has imported, whatever becomes of the files


def _code(module: str) -> tuple[Any, str]:
    script = tree(ast.parse(_file(module).read_text(encoding="utf-8")))
    return script, fingerprint(used_by(module), LIBRARY)[:16]


def used_by(module: str) -> list[str]:
    """The files of smalltorch that a module imports, directly or not, but for those that store tables."""
    own = _file(module).as_posix()
    return sorted(closure(own, LIBRARY, ("",)) - STORING - {own, own.removeprefix(f"{LIBRARY}/")})


def _file(module: str) -> Path:
    spec = find_spec(module)
    if spec is None or spec.origin is None or not spec.has_location:  # a built-in one has a name only
        raise ValueError(f"module: expected one with a file, got {module}")
    return Path(spec.origin).resolve()


# -- tasks -------------------------------------------------------------------------------------------------------------


def _computed(experiment: Experiment, missing: Sequence[int]) -> Iterable[tuple[int, list[list[str]]]]:
    """The lines of the missing cases, as they are done; progress goes to standard error.

    Raises:
        Stopped: where no scheduler answers, it or its workers die, or these have other code.
    """
    if not missing:
        return
    from distributed import CancelledError, Client, KilledWorker, LocalCluster, as_completed  # only a long run needs it

    options, begun, code = experiment.options, time.monotonic(), code_of(experiment.module)
    here = {
        **{"n_workers": options.workers, "threads_per_worker": 1},
        **{"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"},
    }
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # its tracebacks would bury the line of Stopped
    task = None
    try:
        local = nullcontext(options.scheduler) if options.scheduler else LocalCluster(**here)
        with local as cluster, Client(cluster, timeout=PATIENCE) as client:
            whole = {k: {**experiment.cases[k], **experiment.given} for k in missing}
            tasks = {client.submit(with_code, experiment.module, whole[k], pure=False): k for k in missing}
            workers = len(client.scheduler_info(n_workers=-1)["workers"])
            for done, task in enumerate(as_completed(tasks), 1):
                theirs, lines = task.result()
                if theirs != code:
                    raise Stopped(f"a worker has other code than this run began with: give it this code; {GO_ON}")
                yield tasks[task], lines
                left = (time.monotonic() - begun) / done * (len(tasks) - done)
                running = min(workers, len(tasks) - done)
                print(f"{done} of {len(tasks)} done, {running} running, about {math.ceil(left / 60)} minutes left",
                      file=sys.stderr, flush=True)  # fmt: skip
    except KilledWorker:
        case = dict(experiment.cases[tasks[task]])
        raise Stopped(f"each worker that was given {case} died: see whether its memory suffices; {GO_ON}") from None
    except (CancelledError, OSError) as error:
        where = options.scheduler or "this machine"
        raise Stopped(f"the scheduler of {where} is gone or does not answer: start it again; {GO_ON}") from error


def _close(new: str, old: str, tolerance: float) -> bool:
    try:
        return math.isclose(float(new), float(old), rel_tol=tolerance, abs_tol=tolerance)
    except ValueError:
        return new == old
