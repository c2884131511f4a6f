"""The lemmas derive, and are used."""

import pytest
from sympy import Eq, Lambda, Sum, Symbol, exp, log, symbols

from smalltorch.engine import ledger, lemmas
from smalltorch.engine.derive import Derivation, StepError, for_all
from smalltorch.engine.lemmas import i, j, n, p, r, x

LEMMAS = [lemmas.variance, lemmas.pairs, lemmas.cauchy_schwarz, lemmas.jensen, lemmas.exp_above_its_tangent,
          lemmas.log_below_its_tangent]  # fmt: skip


@pytest.mark.parametrize("lemma", LEMMAS, ids=lambda lemma: lemma.__name__)
def test_a_lemma_derives_and_counts(lemma):
    before = len(ledger._executed)
    assert lemma().evidence.kind == "derived" and len(ledger._executed) == before + 1


def test_a_lemma_is_put_to_use():
    u, b = Symbol("u", real=True), Symbol("b", positive=True)
    tangents = [lemmas.exp_above_its_tangent().at({r: value}) for value in (u, -u)]
    d = Derivation("cosh", scope="every real u", given=tangents).start(b * exp(u) + b * exp(-u))
    d.ge(2 * b, because="two tangents", gap=b * (exp(u) - 1 - u) + b * (exp(-u) - 1 + u)).qed()


def test_its_hypotheses_are_asked_for():
    A = symbols("A", cls=type(p), nonnegative=True)
    row = lemmas.jensen().at({p: Lambda(j, A[i, j])}, i)
    with pytest.raises(StepError, match="needs"):
        Derivation("rows", scope="all n", given=[row])
    Derivation("rows", scope="all n", given=[for_all(i, Eq(Sum(A[i, j], (j, 1, n)), 1)), row])


def test_a_sign_is_asked_for():
    t = Symbol("t", real=True)
    lemma = lemmas.log_below_its_tangent().at({lemmas.a: t})
    with pytest.raises(StepError, match="needs t > 0"):
        Derivation("log", scope="t above 0", given=[lemma]).start(x[1])
    d = Derivation("log", scope="t above 0", given=[t > 0, lemma]).start(log(t))
    d.le(t, because="t - 1 is less", gap=t - log(t)).qed()
