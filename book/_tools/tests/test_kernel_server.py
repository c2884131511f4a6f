"""Kernels that are forked: that they are as fresh ones, that none outlives who started it, and when none is forked."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from jupyter_client.manager import KernelManager

import kernel_server

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="kernels are forked on Linux only")

STATE = """
import os, random, sys, threading, warnings
import matplotlib, numpy, sympy, torch
print(os.getcwd(), sorted(os.environ.items() - {("JPY_PARENT_PID", os.environ["JPY_PARENT_PID"])}))
print(sys.path, sys.argv[0].rpartition("/")[2].partition(".")[0], sys.flags.hash_randomization, hash("a"))
print(sorted(str(kept) for kept in warnings.filters), matplotlib.get_backend(), sorted(matplotlib.rcParams.items()))
print(torch.get_num_threads(), torch.get_default_dtype(), numpy.geterr(), signal.getsignal(signal.SIGCHLD))
print([name for name in sorted(sys.modules) if name.startswith(("smalltorch", "book", "kernel_server", "nbreport"))])
print(os.path.exists("/proc/self/fd/40"), sympy.core.cache.USE_CACHE, __name__, get_ipython().__class__.__name__)
""".replace("import os,", "import os, signal,")
DRAWN = "import random, numpy, torch; print(random.random(), numpy.random.rand(), torch.rand(1).item())"


@pytest.fixture(scope="module", autouse=True)
def server():
    settings = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "MPLBACKEND": None, kernel_server.ADDRESS: None}
    before = {name: os.environ.get(name) for name in settings}
    change(settings)
    with kernel_server.server():
        yield
    change(before)


def change(settings):
    for name, value in settings.items():
        os.environ.pop(name, None) if value is None else os.environ.update({name: value})


class Kernel:
    """A kernel, with what a cell of it printed."""

    def __init__(self, folder):
        for attempts_left in (2, 1, 0):
            self.manager = KernelManager(
                kernel_name=":nbval-parent-env", kernel_spec_manager=kernel_server.specifications()
            )
            self.manager.start_kernel(cwd=str(folder), stderr=subprocess.DEVNULL)
            self.client = self.manager.client()
            self.client.start_channels()
            try:
                self.client.wait_for_ready(timeout=60)
                break
            except RuntimeError:  # ports are chosen before they are taken: another process can be first
                self.stop()
                if not attempts_left:
                    raise

    def run(self, code):
        said = []

        def hear(message):
            content = message["content"]
            shown = " ".join(sorted(content.get("data", {})))
            said.append(content.get("text") or content.get("evalue") or shown)

        self.client.execute_interactive(textwrap.dedent(code), output_hook=hear, timeout=60)
        return "".join(said)

    def stop(self, now=True):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=now)


@pytest.fixture
def start(tmp_path):
    started = []

    def one(folder=tmp_path):
        started.append(Kernel(folder))
        return started[-1]

    yield one
    for kernel in started:
        if kernel.manager.has_kernel:
            kernel.stop()


def is_forked(kernel):
    """Whether the kernel's parent is a server."""
    return kernel.run("import os; print(\"['serve']\" in open(f'/proc/{os.getppid()}/cmdline').read())") == "True\n"


def gone(process):
    for _ in range(300):
        if not Path(f"/proc/{process}").exists() or "Z (zombie)" in Path(f"/proc/{process}/status").read_text():
            return True
        time.sleep(0.1)
    return False


def number_of(kernel):
    return int(kernel.run("import os; print(os.getpid())"))


def test_a_forked_kernel_is_as_a_fresh_one(start, monkeypatch):
    forked = start()
    assert is_forked(forked)
    state = forked.run(STATE)
    monkeypatch.setenv(kernel_server.ADDRESS, "none")
    fresh = start()
    assert not is_forked(fresh)
    alike = [
        (a, b.replace("'KERNEL_SERVER', 'none'", ""))
        for a, b in zip(state.splitlines(), fresh.run(STATE).splitlines(), strict=True)
    ]
    for a, b in alike[1:]:
        assert a == b


def test_a_forked_kernel_shows_figures_as_a_fresh_one_does(start):
    forked = start()
    assert is_forked(forked)
    drawing = "from smalltorch.figures.plot import figure\nfig, ax = figure()\n_ = ax.plot([1, 2])"
    assert forked.run(drawing) == "image/svg+xml text/plain"


def test_nothing_of_one_kernel_is_left_in_the_next(start, tmp_path):
    first = start()
    drawn = first.run(DRAWN)
    first.run("""
        import os, sys, warnings, matplotlib, torch, sympy, smalltorch.figures.plot
        os.chdir("/"); os.environ["LEFT"] = "1"; sys.path.insert(0, "left"); warnings.simplefilter("error")
        matplotlib.rcParams["font.size"] = 99; torch.manual_seed(0); torch.set_default_dtype(torch.float64)
        file = open("/dev/null"); sympy.left = True
    """)
    first.stop()
    second = start()
    assert is_forked(second) and second.run(DRAWN) != drawn
    left = """
        import os, sys, warnings, matplotlib, torch, sympy
        print(os.getcwd(), "LEFT" in os.environ, "left" in sys.path, "smalltorch" in sys.modules)
        print(("error", None, Warning) in [kept[:3] for kept in warnings.filters], matplotlib.rcParams["font.size"])
        print(torch.get_default_dtype(), hasattr(sympy, "left"))
    """
    assert second.run(left) == f"{tmp_path} False False False\nFalse 10.0\ntorch.float32 False\n"


def test_another_environment_is_not_forked(start, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    kernel = start()
    assert not is_forked(kernel) and kernel.run("import os; print(os.environ['OMP_NUM_THREADS'])") == "2\n"


def test_a_server_with_two_threads_forks_nothing(start):
    code = "import threading, time; threading.Thread(target=time.sleep, args=[60], daemon=True).start()\n"
    with pytest.MonkeyPatch.context() as patch, kernel_server_with(code, patch):
        assert not is_forked(start())


def kernel_server_with(code, patch):
    patch.delenv(kernel_server.ADDRESS)
    patch.setattr(kernel_server, "PRELUDE", code)
    return kernel_server.server()


def test_a_kernel_that_dies_takes_nothing_with_it(start):
    first, second = start(), start()
    number = number_of(first)
    first.client.execute("import os; os.kill(os.getpid(), 9)")
    assert gone(number)
    for _ in range(300):
        if not first.manager.is_alive():
            break
        time.sleep(0.1)
    assert not first.manager.is_alive() and second.run("print(1)") == "1\n" and is_forked(start())


def test_a_kernel_that_hangs_is_interrupted_and_killed(start):
    kernel = start()
    asked = kernel.client.execute("import time; time.sleep(600)")
    time.sleep(1)
    kernel.manager.interrupt_kernel()
    while kernel.client.get_shell_msg(timeout=60)["parent_header"]["msg_id"] != asked:
        pass  # on a busy machine, late answers to the questions whether it is ready
    assert kernel.run("print(2)") == "2\n"
    number = number_of(kernel)
    kernel.client.execute("while True: pass")
    kernel.stop()
    assert gone(number)


def test_after_a_runner_that_was_killed_no_process_is_left(tmp_path):
    """The runner is killed while a kernel runs: server, stub and kernel end."""
    code = f"""
        import os, sys, time
        sys.path[:0] = {sys.path!r}
        import kernel_server
        from test_kernel_server import Kernel
        with kernel_server.server():
            kernel = Kernel({str(tmp_path)!r})
            print(kernel.run("import os; print(os.getpid(), os.getppid())"), kernel.manager.provisioner.pid, flush=True)
            time.sleep(600)
    """
    clean = {name: value for name, value in os.environ.items() if name != kernel_server.ADDRESS}
    runner = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True, env=clean
    )
    numbers = [int(word) for _ in range(2) for word in runner.stdout.readline().split()]
    assert len(numbers) == 3
    runner.send_signal(signal.SIGKILL)
    runner.wait()
    runner.stdout.close()
    assert all(map(gone, numbers))


def test_what_a_kernel_opens_is_noted(start, tmp_path, monkeypatch):
    noted = tmp_path / "noted"
    monkeypatch.setenv(kernel_server.OPENED, str(noted))
    code = """
        import os, subprocess, inspect
        import smalltorch.norm
        from smalltorch import data
        data.text("essay"); inspect.getsource(smalltorch.norm.rms_norm); subprocess.run(["true"])
        print([entry.name for entry in os.scandir(data.BOOK / "data")][:0])
    """
    start().run(code)
    lines = set(noted.read_text().splitlines())
    assert {"import lib/smalltorch/norm.py", "read lib/smalltorch/norm.py", "read book/data/essay.txt"} <= lines
    assert {"list book/data", "start true"} <= lines and "read lib/smalltorch/data.py" not in lines
