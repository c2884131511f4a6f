"""Run the library's tests with the lowest versions of torch, numpy and sympy that lib/pyproject.toml allows.

They are installed anew into .cache/lowest, which then stands before everything else on the path. TORCH_INDEX names
another index for torch, as in the Makefile.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import output_folder
from smalltorch.files import in_one_line

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("torch", "numpy", "sympy")


def lower_bounds(requirements: list[str]) -> list[str]:
    """["torch>=2.6", …] → ["torch==2.6", …], in the order of PACKAGES."""
    bounds = dict(match.groups() for text in requirements if (match := re.match(r"([\w-]+)\s*>=\s*([\d.]+)", text)))
    return [f"{name}=={bounds[name]}" for name in PACKAGES]


def main() -> None:
    project = tomllib.loads((ROOT / "lib/pyproject.toml").read_text(encoding="utf-8"))["project"]
    torch, *others = lower_bounds(project["dependencies"])
    index = os.environ.get("TORCH_INDEX", "").strip()
    with output_folder.taken(ROOT / ".cache/lowest"):
        target = ROOT / ".cache/lowest/packages"
        shutil.rmtree(target, ignore_errors=True)
        pip = [sys.executable, "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--target", target]
        subprocess.run([*pip, *(["--no-deps", "--index-url", index] if index else []), torch], check=True)
        subprocess.run([*pip, "--upgrade", "--no-deps", *others], check=True)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(target), os.environ.get("PYTHONPATH", "")))}
        print("the library's tests with", ", ".join((torch, *others)), flush=True)
        # Other versions warn of other things.
        tests = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-W", "default", "lib/tests"]
        sys.exit(subprocess.run(tests, cwd=ROOT, env=environment).returncode)


if __name__ == "__main__":
    with in_one_line():
        main()
