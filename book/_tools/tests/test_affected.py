"""What a change reaches: trees that differ in one thing from the one here, made of links to its files."""

import configparser
import os
import shutil
import sys
from functools import cache

import pytest

import affected
from affected import ROOT, TABLES
from outcomes import FOLDERS


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    """A function that makes a tree like this one, but for what is edited in it; the tree without edits comes first."""
    first = tmp_path_factory.mktemp("first")
    affected.tree_at("HEAD", first)
    for path in affected.files(ROOT):  # as it stands here, committed or not
        (first / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, first / path)
    for path in set(affected.files(first)) - set(affected.files(ROOT)):
        (first / path).unlink()
    affected.files.cache_clear()

    def edited(**edits):
        root = tmp_path_factory.mktemp("tree")
        shutil.copytree(first, root, copy_function=os.link, dirs_exist_ok=True)
        for path, (old, new) in edits.items():
            text = (root / path).read_text() if (root / path).exists() else ""
            assert old in text, path
            (root / path).unlink(missing_ok=True)
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text.replace(old, new, 1) if old else text + new)
        return root

    return first, edited


SOFTMAX = "notebooks/attention/softmax.ipynb"
CODE = ("import torch", "import torch as torch")
MORE = ("import", "import math\nimport")
EXPERIMENTS = "lib/smalltorch/experiments"
SETUP = dict.fromkeys(["without_library", "pages", "plain", "paper"], all)
NUMBERS = dict.fromkeys(["notebooks", "pages", "plain", "paper"], all)
MOVING = {"pages": {"notebooks/overview/overview.html"}, "notebooks": {"overview"}}
PINS = dict.fromkeys(["notebooks", "pages", "deep", "without_library", "plain", "paper"], all)
FORM = ('"""', '"""Another docstring. ')


@cache
def before(what, first):
    return TABLES[what](first)


def test_the_same_tree_reaches_nothing(trees):
    first, edited = trees
    again = edited()
    for what, table in TABLES.items():
        assert not [*affected.reached(table, again, first)], what


@pytest.mark.parametrize(
    "path, edit, reached",
    [
        ("docs/claim.md", ("", "\nMore."), {}),
        ("README.md", ("", "\nMore."), {}),
        ("book/_static/book.css", ("", "\n"), {"pages": all, "plain": all, "paper": all}),
        ("book/notation.md", ("", "\nMore."), {"pages": {"book/notation.html"}, "paper": all}),
        ("lib/smalltorch/block.py", FORM, {"pages": {"book/library.html"}, "paper": all}),
        ("lib/smalltorch/collapse.py", CODE, {"notebooks": {"paths"}, "faults": {"lib/smalltorch/collapse.py"}}),
        (f"{EXPERIMENTS}/placement.csv", ("", "\n"), {"notebooks": all, "deep": {"lib/tests/test_long_runs.py"}}),
        ("lib/tests/test_norm.py", CODE, {"faults": {"lib/smalltorch/norm.py"}}),
        ("lib/tests/conftest.py", CODE, {"faults": all, "notebooks": all, "deep": all}),
        ("lib/smalltorch/engine/kernel.py", MORE, {"notebooks": all}),
        ("requirements.txt", ("", "\n"), PINS),
        ("book/_tools/nbreport.py", ("import re\n", "import re as re\n"), NUMBERS),
        ("book/_tools/setup_cell.py", ("import yaml", "import yaml as yaml"), NUMBERS | SETUP),
        ("book/_ext/deepdive/formulas.py", MORE, {"plain": all, "pages": all}),
        ("lib/smalltorch/engine/schema.py", ("import re", "import re as re"), NUMBERS | SETUP),
        ("lib/smalltorch/generate.py", CODE, MOVING),
        ("something new", ("", "x"), dict.fromkeys(TABLES, all)),
    ],
)  # fmt: skip
def test_what_a_change_reaches(trees, path, edit, reached):
    """`all` of the names, or these at least and not softmax's; nothing of the kinds that are not named."""
    first, edited = trees
    root = edited(**{path: edit})
    for what, table in TABLES.items():
        now = table(root)
        found, names = {*affected.changed(now, before(what, first))}, {*now}
        if what not in reached:
            allowed = {"pages", "paper", "faults", "deep"} if reached else set()
            assert not found or what in allowed, (what, found)
        elif reached[what] is all:
            assert found == names, (what, names - found)
        else:
            assert reached[what] <= found, what
            assert not found & {"softmax", "notebooks/attention/softmax.html", "lib/smalltorch/engine/kernel.py"}, what


def test_prose_of_a_chapter_reaches_its_pages_and_the_lists(trees):
    first, edited = trees
    root = edited(**{SOFTMAX: ("# ", "# Now: ")})
    assert not [*affected.reached(affected.notebooks, root, first)]
    found = {*affected.reached(affected.pages, root, first)}
    assert {"notebooks/attention/softmax.html", "book/ledger/softmax.html", "book/ledger.html"} <= found
    assert "notebooks/attention/heads.html" not in found


def test_an_output_and_a_claim_reach_their_chapter(trees):
    first, edited = trees
    for edit in ({SOFTMAX: ('"output_type"', '"output_kind"')}, {"book/claims.csv": (",softmax\n", "!,softmax\n")}):
        root = edited(**edit)
        assert [*affected.reached(affected.notebooks, root, first)] == ["softmax"]


def test_all_deep_tests_are_known():
    paths = [path for folder in ("lib/tests", "book") for path in (ROOT / folder).rglob("test_*.py")]
    marked = {path.relative_to(ROOT).as_posix() for path in paths if "pytest.mark." + "deep" in path.read_text()}
    assert marked == set(affected.DEEP)
    assert all(any(ROOT.glob(pattern)) for patterns in affected.DEEP.values() for pattern in patterns)


def test_modules_are_looked_for_where_pytest_does():
    settings = configparser.ConfigParser()
    settings.read(ROOT / ".pytest.ini")
    assert set(FOLDERS) == {*settings["pytest"]["pythonpath"].split(), "lib/tests"}


def test_every_place_exists():
    places = (*affected.LOOKS, *affected.SHOWN, *affected.MACHINE, *affected.INSTALLER)
    assert all((ROOT / place).exists() for place in places)


def test_a_base_that_is_not_known_is_an_error(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["affected.py", "0" * 40, "notebooks"])
    with pytest.raises(SystemExit, match="BASE: expected a commit"):
        affected.main()
    monkeypatch.setattr(sys, "argv", ["affected.py", "HEAD", "cats"])
    with pytest.raises(SystemExit, match="notebooks"):
        affected.main()


def test_what_it_says(monkeypatch, capsys):
    monkeypatch.setitem(TABLES, "deep", lambda root: {"a": str(root == ROOT), "b": ""})
    monkeypatch.setattr(sys, "argv", ["affected.py", "HEAD", "deep"])
    affected.main()
    said = capsys.readouterr()
    assert (said.out, said.err) == ("a\n", "deep: 1 of 2 reached\n")
