r"""Print SymPy expressions as LaTeX, with terms and factors in the order of handwriting.

    >>> from sympy import IndexedBase, symbols
    >>> n, i, j, p, t = *symbols("n i j"), IndexedBase("p"), IndexedBase("t")
    >>> print(typeset(-t[i] + Sum(t[j] * p[j], (j, 1, n)) / 2))
    \frac{1}{2} \sum_{j=1}^{n} p_{j} t_{j} - t_{i}

What is added comes before what is taken away, short factors before long ones, and numbers before sums; S_{ij} has no
comma. The order is all that changes.
"""

import re
from typing import Any

from sympy import Add, Basic, Expr, Indexed, Mul, Pow, Sum
from sympy.core.function import FunctionClass
from sympy.printing.latex import LatexPrinter
from sympy.printing.precedence import PRECEDENCE

LOWERED = re.compile(r"(.*)_\{([^{}]*)\}")  # a name with an index


class _Printer(LatexPrinter):  # type: ignore[misc]
    def _as_ordered_terms(self, expr: Add, order: Any = None) -> list[Basic]:
        """Positive terms first."""
        return sorted(expr.as_ordered_terms(), key=lambda term: bool(term.as_coeff_Mul()[0].is_negative))

    def _print_Mul(self, expr: Expr) -> str:  # SymPy gives it negative powers, too
        if not isinstance(expr, Mul) or not expr.is_commutative:
            return super()._print_Mul(expr)
        number, rest = expr.as_coeff_Mul()
        if number.is_Rational and not number.is_Integer and rest.has(Sum):  # ½ Σ …, not a sum over 2
            sign, factors = "- " if number.is_negative else "", Mul(*_ordered(rest), evaluate=False)
            return f"{sign}{self._print(abs(number))} {self._factor(factors)}"
        ordered = _ordered(rest)
        return super()._print_Mul(Mul(*([] if number == 1 else [number]), *ordered, evaluate=False))

    def _factor(self, expr: Basic) -> str:
        return (
            super()._print_Mul(expr)
            if isinstance(expr, Mul)
            else self.parenthesize(expr, PRECEDENCE["Mul"], strict=True)
        )

    def _print_Indexed(self, expr: Indexed, exp: str | None = None) -> str:
        base, indices = self._print(expr.base), [self._print(index) for index in expr.indices]
        joint = "" if all(len(index) == 1 and index.isalpha() for index in indices) else ","
        below = joint.join(indices)
        if lowered := LOWERED.fullmatch(base):  # an index of the name itself comes first
            base, below = lowered[1], f"{lowered[2]},{below}"
        printed = f"{base}_{{{below}}}"
        return f"{printed}^{{{exp}}}" if exp is not None else printed

    def _print_Sum(self, expr: Sum) -> str:
        signs = "".join(
            rf"\sum_{{{self._print(index)}={self._print(lo)}}}^{{{self._print(hi)}}} "
            for index, lo, hi in reversed(expr.limits)
        )
        term = self._print(expr.function)
        return signs + (rf"\left({term}\right)" if isinstance(expr.function, Add) or term.startswith("-") else term)


def _ordered(product: Basic) -> list[Basic]:
    """Numbers, then what is short, then sums of terms, exponentials, and last sums over an index."""
    return sorted(product.as_ordered_factors(), key=_length)


def _length(factor: Basic) -> tuple[int, int]:
    base = factor.base if isinstance(factor, Pow) else factor
    kinds = [base.is_Number, base.is_Symbol or isinstance(base, Indexed), isinstance(base, Add), not base.has(Sum)]
    return (*kinds, True).index(True), len(base.indices) if isinstance(base, Indexed) else 0


def typeset(expr: Basic | FunctionClass) -> str:
    """An expression, or the name of a function, in LaTeX, without the sign |, which would end a cell of a table."""
    shown = _Printer({"order": "none"}).doprint(expr)
    return shown.replace(r"\left|", r"\left\vert ").replace(r"\right|", r"\right\vert ")
