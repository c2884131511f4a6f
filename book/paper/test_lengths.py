"""The pages of the chapters are counted; a chapter that has too many is found, and a PDF that is too large."""

import pdf

BEGINS = {"book/index": 3, "book/parts/one": 5, "notebooks/one/a": 6, "notebooks/one/b": 24, "book/ledger": 40}


def test_the_pages_of_chapters_are_counted_up_to_what_follows():
    assert pdf.chapter_lengths(BEGINS) == {"a": 18, "b": 16}


def test_a_chapter_that_is_too_long_is_found():
    assert pdf.lengths({"a": 18, "b": 16}) == ["a has 18 pages, 16 at most"]


def test_a_pdf_that_is_too_large_is_found():
    assert pdf.weight(40_000_001) == ["the PDF has 40.0 MB, 40 at most"] and not pdf.weight(40_000_000)
