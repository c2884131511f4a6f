"""Words that are held: a number, a sign or a conclusion that is not what was computed is refused."""

import pytest
import torch
from sympy import IndexedBase, Sum, Symbol

from smalltorch.engine.derive import Derivation
from smalltorch.engine.printed import chains, numbers_in, relations_in
from smalltorch.engine.verify import VerificationError
from smalltorch.engine.words import held


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SmolLM2 has 30 layers of 9 heads, GPT-2 has 12.", ["30", "9", "12"]),
        ("Up to 262,144 tokens, or a million; twelve texts, two heads.", ["262,144", "million", "twelve"]),
        ("By (2) to (4), and case 3: 0, 1 and 2.", []),
        ("It is below 3. There are 4.", ["3", "4"]),
        (r"$\frac12+\tfrac34+\frac{12}5$, $4-\frac8{16}$, $x=1.5$", ["12", "16", "1.5"]),
        ("It falls to -3.2, or −0.5, by minus seven; from 3-5 to GPT-2.", ["-3.2", "−0.5", "minus seven", "3", "5"]),
        (r"$-12.5$, $x-12.5$, $(3,-12)$, $\le-\frac{63}{64}$, $\log-2$", ["-12.5", "12.5", "-12", "-63", "64"]),
        (r"$10^{-9}$, a factor $8$, $2^9$, $e^{-3}$, $x_{10}^2$, $\lVert A\rVert_2^2$, $10^{-2n}$", ["-9", "9"]),
        ("Twenty-five, two hundred and three, ten thousand", ["Twenty-five", "two hundred and three", "ten thousand"]),
        ("one of two, six-head, a hundred million, minus one", ["hundred million"]),
        ("`flat(7)` in [the 4th](chapter-11.ipynb) {cite}`wilf1970finite`", []),
        ("It rises by 5.30 per cent, to 11.", ["5.30", "11"]),
    ],
)
def test_numbers_that_are_not_trivial(text, found):
    assert [one.text for one in numbers_in(text)] == found


def test_a_formula_that_is_cut_is_no_quotation():
    with pytest.raises(ValueError, match="a formula is cut through"):
        numbers_in("the norm is $2n")


@pytest.mark.parametrize(
    ("quotation", "value"),
    [
        ("the norm is 88 per cent", 87.6),
        ("the norm is 1.89", 1.8949),
        ("after 262,144 tokens", 2**18),
        ("after a thousand tokens", 1024),
        ("Nineteen of them", 19.4),
        (r"it is $10^{16}$", 16.07),
        (r"it is below $10^{-9}$", -9.2),
        ("the slope is -3.2 per layer", -3.24),
        ("the slope is −3.2 per layer", -3.24),
        (r"the slope is $-12.5$", -12.54),
        ("there are twenty-five layers", 25.2),
        ("two hundred of them", 198),
        ("a hundred and twelve of them", 112),
        ("a million tokens", 2**20),
        ("two million tokens", 2**21),
    ],
)
def test_a_number_is_what_its_value_is_rounded_to(quotation, value):
    assert "1 number in 1 sentence" in repr(held(numbers=[(quotation, value)]))
    for other in (1.1 * value, 0.9 * value, -value, 0.045 * value + value):
        with pytest.raises(VerificationError, match="says"):
            held(numbers=[(quotation, other)])


@pytest.mark.parametrize("entry", [("from 3 to 4", 3), ("the norm is 2", 2), ("from 3", 3, 4)])
def test_each_number_has_its_value(entry):
    with pytest.raises(ValueError, match="that are not trivial"):
        held(numbers=[entry])


def test_inequalities_are_found_and_others_not():
    text = r"Let $A_{ij}\ge0$ for $i=1$ and $$\sum_{j<i}A_{ij}=1 .$$ Then $a\leftarrow b$, `x < y` and $a < b$."
    assert [text[start:end] for start, end in relations_in(text)] == [r"$A_{ij}\ge0$", "$a < b$"]
    assert chains(r"$a\;\ge\;\rho:=b\,c>d$") == [(["a", r"\rho", "b c", "d"], ["≥", "=", ">"])]


SMALL, LARGE = torch.tensor([1.0, 2.0]).double(), torch.tensor([1.0, 3.0]).double()


@pytest.mark.parametrize("turned, formula", [(r"$a\ge b$", r"$a\le b$"), (r"$c=d,\qquad a>b$", r"$c=d,\qquad a<b$")])
def test_a_turned_inequality_does_not_hold(turned, formula):
    sides = [SMALL, LARGE] if "=" not in formula else [4.0, 4.0, SMALL - 1, LARGE]
    held(relations=[(formula, *sides)])
    with pytest.raises(VerificationError, match="does not hold"):
        held(relations=[(turned, *sides)])


def test_what_holds_either_way_round_is_refused():
    with pytest.raises(ValueError, match="it could be turned"):
        held(relations=[(r"$a\le b$", 2.0, 2.0)])
    with pytest.raises(VerificationError, match="does not hold"):
        held(relations=[(r"$a<b$", 2.0, 2.0)])
    with pytest.raises(VerificationError, match="does not hold"):
        held(relations=[(r"$a=b<c$", 2.0, 2.1, 3.0)])


@pytest.mark.parametrize("formula", [r"$a\le b\le c$", "$a$"])
def test_each_side_has_its_value(formula):
    with pytest.raises(ValueError, match="has the sides"):
        held(relations=[(formula, 1.0, 2.0)])


n = Symbol("n", integer=True, positive=True)
i = Symbol("i", integer=True)
x = IndexedBase("x", nonnegative=True)


@pytest.fixture(scope="module")
def squares():
    """Σx ≤ Σ2x + n for numbers that are not negative."""
    derivation = Derivation("more-terms", scope="all n").start(Sum(x[i], (i, 1, n)))
    twice, gap = Sum(2 * x[i], (i, 1, n)) + n, Sum(x[i], (i, 1, n)) + n
    return derivation.le(twice, because="they are not negative", gap=gap).qed()


def test_a_formula_says_what_the_engine_concluded(squares):
    points = [{n: 2, x: torch.tensor([1.0, 5.0])}, {n: 3, x: torch.tensor([1.0, 5.0, 2.0])}]
    held(derived=[(r"$s\le2s+n$", squares, points, [6, 8], [14, 19])])
    held(derived=[(r"$2s+n\ge s$", squares, points, [14, 19], [6, 8])])  # turned, with its sides
    held(derived=[(r"$-n\le s$", squares, points, [-2, -3], [6, 8])])  # terms that changed sides
    with pytest.raises(VerificationError, match="more-terms concludes ≤$"):
        held(derived=[(r"$s<2s+n$", squares, points, [6, 8], [14, 19])])
    for formula, left, right in ((r"$s\le3s$", [6, 8], [18, 24]), (r"$s\ge2s+n$", [6, 8], [14, 19])):
        with pytest.raises(VerificationError, match="more-terms concludes|does not hold"):
            held(derived=[(formula, squares, points, left, right)])


def test_a_formula_that_agrees_at_one_point_only_is_refused(squares, unenforced):
    one, other = {n: 2, x: torch.tensor([1.0, 5.0])}, {n: 3, x: torch.tensor([1.0, 5.0, 2.0])}
    formula = r"$s\le2s+n^2-n$"  # n^2 - n is n at n = 2
    with pytest.raises(VerificationError, match="more-terms concludes"):
        held(derived=[(formula, squares, [one, other], [6, 8], [14, 22])])
    for points in (one, [one]):
        with pytest.raises(ValueError, match="is held at one point, where other formulas have the same value"):
            held(derived=[(formula, squares, points, [6], [14])])
    for points in ([one, one], [one, {n: 2, x: torch.tensor([3.0, 1.0])}]):
        with pytest.raises(ValueError, match="the points must differ in"):
            held(derived=[(formula, squares, points, [6, 6], [14, 14])])
    with pytest.raises(ValueError, match="values for other symbols than the first one"):
        held(derived=[(formula, squares, [one, {n: 3}], [6, 8], [14, 22])])
    with pytest.raises(ValueError, match="2 points, 1 left and 2 right sides"):
        held(derived=[(formula, squares, [one, other], [6], [14, 22])])


def test_a_point_is_not_one_where_powers_agree():
    r = Symbol("r", real=True)
    square = Derivation("square", scope="every real r").start(r**2).ge(0, because="a square").qed()
    with pytest.raises(ValueError, match="the points must differ in r, and not be 0, 1 and −1 only"):
        held(derived=[(r"$r^3\ge0$", square, [{r: 0.0}, {r: 1.0}], [0.0, 1.0], [0.0, 0.0])])
    with pytest.raises(VerificationError, match="square concludes"):
        held(derived=[(r"$r^3\ge0$", square, [{r: 0.0}, {r: 3.0}], [0.0, 27.0], [0.0, 0.0])])
    held(derived=[(r"$r^2\ge0$", square, [{r: 0.5}, {r: 3.0}], [0.25, 9.0], [0.0, 0.0])])


def test_what_is_typed_again_holds_nothing():
    found, share = 2.31, 88
    held(numbers=[("the loss is 2.31", found), ("88 per cent of the bound", share), ("three panels of 64", 3, 64)])
    held(numbers=[("from 0.5 to 2.31", 0.5, found)])  # a setting beside what came out
    with pytest.raises(ValueError, match="says 2.31, and its values are typed by hand"):
        held(numbers=[("the loss is 2.31", 2.31)])
    with pytest.raises(ValueError, match="says -2.31, and its values are typed by hand"):
        held(numbers=[("the slope is -2.31 with 3 heads", -2.31, 3)])
    with pytest.raises(ValueError, match="says 88, and"):
        held(numbers=[("88 per cent of the bound", 88)])
    with pytest.raises(ValueError, match=r"typed by hand; compute \\lVert A"):
        held(relations=[(r"$\lVert A\rVert\le\sqrt n$", 1.0, 2.0)])
    held(relations=[(r"$n\ge2$", 3, 2), (r"$\lVert A\rVert\le\sqrt n$", found, 3.0)])


@pytest.mark.parametrize(
    ("formula", "sides"),
    [
        (r"$x^3\le x$", (1.0, 2.0)),
        (r"$x^2\le x$", (SMALL, LARGE)),
        (r"$2n+1\le n$", (1.0, 3.0)),
        (r"$a<2a\cdot b=c,\qquad b<d$", (1.0, 5.0, 5.0, 2.0, 3.0)),
        (r"$p\ge3$", (4.0, 1.0)),
        (r"$\sigma<\sigma^2$", (2.0, 3.0)),
        (r"$a<b,\qquad ab<4$", (1.0, 2.0, 3.0, 4.0)),
    ],
)
def test_a_relation_is_held_by_its_own_numbers(formula, sides):
    with pytest.raises(VerificationError, match="is held against other numbers"):
        held(relations=[(formula, *sides)])


def test_a_decimal_stands_for_what_rounds_to_it():
    third = 1 / 3
    held(relations=[(r"$p\le\frac13=0.33$", third / 2, third, third)])
    with pytest.raises(VerificationError, match="is held against other numbers"):
        held(relations=[(r"$p\le\frac13=0.34$", third / 2, third, third)])


def test_what_is_no_plain_arithmetic_is_left_to_its_author():
    small, large = 2.0, 8.0
    held(
        relations=[(r"$x\le x^3$", small, large), (r"$f(x)\le x$", 1.0 * small, 2 * small), (r"$a^T<b$", small, large)]
    )
    held(relations=[(r"$n\le2^n$", torch.tensor([2, 3]), torch.tensor([4, 8]))])


def test_a_conclusion_that_could_be_turned_is_refused():
    r = Symbol("r", real=True)
    square = (
        Derivation("square", scope="every real r").start((r - 2) ** 2 * (r - 3) ** 2).ge(0, because="squares").qed()
    )
    with pytest.raises(ValueError, match="it could be turned"):
        held(derived=[(r"$f\ge0$", square, [{r: 2.0}, {r: 3.0}], [0.0, 0.0], [0.0, 0.0])])
