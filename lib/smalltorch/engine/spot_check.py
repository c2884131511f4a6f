"""Spot checks: what SymPy's `simplify` calls 0 is enclosed in intervals at random admissible points."""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from random import Random
from typing import Any

from sympy import Basic, Expr, I, Indexed, Rational, Symbol
from sympy.core.function import AppliedUndef
from sympy.core.relational import Equality, Relational, Unequality

from smalltorch.engine.binders import Range
from smalltorch.engine.interval import Unknown, enclose
from smalltorch.engine.sums import Usable, index_expressions, instances

POINTS, DRAWS = 4, 200  # of so many draws, so many points must decide
WIDTH = 1e-20  # of an enclosure that is taken to be 0
_TRUE = {">": lambda x: x.a > 0, ">=": lambda x: x.b >= 0, "<": lambda x: x.b < 0, "<=": lambda x: x.a <= 0}


def vanishes(expr: Expr, facts: Iterable[Usable] = (), ranges: Mapping[Expr, Range] | None = None) -> str:
    """Why `expr` is not seen to be 0 at random points as declared that meet the inequalities; "" if it is.

        >>> from sympy import sin, cos, symbols
        >>> x = symbols("x", real=True)
        >>> vanishes(sin(x)**2 + cos(x)**2 - 1), vanishes(sin(x))[:12]
        ('', 'it is not 0 ')

    The points are the same every time.
    """
    random, facts, decided = Random(0), list(facts), 0
    leaves = sorted(leaves_of(expr), key=str)
    for _ in range(DRAWS):
        point = {leaf: draw(leaf, random) for leaf in leaves}
        if not _admissible(expr, point, facts, ranges or {}):
            continue
        try:
            found = enclose(expr, point)
        except Unknown:
            continue
        size = abs(found)
        if size.a > 0:
            return "it is not 0 at " + ", ".join(f"{leaf} = {value}" for leaf, value in point.items())
        decided += size.b < WIDTH
        if decided == POINTS or not leaves:
            return ""
    return f"interval arithmetic reaches {decided} of {POINTS} admissible points only"


def leaves_of(expr: Basic) -> set[Expr]:
    """Symbols, entries and values of undefined functions: what takes a value of its own."""
    if isinstance(expr, Symbol | Indexed | AppliedUndef):
        return {expr}
    return set().union(*map(leaves_of, expr.args)) if expr.args else set()


def places_of(leaf: Expr) -> tuple[Expr, ...]:
    """The indices of an entry, what a function is of; of a symbol nothing."""
    return leaf.indices if isinstance(leaf, Indexed) else leaf.args


def kind_of(leaf: Expr) -> object:
    """The base of an entry, the function of a value, or the symbol itself."""
    return leaf.base if isinstance(leaf, Indexed) else leaf.func if isinstance(leaf, AppliedUndef) else leaf


def put(expr: Basic, values: Mapping[Expr, Expr]) -> Any:
    """The expression with values in place of its leaves; what an undefined function is of stays as it is."""
    if expr in values:
        return values[expr]
    if isinstance(expr, Symbol | Indexed | AppliedUndef) or not expr.args:
        return expr
    return expr.func(*[put(a, values) for a in expr.args])


def draw(leaf: Expr, random: Random) -> Expr:
    """A small rational number, or an integer, or a complex number, that has the properties declared of the leaf."""
    magnitude = Rational(Fraction(random.randint(1, 24), random.randint(1, 8)))
    if leaf.is_integer:
        magnitude = Rational(random.randint(1, 5))
    if leaf.is_negative or leaf.is_nonpositive:
        return -magnitude
    if leaf.is_nonnegative:
        return magnitude
    signed = magnitude * random.choice((-1, 1))
    return signed if leaf.is_real else signed + I * Rational(random.randint(-9, 9), 4)


def _admissible(expr: Expr, point: Mapping[Expr, Expr], facts: list[Usable], ranges: Mapping[Expr, Range]) -> bool:
    """Whether a point meets the inequalities and ranges that speak of nothing else."""
    relations = [
        (index - end, op) for index, limits in ranges.items() for end, op in zip(limits, (">=", "<="), strict=True)
    ]
    for fact in facts:
        if isinstance(fact.statement, Relational) and not isinstance(fact.statement, Equality | Unequality):
            for choice in instances(fact.free, index_expressions(expr) if fact.free else ()):
                difference = (fact.statement.lhs - fact.statement.rhs).xreplace(choice)
                relations.append((difference, fact.statement.rel_op))
    for difference, relation in relations:
        if leaves_of(difference) <= point.keys():
            try:
                if not _TRUE[relation](enclose(difference, point)):
                    return False
            except (Unknown, AttributeError):  # it is not real here, for instance
                return False
    return True
