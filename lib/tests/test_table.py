"""The tables of the long runs: what is stored comes back, with how it was made."""

import sys

import pytest

from smalltorch.experiments import table
from smalltorch.experiments.table import store, stored


def test_what_is_stored_comes_back(tmp_path, monkeypatch):
    monkeypatch.setattr(table, "FOLDER", tmp_path)
    monkeypatch.setattr(sys, "argv", ["x.py", "--out", "a table.csv"])
    store(tmp_path / "runs.csv", "a/folder/runs.py", "0 to 1", "3 minutes", ("seed", "name"), [(0, "a, b"), (1, "#")])
    head, lines = stored("runs")
    assert head[:2] == ["command: python -m smalltorch.experiments.runs --out 'a table.csv'", "seeds: 0 to 1"]
    assert head[2].startswith("versions: Python 3.") and head[3].endswith(", 3 minutes")
    assert lines == [{"seed": "0", "name": "a, b"}, {"seed": "1", "name": "#"}]


def test_a_missing_experiment_says_so():
    with pytest.raises(FileNotFoundError, match="nothing.csv"):
        stored("nothing")
