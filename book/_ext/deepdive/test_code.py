"""The code of a small chapter is folded, each cell under a line that says what it is."""

import re

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from deepdive import code
from small_build import notebook, small_build

INDEX = "# Book\n```{toctree}\nsinks\n```\n"


@pytest.mark.parametrize(
    ("source", "metadata", "line"),
    [
        ("import this", {"tags": ["setup"]}, "setup: 1 line"),
        ("x = 1\ny = 2", {}, "code: 2 lines"),
        ("show_source(attention)", {}, "code: 1 line"),
        ("a = Derivation('a')\nfact('b', 1, 1)", {}, "derivation: 2 lines"),
        ("whole = WrittenProof('a', of='b')", {}, "derivation: 1 line"),
        ("Checks(at_most('a', f, g))", {}, "check: 1 line"),
        ("assert torch.equal(x, y)", {}, "code: 1 line"),
        ("fig, ax = figure()\nmeasured('a', x)", {}, "figure: 2 lines"),
        ("machine()", {"mystnb": {"figure": {"name": "fig"}}}, "figure: 1 line"),
        ("def check_it(answer):\n    return fact", {}, "exercise checkers: 2 lines"),
        ("assert check_it(None) == 'Right.'", {}, "solutions tried: 1 line"),
        ("held(numbers=[])", {}, "words held: 1 line"),
        ("fact('b', 1, 1)\n\nchapter.settle('C1', by=[])\nchapter.close()", {}, "records: 4 lines"),
    ],
)
def test_the_line_says_what_a_cell_is(source, metadata, line):
    assert code.line_of(source, metadata) == line


@pytest.fixture(scope="module")
def html(tmp_path_factory):
    shown = [new_output("stream", name="stdout", text="printed")]
    cells = [
        new_markdown_cell("# Sinks"),
        new_code_cell("x = 1", outputs=shown),
        new_code_cell("fact('b', 1, 1)", outputs=shown, metadata={"tags": ["hide-input"]}),
        new_code_cell("held()", outputs=shown, metadata={"tags": ["hide-cell"]}),
    ]
    folder = tmp_path_factory.mktemp("book")
    assert small_build(folder, {"index.md": INDEX, "sinks.ipynb": notebook(*cells)}, ["code"]) == ""
    return (folder / "html/sinks.html").read_text(encoding="utf-8")


def test_each_cell_is_folded_as_its_tags_say(html):
    folds = re.findall(
        r'<details class="code"( open="open")?>\s*<summary>(.*?)</summary>(.*?)</details>', html, re.DOTALL
    )
    assert [(line, bool(is_open)) for is_open, line, _ in folds] == [
        ("code: 1 line", True),
        ("check: 1 line", False),
        ("words held: 1 line", False),
    ]
    assert ["printed" in inside for *_, inside in folds] == [False, False, True]  # hide-cell folds what is shown, too
    assert html.count("printed") == 3 and "Show code cell" not in html
