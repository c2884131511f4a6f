"""The index of systems: each way in which a row can go wrong is found, and this book's rows lead where they say."""

from dataclasses import replace
from pathlib import Path

import pytest

from deepdive.book import records, systems
from deepdive.book.chapter import Chapter
from deepdive.book.contents import Part
from deepdive.book.essay import Essay
from deepdive.book.records import Book
from deepdive.book.systems import System

ROOT = Path(__file__).resolve().parents[4]
BOOK = Book(
    (),
    {"norm": Chapter("norm", "notebooks/1/norm", "Norm", (), (), (), (), "", {"a-proof": "A proof"})},
    (Part("One", "1", ("norm", "later")),),
)
ROW = System(1, "N3", "norms", "LayerNorm", "a norm", ("I", "D"), ("norm#a-proof",))


def test_a_row_says_where_its_system_works():
    assert systems.problems((ROW,), BOOK) == []
    assert (ROW.places, ROW.state) == ([("norm", "a-proof")], "works")
    assert replace(ROW, kinds=("N",)).state == "named only"


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"number": 3}, "expected the number 1"),
        ({"source": "S0"}, "the source 'S0'"),
        ({"what": ""}, "is empty"),
        ({"kinds": ("D", "I")}, "the kind 'D I'"),
        ({"kinds": ()}, "the kind ''"),
        ({"where": ()}, "no chapter has it"),
        ({"where": ("norm#a-proof", "nowhere#a-proof")}, "'nowhere' is not in parts.yml"),
        ({"where": ("norm",)}, "norm: name the section"),
        ({"where": ("later#a-proof",)}, "later is not written"),
        ({"where": ("norm#a-lemma",)}, "norm has no section 'a-lemma'"),
    ],
)
def test_what_is_wrong_is_found(changes, complaint):
    found = systems.problems((replace(ROW, **changes),), BOOK)
    assert len(found) == 1 and complaint in found[0], found


def test_what_only_an_essay_has_is_named_only():
    essay = Essay("far", "book/far", "Far", (), (), (), (), "", {"models": "Models"})
    book = replace(BOOK, chapters=BOOK.chapters | {"far": essay}, parts=(*BOOK.parts, Part("Far", "", ("far",))))
    told = replace(ROW, kinds=("N",), where=("far#models",))
    assert systems.problems((told, replace(ROW, number=2, where=("norm#a-proof", "far#models"))), book) == []
    (found,) = systems.problems((replace(told, kinds=("I", "N")),), book)
    assert "an essay makes nothing work: its kind is N" in found


def test_the_index_of_this_book_is_in_order():
    rows = systems.read_systems(ROOT / "book/systems.csv")
    assert rows and systems.problems(rows, records.read_book(ROOT)) == []
