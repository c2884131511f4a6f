"""The long book is a book: each copy of a chapter settles its own claims, and no name is that of another."""

import stress
import toc
from deepdive.book import records


def test_chapters_are_repeated_until_there_are_enough(tmp_path):
    before = records.read_book(stress.ROOT)
    wanted = 2 * len(before.chapters) + 1
    stress.copy(stress.ROOT, tmp_path)
    stress.repeat(tmp_path, wanted)
    book = records.read_book(tmp_path)
    assert len(book.chapters) == wanted
    assert toc.problems(tmp_path) == [] and records.problems(book) == []
    labels = [
        label for page in book.notebooks for label in stress.labels((tmp_path / f"{page}.ipynb").read_text("utf-8"))
    ]
    assert len(labels) == len(set(labels)) > 2 * len(before.chapters)
