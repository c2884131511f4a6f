"""What `make book` says of claims and systems."""

from dataclasses import replace
from pathlib import Path

import settled
from deepdive.book import records, systems

ROOT = Path(__file__).resolve().parents[3]


def test_all_claims_have_a_verdict_and_all_systems_a_place_and_what_lacks_one_is_counted():
    book, rows = records.read_book(ROOT), systems.read_systems(ROOT / "book/systems.csv")
    assert settled.said(book, rows) == ("418 of 418 claims have a verdict, and 225 of 225 systems a place", True)
    less = {name: chapter for name, chapter in book.chapters.items() if name != "causal"}
    line, whole = settled.said(replace(book, chapters=less), rows)
    assert line.startswith("417 of 418 claims") and not whole
    line, whole = settled.said(book, [replace(rows[0], where=()), *rows[1:]])
    assert line.endswith("224 of 225 systems a place") and not whole
