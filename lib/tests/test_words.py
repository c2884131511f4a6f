"""Words that are held: a number, a sign or a conclusion that is not what was computed is refused."""

import pytest
import torch
from sympy import IndexedBase, Sum, Symbol

from smalltorch.engine.derive import Derivation
from smalltorch.engine.verify import VerificationError
from smalltorch.engine.words import chains, held, numbers_in, relations_in


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SmolLM2 has 30 layers of 9 heads, GPT-2 has 12.", ["30", "9", "12"]),
        ("Up to 262,144 tokens, or a million; twelve texts, two heads.", ["262,144", "million", "twelve"]),
        ("By (2) to (4), and case 3: 0, 1 and 2.", []),
        ("It is below 3. There are 4.", ["3", "4"]),
        (r"$\frac12+\tfrac34+\frac{12}5$, $4-\frac8{16}$, $x=1.5$", ["12", "16", "1.5"]),
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
    ],
)
def test_a_number_is_what_its_value_is_rounded_to(quotation, value):
    assert "1 number in 1 sentence" in repr(held(numbers=[(quotation, value)]))
    for other in (1.1 * value, 0.9 * value):
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
    instance = {n: 2, x: torch.tensor([1.0, 5.0])}
    held(derived=[(r"$s\le2s+n$", squares, instance, 6, 14)])
    held(derived=[(r"$2s+n\ge s$", squares, instance, 14, 6)])  # turned, with its sides
    held(derived=[(r"$-n\le s$", squares, instance, -2, 6)])  # terms that changed sides
    with pytest.raises(VerificationError, match="more-terms concludes ≤$"):
        held(derived=[(r"$s<2s+n$", squares, instance, 6, 14)])
    for formula, left, right in ((r"$s\le3s$", 6, 18), (r"$s\ge2s+n$", 6, 14)):
        with pytest.raises(VerificationError, match="more-terms concludes|does not hold"):
            held(derived=[(formula, squares, instance, left, right)])
