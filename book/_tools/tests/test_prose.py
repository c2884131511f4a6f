"""Where sentences end, what of a page is prose, and that two sentences on one line are found."""

import json

import pytest

import prose


@pytest.fixture(scope="module")
def reader():
    return prose.parser()


def sentences(text):
    places = [0, *(place for space in prose.ends(text) for place in space.span()), len(text)]
    return [text[start:end] for start, end in zip(places[::2], places[1::2], strict=True)]


@pytest.mark.parametrize(
    "parts",
    [
        ["Averages are tame.", "And yet?", "So it is!", "12 heads do."],
        [
            "It is $n$.",
            "$n$ is large.",
            "`n` is it.",
            "{prf:ref}`a` says so.",
            "[Here](a.ipynb) it is.",
            "**Bold** too.",
        ],
        ["He asks “why?”", "“Because.”", "(An aside.)", "It ends in *stress*.", "Then it stops.[^1]", "[It starts.]"],
        ["The weights fall, e.g. Adam's, cf. Fig. 3 and Eq. 4, i.e. $p$. vs. Others et al. {cite}`a`, approx. 3."],
        ["By A. N. Author and Dr. X, no. 4 of them, pp. 3."],
        ["The answer is no.", "But why?"],
        ["*Case 1.* If so, it holds.", "*Case 2.* Else it does not."],
        ["**A head.** Its sentence.", "The next."],
        ["It holds. $\\square$"],
        ["Let $f. A$, `a. B` and [a. B](c.md) stand.", "The rest follows."],
        ["It is at most 1.", "Count: 1. One. 2. Two."],
        ["Here … Nothing ends, nor here. it goes on, nor at 3.5 or a.b, nor is S. Author done: See."],
        ["Two\nlines are one.", "Their end\nis here."],
    ],
)
def test_sentences_end_where_they_end_and_nowhere_else(parts):
    assert sentences(" ".join(parts)) == parts


PAGE = """\
---
title: A. B.
---
# A heading. And more.

A paragraph
of two lines.

- An item
  and more.
  - An item in it.

> A quote.
> It goes on.

N1
: A definition
  in two lines.

| A table. Not prose. | b |
|---|---|
| A. B. | c |

:::{admonition} A title. Another.
:class: tip
:name: A. B.

Text in a fence.

::::{note}
Text in a fence in a fence.
::::
:::

```python
# Code. No prose.
```

$$
A. B.
$$

<div>HTML. No prose.</div>
"""


def test_prose_is_what_stands_in_paragraphs(reader):
    lines = PAGE.split("\n")
    found = list(prose.paragraphs(PAGE, reader))
    assert [text for _, text in found] == [
        "A paragraph\nof two lines.",
        "An item\nand more.",
        "An item in it.",
        "A quote.\nIt goes on.",
        "A definition\nin two lines.",
        "Text in a fence.",
        "Text in a fence in a fence.",
    ]
    for first, text in found:
        assert all(piece in line for piece, line in zip(text.split("\n"), lines[first:], strict=False))


def test_a_line_with_two_sentences_is_found_and_no_other(reader):
    assert prose.crowded(PAGE, reader) == []
    page = PAGE.replace("It goes on.", "It goes. On it goes.").replace("in a fence in a fence.", "in one. And another.")
    quote, fence = (
        1 + page.split("\n").index(line) for line in ("> It goes. On it goes.", "Text in one. And another.")
    )
    assert prose.crowded(page, reader) == [(quote, "It goes. On it goes."), (fence, "Text in one. And another.")]


def test_pages_and_notebooks_are_read(tmp_path):
    (tmp_path / "_config.yml").write_text("parse: {myst_enable_extensions: [dollarmath]}", encoding="utf-8")
    (tmp_path / "README.md").write_text("# Title\n\nOne.\nTwo. Three.\n", encoding="utf-8")
    cells = [{"cell_type": "code", "source": ["A. B."]}, {"cell_type": "markdown", "source": ["One.\n", "Two. Three."]}]
    for name in ("a/chapter.ipynb", "a/.ipynb_checkpoints/chapter.ipynb"):
        path = tmp_path / "notebooks" / name
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    found = [
        "README.md, line 4: two sentences: … Two. Three. …",
        "notebooks/a/chapter.ipynb, cell 2, line 2: two sentences: … Two. Three. …",
    ]
    assert prose.problems(tmp_path) == found
    assert prose.problems(tmp_path, ["chapter"]) == found[1:] and prose.problems(tmp_path, ["other"]) == []
