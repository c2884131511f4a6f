"""Infer the sign of an expression from its structure and the hypotheses; of a number, by intervals."""

from collections.abc import Iterable, Mapping
from itertools import permutations

from sympy import (
    Abs,
    Add,
    Derivative,
    Expr,
    Indexed,
    Integral,
    KroneckerDelta,
    Max,
    Min,
    Mul,
    Piecewise,
    Pow,
    Product,
    S,
    Subs,
    Sum,
    Symbol,
    asinh,
    atan,
    binomial,
    cosh,
    exp,
    factorial,
    gamma,
    log,
    sinh,
    tanh,
)
from sympy.core.function import AppliedUndef
from sympy.core.relational import Relational
from sympy.core.symbol import Dummy

from smalltorch.engine.binders import Range, rename_bound
from smalltorch.engine.interval import sign_of_number
from smalltorch.engine.sums import Usable, Within, index_expressions, instances, is_range, normal_form

POSITIVE, NONNEGATIVE, ZERO, NONPOSITIVE, NEGATIVE = "> 0", "≥ 0", "= 0", "≤ 0", "< 0"
_OPPOSITE = {POSITIVE: NEGATIVE, NONNEGATIVE: NONPOSITIVE, ZERO: ZERO, NONPOSITIVE: NONNEGATIVE, NEGATIVE: POSITIVE}

_ODD = (tanh, sinh, asinh, atan)  # increasing on the whole line, and 0 at 0: they have their argument's sign
_INCREASING = (exp, log, *_ODD)

_STATES = {">": {POSITIVE}, ">=": {POSITIVE, NONNEGATIVE, ZERO}, "<": {NEGATIVE}, "<=": {NEGATIVE, NONPOSITIVE, ZERO}}
_MEANS = {">": POSITIVE, ">=": NONNEGATIVE, "<": NEGATIVE, "<=": NONPOSITIVE}


def sign(expr: Expr, hypotheses: Iterable[Usable] = (), ranges: Mapping[Expr, Range] | None = None) -> str | None:
    """`> 0`, `≥ 0`, `= 0`, `≤ 0`, `< 0`, or None where the structure does not show a sign.

    Rules: a square of a real is ≥ 0; a product multiplies signs; terms of one sign add up; a sum has its summand's
    sign if its range is not reversed; symbols and entries have the sign they were declared with; a difference has the
    sign that a hypothesis states; f(a) - f(b) has the sign of a - b if f increases; |u| is at least u and -u, and
    |u + v| at most |u| + |v|. A number is enclosed in an interval. `ranges`: those that indices are known to lie in.

        >>> from sympy import symbols
        >>> x, y = symbols("x y", real=True)
        >>> sign(x**2 + 1), sign(-(x - y)**2), sign(x**2 - 2*x + 1)       # the last square is not seen
        ('> 0', '≤ 0', None)
    """
    hypotheses, ranges = tuple(hypotheses), dict(ranges or {})
    if isinstance(expr, Derivative | Integral | Subs):  # to be carried out first
        return None
    if expr.is_number and not expr.has(Sum, Product):
        return sign_of_number(expr)
    declared = _sign_of_leaf(expr)
    if declared is not None:
        return declared
    if isinstance(expr, Add | Symbol | Indexed | AppliedUndef | Sum) and (
        stated := _stated_sign(expr, hypotheses, ranges)
    ):
        return stated
    if isinstance(expr, Mul):
        return _product([sign(a, hypotheses, ranges) for a in expr.args])
    if isinstance(expr, Add):
        total = _total([sign(a, hypotheses, ranges) for a in expr.args])
        return total or _difference(expr, hypotheses, ranges) or _with_absolute_values(expr, hypotheses, ranges)
    if isinstance(expr, Pow):
        return _power(expr, sign(expr.base, hypotheses, ranges))
    if isinstance(expr, Sum | Product):
        return _sum(expr, hypotheses, ranges)
    return _function(expr, hypotheses, ranges)


def _sign_of_leaf(expr: Expr) -> str | None:
    if isinstance(expr, exp) and expr.args[0].is_real:
        return POSITIVE
    if isinstance(expr, Abs | KroneckerDelta | Within):
        return POSITIVE if expr.is_positive else NONNEGATIVE
    if isinstance(expr, Symbol | Indexed | AppliedUndef) or (isinstance(expr, Add) and expr.is_integer):
        for assumption, result in (
            ("positive", POSITIVE),
            ("negative", NEGATIVE),
            ("nonnegative", NONNEGATIVE),
            ("nonpositive", NONPOSITIVE),
        ):
            if getattr(expr, f"is_{assumption}"):
                return result
    return None


def _function(expr: Expr, hypotheses: tuple[Usable, ...], ranges: dict[Expr, Range]) -> str | None:
    """The sign of a function's value, from that of its arguments."""
    signs = [sign(a, hypotheses, ranges) for a in expr.args]
    if isinstance(expr, exp | cosh):
        return POSITIVE if is_real(expr.args[0], hypotheses) else None
    if isinstance(expr, _ODD):
        return signs[0]
    if isinstance(expr, log):
        return sign(expr.args[0] - 1, hypotheses, ranges) if signs[0] == POSITIVE else None
    if isinstance(expr, Max | Min) and all(is_real(a, hypotheses) for a in expr.args):
        some, every = (any, all) if isinstance(expr, Max) else (all, any)
        if some(s == POSITIVE for s in signs):
            return POSITIVE
        if some(s in (POSITIVE, NONNEGATIVE, ZERO) for s in signs):
            return NONNEGATIVE
        return NONPOSITIVE if every(s in (NEGATIVE, NONPOSITIVE, ZERO) for s in signs) else None
    if isinstance(expr, factorial | binomial) and all(s in (POSITIVE, NONNEGATIVE, ZERO) for s in signs):
        return POSITIVE if isinstance(expr, factorial) else NONNEGATIVE
    return POSITIVE if isinstance(expr, gamma) and signs == [POSITIVE] else None


def _difference(expr: Add, hypotheses: tuple[Usable, ...], ranges: dict[Expr, Range]) -> str | None:
    """The sign of c f(a) - c f(b) for an increasing f, which is that of c (a - b); and of |u| - u, max - u, u - min."""
    if len(expr.args) != 2:
        return None
    for (c, first), (minus_c, second) in permutations([a.as_coeff_Mul() for a in expr.args]):
        if c < 0 and c == -minus_c and isinstance(second, Max) and first in second.args:
            return NONNEGATIVE
        if c > 0 and c == -minus_c and isinstance(second, Min) and first in second.args:
            return NONNEGATIVE
        if not isinstance(first, _INCREASING):
            continue
        if isinstance(first, exp) and minus_c * second == -c:  # 1 is exp(0)
            second, minus_c = exp(0, evaluate=False), -c
        arguments = [first.args[0], second.args[0]] if first.func == second.func and c == -minus_c else []
        defined = is_positive if isinstance(first, log) else is_real
        if arguments and all(defined(a, hypotheses) for a in arguments):
            found = sign(arguments[0] - arguments[1], hypotheses, ranges)
            return found if c > 0 or found is None else _OPPOSITE[found]
    return None


def _with_absolute_values(expr: Add, hypotheses: tuple[Usable, ...], ranges: dict[Expr, Range]) -> str | None:
    """≥ 0 where putting |u| + |v| for |u + v|, or -|u| for u, where that is subtracted, leaves something ≥ 0."""
    if not expr.has(Abs):
        return None
    kept = {a for a in expr.args if sign(a, hypotheses, ranges) in (POSITIVE, NONNEGATIVE)}
    bounded = Add(*kept)
    for term in set(expr.args) - kept:
        coefficient, rest = term.as_coeff_Mul()
        if not is_real(rest, hypotheses):
            return None
        terms = rest.args[0].args if isinstance(rest, Abs) and isinstance(rest.args[0], Add) else [rest]
        for t in terms:  # SymPy may not see that |u| of a u that is ≥ 0 is u, and would wrap it again and again
            bounded -= Abs(coefficient) * (t if is_nonnegative(t, hypotheses, ranges) else Abs(t))
    if bounded == expr:
        return None
    return NONNEGATIVE if is_nonnegative(bounded, hypotheses, ranges) else None


def _stated_sign(expr: Expr, hypotheses: tuple[Usable, ...], ranges: dict[Expr, Range]) -> str | None:
    """The sign that a hypothesis a ≥ b (…) gives to an instance of a − b or of b − a."""
    for fact in hypotheses:
        difference = rename_bound(fact.statement.lhs - fact.statement.rhs)
        stated = _MEANS[fact.statement.rel_op]
        for values in instances(fact.free, index_expressions(expr) if fact.free else (), fact.within, ranges):
            instance = difference.xreplace(values)
            try:
                for known, rest in ((stated, expr - instance), (_OPPOSITE[stated], expr + instance)):
                    left = normal_form(rest)
                    if left == 0:
                        return known
                    if left.is_Rational and (total := _total([known, sign(left)])):  # a - b + 1, where a ≥ b is known
                        return total
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


def _sum(expr: Sum | Product, hypotheses: tuple[Usable, ...], ranges: dict[Expr, Range]) -> str | None:
    summand, places = _placed(expr)
    if not all(is_range(lo, hi) for lo, hi in places.values()):
        return None
    nonempty = all((hi - lo + 1).is_positive for lo, hi in places.values())
    ranges = ranges | places
    inner = sign(summand, hypotheses, ranges)
    if isinstance(expr, Product):
        return inner if inner in (POSITIVE, NONNEGATIVE) else None
    if inner in (POSITIVE, NEGATIVE) and not nonempty:
        return NONNEGATIVE if inner == POSITIVE else NONPOSITIVE
    return inner


def _placed(expr: Sum | Product) -> tuple[Expr, dict[Expr, Range]]:
    """What is summed, with each index as its lower end + a number that is ≥ 0, and the ranges of these places."""
    summand, limits, places = expr.function, list(expr.limits), {}
    while limits:  # outermost first: an inner range may depend on an outer index
        index, lo, hi = limits.pop()
        place = lo + Dummy(index.name, integer=True, nonnegative=True)
        summand, places[place] = summand.xreplace({index: place}), (lo, hi)
        limits = [(i, *(end.xreplace({index: place}) for end in ends)) for i, *ends in limits]
    return summand, places


def is_real(expr: Expr, hypotheses: Iterable[Usable] = ()) -> bool:
    """Whether the structure shows that `expr` is real where it is defined. (SymPy does not know that a delta is.)"""
    hypotheses = tuple(hypotheses)
    if isinstance(expr, KroneckerDelta):
        return True
    if isinstance(expr, Sum | Product):
        return is_real(_placed(expr)[0], hypotheses)
    if isinstance(expr, Piecewise):
        return all(is_real(value, hypotheses) for value, _ in expr.args)
    if isinstance(expr, Add | Mul | exp):
        return all(is_real(a, hypotheses) for a in expr.args)
    if isinstance(expr, Pow):
        whole = expr.exp.is_integer and is_real(expr.base, hypotheses)
        return bool(whole) or (is_real(expr.exp, hypotheses) and is_nonnegative(expr.base, hypotheses))
    if isinstance(expr, log):
        return is_positive(expr.args[0], hypotheses)
    known = {e: Dummy(real=True) for e in expr.atoms(KroneckerDelta, Sum, Product) if is_real(e, hypotheses)}
    return bool(expr.xreplace(known).is_real)


def is_nonnegative(expr: Expr, hypotheses: Iterable[Usable] = (), ranges: Mapping[Expr, Range] | None = None) -> bool:
    """Whether the structure of `expr` shows that it is at least 0."""
    return sign(expr, hypotheses, ranges) in (POSITIVE, NONNEGATIVE, ZERO)


def is_positive(expr: Expr, hypotheses: Iterable[Usable] = (), ranges: Mapping[Expr, Range] | None = None) -> bool:
    """Whether the structure of `expr` shows that it is greater than 0."""
    return expr is not S.Zero and sign(expr, hypotheses, ranges) == POSITIVE
