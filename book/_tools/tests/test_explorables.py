"""The figures that move: the comparison with the library notices what differs, and the list names what exists."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from docutils import nodes
from docutils.utils import new_document

import explorables
import exploreext

ROOT = Path(__file__).resolve().parents[3]
STATE = {"scores": [1.0, 0.0, -2.0], "n": 2, "temperature": 0.5}


def entry(**changes) -> dict:
    return {"name": "softmax", "state": STATE, "result": explorables.softmax(STATE) | changes}


def test_the_right_numbers_pass():
    assert explorables.problems([entry()], ["softmax"]) == []


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"norm": 0.2}, "norm is 0.2"),
        ({"norm": None}, "norm is None"),
        ({"p": [1.0]}, "p is [1.0]"),
        ({"more": 1}, "the page computes"),
    ],
)
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


def test_the_box_stands_below_its_figure_and_on_no_other_page_or_paper():
    def boxes(page: str, builder: str = "html") -> list[str]:
        figure = nodes.figure("", nodes.image(uri="x.svg"), ids=["fig-x"])
        document = new_document("page")
        document += [figure, nodes.paragraph("", "after it")]
        one = exploreext.Explorable("x", "here", "fig-x", "Move <it>.")
        app = SimpleNamespace(builder=SimpleNamespace(name=builder), env=SimpleNamespace(book_explorables=(one,)))
        exploreext.add_box(app, document, page)
        return [child.astext() for child in document.children[1:-1]]

    assert boxes("there") == boxes("here", "singlehtml") == []
    assert len(boxes("here")) == 1 and 'data-explorable="x" data-title="Move &lt;it&gt;."' in boxes("here")[0]
