"""The tables of the long runs: what is stored comes back whole, with how it was made, or is refused."""

import sys
from hashlib import sha256
from itertools import count

import pytest

from kill_at_step import killed
from smalltorch.experiments import table
from smalltorch.experiments.table import head_of, read, renewed, store, stored

COLUMNS, LINES = ("seed", "name"), [(0, "a, b"), (1, "#")]
PRINTS = {"experiment": "12", "library": "34"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(table, "FOLDER", tmp_path)
    monkeypatch.setattr(sys, "argv", ["x.py", "--out", "a table.csv"])
    return tmp_path


def test_what_is_stored_comes_back(folder):
    store(folder / "runs.csv", "smalltorch.experiments.runs", "0 to 1", "3 minutes", COLUMNS, LINES, PRINTS)
    head, lines = stored("runs")
    assert head[:2] == ["command: python -m smalltorch.experiments.runs --out 'a table.csv'", "seeds: 0 to 1"]
    assert head[2].startswith("versions: Python 3.") and head[3].endswith(", 3 minutes")
    assert len(head) == 4 and lines == [{"seed": "0", "name": "a, b"}, {"seed": "1", "name": "#"}]


def test_a_missing_experiment_says_so():
    with pytest.raises(FileNotFoundError, match="nothing.csv"):
        stored("nothing")


def test_a_table_that_was_cut_off_anywhere_is_refused(folder):
    path = folder / "runs.csv"
    store(path, "smalltorch.experiments.runs", "0 to 1", "3 minutes", COLUMNS, LINES, PRINTS)
    whole = path.read_bytes()
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        with pytest.raises(ValueError, match=r"runs.csv: expected a whole table .*, got \d lines: it was cut off"):
            stored("runs")


@pytest.mark.processes
def test_killed_at_any_of_its_steps_storing_leaves_the_old_table_or_the_new_one(folder):
    path = folder / "runs.csv"
    store(path, "smalltorch.experiments.runs", "0", "1 minute", COLUMNS, LINES[:1], PRINTS)
    old = path.read_bytes()
    for step in count():
        died = killed(
            lambda: store(path, "smalltorch.experiments.runs", "0 to 1", "3 minutes", COLUMNS, LINES, PRINTS), step
        )
        assert path.read_bytes() == old or len(stored("runs")[1]) == 2
        if not died:
            break
    assert len(stored("runs")[1]) == 2 and step >= 3


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("placement", "8a2a0c4d30c7738e"),
        ("placement_again", "c02e6e55a1f03cf1"),
        ("depth_without_skips", "13c43ed5a139cdc4"),
        ("depth_without_skips_again", "ad3176044a978941"),
        ("first_steps", "17d70bbb42788d42"),
        ("position_codes", "c0068cc7bc8e3e06"),
        ("position_codes_again", "66a727a8ad976295"),
    ],
)
def test_a_stored_table_is_the_one_that_was_made(name, digest):
    """A long run is not repeated by the tests: a new one gives a new table, and the digest of its lines here."""
    text = (table.FOLDER / f"{name}.csv").read_text(encoding="utf-8")
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    assert sha256(lines.encode()).hexdigest()[:16] == digest


def test_other_fingerprints_leave_the_rest_as_it_is(folder):
    path = folder / "runs.csv"
    store(path, "smalltorch.experiments.runs", "0 to 1", "3 minutes", COLUMNS, LINES, PRINTS)
    before = path.read_text()
    renewed(path, {"library": "56"})
    assert path.read_text() == before.replace("library: 34", "library: 56") and len(read(path)) == 2
    assert head_of(path)["experiment"] == "12"
