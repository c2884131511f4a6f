"""Formulas as one writes them: what is added first, short factors first, and the same formula as before."""

import pytest
from sympy import Abs, Add, IndexedBase, KroneckerDelta, Mul, S, Sum, Symbol, exp, sqrt, symbols, tanh

from smalltorch.engine.typeset import typeset

n, d = symbols("n d", integer=True, positive=True)
i, j, k, a = symbols("i j k a", integer=True)
p, t, V, sub = (IndexedBase(name) for name in ("p", "t", "V", "v_b"))
r, w, x = symbols("r w x", real=True)
J, K, A_ = (j, 1, n), (k, 1, n), (a, 1, d)

SHOWN = [
    (-t[i] + Sum(t[j] * p[j], J), r"\sum_{j=1}^{n} p_{j} t_{j} - t_{i}"),
    (
        Sum(p[j] * p[k] * (V[j, a] - V[k, a]) ** 2, J, K, A_) / 2,
        r"\frac{1}{2} \sum_{a=1}^{d} \sum_{k=1}^{n} \sum_{j=1}^{n} p_{j} p_{k} \left(V_{ja} - V_{ka}\right)^{2}",
    ),
    (Sum((r - t[j]) * p[j], J), r"\sum_{j=1}^{n} p_{j} \left(r - t_{j}\right)"),
    (Sum(1 - t[j], J), r"\sum_{j=1}^{n} \left(1 - t_{j}\right)"),
    (Sum(-t[j], J), r"\sum_{j=1}^{n} \left(- t_{j}\right)"),
    (-Sum(p[j], J) / 3, r"- \frac{1}{3} \sum_{j=1}^{n} p_{j}"),
    ((Sum(p[j], J) + 1) / 2, r"\frac{1}{2} \sum_{j=1}^{n} p_{j} + \frac{1}{2}"),
    (Mul(S(1) / 2, Add(Sum(p[j], J), 1), evaluate=False), r"\frac{1}{2} \left(\sum_{j=1}^{n} p_{j} + 1\right)"),
    (2 * Sum(p[j], J) * Sum(t[k], K), r"2 \left(\sum_{j=1}^{n} p_{j}\right) \sum_{k=1}^{n} t_{k}"),
    ((n - 1) * exp(-r) / (1 + (n - 1) * exp(-r)), r"\frac{\left(n - 1\right) e^{- r}}{\left(n - 1\right) e^{- r} + 1}"),
    (p[i] * (KroneckerDelta(i, j) - p[j]), r"p_{i} \left(\delta_{i j} - p_{j}\right)"),
    ((p[i] + p[j]) * tanh(r), r"\left(p_{i} + p_{j}\right) \tanh{\left(r \right)}"),
    (sqrt(2) * r / 3, r"\frac{\sqrt{2} r}{3}"),
    (V[1, 2] ** 2, r"V_{1,2}^{2}"),
    (sub[i], r"v_{b,i}"),
    (IndexedBase("qbar")[i], r"\bar{q}_{i}"),
    (sub[1, 2], r"v_{b,1,2}"),
    (IndexedBase("Sigma_q")[i, j], r"\Sigma_{q,ij}"),
    (Abs(x) / 2, r"\frac{\left\vert {x}\right\vert }{2}"),
    (1 / (w**2 + w), r"\frac{1}{w^{2} + w}"),
    (-w * (w - 1), r"- w \left(w - 1\right)"),
    (Symbol("A", commutative=False) * Symbol("B", commutative=False), "A B"),
]


@pytest.mark.parametrize("expr, shown", SHOWN, ids=str)
def test_in_the_order_of_the_hand(expr, shown):
    assert typeset(expr) == shown


def test_factors_that_do_not_commute_keep_their_order():
    B, A = symbols("B A", commutative=False)
    assert typeset((A + B) * A) == r"\left(A + B\right) A" and typeset(A * (A + B)) == r"A \left(A + B\right)"
