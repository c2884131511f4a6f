"""The record: what a verdict needs, what is counted, and what travels in the notebook."""

import json

import pytest
from IPython.core.interactiveshell import InteractiveShell

from smalltorch import data
from smalltorch.engine import ledger
from smalltorch.engine.ledger import Chapter, cited, executed, none_possible
from smalltorch.engine.schema import CHAPTER_MIME, RECORD_MIME, Evidence, read_closing, read_records

CLAIMS = """\
id,source,place,claim,chapter
S0-2.1-eq1,N1,§2.1,"The norm is at most $\\sqrt n$, or so.",norms
S0-2.1-eq2,N1,§2.1,"$|S|\\le B$, and $\\|A\\|\\ge 1$.",norms
S9-other,N1,§9,Another chapter's.,elsewhere
"""


@pytest.fixture(autouse=True)
def book(tmp_path, monkeypatch):
    """A book with three claims."""
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "claims.csv").write_text(CLAIMS, encoding="utf-8")
    monkeypatch.setattr(data, "BOOK", tmp_path / "book")
    monkeypatch.setattr(ledger, "_executed", [])


def chapter(checks: int = 1) -> Chapter:
    return Chapter("norms", checks=checks)


def test_a_chapter_that_settles_its_claims():
    c = chapter(checks=2)
    derived, verified = executed("derived", "derived for all n"), executed("verified", "verified, tightness 1")
    c.settle("S0-2.1-eq1", verdict="true", holds="It is.", by=[derived, verified])
    c.settle("S0-2.1-eq2", verdict="true if $n>1$", holds="It is then.", by=[derived], assuming="$n>1$")
    shown = c.close()._repr_mimebundle_()
    assert shown["text/plain"] == "2 claims settled, 2 checks executed, 2 declared"
    assert shown[CHAPTER_MIME] == {
        "chapter": "norms",
        "declared": 2,
        "executed": 2,
        "claims": ("S0-2.1-eq1", "S0-2.1-eq2"),
        "cell": 0,
    }
    first, second = shown[RECORD_MIME]["records"]
    assert first == {
        "claim": "S0-2.1-eq1",
        "chapter": "norms",
        "verdict": "true",
        "statement": "It is.",
        "assumptions": "",
        "evidence": (
            {"kind": "derived", "text": "derived for all n", "cell": 0},
            {"kind": "verified", "text": "verified, tightness 1", "cell": 0},
        ),
    }
    assert second["verdict"] == "true if $n>1$" and second["assumptions"] == "$n>1$"
    assert '<span id="claim-s0-2-1-eq1"></span>' in shown["text/markdown"]


def test_bars_and_line_breaks_stay_within_their_cell():
    c = chapter()
    c.settle("S0-2.1-eq1", "S0-2.1-eq2", verdict="true", holds="Both,\nand $|x|$.", by=[executed("derived", "done")])
    for line in c.close()._repr_mimebundle_()["text/markdown"].splitlines()[:4]:
        assert line.replace(r"\|", "").count("|") == 4


@pytest.mark.parametrize("verdict", ["true", "true if small", "false"])
@pytest.mark.parametrize("kind", ["verified", "none"])
def test_weak_evidence_decides_nothing(verdict, kind):
    c = chapter()
    evidence = none_possible("no data") if kind == "none" else executed(kind, "text")
    with pytest.raises(ValueError, match="needs evidence of kind"):
        c.settle("S0-2.1-eq1", verdict=verdict, holds="It is.", by=[evidence])
    assert not c.settled


@pytest.mark.parametrize(
    "verdict, kind", [("true", "counterexample"), ("true if small", "counterexample"), ("imprecise", "none")]
)
def test_evidence_of_the_wrong_kind(verdict, kind):
    c = chapter()
    evidence = executed(kind, "text") if kind != "none" else None
    with pytest.raises(ValueError, match="needs evidence"):
        c.settle("S0-2.1-eq1", verdict=verdict, holds="It is.", by=[evidence] if evidence else [])


@pytest.mark.parametrize(
    "verdict, kind",
    [
        ("true", "derived"),
        ("true", "proved in text"),
        ("true", "computed"),
        ("true", "measured"),
        ("false", "counterexample"),
        ("imprecise", "counterexample"),
        ("imprecise", "verified"),
        ("open", "verified"),
    ],
)
def test_evidence_of_the_right_kind(verdict, kind):
    c = chapter()
    c.settle("S0-2.1-eq1", verdict=verdict, holds="It is.", by=[executed(kind, "text")])
    assert c.settled["S0-2.1-eq1"].verdict == verdict


def test_literature_and_its_absence():
    c = chapter()
    c.settle("S0-2.1-eq1", verdict="true", holds="It is.", by=[cited("hardy1920", for_="the constant")])
    c.settle("S0-2.1-eq2", verdict="open", holds="Nobody knows.", by=[none_possible("needs a cluster")])
    assert c.settled["S0-2.1-eq1"].evidence[0].text == "the constant (hardy1920)"
    with pytest.raises(ValueError, match="at least one entry"):
        cited(for_="the constant")
    with pytest.raises(AssertionError, match="declares 1 checks, but 0 ran"):
        c.close()  # citing is no check


def test_evidence_comes_from_checks_of_this_chapter():
    earlier = executed("derived", "before the chapter began")
    c = chapter()
    executed("derived", "of this chapter")
    for foreign in (earlier, Evidence("derived", "made by hand"), Evidence("derived", "of this chapter")):
        with pytest.raises(ValueError, match="no check of this chapter"):
            c.settle("S0-2.1-eq1", verdict="true", holds="It is.", by=[foreign])


def test_unfinished_checks_are_no_evidence():
    class Unfinished:
        evidence = None

    for thing in (Unfinished(), "trust me"):
        with pytest.raises(ValueError, match="after qed"):
            chapter().settle("S0-2.1-eq1", verdict="true", holds="It is.", by=[thing])


@pytest.mark.parametrize("verdict", ["maybe", "True", "true if", "true if ", "false if odd", ""])
def test_unknown_verdicts(verdict):
    c = chapter()
    with pytest.raises(ValueError, match="verdict must be"):
        c.settle("S0-2.1-eq1", verdict=verdict, holds="It is.", by=[executed("derived", "text")])


def test_claims_must_be_this_chapter_s_and_settled_once():
    c = chapter()
    done = executed("derived", "text")
    for claim in ("S9-other", "S0-none"):
        with pytest.raises(ValueError, match="not a claim of chapter 'norms'"):
            c.settle(claim, verdict="true", holds="It is.", by=[done])
    c.settle("S0-2.1-eq1", verdict="true", holds="It is.", by=[done])
    with pytest.raises(ValueError, match="settled twice"):
        c.settle("S0-2.1-eq1", verdict="imprecise", holds="It is not.", by=[done])


def test_something_must_be_said_of_something():
    c = chapter()
    done = executed("derived", "text")
    for ids, holds in (((), "It is."), (("S0-2.1-eq1",), " ")):
        with pytest.raises(ValueError, match="got nothing"):
            c.settle(*ids, verdict="true", holds=holds, by=[done])


def test_close_demands_all_claims_and_all_checks():
    c = chapter(checks=2)
    done = executed("derived", "text")
    c.settle("S0-2.1-eq1", verdict="true", holds="It is.", by=[done])
    with pytest.raises(AssertionError, match="without a record: S0-2.1-eq2"):
        c.close()
    c.settle("S0-2.1-eq2", verdict="true", holds="It is.", by=[done])
    with pytest.raises(AssertionError, match="declares 2 checks, but 1 ran"):
        c.close()
    executed("verified", "text")
    assert c.close().closing.executed == 2


def test_a_chapter_counts_from_its_beginning():
    executed("derived", "of another chapter")
    c = chapter()
    c.settle("S0-2.1-eq1", "S0-2.1-eq2", verdict="true", holds="It is.", by=[cited("key", for_="it")])
    with pytest.raises(AssertionError, match="but 0 ran"):
        c.close()


def test_unknown_chapters_and_missing_books(tmp_path):
    with pytest.raises(ValueError, match="no claim is assigned to a chapter called 'nothing'"):
        Chapter("nothing", checks=1)
    with pytest.raises(ValueError, match="checks must be at least 1"):
        Chapter("norms", checks=0)
    (tmp_path / "book" / "claims.csv").unlink()
    with pytest.raises(FileNotFoundError, match="install the library from a clone"):
        chapter()


def test_names_of_checks_are_not_read_as_markup():
    assert executed("verified", "verified, a*b < $c$: tightness 1").text == r"verified, a\*b \< \$c\$: tightness 1"


def test_what_is_written_is_read(monkeypatch):
    c = chapter()
    monkeypatch.setattr(ledger, "_cells", 3)
    done = executed("derived", "text")
    c.settle(
        "S0-2.1-eq1", verdict="true if $n>1$", holds="It is.", assuming="$n>1$", by=[done, cited("key", for_="it")]
    )
    c.settle("S0-2.1-eq2", verdict="open", holds="Nobody knows.", by=[none_possible("no data")])
    table = c.close()
    stored = json.loads(json.dumps(table._repr_mimebundle_()))
    assert read_records(stored) == list(c.settled.values()) and read_closing(stored) == table.closing
    assert {e.cell for record in read_records(stored) for e in record.evidence} | {table.closing.cell} == {3}
    assert [record.kind for record in read_records(stored)] == ["true if", "open"]
    assert read_records({"text/plain": "1"}) == [] and read_closing({"text/plain": "1"}) is None


def test_evidence_knows_its_cell():
    shell = InteractiveShell.instance()
    try:
        for cell in (
            "1",
            "from smalltorch.engine.ledger import Chapter, cited, executed, none_possible",
            "c = Chapter('norms', checks=2)\nfirst = executed('derived', 'here')",
            "2",
            "second = executed('verified', 'two cells later')",
            "third, fourth = none_possible('three cells later'), cited('key', for_='it')",
            "c = Chapter('norms', checks=2)",  # opened anew, it counts anew
            "fifth = executed('verified', 'one cell later')",
        ):
            shell.run_cell(cell).raise_error()
        found = [shell.user_ns[name].cell for name in ("first", "second", "third", "fourth", "fifth")]
    finally:
        shell.events.unregister("pre_run_cell", ledger._count)
        InteractiveShell.clear_instance()
    assert found == [0, 2, 3, 3, 1]
