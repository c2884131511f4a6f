"""Say how many claims have a verdict and how many systems a place in the book; fail if one has none."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from deepdive.book import records, systems
from deepdive.book.records import Book
from deepdive.book.systems import System

ROOT = Path(__file__).resolve().parents[2]


def said(book: Book, rows: Sequence[System]) -> tuple[str, bool]:
    """The line, and whether there is nothing left to do."""
    settled, placed = sum(book.counts(book.claims).values()), sum(bool(row.places) for row in rows)
    line = f"{settled} of {len(book.claims)} claims have a verdict, and {placed} of {len(rows)} systems a place"
    return line, (settled, placed) == (len(book.claims), len(rows))


if __name__ == "__main__":
    line, whole = said(records.read_book(ROOT), systems.read_systems(ROOT / "book/systems.csv"))
    print(line)
    sys.exit(not whole)
