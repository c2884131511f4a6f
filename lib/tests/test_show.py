"""Numbers and tables as text, and source."""

import ast
import inspect
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smalltorch import models
from smalltorch.attention import softmax
from smalltorch.engine.show import Table, number, show_source
from smalltorch.models import GPT, initialise_gpt2
from smalltorch.norm import layer_norm

SHOWN = [
    ((1.4694,), "1.47"),
    ((1234.5,), "1230"),
    ((2e-13,), "2.00e-13"),
    ((2e-13, 1), "2e-13"),
    ((9.996,), "10.0"),
    ((0.99996,), "1.00"),
    ((-1.4694,), "-1.47"),
    ((0.0,), "0"),
    ((-0.0,), "0"),
    ((-1e-30,), "-1.00e-30"),
    ((1e6,), "1.00e+6"),
    ((999999.5, 4), "1000000"),
    ((0.00012345,), "0.000123"),
    ((1,), "1.00"),
    ((True,), "1.00"),
    ((math.inf,), "inf"),
    ((math.nan,), "nan"),
    ((12345.678, 7), "12345.68"),
    ((0.375 - 3e-8, 2), "0.38"),  # as float32 may have it
]


@pytest.mark.parametrize("arguments, text", SHOWN, ids=str)
def test_number(arguments, text):
    assert number(*arguments) == text


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300), st.integers(1, 6))
def test_number_is_near(x, digits):
    assert abs(float(number(x, digits)) - x) <= 0.501 * 10 ** (1 - digits) * abs(x) + 1e-300
    assert not number(x, digits).startswith("-0 ") and number(x, digits) != "-0"


def test_table():
    table = Table(["n", "norm"], [(2, 1.14159), (16, 1.4694), ("all", 2)])
    assert repr(table) == "  n  norm\n  2  1.14\n 16  1.47\nall     2"
    assert table._repr_markdown_() == "| n | norm |\n| ---: | ---: |\n| 2 | 1.14 |\n| 16 | 1.47 |\n| all | 2 |"


def test_ragged_rows():
    with pytest.raises(ValueError, match="expected 2 cells, got 1"):
        Table(["n", "norm"], [(2,)])


def test_source_is_that_of_the_files():
    shown = show_source(GPT, initialise_gpt2)
    assert shown.code.startswith("class GPT(nn.Module):\n") and shown.code.endswith("return model\n")
    theirs = ast.parse(Path(models.__file__).read_text(encoding="utf-8")).body
    ours = ast.parse(shown.code).body
    assert [node.name for node in ours] == ["GPT", "initialise_gpt2"]
    for node in ours:
        (there,) = (other for other in theirs if getattr(other, "name", None) == node.name)
        assert without_docstrings_and_checks(node) == without_docstrings_and_checks(there)


def without_docstrings_and_checks(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node):
            node.body = node.body[1:]
        if isinstance(node, ast.FunctionDef):
            node.body = [line for line in node.body if not ast.unparse(line).startswith(("check_", "_check"))]
    return ast.dump(tree)


def test_of_a_docstring_the_first_paragraph_is_shown():
    shown, whole = show_source(softmax).code, inspect.getdoc(softmax)
    assert '    """exp(S_j) / sum_k exp(S_k) along `dim`. Chapter `softmax`."""\n' in shown
    assert "Raises" in whole and "Raises" not in shown


def test_statements_that_only_check_are_left_out_and_counted():
    shown = show_source(softmax)
    body = ast.parse(shown.code).body[0].body
    assert [ast.unparse(statement).partition(" = ")[0] for statement in body[1:-1]] == ["dim", "wide", "top", "E", "Z"]
    assert shown.whole - shown.lines == 3
    end = f"Without its checks of arguments: {len(shown.code.splitlines())} of {shown.whole} lines."
    assert shown._repr_markdown_().endswith(f"```\n\n{end}")
    assert show_source(GPT.forward)._repr_markdown_().endswith("```")
    assert "if gamma is not None:" in show_source(layer_norm).code


def test_source_of_a_method_begins_at_the_margin():
    assert show_source(GPT.forward).code.startswith("def forward(\n    self, tokens")


@pytest.mark.parametrize("shown", [(), (math.sqrt,), (GPT, pytest.raises)])
def test_there_is_source_of_the_library_only(shown):
    with pytest.raises(ValueError, match="objects: expected functions and classes of smalltorch, got "):
        show_source(*shown)
