"""The normal form: identities that it must prove, falsehoods that it must not, and a fuzz test at explicit sizes."""

from random import Random

import pytest
from sympy import (
    Derivative,
    Dummy,
    Eq,
    Function,
    IndexedBase,
    Integral,
    KroneckerDelta,
    Mul,
    Pow,
    Product,
    Rational,
    S,
    Sum,
    Symbol,
    exp,
    expand,
    log,
    symbols,
)

from smalltorch.engine.binders import rename_bound, write_out
from smalltorch.engine.sums import Given, SumRule, match, normal_form, peel, sum_rule

n, m = symbols("n m", integer=True, positive=True)
i, j, k, l = symbols("i j k l", integer=True)  # noqa: E741
x, y = IndexedBase("x", real=True), IndexedBase("y", real=True)
A, p = IndexedBase("A", nonnegative=True), IndexedBase("p", nonnegative=True)
I, J, K = (i, 1, n), (j, 1, n), (k, 1, n)  # noqa: E741
rows = SumRule(A[i, j], j, (S(1), n), S(1), (i,))
distribution = SumRule(p[j], j, (S(1), n), S(1))
P, Q = Function("P", commutative=False), Function("Q", commutative=False)
T = Symbol("T", commutative=False)
N = Symbol("N", integer=True, nonnegative=True)
a, b = symbols("a b", positive=True)
r, t = symbols("r t", real=True)


def same(left, right, rules=(), ranges=None) -> bool:
    return normal_form(left - right, rules, ranges) == 0


# -- identities, for all n ---------------------------------------------------------------------------------------------


def test_lagrange():
    left = Sum(x[i] ** 2, I) * Sum(y[i] ** 2, I) - Sum(x[i] * y[i], I) ** 2
    assert same(left, Sum((x[i] * y[j] - x[j] * y[i]) ** 2, I, J) / 2)


def test_jensen_for_row_stochastic_matrices():
    gap = Sum(A[i, j] * A[i, k] * (x[j] - x[k]) ** 2, I, J, K) / 2
    left = Sum(A[i, j] * x[j] ** 2, J, I) - Sum(Sum(A[i, j] * x[j], J) ** 2, I)
    assert same(left, gap, [rows])
    assert not same(left, gap)  # without the rule it is not true


def test_exchange_of_sums_and_renaming():
    assert same(Sum(Sum(A[i, j], I), J), Sum(A[l, k], (k, 1, n), (l, 1, n)))
    assert same(Sum(A[i, j] * A[j, k] * A[k, i], I, J, K), Sum(A[j, i] * A[k, j] * A[i, k], I, J, K))


def test_deltas():
    assert same(Sum(KroneckerDelta(i, j) * x[i] * y[j], I, J), Sum(x[k] * y[k], K))
    assert same(Sum(KroneckerDelta(i, j) * x[j], J), x[i], ranges={i: (S(1), n)})
    assert not same(Sum(KroneckerDelta(i, j) * x[j], J), x[i])  # i may lie outside


def test_counting():
    assert same(Sum(3, I, (j, 1, m)), 3 * n * m)
    assert same(Sum(x[i], I, (j, 0, m)), (m + 1) * Sum(x[i], I))


def test_denominators_stay_whole():
    Z = Sum(exp(x[k]), K)
    assert same(Sum(exp(x[i]) / Z * x[i], I), Sum(exp(x[j]) * x[j], J) / Sum(exp(x[l]), (l, 1, n)))
    assert normal_form(Sum(1 / (1 + x[i]), I)) != 0


def test_factors_that_do_not_commute():
    assert same(Sum(P(i), I) * T * Sum(Q(i), I), Sum(P(i) * T * Q(j), J, I))
    assert same(P(k) * Sum(x[i] * Q(i), I) * T, Sum(x[j] * P(k) * Q(j) * T, J))
    assert same((P(1) + T) ** 2, P(1) ** 2 + P(1) * T + T * P(1) + T**2)
    assert same(Sum(KroneckerDelta(i, j) * P(i) * T * Q(j), I, J), Sum(P(i) * T * Q(i), I))
    total = SumRule(P(j), j, (S(1), n), T)
    assert same(Sum(Q(1) * P(i) * Q(2), I), Q(1) * T * Q(2), [total])
    assert not same(Sum(Q(1) * P(i) * Q(2), I), T * Q(1) * Q(2), [total])


def test_a_rule_for_a_product_keeps_the_order():
    """Σ P(i) Q(i) = T says nothing of Q(i) P(i), which is the same only of numbers."""
    rule = SumRule(P(j) * Q(j), j, (S(1), n), T)
    assert not same(Sum(Q(i) * P(i), I), T, [rule]) and not same(Sum(P(i) * T * Q(i), I), T**2, [rule])
    pairs = SumRule(x[j] * y[j], j, (S(1), n), r)
    assert same(Sum(y[i] * x[i] * A[k, k], I), r * A[k, k], [pairs])
    assert not same(Sum(y[i] * x[i] * A[i, i], I), r * Sum(A[i, i], I), [pairs])


def test_an_index_below_two_others_is_not_counted():
    """Σ over i and l of the number of j up to both is Σ min(i, l), and not Σ i or Σ l."""
    below_both = Sum(KroneckerDelta(j, k), (k, 1, l), (l, 1, n), (j, 1, i), (i, 1, n))
    assert not same(below_both, n * Sum(i, I))


def test_a_range_that_reaches_out_is_not_counted():
    """Σ over i from 3 and j ≤ i: for j = 1 there are n − 2 of i, not n."""
    m = n + 3
    assert not same(Sum(x[j], (j, 1, i), (i, 3, m)), Sum((m - j + 1) * x[j], (j, 1, m)))
    assert same(Sum(x[j], (j, 1, i), (i, 1, m)), Sum((m - j + 1) * x[j], (j, 1, m)))


# -- falsehoods --------------------------------------------------------------------------------------------------------

FALSE = {
    "the trace is not the sum": (Sum(A[i, i], I), Sum(A[i, j], I, J)),
    "a free index named like a canonical one": (Sum(A[i, Symbol("k0", integer=True)], I), Sum(A[i, i], I)),
    "a free index named like a bound one": (x[j] * Sum(x[j], J), Sum(x[j] ** 2, J)),
    "a name bound twice": (Sum(x[j] * Sum(y[j], J), J), Sum(x[j] * y[j], J)),
    "a square of a sum": (Sum(x[i], I) ** 2, Sum(x[i] ** 2, I)),
    "transposition": (Sum(A[i, j] * x[i], I, J), Sum(A[i, j] * x[j], I, J)),
    "another range": (Sum(x[i], I), Sum(x[i], (i, 1, m))),
    "a delta with another range": (Sum(KroneckerDelta(i, j) * x[j], J, (i, 1, m)), Sum(x[j], J)),
    "a delta with a range of its own": (Sum(KroneckerDelta(i, j, (1, 3)) * x[j], J, I), Sum(x[j], J)),
    "a shifted delta": (Sum(KroneckerDelta(i + 1, j) * x[j], I, J), Sum(x[j], J)),
    "an order of matrices": (Sum(P(i) * Q(j), I, J), Sum(Q(j) * P(i), I, J)),
    "an order among numbers": (Sum(x[i] * P(i) * T, I), Sum(x[i] * T * P(i), I)),
    "an order in a square": ((P(1) * Q(1)) ** 2, P(1) ** 2 * Q(1) ** 2),
    "a function of matrices": (exp(P(1)) * T, T * exp(P(1))),
    "a derivative": (Derivative(Function("f")(Symbol("t")), Symbol("t")), S(0)),
}


@pytest.mark.parametrize("left, right", FALSE.values(), ids=FALSE)
def test_falsehoods(left, right):
    assert not same(left, right, [rows, distribution])


def test_a_delta_does_not_capture():
    """Σ_j δ(j, k) / Σ_k exp(x_j y_k), with k outside: the inner k is another one."""
    left = Sum(KroneckerDelta(j, k) / Sum(exp(x[j] * y[k]), K), J)
    assert not same(left, 1 / Sum(exp(x[k] * y[k]), K), ranges={k: (S(1), n)})
    assert same(left, 1 / Sum(exp(x[k] * y[l]), (l, 1, n)), ranges={k: (S(1), n)})
    product = Sum(KroneckerDelta(j, k) * Product(x[j] + y[k], K), J)
    assert not same(product, Product(x[k] + y[k], K), ranges={k: (S(1), n)})


def test_the_normal_form_reaches_into_atoms():
    assert same(exp(Sum(x[i] + y[i], I)), exp(Sum(y[j], J) + Sum(x[k], K)))
    assert same(1 / Sum(exp(x[i] + r), I), exp(-r) / Sum(exp(x[j]), J))
    assert same(log(a * b), log(a) + log(b)) and not same(log(r * t), log(r) + log(t))
    assert not same(exp(Sum(x[i], I)), Sum(exp(x[i]), I)) and not same(exp(Sum(x[i] * y[i], I)), exp(Sum(x[i], I)))


def test_a_last_term_is_split_off():
    N = Symbol("N", integer=True, positive=True)
    for sum_, after in (
        (Sum(x[i], (i, 1, N)), Sum(x[i], (i, 1, N)) + x[N + 1]),
        (Sum(x[i], (i, 0, N - 1)), Sum(x[i], (i, 0, N - 1)) + x[N]),
        (N * Sum(x[i], I), (N + 1) * Sum(x[i], I)),
        (Sum(x[i], (i, 1, 2 * N)), Sum(x[i], (i, 1, 2 * N)) + x[2 * N + 1] + x[2 * N + 2]),
        (Sum(A[i, j], (j, 1, i), (i, 1, N)), Sum(A[i, j], (j, 1, i), (i, 1, N)) + Sum(A[N + 1, j], (j, 1, N + 1))),
    ):
        assert same(peel(sum_, N), after)
    for sum_ in (
        Sum(x[i], (i, 1, N**2)),
        Sum(x[i], (i, N, N + 1)),
        Sum(x[i], (i, 1, N), (j, 1, N)),
        Sum(x[i], (i, N, 9), (j, 1, N)),
    ):
        with pytest.raises(ValueError, match="cannot split"):
            peel(sum_, N)


def test_sums_are_written_out():
    assert write_out(Sum(A[i, j], (j, 1, i), (i, 1, 2))) == A[1, 1] + A[2, 1] + A[2, 2]
    assert write_out(Product(x[i], (i, 1, 2)) + Sum(x[i], (i, 3, 2))) == x[1] * x[2]
    assert write_out(Sum(x[i], I)) == Sum(x[i], I)


@pytest.mark.parametrize(
    "entry, limits",
    [
        (A[i, i], I),
        (A[j, i], (j, 1, m)),
        (A[j + 1, j], J),
        (A[i, j] ** 2, J),
        (A[i, j] * x[j], J),
        (A[i, j], (j, 2, n)),
        (A[i, j], (j, 1, n - 1)),
        (A[i, j + 1], J),
    ],
    ids=str,
)
def test_a_rule_applies_to_its_own_sum_only(entry, limits):
    assert normal_form(Sum(entry, limits), [rows]) == normal_form(Sum(entry, limits))


def test_a_rule_needs_its_index_in_one_factor():
    entry = Sum(p[j] * A[k, j], J)  # either factor alone has a rule
    assert normal_form(entry, [rows, distribution]) == normal_form(entry)


def test_the_range_of_a_rule_is_that_of_its_instance():
    """Σ_{j ≤ i} A_ij = 1 for all i does not say that Σ_{j ≤ i} A_kj = 1."""
    a, b = symbols("a b", integer=True, positive=True)
    triangular = SumRule(A[i, j], j, (S(1), i), S(1), (i,))
    assert same(Sum(A[a, j], (j, 1, a)), 1, [triangular])
    assert not same(Sum(A[b, j], (j, 1, a)), 1, [triangular])


def test_declared_properties_of_a_free_index_bind():
    a = Symbol("a", integer=True, positive=True)
    rule = SumRule(A[a, j], j, (S(1), n), S(1), (a,))
    assert same(Sum(A[n + 1, j], J), 1, [rule])
    assert not same(Sum(A[0, j], J), 1, [rule]) and not same(Sum(A[i, j], J), 1, [rule])


@pytest.mark.parametrize(
    "expr, why",
    [
        (Sum(x[j], (j, 1, i - 2), (i, 1, n)), "reversed"),
        (Sum(x[j], (j, 1, i - 2), (i, 1, n + 2)), "reversed"),
        (Sum(Sum(x[j], (j, 1, 2 * i)), I), "reversed"),
        (Sum(Sum(x[j], (j, 1, i + (-1) ** i)), I), "reversed"),
        (Sum(Sum(x[j], (j, i, N - 1)), (i, 1, N)), "reversed"),
        (Sum(1, (i, 1, n - 3)), "reversed"),
        (Sum(1, (i, 1, Symbol("N", integer=True))), "reversed"),
        (Sum(1, (i, 1, Symbol("r", positive=True))), "reversed"),
        (Integral(exp(Symbol("t")), (Symbol("t"), 0, 1)), "integrals"),
    ],
    ids=str,
)
def test_refusals(expr, why):
    with pytest.raises(ValueError, match=why):
        normal_form(expr)


def test_undefined_terms_are_refused():
    with pytest.raises(ValueError, match="undefined"):
        normal_form(S.NaN + x[i])


def test_too_many_indices_tied_together_are_refused():
    indices = symbols("a:11", integer=True)
    chain = 1
    for a, b in zip(indices, indices[1:], strict=False):
        chain *= A[a, b]
    with pytest.raises(ValueError, match="at most 10"):
        normal_form(Sum(chain, *[(a, 1, n) for a in indices]))


# -- helpers -----------------------------------------------------------------------------------------------------------


def test_rename_bound_keeps_the_meaning():
    for expr in (Sum(x[j] * y[k], J), Sum(x[j], (j, 1, i), (i, 1, n)), exp(Sum(x[j] * Sum(y[j], J), J))):
        renamed = rename_bound(expr)
        assert renamed.as_dummy() == expr.as_dummy()
        assert not {i, j} & {limit[0] for s in renamed.atoms(Sum) for limit in s.limits}


def test_match_does_not_capture():
    fact = Given(Eq(Sum(A[i, j] * x[j], J), y[i]), (i,))
    assert match(fact.statement.lhs, fact, Sum(A[l, k] * x[k], K)) == {i: l}
    assert match(fact.statement.lhs, fact, Sum(A[j, j] * x[j], J)) is None


def test_match_respects_ranges():
    fact = Given(Eq(x[i], y[i]), (i,), within={i: (S(1), n)})
    d = Dummy("d", integer=True)
    assert match(x[i], fact, x[d], {d: (S(1), n)}) == {i: d}
    assert match(x[i], fact, x[d], {d: (S(0), n)}) is None and match(x[i], fact, x[n + 1]) is None


def test_which_facts_are_sum_rules():
    assert sum_rule(Given(Eq(Sum(A[i, j], J), 1), (i,))) == SumRule(A[i, j], j, (S(1), n), S(1), (i,), {})
    for statement in (x[1] <= 1, Eq(x[1], 1), Eq(Sum(A[i, j], J, I), n), Eq(Sum(2 * y[j], J), 0)):
        assert sum_rule(Given(statement)) is None


# -- fuzz --------------------------------------------------------------------------------------------------------------


def random_expression(random: Random, depth: int = 3, matrices: bool = False):
    """A random sum or product; names are few, so that they collide, and indices are often left free."""
    if depth == 0:
        a, b = random.choice((i, j, k)), random.choice((i, j, k))
        last = (P(a), Q(b), T) if matrices else (p[a], A[a, a])
        return random.choice((x[a], y[b], A[a, b], KroneckerDelta(a, b), S(random.randint(-2, 3)), *last))
    first, second = (random_expression(random, depth - 1, matrices) for _ in range(2))
    index = random.choice((i, j, k))
    return random.choice(
        (
            first + second,
            first * second,
            first - Rational(1, 2) * second,
            Sum(first, (index, 1, n)),
            Sum(first * second, (index, 1, n)),
            Sum(first, (index, 1, n)) * second,
            first**2,
            Sum(first, (index, 1, n), (random.choice([e for e in (i, j, k) if e != index]), 1, n)),
        )
    )


def explicit(expr, size: int):
    """The expression at n = size: the sums written out, without the normal form."""

    def written_out(e):
        if isinstance(e, Sum):
            (index, lo, hi), *outer = e.limits
            inner = sum(written_out(e.function.xreplace({index: S(v)})) for v in range(int(lo), int(hi) + 1))
            return written_out(Sum(inner, *outer)) if outer else inner
        return e.func(*map(written_out, e.args)) if e.has(Sum) else e

    # the free indices take the values 1, 1 and size, which lie in every range
    expr = written_out(rename_bound(expr).xreplace({n: S(size), i: S(1), j: S(1), k: S(size)}))
    # SymPy leaves (T³)² of matrices alone
    return expand(
        expr.replace(lambda e: isinstance(e, Pow) and not e.is_commutative, lambda e: Mul(*[e.base] * int(e.exp)))
    )


@pytest.mark.parametrize("matrices", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_fuzz(seed, matrices):
    """The normal form has the value of the expression at n = 1, 2, 3; and equal ones of two names are found equal."""
    random, ranges = Random(seed), {v: (S(1), n) for v in (i, j, k)}
    for _ in range(35):
        expr = random_expression(random, matrices=matrices)
        reduced = normal_form(expr, ranges=ranges)
        for size in (1, 2, 3):
            assert explicit(expr, size) == explicit(reduced, size), f"{expr} at n = {size}"
        assert normal_form(rename_bound(expr) - expr, ranges=ranges) == 0


def test_fuzz_with_rules():
    """Rules hold at a point where the rows sum to 1: the reduced expression has the same value there."""
    random = Random(5)
    stochastic = {
        A[S(a), S(b)]: Rational((a + 2 * b) % 3 + 1, sum((a + 2 * c) % 3 + 1 for c in (1, 2)))
        for a in (1, 2)
        for b in (1, 2)
    }
    applied = 0
    for _ in range(60):
        expr = random_expression(random)
        reduced = normal_form(expr, [rows])
        applied += reduced != normal_form(expr)
        assert expand(explicit(expr - reduced, 2).xreplace(stochastic)) == 0, str(expr)
    assert applied > 0
