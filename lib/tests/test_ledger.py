"""The record: what a verdict needs, what is counted, and what travels in the notebook."""

import copy
import json
import math
import pickle
from contextlib import suppress
from dataclasses import replace

import pytest
from IPython.core.interactiveshell import InteractiveShell
from sympy import Eq, Ge, IndexedBase, Sum, Symbol, symbols, true

from smalltorch import data
from smalltorch.engine import ledger
from smalltorch.engine.contrasts import Contrasts
from smalltorch.engine.derive import Derivation, WrittenProof, for_all, identity
from smalltorch.engine.ledger import Chapter, cited, executed, none_possible
from smalltorch.engine.refusal import StepError
from smalltorch.engine.schema import CHAPTER_MIME, RECORD_MIME, Evidence, read_closing, read_records
from smalltorch.engine.verify import at_most, computed, equal, fact, fails, measured
from smalltorch.engine.words import held

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
    (tmp_path / "book" / "references.bib").write_text("@book{hardy1920,\n}\n@misc { key, }\n", encoding="utf-8")
    monkeypatch.setattr(data, "BOOK", tmp_path / "book")
    for kept in ("_executed", "_stated", "_failed", "_begun", "_promised"):
        monkeypatch.setattr(ledger, kept, [])


def left(kind: str, text: str = "text", **shown) -> Evidence:
    """What a check of this kind leaves."""
    about = ("S0-2.1-eq1", "S0-2.1-eq2") if kind == "counterexample" else ()
    return ledger._left(kind, text, **{"shows": ("x = x",), "scope": "n = 6", "about": about, **shown})


def chapter(checks: int = 1) -> Chapter:
    return Chapter("norms", checks=checks)


def test_a_chapter_that_settles_its_claims():
    c = chapter(checks=2)
    derived, verified = left("derived", "derived for all n"), left("verified", "verified, tightness 1")
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
        "evidence": [
            {"kind": "derived", "text": "derived for all n", "cell": 0, "shows": ("x = x",), "scope": "n = 6"},
            {"kind": "verified", "text": "verified, tightness 1", "cell": 0, "shows": ("x = x",), "scope": "n = 6"},
        ],
    }
    assert second["verdict"] == "true if $n>1$" and second["assumptions"] == "$n>1$"
    assert '<span id="claim-s0-2-1-eq1"></span>' in shown["text/markdown"]


def test_bars_and_line_breaks_stay_within_their_cell():
    c = chapter()
    c.settle("S0-2.1-eq1", "S0-2.1-eq2", verdict="true", holds="Both,\nand $|x|$.", by=[left("derived", "done")])
    for line in c.close()._repr_mimebundle_()["text/markdown"].splitlines()[:4]:
        assert line.replace(r"\|", "").count("|") == 4


@pytest.mark.parametrize("verdict", ["true", "true if small"])
@pytest.mark.parametrize(
    "by",
    [
        lambda: [fact("a theorem", [("1", 1, 1)])],
        lambda: [fact("a theorem", [("1", 1, 1)]), fact("another", [("2", 2, 2)])],
        lambda: [fact("a theorem", [("1", 1, 1)]), left("verified")],
    ],
)
def test_a_plain_fact_does_not_make_true(by, verdict):
    c = chapter()
    with pytest.raises(ValueError, match="needs evidence of kind cited, computed, derived, measured, proved in text"):
        settle(c, *by(), verdict=verdict)
    settle(c, *by(), square(), verdict=verdict)
    settle(c, *by(), verdict="imprecise", ids=("S0-2.1-eq2",))


@pytest.mark.parametrize("at", ["all n", " every real t", "any matrix", "for all n", "Each token", None])
def test_no_computation_is_made_for_all(at, unenforced):
    with pytest.raises(ValueError, match="at must name the sizes, inputs or models that were computed"):
        computed("a theorem", [("1", 1, 1)], at=at)
    computed("a theorem", [("1", 1, 1)], at="all-MiniLM-L6-v2")


@pytest.mark.parametrize("verdict", ["true", "true if small", "false"])
@pytest.mark.parametrize("kind", ["verified", "none"])
def test_weak_evidence_decides_nothing(verdict, kind):
    c = chapter()
    evidence = none_possible("no data") if kind == "none" else left(kind, "text")
    with pytest.raises(ValueError, match="needs evidence of kind"):
        c.settle("S0-2.1-eq1", verdict=verdict, holds="It is.", by=[evidence])
    assert not c.settled


@pytest.mark.parametrize(
    "verdict, kind", [("true", "counterexample"), ("true if small", "counterexample"), ("imprecise", "none")]
)
def test_evidence_of_the_wrong_kind(verdict, kind):
    c = chapter()
    evidence = left(kind, "text") if kind != "none" else None
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
    c.settle("S0-2.1-eq1", verdict=verdict, holds="It is.", by=[left(kind, "text")])
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
    earlier = left("derived", "before the chapter began")
    c = chapter()
    left("derived", "of this chapter")
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
        c.settle("S0-2.1-eq1", verdict=verdict, holds="It is.", by=[left("derived", "text")])


def test_claims_must_be_this_chapter_s_and_settled_once():
    c = chapter()
    done = left("derived", "text")
    for claim in ("S9-other", "S0-none"):
        with pytest.raises(ValueError, match="not a claim of chapter 'norms'"):
            c.settle(claim, verdict="true", holds="It is.", by=[done])
    c.settle("S0-2.1-eq1", verdict="true", holds="It is.", by=[done])
    with pytest.raises(ValueError, match="settled twice"):
        c.settle("S0-2.1-eq1", verdict="imprecise", holds="It is not.", by=[done])


def test_something_must_be_said_of_something():
    c = chapter()
    done = left("derived", "text")
    for ids, holds in (((), "It is."), (("S0-2.1-eq1",), " ")):
        with pytest.raises(ValueError, match="got nothing"):
            c.settle(*ids, verdict="true", holds=holds, by=[done])


def test_close_demands_all_claims_and_all_checks():
    c = chapter(checks=2)
    done = left("derived", "text")
    c.settle("S0-2.1-eq1", verdict="true", holds="It is.", by=[done])
    with pytest.raises(AssertionError, match="without a record: S0-2.1-eq2"):
        c.close()
    c.settle("S0-2.1-eq2", verdict="true", holds="It is.", by=[done])
    with pytest.raises(AssertionError, match="declares 2 checks, but 1 ran"):
        c.close()
    left("verified", "text")
    assert c.close().closing.executed == 2


def test_a_chapter_counts_from_its_beginning():
    left("derived", "of another chapter")
    c = chapter()
    c.settle("S0-2.1-eq1", "S0-2.1-eq2", verdict="true", holds="It is.", by=[cited("key", for_="it")])
    with pytest.raises(AssertionError, match="but 0 ran"):
        c.close()


def test_unknown_chapters_and_missing_books(tmp_path):
    with pytest.raises(ValueError, match="no claim is assigned to a chapter called 'nothing'"):
        Chapter("nothing", checks=1)
    with pytest.raises(ValueError, match="at least 1, got 0"):
        Chapter("norms", checks=0)
    (tmp_path / "book" / "claims.csv").unlink()
    with pytest.raises(FileNotFoundError, match="install the library from a clone"):
        chapter()


def test_names_of_checks_are_not_read_as_markup():
    assert left("verified", "verified, a*b < $c$: tightness 1").text == r"verified, a\*b \< \$c\$: tightness 1"


def test_what_is_written_is_read(monkeypatch):
    c = chapter()
    monkeypatch.setattr(ledger, "_cells", 3)
    done = left("derived", "text")
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
            "from smalltorch.engine.ledger import Chapter, _left as left, cited, none_possible",
            "c = Chapter('norms', checks=2)\nfirst = left('derived', 'here')",
            "2",
            "second = left('verified', 'two cells later')",
            "third, fourth = none_possible('three cells later'), cited('key', for_='it')",
            "c = Chapter('norms', checks=2)",  # opened anew, it counts anew
            "fifth = left('verified', 'one cell later')",
        ):
            shell.run_cell(cell).raise_error()
        found = [shell.user_ns[name].cell for name in ("first", "second", "third", "fourth", "fifth")]
    finally:
        shell.events.unregister("pre_run_cell", ledger._count)
        InteractiveShell.clear_instance()
    assert found == [0, 2, 3, 3, 1]


# -- what the evidence says --------------------------------------------------------------------------------------------

r, t = symbols("r t", real=True)
n = Symbol("n", integer=True, positive=True)
i, j = symbols("i j", integer=True)
A, x = IndexedBase("A", nonnegative=True), IndexedBase("x", real=True)
ROWS = for_all(i, Eq(Sum(A[i, j], (j, 1, n)), 1))
COUNTED = Eq(Sum(A[i, j], (i, 1, n), (j, 1, n)), n)


def square(name: str = "square") -> Derivation:
    return identity(name, (r + t) ** 2, r**2 + 2 * r * t + t**2, "expand", scope="all real r and t")


def counted() -> Derivation:
    """Under a hypothesis."""
    return identity("counted", COUNTED.lhs, COUNTED.rhs, "each row sums to 1", scope="all n", given=[ROWS])


def numbers(z):
    return z.square().sum(-1)


def test_a_derivation_says_what_it_shows():
    evidence = counted().evidence
    assert evidence.shows == ("Sum(A[i, j], (i, 1, n), (j, 1, n)) = n, where A ≥ 0; n integer and > 0",)
    assert evidence.given == ("Sum(A[i, j], (j, 1, n)) = 1 for all i",)
    assert (evidence.scope, evidence.by) == ("all n; A ≥ 0", ("normal form",))
    assert evidence.instance.startswith("n = 2, A[") and evidence.instance.endswith(" more")
    assert evidence.label == "proved for all n; A ≥ 0, with 1 hypothesis"
    plain = square().evidence
    assert (plain.given, plain.instance, plain.label) == ((), "", "proved for real r, t")
    assert plain.shows == ("(r + t)**2 = r**2 + 2*r*t + t**2, where r, t real",)


def test_an_index_with_a_range_is_part_of_what_is_shown():
    left_, right = (x[i] + 1) ** 2, x[i] ** 2 + 2 * x[i] + 1
    d = identity("twice", left_, right, "expand", scope="every i", ranges={i: (1, n)})
    assert d.evidence.shows == ("(x[i] + 1)**2 = x[i]**2 + 2*x[i] + 1, where i from 1 to n; x real",)


def test_a_written_proof_says_what_was_checked_and_that_the_rest_is_words():
    proof = WrittenProof("a-proof", square(), counted(), of="norms-first")
    evidence = proof.evidence
    assert evidence.text == "proved in text, 2 identities checked and the rest in words: a proof"
    assert evidence.shows == (*square().evidence.shows, *counted().evidence.shows)
    assert evidence.given == counted().evidence.given and evidence.about == ("norms-first",)
    assert evidence.label == "proved in words"
    assert WrittenProof("one", square(), of="x").checked == "proved in text, 1 identity checked and the rest in words"


def test_numeric_checks_say_what_they_show():
    done = computed("facts", [("1 + 1", 2, 2), ("half", float("0.5"), 0.5)], at="n = 6").evidence
    assert (done.shows, done.scope, done.label) == (("1 + 1 = 2", "half = 0.5000"), "n = 6", "computed at n = 6")
    assert computed("facts", [("1 + 1", 2, 2)]).evidence.label == "computed"
    assert fact("facts", [("1 + 1", 2, 2)]).evidence.label == "fact"
    effect = measured("an effect", [1.0, 1.1, 1.2, 0.9, 1.0], above=0.5, over="texts of SmolLM2").evidence
    assert effect.shows == ("an effect: above 0.5",) and effect.label == "measured on 5 texts of SmolLM2"
    below = at_most("x² ≤ 2x²", numbers, lambda z: 2 * numbers(z), domain=lambda z: z, shapes=[(2,)]).evidence
    assert below.shows == ("x² ≤ 2x²",) and below.label == "verified"
    assert equal("x² = x²", numbers, lambda z: numbers(z), domain=lambda z: z, shapes=[(2,)]).evidence.shows == (
        "x² = x²",
    )
    assert "of size 2, not attacked; allowance 1e-12" in below.text and below.scope.endswith("inputs, of size 2")
    broken = fails(
        "x² ≤ 0", numbers, lambda z: 0 * z[:, 0], domain=lambda z: z, shapes=[(2,)], against="C1 C2", hypothesis=None
    ).evidence
    assert broken.about == ("C1", "C2") and broken.shows == ("x² ≤ 0",)
    source = cited("hardy1920", "key", for_="the constant")
    assert source.about == ("hardy1920", "key") and source.label == "cited"


# -- families of mistakes: each is refused, with the reason ------------------------------------------------------------


def settle(c: Chapter, *by, verdict="true", ids=("S0-2.1-eq1",), **more) -> None:
    c.settle(*ids, verdict=verdict, holds="It is.", by=by, **more)


@pytest.mark.parametrize("verdict", ["true", "true if $n>1$", "imprecise", "false", "open"])
@pytest.mark.parametrize("assuming", ["", "  "])
@pytest.mark.parametrize(
    "made",
    [
        counted,
        lambda: identity("x", x[1] + x[2], 3, "given", scope="x", given=[Eq(x[1], 1), Eq(x[2], 2)]),
        lambda: Derivation("y", scope="y", given=[Ge(r, 2)]).start(r).ge(1, because="given", gap=r - 1).qed(),
        lambda: identity("lemma", COUNTED.lhs + 1, n + 1, "by the lemma", scope="all n", given=[ROWS, counted()]),
        lambda: WrittenProof("a proof", counted(), of="norms-first"),
        lambda: WrittenProof("a proof", square(), counted(), of="norms-first"),
    ],
)
def test_hypotheses_reach_the_record(made, assuming, verdict):
    c = chapter()
    done = made()
    with pytest.raises(ValueError, match="^record of S0-2.1-eq1: it has no assuming=…, and .* under a hypothesis: "):
        settle(c, done, verdict=verdict, assuming=assuming)
    with pytest.raises(ValueError, match="assuming"):
        settle(c, square(), done, verdict=verdict)  # beside evidence that has none
    settle(c, done, verdict=verdict, assuming="rows sum to 1")


KINDS = ("derived", "proved in text", "fact", "counterexample", "verified", "measured", "computed", "cited", "none")


@pytest.mark.parametrize("kind", KINDS)
def test_evidence_cannot_be_made_by_hand(kind):
    c = chapter()
    square()
    with pytest.raises(ValueError, match="made by the checks of derive and verify only"):
        executed(kind, "derived for all n: fermat")
    by_hand = Evidence(kind, "by hand", shows=("it",), scope="all n", about=("S0-2.1-eq1", "key"))
    with pytest.raises(ValueError, match="no check of this chapter gave the evidence 'by hand'"):
        settle(c, by_hand, verdict="open")
    with pytest.raises(ValueError, match="no check"):
        settle(c, square(), by_hand)


@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e)), replace, lambda e: replace(e, given=())],
)
def test_a_copy_is_no_evidence(copied):
    c = chapter()
    with pytest.raises(ValueError, match="no check of this chapter"):
        settle(c, copied(square().evidence))


def test_evidence_belongs_to_the_chapter_that_is_open():
    first = chapter()
    proof, source = square(), cited("key", for_="it")
    second = chapter()
    for foreign in (proof, source):
        with pytest.raises(ValueError, match="no check of this chapter"):
            settle(second, foreign)
    with pytest.raises(ValueError, match="chapter 'norms' is closed"):  # made since, but for the other
        settle(first, square())
    with pytest.raises(ValueError, match="chapter 'norms' is closed"):
        first.close()
    mine = square()
    settle(second, mine, ids=("S0-2.1-eq1", "S0-2.1-eq2"))
    second.close()
    for late in (lambda: settle(second, mine), second.close):
        with pytest.raises(ValueError, match="is closed"):
            late()
    third = chapter()
    with pytest.raises(ValueError, match="no check of this chapter"):
        settle(third, mine)


def test_records_are_made_by_settle_only():
    c = chapter()
    settle(c, square())
    c.settled["S0-2.1-eq2"] = c.settled["S0-2.1-eq1"]
    with pytest.raises(AssertionError, match="without a record: S0-2.1-eq2"):
        c.close()


@pytest.mark.parametrize("verdict", ["true", "true if $n>1$"])
@pytest.mark.parametrize(
    "by",
    [
        lambda: [computed("c", [("1", 1, 1)])],
        lambda: [computed("c", [("1", 1, 1)], at="  ")],
        lambda: [computed("c", [("1", 1, 1)]), computed("d", [("1", 1, 1)])],
        lambda: [computed("c", [("1", 1, 1)], at="n = 6"), computed("d", [("1", 1, 1)])],
        lambda: [computed("c", [("1", 1, 1)]), left("verified")],
        lambda: [left("verified"), computed("c", [("1", float("1"), 1.0)])],
        lambda: [computed("c", [("1", 1, 1)]), none_possible("there is none")],
        lambda: [computed("c", [(f"{k}", k, k) for k in range(9)])],
    ],
)
def test_what_is_called_true_does_not_rest_on_a_computation_of_no_size(by, verdict):
    c = chapter()
    with pytest.raises(ValueError, match="does not say for which sizes, inputs or models: at=…"):
        settle(c, *by(), verdict=verdict)


def test_a_computation_that_says_for_which_sizes_may_carry_what_it_says():
    c = chapter()
    settle(c, computed("c", [("1", 1, 1)], at="n = 6"))
    settle(c, computed("d", [("1", 1, 1)]), square(), ids=("S0-2.1-eq2",))  # it carries nothing here


@pytest.mark.parametrize(
    ("keys", "for_", "complaint"),
    [
        (("no-such-key",), "it", "book/references.bib, got no-such-key"),
        (("key", "hardy1921"), "it", "got hardy1921"),
        (("Key",), "it", "got Key"),
        (("key ",), "it", "got key "),
        (("",), "it", "entries of"),
        (("key,hardy1920",), "it", "got key,hardy1920"),
        ((3,), "it", "got 3"),
        (("key",), "", "got nothing"),
        (("key",), " ", "got nothing"),
        (("key",), None, "got nothing"),
        ((), "it", "at least one entry"),
    ],
)
def test_what_is_cited_is_in_the_bibliography_and_was_read_for_something(keys, for_, complaint, unenforced):
    chapter()
    with pytest.raises(ValueError, match=complaint):
        cited(*keys, for_=for_)
    with pytest.raises(ValueError, match="got nothing"):
        cited("key")


@pytest.mark.parametrize(
    ("against", "ids", "verdict", "complaint"),
    [
        ("", ("S0-2.1-eq1",), "false", "must name the claim S0-2.1-eq1, got none"),
        (" ", ("S0-2.1-eq1",), "false", "got none"),
        ("S0-2.1-eq2", ("S0-2.1-eq1",), "false", "must name the claim S0-2.1-eq1, got S0-2.1-eq2"),
        ("S0-2.1-eq1", ("S0-2.1-eq1", "S0-2.1-eq2"), "false", "must name the claim S0-2.1-eq2"),
        ("S9-other", ("S0-2.1-eq1",), "imprecise", "got S9-other"),
        ("S0-2.1-eq11", ("S0-2.1-eq1",), "open", "got S0-2.1-eq11"),
        ("S0-2.1-eq1,S0-2.1-eq2", ("S0-2.1-eq2",), "false", "must name the claim S0-2.1-eq2"),
        ("s0-2.1-eq1", ("S0-2.1-eq1",), "true if $n>1$", "got s0-2.1-eq1"),
        ("S0-2.1-eq1", ("S0-2.1-eq1",), "true", "refutes the claim"),
    ],
)
def test_a_counterexample_refutes_the_claim_that_it_was_made_for(against, ids, verdict, complaint):
    c = chapter()
    broken = fails(
        "x² ≤ 0", numbers, lambda z: 0 * z[:, 0], domain=lambda z: z, shapes=[(2,)], against=against, hypothesis=None
    )
    by = [broken, square()] if verdict.startswith("true") else [broken]
    with pytest.raises(ValueError, match=complaint):
        settle(c, *by, verdict=verdict, ids=ids)
    assert not c.settled


def test_a_counterexample_against_two_claims_settles_both():
    c, both = chapter(), "S0-2.1-eq1 S0-2.1-eq2"
    broken = fails(
        "x² ≤ 0", numbers, lambda z: 0 * z[:, 0], domain=lambda z: z, shapes=[(2,)], against=both, hypothesis=None
    )
    settle(c, broken, verdict="false", ids=tuple(both.split()))


def of_two(wrong) -> dict:
    return {"domain": lambda z: z, "shapes": [(2,)], **wrong}


@pytest.mark.parametrize(
    "attempt",
    [
        lambda: at_most("‖x‖² ≤ 1", numbers, lambda z: 0 * z[:, 0] + 1, **of_two({})),
        lambda: at_most("float32", lambda z: z.float()[:, 0], numbers, **of_two({})),
        lambda: fails("0 ≤ 1", lambda z: 0 * z[:, 0], lambda z: 0 * z[:, 0] + 1, **of_two({})),
        lambda: equal("x = 2x", lambda z: z, lambda z: 2 * z, **of_two({})),
        lambda: measured("m", [1.0, 1.1, 0.9, 1.0, 1.2], above=2),
        lambda: measured("m", [1.0, 1.0], above=0),
        lambda: computed("c", [("1", 1, 2)]),
        lambda: fact("c", [("1", 1, 2)]),
        lambda: Contrasts("seeds", {"m": {"above": 2}}).measured("m", [1.0, 1.1, 0.9, 1.0, 1.2]),
        lambda: Contrasts("seeds", {"m": {"above": 2}}).measured("other", [1.0, 1.1, 0.9, 1.0, 1.2]),
        lambda: Contrasts("seeds", {"m": {"above": 1.234567}}),
        lambda: held(numbers=[("it is 3.5", math.pi)]),
        lambda: held(numbers=[("it is 3.14", 3.14)]),
        lambda: held(relations=[(r"$a<b$", math.pi, 3.0)]),
        lambda: identity("wrong", r + t, r - t, "no", scope="all"),
        lambda: identity("nothing", r, r, "no", scope="all"),
        lambda: Derivation("wrong", scope="all").start(r).le(t, because="no"),
        lambda: Derivation("wrong", scope="all").start(r / (r - r)),
        lambda: Derivation("none", scope="all", given=[Ge(r, t + 1), Ge(t, r)]).start(r).ge(t, because="").qed(),
        lambda: Derivation("unfinished", scope="all").start(r).at({}),
        lambda: Derivation("given", scope="all", given=[true]),
        lambda: WrittenProof("no identity", of="norms-first"),
        lambda: WrittenProof("no label", square()),
    ],
)
def test_a_check_that_did_not_pass_is_not_forgotten(attempt):
    c = chapter()
    with pytest.raises((AssertionError, ValueError)) as passed_over:
        attempt()
    settle(c, square(), ids=("S0-2.1-eq1", "S0-2.1-eq2"))
    with pytest.raises(AssertionError) as refused:
        c.close()
    first = str(passed_over.value).splitlines()[0]
    assert f"a check did not pass: {type(passed_over.value).__name__}: {first}" in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "begun",
    [
        lambda: Derivation("left-open", scope="all"),
        lambda: Derivation("left-open", scope="all").start(r**2),
        lambda: Derivation("left-open", scope="all").start(r**2).ge(0, because="a square"),
    ],
)
def test_a_derivation_is_finished(begun):
    c = chapter()
    begun()
    settle(c, square(), ids=("S0-2.1-eq1", "S0-2.1-eq2"))
    with pytest.raises(AssertionError, match=r"never finished by qed\(\): left-open; when that is mended"):
        c.close()


@pytest.mark.parametrize("opened_before", [True, False])
@pytest.mark.parametrize(
    ("left_behind", "complaint"),
    [
        (lambda: identity("wrong", r, t, "no", scope="all"), "a check did not pass: StepError"),
        (lambda: held(numbers=[("it is 3.5", math.pi)]), "a check did not pass: VerificationError"),
        (lambda: Derivation("left-open", scope="all").start(r**2), "never finished by qed"),
        (lambda: Contrasts("seeds", {"growth": {"above": 2}}), "stated, but not measured: growth"),
    ],
)
def test_a_chapter_that_is_opened_anew_does_not_forget(left_behind, complaint, opened_before):
    if opened_before:
        chapter()
    with suppress(StepError, AssertionError):
        left_behind()
    c = chapter()
    settle(c, square(), ids=("S0-2.1-eq1", "S0-2.1-eq2"))
    with pytest.raises(AssertionError, match=f"{complaint}.*; when that is mended, restart the kernel"):
        c.close()


def test_each_contrast_that_was_stated_is_measured():
    c = chapter()
    stated = Contrasts("seeds", {"growth": {"above": 0.5}, "share": {"above": 0.1}})
    stated.measured("growth", [1.0, 1.1, 0.9, 1.0, 1.2])
    settle(c, square(), ids=("S0-2.1-eq1", "S0-2.1-eq2"))
    with pytest.raises(AssertionError, match="chapter 'norms': stated, but not measured: share"):
        c.close()
    stated.measured("share", [1.0, 1.1, 0.9, 1.0, 1.2])
    assert c.close().closing.executed == 3


@pytest.mark.parametrize("of", ["", " ", "the riemann hypothesis", "Norms", "norms_first", None, 3, "norms-"])
def test_a_written_proof_names_its_theorem(of, unenforced):
    with pytest.raises(StepError, match="must be the label of the theorem that is proved"):
        WrittenProof("the riemann hypothesis", square(), of=of)
    with pytest.raises(StepError, match="must be the label"):
        WrittenProof("the riemann hypothesis", square())


@pytest.mark.parametrize(
    "identities",
    [
        lambda: [],
        lambda: [d := square(), d],
        lambda: [Derivation("open", scope="all").start(r)],
        lambda: [square(), Derivation("open", scope="all").start(r)],
        lambda: ["trust me"],
        lambda: [None],
        lambda: [square().at({})],
        lambda: [computed("c", [("1", 1, 1)])],
        lambda: [[square()]],
        lambda: [Eq(r, r, evaluate=False)],
    ],
)
def test_a_written_proof_needs_finished_derivations(identities, unenforced):
    with pytest.raises(StepError, match="needs finished derivations of its key identities, each once"):
        WrittenProof("a proof", *identities(), of="norms-first")


@pytest.mark.parametrize(
    "wrong",
    [
        {"by": None},
        {"by": 3},
        {"by": "trust me"},
        {"by": []},
        {"by": [None]},
        {"by": [[]]},
        {"verdict": None},
        {"verdict": True},
        {"holds": None},
        {"assuming": None},
        {"ids": [["S0-2.1-eq1", "S0-2.1-eq2"]]},
        {"ids": [None]},
        {"ids": ["S0-2.1-eq1", "S0-2.1-eq1"]},
    ],
)
def test_what_settle_is_given_is_looked_at(wrong, unenforced):
    c = chapter()
    given = {"verdict": "true", "holds": "It is.", "by": [square()], "ids": ["S0-2.1-eq1"], **wrong}
    with pytest.raises(ValueError):
        c.settle(*given.pop("ids"), **given)
    assert not c.settled


def test_an_open_question_has_a_reason(unenforced):
    for reason in ("", " ", None):
        with pytest.raises(ValueError, match="reason must say"):
            none_possible(reason)


def test_a_chapter_without_claims_has_a_record_of_its_checks(tmp_path):
    (tmp_path / "notebooks" / "machine").mkdir(parents=True)
    (tmp_path / "notebooks" / "machine" / "overview.ipynb").write_text("{}", encoding="utf-8")
    c = Chapter("overview", checks=1)
    with pytest.raises(AssertionError, match="declares 1 checks, but 0 ran"):
        c.close()
    square()
    shown = c.close()._repr_mimebundle_()
    assert shown["text/markdown"] == "0 claims settled, 1 checks executed, 1 declared."
    assert read_records(shown) == [] and read_closing(shown).claims == ()
