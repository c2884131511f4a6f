"""An essay is read with the verdicts beside it, and each way in which these can go wrong is found."""

from pathlib import Path

import pytest
import yaml

from deepdive.book import records, systems
from deepdive.book.chapter import Chapter
from deepdive.book.contents import Part
from deepdive.book.essay import Essay, read_essay
from deepdive.book.records import Book
from smalltorch.engine.schema import Claim, Evidence, Record

ROOT = Path(__file__).resolve().parents[4]
TEXT = """\
# What cannot be tried

**In short.** Much of it
cannot.

## Models by name

It is said, and it is {claim}`C1`.

### Chips

And this, {claim}`C2`.
"""
FIRST = {"claim": "C1", "verdict": "open", "reason": "No desk has one.", "read": {"hardy1920": "that there is one"}}
SECOND = FIRST | {"claim": "C2", "verdict": "imprecise"}
CLAIMS = tuple(Claim(name, "N4", "VI", "It is said.", "far") for name in ("C1", "C2"))


def book(folder, *entries, text=TEXT):
    (folder / "book").mkdir()
    (folder / "book/far.md").write_text(text, encoding="utf-8")
    (folder / "book/far.yml").write_text(yaml.safe_dump(list(entries)), encoding="utf-8")
    essay = read_essay(folder, "book/far")
    return Book(CLAIMS, {"far": essay}, (Part("Far", "", ("far",)),), frozenset({"hardy1920"}))


def without(entry, name):
    return {key: value for key, value in entry.items() if key != name}


def test_an_essay_is_read_with_its_verdicts(tmp_path):
    whole = book(tmp_path, FIRST, SECOND)
    assert records.problems(whole) == []
    essay = whole.chapters["far"]
    assert isinstance(essay, Essay) and (essay.title, essay.result) == ("What cannot be tried", "Much of it cannot.")
    assert essay.headings == {"models-by-name": "Models by name", "chips": "Chips"} and essay.shown == ("C1", "C2")
    works = (Evidence("cited", "that there is one (hardy1920)", shows=("that there is one",), about=("hardy1920",)),)
    assert whole.records["C1"] == Record("C1", "far", "open", "No desk has one.", "", works)
    counts = whole.counts(whole.claims)
    assert (counts["open"], counts["imprecise"]) == (1, 1)
    assert list(whole.pages) == ["book/far"] and not whole.notebooks and essay.file == "book/far.md"


def test_a_chapter_that_runs_is_a_notebook():
    chapter = Chapter("norm", "notebooks/1/norm", "Norm", (), (), (), ())
    whole = Book((), {"norm": chapter}, ())
    assert chapter.file == "notebooks/1/norm.ipynb" and list(whole.notebooks) == ["notebooks/1/norm"]


@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        (without(SECOND, "reason"), "record of C2: it does not say what holds"),
        (SECOND | {"reason": " "}, "record of C2: it does not say what holds"),
        (SECOND | {"verdict": "true"}, "record of C2: without a check no claim is 'true'"),
        (SECOND | {"verdict": "true if one looks"}, "record of C2: without a check no claim is 'true if one looks'"),
        (SECOND | {"verdict": "false"}, "record of C2: without a check no claim is 'false'"),
        (SECOND | {"verdict": "unknown"}, "record of C2: without a check no claim is 'unknown'"),
        (without(SECOND, "read"), "record of C2: it names no evidence"),
        (SECOND | {"read": {"hardy1920": ""}}, "does not say what it shows"),
        (SECOND | {"read": {"hardy1921": "nothing"}}, "cites hardy1921, which is not in references.bib"),
        (SECOND | {"claim": "C3"}, "the claims assigned to it and its records are not the same: C2, C3"),
        (SECOND | {"claim": "C3"}, "its records and the verdicts in its text are not the same: C2, C3"),
        (FIRST, "the claims assigned to it and its records are not the same: C2"),
        (SECOND | {"reason": "a\times b"}, "a control character"),
    ],
)
def test_what_is_wrong_beside_an_essay_is_found(tmp_path, entry, complaint):
    found = records.problems(book(tmp_path, FIRST, entry))
    assert any(problem.startswith("book/far: ") and complaint in problem for problem in found), found


@pytest.mark.parametrize(
    "text",
    [TEXT.replace("{claim}`C2`", "open"), TEXT.replace("C2", "C1"), TEXT + "\nAgain, {claim}`C2`.\n"],
)
def test_each_verdict_stands_once_in_the_text(tmp_path, text):
    (found,) = records.problems(book(tmp_path, FIRST, SECOND, text=text))
    assert "its records and the verdicts in its text are not the same" in found


@pytest.mark.parametrize("entry", [without(SECOND, "verdict"), without(SECOND, "claim"), SECOND | {"verdit": "open"}])
def test_an_entry_has_the_fields_of_an_entry(tmp_path, entry):
    with pytest.raises(TypeError):
        book(tmp_path, FIRST, entry)


def test_the_essays_of_this_book_are_in_order():
    whole = records.read_book(ROOT)
    essays = {name: chapter for name, chapter in whole.chapters.items() if isinstance(chapter, Essay)}
    assert list(essays) == ["landscape"]
    assert [problem for problem in records.problems(whole) if problem.startswith("book/landscape")] == []


def test_the_landscape_begins_with_the_numbers_of_what_it_has():
    whole = records.read_book(ROOT)
    essay = whole.chapters["landscape"]
    rows = [row for row in systems.read_systems(ROOT / "book/systems.csv") if "landscape" in row.chapters]
    counts = whole.counts(whole.claims_of("landscape"))
    assert (len(essay.records), len(rows), counts["open"], counts["imprecise"]) == (10, 31, 5, 5)
    for said in (
        "Ten claims",
        "thirty-one of the systems",
        "Five of these claims stay open",
        "The other five are imprecise",
    ):
        assert said in essay.result
