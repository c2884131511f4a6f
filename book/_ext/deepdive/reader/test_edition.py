"""A chapter's notebook as a reader opens it."""

import base64

import pytest

from deepdive.first_screen import answer
from deepdive.reader.edition import Book, edition, opening
from deepdive.reader.markdown import Link

SVG = '<svg class="plot" width="72pt" height="36pt" viewBox="0 0 72 36"></svg>'
HIDE = {"tags": ["hide-input"]}
SETUP = "#@title Set-up\nimport importlib"


def figure(name):
    return {
        "mystnb": {"figure": {"name": name, "caption": f"Of {name}."}, "image": {"alt": f"{name} in words"}},
        "tags": ["hide-input"],
    }


def markdown(name, text):
    return {"cell_type": "markdown", "id": name, "metadata": {}, "source": text.splitlines(keepends=True)}


def code(name, text, metadata=None, **data):
    shown = [{"output_type": "execute_result", "execution_count": 1, "metadata": {}, "data": data}] if data else []
    return {
        "cell_type": "code", "execution_count": 1, "id": name, "metadata": metadata or {}, "outputs": shown,
        "source": text.splitlines(keepends=True),
    }  # fmt: skip


NOTEBOOK = {
    "cells": [
        markdown("head", "# Why?\n\n**In short.** So.\n\nMore.\n\n:::{admonition} In this chapter\n- it\n:::"),
        code("setup", SETUP, {"tags": ["setup", "hide-input"]}),
        code(
            "begin",
            "import torch\n\nN = 8    # tokens\nSEEDS, WIDTH = 3, 4    # of the networks\n\n"
            "chapter = Chapter('why', checks=1)\nmachine()",
            figure("fig-map"),
            **{"image/svg+xml": SVG.replace("pt", ""), "text/plain": "a drawing"},
        ),
        code("draw", "figure()", figure("fig-why"), **{"image/svg+xml": [SVG], "text/plain": "digest"}),
        markdown("prose", "## Prose\n\nAs {cite}`su2024` say."),
        code("open", "x = 1", {}),
        code("derive", 'a = Derivation("a-bound")', HIDE, **{"text/markdown": "it is"}),
        code("check", 'Checks(equal("it holds", a, b))', {"tags": ["hide-cell"]}, **{"text/plain": "holds"}),
        markdown("exercises", "## Exercises\n\n:::{exercise} One\n:label: ex-one\nTry `check_one(f)`.\n:::\n\n"
                 ":::{dropdown} Hint\nH1\n:::\n\n:::{exercise} Two\n:label: ex-two\nTry `check_two(g)`.\n:::\n\n"
                 ":::{dropdown} Hint\nH2\n:::"),
        code("checkers", "def check_one(f):\n    return 1\n\n\ndef check_two(g):\n    return 2", HIDE),
        markdown("solutions", ":::{solution} ex-two\nS2\n:::\n\n:::{solution} ex-one\nS1\n:::"),
        code("tried", "assert check_one(1) == 1", {"tags": ["hide-cell"]}),
        markdown("references", "## References\n\nBy {cite}`kim2021`, {cite}`su2024`."),
        markdown("settles", "## What this chapter settles"),
        code("more", "Checks(equal('more', a, b))", {"tags": ["hide-cell"]}, **{"text/plain": "holds"}),
        code("held", "held(numbers=[])", {"tags": ["hide-cell"]}, **{"text/plain": "held"}),
        code("settle", "chapter.settle('C1')", HIDE,
             **{"text/markdown": "| table |", "application/vnd.smalltorch.record+json": {"records": []}}),
    ]
}  # fmt: skip


def resolve(role, target):
    numbers = {"ex-one": "Exercise 1.1", "ex-two": "Exercise 1.2", "fig-why": "Fig. 1.1", "fig-map": "Fig. 1.2"}
    return Link({"su2024": "Su, 2024", "kim2021": "Kim, 2021"}.get(target) or numbers[target], f"why.html#{target}")


BOOK = Book(
    resolve=resolve,
    place="*Chapter 1.*",
    entries=lambda keys: "\n".join(f"- {key}" for key in keys),
    whole="whole.ipynb",
    moving={"fig-why": "Drag it."},
    draw=lambda svg, width: f"{width} {svg[:4]}".encode(),
)


@pytest.fixture(scope="module")
def cells():
    return edition(NOTEBOOK, BOOK)["cells"]


def text_of(cells, name):
    return next("".join(cell["source"]) for cell in cells if cell["id"] == name)


def test_the_cells_in_the_order_in_which_a_reader_meets_them(cells):
    assert [cell["id"] for cell in cells] == [
        "head", "setup", "begin-imports", "begin-numbers", "draw", "draw-caption", "head-more", "begin",
        "begin-caption", "prose", "open", "derive", "check", "exercises", "checkers", "ex-one", "ex-one-answer",
        "ex-two", "ex-two-answer", "references", "settles", "settle", "left-out",
    ]  # fmt: skip


def test_they_count_as_they_run(cells):
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    results = [(cell, output) for cell in code for output in cell["outputs"]]
    assert results and all(output["execution_count"] == cell["execution_count"] for cell, output in results)


def test_the_first_cell_is_cut_into_imports_numbers_and_the_rest(cells):
    assert text_of(cells, "begin-imports") == "#@title Imports\nimport torch\n\nchapter = Chapter('why', checks=1)"
    title, *numbers = text_of(cells, "begin-numbers").splitlines()
    assert title.startswith("#@title Numbers to change")
    assert numbers == ["N = 8    # tokens", "SEEDS, WIDTH = 3, 4    # of the networks"]
    assert text_of(cells, "begin") == "#@title Draws Fig. 1.2\nmachine()"


def test_comments_stay_with_what_they_explain():
    parts = opening("import a\n\n# what it reads\nTEXT = 'b'\n\n# stated before\nstated = Contrasts({\n    'x': 1,\n})")
    assert parts == (
        "import a",
        "# what it reads\nTEXT = 'b'",
        "# stated before\nstated = Contrasts({\n    'x': 1,\n})",
    )


def test_what_is_folded_on_the_page_is_folded(cells):
    folded = {cell["id"]: cell["metadata"] for cell in cells if cell["cell_type"] == "code"}
    hidden = {"cellView": "form", "jupyter": {"source_hidden": True}}
    assert folded["derive"] == folded["draw"] == folded["setup"] == folded["begin-imports"] == hidden
    assert folded["open"] == folded["begin-numbers"] == folded["ex-one-answer"] == {}
    assert folded["check"]["jupyter"] == {"source_hidden": True, "outputs_hidden": True}
    titles = [text_of(cells, name).splitlines()[0] for name in ("derive", "check", "checkers", "setup", "open")]
    assert titles == [
        "#@title Derives: a bound",
        "#@title Checks: it holds",
        "#@title The checkers of the exercises: run this cell before you try yours",
        "#@title Set-up",
        "x = 1",
    ]


def test_pictures_need_no_trust_and_have_captions(cells):
    output = next(cell for cell in cells if cell["id"] == "draw")["outputs"][0]
    assert base64.b64decode(output["data"]["image/png"]) == b"144 <svg" and "image/svg+xml" not in output["data"]
    assert output["metadata"] == {"image/png": {"width": 96, "height": 48}}  # 72 points are 96 pixels of CSS
    drawing = next(cell for cell in cells if cell["id"] == "begin")["outputs"][0]
    assert drawing["metadata"] == {"image/png": {"width": 72, "height": 36}}  # it says pixels
    caption = text_of(cells, "draw-caption")
    assert caption.startswith("**Fig. 1.1.** Of fig-why. [On the page it can be moved: Drag it.](why.html#fig-why)")
    assert "<summary>the picture in words</summary>\n\nfig-why in words\n" in caption
    assert "be moved" not in text_of(cells, "begin-caption")


def test_an_exercise_has_its_hint_its_solution_and_a_place_for_the_answer(cells):
    assert text_of(cells, "exercises") == "## Exercises"
    two = text_of(cells, "ex-two")
    assert two.startswith("### Exercise 1.2 (Two)") and two.index("H2") < two.index("S2")
    assert "H1" not in two and "S1" not in two and two.count("<details>") == 2
    assert text_of(cells, "ex-two-answer") == "# Exercise 1.2: your answer. Then try it: check_two(g)"


def test_what_audits_is_left_out_and_the_verdicts_stay(cells):
    assert text_of(cells, "settle") == "| table |"
    assert "4 cells" in text_of(cells, "left-out") and "(whole.ipynb)" in text_of(cells, "left-out")
    assert not any("smalltorch.record" in str(cell) for cell in cells)


def test_what_is_cited_is_listed_in_order(cells):
    assert text_of(cells, "references").endswith("By [Kim, 2021], [Su, 2024].\n\n- su2024\n- kim2021")


@pytest.mark.parametrize(
    ("draws", "place"),
    [
        ([False, True, True], 2),
        ([False, True, False, True], 3),
        ([False, False, True], 2),
        ([False, True], 1),
        ([False] * 3, None),
        ([], None),
    ],
)
def test_the_answer_is_the_first_picture_after_the_map(draws, place):
    assert answer(draws) == place
