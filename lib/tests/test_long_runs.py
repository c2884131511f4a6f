"""The runner of the long runs: it keeps what is done, goes on after kills, and notices code that has changed."""

import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from smalltorch.experiments import (
    changed_images,
    depth_without_skips,
    eviction,
    few_labels,
    first_steps,
    forecasts,
    past_length,
    placement,
    position_codes,
    recall,
    runner,
    stand_ins,
    stopped_pairs,
)
from smalltorch.experiments.runner import confirm, fingerprints, run, used_by
from smalltorch.experiments.table import FOLDER, head_of, read

TOY = '''
"""Squares."""
import os
import time
from collections.abc import Sequence
from pathlib import Path

from smalltorch.experiments import runner
from smalltorch.experiments.runner import Experiment

COLUMNS = ("n", "square")


def rows(n, pause, fatal):
    """One line."""
    with open(Path(__file__).with_suffix(".log"), "a") as log:
        log.write(f"{n}\\n")
    time.sleep(pause)
    if n == fatal and not Path(__file__).with_suffix(".died").exists():
        Path(__file__).with_suffix(".died").touch()
        os._exit(1)
    yield n, n**2  # what is measured


def experiment(arguments: Sequence[str] | None = None) -> Experiment:
    parser = runner.parser("Squares.")
    parser.add_argument("--count", type=int, default=3)
    parser.add_argument("--pause", type=float, default=0.0)
    parser.add_argument("--fatal", type=int, default=-1)
    options = parser.parse_args(arguments)
    cases = [{"n": n, "pause": options.pause, "fatal": options.fatal} for n in range(options.count)]
    return Experiment("toy", COLUMNS, ("n",), cases, "none", tolerance=1e-6, options=options)


if __name__ == "__main__":
    runner.run(experiment())
'''


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A module `toy`, which worker processes find as well; its folder."""
    (tmp_path / "toy.py").write_text(TOY)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    monkeypatch.setattr(sys, "argv", ["toy.py"])
    yield tmp_path
    sys.modules.pop("toy", None)


def experiment(folder: Path, *options: str):
    import toy

    return toy.experiment(["--out", str(folder / "table.csv"), "--workers", "1", *options])


def asked(folder: Path) -> list[str]:
    return (folder / "toy.log").read_text().split()


@pytest.mark.processes
def test_a_run_makes_a_table_and_leaves_nothing_else(toy, capfd):
    made = experiment(toy)
    run(made)
    assert read(toy / "table.csv") == [{"n": str(n), "square": str(n**2)} for n in range(3)]
    head = head_of(toy / "table.csv")
    assert head["seeds"] == "none" and head["lines"] == "3" and head["experiment"] == fingerprints(made)["experiment"]
    assert not (toy / "table.unfinished").exists()
    said = capfd.readouterr().err
    assert "3 of 3 done, 0 running, about 0 minutes left" in said


@pytest.mark.processes
def test_a_worker_that_dies_loses_nothing(toy):
    run(experiment(toy, "--fatal", "1"))
    assert [line["square"] for line in read(toy / "table.csv")] == ["0", "1", "4"] and (toy / "toy.died").exists()


@pytest.mark.processes
def test_a_run_that_was_killed_goes_on_where_it_was(toy):
    command = [sys.executable, "-m", "toy", "--out", "table.csv", "--workers", "1", "--pause", "0.5"]
    running = subprocess.Popen(command, cwd=toy, start_new_session=True, stderr=subprocess.DEVNULL)
    kept = toy / "table.unfinished"
    while not (kept.exists() and [file for file in kept.iterdir() if file.suffix == ".json"]):
        assert running.poll() is None
        time.sleep(0.05)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    assert not (toy / "table.csv").exists()
    before = asked(toy)
    ended = subprocess.run(command, cwd=toy, check=True, capture_output=True, text=True)
    assert [line["square"] for line in read(toy / "table.csv")] == ["0", "1", "4"]
    assert "of 3 cases were done before" in ended.stderr and "0" not in asked(toy)[len(before) :]


@pytest.mark.processes
def test_a_scheduler_that_does_not_answer_is_an_error(toy, monkeypatch):
    monkeypatch.setattr(runner, "PATIENCE", "1s")
    with pytest.raises(SystemExit, match="^the scheduler of tcp://127.0.0.1:9 is gone or does not answer: start it "):
        run(experiment(toy, "--scheduler", "tcp://127.0.0.1:9"))


DASK = (sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--no-dashboard", "--port")
WORKER = (sys.executable, "-m", "distributed.cli.dask_worker", "--no-nanny", "--nthreads", "1", "--no-dashboard")


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def until(condition, running):
    while not condition():
        assert running.poll() is None
        time.sleep(0.05)


@pytest.fixture
def cluster(toy):
    """A scheduler: its address, its process, and what starts a worker for it in a folder, whose modules it finds."""
    address, begun = f"tcp://127.0.0.1:{(port := free_port())}", []

    def start(command, folder):
        begun.append(subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        return begun[-1]

    yield address, start([*DASK, str(port)], toy), lambda folder: start([*WORKER, address], folder)
    for process in begun:
        process.kill()
        process.wait()


@pytest.mark.processes
def test_where_the_scheduler_dies_the_last_line_says_what_to_do(toy, cluster):
    address, scheduler, worker = cluster
    worker(toy)
    command = [sys.executable, "-m", "toy", "--out", "table.csv", "--pause", "0.5", "--count", "20"]
    running = subprocess.Popen([*command, "--scheduler", address], cwd=toy, stderr=subprocess.PIPE, text=True)
    until(lambda: list(toy.glob("table.unfinished/*.json")), running)
    scheduler.kill()
    said = running.communicate(timeout=60)[1].splitlines()
    assert running.returncode == 1 and "Traceback" not in "".join(said)
    assert said[-1] == (
        f"the scheduler of {address} is gone or does not answer: start it again; "
        "then the same command goes on with what is missing"
    )
    assert list(toy.glob("table.unfinished/*.json"))


@pytest.mark.processes
def test_a_worker_that_has_other_code_is_not_believed(toy, cluster):
    """As where the workers of a cluster have another version, or the code changes while a run goes on."""
    address, _, worker = cluster
    (toy / "older").mkdir()
    (toy / "older/toy.py").write_text(TOY.replace("n, n**2", "n, n**3"))
    worker(toy / "older")
    with pytest.raises(SystemExit, match="a worker has other code than this run began with: give it this code; then"):
        run(experiment(toy, "--scheduler", address))
    assert not list(toy.glob("table.unfinished/*.json")) and not (toy / "table.csv").exists()


@pytest.mark.processes
def test_a_case_that_kills_its_workers_is_named_in_the_last_line(toy, monkeypatch):
    (toy / "toy.py").write_text(TOY.replace(' and not Path(__file__).with_suffix(".died").exists()', ""))
    with pytest.raises(SystemExit, match=r"^each worker that was given \{'n': 1, .*\} died: see whether its memory "):
        run(experiment(toy, "--fatal", "1", "--count", "2"))


# --- what was kept, without a scheduler -------------------------------------------------------------------------------


@pytest.fixture
def alone(toy, monkeypatch):
    """The cases are computed here, until one is fatal."""

    def computed(made, missing):
        for k in missing:
            if made.cases[k]["n"] == made.options.fatal:
                raise KeyboardInterrupt
            yield k, runner.rows_of("toy", made.cases[k])

    monkeypatch.setattr(runner, "_computed", computed)
    (toy / "toy.died").touch()  # what is fatal is so no more
    return toy


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("4\n", "5\n"), r"table.csv: a case gives \['2', '4'\], and the table has \['2', '5'\]; make it anew"),
        (("experiment: ", "experiment: 0"), "table.csv: its experiment has changed; make the table anew"),
    ],
)
def test_a_table_of_other_numbers_or_of_another_experiment_is_not_confirmed(alone, change, message):
    run(made := experiment(alone, "--count", "3"))
    path = alone / "table.csv"
    confirm(replace(made, again=made.cases[2:]))
    path.write_text(path.read_text().replace(*change))
    with pytest.raises(ValueError, match=f"^{message}"):
        confirm(replace(made, again=made.cases[2:]))


class Cancelled(Exception):
    pass


class Killed(Exception):
    pass


@pytest.mark.parametrize(
    ("outcome", "line"),
    [
        (Cancelled("scheduler-connection-lost"), "the scheduler of tcp://there:1 is gone or does not answer: start it"),
        (OSError("closed"), "the scheduler of tcp://there:1 is gone or does not answer: start it again"),
        (Killed("4 workers"), r"each worker that was given \{'n': 0, .*\} died: see whether its memory suffices"),
        (("other code", [["0", "0"]]), "a worker has other code than this run began with: give it this code"),
        (None, ""),
    ],
)
def test_what_ends_a_run_is_said_in_its_last_line(toy, monkeypatch, outcome, line):
    """Dask's part is played by these: what becomes of a case, and how it is told."""

    class Task:
        def result(self):
            if isinstance(outcome, Exception):
                raise outcome
            return outcome or runner.with_code("toy", {"n": 0, "pause": 0.0, "fatal": -1})

    class Client(nullcontext):
        def __init__(self, address, timeout):
            super().__init__(self)
            assert (address, timeout) == ("tcp://there:1", runner.PATIENCE)

        submit = staticmethod(lambda *given, pure: Task())
        scheduler_info = staticmethod(lambda n_workers: {"workers": [1]})

    names = {"CancelledError": Cancelled, "KilledWorker": Killed, "Client": Client, "LocalCluster": None}
    monkeypatch.setitem(sys.modules, "distributed", SimpleNamespace(**names, as_completed=list))
    made = experiment(toy, "--scheduler", "tcp://there:1", "--count", "1")
    if line:
        with pytest.raises(SystemExit, match=f"^{line}.*; then the same command goes on with what is missing$"):
            run(made)
        assert not list(toy.glob("table.unfinished/*")) and not (toy / "table.csv").exists()
    else:
        run(made)
        assert read(toy / "table.csv") == [{"n": "0", "square": "0"}]


def test_what_other_code_has_kept_goes_into_no_table(alone, monkeypatch):
    """Neither of another experiment nor of another library; what the same code has kept does."""
    with pytest.raises(KeyboardInterrupt):
        run(experiment(alone, "--fatal", "2"))
    source = (alone / "toy.py").read_text()
    (alone / "toy.py").write_text(source.replace("n, n**2", "n, n**3"))
    sys.modules.pop("toy")
    with pytest.raises(KeyboardInterrupt):
        run(experiment(alone, "--fatal", "2"))
    assert asked(alone) == ["0", "1"] * 2
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(runner, "fingerprint", lambda paths, root: "another library")
        run(experiment(alone, "--fatal", "2"))
    assert asked(alone) == ["0", "1"] * 3
    with pytest.raises(KeyboardInterrupt):
        run(experiment(alone, "--fatal", "2"))
    assert asked(alone) == ["0", "1"] * 3
    made = experiment(alone, "--fatal", "2")
    made.options.fatal = -1  # the cases stay the same
    run(made)
    assert asked(alone)[6:] == ["2"] and [line["square"] for line in read(alone / "table.csv")] == ["0", "1", "8"]


@pytest.mark.processes
def test_a_case_confirms_the_table_and_its_library(toy, capsys):
    made = experiment(toy)
    run(made)
    path = toy / "table.csv"
    path.write_text(path.read_text().replace(fingerprints(made)["library"], "0" * 16))
    confirm(made)
    assert head_of(path)["library"] == fingerprints(made)["library"] and len(read(path)) == 3
    assert "are as stored" in capsys.readouterr().out


@pytest.mark.processes
def test_what_all_cases_are_given_changes_no_fingerprint(toy, capsys):
    """Such as a folder; and where some cases cannot be computed, one of the others confirms the table."""
    made = experiment(toy)
    given = {"pause": 0.0, "fatal": -1}
    cases = [{"n": case["n"]} for case in made.cases]
    apart, elsewhere = (
        replace(made, cases=cases, again=cases[2:], given=given | more) for more in ({}, {"pause": 0.1})
    )
    assert fingerprints(apart) == fingerprints(elsewhere) != fingerprints(made)
    run(apart)
    assert [line["square"] for line in read(toy / "table.csv")] == ["0", "1", "4"]
    for once in (apart, elsewhere):
        confirm(once)
        assert asked(toy)[3:] == ["2"] * (1 if once is apart else 2)
        said = "the 1 lines of {'n': 2}, one of the 1 of 3 cases that can be computed here, are as stored"
        assert said in capsys.readouterr().out


@pytest.mark.processes
@pytest.mark.parametrize("square", [0, 1, 4])
def test_other_numbers_are_not_confirmed(toy, square):
    made = experiment(toy, "--count", "3")
    run(made)
    path = toy / "table.csv"
    text = path.read_text()
    path.write_text("\n".join(f"{line}9" if line[:1].isdigit() else line for line in text.splitlines()) + "\n")
    with pytest.raises(ValueError, match=r"table.csv: a case gives \['\d', '\d'\], and the table has .*; make it anew"):
        confirm(made)


def test_seeds_that_part_by_rounding_are_a_sample():
    """Their mean may differ by what it is uncertain, and by no more; few lines, or a shift of all, are not excused."""
    stored = [["3", str(seed), "0.5", str(0.1 * seed % 0.7)] for seed in range(12)]
    parted = [[*line[:3], str(float(line[3]) + (-1) ** seed * 0.05)] for seed, line in enumerate(stored)]
    shifted = [[*line[:3], str(float(line[3]) + (-1) ** seed * 0.05 + 0.05)] for seed, line in enumerate(stored)]
    other_start = [[*line[:2], "0.6", line[3]] for line in stored]
    assert runner._same_sample(parted, stored, 5e-3)
    assert not runner._same_sample(shifted, stored, 5e-3)
    assert not runner._same_sample(other_start, stored, 5e-3)
    assert not runner._same_sample(parted[:7], stored[:7], 5e-3)


def test_what_changes_the_numbers_changes_the_fingerprint(toy):
    source, first = (toy / "toy.py").read_text(), fingerprints(experiment(toy))
    for old, new, same in (
        ("# what is measured", "# another comment", True),
        ('"""One line."""', '"""Another line."""', True),
        ("n, n**2", "n, n**3", False),
        ("default=3", "default=4", False),
    ):
        (toy / "toy.py").write_text(source.replace(old, new))
        sys.modules.pop("toy")
        assert (fingerprints(experiment(toy))["experiment"] == first["experiment"]) == same, new
    (toy / "toy.py").write_text(source)
    sys.modules.pop("toy")
    assert fingerprints(experiment(toy, "--count", "2"))["experiment"] != first["experiment"]


def test_the_library_that_is_used_is_found_through_other_modules():
    found = used_by("smalltorch.experiments.placement")
    used = ("models", "attention", "train", "engine/sample", "spectral", "norm", "block")
    assert {f"smalltorch/{name}.py" for name in used} <= set(found)
    others = ("experiments/table", "experiments/runner", "files", "experiments/placement", "plot", "__init__")
    assert not {f"smalltorch/{name}.py" for name in others} & set(found)


MODULES = {
    "placement": placement,
    "depth_without_skips": depth_without_skips,
    "first_steps": first_steps,
    "position_codes": position_codes,
    "past_length": past_length,
    "eviction": eviction,
    "stopped_pairs": stopped_pairs,
    "stand_ins": stand_ins,
    "recall": recall,
    "changed_images": changed_images,
    "few_labels": few_labels,
    "forecasts": forecasts,
}
TABLES = sorted(path.name for path in FOLDER.glob("*.csv"))


def of_table(name: str):
    """The experiment that a table's head names, with its options."""
    _, _, module, *options = shlex.split(head_of(FOLDER / name)["command"])
    made = MODULES[module.rpartition(".")[2]].experiment(options)
    made.options.out = FOLDER / name
    return made


@pytest.mark.parametrize("name", TABLES)
def test_a_stored_table_is_of_the_code_that_is_here(name):
    """Where the library has changed, the command in the table's head with `--confirm`, and `--out` where it stands."""
    head, now = head_of(FOLDER / name), fingerprints(of_table(name))
    assert head.get("experiment") == now["experiment"], "the experiment has changed: make the table anew"
    assert head.get("library") == now["library"], f"the library has changed: {head['command']} --confirm"


@pytest.mark.deep
@pytest.mark.parametrize(
    "name", [name for name in TABLES if name != "placement_again.csv"]
)  # a case of it takes seven minutes
def test_a_case_of_a_stored_table_comes_out_again(name, tmp_path):
    """Which one, the fingerprints choose."""
    made = of_table(name)
    made.options.out = tmp_path / name
    shutil.copy(FOLDER / name, made.out)
    confirm(made)
