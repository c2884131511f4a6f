"""Bound names: what is the same up to them is told from what is not, by exact evaluation at small sizes."""

from random import Random

import pytest
from sympy import Dummy, Indexed, IndexedBase, Product, Rational, S, Sum, Symbol, exp, log, symbols

from smalltorch.engine.binders import alike, rename_bound, substitute, write_out
from smalltorch.engine.sums import Given, match, normal_form

n = Symbol("n", integer=True, positive=True)
i, j, k = INDICES = symbols("i j k", integer=True)
x, A, B = IndexedBase("x", positive=True), IndexedBase("A", positive=True), IndexedBase("B", positive=True)


def nested(random: Random, depth: int):
    """A random nest of sums, products and functions over few names, so that they collide; an index may stay free."""
    if depth == 0:
        one, other = random.choice(INDICES), random.choice(INDICES)
        return random.choice((A[one, other], B[other, one], x[one]))
    inner = nested(random, depth - 1)
    index = random.choice(INDICES)
    kinds = (
        lambda: Sum(inner, (index, 1, random.choice((n, index_or_n(random, index))))),
        lambda: Product(1 + inner, (index, 1, n)),
        lambda: inner * nested(random, depth - 1),
        lambda: random.choice((exp, log))(1 + inner),
    )
    return random.choice(kinds)()


def index_or_n(random: Random, index):
    return random.choice([other for other in INDICES if other != index] + [n])


def transposed(expr):
    return expr.replace(lambda e: isinstance(e, Indexed) and len(e.indices) == 2, lambda e: e.base[e.indices[::-1]])


def renamed(expr, random: Random):
    """The same with other letters for bound indices, which may be those of others that are bound elsewhere."""
    fresh = rename_bound(expr)
    letters = [Symbol(letter, integer=True) for letter in "abcdefgh"]
    random.shuffle(letters)
    dummies = sorted((d for d in fresh.atoms(Dummy)), key=lambda d: d.dummy_index)
    return fresh.xreplace(dict(zip(dummies, letters, strict=False)))


def value(expr, size: int):
    """Exactly, with a different prime-like rational for each entry; the free indices at 1, 2 and 3."""
    put = {n: S(size), i: S(1), j: S(2), k: S(3)}
    written = write_out(substitute(expr, put))
    entries = sorted(written.atoms(Indexed), key=str)
    numbers = {e: Rational(7 * e.indices[0] ** 2 + 3 * e.indices[-1] + 1, 5 + ord(str(e.base)) % 7) for e in entries}
    return written.xreplace(numbers).evalf(30)


@pytest.mark.parametrize("seed", range(60))
def test_the_same_up_to_names_has_the_same_values(seed):
    random = Random(seed)
    expr = nested(random, 3)
    other = renamed(expr, random)
    assert alike(expr) == alike(other)
    turned = transposed(expr)
    if any(abs(value(expr, size) - value(turned, size)) > 1e-20 for size in (1, 2, 3)):
        assert alike(expr) != alike(turned)
        assert match(expr, Given(S.true), turned) is None


@pytest.mark.parametrize("seed", range(40))
def test_equal_normal_forms_have_equal_values(seed):
    random = Random(seed)
    expr, other = nested(random, 2), nested(random, 2)
    for one, two in ((expr, other), (expr, transposed(expr)), (expr * other, other * expr)):
        try:
            same = normal_form(one - two) == 0
        except ValueError:  # outside of the normal form's domain
            continue
        if same:
            assert all(abs(value(one, size) - value(two, size)) < 1e-20 for size in (1, 2, 3))


def test_what_sympy_takes_for_the_same():
    rows, columns = (Sum(log(Sum(exp(entry), (j, 1, n))), (i, 1, n)) for entry in (B[i, j], B[j, i]))
    assert rows.as_dummy() == columns.as_dummy()  # if this fails, SymPy is mended, and docs/as_dummy.md can go
    assert alike(rows) != alike(columns) and value(rows, 2) != value(columns, 2)


def test_dependent_ranges_are_kept_apart():
    below, above = Sum(A[i, j], (j, 1, i), (i, 1, n)), Sum(A[i, j], (i, j, n), (j, 1, n))
    assert normal_form(below - above) == 0 and normal_form(below - Sum(A[i, j], (i, 1, n), (j, 1, n))) != 0
    assert normal_form(Sum(1, (j, i, n), (i, 1, n)) - Sum(1, (j, 1, i), (i, 1, n))) != 0  # equal, and not seen
    for expr in (below, above, Sum(x[i] * x[j], (j, i + 1, n + 1), (i, 1, n)), Sum(x[j], (j, 1, i), (i, 1, n)) * below):
        assert all(abs(value(expr, size) - value(normal_form(expr), size)) < 1e-20 for size in (1, 2, 3))
