"""Search for counterexamples in small values. One explains a failure, and stops a conclusion; none proves nothing."""

from collections.abc import Iterable, Mapping

from sympy import Expr, Rational, S, Symbol

from smalltorch.engine.binders import Range
from smalltorch.engine.display import text
from smalltorch.engine.interval import Unknown, enclose, sign_of_number
from smalltorch.engine.refusal import StepError
from smalltorch.engine.sums import Given, Usable
from smalltorch.engine.witness import points

# The signs of left less right at which a relation does not hold.
BROKEN = {"=": ("> 0", "< 0"), "≤": ("> 0",), "<": ("> 0", "= 0"), "≥": ("< 0",), ">": ("< 0", "= 0")}


def refute(
    left: Expr,
    relation: str,
    right: Expr,
    facts: Iterable[Usable],
    ranges: Mapping[Symbol, Range] | None = None,
    draws: int = 24,
) -> str | None:
    """Small values that meet the hypotheses among the facts and break `left relation right`, as text; None if none is.

        >>> x = Symbol("x", real=True)
        >>> refute(x, "≤", x**2, [])
        'left = 7/128, right = 49/16384, x = 7/128'

    Sizes are 1 to 3, `ranges` those of free indices. The sides are compared exactly, or in intervals that keep apart.
    The draws are the same every time.
    """
    given = [fact for fact in facts if isinstance(fact, Given)]
    if not (left.is_commutative and right.is_commutative):
        return None
    try:
        for values, (a, b) in points(given, ranges or {}, (left, right), draws):
            if _sign(a - b) in BROKEN[relation]:
                shown = {text(name): value for name, value in values.items()} | {"left": a, "right": b}
                return ", ".join(f"{name} = {text(value)}" for name, value in sorted(shown.items()))
    except (StepError, TypeError, ValueError, ZeroDivisionError, RecursionError):  # SymPy meets what it does not expect
        return None
    return None


def _sign(difference: Expr) -> str | None:
    """The sign of a number; of a complex one, only whether it is 0."""
    if isinstance(difference, Rational) or difference.is_extended_real:
        return sign_of_number(difference)
    if not difference.is_number or difference.has(S.NaN, S.ComplexInfinity, S.Infinity, S.NegativeInfinity):
        return None
    try:
        return "> 0" if abs(enclose(difference, {})).a > 0 else None
    except Unknown:
        return None
