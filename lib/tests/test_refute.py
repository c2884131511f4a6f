"""The search for values that break a step: what it finds is a counterexample; what is true it leaves alone."""

import pytest
from sympy import Eq, IndexedBase, Ne, S, Sum, exp, symbols

from smalltorch.engine.refute import refute
from smalltorch.engine.sums import Given

n = symbols("n", integer=True, positive=True)
i, j = symbols("i j", integer=True)
a, b = symbols("a b", positive=True)
q = symbols("q", nonnegative=True)
r, t = symbols("r t", real=True)
x, A = IndexedBase("x", real=True), IndexedBase("A", nonnegative=True)
I, J = (i, 1, n), (j, 1, n)  # noqa: E741
rows = Given(Eq(Sum(A[i, j], J), 1), (i,))


@pytest.mark.parametrize(
    "left, relation, right",
    [
        (r, "≤", r**2),
        (Sum(x[i], I) ** 2, "=", Sum(x[i] ** 2, I)),
        (q, ">", S(0)),
        (a, "<", b),
        (a + b, "≥", S(3)),
    ],
    ids=str,
)
def test_false_steps_are_broken(left, relation, right):
    found = refute(left, relation, right, [])
    assert "left = " in found and "right = " in found


@pytest.mark.parametrize(
    "left, relation, right",
    [
        (a * b, "≤", (a + b) ** 2 / 4),
        (Sum(x[i], I) ** 2, "≤", n * Sum(x[i] ** 2, I)),
        (q, "≥", S(0)),
        (a, ">", S(0)),
    ],
    ids=str,
)
def test_true_steps_are_not(left, relation, right):
    assert refute(left, relation, right, []) is None


def test_the_values_break_the_step():
    found = dict(part.split(" = ") for part in refute(r, "≤", r**2, []).split(", "))
    assert S(found["left"]) == S(found["r"]) and S(found["right"]) == S(found["r"]) ** 2 < S(found["r"])


def test_hypotheses_are_met():
    jensen = Sum(Sum(A[i, j] * x[j], J) ** 2, I), "≤", Sum(A[i, j] * x[j] ** 2, I, J)
    assert refute(*jensen, [rows]) is None
    assert refute(*jensen, []) is not None
    assert refute(Sum(A[i, j] * x[j] ** 2, I, J), "≤", Sum(x[j] ** 2, J), [rows]) is not None
    assert refute(r, "≤", t, [Given(r <= t)]) is None and refute(r, "≥", t, [Given(r <= t)]) is not None
    assert refute(r**2, ">", S(0), [Given(Ne(r, 0))]) is None


def test_what_is_not_rational_is_compared_in_intervals():
    assert refute(exp(1 + r**2), "≤", S(0), []) is not None and refute(exp(r), ">", S(0), []) is None


def test_the_same_values_every_time():
    assert refute(r * t, "≥", a, []) == refute(r * t, "≥", a, [])


def test_entries_that_no_instance_speaks_of():
    """x[i + 1] = 2 x[i] for all i: what it says of x[50] is not looked at, so nothing is said."""
    doubled = Given(Eq(x[i + 1], 2 * x[i]), (i,))
    assert refute(x[50], "=", 2**50 * x[0], [doubled]) is None
    assert refute(x[1], "=", 3 * x[0], [doubled]) is not None


def test_indices_stay_in_their_ranges():
    assert refute(x[i] * (i - 1), "=", S(0), [], {i: (S(1), S(1))}) is None
    assert refute(n - i, "≥", S(0), [], {i: (S(1), n)}) is None and refute(i - n, "≥", S(0), []) is not None
