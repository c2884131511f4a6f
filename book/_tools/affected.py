"""List the chapters, pages, faults and tests that a change can affect, so that slow checks run on those alone.

    affected.py BASE notebooks    chapters whose notebooks may give other numbers than at the commit BASE
    affected.py BASE pages        pages that may look different
    affected.py BASE faults       files whose faults may be noticed no longer
    affected.py BASE deep         files with deep tests that may end otherwise
    affected.py BASE without_library         chapters that may not run where the library is missing: two, for all set up
                                             alike
    affected.py BASE plain        "html", if what a platform without Node gets may be another book
    affected.py BASE paper        "paper", if the PDF or the archive may be another

Each name has a key: a digest of all in the tree that its outcome rests on. The keys of this tree are held against those
of the tree at BASE, and a name is reached where they differ. What a file uses is told by its imports; prose changes no
number (`closure.meaning`). A file that belongs to no place below is part of every key.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from deepdive.book.contents import ledger_page, outline, read
from deepdive.explore import LIST as FIGURES
from outcomes import PARTS, RUNNERS, notebook_code, read_digest, used_by
from smalltorch.experiments.closure import digest, fingerprint
from smalltorch.files import in_one_line

ROOT = Path(__file__).resolve().parents[2]
FAULTS = "lib/tests/sabotage/faults"
# Where the files of the book lie; whatever else there is may change anything.
PLACES = (
    *("lib/", "notebooks/", "book/", "docs/", ".ci/", ".github/", ".githooks/", "Makefile", "requirements."),
    *("_config.yml", "_toc.yml", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "CITATION.cff", "LICENSE"),
    *(".gitignore", ".gitattributes", ".git-blame-ignore-revs", ".oxlintrc.json", ".mypy.ini", ".ruff.toml"),
)
BUILT_HERE = ("_build", ".venv", ".cache", ".git", "__pycache__", ".ipynb_checkpoints", ".pytest_cache", ".hypothesis")
# The versions of what is installed, and how it gets there.
MACHINE = ("requirements.in", "requirements.lock", "requirements.txt", "lib/pyproject.toml", "lib/weights.txt")
INSTALLER = ("Makefile", "book/_tools/cuda.txt", "book/_tools/install.py", "book/_tools/install.sh")
# What makes the pages look as they do; tests do not.
LOOKS = (
    "book/_ext/",
    "book/_static/",
    "book/_templates/",
    "book/explore/",
    "book/_tools/",
    "_config.yml",
    "CITATION.cff",
)
SHOWN = ("lib/smalltorch/", "notebooks/", "book/", "_toc.yml")  # what pages of lists show something of
# What a deep test runs without importing it; a test compares the names with those of the files that have such tests.
DEEP = {
    "lib/tests/test_long_runs.py": ("lib/smalltorch/experiments/*",),
    "book/_tools/tests/test_build.py": ("book/_ext/deepdive/**/*.py",),
    "book/_tools/tests/test_install.py": ("book/_tools/install.py", "book/_tools/install.sh"),
    "book/_tools/tests/test_notebooks.py": (),
    "book/_tools/tests/test_checkers.py": ("notebooks/*/*.ipynb",),
}
EDITIONS = ("book/_ext/deepdive/reader/write.py",)
WITHOUT_LIBRARY = ("attention", "norm-bounds")

Keys = dict[str, str]


# -- keys --------------------------------------------------------------------------------------------------------------


def notebooks(root: Path) -> Keys:
    """Of each chapter: its code and outputs, what it imports, the tables and texts, what runs it, the versions."""
    around = [used(RUNNERS, root), stored(root), bytes_of(MACHINE, root), elsewhere(root)]
    return {
        path.stem: digest([notebook_code(path), used([name(path, root)], root), parts(path.stem, root), around])
        for path in sorted(root.glob("notebooks/*/*.ipynb"))
    }


def pages(root: Path) -> Keys:
    """Of each page: itself and what makes all pages look as they do; of a list of things, whatever it may list.

    A chapter's page stands in its notebook; a figure that moves is compared with the library where it is looked at.
    """
    every = looks(root)
    listed = digest([every, bytes_of(below(SHOWN, root), root)])
    figures = moving(root)
    found = {}
    for page in (page for _, part in outline(root, read(root)) for page in part):
        if page.startswith("notebooks/"):
            own = digest([every, bytes_of([f"{page}.ipynb"], root)])
            found[f"{page}.html"] = digest([own, used(figures.get(page, ()), root)])
            found[f"{ledger_page(Path(page).name)}.html"] = own
        else:
            found[f"{page}.html"] = listed
    return found


def faults(root: Path) -> Keys:
    """Of each file with faults: itself, their list, the tests that are to notice, and what puts faults in."""
    runner = used(["lib/tests/conftest.py", *below(["lib/tests/sabotage/"], root, ".py")], root)
    found = {}
    for path in sorted((root / FAULTS).rglob("*.toml")):
        target = path.relative_to(root / FAULTS).with_suffix("").as_posix()
        tests = {entry["test"].partition("::")[0] for entry in tomllib.loads(path.read_text("utf-8"))["fault"]}
        rests = [name(path, root), *([] if target.endswith(".py") else [target])]
        code = used([*tests, *([target] if target.endswith(".py") else [])], root)
        found[target] = digest([bytes_of(rests, root), code, runner, elsewhere(root)])
    return found


def deep(root: Path) -> Keys:
    """Of each file with deep tests: what it imports and runs, and the versions."""
    around = [bytes_of((*MACHINE, *INSTALLER), root), used(RUNNERS, root), elsewhere(root)]
    found = {}
    for test, patterns in DEEP.items():
        run = [name(path, root) for pattern in patterns for path in root.glob(pattern) if path.is_file()]
        found[test] = digest([used([path for path in (test, *run) if path.endswith(".py")], root),
                              bytes_of([path for path in run if not path.endswith(".py")], root), around])  # fmt: skip
    return found


def without_library(root: Path) -> Keys:
    """Of two chapters: what makes them run on a machine without the library."""
    key = digest([used(["book/_tools/without_library.py", *EDITIONS], root), bytes_of(MACHINE, root), elsewhere(root)])
    return dict.fromkeys(WITHOUT_LIBRARY, key)


def plain(root: Path) -> Keys:
    """What builds pages."""
    return {"html": looks(root)}


def paper(root: Path) -> Keys:
    """What the PDF and the archive are printed from, and what prints them."""
    return {"paper": digest([looks(root), bytes_of(below([*SHOWN, "book/paper/"], root), root)])}


# -- what keys are made of ---------------------------------------------------------------------------------------------


def name(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()


@cache
def files(root: Path) -> tuple[str, ...]:
    """The files of a checkout but for what is made in it."""
    found = (name(path, root) for path in root.rglob("*") if path.is_file())
    return tuple(sorted(path for path in found if not {*Path(path).parts} & {*BUILT_HERE}))


def below(places: Iterable[str], root: Path, ending: str = "") -> list[str]:
    return [path for path in files(root) if path.startswith(tuple(places)) and path.endswith(ending)]


def used(paths: Iterable[str], root: Path) -> str:
    """A digest of what these files and all that they import mean."""
    there = {path for path in paths if (root / path).is_file()}
    return fingerprint(set().union(*(used_by(path, root) for path in there)), root)


def bytes_of(paths: Iterable[str], root: Path) -> str:
    there = [path for path in paths if (root / path).is_file()]
    return digest([[path, sha256((root / path).read_bytes()).hexdigest()] for path in sorted(there)])


def elsewhere(root: Path) -> str:
    """What belongs to no place, so that nobody knows what it changes."""
    return bytes_of((path for path in files(root) if not path.startswith(PLACES)), root)


def stored(root: Path) -> str:
    """Tables and texts that a chapter may read; of what all chapters read, `parts` takes what is one chapter's."""
    data = below(["book/data/", "lib/smalltorch/"], root)
    return bytes_of((path for path in data if not path.endswith((".py", ".md"))), root)


def parts(chapter: str, root: Path) -> list[str | None]:
    return [read_digest(path, chapter, root) for path in PARTS]


@cache
def looks(root: Path) -> str:
    """What makes all pages look as they do: the builders with what they import, styles and scripts, the versions."""
    made = [path for path in below(LOOKS, root) if not is_test(path)]
    code = [path for path in made if path.endswith(".py") and not path.startswith("book/explore/")]
    rest = [path for path in made if path not in code]  # the modules of figures that move are looked at by `moving`
    return digest([used(code, root), bytes_of((*rest, *MACHINE, *INSTALLER), root), elsewhere(root)])


def is_test(path: str) -> bool:
    return Path(path).name.startswith("test_") or path.startswith("book/_tools/tests/")


def moving(root: Path) -> dict[str, list[str]]:
    """The chapters with figures that move, and the modules and tables with which their numbers are computed again."""
    found: dict[str, list[str]] = {}
    for figure in yaml.safe_load((root / FIGURES).read_text(encoding="utf-8")):
        code = used_by(f"{Path(FIGURES).parent}/{figure['name']}.py", root)
        tables = {Path(path).with_suffix(".csv").as_posix() for path in code}
        found.setdefault(figure["page"], []).extend(sorted(code | tables))
    return found


TABLES: dict[str, Callable[[Path], Keys]] = {
    table.__name__: table for table in (notebooks, pages, faults, deep, without_library, plain, paper)
}


# -- the two trees -----------------------------------------------------------------------------------------------------


def tree_at(commit: str, folder: Path) -> None:
    """Put the tree of a commit into a folder.

    Raises:
        SystemExit: where git does not know the commit.
    """
    found = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True)
    if found.returncode != 0:
        sys.exit(f"BASE: expected a commit that this checkout knows, got {commit!r}")
    with tarfile.open(fileobj=BytesIO(found.stdout)) as archive:
        archive.extractall(folder, filter="data")


def reached(table: Callable[[Path], Keys], now: Path, then: Path) -> Iterator[str]:
    """The names whose keys have changed, or that are new."""
    return changed(table(now), table(then))


def changed(now: Keys, before: Keys) -> Iterator[str]:
    return (one for one, key in now.items() if before.get(one) != key)


def main() -> None:
    if len(sys.argv) != 3 or sys.argv[2] not in TABLES:
        sys.exit(__doc__)
    _, base, what = sys.argv
    with TemporaryDirectory(prefix="base-") as folder:
        then = Path(folder).resolve()
        tree_at(base, then)
        now = TABLES[what](ROOT)
        found = list(changed(now, TABLES[what](then)))
    print(f"{what}: {len(found)} of {len(now)} reached", file=sys.stderr)
    print(" ".join(found))


if __name__ == "__main__":
    with in_one_line():
        main()
