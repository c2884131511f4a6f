"""What has passed and is left out: that each thing an outcome rests on has the file run again, and nothing else."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

import outcomes
from smalltorch.experiments.closure import imported

CHAPTER, MODULE, HELPER = "notebooks/part/one.ipynb", "lib/thing.py", "lib/helper.py"
CODE = "import thing\nprint(thing.double(2))"


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A small book: a chapter that imports a module, which imports another; a test of the module; a table."""
    write(tmp_path, MODULE, '"""A thing."""\nimport helper\n\ndef double(x):\n    return helper.two * x\n')
    write(tmp_path, HELPER, "two = 2\n")
    write(tmp_path, "lib/other.py", "x = 1\n")
    write(tmp_path, "lib/tests/test_thing.py", "import thing\n\ndef test_double():\n    assert thing.double(2) == 4\n")
    write(tmp_path, "book/data/table.csv", "a\n1\n")
    write(tmp_path, "book/claims.csv", "id,chapter\nA,one\nB,two\n")
    write(tmp_path, "requirements.lock", "torch\n")
    for name in outcomes.RUNNERS:
        write(tmp_path, name, "import json\n")
    chapter(tmp_path, CODE, "4\n")
    imported.cache_clear()
    yield tmp_path
    imported.cache_clear()


def write(root, name, text):
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)
    imported.cache_clear()


def chapter(root, code, output, prose="# One"):
    cells = [
        {"cell_type": "markdown", "source": prose},
        {"cell_type": "code", "source": code, "outputs": [{"text": output}]},
    ]
    write(root, CHAPTER, json.dumps({"cells": cells}))


def kept(root, *notes, path=CHAPTER):
    assert outcomes.keep(path, outcomes.key(path, root), notes, root) == ""


def stands(root, path=CHAPTER):
    return outcomes.stands(path, outcomes.key(path, root), root)


def test_what_has_passed_stands(root):
    assert not stands(root)
    kept(root, "import lib/thing.py", "read book/data/table.csv")
    assert stands(root) and not stands(root, "lib/tests/test_thing.py")


@pytest.mark.parametrize(
    "change",
    [
        lambda root: chapter(root, CODE + "\nprint(1)", "4\n"),
        lambda root: chapter(root, CODE, "5\n"),
        lambda root: write(root, MODULE, "import helper\n\ndef double(x):\n    return x + x\n"),
        lambda root: write(root, HELPER, "two = 2.0\n"),
        lambda root: write(root, "requirements.lock", "torch==2\n"),
        lambda root: write(root, "book/data/table.csv", "a\n2\n"),
        lambda root: write(root, "book/data/another.csv", ""),
        lambda root: (root / "book/data/table.csv").unlink(),
        lambda root: write(root, "book/claims.csv", "id,chapter\nA2,one\nB,two\n"),
        *(lambda root, name=name: write(root, name, "import csv\n") for name in outcomes.RUNNERS),
    ],
)
def test_a_change_of_what_it_rests_on_has_it_run_again(root, change):
    kept(root, "read book/data/table.csv", "list book/data", "read book/claims.csv")
    change(root)
    assert not stands(root)


@pytest.mark.parametrize(
    "change",
    [
        lambda root: chapter(root, CODE, "4\n", prose="# Two"),
        lambda root: write(root, MODULE, (root / MODULE).read_text().replace("A thing", "Another") + "# two\n"),
        lambda root: write(root, "lib/other.py", "x = 2\n"),
        lambda root: write(root, "book/claims.csv", "id,chapter\nA,one\nB2,two\nC,two\n"),
        lambda root: write(root, "lib/tests/test_thing.py", "import thing\n"),
    ],
)  # fmt: skip
def test_a_change_of_something_else_does_not(root, change):
    kept(root, "read book/data/table.csv", "read book/claims.csv")
    change(root)
    assert stands(root)


def test_what_is_around_belongs_to_the_key(root, monkeypatch):
    kept(root)
    for name, value in {
        "OMP_NUM_THREADS": "7",
        "PYTHONHASHSEED": "7",
        "ATEN_CPU_CAPABILITY": "x",
        "LC_ALL": "x",
    }.items():
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(name, value)
            assert not stands(root), name
    monkeypatch.setenv("TERM_PROGRAM", "another")
    assert stands(root)
    for what, value in {"_processor": ["another"], "_packages": ["torch-9"]}.items():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(outcomes, what, lambda value=value: value)
            assert not stands(root), what
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outcomes, "sys", SimpleNamespace(version="3.99"))
        assert not stands(root)
    assert stands(root)


def test_what_imports_do_not_tell_is_noticed(root):
    """Where the closure of imports lacks a module that was imported, or a program was started, nothing is kept."""
    key = outcomes.key(CHAPTER, root)
    assert "does not tell" in outcomes.keep(CHAPTER, key, ["import lib/other.py"], root).replace("do not", "does not")
    assert "starts a program (git)" in outcomes.keep(CHAPTER, key, ["start git"], root)
    assert not stands(root)
    kept(root, "start uname", "read nothing/there")


def test_source_that_a_chapter_reads_counts_by_its_letters(root):
    kept(root, "read lib/thing.py")
    write(root, MODULE, (root / MODULE).read_text().replace("A thing", "Another"))
    assert not stands(root)


def run(root, monkeypatch, capfd, suite="library", **settings):
    monkeypatch.delenv("FRESH", raising=False)  # CI sets it
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    arguments = {"library": [*outcomes.SUITES["library"], "-p", "no:cacheprovider"]}
    monkeypatch.setattr(outcomes, "SUITES", arguments)
    monkeypatch.chdir(root)
    write(root, ".pytest.ini", "[pytest]\npythonpath = lib\nmarkers =\n    deep: x\n    processes: x\n")
    status = outcomes.run(suite, ["lib/tests/test_thing.py", "lib/tests/test_other.py"], 1, root)
    return status, capfd.readouterr().out


def test_files_run_until_they_pass_and_then_stand(root, monkeypatch, capfd):
    write(root, "lib/tests/test_other.py", "def test_one():\n    pass\n\ndef test_two():\n    assert False\n")
    status, said = run(root, monkeypatch, capfd)
    assert status == 1 and "1 failed, 2 passed" in said and "stand" not in said
    status, said = run(root, monkeypatch, capfd)
    assert status == 1 and "1 file of tests stands as it was run here, 1 run now" in said
    there = f"{Path(outcomes.__file__).parents[2]}/book/data/essay.txt"  # what is opened in this checkout is noted
    write(root, "book/data/essay.txt", "a")
    write(root, "lib/tests/test_other.py", f"def test_one():\n    assert open({there!r}).read()\n")
    status, said = run(root, monkeypatch, capfd)
    assert status == 0 and "1 passed" in said
    status, said = run(root, monkeypatch, capfd)
    assert status == 0 and "2 files of tests stand as they were run here, 0 run now" in said and "passed" not in said
    write(root, "book/data/essay.txt", "b")
    status, said = run(root, monkeypatch, capfd)
    assert status == 0 and "1 file of tests stands as it was run here, 1 run now" in said
    status, said = run(root, monkeypatch, capfd, FRESH="1")
    assert status == 0 and "3 passed" not in said and "2 passed" in said and "stand" not in said


def test_a_guard_or_default_that_no_test_reaches_fails_the_run(root, monkeypatch, capfd):
    """Reached by any file, also by one that stands as it was run before."""
    write(root, "lib/smalltorch/part.py", "def f(x, y=1):\n    if x:\n        raise ValueError\n")
    reach = "import sys\n\ndef test_one():\n    sys.audit('smalltorch.reached', 'lib/smalltorch/part.py f%s')\n"
    write(root, "lib/tests/test_thing.py", reach % " raise 1")
    write(root, "lib/tests/test_other.py", "def test_one():\n    pass\n")
    missing = "lib/smalltorch/part.py:1: no test leaves the argument to its default: f(y)"
    for _ in range(2):  # the second time both files stand
        status, said = run(root, monkeypatch, capfd)
        assert status == 1 and said.endswith(f"{missing}\n") and "no test reaches" not in said
    write(root, "lib/tests/test_other.py", reach % "(y)")
    status, said = run(root, monkeypatch, capfd)
    assert status == 0 and "1 file of tests stands" in said and missing not in said
    write(root, "lib/tests/test_thing.py", "def test_one():\n    pass\n")
    status, said = run(root, monkeypatch, capfd)
    assert status == 1 and said.endswith("lib/smalltorch/part.py:3: no test reaches raise ValueError\n")
