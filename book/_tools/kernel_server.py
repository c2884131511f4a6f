"""Kernels of notebooks, forked from one process that has imported what is slow to import.

A fresh kernel takes seconds to import torch, SymPy and matplotlib; a fork of a process that has them takes a tenth of
one. Jupyter starts a kernel by a command, which here is `kernel_stub.py`: it hands its environment, folder and open
files over to the server, which forks. A fork copies one thread only, and what was imported under one environment may
not fit another: so where the server has more threads, or the kernel is to have other variables, a fresh one starts.

Each kernel notes which files of the checkout it opens, where `OPENED` says; `outcomes.py` reads that.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jupyter_client.kernelspec import KernelSpecManager

ROOT = str(Path(__file__).resolve().parents[2])
ADDRESS = "KERNEL_SERVER"  # in the environment: the socket of the server, or "none"
OPENED = "KERNEL_OPENED"  # in the environment: the file in which a kernel notes what it opens
PRELUDE = ""  # for the tests: code that the server runs first
IMPORTED = (
    "torch",
    "sympy",
    "matplotlib.pyplot",
    "jaxtyping",
    "torch._dynamo",
    "ipykernel.kernelapp",
    "IPython",
)
# What differs between kernels of one run and changes nothing that was imported; PYTHONPATH a fork takes over.
OF_ONE_KERNEL = ("PYTHONPATH", "COLUMNS", "LINES", "PWD", "OLDPWD", "SHLVL", "_", ADDRESS, OPENED)
OF_ITS_TOOLS = ("JPY_", "PYTEST_")
STARTS = ("subprocess.Popen", "os.fork", "os.posix_spawn")
WATCHED = ("open", "os.listdir", "os.scandir", *STARTS)  # events of Python's audit hooks
LOOKING = ("_fill_cache", "children")  # functions of the import system that look through folders


@contextmanager
def server() -> Iterator[None]:
    """Have a server for the kernels that this process and its children start; without one, each starts afresh."""
    if sys.platform != "linux" or ADDRESS in os.environ:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="kernels-") as folder:
        address = f"{folder}/socket"
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(address)
        listener.listen()
        command = f"{PRELUDE}import runpy; runpy.run_path({__file__!r})['serve']({listener.fileno()})"
        # It lives as long as its standard input is open: as long as this process does, however that ends.
        process = subprocess.Popen(
            [sys.executable, "-c", command],
            stdin=subprocess.PIPE,
            env=without_its_own(os.environ) | {"MPLBACKEND": "module://matplotlib_inline.backend_inline"},
            pass_fds=[listener.fileno()],
            start_new_session=True,
        )
        listener.close()
        os.environ[ADDRESS] = address
        try:
            yield
        finally:
            del os.environ[ADDRESS]
            process.stdin.close()
            process.wait()


def specifications() -> KernelSpecManager:
    """For Jupyter: whatever a kernel's name, it is that of this Python, forked where it can be."""
    from jupyter_client.kernelspec import KernelSpec, KernelSpecManager

    stub = str(Path(__file__).with_name("kernel_stub.py"))

    class Kernels(KernelSpecManager):
        def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
            command = [sys.executable, "-I", "-S", stub, "{connection_file}"]
            return KernelSpec(argv=command, display_name="Python", language="python")

    return Kernels()


def without_its_own(environment: os._Environ | dict[str, str]) -> dict[str, str]:
    """The variables that may change what a kernel computes."""
    return {
        name: value
        for name, value in environment.items()
        if name not in OF_ONE_KERNEL and not name.startswith(OF_ITS_TOOLS) and name != "MPLBACKEND"
    }


# -- the server --------------------------------------------------------------------------------------------------------


def serve(listener: int) -> None:
    """Import, and fork a kernel for each connection until standard input is closed."""
    del sys.path[0]  # the folder in which it was started
    environment = without_its_own(os.environ)
    for module in IMPORTED:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()  # what is here now is shared with the kernels, and no garbage of theirs
    request = wait(socket.socket(fileno=listener), environment)
    if request is not None:
        run(*request)


def wait(listener: socket.socket, environment: dict[str, str]) -> tuple | None:
    """In a kernel that was forked what it is to run, and None in the server when it is to end."""
    while True:
        ready, _, _ = select.select([listener, 0], [], [], 1)
        while reaped():
            pass
        if 0 in ready:
            return None
        if listener in ready:
            connection, _ = listener.accept()
            request, files = received(connection)
            one_thread = len(os.listdir("/proc/self/task")) == 1
            if one_thread and without_its_own(request["environment"]) == environment:
                connection.sendall(b"forked")
                if os.fork() == 0:
                    listener.close()
                    return request, files, connection
            else:
                connection.sendall(b"afresh")
            connection.close()
            for file in files:
                os.close(file)


def reaped() -> bool:
    """Whether a kernel has ended that nobody had waited for."""
    try:
        return os.waitpid(-1, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return False


def received(connection: socket.socket) -> tuple[dict, list[int]]:
    """What a stub asks for, and its three standard files."""
    text, files, _, _ = socket.recv_fds(connection, 2**16, 3)
    while not text.endswith(b"\n"):
        text += connection.recv(2**16)
    return json.loads(text), files


# -- a kernel ----------------------------------------------------------------------------------------------------------


def run(request: dict, files: list[int], connection: socket.socket) -> None:
    """Be the kernel that a stub has asked for, as if the stub had started it."""
    os.setsid()
    for place, file in enumerate(files):
        os.dup2(file, place)
        os.close(file)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    draw_anew()
    sys.path[:0] = [os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    threading.Thread(target=obey, args=[connection], daemon=True).start()
    start(request["file"])


def draw_anew() -> None:
    """Leave no kernel the random state of another: a chapter that forgets its seed must not be the same twice."""
    import numpy
    import torch

    torch.seed(), numpy.random.seed()  # Python's own generator does so by itself


def obey(connection: socket.socket) -> None:
    """Pass on the interrupts of the stub, and end with it."""
    while connection.recv(64):
        os.kill(os.getpid(), signal.SIGINT)
    os.kill(os.getpid(), signal.SIGKILL)


def fresh(file: str) -> None:
    """Be a kernel that has imported nothing yet."""
    del sys.path[0]
    start(file)


def start(file: str) -> None:
    if OPENED in os.environ:
        sys.addaudithook(noting(os.environ[OPENED]))
    sys.argv = ["ipykernel_launcher", "-f", file]
    from ipykernel import kernelapp

    parent = [] if os.getppid() == int(os.environ.get("JPY_PARENT_PID") or 0) else ["--IPKernelApp.parent_handle=1"]
    kernelapp.launch_new_instance(argv=["-f", file, *parent])


def noting(place: str) -> Callable[[str, tuple], None]:
    """A hook that adds a line to the file at `place` for whatever is opened in the checkout; imports are told apart."""
    out, noted = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_APPEND), set()

    def hook(event: str, arguments: tuple) -> None:
        if event in WATCHED and (line := opened(event, arguments)) and line not in noted:
            noted.add(line)
            os.write(out, f"{line}\n".encode())

    return hook


def opened(event: str, arguments: tuple) -> str:
    """What an audit event says of the checkout: "import …", "read …" or "list …" and a path there; else nothing.

    Of a program that is started it is "start …", wherever it lies.
    """
    if event in STARTS:
        return f"start {Path(os.fsdecode(arguments[0])).name if arguments else 'a fork'}"
    if not isinstance(arguments[0], str | os.PathLike):
        return ""
    path, caller = os.path.abspath(arguments[0]), sys._getframe(2).f_code.co_name
    place = path.removeprefix(f"{ROOT}/")
    if place == path or place.startswith(".") or "__pycache__" in place:
        return ""
    if event == "open":
        return f"{'import' if caller == 'get_data' else 'read'} {place}"
    return "" if caller in LOOKING else f"list {place}"
