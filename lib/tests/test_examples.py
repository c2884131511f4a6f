"""The examples in the docstrings give what they say."""

import ast
import doctest
import importlib
import pkgutil
from collections.abc import Iterator

import pytest

import smalltorch


def examples() -> Iterator[doctest.DocTest]:
    """From the source: what a decorator has wrapped, doctest would pass over."""
    for found in pkgutil.walk_packages(smalltorch.__path__, "smalltorch."):
        module = importlib.import_module(found.name)
        with open(module.__file__, encoding="utf-8") as file:
            tree = ast.parse(file.read())
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node)):
                name = f"{found.name}.{getattr(node, 'name', '')}".rstrip(".")
                test = doctest.DocTestParser().get_doctest(text, dict(vars(module)), name, module.__file__, 0)
                if test.examples:
                    yield test


EXAMPLES = list(examples())


@pytest.mark.parametrize("test", EXAMPLES, ids=lambda test: test.name)
def test_an_example_gives_what_it_says(test):
    assert all(example.indent == 4 for example in test.examples), "not indented: no code on the library's page"
    said = []
    result = doctest.DocTestRunner().run(test, out=said.append)
    assert result.failed == 0, "".join(said)


def test_there_are_examples():
    assert {"smalltorch.attention.softmax", "smalltorch.spectral.spectral_norm", "smalltorch.engine.derive"} <= {
        test.name for test in EXAMPLES
    }
