"""Evidence is the last thing that a derivation gets: one that fails at its end leaves none, and counts for nothing."""

import pytest
from sympy import Symbol

from smalltorch.engine import ledger
from smalltorch.engine.derive import Derivation
from smalltorch.engine.refusal import StepError

a, b = Symbol("a", real=True), Symbol("b", real=True)


@pytest.mark.parametrize(
    ("scope", "given"),
    [("all n", []), ("real a and b", [a > 1, a < 0])],
    ids=["a scope that says too much", "hypotheses without an instance"],
)
def test_what_fails_at_its_end_leaves_no_evidence(scope, given):
    before = list(ledger._executed)
    with pytest.raises(StepError):
        Derivation("two-squares", scope=scope, given=given).start(a * b).le(
            (a**2 + b**2) / 2, because="a square is left over", gap=(a - b) ** 2 / 2
        ).qed()
    assert ledger._executed == before


def test_an_unfinished_derivation_is_no_evidence():
    chain = Derivation("two-squares", scope="all n").start(a * b)
    chain.le((a**2 + b**2) / 2, because="a square is left over", gap=(a - b) ** 2 / 2)
    with pytest.raises(StepError):
        chain.qed()
    assert chain.evidence is None
    with pytest.raises(ValueError, match="a derivation is evidence only after qed"):
        ledger._evidence(chain)
