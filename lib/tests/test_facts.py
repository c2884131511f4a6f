"""Textbook facts: each derives as one would write it; its near miss, another constant, sign or range, is refused."""

import pytest
from sympy import (
    Abs,
    Derivative,
    E,
    Eq,
    Function,
    IndexedBase,
    Integral,
    KroneckerDelta,
    Lambda,
    Le,
    Max,
    Min,
    Ne,
    Piecewise,
    Rational,
    Sum,
    Symbol,
    cos,
    cosh,
    exp,
    factorial,
    log,
    sin,
    sqrt,
    symbols,
    tanh,
)

from smalltorch.engine import derive, lemmas
from smalltorch.engine.derive import Cases, Derivation, Increasing, Induction, Monotone, StepError, for_all

n, d, m = symbols("n d m", integer=True, positive=True)
N = Symbol("N", integer=True, nonnegative=True)
i, j, k, l = symbols("i j k l", integer=True)  # noqa: E741
I, J, K = (i, 1, n), (j, 1, n), (k, 1, n)  # noqa: E741
a, b, beta, lam, Delta = symbols("a b beta lambda Delta", positive=True)
r, s, t, u, v, c, M, g = symbols("r s t u v c M g", real=True)
x, y, S_, w, q, key = (IndexedBase(name, real=True) for name in ("x", "y", "s", "w", "q", "e"))
p, theta = IndexedBase("p", nonnegative=True), IndexedBase("theta", real=True)
A, B, p_ = IndexedBase("A", real=True), IndexedBase("B", real=True), Symbol("p_", nonnegative=True)


def D(start, *given, **options) -> Derivation:
    return Derivation("fact", scope="a fact", given=given, **options).start(start)


def lemma(name, start, *given, **options) -> Derivation:
    return Derivation(name, scope="a lemma", given=given, **options).start(start)


def turned(vector, position, index):
    """Plane `index` of a vector, turned by its angle at a position."""
    angle = position * theta[index]
    first, second = vector[2 * index - 1], vector[2 * index]
    return first * cos(angle) - second * sin(angle), first * sin(angle) + second * cos(angle)


def score(query, at_query, vector, at_key):
    planes = zip(turned(query, at_query, k), turned(vector, at_key, k), strict=True)
    return Sum(sum(one * other for one, other in planes), (k, 1, d))


def tangent():
    """exp r ≥ 1 + r, with equality at 0 only."""
    return lemma("exp-above-its-tangent", exp(r)).ge(1 + r, "least at 0", by=Monotone(r, exp(r) - 1)).qed()


def rope_plane(wrong=0):
    angle, other = s * v, t * v
    one = (a * cos(angle) - b * sin(angle)) * (r * cos(other) - u * sin(other))
    two = (a * sin(angle) + b * cos(angle)) * (r * sin(other) + u * cos(other))
    offset = (t - s + wrong) * v
    return D(one + two).eq(a * (r * cos(offset) - u * sin(offset)) + b * (r * sin(offset) + u * cos(offset)), "offset")


def rope_score(wrong=0):
    return D(score(q, s, key, t)).eq(score(q, 0, key, t - s + wrong), "plane by plane")


def rope_norm(wrong=1):
    return D(score(q, s, q, s)).eq(Sum(q[2 * k - 1] ** 2 + wrong * q[2 * k] ** 2, (k, 1, d)), "plane by plane")


def geometric(last=1):
    return D(Sum(r**i, (i, 0, n - 1)), Ne(1 - r, 0)).eq(
        (1 - r ** (n + 1 - last)) / (1 - r), "induction", by=Induction(n)
    )


def gaussian_moments(two=2):
    mu = Function("mu", real=True)
    stein = [Eq(mu(0), 1), for_all(N, Eq(mu(N + 1), (2 * N + 1) * mu(N)))]
    return D(mu(N), *stein).eq(factorial(2 * N) / (two**N * factorial(N)), "induction", by=Induction(N, base=0))


def adam(wrong=0):
    mean = Function("mean", real=True)
    moving = [Eq(mean(0), 0), for_all(N, Eq(mean(N + 1), beta * mean(N) + (1 - beta) * g))]
    return D(mean(N), *moving).eq((1 - beta ** (N + wrong)) * g, "induction", by=Induction(N, base=0))


def unrolled(wrong=0):
    mean = Function("mean", real=True)
    moving = [Eq(mean(0), 0), for_all(N, Eq(mean(N + 1), beta * mean(N) + (1 - beta) * x[N + 1]))]
    total = (1 - beta) * Sum(beta ** (N - i + wrong) * x[i], (i, 1, N))
    return D(mean(N), *moving).eq(total, "induction", by=Induction(N, base=0))


def online_softmax(wrong=0):
    length, top = Function("l", real=True), Function("m", real=True)
    step = length(n) * exp(top(n) - top(n + 1)) + exp(S_[n + 1] - top(n + 1))
    given = [Eq(length(1), exp(S_[1] - top(1))), for_all(n, Eq(length(n + 1), step))]
    return D(length(n), *given).eq(Sum(exp(S_[i] - top(n + wrong)), I), "induction", by=Induction(n))


def above_the_largest(wrong=0):
    given = [Eq(S_[k], M), for_all(j, Le(S_[j], M))]
    others = Sum((1 - KroneckerDelta(j, k)) ** 2 * exp(S_[j]), J)
    return D(exp(M), *given, ranges={k: (1, n)}).le(Sum(exp(S_[j]), J) - wrong, "one of them", gap=others)


def log_sum_exp(factor=1):
    given = [for_all(j, Le(S_[j], M))]
    gap = Sum(exp(M) - exp(S_[j]), J)
    return D(log(Sum(exp(S_[j]), J)), *given).le(M + log(factor * n), "exp grows", by=Increasing(exp, gap))


def collision(wrong=0):
    pairs = Sum((p[i] - p[j]) ** 2, I, J) / 2
    return D(n * Sum(p[i] ** 2, I), Eq(Sum(p[j], J), 1)).ge(1 + wrong, "pairs", gap=pairs)


def performer(two=2):
    expected = Function("E", real=True)
    moment = Eq(expected(exp(Sum(w[i] * (q[i] + key[i]), I))), exp(Sum((q[i] + key[i]) ** 2, I) / two))
    norms = exp(-Sum(q[i] ** 2, I) / 2) * exp(-Sum(key[i] ** 2, I) / 2)
    chain = D(norms * expected(exp(Sum(w[i] * (q[i] + key[i]), I))), moment)
    return chain.eq(exp(Sum(q[i] * key[i], I)), "the moment generating function")


def flops(wrong=0):
    per_layer = 24 * n * d**2 + 4 * n**2 * d
    return D(Sum(per_layer, (l, 1, m))).eq(m * (24 * n * d**2 + (4 + wrong) * n**2 * d), "every layer the same")


def low_rank(wrong=1):
    W, A, B = (IndexedBase(name, real=True) for name in "WAB")
    rank = (l, 1, m)
    left = Sum((W[i, j] + Sum(B[i, l] * A[l, j], rank)) * x[j], J)
    return D(left).eq(Sum(W[i, j] * x[j], J) + wrong * Sum(B[i, l] * Sum(A[l, j] * x[j], J), rank), "distribute")


def binary_entropy(sign=-1):
    entropy = -a * log(a) - (1 - a) * log(1 - a)
    chain = D(Derivative(entropy, (a, 2)), a < 1).eq(sign / (a * (1 - a)), "differentiate twice")
    return chain.le(0, "both factors are positive")


def uniform_error(twelve=12):
    return D(Integral(r**2 / Delta, (r, -Delta / 2, Delta / 2))).eq(Delta**2 / twelve, "the antiderivative")


def chinchilla(wrong=0):
    """Along N = N* e^u, D = D* e^(-u), where the terms a and b of the loss balance: r a = s b."""
    alpha, gamma_ = symbols("alpha gamma", positive=True)
    given = [tangent().at({r: -alpha * u}), tangent().at({r: gamma_ * u}), Eq(b, alpha * a / gamma_)]
    gap = a * (exp(-alpha * u) - 1 + alpha * u) + b * (exp(gamma_ * u) - 1 - gamma_ * u)
    return D(a * exp(-alpha * u) + b * exp(gamma_ * u), *given).ge(a + b + wrong, "two tangents", gap=gap)


def gibbs(wrong=0):
    P, Q = IndexedBase("P", positive=True), IndexedBase("Q", positive=True)
    given = [Eq(Sum(P[i], I), 1), Eq(Sum(Q[i], I), 1), tangent().at({r: log(Q[i] / P[i])}, i)]
    gap = Sum(P[i] * (Q[i] / P[i] - 1 - log(Q[i] / P[i])), I)
    return D(Sum(P[i] * (log(P[i]) - log(Q[i])), I), *given).ge(wrong, "log t ≤ t - 1", gap=gap)


def label_smoothing(wrong=0):
    L = Sum(exp(x[k]), K)
    smooth = (1 - a) * KroneckerDelta(i, j) + a / n
    chain = D(-Sum(smooth * (x[i] - log(L)), I), ranges={j: (1, n)})
    return chain.eq((1 - a) * (log(L) - x[j]) + a * (log(L) - Sum(x[i], I) / (n + wrong)), "one hot, and uniform")


def curvature(wrong=0):
    Z = Sum(exp(t * S_[i]), I)
    moments = [Sum(S_[i] ** power * exp(t * S_[i]), I) / Z for power in (1, 2)]
    pairs = Sum((S_[i] - S_[j]) ** 2 * exp(t * S_[i]) * exp(t * S_[j]), I, J) / (2 * Z**2)
    return (
        D(Derivative(log(Z), (t, 2))).eq(moments[1] - moments[0] ** 2 + wrong, "a variance").ge(0, "pairs", gap=pairs)
    )


def shift(wrong=0):
    shifted = exp(S_[i] + c) / Sum(exp(S_[k] + c), K)
    return D(shifted).eq(exp(S_[i] + wrong) / Sum(exp(S_[k]), K), "cancel")


def harmonic(wrong=0):
    given = tangent().at({r: log(n / (n + 1))}, n)
    gain = n / (n + 1) - 1 - log(n / (n + 1))
    return D(Sum(1 / i, I), given).le(1 + log(n) - wrong, "induction", by=Induction(n, gain=gain))


def projection(wrong=1):
    second = IndexedBase("C", real=True)
    white = for_all(l, i, j, Eq(second[l, i, j], KroneckerDelta(i, j) / m))
    return D(Sum(second[l, i, j] * x[i] * x[j], I, J, (l, 1, m)), white).eq(wrong * Sum(x[i] ** 2, I), "white rows")


def decay(wrong=0):
    weight = Function("w", real=True)
    given = for_all(N, Eq(weight(N + 1), (1 - a * lam) * weight(N)))
    return D(weight(N), given).eq((1 - a * lam) ** (N + wrong) * weight(0), "induction", by=Induction(N, base=0))


def accept(wrong=0):
    return D(a * Min(1, b / a)).le(b - wrong, "the lesser", gap=a * (b / a - Min(1, b / a)))


def rejection(wrong=1):
    return D(Min(r, t) + wrong * Max(r - t, 0)).eq(r, "either is the lesser")


def linear_attention(wrong=1):
    Q, K_, V = (IndexedBase(name, real=True) for name in "QKV")
    dims = (l, 1, d)
    left = Sum(Q[i, l] * Sum(K_[j, l] * V[j, k], J), dims)
    return D(left).eq(wrong * Sum(Sum(Q[i, l] * K_[j, l], dims) * V[j, k], J), "exchange the sums")


def tanh_below_one(wrong=0):
    return D(tanh(r) ** 2).le(1 - wrong, "a reciprocal square", gap=1 / cosh(r) ** 2)


def numbers(wrong=0):
    chain = D(sqrt(2) + 0 * r).gt(1 + wrong, "intervals")
    D(E + r**2 - r**2).gt(2 + wrong, "intervals").qed()
    return chain


def triangle(wrong=1):
    return D(Abs(r + t)).le(Abs(r) + wrong * Abs(t), "either sign")


def index_shift(wrong=0):
    return D(Sum(x[i + 1], (i, 0, n - 1))).eq(Sum(x[i], (i, 1, n + wrong)), "shift the index")


def split_off(wrong=0):
    return D(Sum(x[i], (i, 1, n + 1))).eq(x[1] + Sum(x[i], (i, 2, n)) + x[n + 1 - wrong], "first and last")


def telescope(wrong=0):
    return D(Sum(x[i + 1], I) - Sum(x[i], I)).eq(x[n + 1] - x[1 + wrong], "all others cancel")


def added(weight=1):
    """Hypotheses added: r ≥ s and s ≥ t give r ≥ t."""
    return D(r + u, Le(s, r), Le(t, s)).ge(weight * t + u, "added")


def scaled(weight=2):
    return D(2 * Sum(x[i], I), Le(Sum(x[i], I), a * b)).le(weight * a * b, "twice the hypothesis")


def bernoulli(wrong=0):
    step = Induction(N, base=0, factor=1 + p_)
    return D((1 + p_) ** N).ge(1 + (N + wrong) * p_, "induction", by=step)


def growth(wrong=0):
    """What grows by at most 1 + p in each step has grown by at most (1 + p)ᴺ after N."""
    h = Function("h", nonnegative=True)
    step = Induction(N, base=0, factor=1 + p_)
    return D(h(N), for_all(k, Le(h(k + 1), (1 + p_ + wrong) * h(k)))).le((1 + p_) ** N * h(0), "induction", by=step)


def factorial_above(wrong=0):
    step = Induction(n, factor=2 + wrong, gain=(n - 1 - wrong) * factorial(n))
    return D((2 + wrong) ** (n - 1)).le(factorial(n), "induction", by=step)


def harmonic_below_log(wrong=1):
    below = lemmas.log_below_its_tangent().at({lemmas.a: n / (n + 1)})
    step = Induction(n, gain=n / (n + 1) - wrong - log(n / (n + 1)))
    return D(Sum(1 / i, I), below).le(1 + log(n), "induction", by=step)


def stirling(wrong=1):
    below = lemmas.log_below_its_tangent().at({lemmas.a: (n + 1) / n})
    step = Induction(n, gain=n * ((n + 1) / n - 1 - log((n + 1) / n)))
    return D(Sum(log(i), I), below).ge(n * log(n) - wrong * n, "induction", by=step)


def rectified(wrong=0):
    return D(Abs(Max(r, 0) - Max(s, 0))).le(Abs(r - s) - wrong, "in each case", by=Cases(r >= 0, s >= 0))


def in_cases(wrong=-1):
    return D(Piecewise((r, r >= 0), (wrong * r, True))).eq(Abs(r), "both cases", by=Cases(r >= 0))


def pairs_of_coordinates(wrong=0):
    return D(Sum(x[2 * k - 1] + x[2 * k], K)).eq(Sum(x[i], (i, 1, 2 * n - wrong)), "induction", by=Induction(n))


def exchanged(start=j):
    """Σ over j ≤ i, summed the other way round."""
    return D(Sum(Sum(A[i, j], (j, 1, i)), I)).eq(Sum(Sum(A[i, j], (i, start, n)), J), "the same pairs")


def causal_rows(wrong=1):
    """Masked attention's rows have sum 1, each up to its own token."""
    each = for_all((i, 1, n), Eq(Sum(A[i, j], (j, 1, i)), 1))
    return D(Sum(Sum(A[i, j] * y[i], (j, 1, i)), I), each).eq(wrong * Sum(y[i], I), "rows")


def triangle_of_pairs(wrong=1):
    return D(Sum(Sum(1, (j, 1, i)), I)).eq(n * (n + wrong) / 2, "induction", by=Induction(n))


def orthogonal_keeps_the_norm(wrong=1):
    """QᵀQ = 1: a product of two entries is the sum that the hypothesis gives."""
    orthogonal = for_all((j, 1, n), (k, 1, n), Eq(Sum(A[i, j] * A[i, k], I), wrong * KroneckerDelta(j, k)))
    return D(Sum(Sum(A[i, j] * x[j], J) ** 2, I), orthogonal).eq(Sum(x[j] ** 2, J), "orthogonal")


def root_of_a_square(least=0):
    return D(sqrt(t**2), Le(least, t)).eq(t, "t is not below 0")


def geometric_given(other=1):
    return D(Sum(t**i, (i, 0, N)), Ne(t, other)).eq((1 - t ** (N + 1)) / (1 - t), "induction", by=Induction(N, base=0))


def tanh_as_exponentials(two=2):
    return D(tanh(r)).eq(2 / (1 + exp(-two * r)) - 1, "2σ(2r) − 1")


def layer_norm(wrong=0):
    """Σ z² = n, from the definition of σ²."""
    variance = Eq(a**2, Sum((x[k] - u) ** 2, K) / n)
    return D(Sum(((x[i] - u) / a) ** 2, I), variance).eq(n - wrong, "the definition of σ²")


def one_letter_twice(wrong=0):
    return D(Sum(Sum(x[i], I) * y[i], I)).eq(Sum(x[j], J) * Sum(y[i] + wrong, I), "the inner sum is a factor")


def given_of_a_sum(sign=1):
    return D(a * Sum(x[i], I), Le(0, sign * Sum(x[i], I))).ge(0, "given")


def cauchy_schwarz_of_a_product(wrong=1):
    cs = lemmas.cauchy_schwarz().at({lemmas.x: Lambda(k, A[i, k]), lemmas.y: Lambda(k, B[k, j])}, i, j)
    return D(Sum(A[i, k] * B[k, j], K) ** 2, cs).le(Sum(A[i, k] ** 2, K) * Sum(wrong * B[k, j] ** 2, K), "the lemma")


def norm_of_a_sum(wrong=1):
    """‖x + y‖ ≤ ‖x‖ + ‖y‖, from Cauchy–Schwarz."""
    squares, others = (Sum(base[i] ** 2, I) for base in (lemmas.x, lemmas.y))
    inner = lemma("inner", Sum(lemmas.x[i] * lemmas.y[i], I), lemmas.cauchy_schwarz())
    inner = inner.le(sqrt(squares) * sqrt(others), "squares", by=Increasing(2)).qed()
    total = D(sqrt(Sum((lemmas.x[i] + lemmas.y[i]) ** 2, I)), inner)
    return total.le(sqrt(squares) + wrong * sqrt(others), "squares", by=Increasing(2))


def sherman_morrison(wrong=1):
    """(1 + u vᵀ)⁻¹ x = x − u (v·x)/(1 + v·u)."""
    dot = Sum(y[k] * w[k], K)
    solution = x[j] - wrong * w[j] * Sum(y[k] * x[k], K) / (1 + dot)
    matrix = KroneckerDelta(i, j) + w[i] * y[j]
    return D(Sum(matrix * solution, J), Ne(1 + dot, 0), ranges={i: (1, n)}).eq(x[i], "multiply out")


FACTS = [
    (norm_of_a_sum, (Rational(1, 2),)),
    (sherman_morrison, (2,)),
    (added, (2,)),
    (scaled, (1,)),
    (bernoulli, (1,)),
    (growth, (1,)),
    (factorial_above, (1,)),
    (harmonic_below_log, (2,)),
    (stirling, (Rational(1, 2),)),
    (rectified, (1,)),
    (in_cases, (1,)),
    (pairs_of_coordinates, (1,)),
    (exchanged, (j + 1,)),
    (causal_rows, (2,)),
    (triangle_of_pairs, (2,)),
    (orthogonal_keeps_the_norm, (2,)),
    (root_of_a_square, (-1,)),
    (geometric_given, (2,)),
    (tanh_as_exponentials, (1,)),
    (layer_norm, (1,)),
    (one_letter_twice, (1,)),
    (given_of_a_sum, (-1,)),
    (cauchy_schwarz_of_a_product, (Rational(1, 2),)),
    (rope_plane, (1,)),
    (rope_score, (1,)),
    (rope_norm, (-1,)),
    (geometric, (0,)),
    (gaussian_moments, (3,)),
    (adam, (1,)),
    (unrolled, (1,)),
    (online_softmax, (1,)),
    (above_the_largest, (1,)),
    (log_sum_exp, (Rational(1, 2),)),
    (collision, (1,)),
    (performer, (1,)),
    (flops, (1,)),
    (low_rank, (-1,)),
    (binary_entropy, (1,)),
    (uniform_error, (6,)),
    (chinchilla, (1,)),
    (gibbs, (1,)),
    (label_smoothing, (1,)),
    (curvature, (-1,)),
    (shift, (1,)),
    (harmonic, (1,)),
    (projection, (-1,)),
    (decay, (1,)),
    (accept, (1,)),
    (rejection, (-1,)),
    (linear_attention, (-1,)),
    (tanh_below_one, (Rational(1, 100),)),
    (numbers, (1,)),
    (triangle, (Rational(1, 2),)),
    (index_shift, (1,)),
    (split_off, (1,)),
    (telescope, (1,)),
]


@pytest.mark.parametrize("fact", [fact for fact, _ in FACTS], ids=lambda fact: fact.__name__)
def test_a_fact_derives(fact):
    assert fact().qed().evidence.kind == "derived"


@pytest.mark.parametrize("fact, wrong", FACTS, ids=lambda value: getattr(value, "__name__", ""))
def test_its_near_miss_is_refused(fact, wrong, monkeypatch):
    monkeypatch.setattr(derive, "SECONDS", 3)
    monkeypatch.setattr(derive, "refute", lambda *_: None)
    with pytest.raises(StepError):
        fact(*wrong)
