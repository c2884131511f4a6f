"""Launch several local processes that run one function, and stop all of them if one fails.

    >>> import torch.distributed as dist
    >>> launch(dist.get_rank, 2)
    [0, 1]

They speak through `torch.distributed` with the backend gloo, over the loopback interface alone. They meet through a
file, and the system chooses the ports, so that several launches do not disturb each other. What a worker prints goes
to a file.
The launcher watches: a worker that ends early, is stopped, or gives no sign of life ends all of them, and the error
says in one line which it was. For Linux and macOS.
"""

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from smalltorch.shapes import check_integers, check_numbers

LOOK = 0.02  # seconds between two looks at the workers
SETTLE = 0.3  # seconds from the first complaint until all are asked once more
START = 300.0  # seconds that a worker may take until it has imported torch and met the others, on a busy machine
SILENT = 60.0  # seconds without a sign of life, once it has


class WorkerError(RuntimeError):
    """A worker did not end well. The message is one line; `log` is what the worker had printed."""

    def __init__(self, line: str, log: str = ""):
        super().__init__(line)
        self.log = log


def launch(work: Callable[..., Any], processes: int, *arguments: Any, limit: float = 600.0) -> list[Any]:
    """What `work(*arguments)` returns in each of so many processes, by rank. Chapter `parallelism`.

    Args:
        work: a function that can be imported, not one of a notebook or a lambda: workers find it by its name.
        processes: how many; each has one thread.
        arguments: of the function, the same for all; a function finds its own rank by `torch.distributed.get_rank()`.
        limit: seconds for all of it, once the processes have met.

    Raises:
        WorkerError: if a worker fails, ends, is stopped or is silent, or the time is over; no process is left then.
        ValueError: for fewer than one process, a limit that is not positive, or a function without a name to import.
    """
    processes = check_integers(1, processes=processes)
    limit = check_numbers(0, limit=limit)
    if limit == 0:
        raise ValueError("limit: expected more than 0 seconds, got 0")
    module = getattr(work, "__module__", None)
    if module == "__main__" or "<" in getattr(work, "__qualname__", "<"):
        raise ValueError(f"work: expected a function that can be imported by its name, got {work!r}")
    with tempfile.TemporaryDirectory(prefix="launch-") as name:
        folder = Path(name)
        job = pickle.dumps((work, arguments))
        (folder / "job").write_bytes(pickle.dumps((sys.path, processes, job)))
        workers: list[_Worker] = []
        try:
            for rank in range(processes):
                workers.append(_Worker(folder, rank, processes))
            _watch(workers, limit)
            return [pickle.loads((folder / f"{rank}.result").read_bytes()) for rank in range(processes)]
        finally:
            for worker in workers:
                worker.end()


class _Worker:
    """A process, and what can be seen of it from outside."""

    def __init__(self, folder: Path, rank: int, processes: int):
        self.folder, self.rank, self.name = folder, rank, f"worker {rank} of {processes}"
        self.log = folder / f"{rank}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "smalltorch.parallel.worker", str(folder), str(rank)],
                stdin=subprocess.PIPE,  # which we never write to: it closes when we end, and so the worker ends
                stdout=log,
                stderr=log,
                env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                start_new_session=True,  # Ctrl-C is for the launcher, which then ends the workers
            )
        self.stopped = False
        self.beats, self.beaten = -1, time.monotonic()

    def look(self) -> None:
        """Ask the system whether it has ended or was stopped, and the file of its heart whether it lives."""
        if self.process.returncode is None:
            pid, status = os.waitpid(self.process.pid, os.WNOHANG | os.WUNTRACED)
            self.stopped |= bool(pid) and os.WIFSTOPPED(status)
            if pid and not os.WIFSTOPPED(status):
                self.process.returncode = os.waitstatus_to_exitcode(status)
        with suppress(FileNotFoundError):
            beats = (self.folder / f"{self.rank}.beat").stat().st_size
            if beats != self.beats:
                self.beats, self.beaten = beats, time.monotonic()

    @property
    def ready(self) -> bool:
        return (self.folder / f"{self.rank}.ready").exists()

    @property
    def done(self) -> bool:
        return self.process.returncode == 0

    def complaint(self) -> tuple[float, str] | None:
        """What is wrong, and how urgent it is: what was done to a worker comes before what followed from it."""
        code = self.process.returncode
        if code is not None and code < 0:
            return -2, f"was ended by {signal.Signals(-code).name}"
        if self.stopped:
            return -1, "was stopped"
        if code:
            with suppress(FileNotFoundError):
                return pickle.loads((self.folder / f"{self.rank}.error").read_bytes())
            return 0, f"ended with status {code}"
        return None

    def end(self) -> None:
        """Kill it and all that it has started, stopped or not, and wait until it is gone."""
        if self.process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        if self.process.stdin:
            self.process.stdin.close()


def _watch(workers: list[_Worker], limit: float) -> None:
    """Return when all have ended well, and raise when one has not."""
    begun, met = time.monotonic(), 0.0
    while True:
        for worker in workers:
            worker.look()
        if any(worker.complaint() for worker in workers):
            time.sleep(SETTLE)
            for worker in workers:  # the others may suffer from one that the system has not yet called ended
                worker.look()
            first = min((w for w in workers if w.complaint()), key=lambda w: w.complaint() or (0, ""))
            raise _error(first, (first.complaint() or (0, ""))[1])
        if all(worker.done for worker in workers):
            return
        now = time.monotonic()
        late = [worker for worker in workers if not (worker.ready or worker.done)]
        if late and now - begun > START:
            raise _error(late[0], f"has not met the others within {START:g} s")
        if not late:
            quiet = min((worker for worker in workers if not worker.done), key=lambda worker: worker.beaten)
            if now - quiet.beaten > SILENT:
                raise _error(quiet, f"has given no sign of life for {SILENT:g} s")
            met = met or now
            if now - met > limit:
                raise _error(next(w for w in workers if not w.done), f"is not done within {limit:g} s")
        time.sleep(LOOK)


def _error(worker: _Worker, what: str) -> WorkerError:
    return WorkerError(f"{worker.name} {what}", worker.log.read_text(encoding="utf-8", errors="replace"))
