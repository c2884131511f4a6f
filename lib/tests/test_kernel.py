"""What the engine must refuse: false or unsupported statements, in families; each by the rule that it breaks."""

import pytest
from sympy import (
    Abs,
    Add,
    Derivative,
    Eq,
    Float,
    Function,
    Ge,
    Heaviside,
    IndexedBase,
    Integral,
    KroneckerDelta,
    Lambda,
    Le,
    Max,
    Min,
    Ne,
    Piecewise,
    Product,
    Rational,
    S,
    Subs,
    Sum,
    Symbol,
    binomial,
    cos,
    cot,
    csc,
    evaluate,
    exp,
    factorial,
    floor,
    gamma,
    log,
    nan,
    oo,
    sec,
    sign,
    sin,
    sqrt,
    symbols,
    tan,
    zoo,
)

from smalltorch.engine.context import Context
from smalltorch.engine.derive import (
    Cases,
    Derivation,
    Increasing,
    Induction,
    Monotone,
    Step,
    StepError,
    WrittenProof,
    for_all,
    identity,
)
from smalltorch.engine.kernel import Fact, by_reduction, concluded, used
from smalltorch.engine.sums import Given

n, m = symbols("n m", integer=True, positive=True)
i, j, k, l = symbols("i j k l", integer=True)  # noqa: E741
N = Symbol("N", integer=True, nonnegative=True)
a, b = symbols("a b", positive=True)
q = Symbol("q", nonnegative=True)
r, s, t, u = symbols("r s t u", real=True)
z = Symbol("z")
x, y, B = IndexedBase("x", real=True), IndexedBase("y", real=True), IndexedBase("B", real=True)
I, J, K = (i, 1, n), (j, 1, n), (k, 1, n)  # noqa: E741
p = IndexedBase("p", nonnegative=True)
f = Function("f", real=True)
P, Q = symbols("P Q", commutative=False)
W = r * P + Q
ODD, EVEN, PRIME, COMPOSITE = (
    Symbol("n", integer=True, positive=True, **{word: True}) for word in ("odd", "even", "prime", "composite")
)
NONZERO = Symbol("o", integer=True, nonzero=True)
nonzero = Symbol("v", zero=False)


def D(start, *given, scope="a test", ranges=None) -> Derivation:
    return Derivation("test", scope=scope, given=given, ranges=ranges or {}).start(start)


def twice(index_1, index_2) -> Derivation:
    """B[i, j] from a sum over both indices, for i up to n and j up to m."""
    deltas = KroneckerDelta(i, k) * KroneckerDelta(j, l)
    d = D(Sum(deltas * B[k, l], (k, 1, n), (l, 1, m)), ranges={i: (1, n), j: (1, m)})
    return d.eq(B[i, j], "sum out").qed().at({i: index_1, j: index_2})


def changed(change) -> None:
    d = identity("key", (r + 1) ** 2, r**2 + 2 * r + 1, because="x", scope="every r")
    WrittenProof("the big theorem", d, of="the-big-theorem")
    change(d)


REFUSED = {
    "a start outside of what is declared": [
        (lambda: D(q**2).ge(20, "grows", by=Monotone(q, 2 * q, at=-5)), "not known to be nonnegative"),
        (lambda: D(1 / a + a).ge(1, "grows", by=Monotone(a, 1 - 1 / a**2, at=0)), "not known to be positive"),
        (lambda: D(q).ge(r, "grows", by=Monotone(q, S(1), at=r)), "not known to be nonnegative"),
        (lambda: D(q).ge(1, "grows", by=Monotone(q, S(1), at=q)), "moves with q"),
        (lambda: D(r**3).ge(0, "grows", by=Monotone(r, 3 * r**2)), "falling slope"),
        (lambda: D(n).ge(0, "grows", by=Monotone(n, S(1), at=1)), "is not declared to be a real number"),
        (
            lambda: D(Symbol("y", nonzero=True) ** 3).ge(1, "no", by=Monotone(Symbol("y", nonzero=True), S(1), at=1)),
            "is not declared",
        ),
    ],
    "induction over some integers": [
        (lambda: D(Sum(1 - (-1) ** i, (i, 1, ODD))).eq(2, "no", by=Induction(ODD)), "odd"),
        (lambda: D(Sum((-1) ** i, (i, 1, EVEN))).eq(0, "no", by=Induction(EVEN, base=2)), "even"),
        (lambda: D(PRIME**2).ge(4, "no", by=Induction(PRIME, base=2, gain=2 * PRIME + 1)), "prime"),
        (lambda: D(COMPOSITE).ge(4, "no", by=Induction(COMPOSITE, base=4, gain=S(1))), "composite"),
        (lambda: D(NONZERO).ge(1, "no", by=Induction(NONZERO, gain=S(1))), "nonzero"),
        (lambda: D(n).ge(1, "no", by=Induction(n, base=2, gain=S(1))), "does not reach"),
        (lambda: D(n).ge(1, "no", by=Induction(n, base=Rational(1, 2), gain=S(1))), "must be an integer"),
    ],
    "two indices of a lemma with one value": [
        (lambda: D(S(0), twice(S(5), S(5))), "needs 5 from 1 to n"),
        (lambda: D(S(0), twice(k, k), ranges={k: (1, n)}), "needs k from 1 to m"),
        (lambda: D(S(0), twice(j, j), ranges={j: (1, n)}), "needs j from 1 to m"),
        (lambda: D(S(0), twice(j, k), ranges={j: (1, m), k: (1, m)}), "needs j from 1 to n"),
    ],
    "a name that is tied to the variable": [
        (lambda: D(Derivative(t, r), Eq(t, u), Eq(u, r**2)), "holds t constant"),
        (lambda: D(Derivative(t, r), Eq(t - r**2, 0)), "holds t constant"),
        (lambda: D(Derivative(t * r, r), Eq(u, r), Eq(s, u), Eq(t, s)), "holds t constant"),
        (lambda: D(Derivative(f(1) * r, r), Eq(f(1), r**2)), "holds f constant"),
        (lambda: D(Derivative(t, x[j]), Eq(t, Sum(x[k], (k, 1, n))), ranges={j: (1, n)}), "holds t constant"),
        (lambda: D(Derivative(t, r), Le(t, r**2), Ge(t, r**2)), "holds t constant"),
        (lambda: D(Subs(t * r, r, 2), Eq(t, r)), "holds t constant"),
        (lambda: D(Integral(t * r, (r, 0, 1)), Eq(t, r)), "holds t constant"),
    ],
    "a derivative by what does not vary, or without a rule": [
        (lambda: D(Derivative(Sum(f(j) ** 2, (j, 1, n)), f(i)), ranges={i: (1, n)}), "no derivative by"),
        (lambda: D(Derivative(f(r) ** 2, f(r))), "no derivative by"),
        (lambda: D(Derivative(f(r), r)), "no rule"),
        (lambda: D(Derivative(Sum(x[i], (i, 1, n)), n)), "no derivative by"),
        (lambda: D(Derivative(Sum(r**i, (i, 0, N)), i)), "no derivative by"),
        (lambda: D(Derivative(n**2 * r, n)), "no derivative by"),
        (lambda: D(Derivative(Product(r + i, (i, 1, n)), r)), "no rule"),
        (lambda: D(Derivative(x[i], x[j, k])), "no rule"),
        (lambda: D(Derivative(exp(W), r)), "does not commute"),
        (lambda: D(Derivative(W**2, r)), "does not commute"),
        (lambda: D(Derivative(P * r * Q, r)), "does not commute"),
        (lambda: D(Derivative(r * P, P)), "no derivative by"),
        (lambda: D(Derivative(Abs(r), r)), "no rule"),
        (lambda: D(Subs(Derivative(Abs(r), r), r, 0)), "no rule"),
        (lambda: D(Derivative(Max(r, 0), r)), "no rule"),
        (lambda: D(Derivative(Min(r, t), r)), "no rule"),
        (lambda: D(Derivative(sign(r), r)), "no rule"),
        (lambda: D(Derivative(floor(r), r)), "no rule"),
        (lambda: D(Derivative(sqrt(r**2), r)), "no rule"),
        (lambda: D(Derivative(q ** Rational(1, 2), q)), "may be zero"),
        (lambda: D(Heaviside(r)), "does not know where Heaviside is defined"),
    ],
    "a range that may be reversed": [
        (lambda: D(exp(Sum(1, (i, 3, n)))), "reversed"),
        (lambda: D(Product(2, (i, 3, n))), "reversed"),
        (lambda: D(1 / (1 + Sum(1, (i, 1, n - 2)) ** 2)), "reversed"),
        (lambda: D(Sum(Sum(1, (j, i, 3)), (i, 1, n))), "reversed"),
        (lambda: D(S(0), Eq(r, Sum(1, (i, 5, n)))), "reversed"),
        (lambda: D(Sum(1, (i, n, 1))), "reversed"),
        (lambda: D(f(Sum(i, (i, 1, -4)))), "reversed"),
        (lambda: D(Sum(1, (i, 1, n)), D(Sum(2, (i, 1, N))).eq(2 * N, "count").qed().at({N: n - 5})), "needs n - 5 ≥ 0"),
    ],
    "poles, and points where a function is not defined": [
        (lambda: D(tan(r) * cot(r)), "may be zero"),
        (lambda: D(sec(r) * cos(r)), "may be zero"),
        (lambda: D(csc(t) * sin(t), Ne(cos(t), 0)), "may be zero"),
        (lambda: D(tan(r) ** 2, Ne(sin(r), 0)), "may be zero"),
        (lambda: D(r * gamma(r)), "has poles"),
        (lambda: D(gamma(N)), "has poles"),
        (lambda: D(factorial(N)).eq(N * factorial(N - 1), "no"), "defined for integers ≥ 0"),
        (lambda: D(factorial(r)), "defined for integers"),
        (lambda: D(binomial(r, 2)), "defined for integers"),
        (lambda: D(binomial(N - 1, 2)), "defined for integers ≥ 0"),
        (lambda: D(r**t), "may be zero"),
        (lambda: D(q ** (-r)), "may be zero"),
        (lambda: D(0 ** Symbol("e", real=True)), "may be zero"),
        (
            lambda: D(1 / (sqrt(2) + sqrt(3) - sqrt(5 + 2 * sqrt(6)))),
            "may be zero|not admitted",
        ),
        (lambda: D(log(q)), "may be zero"),
        (lambda: D(log(1 - a)), "may be zero"),
        (lambda: D(Derivative(Sum(p[i] * log(p[i]), (i, 1, n)), p[j]), ranges={j: (1, n)}), "may be zero"),
        (lambda: D(q * log(q), r >= 0), "may be zero"),
        (lambda: D(Sum(log(i), (i, 0, n))), "may be zero"),
        (lambda: D(Sum(1 / (i - 1), (i, 1, n))), "may be zero"),
        (lambda: D(log(exp(r) - 1)), "may be zero"),
    ],
    "hypotheses that nothing meets": [
        (lambda: D(S(0), r >= 1, r <= 0).le(r - 1, "given").qed(), "no instance"),
        (lambda: D(S(0), for_all(i, i > 0)).le(l, "given").qed(), "no instance"),
        (lambda: D(S(1), Eq(r**2, -1)).le(-(r**2), "given").qed(), "says anything"),
        (
            lambda: (
                D(n, for_all(j, p[j] >= 1), Eq(Sum(p[j], (j, 1, n)), 1))
                .le(1, "given", gap=Sum(p[j] - 1, (j, 1, n)))
                .qed()
            ),
            "no instance",
        ),
        (
            lambda: (
                D(Sum(p[i], (i, 1, n)), for_all(i, p[i] <= i - 1))
                .le(Sum(i - 1, (i, 1, n)), "given", gap=Sum(i - 1 - p[i], (i, 1, n)))
                .qed()
            ),
            "no instance",
        ),
        (lambda: D(r, Eq(r, t), Eq(t, r + 1)).le(t + 1, "given").qed(), "no instance|come to an end"),
        (
            lambda: D(f(1), for_all(n, Eq(f(n + 1), f(n) + 1)), Eq(f(3), 0), Eq(f(1), 0)).le(1, "given").qed(),
            "no instance",
        ),
        (lambda: D(S(1), a <= -1).le(-a, "given").qed(), "no instance|says anything"),
        (
            lambda: D(x[i], for_all((i, 1, n), Eq(x[i], 1)), Eq(x[2], 5), ranges={i: (1, n)}).le(2, "given").qed(),
            "no inst",
        ),
        (lambda: D(r**2, ranges={i: (3, 1)}).ge(-1, "a square").qed(), "no instance"),
    ],
    "an inverse of what does not commute": [
        (lambda: D(P**-1 * (P * Q + P), Ne(P, 0)), "need not have an inverse"),
        (lambda: D(Q * (P + Q) ** -1, Ne(P + Q, 0)), "need not have an inverse"),
        (lambda: D(sqrt(P), Ne(P, 0)), "need not have an inverse"),
        (lambda: D(P**k), "need not have an inverse"),
        (lambda: D(log(P), Ne(P, 0)), "functions of what does not commute"),
        (lambda: D(Q, Eq(Q, P**-1)), "need not have an inverse"),
    ],
    "floats and infinities": [
        (lambda: D(S(0), D((1 + exp(z)) * exp(-z)).eq(exp(-z) + 1, "x").qed().at({z: -oo})), "not admitted"),
        (
            lambda: D(S(0), D((r + t) * (r - t)).eq(r**2 - t**2, "x").qed().at({r: Float(0.1), t: Float(0.3)})),
            "not adm",
        ),
        (
            lambda: D(
                S(0), D(Sum(2 * x[i], (i, 1, n))).eq(2 * Sum(x[i], (i, 1, n)), "x").qed().at({x: Lambda(i, 0.5 * i)})
            ),
            "not admitted",
        ),
        (lambda: D(r, ranges={i: (1, oo)}), "not admitted"),
        (lambda: D(r, ranges={i: (0.5, n)}), "not admitted"),
        (lambda: D(q).ge(0, "x", by=Monotone(q, S(1), at=0.0)), "not admitted"),
        (lambda: D(q).ge(0, "x", by=Monotone(q, Float(1))), "not admitted"),
        (lambda: D(n).ge(1, "x", by=Induction(n, base=1.0)), "not admitted"),
        (lambda: D(r, r >= 0.5), "not admitted"),
        (lambda: D(r, for_all((i, 1, oo), x[i] >= 0)), "not admitted"),
        (lambda: D(Subs(r**2, r, oo)), "not admitted"),
        (lambda: D(r).eq(nan, "x"), "not admitted"),
        (lambda: D(zoo), "not admitted"),
        (lambda: D("0.1*x"), "expected an expression"),
        (lambda: D(Symbol("w", extended_real=True)), "may be infinite"),
        (lambda: D(Symbol("w", infinite=True)), "may be infinite"),
        (lambda: D(None), "expected an expression"),
    ],
    "one name for two things": [
        (
            lambda: (
                D(
                    Function("f", real=True)(r) - Function("f", positive=True)(r),
                    Eq(Function("f", real=True)(r), 5),
                    Eq(Function("f", positive=True)(r), 7),
                )
                .eq(-2, "put in")
                .qed()
            ),
            "two functions are called f",
        ),
        (lambda: D(r + Symbol("r")).eq(2 * r + Symbol("r") - r, "x").qed(), "two|says nothing"),
        (lambda: D(a + 0 * r, Symbol("a", real=True) >= 0).ge(0, "x").qed(), "two symbols are called a"),
        (
            lambda: (
                D(IndexedBase("x", positive=True)[1], Eq(x[1], -1))
                .ge(x[1], "x", gap=IndexedBase("x", positive=True)[1] + 1)
                .qed()
            ),
            "two bases are called x",
        ),
        (lambda: D(x[1] + Symbol("x", real=True) + 1).ge(x[1] + Symbol("x", real=True), "x").qed(), "two things"),
        (lambda: D(f(r) + Symbol("f", real=True) + 1).ge(f(r) + Symbol("f", real=True), "x").qed(), "two things"),
    ],
    "a scope that says more than is declared": [
        (lambda: D(sqrt(a**2) * b + 1, scope="every complex a").ge(a * b, "root").qed(), "every complex a"),
        (lambda: D(abs(q) + 1, scope="every real q").ge(q, "x").qed(), "every real q"),
        (lambda: D(r**2, r >= 1, scope="every real r").ge(r, "x", gap=r * (r - 1)).qed(), "is assumed of r|not seen"),
        (lambda: D(n**2, scope="every real n").ge(0, "x").qed(), "every real n"),
        (lambda: D(a, scope="every a ≥ 0").ge(0, "x").qed(), "every a ≥ 0"),
        (lambda: D(r**2, scope="all d").ge(0, "a square").qed(), "does not occur"),
    ],
    "what says nothing": [
        (lambda: identity("the-riemann-hypothesis", S(0), S(0), because="obvious", scope="every zero"), "says nothing"),
        (lambda: identity("name", r + t, t + r, because="obvious", scope="real"), "says nothing"),
        (
            lambda: identity("name", Sum(x[i], (i, 1, n)), Sum(x[j], (j, 1, n)), because="x", scope="all n"),
            "says nothing",
        ),
        (lambda: D(S(0)).le(1, "x").qed(), "says nothing"),
        (lambda: D(Add(1, 1, evaluate=False)).eq(2, "x").qed(), "says nothing"),
        (lambda: D(r).le(r, "x").qed(), "says nothing"),
        (lambda: D(t, Eq(t, u)).eq(u, "given").qed(), "it is assumed"),
        (lambda: D(r, t >= r).le(t, "given").qed(), "it is assumed"),
    ],
    "a proof that changes after it was used": [
        (lambda: changed(lambda d: d.start(S(0)).eq(0, "trivial")), "finished"),
        (lambda: changed(lambda d: d.eq(r * (r + 2) + 1, "more")), "finished"),
        (lambda: changed(lambda d: d.ge(0, "more")), "finished"),
        (lambda: changed(lambda d: d.start(r)), "finished"),
        (lambda: changed(lambda d: setattr(d, "name", "another")), "read and not set"),
        (lambda: changed(lambda d: setattr(d, "fact", None)), "read and not set"),
    ],
    "a point outside of what is declared": [
        (lambda: D(Subs(Derivative(Abs(a) * r, a), a, -1)), "not known to be positive"),
        (lambda: D(Subs(sqrt(q**2), q, -2)), "not known to be nonnegative"),
        (lambda: D(Subs(1 / a, a, 0)), "not known to be positive"),
        (lambda: D(Subs(1 / r, r, 0), Ne(r, 0)), "not defined"),
        (lambda: D(Subs((-1) ** (2 * n), n, Rational(1, 2))), "not known to be integer"),
        (lambda: D(r, D(Abs(a) + 1).ge(a, "x").qed().at({a: S(-1)})), "not known to be positive"),
        (lambda: D(Integral(sqrt(a**2), (a, -1, 1))), "declared real and no more"),
    ],
    "a value put into what binds a variable": [
        (lambda: D(t).eq(Derivative(t * r, r), "x").ge(2 * t, "x", by=Monotone(r, S(0), t)), "gap at r = t"),
        (lambda: D(5 * t).eq(Subs(t * r, r, 5), "x").ge(25, "x", by=Monotone(r, S(0), t)), "gap at r = t"),
        (lambda: D(a).eq(Derivative(a * r, r), "x").ge(2 * a, "x", by=Monotone(r, S(0), a)), "gap at r = a"),
        (lambda: D(t / 2).eq(Integral(t * r, (r, 0, 1)), "x").ge(t, "x", by=Monotone(r, S(0), t)), "gap at r = t"),
        (lambda: D(r, D(r + 1).ge(r, "x").qed().at({r: Derivative(t**2, t)})), "write out what it is"),
    ],
    "undefined under a sum, or where a value is put in": [
        (lambda: D(Sum(Derivative(log(y[i]) + x[i], x[j]), I), ranges={j: (1, n)}), "not defined"),
        (lambda: D(Sum(Derivative(1 / y[i] + x[i], x[j]), I), ranges={j: (1, n)}), "may be zero"),
        (lambda: D(Sum(Subs(r / y[i], r, 0), I)), "may be zero"),
        (lambda: D(Subs(r * log(t), r, 0)), "not defined"),
        (lambda: D(Subs(r / t + u, r, 0)), "may be zero"),
        (lambda: D(Subs(Sum(r / x[i], I), r, 0)), "may be zero"),
        (lambda: D(Integral(r / t, (r, 0, 1))), "may be zero"),
    ],
    "a derivative on the branch cut": [
        (lambda: D(Derivative(sqrt(nonzero), nonzero)), "jumps"),
        (lambda: D(Derivative(log(nonzero), nonzero)), "jumps"),
        (lambda: D(Derivative(nonzero**r, nonzero)), "jumps"),
    ],
    "nested sums that differ by a transposition": [
        (lambda: D(rows(B) + (r + 1) ** 2).eq(columns(B) + r**2 + 2 * r + 1, "x"), "left over"),
        (lambda: D(rows(B) + 1).le(columns(B) + 1 + r**2, "x", gap=r**2), "is not the difference"),
        (lambda: D(exp(rows(B))).eq(exp(Sum(log(Sum(exp(B[j, j]), J)), I)), "x"), "left over"),
        (lambda: D(rows(B), Eq(columns(B), 1)).eq(1, "x"), "left over"),
        (lambda: D(rows(B), columns(B) >= 1).ge(1, "x"), "not seen"),
        (lambda: D(Sum(x[i] + B[i, i], I), for_all(i, Sum(B[i, j], J) <= 1)).le(n + Sum(x[i], I), "x"), "not seen"),
        (lambda: D(Sum(exp(Sum(B[i, j], J)), I)).eq(Sum(exp(Sum(B[j, i], J)), I), "x"), "left over"),
    ],
    "two ranges of one value": [
        (lambda: D(B[k, k], for_all((i, 1, 3), (j, 1, 10), Eq(B[i, j], 0)), ranges={k: (1, 10)}).eq(0, "x"), "left"),
        (lambda: D(Sum(B[k, k], (k, 1, m)), for_all((i, 1, n), (j, 1, m), B[i, j] >= 0)).ge(0, "x"), "not seen"),
    ],
    "a size that is none, or that is tied": [
        (lambda: D(Derivative(t * a, r), Eq(t, r**3), ranges={i: (0, floor(r**2))}), "holds t constant"),
        (lambda: D(Derivative(Sum(y[i], I) * t, r), Eq(t, n), Eq(r, n)), "constant"),
        (lambda: D(Derivative(t * r, r), Eq(t, n), Eq(m, n), Eq(r, m)), "constant"),
        (lambda: D(Derivative(t * r, r), t <= n, r >= n), "constant"),
        (lambda: D(Derivative(t * r, r), Eq(t, Sum(1, I)), Eq(r, Sum(1, J))), "constant"),
    ],
    "hypotheses that contradict each other": [
        (
            lambda: D(r + 1, for_all(i, Eq(x[i], 0)), for_all(i, x[i + 10] >= 1)).le(r + x[k + 10], "x").qed(),
            "instance",
        ),
        (lambda: D(s, Ge(x[k], 1), Le(x[l], 0), Eq(k, l)).le(s + x[k], "x").qed(), "instance"),
        (lambda: D(s, Ge(f(r), 1), Le(f(t), 0), Eq(r, t)).le(s + f(r), "x").qed(), "instance"),
    ],
    "words that claim more than was proved": [
        (lambda: D(n**2, n <= 3, scope="all n").le(3 * n, "x", gap=n * (3 - n)).qed(), "is assumed of n"),
        (lambda: D((n + 1) ** 2, scope="all n, d and every width").eq(n**2 + 2 * n + 1, "x").qed(), "d does not occur"),
        (lambda: D(r * a, r >= 1, scope="every r ∈ ℝ and a ∈ ℂ").ge(a, "x", gap=a * (r - 1)).qed(), "∈ does not"),
        (lambda: D((r + 1) ** 2, scope="any row-stochastic matrix").eq(r**2 + 2 * r + 1, "x").qed(), "row-stochastic"),
        (lambda: D((r + 1) ** 2, scope="one layer; each width").eq(r**2 + 2 * r + 1, "x").qed(), "width"),
    ],
    "two names that look alike": [
        (
            lambda: D(Symbol("r1"), Eq(Symbol("r1"), Symbol("r_1") + 1)).eq(Symbol("r_1") + 1, "x").qed(),
            "alike|assumed",
        ),
        (lambda: D(Symbol("r1") + 1, Eq(Symbol("r1"), Symbol("r_1"))).eq(Symbol("r_1") + 1, "x").qed(), "look alike"),
        (
            lambda: D(x[1] + Symbol("x_1", real=True) + 1).ge(x[1] + Symbol("x_1", real=True), "x").qed(),
            "an entry of x",
        ),
        (lambda: D(x[i] + Symbol("x_i", real=True) + i**2).ge(x[i] + Symbol("x_i", real=True), "x").qed(), "an entry"),
    ],
    "a property that means nothing": [
        (lambda: D(sqrt(Symbol("v", polar=True) ** 2)), "means nothing"),
        (lambda: D(Symbol("v", hermitian=True)), "means nothing"),
    ],
    "what is proved is not changed": [
        (lambda: D(Sum(x[k], K), ranges={i: (1, n)}).eq(Sum(x[j], J), "x").fact.within.clear(), "read and not changed"),
        (lambda: D((r + 1) ** 2).eq(r**2 + 2 * r + 1, "x").steps.insert(1, Step("=", r, "x")), "read and not changed"),
        (lambda: D(x[i], ranges={i: (1, n)}).ranges.pop(i), "read and not changed"),
        (lambda: setattr(D(r), "context", Context()), "read and not set"),
    ],
    "SymPy that does not evaluate": [(lambda: without_evaluation(lambda: D(r + r).eq(3 * r, "x")), "told not to")],
    "a hypothesis that only looks like what is needed": [
        (lambda: D(r, Ge(r, s), Ge(t, s)).ge(t, "x"), "not seen"),
        (lambda: D(2 * Sum(x[i], I), Sum(x[i], I) <= a * b).le(a * b, "x"), "not seen"),
        (lambda: D(r, Ge(r, s), Ge(s, t)).gt(t, "x"), "not seen"),
        (lambda: D(sqrt(t**2), Ge(t, -1)).eq(t, "x"), "left over"),
        (lambda: D(1 / (t - 2), Ne(t, 1)), "may be zero"),
        (lambda: D(Sum(Sum(x[i] * B[i, j], J) ** 2, I), Eq(Sum(B[i, 1] ** 2, I), 1)).eq(1, "x"), "left over"),
    ],
    "cases that leave one out": [
        (lambda: D(Abs(r)).eq(r, "x", by=Cases(r >= 0)), "left over"),
        (lambda: D(Abs(r)).eq(-r, "x", by=Cases(r >= 0, s >= 0)), "left over"),
        (lambda: D(Abs(r)).eq(r, "x", by=Cases(s >= 0, r >= 0)), "left over"),
        (lambda: D(Abs(r) + Abs(s)).eq(r - s, "x", by=Cases(r >= 0, s >= 0)), "left over"),
        (lambda: D(Piecewise((r, r > 0), (-1, True))).ge(0, "x", by=Cases(r > 0)), "not seen"),
        (lambda: D(Piecewise((r, r > 0), (0, True))).ge(0, "x", by=Cases(r > 1)), "is not decided"),
        (lambda: D(Piecewise((r, r > 0), (0, r < 0))), "the last one True"),
        (lambda: D(Piecewise((1 / r, r > 0), (0, True))), "may be zero"),
        (lambda: D(Piecewise((r, Symbol("z") > 0), (0, True))), "."),
    ],
    "an induction with a factor that does not carry": [
        (lambda: D((1 + r) ** N, r >= -2).ge(1 + N * r, "x", by=Induction(N, base=0, factor=1 + r)), "the factor"),
        (lambda: D((1 + q) ** N).ge(1 + 2 * N * q, "x", by=Induction(N, base=0, factor=1 + q)), "gain"),
    ],
    "a range that depends on an index, and one that does not": [
        (lambda: D(Sum(Sum(B[i, j], (j, 1, i)), I)).eq(Sum(Sum(B[i, j], (i, 1, j)), J), "x"), "left over"),
        (lambda: D(Sum(Sum(B[i, j], (j, 1, i)), I)).eq(Sum(B[i, j], I, J), "x"), "left over"),
        (lambda: D(Sum(Sum(1, (j, 1, i)), I)).eq(n**2, "x"), "left over"),
        (lambda: D(Sum(Sum(1, (j, i, n)), (i, 1, m))), "may be reversed"),
        (
            lambda: D(Sum(Sum(B[i, j], (j, 1, i)), I), for_all((i, 1, n), Eq(Sum(B[i, j], J), 1))).eq(n, "x"),
            "left over",
        ),
    ],
}
CASES = [pytest.param(*case, id=f"{family} {k}") for family, cases in REFUSED.items() for k, case in enumerate(cases)]


def rows(base):
    return Sum(log(Sum(exp(base[i, j]), J)), I)


def columns(base):
    return Sum(log(Sum(exp(base[j, i]), J)), I)


def without_evaluation(attack):
    with evaluate(False):
        attack()


@pytest.mark.usefixtures("unenforced")
@pytest.mark.parametrize("attack, reason", CASES)
def test_refused(attack, reason):
    with pytest.raises((StepError, ValueError), match=reason):
        attack()


def test_what_stands_under_two_sums_is_checked_in_both_ranges():
    """1/(i + j - 1) is defined where i and j are at least 1, and 1/(i - j) is not."""
    inner = Sum(Derivative(r / (i + j - 1), r), J)
    D(Sum(y[i] * inner, I)).eq(Sum(y[i] / (i + j - 1), J, I), "x").qed()
    with pytest.raises(StepError, match="may be zero"):
        D(Sum(y[i] * Sum(Derivative(r / (i - j), r), J), I))


def test_a_conclusion_is_tried_at_small_values():
    """Were a rule wrong, what it lets through would not reach the end: here a fact that no rule has made."""
    wrong = object.__new__(Fact)
    statement = Ge(Sum(x[i], I) ** 2, Sum(x[i] ** 2, I), evaluate=False)
    wrong.__dict__.update(D(r).le(r + 1, "x").fact.__dict__ | {"statement": statement})
    with pytest.raises(StepError, match="is false where left = .*, n = "):
        concluded(wrong, "wrong", statement, [])


def test_increasing_needs_its_domain():
    chain = D(r).le(Abs(r) + 1, "squares", by=Increasing(2, 1 + 2 * Abs(r))).qed()
    assert chain.conclusion.rhs == Abs(r) + 1
    for attempt in (
        lambda: D(S(1), t**2 >= 1).le(t, "squares", by=Increasing(2, t**2 - 1)),  # t = -1
        lambda: D(r).le(t, "logarithms", by=Increasing(log)),
        lambda: D(r, t**2 >= r**2).le(t, "no", by=Increasing(cos, S(0))),
    ):
        with pytest.raises(StepError, match="is not seen to be one|is not seen to be > 0|f must be"):
            attempt()


def test_a_fact_comes_out_of_a_rule_only():
    with pytest.raises(StepError, match="out of a rule"):
        Fact(Eq(r, r + 1, evaluate=False))
    with pytest.raises(StepError, match="reached qed"):
        used(Context(), D(r).le(r + 1, "x").fact)
    with pytest.raises(StepError, match="must be a fact"):
        by_reduction(Context(lemmas=(Given(Eq(r, t)),)), r, t)


def test_an_instance_of_the_hypotheses_is_kept():
    d = D(Sum(p[j] * x[j], (j, 1, n)), Eq(Sum(p[j], (j, 1, n)), 1), for_all(j, Le(x[j], t)))
    d.le(t, "each", gap=Sum(p[j] * (t - x[j]), (j, 1, n))).qed()
    found = d.fact.instance
    assert found[n] == 2 and found[p[1]] + found[p[2]] == 1 and all(found[x[k]] <= found[t] for k in (-1, 1, 2, 4))


def test_the_reducer_of_a_step_is_kept():
    steps = [
        (D(Sum(x[i] + 1, (i, 1, n))).eq(Sum(x[i], (i, 1, n)) + n, "count"), "normal form"),
        (D(1 - 1 / (1 + a)).eq(a / (1 + a), "one fraction"), "cancel"),
        (D(sin(r) ** 2 + cos(r) ** 2).eq(1, "Pythagoras"), "simplify"),
    ]
    assert [d.steps[1].reducer for d, _ in steps] == [reducer for _, reducer in steps]


def test_what_simplify_says_is_held_against_intervals(monkeypatch):
    def simplify(e):
        return S(0)

    monkeypatch.setattr("smalltorch.engine.context.simplify", simplify)
    with pytest.raises(StepError, match="SymPy simplifies .* to 0, but it is not 0 at r = "):
        D(sin(r)).eq(r, "for small angles")
    D(sin(r) ** 2).eq(1 - cos(r) ** 2, "Pythagoras")
