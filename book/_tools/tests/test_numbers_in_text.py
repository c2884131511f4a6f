"""The reading of a chapter's words: what its list does not quote is found, and what it quotes that is not there."""

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

import new_chapter
import notebooks
import numbers_in_text

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
    assert numbers_in_text.problems(chapter()) == []


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
    assert any(complaint in problem for problem in numbers_in_text.problems(chapter(TEXT.replace(old, new))))


@pytest.mark.parametrize(("changes", "number"), [({"caption": "All 271 heads."}, "271"), ({"alt": "It has 8."}, "8")])
def test_captions_and_alternative_texts_are_text(changes, number):
    assert any(
        f"the number {number} is not held" in problem for problem in numbers_in_text.problems(chapter(**changes))
    )


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
    assert any(complaint in problem for problem in numbers_in_text.problems(chapter(code=LIST.replace(old, new))))


@pytest.mark.parametrize(
    ("text", "quotations"),
    [
        ("0.53", ["It is 0.5"]),
        ("0.53", ["It is 0.5", "3 of the"]),
        ("0.53", ["53 of the"]),
        ("12,345", ["It is 12", "345 of the"]),
        ("-5", ["It is", "5 of the"]),
        ("twenty-five", ["It is twenty", "five of the"]),
        ("fourteen", ["It is four"]),
        ("3.5", ["It is 3"]),
        ("$n\\le12$", ["It is $n", "\\le12$ of the"]),
    ],
)
def test_half_of_a_number_is_not_held(text, quotations):
    words = ", ".join(f"({quotation!r}, 1)" for quotation in quotations)
    notebook = new_notebook(
        cells=[new_markdown_cell(f"It is {text} of the whole."), new_code_cell(f"held(numbers=[{words}])")]
    )
    assert any("is not held" in problem for problem in numbers_in_text.problems(notebook))


@pytest.mark.parametrize(
    ("code", "passes"),
    [
        ("Rational(7, 8)", True),
        ("7 / 8", True),
        ("17/8 + 7/80 + 7 / 8.5", False),
        ("3 / 4", False),
        (r"held(relations=[(r'$x\le\frac78$', x, 7 * y)])", True),
    ],
)
def test_a_fraction_of_a_theorem_is_computed_somewhere(code, passes):
    theorem = r"$\frac58$ :::{prf:theorem} A bound" + "\n:label: a\n" + r"$x\le\frac12$ and $x\le\frac78$." + "\n:::"
    cells = [
        new_markdown_cell(theorem.replace(" :::", "\n\n:::")),
        new_code_cell("held(numbers=[])"),
        new_code_cell(code),
    ]
    found = [one for one in numbers_in_text.problems(new_notebook(cells=cells)) if "nothing computes" in one]
    assert [one.partition(" … ")[0] for one in found] == ([] if passes else ["nothing computes 7/8 of a theorem:"])


@pytest.mark.parametrize("quotation", ["It is 0.5", "is 0.5", ".53 of", "t is 0.53", "0.53 of th"])
def test_what_is_quoted_is_a_whole(quotation):
    code = f"held(numbers=[('It is 0.53 of', x), ({quotation!r}, 1)])"
    (found,) = numbers_in_text.problems(
        new_notebook(cells=[new_markdown_cell("It is 0.53 of the."), new_code_cell(code)])
    )
    assert found == f"no text has {quotation!r}"


def test_the_template_is_held():
    assert numbers_in_text.problems(notebooks.read(new_chapter.TEMPLATE)) == []


@pytest.mark.parametrize("code", ["held(numbers=numbers)", "held(numbers=[(quotation, 3)])"])
def test_a_list_is_written_out(code):
    with pytest.raises(ValueError, match="that is written out"):
        numbers_in_text.problems(chapter(code=code))


def test_every_chapter_is_held(tmp_path, monkeypatch):
    assert numbers_in_text.of_chapters([]) == []
    for name, notebook in {"held": chapter(), "new": chapter(code="1")}.items():
        path = tmp_path / f"notebooks/{name}.ipynb"
        path.parent.mkdir(exist_ok=True)
        path.write_text(notebooks.text_of(notebook), encoding="utf-8")
    (found,) = numbers_in_text.of_chapters([], tmp_path)
    assert found.startswith("notebooks/new.ipynb") and "nothing holds its words" in found
    monkeypatch.setattr(numbers_in_text.drawn, "problems", lambda notebook: ["it falls"])
    assert numbers_in_text.of_chapters(["held"], tmp_path) == ["notebooks/held.ipynb: it falls"]
    with pytest.raises(ValueError, match="names: expected names of chapters, got gone"):
        numbers_in_text.of_chapters(["gone"], tmp_path)
