r"""Symbolic differentiation by explicit rules: sums, products, powers, a table of functions, and
$\partial x_i/\partial x_j=\delta_{ij}$.

Whatever has no rule is refused: an undefined function, |x|, max and the like with their kinks, factors that do not
commute, and a variable that is no variable: an integer, or the value of a function.
"""

from collections.abc import Callable, Mapping

from sympy import (
    Add,
    Expr,
    Indexed,
    KroneckerDelta,
    Mul,
    Pow,
    S,
    Sum,
    Symbol,
    asinh,
    atan,
    cos,
    cosh,
    cot,
    exp,
    log,
    sin,
    sinh,
    tan,
    tanh,
)

from smalltorch.engine import signs
from smalltorch.engine.binders import rename_bound
from smalltorch.engine.refusal import StepError

_DERIVATIVES: Mapping[object, Callable[[Expr], Expr]] = {
    exp: exp,
    log: lambda u: 1 / u,
    sin: cos,
    cos: lambda u: -sin(u),
    tan: lambda u: 1 + tan(u) ** 2,
    cot: lambda u: -1 - cot(u) ** 2,
    sinh: cosh,
    cosh: sinh,
    tanh: lambda u: 1 - tanh(u) ** 2,
    atan: lambda u: 1 / (1 + u**2),
    asinh: lambda u: 1 / (1 + u**2) ** S.Half,
}


def differentiate(expr: Expr, x: Symbol | Indexed, is_real: Callable[[Expr], bool] = signs.is_real) -> Expr:
    """The derivative of `expr` by x, a symbol that is no integer, or an entry x[j]; all other names are constant.

    `is_real`: whether an expression is seen to be real. Logarithms and powers have a derivative off their branch cut
    only, and along the real line.

        >>> from sympy import IndexedBase, symbols
        >>> i, j, n = symbols("i j n", integer=True)
        >>> x = IndexedBase("x")
        >>> differentiate(Sum(x[i]**2, (i, 1, n)), x[j]).function
        2*KroneckerDelta(_i, j)*x[_i]

    It holds wherever it is defined; whoever uses it checks that.

    Raises:
        StepError: for an x that is no variable, and where there is no rule.
    """
    if not isinstance(x, Symbol | Indexed) or not x.is_commutative or (isinstance(x, Symbol) and x.is_integer):
        raise StepError(f"there is no derivative by {x}: expected a symbol that is no integer, or an entry")
    return _derivative(rename_bound(expr), x, is_real)


def _derivative(e: Expr, x: Symbol | Indexed, is_real: Callable[[Expr], bool]) -> Expr:
    if not e.is_commutative:
        raise StepError(f"{e} does not commute, and has no derivative here")
    if not depends(e, x):
        return S.Zero
    if isinstance(e, Symbol):
        return S.One
    if isinstance(e, Indexed):
        return _entry(e, x)
    if isinstance(e, Add):
        return Add(*[_derivative(a, x, is_real) for a in e.args])
    if isinstance(e, Mul):
        return Add(*[Mul(*e.args[:k], _derivative(a, x, is_real), *e.args[k + 1 :]) for k, a in enumerate(e.args)])
    if isinstance(e, Pow):
        base, exponent = e.base, e.exp
        inner = _derivative(base, x, is_real)
        if inner != 0 and not exponent.is_integer:
            _demand_off_cut(e, base, is_real)
        if not depends(exponent, x):
            return exponent * base ** (exponent - 1) * inner
        return e * (log(base) * _derivative(exponent, x, is_real) + exponent * inner / base)
    if isinstance(e, Sum) and not any(depends(end, x) for limit in e.limits for end in limit[1:]):
        inner = _derivative(e.function, x, is_real)
        return Sum(inner, *e.limits) if inner != 0 else S.Zero
    if e.func in _DERIVATIVES:
        if isinstance(e, log):
            _demand_off_cut(e, e.args[0], is_real)
        return _DERIVATIVES[e.func](e.args[0]) * _derivative(e.args[0], x, is_real)
    raise StepError(f"there is no rule for the derivative of {e} by {x}")


def _demand_off_cut(e: Expr, argument: Expr, is_real: Callable[[Expr], bool]) -> None:
    if not is_real(argument):
        raise StepError(f"{e} jumps where {argument} is real and below 0, and {argument} is not seen to be real")


def depends(e: Expr, x: Symbol | Indexed) -> bool:
    """Whether x, or an entry of its base, stands in `e`."""
    if isinstance(x, Symbol):
        return x in e.free_symbols
    return any(entry.base == x.base for entry in e.atoms(Indexed)) or x.base.label in e.free_symbols - _labels(e)


def _labels(e: Expr) -> set[Symbol]:
    return {entry.base.label for entry in e.atoms(Indexed)}


def _entry(e: Indexed, x: Symbol | Indexed) -> Expr:
    """δ of each pair of indices."""
    if not isinstance(x, Indexed) or e.base != x.base or len(e.indices) != len(x.indices):
        raise StepError(f"there is no rule for the derivative of {e} by {x}")
    if any(depends(index, x) for index in e.indices):
        raise StepError(f"an index of {e} depends on {x}")
    return Mul(*[KroneckerDelta(i, j) for i, j in zip(e.indices, x.indices, strict=True)])
