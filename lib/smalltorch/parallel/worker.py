"""The entry point of a process that `launch` starts: `python -m smalltorch.parallel.worker FOLDER RANK`.

It says five times a second that it lives, runs its function within a group of gloo on the loopback interface, and
leaves a result or an error in the folder. When the process that launched it ends, it ends.
"""

import ctypes
import os
import pickle
import signal
import sys
import threading
import time
import traceback
from datetime import timedelta
from pathlib import Path

from smalltorch.files import replacing

BEAT = 0.2  # seconds between two signs of life
PATIENCE = timedelta(days=1)  # with the others, for it is the launcher that watches the time
LOOPBACK = "lo" if sys.platform == "linux" else "lo0"
PR_SET_PDEATHSIG = 1  # of Linux's prctl


def outlive_nobody() -> None:
    """End with the launcher: our standard input closes when it dies, and Linux ends us even where we are stopped."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

    def wait() -> None:
        sys.stdin.buffer.read()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def live(beat: Path) -> None:
    """Write to a file that we live, again and again."""

    def write() -> None:
        with beat.open("ab", buffering=0) as file:
            while True:
                file.write(b".")
                time.sleep(BEAT)

    threading.Thread(target=write, daemon=True).start()


def leave(path: Path, what: object) -> None:
    """A file with an object, whole or not there."""
    with replacing(path) as new:
        new.write_bytes(pickle.dumps(what))


def main(folder: Path, rank: int) -> None:
    """Run the job that lies in the folder, as worker `rank`."""
    outlive_nobody()
    live(folder / f"{rank}.beat")
    try:
        path, processes, job = pickle.loads((folder / "job").read_bytes())
        sys.path[:] = path
        os.environ["GLOO_SOCKET_IFNAME"] = LOOPBACK
        import torch  # late: to import it takes seconds, and the launcher sees us live meanwhile
        import torch.distributed as dist
        from torch._C._distributed_c10d import FileStore

        torch.set_num_threads(1)
        work, arguments = pickle.loads(job)
        meeting = FileStore(str(folder / "meeting"), processes)
        dist.init_process_group("gloo", store=meeting, rank=rank, world_size=processes, timeout=PATIENCE)
        (folder / f"{rank}.ready").touch()
        result = work(*arguments)
        dist.barrier()  # nobody leaves while others still listen
        leave(folder / f"{rank}.result", result)
    except BaseException as error:
        leave(folder / f"{rank}.error", (time.monotonic(), f"failed: {type(error).__name__}: {error}".splitlines()[0]))
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)  # at once: what is left of the group is not worth waiting for


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
