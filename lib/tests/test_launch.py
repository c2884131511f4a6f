"""Whatever happens to a worker, or to the launcher: one clear line within seconds, and no process is left."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch.distributed as dist

from smalltorch.parallel import launch as launcher
from smalltorch.parallel.launch import WorkerError, launch

pytestmark = pytest.mark.processes

SECONDS = 20  # for an error, start of the workers not included, on a busy machine


def ranks(factor):
    return factor * dist.get_rank(), dist.get_world_size(), os.getpid()


def grief(folder, rank, what):
    """All workers note their numbers; one comes to grief while the others wait for it."""
    Path(folder, f"pid {dist.get_rank()}").write_text(str(os.getpid()))
    print("said to the log")
    dist.barrier()
    Path(folder, f"time {dist.get_rank()}").touch()
    if dist.get_rank() == rank:
        if what == "raise":
            raise KeyError("first line\nsecond line")
        if what == "exit":
            os._exit(3)
        if what == "deaf":
            ctypes.PyDLL(None).sleep(600)  # in C, with Python's lock: no thread of it runs
        if what == "late":
            time.sleep(600)
        os.kill(os.getpid(), getattr(signal, what))
    dist.barrier()


def gone(pid):
    """Whether there is no such process, or only its entry for a parent that has not asked."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def none_left(folder, count):
    pids = [int(file.read_text()) for file in folder.glob("pid *")]
    assert len(pids) == count
    end = time.monotonic() + SECONDS
    while not all(map(gone, pids)) and time.monotonic() < end:
        time.sleep(0.05)
    left = [pid for pid in pids if not gone(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left


def test_workers_run_together_and_give_their_results_by_rank(capfd):
    found = launch(ranks, 2, 3)
    assert [row[:2] for row in found] == [(0, 2), (3, 2)] and len({row[2] for row in found}) == 2
    assert all(gone(row[2]) for row in found) and capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("SIGKILL", "worker 1 of 2 was ended by SIGKILL"),
        ("SIGSTOP", "worker 1 of 2 was stopped"),
        ("SIGSEGV", "worker 1 of 2 was ended by SIGSEGV"),
        ("raise", "worker 1 of 2 failed: KeyError: 'first line\\nsecond line'"),
        ("exit", "worker 1 of 2 ended with status 3"),
        ("deaf", "worker 1 of 2 has given no sign of life for 5 s"),
    ],
)
def test_grief_of_one_ends_all_in_one_line(what, said, tmp_path, monkeypatch, capfd):
    if what == "deaf":
        monkeypatch.setattr(launcher, "SILENT", 5.0)
    with pytest.raises(WorkerError) as error:
        launch(grief, 2, str(tmp_path), 1, what)
    assert str(error.value) == said and error.value.log.startswith("said to the log")
    assert time.time() - (tmp_path / "time 1").stat().st_mtime < SECONDS
    none_left(tmp_path, 2)
    assert capfd.readouterr() == ("", "")


def patient(seconds):
    time.sleep(seconds)
    return dist.get_rank()


def test_who_works_for_long_is_not_taken_for_silent(monkeypatch):
    monkeypatch.setattr(launcher, "SILENT", 5.0)
    assert launch(patient, 2, 7.0) == [0, 1]


def test_the_time_limit_is_one(tmp_path):
    with pytest.raises(WorkerError, match=r"^worker 0 of 2 is not done within 2 s$"):
        launch(grief, 2, str(tmp_path), 0, "late", limit=2.0)
    assert 1 < time.time() - (tmp_path / "time 0").stat().st_mtime < 40  # seconds since they met, on a busy machine too
    none_left(tmp_path, 2)


def test_who_never_meets_the_others_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(launcher, "START", 0.01)
    with pytest.raises(WorkerError, match=r"^worker 0 of 2 has not met the others within 0.01 s$"):
        launch(ranks, 2, 1)


@pytest.mark.parametrize("what", ["SIGKILL", "SIGINT"])
@pytest.mark.parametrize("worker", ["late", "SIGSTOP"])
def test_no_worker_outlives_its_launcher(what, worker, tmp_path):
    blind = "import test_launch as t; t.launcher._Worker.look = lambda _: None"  # or it would see who is stopped
    # Interrupts are ignored by what a shell starts in the background, and by all that such a process starts.
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"{heard}; {blind}; t.launch(t.grief, 2, {str(tmp_path)!r}, 0, {worker!r})"
    started = subprocess.Popen(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])},
        stderr=subprocess.DEVNULL,
    )
    try:
        while not (tmp_path / "time 0").exists():
            assert started.poll() is None
            time.sleep(0.05)
        started.send_signal(signal.Signals[what])
        started.wait(SECONDS)
    finally:
        started.kill()
        started.wait()
    none_left(tmp_path, 2)


def listening():
    """The addresses where this process listens, in hexadecimal."""
    inodes = {os.readlink(f"/proc/self/fd/{fd}").partition("[")[2][:-1] for fd in os.listdir("/proc/self/fd") if
              os.path.islink(f"/proc/self/fd/{fd}")}  # fmt: skip
    lines = [
        line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/self/net/{name}").read_text().splitlines()[1:]
    ]
    return [line[1].rpartition(":")[0] for line in lines if line[3] == "0A" and line[9] in inodes]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_workers_listen_on_the_loopback_interface_alone():
    for found in launch(listening, 2):
        assert found and set(found) <= {"0100007F", "00000000000000000000000001000000"}


def test_what_makes_no_sense_is_refused(unenforced):
    for processes in (0, 1.5):
        with pytest.raises(ValueError, match="processes"):
            launch(ranks, processes, 1)
    for limit in (0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="limit"):
            launch(ranks, 2, 1, limit=limit)
    with pytest.raises(ValueError, match="imported by its name"):
        launch(lambda: 1, 2)
