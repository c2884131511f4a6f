"""The figures that move: the comparison with the library notices what differs, and the list names what exists."""
from pathlib import Path

import pytest

import explorables
import exploreext

ROOT = Path(__file__).resolve().parents[3]
STATE = {"scores": [1.0, 0.0, -2.0], "n": 2, "temperature": 0.5}


def entry(**changes) -> dict:
    return {"name": "softmax", "state": STATE, "result": explorables.softmax(STATE) | changes}


def test_the_right_numbers_pass():
    assert explorables.problems([entry()], ["softmax"]) == []


@pytest.mark.parametrize("changes, words", [
    ({"norm": 0.2}, "norm is 0.2"),
    ({"norm": None}, "norm is None"),
    ({"p": [1.0]}, "p is [1.0]"),
    ({"more": 1}, "the page computes"),
])
def test_wrong_numbers_are_named(changes, words):
    assert words in "".join(explorables.problems([entry(**changes)], ["softmax"]))


def test_a_figure_that_was_not_moved_or_has_no_reference_is_a_problem():
    assert explorables.problems([], ["softmax"]) == ["softmax: no states"]
    stranger = entry() | {"name": "stranger"}
    assert explorables.problems([stranger], ["stranger"]) == ["stranger: no reference in explorables.py"]


def test_every_figure_that_moves_has_a_script_and_a_reference():
    listed = exploreext.read(ROOT)
    assert {one.name for one in listed} == set(explorables.REFERENCES)
    for one in listed:
        assert f"Explore.define('{one.name}'" in (ROOT / exploreext.script(one)).read_text(encoding="utf-8")
