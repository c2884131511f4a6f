"""The ledger's rules: each way in which claims and records can go wrong is found, and a whole ledger passes."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from deepdive.book import records
from deepdive.book.records import Book, Chapter, Claim, Closing, Part, Record

ROOT = Path(__file__).resolve().parents[4]


def record(claim="a", chapter="norm", **changes):
    return replace(Record(claim, chapter, "true", "It holds.", "", (("derived", "all n"),), cell=2), **changes)


def chapter(*settled, name="norm", **changes):
    closing = Closing(name, 3, 3, tuple(dict.fromkeys(entry.claim for entry in settled)), cell=5)
    return replace(Chapter(name, f"notebooks/1-part/{name}", "A title", 5, settled, (closing,), seconds=9), **changes)


def book(*chapters, claims=None):
    claims = claims or (Claim("a", "N1", "§1", "It is said.", "norm"), Claim("b", "N2", "§2", "It is said.", "later"))
    part = Part("One", "1-part", ("norm", "other", "later"))
    return Book(tuple(claims), {entry.name: entry for entry in chapters}, (part,))


def closed(**changes):
    whole = chapter(record())
    return replace(whole, closings=(replace(whole.closings[0], **changes),))


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
        (book(chapter()), "no record settles the claim a"),
        (book(chapter(record(), record("z"))), "record of z: there is no such claim"),
        (
            book(chapter(record(), record("b", verdict="false")), chapter(record("b", "other"), name="other")),
            "b: the verdict is",
        ),
        (
            book(chapter(record(), record("b", statement="Not.")), chapter(record("b", "other"), name="other")),
            "b: the statement is",
        ),
        (book(chapter(record(), record(verdict="false"))), "a: the verdict is"),
        (book(replace(chapter(record()), seconds=None)), "does not say how long it runs"),
        (book(closed(executed=2)), "3 checks declared, 2 executed"),
        (book(closed(declared=2)), "2 checks declared, 3 executed"),
        (book(closed(declared=0, executed=0)), "no check was executed"),
        (book(closed(claims=("a", "b"))), "do not name the same claims: b"),
        (book(closed(cell=4)), "cell 5 still has code"),
        (book(closed(chapter="other")), "calls itself 'other'"),
        (book(replace(chapter(record()), closings=())), "closed 0 times"),
        (book(chapter(record(verdict="mostly true"))), "verdict 'mostly true'"),
        (book(chapter(record(verdict="true if "))), "verdict 'true if '"),
        (book(chapter(record(statement=" "))), "does not say what holds"),
        (book(chapter(record(evidence=()))), "names no evidence"),
        (book(chapter(record(evidence=(("felt", "strongly"),)))), "evidence 'felt'"),
        (book(chapter(record(chapter="other"))), "names the chapter 'other'"),
        (book(replace(chapter(record()), page="notebooks/2-part/norm")), "folder is not that in parts.yml"),
        (book(claims=[Claim("a", "N1", "", "", "norm")] * 2), "a stands twice"),
        (book(claims=[Claim("a", "N1", "", "", "nowhere")]), "assigned to 'nowhere'"),
        (book(claims=[Claim("a", "S0", "", "", "norm")]), "source 'S0'"),
    ],
)
def test_what_is_wrong_is_found(wrong, complaint):
    assert any(complaint in problem for problem in records.problems(wrong)), records.problems(wrong)


def test_records_are_read_from_the_outputs_of_a_notebook(tmp_path):
    entry = {
        "claim": "a",
        "chapter": "norm",
        "verdict": "open",
        "statement": "Unknown.",
        "assumptions": "",
        "evidence": [{"kind": "none", "text": "nobody knows"}],
    }
    closing = {"chapter": "norm", "declared": 1, "executed": 1, "claims": ["a"]}
    text = ["# How large?\n", "- **It runs** in about 7 s on one core.\n", "## As $\\sqrt n$: why?"]
    cells = [
        {"cell_type": "markdown", "source": text},
        {"cell_type": "code", "source": "settle()", "outputs": [{"data": {records.RECORD: {"records": [entry]}}}]},
        {"cell_type": "code", "source": "close()", "outputs": [{"data": {records.CHAPTER: closing}}]},
    ]
    path = tmp_path / "norm.ipynb"
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    found = records.read_chapter(path, "notebooks/1-part/norm")
    assert (found.name, found.title, found.seconds, found.last_code_cell) == ("norm", "How large?", 7, 2)
    assert found.headings == {"as-sqrt-n-why": r"As $\sqrt n$: why?"}
    evidence = (("none", "nobody knows"),)
    assert found.records == (record(verdict="open", statement="Unknown.", evidence=evidence, cell=1),)
    assert found.closings == (Closing("norm", 1, 1, ("a",), cell=2),)


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        ("- **It runs** in about 12 s on one core.", 12),
        ("- **It runs** in about 12 s on one core. (Measure it.)", 12),
        ("- **It runs** in about 12 s.", None),
        ("- **It runs** quickly on one core.", None),
        ("It runs in about 12 s on one core.", None),
    ],
)
def test_a_chapter_says_in_one_form_how_long_it_runs(line, seconds):
    found = records.RUNTIME.search(f"- **You need** nothing.\n{line}\n:::")
    assert (found and int(found[1])) == seconds


def test_every_part_opens_with_its_page():
    pages = records.toc_pages(ROOT)
    for part in records.read_book(ROOT).parts:
        chapters = [number for number, page in enumerate(pages) if page.startswith(f"notebooks/{part.folder}/")]
        assert not chapters or pages[chapters[0] - 1] == f"book/parts/{part.folder}"


def test_the_claims_and_the_map_of_this_book_fit_together():
    assert records.problems(replace(records.read_book(ROOT), chapters={})) == []


def test_a_notebook_that_the_contents_forget_is_found(tmp_path):
    (tmp_path / "_toc.yml").write_text("root: index\nparts: [{chapters: [{file: notebooks/1/a}]}]", encoding="utf-8")
    (tmp_path / "notebooks/1").mkdir(parents=True)
    for name in "ab":
        (tmp_path / f"notebooks/1/{name}.ipynb").touch()
    assert records.stray_notebooks(tmp_path) == ["notebooks/1/b.ipynb: not listed in _toc.yml"]
