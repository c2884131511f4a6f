"""The ledger's rules: each way in which claims and records can go wrong is found, and a whole ledger passes."""

from dataclasses import replace
from pathlib import Path

import pytest

from deepdive.book import records
from deepdive.book.chapter import Chapter, Located
from deepdive.book.contents import Part
from deepdive.book.records import Book
from smalltorch.engine.schema import Claim, Closing, Evidence, Record

ROOT = Path(__file__).resolve().parents[4]


def record(claim="a", chapter="norm", **changes):
    return replace(Record(claim, chapter, "true", "It holds.", "", (Evidence("derived", "all n", cell=1),)), **changes)


def chapter(*settled, name="norm", **changes):
    """A chapter of six cells, all code, of which the first three set up: counting begins at the fourth."""
    closing = Closing(name, 3, 3, tuple(dict.fromkeys(entry.claim for entry in settled)), cell=2)
    whole = Chapter(
        name,
        f"notebooks/1-part/{name}",
        "A title",
        cells=tuple(f"cell-{number}" for number in range(6)),
        code=tuple(range(6)),
        records=tuple(Located(entry, 5) for entry in settled),
        closings=(Located(closing, 5),),
        result="It holds.",
        seconds=9,
    )
    return replace(whole, **changes)


def book(*chapters, claims=None):
    claims = claims or (Claim("a", "N1", "§1", "It is said.", "norm"), Claim("b", "N2", "§2", "It is said.", "later"))
    part = Part("One", "1-part", ("norm", "other", "later"))
    return Book(tuple(claims), {entry.name: entry for entry in chapters}, (part,))


def closed(**changes):
    whole = chapter(record())
    closing, cell = whole.closings[0]
    return replace(whole, closings=(Located(replace(closing, **changes), cell),))


def test_a_whole_ledger_passes_and_is_counted():
    whole = book(chapter(record(verdict="true if n > 1")))
    assert records.problems(whole) == []
    assert whole.counts(whole.claims) == {
        "true": 0,
        "true if": 1,
        "imprecise": 0,
        "false": 0,
        "open": 0,
        "not yet examined": 1,
    }


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (book(chapter()), "not the same: a"),
        (book(chapter(record(), record("z"))), "not the same: z"),
        (book(chapter(record(), record("b"))), "not the same: b"),  # it is assigned to another chapter
        (book(chapter(record(), record(verdict="false"))), "not the same: some stand twice"),
        (book(replace(chapter(record()), result="")), "does not say after its title what it finds"),
        (book(replace(chapter(record()), seconds=None)), "does not say how long it runs"),
        (book(closed(executed=2)), "3 checks declared, 2 executed"),
        (book(closed(declared=2)), "2 checks declared, 3 executed"),
        (book(closed(declared=0, executed=0)), "no check was executed"),
        (book(closed(claims=("a", "b"))), "not of the same claims: b"),
        (book(replace(chapter(record()), code=(0, 5, 6))), "cell 6 still has code"),
        (book(chapter(record(evidence=(Evidence("derived", "all n", 3),)))), "is from cell 3, which is not in"),
        (book(chapter(record(evidence=(Evidence("derived", "all n", -1),)))), "is from cell -1, which is not in"),
        (book(closed(cell=6)), "is from cell 1, which is not in"),
        (book(closed(chapter="other")), "calls itself 'other'"),
        (book(replace(chapter(record()), closings=())), "closed 0 times"),
        (book(chapter(record(verdict="mostly true"))), "verdict 'mostly true'"),
        (book(chapter(record(verdict="true if "))), "verdict 'true if '"),
        (book(chapter(record(statement=" "))), "does not say what holds"),
        (book(chapter(record(evidence=()))), "names no evidence"),
        (book(chapter(record(evidence=(Evidence("felt", "strongly"),)))), "evidence 'felt'"),
        (book(chapter(record(evidence=(Evidence("derived", " "),)))), "evidence 'derived' says nothing"),
        (book(chapter(record(chapter="other"))), "names the chapter 'other'"),
        (book(claims=[Claim("a", "N1", "", "", "norm")] * 2), "a stands twice"),
        (book(claims=[Claim("a", "N1", "", "", "nowhere")]), "assigned to 'nowhere'"),
        (book(claims=[Claim("a", "S0", "", "", "norm")]), "source 'S0'"),
    ],
)
def test_what_is_wrong_is_found(wrong, complaint):
    assert any(complaint in problem for problem in records.problems(wrong)), records.problems(wrong)


def test_the_claims_and_the_map_of_this_book_fit_together():
    assert records.problems(replace(records.read_book(ROOT), chapters={})) == []
