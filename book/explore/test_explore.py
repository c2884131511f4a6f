"""The figures that move: the comparison with the library notices what differs, and the list names what exists."""

import json
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest
from docutils import nodes
from docutils.utils import new_document

from deepdive import explore as extension
from explore import past, reference, softmax

ROOT = Path(__file__).resolve().parents[2]
STATE = {"scores": [1.0, 0.0, -2.0], "n": 2, "temperature": 0.5}


def entry(**changes) -> dict:
    return {"name": "softmax", "state": STATE, "result": softmax.numbers(STATE) | changes}


def test_the_right_numbers_pass():
    assert reference.problems("softmax", [entry()]) == []


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
    assert words in "".join(reference.problems("softmax", [entry(**changes)]))


def test_the_tolerance_is_for_rounding_only():
    right = softmax.numbers(STATE)
    for size, fine in ((1e-12, True), (1e-8, False)):
        off = {"norm": right["norm"] * (1 + size), "p": [right["p"][0] * (1 + size), *right["p"][1:]]}
        assert (reference.problems("softmax", [entry(**off)]) == []) == fine
    assert reference.distance(1e-9, 0.0) > 1 >= reference.distance(1e-13, 0.0)


def test_a_figure_that_was_not_moved_is_a_problem():
    assert reference.problems("softmax", []) == ["softmax: no states"]


def test_every_figure_that_moves_has_a_script_and_a_reference():
    listed = extension.read(ROOT)
    assert listed
    for one in listed:
        assert callable(import_module(f"explore.{one.name}").numbers)
        assert f"Explore.define('{one.name}'" in (ROOT / extension.script(one)).read_text(encoding="utf-8")


def test_the_box_stands_below_its_figure_and_on_no_other_page_or_paper():
    def boxes(page: str, builder: str = "html", stored: str = "") -> list[str]:
        figure = nodes.figure("", nodes.image(uri="x.svg"), ids=["fig-x"])
        document = new_document("page")
        document += [figure, nodes.paragraph("", "after it")]
        one = extension.Explorable("x", "here", "fig-x", "Move <it>.", stored)
        app = SimpleNamespace(builder=SimpleNamespace(name=builder), env=SimpleNamespace(book_explorables=(one,)))
        extension.add_box(app, document, page)
        return [child.astext() for child in document.children[1:-1]]

    assert boxes("there") == boxes("here", "singlehtml") == []
    assert len(boxes("here")) == 1 and 'data-explorable="x" data-title="Move &lt;it&gt;."' in boxes("here")[0]
    assert "data-stored" not in boxes("here")[0]
    assert 'data-stored="[&quot;a&quot;]"' in boxes("here", stored='["a"]')[0]


def test_what_a_figure_has_stored_is_read_with_it():
    stored = {one.name: one.stored for one in extension.read(ROOT) if one.stored}
    assert list(stored) == ["sampling", "past"] and len(json.loads(stored["sampling"])["names"]) == 100
    assert json.loads(stored["past"]) == past.losses()  # of the library's table; `python -m explore.past` writes it
