"""Domain checks: an expression enters a derivation only if it is defined for all values of its symbols.

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
from sympy.core.parameters import global_parameters
from sympy.core.relational import Relational

from smalltorch.engine.display import text
from smalltorch.engine.refusal import StepError
from smalltorch.engine.sums import is_plain_index

_PROPERTIES = {  # that a symbol may be declared with
    *(
        "commutative",
        "complex",
        "finite",
        "infinite",
        "real",
        "rational",
        "integer",
        "even",
        "odd",
        "prime",
        "composite",
    ),
    *("positive", "negative", "nonpositive", "nonnegative", "zero", "nonzero", "irrational", "imaginary"),
    *("extended_real", "extended_positive", "extended_negative", "extended_nonnegative", "extended_nonpositive"),
    "extended_nonzero",
}
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
    if not global_parameters.evaluate:
        raise StepError("SymPy is told not to evaluate, and then its rules do not hold; leave `with evaluate(False)`")
    try:
        expr = sympify(given, strict=True)
    except SympifyError:
        raise StepError(f"expected an expression of SymPy or an integer, got {given!r}") from None
    if not isinstance(expr, Expr):
        raise StepError(f"expected an expression, got {given!r}")
    if expr.has(Float, S.NaN, S.ComplexInfinity, S.Infinity, S.NegativeInfinity):
        raise StepError(f"floats and infinities are not admitted: {expr}")
    for cases in expr.atoms(Piecewise):
        if cases.args[-1][1] is not S.true or not all(isinstance(c, Relational) for _, c in cases.args[:-1]):
            raise StepError(f"the cases of {expr} must be relations, and the last one True")
    for symbol in expr.atoms(Symbol):
        if type(symbol) not in (Symbol, Dummy):
            raise StepError(f"{symbol} is a {type(symbol).__name__}; expected a plain symbol")
        if unknown := set(symbol._assumptions_orig) - _PROPERTIES:
            raise StepError(f"{symbol} was declared {', '.join(sorted(unknown))}, which means nothing here")
        if symbol.is_finite is False or any(name.startswith("extended") for name in symbol._assumptions_orig):
            raise StepError(f"{symbol} may be infinite; floats and infinities are not admitted")
    for limit in (limit for q in expr.atoms(Sum, Product) for limit in q.limits):
        if len(limit) != 3:
            raise StepError(f"the sum over {limit[0]} has no range: {expr}")
        if not (is_plain_index(limit[0]) or isinstance(limit[0], Dummy)):
            raise StepError(f"{limit[0]} must run over integers, and be declared integer and no more")
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
    if isinstance(e, Piecewise):
        for part in (part for value, condition in e.args for part in (value, *condition.args)):
            check(part, known)
            if not known.is_real(part):
                raise StepError(f"{text(e)}: cases are of real numbers, and {text(part)} is not seen to be real")
        return
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
        index, lo, hi = limits.pop()
        if not (lo.is_integer and hi.is_integer):
            raise StepError(f"{index} must run over integers, and from {text(lo)} to {text(hi)} need not be integers")
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
