"""The library as `pip install ./lib` brings it: a wheel, with nothing beside it but what it declares."""

import shutil
import subprocess
import sys
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

pytestmark = pytest.mark.processes

LIB = Path(__file__).resolve().parents[1]
PIP = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", "--no-input"]

# For a Python that finds its standard library and two folders, nothing else: the wheel, and what it declares.
VISITOR = """
import csv, importlib, sys
sys.path += sys.argv[1:3]
from importlib.resources import files
from pathlib import Path

import smalltorch, torch
from smalltorch import measure

assert Path(smalltorch.__file__).is_relative_to(sys.argv[1]), smalltorch.__file__
for name in sys.argv[3:]:
    if name.endswith(".py"):
        importlib.import_module("smalltorch." + name.removesuffix(".py").replace("/", "."))
    if name.endswith(".csv"):
        lines = files("smalltorch").joinpath(name).read_text(encoding="utf-8").splitlines()
        assert list(csv.DictReader(line for line in lines if not line.startswith("#"))), name
norms = torch.ones(2, 1, 2)
measure.write_figure(Path("out.svg"), "two layers", measure.Spectrum(torch.tensor([3]), norms, norms))
print(smalltorch.__version__)
"""


def contents(package: Path) -> set[str]:
    """The files of a package, relative to it."""
    names = {file.relative_to(package) for file in package.rglob("*") if file.is_file()}
    return {str(name) for name in names if not any(part.startswith((".", "__pycache__")) for part in name.parts)}


def required(dist: Distribution, extras: frozenset[str] = frozenset()) -> list[Requirement]:
    """What a distribution declares for this machine, with these of its extras."""
    declared = [Requirement(line) for line in dist.requires or []]
    return [
        each
        for each in declared
        if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in extras | {""})
    ]


def closure(dist: Distribution) -> list[Distribution]:
    """What a distribution requires, what that requires, and so on, as it is installed here."""
    found, todo = {}, required(dist)
    while todo:
        each = todo.pop()
        key = (each.name, frozenset(each.extras))
        if key not in found:
            found[key] = distribution(each.name)
            todo += required(found[key], key[1])
    return list(found.values())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The folder where the wheel is installed; it is built from a copy, since building leaves files behind."""
    folder = tmp_path_factory.mktemp("wheel")
    copy, target = folder / "lib", folder / "target"
    copy.mkdir()
    shutil.copy(LIB / "pyproject.toml", copy)
    shutil.copytree(LIB / "smalltorch", copy / "smalltorch", ignore=shutil.ignore_patterns("__pycache__"))
    offline = ["--no-deps", "--no-index"]
    subprocess.run([*PIP, "wheel", *offline, "--no-build-isolation", "-w", folder, copy], check=True)
    subprocess.run([*PIP, "install", *offline, "--no-compile", "--target", target, *folder.glob("*.whl")], check=True)
    return target


@pytest.fixture(scope="module")
def installed(wheel):
    """The metadata of the installed wheel."""
    (dist,) = distributions(path=[str(wheel)])
    return dist


def test_the_wheel_holds_the_whole_package_and_nothing_else(wheel):
    assert contents(wheel / "smalltorch") == contents(LIB / "smalltorch")
    assert {entry.name for entry in wheel.iterdir() if entry.suffix != ".dist-info"} == {"smalltorch"}


def test_few_packages_are_declared(installed):
    assert {each.name for each in required(installed)} == {"torch", "numpy", "sympy", "matplotlib", "jaxtyping"}


def test_the_wheel_needs_nothing_else(wheel, installed, tmp_path):
    """Every module is imported, every table read, a figure written."""
    declared = tmp_path / "declared"
    declared.mkdir()
    for dist in closure(installed):
        for name in {file.parts[0] for file in dist.files} - {"..", "__pycache__"}:
            if not (declared / name).exists():
                (declared / name).symlink_to(dist.locate_file(name))
    visit = [sys.executable, "-I", "-S", "-c", VISITOR, wheel, declared, *contents(LIB / "smalltorch")]
    done = subprocess.run(visit, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == installed.version
    assert (tmp_path / "out.svg").read_text(encoding="utf-8").count("<svg") == 1
