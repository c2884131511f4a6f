"""What a change reaches: the imports as computed are those that are made, and what is not known reaches everything."""

import ast
import configparser
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import reach
from reach import ROOT, bare, code_of, deep, drawn, faults, kind, meaning, notebooks, pages, plain, used_by

BOOK = {
    "lib/all/__init__.py": "import all.first",
    "lib/all/first.py": "",
    "lib/all/second.py": "def f():\n    from all import third",
    "lib/all/third.py": "import torch",
    "lib/tests/two/test_second.py": "from all.second import f\n\nfrom . import kinds\nfrom .judge import x",
    "lib/tests/two/kinds.py": "",
    "lib/tests/two/judge.py": "",
}

# Prints which of the book's files the imports of each notebook's first level load. Each in a process of its own, which
# has what is not the book's from this one.
LOADED = """\
import json, os, sys
import hypothesis, IPython, jaxtyping, matplotlib.pyplot, sympy, torch
for path, imports in json.loads(sys.argv[1]).items():
    if child := os.fork():
        os.waitpid(child, 0)
        continue
    exec(imports)
    print(json.dumps([path, [getattr(module, "__file__", None) for module in sys.modules.values()]]), flush=True)
    os._exit(0)
"""


@pytest.fixture
def book(tmp_path):
    for name, text in BOOK.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def reached(table):
    return {name for name, is_reached in table.items() if is_reached}


def test_imports_within_functions_packages_and_those_beside(book):
    second = {"lib/all/__init__.py", "lib/all/first.py", "lib/all/second.py", "lib/all/third.py"}
    assert used_by("lib/all/second.py", book) == second
    beside = {f"lib/tests/two/{name}.py" for name in ("test_second", "kinds", "judge")}
    assert used_by("lib/tests/two/test_second.py", book) == second | beside


def test_all_that_notebooks_load_is_computed():
    imports = {}
    for path in sorted(ROOT.glob("notebooks/*/*.ipynb")):
        nodes = [node for node in ast.parse(code_of(path)).body if isinstance(node, ast.Import | ast.ImportFrom)]
        imports[path.relative_to(ROOT).as_posix()] = "\n".join(map(ast.unparse, nodes))
    made = subprocess.run(
        [sys.executable, "-c", LOADED, json.dumps(imports)], cwd=ROOT, check=True, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "lib")},
    )  # fmt: skip
    loaded = dict(map(json.loads, made.stdout.splitlines()))
    assert list(loaded) == list(imports)
    for name, files in loaded.items():
        paths = [Path(file) for file in files if file]
        ours = {path.relative_to(ROOT).as_posix() for path in paths if path.is_relative_to(ROOT / "lib")}
        assert len(ours) > 5
        assert ours <= used_by(name), name


def test_what_is_not_placed_reaches_everything():
    for table in reach.TABLES.values():
        found = table({"something new"})
        assert reached(found) == set(found) != set()


@pytest.mark.parametrize("path", ["lib/smalltorch/engine/kernel.py", "requirements.txt", "book/_tools/nbreport.py"])
def test_what_all_numbers_rest_on(path):
    for table in (deep, bare):
        found = table({path})
        assert reached(found) == set(found) != set()
    assert not reached(notebooks({path}))
    assert reach.one_in("notebooks", {path}) == 3 < reach.one_in("faults", {path}) == 10
    softmax = "notebooks/attention/softmax.ipynb"
    assert reach.one_in("notebooks", {softmax}) == 10 and reached(notebooks({path, softmax})) == {"softmax"}


def test_what_most_chapters_use_counts_as_the_engine_does():
    models, collapse = "lib/smalltorch/models.py", "lib/smalltorch/collapse.py"
    assert not reached(notebooks({models})) and reach.one_in("notebooks", {models}) == 3
    assert 0 < len(reached(notebooks({collapse}))) < len(notebooks(set())) / 2
    assert reached(notebooks({models, collapse})) == reached(notebooks({collapse}))
    assert reach.one_in("notebooks", {collapse}) == reach.one_in("faults", {models}) == 10


def test_pins_are_looked_at_on_all_pages_and_the_engine_on_those_that_list_it():
    assert reached(pages({"requirements.txt"})) == set(pages(set())) and reached(plain({"Makefile"}))
    found = reached(pages({"lib/smalltorch/engine/kernel.py"}))
    assert "book/library.html" in found and "notebooks/attention/softmax.html" not in found
    assert not reached(plain({"lib/smalltorch/engine/kernel.py"}))


@pytest.mark.parametrize("path", ["lib/smalltorch/engine/schema.py", "lib/smalltorch/files.py"])
def test_what_builds_pages_imports_of_the_library_reaches_the_looks_of_all(path):
    assert reached(pages({path})) == set(pages(set())) and reached(plain({path}))


def test_what_runs_the_faults_reaches_all_of_them():
    for path in ("lib/tests/sabotage/runner.py", "lib/tests/conftest.py"):
        assert reached(faults({path})) == set(faults(set()))
    assert not reached(faults({"requirements.txt", "Makefile"}))
    found = reached(faults({"lib/smalltorch/engine/kernel.py"}))
    assert "lib/smalltorch/engine/derive.py" in found and "book/_tools/toc.py" not in found


def test_a_module_reaches_who_uses_it():
    assert {"placement"} == reached(notebooks({"lib/smalltorch/experiments/placement.csv"}))
    found = reached(notebooks({"lib/smalltorch/collapse.py"}))
    assert "paths" in found and "softmax" not in found
    assert {"lib/smalltorch/collapse.py"} < reached(faults({"lib/smalltorch/collapse.py"}))
    looked_at = reached(pages({"lib/smalltorch/collapse.py", "notebooks/rank-collapse/paths.ipynb"}))
    assert {"book/library.html", "notebooks/rank-collapse/paths.html", "book/ledger/paths.html"} <= looked_at
    assert not {"notebooks/attention/softmax.html", "book/ledger/softmax.html"} & looked_at


def test_figures_that_move_are_looked_at_where_the_library_that_they_follow_changes():
    found = reached(pages({"lib/smalltorch/generate.py"}))
    assert "notebooks/overview/overview.html" in found
    assert not {"book/ledger/overview.html", "notebooks/position/extrapolation.html"} & found
    table = "lib/smalltorch/experiments/past_length.csv"
    assert "notebooks/position/extrapolation.html" in reached(pages({table}))


def test_a_chapter_reaches_itself_and_the_lists():
    path = "notebooks/attention/softmax.ipynb"
    assert reached(notebooks({path})) == {"softmax"}
    found = reached(pages({path}))
    assert {"notebooks/attention/softmax.html", "book/ledger/softmax.html", "book/ledger.html"} <= found
    assert "notebooks/attention/heads.html" not in found


def test_what_reaches_little():
    assert not reached(notebooks({"docs/claim.md", "README.md"})) and not reached(pages({"docs/claim.md"}))
    assert reached(pages({"book/_static/book.css"})) == set(pages(set()))
    assert not reached(notebooks({"book/_static/book.css", "book/_tools/x.py", "book/_ext/x.py", ".ci/run"}))
    assert reached(pages({"book/_tools/x.py"})) == set(pages(set()))
    assert reached(faults({"book/_tools/toc.py"})) >= {"book/_tools/toc.py"}
    assert not reached(pages({"lib/tests/test_norm.py", "book/_tools/tests/test_ci.py"}))
    assert reached(faults({"lib/tests/test_norm.py"})) == {"lib/smalltorch/norm.py"}
    assert reached(faults({"lib/tests/sabotage/faults/lib/smalltorch/plot.py.toml"})) == {"lib/smalltorch/plot.py"}


def test_deep_tests_run_for_what_they_look_at():
    assert reached(deep({"lib/smalltorch/experiments/placement.csv"})) == {"lib/tests/test_long_runs.py"}
    builds = {"book/_tools/tests/test_build.py", "book/_tools/tests/test_warm.py"}
    assert reached(deep({"book/_ext/deepdive/ledger.py"})) == builds
    assert "lib/tests/test_long_runs.py" in reached(deep({"lib/smalltorch/block.py"}))
    assert reached(deep({"book/_tools/install.sh"})) >= {"book/_tools/tests/test_install.py"}
    assert not reached(deep({"notebooks/attention/softmax.ipynb", "book/notation.md", "lib/smalltorch/superpose.py"}))


def test_all_deep_tests_are_known():
    files = [path for folder in ("lib/tests", "book") for path in (ROOT / folder).rglob("test_*.py")]
    marked = {path.relative_to(ROOT).as_posix() for path in files if "pytest.mark." + "deep" in path.read_text()}
    assert marked == set(reach.DEEP)
    assert all(any(ROOT.glob(pattern)) for patterns in reach.DEEP.values() for pattern in patterns)


def test_a_machine_without_the_library_and_a_platform_without_node():
    assert (
        reached(bare({"book/_tools/setup_cell.py"}))
        == {"attention", "norm-bounds"}
        == reached(bare({"lib/weights.txt"}))
    )
    assert not reached(bare({"lib/smalltorch/block.py", "notebooks/attention/attention.ipynb"}))
    assert reached(plain({"book/_ext/deepdive/formulas.py"})) and not reached(plain({"book/notation.md"}))


def test_prose_means_nothing_here():
    assert meaning("a.py", '"""One."""\n\nx = 1  # first') == meaning("a.py", '"""Two."""\nx = 1')
    assert meaning("a.py", "x = 1") != meaning("a.py", "x = 2")
    assert meaning("a.csv", "x = 1  # first") != meaning("a.csv", "x = 1")
    book = json.loads((ROOT / "notebooks/attention/softmax.ipynb").read_text())
    before = meaning("a.ipynb", json.dumps(book))
    book["cells"][0]["source"] = ["# Another title"]
    assert book["cells"][0]["cell_type"] == "markdown" and meaning("a.ipynb", json.dumps(book)) == before
    code = next(cell for cell in book["cells"] if cell["cell_type"] == "code" and cell["outputs"])
    code["outputs"] = []
    assert meaning("a.ipynb", json.dumps(book)) != before


def test_of_changed_files_only_those_count_that_are_more_than_prose(monkeypatch):
    old = {"a.py": '"""Old."""', "b.py": "x = 1"}

    def git(what, *words):
        path = words[-1].rpartition(":")[2]
        return old[path] if what == "show" else old.get(path, "")  # git show fails where there is no such file

    monkeypatch.setattr(reach, "git", git)
    assert not reach.only_prose("a.py", "old")  # there is no such file now
    path = "book/_tools/reach.py"
    old[path] = (ROOT / path).read_text().replace("What a change can reach", "What else")
    assert reach.only_prose(path, "old")
    old[path] += "\nx = 1\n"
    assert not reach.only_prose(path, "old")
    del old[path]
    assert not reach.only_prose(path, "old")  # there was no such file then


def test_every_place_exists():
    assert all((ROOT / place).exists() for place in reach.PLACES)


def test_modules_are_looked_for_where_pytest_does():
    settings = configparser.ConfigParser()
    settings.read(ROOT / ".pytest.ini")
    assert set(reach.FOLDERS) == {*settings["pytest"]["pythonpath"].split(), "lib/tests"}


def test_what_is_not_known_reaches_everything():
    assert kind("something new") == reach.EVERYTHING


def test_a_tenth_is_drawn_by_the_commit():
    names = [f"name {k}" for k in range(1000)]
    assert 60 < len(drawn(names, "a1", 10)) < 140
    assert drawn(names, "a1", 10) == drawn(names, "a1", 10) != drawn(names, "b2", 10)
    assert 250 < len(drawn(names, "a1", 3)) < 420


def test_what_it_says(monkeypatch, capsys):
    changed = "docs/claim.md\nnotebooks/attention/softmax.ipynb\n"
    answers = {"rev-parse": "c0ffee", "diff": changed, "ls-tree": ""}
    monkeypatch.setattr(reach, "git", lambda *words: answers[words[0]])
    monkeypatch.setattr(sys, "argv", ["reach.py", "old", "notebooks"])
    reach.main()
    said = capsys.readouterr()
    assert "softmax" in said.out.split()
    by_chance = sorted(set(said.out.split()) - {"softmax"})
    count = len(notebooks(set()))
    assert said.err.startswith(f"notebooks: 1 of {count} reached, {len(by_chance)} more drawn by commit c0f")
    assert said.err.split("c0ffee")[1].split() == by_chance
    answers["diff"] += "requirements.txt\n"
    reach.main()
    assert len(capsys.readouterr().out.split()) > 6  # a third of them
    monkeypatch.setattr(sys, "argv", ["reach.py", "old", "cats"])
    with pytest.raises(SystemExit, match="notebooks"):
        reach.main()
