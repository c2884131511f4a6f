"""The ledger's rules: each way in which claims and records can go wrong is found, and a whole ledger passes."""

from dataclasses import replace
from pathlib import Path

import pytest

from deepdive.book import records
from deepdive.book.chapter import Chapter, Located, Proof
from deepdive.book.contents import Part
from deepdive.book.records import Book
from smalltorch.engine.schema import Claim, Closing, Evidence, Record

ROOT = Path(__file__).resolve().parents[4]
OWN, ELSEWHERE = (Claim(name, "N1", "§1", "It is said.", of) for name, of in (("a", "norm"), ("b", "later")))


def record(claim="a", chapter="norm", **changes):
    return replace(
        Record(claim, chapter, "true", "It holds.", "", (Evidence("derived", "all n", 1, ("x = y",)),)), **changes
    )


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
        proofs={"norm-all": Proof(("Suppose not.", "By (1) it holds.", "By (3), too."), numbered=False)},
    )
    return replace(whole, **changes)


def book(*chapters, claims=None):
    claims = claims or (OWN,)
    part = Part("One", "1-part", tuple(entry.name for entry in chapters) or ("norm",))
    return Book(tuple(claims), {entry.name: entry for entry in chapters}, (part,), frozenset({"hardy1920"}))


def resting(kind, shows=("x = y",), verdict="true", assumptions="", **more):
    """A book with a record that rests on one piece of evidence."""
    evidence = Evidence(kind, "it", 1, shows, **more)
    return book(chapter(record(verdict=verdict, assumptions=assumptions, evidence=(evidence,))))


def closed(**changes):
    whole = chapter(record())
    closing, cell = whole.closings[0]
    return replace(whole, closings=(Located(replace(closing, **changes), cell),))


@pytest.mark.parametrize("text", ["a\times b", "\nu", "a\x7f", "a\x85"])
def test_a_control_character_in_a_text_of_the_ledger_is_found(text):
    """It is what is left of a backslash that Python has read; nobody sees it, and not every browser takes the page."""
    row, shown = Claim("a", "N1", "§1", "It is said.", "norm"), Evidence("derived", "it", 1, ("x",), given=("y = 1",))
    books = [book(chapter(record()), claims=[replace(row, **{field: text})]) for field in ("place", "claim")]
    wrong = [{"statement": text}, {"assumptions": text}, {"verdict": f"true if {text}"}]
    wrong += [
        {"assumptions": "y is 1", "evidence": (replace(shown, **{field: value}),)}
        for field, value in {"text": text, "shows": ("x", text), "given": (text,), "scope": text}.items()
    ]
    for one in books + [book(chapter(record(**changes))) for changes in wrong]:
        assert ["a control character in" in problem for problem in records.problems(one)].count(True) == 1


def test_a_whole_ledger_passes_and_is_counted():
    whole = book(chapter(record(verdict="true if n > 1")))
    assert records.problems(whole) == []
    assert whole.counts(whole.claims) == {
        "true": 0,
        "true if": 1,
        "imprecise": 0,
        "false": 0,
        "open": 0,
    }


@pytest.mark.parametrize(
    "whole",
    [
        resting("derived", given=("y = 1",), assumptions="y is 1"),
        resting("fact", verdict="imprecise"),
        resting("computed", scope="n = 6"),
        resting("computed", verdict="imprecise"),
        resting("counterexample", verdict="false", about=("a",)),
        resting("cited", about=("hardy1920",)),
        resting("proved in text", about=("norm-all",)),
        resting("none", (), verdict="open"),
        book(
            chapter(), chapter(record("b", "later"), name="later"), claims=[ELSEWHERE]
        ),  # none is assigned to the first
    ],
)
def test_evidence_that_carries_its_verdict_passes(whole):
    assert records.problems(whole) == []


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (resting("verified"), "a verdict of 'true' needs evidence of kind cited, computed"),
        (resting("counterexample", about=("a",)), "a verdict of 'true' needs evidence of kind"),
        (resting("derived", ()), "'it' does not say what it shows"),
        (resting("derived", given=("y = 1",)), "it has no assuming=…, and 'it' is shown under a hypothesis: y = 1"),
        (resting("proved in text", given=("y = 1",), about=("norm-all",)), "it has no assuming=…"),
        (resting("computed"), "does not say for which sizes, inputs or models"),
        (resting("computed", verdict="true if small"), "does not say for which sizes"),
        (resting("counterexample", verdict="false"), "must name the claim a, got none"),
        (resting("counterexample", verdict="false", about=("b", "c")), "must name the claim a, got b c"),
        (resting("cited", about=("hardy1920", "hardy1921")), "cites hardy1921, which is not in references.bib"),
        (resting("proved in text"), "no proof follows a theorem with the label ''"),
        (resting("proved in text", about=("norm-none",)), "no proof follows a theorem with the label 'norm-none'"),
        (
            resting("proved in text", ("x", "y", "z"), about=("norm-all",)),
            "the proof of norm-all names no identity (2)",
        ),
    ],
)
def test_evidence_that_does_not_carry_its_verdict_is_found(wrong, complaint):
    found = [problem for problem in records.problems(wrong) if complaint in problem]
    assert found and found[0].startswith("notebooks/1-part/norm: record of a: "), records.problems(wrong)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (book(chapter()), "not the same: a"),
        (book(chapter(record(), record("z"))), "not the same: z"),
        (book(chapter(record(), record("b")), claims=[OWN, ELSEWHERE]), "not the same: b"),
        (
            replace(book(chapter(record())), parts=(Part("One", "1-part", ("norm", "later")),)),
            "notebooks/1-part/later is missing",
        ),
        (book(chapter(record(), record(verdict="false"))), "not the same: some stand twice"),
        (book(replace(chapter(record()), result="")), "does not say after its title what it finds"),
        (book(replace(chapter(record()), seconds=None)), "does not say how long it runs"),
        (book(closed(executed=2)), "3 checks declared, 2 executed"),
        (book(closed(declared=2)), "2 checks declared, 3 executed"),
        (book(closed(declared=0, executed=0)), "no check was executed"),
        (book(closed(claims=("a", "b"))), "not of the same claims: b"),
        (book(replace(chapter(record()), code=(0, 5, 6))), "cell 6 still has code"),
        (
            book(chapter(record(evidence=(Evidence("derived", "all n", 3, ("x = y",)),)))),
            "is from cell 3, which is not in",
        ),
        (
            book(chapter(record(evidence=(Evidence("derived", "all n", -1, ("x = y",)),)))),
            "is from cell -1, which is not in",
        ),
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


def test_each_claim_of_this_book_has_a_verdict():
    book = records.read_book(ROOT)
    assert records.problems(book) == [] and len(book.claims) == len(book.records) > 0
