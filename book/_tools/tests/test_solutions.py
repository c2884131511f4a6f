"""The solutions' code on a page is what the chapter tries."""

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

import notebooks
import solutions

PAGE = """:::{exercise} Double
:label: ex-double
Write `double(x)`.
:::

:::{solution} ex-double
:class: dropdown
Add it to itself.

```python
def double(x):
    return x + x    # or 2 * x
```
:::"""
DOUBLE = "def double(x):\n    return x + x\n\n\n"
TRIED = 'assert check_double(double) == "Right."\nassert "no" in check_double(lambda x: x)'


def chapter(*code, page=PAGE):
    checker = new_code_cell("def check_double(answer):\n    return 'Right.' if answer(1) == 2 else 'no'")
    return new_notebook(cells=[new_markdown_cell(page), checker, *map(new_code_cell, code)])


@pytest.mark.parametrize(
    "code", [(DOUBLE + TRIED,), (DOUBLE, TRIED), ("def double(x):\n    # twice\n    return x + x\n\n\n" + TRIED,)]
)
def test_code_that_is_tried_passes(code):
    assert solutions.problems(chapter(*code)) == []


@pytest.mark.parametrize(
    "code",
    [
        (DOUBLE.replace("x + x", "x * 2") + TRIED,),
        (TRIED.replace("(double)", "(lambda x: x + x)"),),
        (DOUBLE + TRIED.replace("(double)", "(lambda x: x + x)"),),
        (DOUBLE + TRIED, DOUBLE.replace("x + x", "x - x")),
        (DOUBLE,),
    ],
)
def test_other_code_is_found_and_so_is_what_is_not_handed_over(code):
    said = ["the solution of ex-double is not what is tried: def double(x):"]
    assert solutions.problems(chapter(*code)) == said
    assert [lapse for lapse in notebooks.lapses(chapter(*code)) if "solution" in lapse] == said


@pytest.mark.parametrize("old, new", [("return x", "two = 2\n    return x"), ("def double", "two = 2\ndef double")])
def test_a_line_more_on_the_page_is_found(old, new):
    assert len(solutions.problems(chapter(DOUBLE + TRIED, page=PAGE.replace(old, new)))) == 1
    assert solutions.problems(chapter(DOUBLE + TRIED, page=PAGE.replace("python", "text"))) == []


def test_half_of_the_books_solutions_have_code():
    found = [one for path in notebooks.all_notebooks() for one in solutions.code_of(notebooks.read(path))]
    assert len(found) >= 72
