"""The sign of an expression, read off its structure: squares, products, sums, hypotheses; never numerics."""

from collections.abc import Iterable, Mapping

from sympy import (
    Abs,
    Add,
    Expr,
    Indexed,
    KroneckerDelta,
    Mul,
    NumberSymbol,
    Pow,
    Rational,
    S,
    Sum,
    Symbol,
    exp,
    log,
)
from sympy.core.function import AppliedUndef
from sympy.core.relational import Relational
from sympy.core.symbol import Dummy

from smalltorch.engine.sums import Fact, Range, index_expressions, instances, is_range, normal_form, rename_bound

POSITIVE, NONNEGATIVE, ZERO, NONPOSITIVE, NEGATIVE = "> 0", "≥ 0", "= 0", "≤ 0", "< 0"
_OPPOSITE = {POSITIVE: NEGATIVE, NONNEGATIVE: NONPOSITIVE, ZERO: ZERO, NONPOSITIVE: NONNEGATIVE, NEGATIVE: POSITIVE}

_STATES = {">": {POSITIVE}, ">=": {POSITIVE, NONNEGATIVE, ZERO}, "<": {NEGATIVE}, "<=": {NEGATIVE, NONPOSITIVE, ZERO}}
_MEANS = {">": POSITIVE, ">=": NONNEGATIVE, "<": NEGATIVE, "<=": NONPOSITIVE}


def sign(expr: Expr, hypotheses: Iterable[Fact] = (), ranges: Mapping[Expr, Range] | None = None) -> str | None:
    """`> 0`, `≥ 0`, `= 0`, `≤ 0`, `< 0`, or None where the structure does not show a sign.

    Rules: a square of a real is ≥ 0; a product multiplies signs; terms of one sign add up; a sum has its summand's
    sign if its range is not reversed; symbols and entries have the sign they were declared with; a difference has the
    sign that a hypothesis states. A number is compared exactly. `ranges`: the ranges that indices are known to lie in.

        >>> from sympy import symbols
        >>> x, y = symbols("x y", real=True)
        >>> sign(x**2 + 1), sign(-(x - y)**2), sign(x**2 - 2*x + 1)       # the last square is not seen
        ('> 0', '≤ 0', None)
    """
    hypotheses, ranges = tuple(hypotheses), dict(ranges or {})
    declared = _sign_of_leaf(expr)
    if declared is not None:
        return declared
    if isinstance(expr, Add | Symbol | Indexed) and (stated := _stated_sign(expr, hypotheses, ranges)):
        return stated
    if isinstance(expr, Mul):
        return _product([sign(a, hypotheses, ranges) for a in expr.args])
    if isinstance(expr, Add):
        return _total([sign(a, hypotheses, ranges) for a in expr.args])
    if isinstance(expr, Pow):
        return _power(expr, sign(expr.base, hypotheses, ranges))
    if isinstance(expr, Sum):
        return _sum(expr, hypotheses, ranges)
    return None


def _sign_of_leaf(expr: Expr) -> str | None:
    if isinstance(expr, Rational):
        return POSITIVE if expr > 0 else NEGATIVE if expr < 0 else ZERO
    if isinstance(expr, NumberSymbol) or (isinstance(expr, exp) and expr.args[0].is_real):
        return POSITIVE  # π, e, and exponentials
    if isinstance(expr, Abs | KroneckerDelta):
        return NONNEGATIVE
    if isinstance(expr, Symbol | Indexed | AppliedUndef):
        for assumption, result in (
            ("positive", POSITIVE),
            ("negative", NEGATIVE),
            ("nonnegative", NONNEGATIVE),
            ("nonpositive", NONPOSITIVE),
        ):
            if getattr(expr, f"is_{assumption}"):
                return result
    return None


def _stated_sign(expr: Expr, hypotheses: tuple[Fact, ...], ranges: dict[Expr, Range]) -> str | None:
    """The sign that a hypothesis a ≥ b (…) gives to an instance of a − b or of b − a."""
    for fact in hypotheses:
        difference = rename_bound(fact.statement.lhs - fact.statement.rhs)
        stated = _MEANS[fact.statement.rel_op]
        for values in instances(fact.free, index_expressions(expr) if fact.free else (), fact.within, ranges):
            instance = difference.xreplace(values)
            try:
                if normal_form(expr - instance) == 0:
                    return stated
                if normal_form(expr + instance) == 0:
                    return _OPPOSITE[stated]
            except ValueError:  # outside the normal form's domain: nothing is known
                continue
    return None


def states(relation: Relational, found: str | None) -> bool:
    """Whether a sign of left − right makes the relation true."""
    return found in _STATES[relation.rel_op]


def _product(signs: list[str | None]) -> str | None:
    if ZERO in signs:
        return ZERO
    if None in signs:
        return None
    strict = all(s in (POSITIVE, NEGATIVE) for s in signs)
    result = POSITIVE if strict else NONNEGATIVE
    negatives = sum(s in (NEGATIVE, NONPOSITIVE) for s in signs)
    return _OPPOSITE[result] if negatives % 2 else result


def _total(signs: list[str | None]) -> str | None:
    signs = [s for s in signs if s != ZERO]
    if all(s in (POSITIVE, NONNEGATIVE) for s in signs):
        return POSITIVE if POSITIVE in signs else NONNEGATIVE if signs else ZERO
    if all(s in (NEGATIVE, NONPOSITIVE) for s in signs):
        return NEGATIVE if NEGATIVE in signs else NONPOSITIVE
    return None


def _power(expr: Pow, base: str | None) -> str | None:
    nonzero = base in (POSITIVE, NEGATIVE)
    if base == POSITIVE and expr.exp.is_real:
        return POSITIVE
    if not expr.exp.is_nonnegative and not nonzero:  # the power may be undefined
        return None
    if expr.exp.is_even and is_real(expr.base):
        return POSITIVE if nonzero else NONNEGATIVE
    if expr.exp.is_odd or (base == NONNEGATIVE and expr.exp.is_positive):
        return base
    return None


def _sum(expr: Sum, hypotheses: tuple[Fact, ...], ranges: dict[Expr, Range]) -> str | None:
    summand, nonempty = expr.function, True
    for index, lo, hi in expr.limits:
        if not is_range(lo, hi):
            return None
        nonempty = nonempty and bool((hi - lo + 1).is_positive)
        position = lo + Dummy(index.name, integer=True, nonnegative=True)
        summand, ranges = summand.xreplace({index: position}), ranges | {position: (lo, hi)}
    inner = sign(summand, hypotheses, ranges)
    if inner in (POSITIVE, NEGATIVE) and not nonempty:
        return NONNEGATIVE if inner == POSITIVE else NONPOSITIVE
    return inner


def is_real(expr: Expr, hypotheses: Iterable[Fact] = ()) -> bool:
    """Whether the structure shows that `expr` is real where it is defined. (SymPy does not know that a delta is.)"""
    if isinstance(expr, KroneckerDelta):
        return True
    if isinstance(expr, Sum):
        return is_real(expr.function, hypotheses)
    if isinstance(expr, Add | Mul | exp):
        return all(is_real(a, hypotheses) for a in expr.args)
    if isinstance(expr, Pow):
        whole = expr.exp.is_integer and is_real(expr.base, hypotheses)
        return bool(whole) or (is_real(expr.exp, hypotheses) and is_nonnegative(expr.base, hypotheses))
    if isinstance(expr, log):
        return is_positive(expr.args[0], hypotheses)
    known = {e: Dummy(real=True) for e in expr.atoms(KroneckerDelta, Sum) if is_real(e, hypotheses)}
    return bool(expr.xreplace(known).is_real)


def is_nonnegative(expr: Expr, hypotheses: Iterable[Fact] = (), ranges: Mapping[Expr, Range] | None = None) -> bool:
    """Whether the structure of `expr` shows that it is at least 0."""
    return sign(expr, hypotheses, ranges) in (POSITIVE, NONNEGATIVE, ZERO)


def is_positive(expr: Expr, hypotheses: Iterable[Fact] = (), ranges: Mapping[Expr, Range] | None = None) -> bool:
    """Whether the structure of `expr` shows that it is greater than 0."""
    return expr is not S.Zero and sign(expr, hypotheses, ranges) == POSITIVE
