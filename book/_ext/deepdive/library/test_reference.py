"""The library's page: signatures and docstrings are read as they stand, and nothing public is left out."""

import re
from pathlib import Path

import pytest

from deepdive.book import records
from deepdive.library import reference

ROOT = Path(__file__).resolve().parents[4]
LIBRARY = ROOT / "lib/smalltorch"
SOURCE = '''
"""About it. Chapter `norm`."""
from typing import NamedTuple
from smalltorch.shapes import check
from smalltorch import data as stored
from smalltorch.engine import show

def f(X: Float[Tensor, "n d"], *, eps: float = 1e-5) -> Float[Tensor, " n"]:
    """Like `g`, and `h`.

    A paragraph
    - in two lines.

        code(here)

    Raises:
        ValueError: if X is not
            what it should be.
    """
    return stored.text("a") + X.data + show.number(1)

def _private(): ...

class Pair(NamedTuple):
    """Two."""
    one: int
    rest: list = field(default_factory=list)

    @property
    def both(self) -> int: ...

class Module:
    def __init__(self, d: int): ...
    def forward(self, X): "The output."
'''


def test_signatures_and_members():
    f, pair, module = reference.read_module("m", SOURCE).entries
    assert f.kind == "function"
    assert f.signature == "(X: Float[Tensor, 'n d'], *, eps: float=1e-05) -> Float[Tensor, ' n']"
    assert (pair.kind, pair.signature) == ("class", "(one: int, rest: list = ...)")
    assert [(entry.kind, entry.name, entry.signature) for entry in pair.members] == [("property", "both", "int")]
    assert module.signature == "(d: int)"
    assert [(entry.name, entry.signature, entry.doc) for entry in module.members] == [("forward", "(X)", "The output.")]


def test_docstrings_become_markdown_with_links():
    module = reference.read_module("m", SOURCE)
    text = reference.markdown(module.entries[0].doc, {"g": "smalltorch.m.g"}, {})
    assert text == (
        "Like {py:obj}`g <smalltorch.m.g>`, and `h`.\n\nA paragraph - in two lines.\n\n    code(here)\n\n"
        "Raises:\n\n- `ValueError`: if X is not what it should be."
    )
    assert reference.markdown(module.doc, {}, {"norm": "/there.ipynb"}) == "About it. Chapter “[](/there.ipynb)”."
    assert reference.markdown(module.doc, {}, {}) == module.doc


def test_uses_are_imports_and_what_is_reached_through_modules():
    modules = {"data", "engine.show"}
    assert reference.uses(SOURCE) - modules == {"shapes.check", "data.text", "engine.show.number"}


def test_modules_in_folders_are_read_and_those_that_only_lead_on_are_not(tmp_path):
    files = {
        "norm.py": "def norm(): ...",
        "engine/derive.py": "class Derivation: ...",
        "engine/__init__.py": "def hidden(): ...",
        "_private.py": "def hidden(): ...",
        "derive.py": "from smalltorch.engine.derive import *",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert set(reference.read_library(tmp_path)) == {"norm", "engine.derive"}


def test_the_page_has_every_module_once():
    text = (ROOT / "book/library.md").read_text(encoding="utf-8")
    listed = " ".join(re.findall(r"```\{library\}\n(.*?)```", text, re.S)).split()
    assert sorted(listed) == sorted(reference.read_library(LIBRARY))


@pytest.mark.parametrize("path", reference.sources(LIBRARY).values(), ids=reference.sources(LIBRARY).keys())
def test_chapters_that_docstrings_mention_are_planned(path):
    planned = {name for part in records.read_book(ROOT).parts for name in part.chapters}
    mentioned = {name for _, name in reference.CHAPTER.findall(path.read_text(encoding="utf-8"))}
    assert mentioned <= planned


def test_everything_public_in_the_library_says_what_it_is():
    library = reference.read_library(LIBRARY)
    own = [
        module for name, module in library.items() if not name.startswith("experiments.")
    ]  # those are run, not called
    assert [entry.name for module in own for entry in module.entries if not entry.doc] == []
