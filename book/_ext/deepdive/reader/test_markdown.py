"""MyST becomes Markdown that every front end reads."""

import pytest

from deepdive.reader.markdown import Block, Link, blocks, cited, plain

NAMES = {
    ("prf:ref", "bound"): Link("Theorem 3.1", "bounds.html#bound"),
    ("exercise", "ex"): Link("Exercise 3.1", "bounds.html#ex"),
    ("numref", "fig-a"): Link("Fig. 3.2", "bounds.html#fig-a"),
    ("ref", "fig-a"): Link("Fig. 3.2", "bounds.html#fig-a"),
    ("doc", "sinks"): Link("Sinks", "sinks.html"),
    ("page", "sinks.ipynb"): Link("Sinks", "sinks.html"),
    ("cite", "su2024"): Link("Su et al., 2024", ""),
    ("cite", "kim2021"): Link("Kim, 2021", ""),
}


def resolve(role, target):
    return NAMES[role, target]


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("See {prf:ref}`bound`.", "See [Theorem 3.1](bounds.html#bound)."),
        (
            "In {numref}`fig-a`, {ref}`the first <fig-a>`",
            "In [Fig. 3.2](bounds.html#fig-a), [the first](bounds.html#fig-a)",
        ),
        ("{doc}`sinks` and {doc}`these <sinks>`", "[Sinks](sinks.html) and [these](sinks.html)"),
        ("[those](sinks.ipynb), [there](sinks.ipynb#part)", "[those](sinks.html), [there](sinks.html#part)"),
        ("as {cite}`su2024,kim2021` say", "as [Su et al., 2024; Kim, 2021] say"),
        ("[out](https://a.invalid/x.ipynb)", "[out](https://a.invalid/x.ipynb)"),
        (":::{admonition} In this chapter\n:class: tip\n- one\n:::", "**In this chapter**\n\n- one"),
        (
            ":::{prf:theorem} A bound\n:label: bound\n\nIt holds.\n:::\n\nNext.",
            "**Theorem 3.1 (A bound).**\n\nIt holds.\n\nNext.",
        ),
        (":::{prf:proof}\nBy {prf:ref}`bound`.\n:::", "**Proof.** By [Theorem 3.1](bounds.html#bound)."),
        (":::{prf:proof}\n1. One.\n2. Two. $\\square$\n:::", "**Proof.**\n\n1. One.\n2. Two. $\\square$"),
        (":::{exercise} Try ★\n:label: ex\nDo.\n:::", "### Exercise 3.1 (Try ★)\n\nDo."),
        (":::{dropdown} Hint\nThink.\n:::", "<details><summary>Hint</summary>\n\nThink.\n\n</details>"),
        (":::{solution} ex\n:class: dropdown\nSo.\n:::", "<details><summary>Solution</summary>\n\nSo.\n\n</details>"),
        (":::{div} scroll-region\n| a |\n|---|\n| 1 |\n:::", "| a |\n|---|\n| 1 |"),
        ("$\\{x\\}$ and `{`", "$\\{x\\}$ and `{`"),
    ],
)
def test_what_is_shown(source, shown):
    assert plain(source, resolve) == shown


@pytest.mark.parametrize("source", [":::{note}\nx", "{eq}`e`", "{term}`head`", ":::\nleft over"])
def test_what_it_does_not_know_is_refused(source):
    with pytest.raises(ValueError, match="no front end reads"):
        plain(source, resolve)


def test_blocks_and_citations():
    text = "A.\n\n:::{exercise} Try\n:label: ex\n\nDo.\n:::\n\n:::{solution} ex\n:class: dropdown\nSo.\n:::\n"
    assert blocks(text) == [Block("exercise", "Try", "ex", "Do."), Block("solution", "ex", "ex", "So.")]
    assert cited("{cite}`a, b` and {cite}`a`; {doc}`c`") == ["a", "b", "a"]
