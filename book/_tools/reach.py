"""What a change can reach, so that checks which take long run on that alone.

    reach.py BASE notebooks     chapters whose notebooks may give other numbers than at the commit BASE
    reach.py BASE pages         pages that may look different
    reach.py BASE faults        files whose faults may be noticed no longer
    reach.py BASE deep          files with deep tests that may end otherwise
    reach.py BASE bare          chapters that may not run where the library is missing: two, for all set up alike
    reach.py BASE plain         "html", if what a platform without Node gets may be another book

What a file uses is computed from the imports of its syntax tree, directly or not. What is not known to reach little
reaches everything. Prose changes no number: of code only the syntax tree without docstrings counts, of a notebook its
code cells with their outputs. To what is reached comes a tenth of the rest, drawn by the commit's hash: a change in
what no import tells is found within some commits, and again with the same hash.

The engine, the pinned versions and what runs the notebooks reach all numbers, and so does a module that most chapters
use, such as the models. `make test` runs all notebooks; under other conditions, where rounding is another, a third of
them is drawn then. And of faults these reach only what imports tell: a test is hardly ever deafened by what it does not
import.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from pathlib import Path

import nbformat
import yaml

from deepdive.book.contents import ledger_page, outline, read
from deepdive.explore import LIST as FIGURES
from smalltorch.experiments.runner import tree
from smalltorch.files import in_one_line

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("lib", "lib/tests", "book", "book/_ext", "book/paper", "book/_tools")  # where tests look for modules
FAULTS = "lib/tests/sabotage/faults"
# What a change below these paths reaches; the first that fits holds, and what fits none reaches everything.
EVERYTHING, MACHINE, NUMBERS = "everything", "all numbers and the looks of all pages", "all numbers"
LOOKS, COMPUTED, NOTHING = "the looks of all pages", "what imports tell", "nothing"
ALL_NUMBERS, ALL_PAGES = (EVERYTHING, MACHINE, NUMBERS), (EVERYTHING, MACHINE, LOOKS)
PLACES = {
    "lib/smalltorch/engine/": NUMBERS,
    "lib/pyproject.toml": MACHINE,
    "lib/weights.txt": NUMBERS,
    "lib/tests/conftest.py": EVERYTHING,
    "lib/tests/sabotage/faults/": COMPUTED,
    "lib/tests/sabotage/": EVERYTHING,
    "lib/benchmarks/": NOTHING,
    "lib/": COMPUTED,
    "notebooks/": COMPUTED,
    "book/_ext/": LOOKS,
    "book/_tools/cuda.txt": MACHINE,
    "book/_tools/install.py": MACHINE,
    "book/_tools/install.sh": MACHINE,
    "book/_tools/nbreport.py": NUMBERS,
    "book/_tools/nbval.sanitize": NUMBERS,
    "book/_tools/reach.py": COMPUTED,
    "book/_tools/tests/": COMPUTED,
    "book/_tools/": LOOKS,
    "book/_static/": LOOKS,
    "book/_templates/": LOOKS,
    "book/explore/": LOOKS,
    "book/paper/": LOOKS,
    "book/": COMPUTED,
    "Makefile": MACHINE,
    "requirements.in": MACHINE,
    "requirements.lock": MACHINE,
    "requirements.txt": MACHINE,
    "_config.yml": LOOKS,
    "_toc.yml": COMPUTED,
    "docs/": NOTHING,
    ".ci/": NOTHING,
    ".github/": NOTHING,
    "README.md": NOTHING,
    "CHANGELOG.md": NOTHING,
    "CITATION.cff": LOOKS,
    "CONTRIBUTING.md": NOTHING,
}

# What a deep test runs without importing it; a test compares the names with those of the files that have such tests.
DEEP = {
    "lib/tests/test_long_runs.py": ("lib/smalltorch/experiments/*.py",),
    "book/_tools/tests/test_build.py": ("book/_ext/deepdive/**/*.py",),
    "book/_tools/tests/test_warm.py": ("book/_ext/deepdive/**/*.py",),
    "book/_tools/tests/test_install.py": ("book/_tools/install.py", "book/_tools/install.sh"),
    "book/_tools/tests/test_notebooks.py": (),
}
BARE = ("attention", "norm-bounds")
BUILDERS = "book/_ext/deepdive/**/*.py"  # what makes a page of a notebook's stored outputs


def kind(path: str) -> str:
    """How far a change of this file reaches."""
    return next((reaches for place, reaches in PLACES.items() if path.startswith(place)), EVERYTHING)


def used_by(path: str, root: Path = ROOT) -> set[str]:
    """Which files of the book a file uses, itself among them, by the imports that are written in it and in those."""
    found, waiting = {path}, [path]
    while waiting:
        new = directly(waiting.pop(), root) - found
        found |= new
        waiting += new
    return found


@cache
def directly(path: str, root: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(code_of(root / path))):
        if isinstance(node, ast.Import):
            found.update(*(files(alias.name, FOLDERS, root) for alias in node.names))
        elif isinstance(node, ast.ImportFrom):  # `from a import b` may name the module a.b
            where = (Path(path).parents[node.level - 1].as_posix(),) if node.level else FOLDERS
            package = f"{node.module}." if node.module else ""
            found.update(*(files(package + alias.name, where, root) for alias in node.names))
    return found


def files(name: str, where: tuple[str, ...], root: Path) -> list[str]:
    """The files that are run when the module is imported: its own and those of the packages around it."""
    steps, found = name.split("."), []
    for depth in range(1, len(steps) + 1):
        place = "/".join(steps[:depth])
        candidates = [f"{folder}/{place}{end}" for folder in where for end in (".py", "/__init__.py")]
        found += [file for file in candidates if (root / file).is_file()][:1]
    return found


def code_of(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return text
    return "\n".join(cell.source for cell in nbformat.v4.reads(text).cells if cell.cell_type == "code")


def changed_code(changed: Iterable[str], root: Path) -> set[str]:
    """The changed files as imports know them: what is stored beside a module of its name belongs to it."""
    found = set()
    for path in changed:
        module = Path(path).with_suffix(".py")
        found |= {path, module.as_posix()} if (root / module).is_file() else {path}
    return found


def meaning(path: str, text: str) -> object:
    """What of a file can change numbers: code without comments and docstrings, outputs; all of any other file."""
    if path.endswith(".py"):
        return tree(ast.parse(text))
    if path.endswith(".ipynb"):
        return [(cell.source, cell.outputs) for cell in nbformat.v4.reads(text).cells if cell.cell_type == "code"]
    return text


def only_prose(path: str, base: str) -> bool:
    """Whether a changed file means at the commit `base` what it means now."""
    if not (ROOT / path).is_file() or not git("ls-tree", base, path):
        return False
    return meaning(path, git("show", f"{base}:{path}")) == meaning(path, (ROOT / path).read_text(encoding="utf-8"))


def notebooks(changed: set[str], root: Path = ROOT) -> dict[str, bool]:
    """The chapters with notebooks, and whether the change reaches their numbers by what they import."""
    used = by_notebooks(root)
    changed = {path for path in changed_code(changed, root) if not reaches_all_numbers(path, used)}
    everything = any(kind(path) == EVERYTHING for path in changed)
    return {Path(path).stem: everything or not changed.isdisjoint(files) for path, files in used.items()}


def by_notebooks(root: Path = ROOT) -> dict[str, set[str]]:
    """The notebooks, and the files that each uses."""
    paths = sorted(path.relative_to(root).as_posix() for path in root.glob("notebooks/*/*.ipynb"))
    return {path: used_by(path, root) for path in paths}


def reaches_all_numbers(path: str, used: dict[str, set[str]]) -> bool:
    """Whether a change of this file is one of all numbers: by its place, or as most of the notebooks use it."""
    return kind(path) == NUMBERS or sum(path in files for files in used.values()) > len(used) / 2


def all_looks(changed: set[str], root: Path = ROOT) -> bool:
    """Whether the change reaches the looks of all pages: by its place, or because what builds them imports it."""
    builders = (path for path in root.glob(BUILDERS) if not path.name.startswith("test_"))
    used = set().union(*(used_by(path.relative_to(root).as_posix(), root) for path in builders))
    return any(kind(path) in ALL_PAGES for path in changed) or not used.isdisjoint(changed_code(changed, root))


def pages(changed: set[str], root: Path = ROOT) -> dict[str, bool]:
    """The pages of the book, and whether the change reaches what they show.

    A chapter's pages are stored in its notebook; figures that move are compared with the library where it is looked at.
    """
    everything = all_looks(changed, root)
    tests = ("lib/tests/", "book/_tools/tests/")
    listed = any(kind(path) != NOTHING and not path.startswith(tests) for path in changed)
    figures, code = moving(root), changed_code(changed, root)
    found = {}
    for name in (name for _, part in outline(root, read(root)) for name in part):
        is_chapter = name.startswith("notebooks/")
        reached = everything or (f"{name}.ipynb" in changed if is_chapter else listed)
        found[f"{name}.html"] = reached or not code.isdisjoint(figures.get(name, ()))
        if is_chapter:
            found[f"{ledger_page(Path(name).name)}.html"] = reached
    return found


def moving(root: Path = ROOT) -> dict[str, set[str]]:
    """The chapters with figures that move, and the files with which their numbers are computed again."""
    found: dict[str, set[str]] = {}
    for figure in yaml.safe_load((root / FIGURES).read_text(encoding="utf-8")):
        found.setdefault(figure["page"], set()).update(used_by(f"{Path(FIGURES).parent}/{figure['name']}.py", root))
    return found


def faults(changed: set[str], root: Path = ROOT) -> dict[str, bool]:
    """The files with faults, and whether the change reaches them, their list, or the tests that notice."""
    changed = changed_code(changed, root)
    everything = any(kind(path) == EVERYTHING for path in changed)
    found = {}
    for path in sorted((root / FAULTS).rglob("*.toml")):
        target = path.relative_to(root / FAULTS).with_suffix("").as_posix()
        tests = {entry["test"].partition("::")[0] for entry in tomllib.loads(path.read_text("utf-8"))["fault"]}
        files = {target, path.relative_to(root).as_posix()}.union(*(used_by(test, root) for test in tests))
        found[target] = everything or not changed.isdisjoint(files)
    return found


def deep(changed: set[str], root: Path = ROOT) -> dict[str, bool]:
    """The files with deep tests, and whether the change reaches them or what they run."""
    changed = changed_code(changed, root)
    everything = any(kind(path) in ALL_NUMBERS for path in changed)
    found = {}
    for test, patterns in DEEP.items():
        run = [path.relative_to(root).as_posix() for pattern in patterns for path in root.glob(pattern)]
        files = set(run).union(*(used_by(path, root) for path in (test, *run) if path.endswith(".py")))
        found[test] = everything or not changed.isdisjoint(files)
    return found


def bare(changed: set[str], root: Path = ROOT) -> dict[str, bool]:
    """Two chapters, and whether the change reaches what makes them run on a machine without the library."""
    reached = any(kind(path) in ALL_NUMBERS for path in changed) or not changed.isdisjoint(
        used_by("book/_tools/bare.py", root)
    )
    return dict.fromkeys(BARE, reached)


def plain(changed: set[str], root: Path = ROOT) -> dict[str, bool]:
    """Whether the change reaches what builds pages."""
    return {"html": all_looks(changed, root)}


TABLES = {table.__name__: table for table in (notebooks, pages, faults, deep, bare, plain)}


def one_in(what: str, changed: set[str]) -> int:
    """Of how many names that no import reaches one is drawn."""
    if what != "notebooks":
        return 10
    used = by_notebooks()
    wide = (kind(path) in ALL_NUMBERS or reaches_all_numbers(path, used) for path in changed_code(changed, ROOT))
    return 3 if any(wide) else 10


def drawn(names: Iterable[str], commit: str, among: int) -> set[str]:
    """One of so many names, others for every commit."""
    return {name for name in names if int(sha256(f"{commit} {name}".encode()).hexdigest(), 16) % among == 0}


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def main() -> None:
    if len(sys.argv) != 3 or sys.argv[2] not in TABLES:
        sys.exit(__doc__)
    _, base, what = sys.argv
    commit = git("rev-parse", "HEAD").strip()
    changed = set(git("diff", "--name-only", base, "HEAD").split("\n")) - {""}
    if what != "pages":
        changed = {path for path in changed if not only_prose(path, base)}
    table = TABLES[what](changed)
    reached = {name for name, is_reached in table.items() if is_reached}
    by_chance = drawn(table.keys() - reached, commit, one_in(what, changed))
    print(f"{what}: {len(reached)} of {len(table)} reached, {len(by_chance)} more drawn by commit {commit[:12]}"
          + "".join(f" {name}" for name in sorted(by_chance)), file=sys.stderr)  # fmt: skip
    print(" ".join(name for name in table if name in reached | by_chance))


if __name__ == "__main__":
    with in_one_line():
        main()
