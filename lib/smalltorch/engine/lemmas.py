r"""Proved lemmas for chapters to import: variance, Cauchy–Schwarz, Jensen and more.

    >>> from sympy import Symbol
    >>> u = Symbol("u", real=True)
    >>> exp_above_its_tangent().at({r: -u}).statement
    exp(-u) >= 1 - u

Each call derives its lemma anew, as a check of the chapter that calls it. `at` puts in other values: n, p, x, y and r
below are the names to give them to.
"""

from sympy import Eq, IndexedBase, Sum, Symbol, exp, log, symbols

from smalltorch.engine.derive import Derivation, Monotone

n = Symbol("n", integer=True, positive=True)
i, j = symbols("i j", integer=True)
x, y, p = IndexedBase("x", real=True), IndexedBase("y", real=True), IndexedBase("p", nonnegative=True)
r, a = Symbol("r", real=True), Symbol("a", positive=True)

_I, _J = (i, 1, n), (j, 1, n)
_WEIGHTS = Eq(Sum(p[j], _J), 1)


def variance() -> Derivation:
    r"""$\sum_i p_i x_i^2-(\sum_i p_i x_i)^2=\frac12\sum_{ij}p_ip_j(x_i-x_j)^2$, for weights of sum 1."""
    d = Derivation("variance", scope="all n", given=[_WEIGHTS])
    d.start(Sum(p[i] * x[i] ** 2, _I) - Sum(p[i] * x[i], _I) ** 2)
    return d.eq(Sum(p[i] * p[j] * (x[i] - x[j]) ** 2, _I, _J) / 2, because="expand the squares").qed()


def pairs() -> Derivation:
    r"""$n\sum_i x_i^2-(\sum_i x_i)^2=\frac12\sum_{ij}(x_i-x_j)^2$."""
    d = Derivation("pairs", scope="all n").start(n * Sum(x[i] ** 2, _I) - Sum(x[i], _I) ** 2)
    return d.eq(Sum((x[i] - x[j]) ** 2, _I, _J) / 2, because="expand the squares").qed()


def cauchy_schwarz() -> Derivation:
    r"""$(\sum_i x_iy_i)^2\le\sum_i x_i^2\,\sum_i y_i^2$."""
    d = Derivation("cauchy-schwarz", scope="all n").start(Sum(x[i] * y[i], _I) ** 2)
    gap = Sum((x[i] * y[j] - x[j] * y[i]) ** 2, _I, _J) / 2
    return d.le(Sum(x[i] ** 2, _I) * Sum(y[i] ** 2, _I), because="Lagrange's identity", gap=gap).qed()


def jensen() -> Derivation:
    r"""$(\sum_i p_i x_i)^2\le\sum_i p_i x_i^2$, for weights of sum 1."""
    d = Derivation("jensen", scope="all n", given=[_WEIGHTS]).start(Sum(p[j] * x[j], _J) ** 2)
    gap = Sum(p[i] * p[j] * (x[i] - x[j]) ** 2, _I, _J) / 2
    return d.le(Sum(p[j] * x[j] ** 2, _J), because="the gap is the variance", gap=gap).qed()


def exp_above_its_tangent() -> Derivation:
    r"""$e^r\ge1+r$, for every real r."""
    d = Derivation("exp-above-its-tangent", scope="every real r").start(exp(r))
    return d.ge(1 + r, because="the gap is least at 0", by=Monotone(r, slope=exp(r) - 1)).qed()


def log_below_its_tangent() -> Derivation:
    r"""$\log a\le a-1$, for every a > 0."""
    d = Derivation("log-below-its-tangent", scope="every a > 0").start(log(a))
    return d.le(a - 1, because="the gap is least at 1", by=Monotone(a, slope=1 - 1 / a, at=1)).qed()
