"""No chapter uses a term before one has said what it is; and no symbol is listed that means two things, or nothing."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from deepdive.book import contents, glossary
from deepdive.book.glossary import Term

ROOT = Path(__file__).resolve().parents[4]
NOTATION = ROOT / "book/notation.md"
TERMS = (
    Term("mask", "It hides.", ("one", "two")),
    Term("norm", "It scales.", ("two",), ("norm", "norms")),
)
TEXTS = {"one": "A mask.", "two": "A mask and norms.", "three": "The norm."}


def read(name):
    cells = json.loads((ROOT / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


@pytest.fixture(scope="module")
def texts():
    """The prose of each chapter, by its name, in the order of the book."""
    pages = [page for part in contents.read(ROOT).parts if part.folder for page in contents.written(ROOT, part)]
    return {Path(page).name: read(page) for page in pages}


def test_no_chapter_of_this_book_uses_a_term_before_it_is_defined(texts):
    planned = [name for part in contents.read(ROOT).parts for name in part.chapters]
    assert glossary.problems(glossary.read_terms(ROOT), texts, planned) == []


def test_terms_in_their_order_that_are_said_first_pass():
    assert glossary.problems(TERMS, TEXTS, TEXTS) == []
    assert glossary.problems(TERMS[:1], {"two": "A mask."}, TEXTS) == []  # the first chapter is to come


@pytest.mark.parametrize(
    ("terms", "complaint"),
    [
        (TERMS[::-1], "the terms do not stand in alphabetical order"),
        ((TERMS[0], *TERMS), "mask stands twice"),
        ((replace(TERMS[0], chapters=("one", "four")),), "mask: there is no chapter four"),
        ((replace(TERMS[0], chapters=("two",)),), "mask: one uses it before two says what it is"),
        ((replace(TERMS[1], chapters=("three",)),), "norm: two uses it before three says what it is"),
        ((replace(TERMS[1], chapters=("one",)),), "norm: one is to define it, and does not use it"),
    ],
)
def test_what_is_wrong_with_a_term_is_found(terms, complaint):
    assert glossary.problems(terms, TEXTS, TEXTS) == [complaint]


@pytest.mark.parametrize(
    ("text", "used"), [("norms", True), ("the norm.", True), ("Norm", False), ("norm-bounds", False), ("enorm", False)]
)
def test_a_term_is_used_by_its_words_in_their_case_and_whole(text, used):
    assert TERMS[1].used_in(text) == used


# --- the table of symbols ---------------------------------------------------------------------------------------------


def bare(tex):
    """TeX without white space and braces around one letter, in which H_{n} and H_n differ."""
    return re.sub(r"\\[lr]Vert|\\\|", "‖", re.sub(r"\{(\w)\}|\s|\\[,;!:]", r"\1", tex))


def symbols():
    """The symbols of each row of the table."""
    rows = re.findall(r"^\| (\$.*?) \|", NOTATION.read_text(encoding="utf-8"), re.MULTILINE)
    return [[symbol for formula in re.findall(r"\$(.+?)\$", row) for symbol in split(formula)] for row in rows]


def split(formula):
    """The symbols of a formula, between commas that stand in no braces."""
    return re.split(r",(?![^{]*\})", formula)


def test_no_symbol_has_two_rows():
    found = [bare(symbol) for row in symbols() for symbol in row]
    assert len(found) > 40 and sorted(found) == sorted(set(found))


def test_each_symbol_is_used_by_a_chapter(texts):
    formulas = {bare(tex) for text in texts.values() for tex in re.findall(r"\$\$?(.+?)\$\$?", text, re.DOTALL)}
    used = "\n".join(formulas)
    # of ‖A‖_F counts the norm, of res(X) the function
    names = {each: re.sub("^‖.*‖", "‖", bare(each)).partition("(")[0] for row in symbols() for each in row}
    assert [symbol for symbol, name in names.items() if name not in used] == []
