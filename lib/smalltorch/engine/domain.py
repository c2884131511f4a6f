"""What may enter a derivation: expressions that are defined wherever their symbols may be.

Known functions only, each with its domain; sums and products over ranges of integers that are not reversed; no floats,
infinities or cases; no inverses or functions of what does not commute. What cannot be seen to be defined is refused.
"""

from collections.abc import Callable, Mapping
from typing import Any

from sympy import (
    Abs,
    Add,
    Derivative,
    Dummy,
    Expr,
    Float,
    I,
    Indexed,
    IndexedBase,
    Integral,
    KroneckerDelta,
    Max,
    Min,
    Mul,
    NumberSymbol,
    Piecewise,
    Pow,
    Product,
    Rational,
    S,
    Subs,
    Sum,
    Symbol,
    SympifyError,
    arg,
    asinh,
    atan,
    binomial,
    ceiling,
    conjugate,
    cos,
    cosh,
    cot,
    coth,
    csc,
    csch,
    exp,
    factorial,
    floor,
    gamma,
    im,
    log,
    re,
    sec,
    sech,
    sin,
    sinh,
    sympify,
    tan,
    tanh,
)
from sympy import sign as sgn
from sympy.core.function import AppliedUndef

from smalltorch.engine.display import text
from smalltorch.engine.refusal import StepError
from smalltorch.engine.sums import is_plain_index

_EVERYWHERE = (exp, sin, cos, sinh, cosh, Abs, sgn, conjugate, re, im)
_OF_REALS = (tanh, sech, atan, asinh, floor, ceiling, Max, Min)
_NONZERO: Mapping[object, Callable[[Expr], Expr]] = {  # what must not be 0
    log: lambda u: u,
    arg: lambda u: u,
    tan: cos,
    sec: cos,
    cot: sin,
    csc: sin,
    coth: sinh,
    csch: sinh,
}


def expression(given: Any) -> Expr:
    """A SymPy expression of what an author wrote, as far as its form goes.

    Raises:
        StepError: if it is none, or has floats, infinities, cases, free Dummies, or entries that do not commute.
    """
    try:
        expr = sympify(given, strict=True)
    except SympifyError:
        raise StepError(f"expected an expression of SymPy or an integer, got {given!r}") from None
    if not isinstance(expr, Expr):
        raise StepError(f"expected an expression, got {given!r}")
    if expr.has(Float, S.NaN, S.ComplexInfinity, S.Infinity, S.NegativeInfinity, Piecewise):
        raise StepError(f"floats, infinities and cases are not admitted: {expr}")
    for symbol in expr.atoms(Symbol):
        if type(symbol) not in (Symbol, Dummy):
            raise StepError(f"{symbol} is a {type(symbol).__name__}; expected a plain symbol")
        if symbol.is_finite is False or any(name.startswith("extended") for name in symbol._assumptions_orig):
            raise StepError(f"{symbol} may be infinite; floats, infinities and cases are not admitted")
    if any(isinstance(s, Dummy) for s in expr.free_symbols):
        raise StepError(f"a free Dummy would be shown as if it were a symbol: {expr}")
    if any(not entry.base.label.is_commutative for entry in expr.atoms(Indexed)):
        raise StepError("entries commute, whatever is declared of their base; use functions")
    return expr


def check(e: Expr, known: Any) -> None:
    """Refuse what is not seen to be defined wherever the symbols are as declared, and as `known`, a `Context`, says.

    Raises:
        StepError: naming the part, and what is missing.
    """
    if e in (S.NaN, S.ComplexInfinity):
        raise StepError("a value is not defined: it is divided by 0, for instance")
    if isinstance(e, Symbol | Rational | NumberSymbol | IndexedBase) or e is I:
        return
    if isinstance(e, Sum | Product):
        _check_sum(e, known)
        return
    if isinstance(e, Derivative | Subs | Integral):
        raise StepError(f"{text(e)} was not resolved")
    for part in e.args:
        if isinstance(part, Expr):
            check(part, known)
    if isinstance(e, Add | Mul | AppliedUndef | KroneckerDelta):
        return
    if isinstance(e, Indexed):
        if not all(index.is_integer for index in e.indices):
            raise StepError(f"the indices of {text(e)} must be integers")
        return
    if isinstance(e, Pow):
        _check_power(e, known)
        return
    if not e.is_commutative:
        raise StepError(f"{text(e)}: functions of what does not commute are not admitted")
    _check_function(e, known)


def _check_sum(e: Sum | Product, known: Any) -> None:
    function = e.function
    limits = list(e.limits)
    while limits:  # outermost first: an inner range may depend on an outer index
        limit = limits.pop()
        if len(limit) != 3:
            raise StepError(f"{text(e)} has no range")
        index, lo, hi = limit
        if not (is_plain_index(index) or isinstance(index, Dummy)) or not (lo.is_integer and hi.is_integer):
            raise StepError(f"{index} must run over integers, and be declared integer and no more")
        check(lo, known)
        check(hi, known)
        if not known.is_nonnegative(hi - lo + 1):
            raise StepError(f"the range of {index} from {text(lo)} to {text(hi)} may be reversed")
        place, known = known.inside(index, lo, hi)
        function = function.xreplace({index: place})
        limits = [tuple(end.xreplace({index: place}) for end in inner) for inner in limits]
    check(function, known)


def _check_power(e: Pow, known: Any) -> None:
    if not e.is_commutative and not (e.exp.is_integer and e.exp.is_nonnegative):
        raise StepError(f"{text(e)}: what does not commute need not have an inverse, also where it is not 0")
    if not known.is_nonnegative(e.exp) and not known.is_nonzero(e.base):
        raise StepError(f"the denominator {text(e.base)} may be zero; declare it")


def _check_function(e: Expr, known: Any) -> None:
    if isinstance(e, _EVERYWHERE):
        return
    if isinstance(e, _OF_REALS):
        if not all(map(known.is_real, e.args)):
            raise StepError(f"{text(e)} is defined for reals only, and {text(e.args[0])} is not seen to be real")
    elif e.func in _NONZERO:
        denominator = _NONZERO[e.func](e.args[0])
        if not known.is_nonzero(denominator):
            raise StepError(f"{text(e)} is not defined where {text(denominator)} is 0, and that may be zero")
    elif isinstance(e, gamma):
        if not known.is_positive(e.args[0]):
            raise StepError(f"{text(e)} has poles, and {text(e.args[0])} is not seen to be > 0")
    elif isinstance(e, factorial | binomial):
        for part in e.args:
            if not part.is_integer or not known.is_nonnegative(part):
                raise StepError(f"{text(e)} is defined for integers ≥ 0, and {text(part)} is not seen to be one")
    else:
        raise StepError(f"{text(e)}: the engine does not know where {e.func.__name__} is defined")
