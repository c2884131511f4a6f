"""The tables of the long runs: what is stored comes back whole, with how it was made, or is refused."""

import os
import sys
from hashlib import sha256
from itertools import count

import pytest

from killed import killed
from smalltorch.experiments import table
from smalltorch.experiments.table import growing, store, stored

COLUMNS, LINES = ("seed", "name"), [(0, "a, b"), (1, "#")]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(table, "FOLDER", tmp_path)
    monkeypatch.setattr(sys, "argv", ["x.py", "--out", "a table.csv"])
    return tmp_path


def test_what_is_stored_comes_back(folder):
    store(folder / "runs.csv", "a/folder/runs.py", "0 to 1", "3 minutes", COLUMNS, LINES)
    head, lines = stored("runs")
    assert head[:2] == ["command: python -m smalltorch.experiments.runs --out 'a table.csv'", "seeds: 0 to 1"]
    assert head[2].startswith("versions: Python 3.") and head[3].endswith(", 3 minutes")
    assert len(head) == 4 and lines == [{"seed": "0", "name": "a, b"}, {"seed": "1", "name": "#"}]


def test_a_missing_experiment_says_so():
    with pytest.raises(FileNotFoundError, match="nothing.csv"):
        stored("nothing")


def test_a_table_that_was_cut_off_anywhere_is_refused(folder):
    path = folder / "runs.csv"
    store(path, "runs.py", "0 to 1", "3 minutes", COLUMNS, LINES)
    whole = path.read_bytes()
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        with pytest.raises(ValueError, match=r"runs.csv: expected a whole table .*, got \d lines: it was cut off"):
            stored("runs")


def test_killed_at_any_of_its_steps_storing_leaves_the_old_table_or_the_new_one(folder):
    path = folder / "runs.csv"
    store(path, "runs.py", "0", "1 minute", COLUMNS, LINES[:1])
    old = path.read_bytes()
    for step in count():
        died = killed(lambda: store(path, "runs.py", "0 to 1", "3 minutes", COLUMNS, LINES), step)
        assert path.read_bytes() == old or len(stored("runs")[1]) == 2
        if not died:
            break
    assert len(stored("runs")[1]) == 2 and step >= 3


def test_a_table_that_grows_takes_its_place_when_it_is_whole(folder, capsys):
    out, part = folder / "runs.csv", folder / "runs.unfinished.csv"
    with growing(out) as path:
        path.write_text("one")
        assert not out.exists() and os.listdir(folder) == [part.name]
    assert out.read_text() == "one" and os.listdir(folder) == [out.name] and capsys.readouterr().err == ""
    with pytest.raises(KeyboardInterrupt), growing(out) as path:
        path.write_text("two")
        raise KeyboardInterrupt
    assert (out.read_text(), part.read_text()) == ("one", "two")
    with growing(out) as path:
        path.write_text("three")
    assert out.read_text() == "three" and not part.exists()
    assert capsys.readouterr().err.splitlines() == [
        f"{out} exists and will be replaced when all cases are done",
        f"{part} exists and will be replaced after the first case",
        f"{out} exists and will be replaced when all cases are done",
    ]


def test_what_is_no_file_is_not_replaced(folder):
    with pytest.raises(OSError, match="expected a file, or nothing there yet"), growing(folder):
        pass


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("placement", "92d88052d03480ea"),
        ("depth_without_skips", "5827e6817a9fa319"),
    ],
)
def test_a_stored_table_is_the_one_that_was_made(name, digest):
    """A long run is not repeated by the tests: a new one gives a new table, and its digest here."""
    assert sha256((table.FOLDER / f"{name}.csv").read_bytes()).hexdigest()[:16] == digest
