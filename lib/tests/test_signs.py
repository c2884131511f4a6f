"""Signs read off the structure: what is seen, and what must not be claimed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sympy import (
    Abs,
    E,
    Function,
    IndexedBase,
    KroneckerDelta,
    Max,
    Min,
    Rational,
    S,
    Sum,
    Symbol,
    exp,
    log,
    pi,
    sqrt,
    symbols,
    tanh,
)

from smalltorch.engine.signs import is_nonnegative, is_positive, is_real, sign
from smalltorch.engine.sums import Given

n, m = symbols("n m", integer=True, positive=True)
i, j = symbols("i j", integer=True)
a, b = symbols("a b", positive=True)
q = Symbol("q", nonnegative=True)
r, t = symbols("r t", real=True)
z = Symbol("z")
x, p = IndexedBase("x", real=True), IndexedBase("p", nonnegative=True)
g = Function("g", positive=True)
I, J = (i, 1, n), (j, 1, n)  # noqa: E741

SEEN = {
    a: "> 0",
    -a: "< 0",
    q: "≥ 0",
    r**2: "≥ 0",
    a * b + 1: "> 0",
    -q - r**2: "≤ 0",
    pi: "> 0",
    S(0): "= 0",
    exp(r): "> 0",
    Rational(-1, 3): "< 0",
    a ** Rational(1, 3): "> 0",
    sqrt(q): "≥ 0",
    1 / a: "> 0",
    (r - t) ** 2 * q: "≥ 0",
    Abs(z): "≥ 0",
    KroneckerDelta(i, j): "≥ 0",
    (1 - KroneckerDelta(i, j)) ** 2: "≥ 0",
    g(r): "> 0",
    -a * -b: "> 0",
    (-a) ** 3: "< 0",
    Sum(x[i] ** 2, I): "≥ 0",
    Sum(exp(x[i]), I): "> 0",
    Sum(-p[i], I): "≤ 0",
    Sum((i - 1) * (x[i] - x[i - 1]) ** 2, I): "≥ 0",
    Sum(exp(x[i]), (i, 2, n)): "≥ 0",
    Sum(x[i], I) ** 2: "≥ 0",
}

NOT_SEEN = [
    r,
    z,
    z**2,
    r * t,
    a - b,
    1 - a,
    r**3,
    x[i],
    Sum(x[i], I),
    log(a),
    1 / r**2,
    1 / q,
    r ** (2 * i),
    q**r,
    p[i] - p[j],
    Sum(x[i] ** 2, (i, 1, n - 3)),
    Sum(x[i] ** 2, (i, 1, Symbol("N", integer=True))),
    Sum(i, (i, -2, n)),
    Sum(r**2, (i, 1, Symbol("s", positive=True))),
    Sum(i - 2, I),
    a + z**2,
    (z - 1) ** 2,
    sqrt(r) ** 2,
    g(r) - 1,
]


@pytest.mark.parametrize("expr, expected", SEEN.items(), ids=str)
def test_seen(expr, expected):
    assert sign(expr) == expected


@pytest.mark.parametrize("expr", NOT_SEEN, ids=str)
def test_not_seen(expr):
    assert sign(expr) is None


def test_a_sum_that_may_be_empty_is_not_positive():
    assert is_nonnegative(Sum(exp(x[i]), (i, 2, n))) and not is_positive(Sum(exp(x[i]), (i, 2, n)))


def test_numbers():
    for expr in (sqrt(2) - 1, E - 2, 1 - tanh(1) ** 2, sqrt(2) + sqrt(3) - pi, log(2), S(10) ** 30 + sqrt(2) - 10**30):
        assert sign(expr) == "> 0" and sign(-expr) == "< 0", expr
    assert sign(sqrt(2) + sqrt(3) - sqrt(5 + 2 * sqrt(6))) is None  # it is 0, and no interval tells


def test_increasing_functions():
    assert sign(exp(r) - exp(t), [Given(r >= t)]) == "≥ 0" and sign(exp(q) - 1) == "≥ 0"
    assert sign(log(1 + q)) == "≥ 0" and sign(log(a) - log(b), [Given(a < b)]) == "< 0"
    assert sign(tanh(q)) == "≥ 0" and sign(tanh(r) - tanh(t), [Given(r > t)]) == "> 0"
    assert sign(exp(r) - exp(t)) is None and sign(exp(z) - 1, [Given(r >= 0)]) is None
    assert sign(2 * exp(r) - exp(t), [Given(r >= t)]) is None and sign(r**2 - t**2, [Given(r >= t)]) is None


def test_absolute_values_and_extremes():
    assert sign(Abs(r) - r) == "≥ 0" and sign(Abs(r) + Abs(t) - Abs(r + t)) == "≥ 0"
    assert sign(Abs(r) - t) is None and sign(Abs(r + t) - Abs(r) - Abs(t)) is None and sign(r - Abs(r)) is None
    assert sign(r - Min(r, t)) == "≥ 0" and sign(Max(r, t) - r) == "≥ 0"
    assert sign(Min(r, t) - r) is None and sign(Max(r, q)) == "≥ 0" and sign(Min(r, q)) is None
    assert sign(r - Max(r, t)) is None and sign(2 * Max(r, t) - 3 * r) is None and sign(3 * r - 2 * Min(r, t)) is None
    for u in (2 * a * (a - b), a * Abs(a - b)):  # SymPy does not see that |u| = u for the second
        assert sign(2 * a + Abs(r) - u) is None
    assert sign(Abs(z) - z) is None and sign(Abs(r) + Abs(z) - z) is None  # z may be complex


def test_a_number_beyond_what_is_stated():
    assert sign(r - t + 1, [Given(r >= t)]) == "> 0" and sign(r - t - 1, [Given(r >= t)]) is None


def test_zero_is_not_positive():
    assert not is_positive(S(0)) and is_nonnegative(S(0)) and not is_positive(r - r)


def test_hypotheses():
    assert sign(r - t, [Given(r >= t)]) == "≥ 0" and sign(t - r, [Given(r >= t)]) == "≤ 0"
    assert sign(r - t, [Given(r > t)]) == "> 0" and sign(r, [Given(r < 0)]) == "< 0"
    assert sign(r - t) is None and sign(r + t, [Given(r >= t)]) is None and sign(2 * r - t, [Given(r >= t)]) is None


def test_hypotheses_for_all_indices():
    bound = Given(x[i] <= r, (i,))
    assert sign(Sum(p[j] * (r - x[j]), J), [bound]) == "≥ 0"
    assert sign(Sum(p[j] * (r - x[j]), J), [Given(x[i] <= r)]) is None  # of one index only
    assert sign(Sum(p[j] * (r - x[j]), J), [Given(x[j] <= r)]) is None  # a free index called like the bound one


def test_hypotheses_within_a_range():
    bound = Given(x[i] <= r, (i,), within={i: (S(1), n)})
    assert sign(Sum(r - x[j], J), [bound]) == "≥ 0"
    assert sign(Sum(r - x[j], (j, 0, n)), [bound]) is None
    assert sign(r - x[j], [bound]) is None and sign(r - x[j], [bound], {j: (S(1), n)}) == "≥ 0"


def test_a_hypothesis_does_not_capture():
    """Σ_j A_ij ≤ c_i for all i says nothing of Σ_j A_jj."""
    A, c = IndexedBase("A", real=True), IndexedBase("c", real=True)
    row_sums = Given(Sum(A[i, j], J) <= c[i], (i,))
    assert sign(c[j] - Sum(A[j, j], J), [row_sums]) is None
    assert sign(c[j] - Sum(A[j, i], I), [row_sums]) == "≥ 0"


def test_reality():
    for expr in (
        r,
        x[i] * KroneckerDelta(i, j),
        sqrt(q),
        log(a),
        Sum(x[i], I) ** 2,
        1 / (1 + Sum(x[i] ** 2, I)),
        r**i,
        sqrt(Sum(x[i] ** 2, I)),
        exp(-(r**2)),
    ):
        assert is_real(expr), expr
    for expr in (z, S.ImaginaryUnit, sqrt(r), log(r), log(q - 1), r ** Rational(3, 2), Sum(z**i, I), z * r, exp(z)):
        assert not is_real(expr), expr


@st.composite
def expressions(draw, depth=3):
    if depth == 0:
        return draw(st.sampled_from([a, -b, q, r, t, S(0), S(2), Rational(-1, 2), a - b, r - t]))
    e, f = draw(expressions(depth - 1)), draw(expressions(depth - 1))
    return draw(st.sampled_from([e + f, e * f, e**2, -e, e**3, e * f**2, abs(e)]))


@given(expressions(), st.lists(st.integers(-3, 3), min_size=5, max_size=5))
def test_a_sign_is_true_of_every_value(expr, values):
    u, v, w, rest, other = values
    value = expr.xreplace({a: S(abs(u) + 1) / 2, b: S(abs(v) + 1), q: S(abs(w)), r: S(rest), t: S(other) / 3})
    holds = {"> 0": value > 0, "≥ 0": value >= 0, "= 0": value == 0, "≤ 0": value <= 0, "< 0": value < 0, None: True}
    assert holds[sign(expr)]
