"""The reading of a chapter's words: what its list does not quote is found, and what it quotes that is not there."""

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

import new_chapter
import notebooks
import words

TEXT = r"""# Title

**In short.** The norm is 1.89, below 2.
Let $n\ge2$.

:::{prf:theorem} A bound
:label: bound-12

Then $\lVert A\rVert<2\sqrt{12}$.
:::

- **It runs** in about 10 s on one core.

This is Hardy's inequality {cite}`hardy1952inequalities`."""
LIST = r"""
held(
    numbers=[("norm is 1.89, below", norm), ("of 270 heads", 270), ("all 9", 9)],
    relations=[(r"$n\ge2$", 3, 2), (r"$\lVert A\rVert<2\sqrt{12}$", 1, 4)],
    citations=["is Hardy's inequality {cite}`hardy1952inequalities`"],
)"""


def chapter(text=TEXT, code=LIST, caption="A line of 270 heads.", alt="It has all 9 points."):
    figure = {"mystnb": {"figure": {"caption": caption, "name": "fig-3"}, "image": {"alt": alt}}}
    return new_notebook(cells=[new_markdown_cell(text), new_code_cell("plot()", metadata=figure), new_code_cell(code)])


def test_a_text_that_is_held_has_no_problem():
    assert words.problems(chapter()) == []


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("1.89", "1.98", "the number 1.98 is not held"),
        ("below 2", "below 3", "the number 3 is not held"),
        (r"n\ge2", r"n\le2", r"the inequality is not held: $n\le2$"),
        (r"\rVert<2", r"\rVert>2", r"the inequality is not held: $\lVert A\rVert>2\sqrt{12}$"),
        ("{12}", "{13}", "the number 13 is not held"),
        ("Hardy's inequality {cite}", "new {cite}", "the citation is not held"),
        ("hardy1952inequalities", "wilf1970finite", "the citation is not held"),
        (" {cite}`hardy1952inequalities`", "", "no text has \"is Hardy's inequality"),
    ],
)
def test_each_change_of_the_text_is_found(old, new, complaint):
    assert any(complaint in problem for problem in words.problems(chapter(TEXT.replace(old, new))))


@pytest.mark.parametrize(("changes", "number"), [({"caption": "All 271 heads."}, "271"), ({"alt": "It has 8."}, "8")])
def test_captions_and_alternative_texts_are_text(changes, number):
    assert any(f"the number {number} is not held" in problem for problem in words.problems(chapter(**changes)))


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('("of 270 heads", 270), ', "", "the number 270 is not held"),
        (r'(r"$n\ge2$", 3, 2), ', "", r"the inequality is not held: $n\ge2$"),
        ("\"is Hardy's inequality {cite}", '"y {cite}', "too short to say where it stands"),
        ("held(", "hold(", "nothing holds its words"),
    ],
)
def test_each_gap_of_the_list_is_found(old, new, complaint):
    assert any(complaint in problem for problem in words.problems(chapter(code=LIST.replace(old, new))))


def test_the_template_is_held():
    assert words.problems(notebooks.read(new_chapter.TEMPLATE)) == []


@pytest.mark.parametrize("code", ["held(numbers=numbers)", "held(numbers=[(quotation, 3)])"])
def test_a_list_is_written_out(code):
    with pytest.raises(ValueError, match="that is written out"):
        words.problems(chapter(code=code))


def test_every_chapter_is_held(tmp_path):
    assert words.of_chapters([]) == []
    for name, notebook in {"held": chapter(), "new": chapter(code="1")}.items():
        path = tmp_path / f"notebooks/{name}.ipynb"
        path.parent.mkdir(exist_ok=True)
        path.write_text(notebooks.text_of(notebook), encoding="utf-8")
    (found,) = words.of_chapters([], tmp_path)
    assert found.startswith("notebooks/new.ipynb") and "nothing holds its words" in found
    with pytest.raises(ValueError, match="names: expected names of chapters, got gone"):
        words.of_chapters(["gone"], tmp_path)
