"""The printed pages of the chapters are counted, and a list of those that have too many holds no other."""

import pdf

BEGINS = {"book/index": 3, "book/parts/one": 5, "notebooks/one/a": 6, "notebooks/one/b": 24, "book/ledger": 40}


def test_the_pages_of_chapters_are_counted_up_to_what_follows():
    assert pdf.chapter_lengths(BEGINS) == {"a": 18, "b": 16}


def test_a_chapter_that_is_too_long_is_found_unless_it_is_listed():
    pages = {"a": 18, "b": 16}
    assert pdf.lengths(pages, ()) == ["a has 18 pages, 16 at most"]
    assert pdf.lengths(pages, {"a"}) == []


def test_a_listed_chapter_that_is_short_enough_or_gone_is_found():
    complaint = "{} has no more than 16 pages now: take it off NOT_YET"
    assert pdf.lengths({"a": 16}, {"a", "c"}) == [complaint.format("a"), complaint.format("c")]
