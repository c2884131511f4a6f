"""Look for a sum of hypotheses, each times a number that is ≥ 0, that shows the sign of a difference.

The numbers come out of a linear program. Nothing here is trusted: the kernel checks the sum that is found.
"""

from collections.abc import Callable, Sequence

from sympy import Add, Dummy, Expr, Rational, S
from sympy.core.relational import Equality
from sympy.solvers.simplex import InfeasibleLPError, UnboundedLPError, lpmin

MOST = 12  # hypotheses that are tried together


def multipliers(
    difference: Expr, known: Sequence[Expr], sign: Callable[[Expr], str | None]
) -> tuple[list[Rational], Expr] | None:
    """Numbers λ ≥ 0 and a rest, with difference = Σ λ known + rest, in which each term is seen to be ≥ 0; or None.

        >>> from sympy import symbols
        >>> r, s, t = symbols("r s t", real=True)
        >>> multipliers(r - t, [r - s, s - t], lambda term: None)
        ([1, 1], 0)

    Args:
        difference: a polynomial in what counts as a variable here: symbols, entries, sums, and functions.
        known: expressions that are ≥ 0.
        sign: of a term, as `signs.sign` gives it.
    """
    if not known or len(known) > MOST:
        return None
    terms = [dict(reversed(term.as_coeff_Mul()) for term in Add.make_args(e)) for e in (difference, *known)]
    if not all(isinstance(number, Rational) for e in terms for number in e.values()):
        return None
    factors = [Dummy(f"λ{k}") for k in range(len(known))]
    demands = [factor >= 0 for factor in factors]
    left = {}
    for term in set().union(*terms):
        own, *others = (e.get(term, S.Zero) for e in terms)
        left[term] = own - Add(*[factor * other for factor, other in zip(factors, others, strict=True)])
        found = S.One if term == 1 else sign(term)
        if found in ("> 0", "≥ 0", 1):
            demands.append(left[term] >= 0)
        elif found in ("< 0", "≤ 0"):
            demands.append(left[term] <= 0)
        elif left[term].free_symbols or left[term] != 0:
            demands.append(Equality(left[term], 0))
    demands = [demand for demand in demands if demand is not S.true]
    if S.false in demands:
        return None
    try:
        _, point = lpmin(Add(*factors), demands)
    except (InfeasibleLPError, UnboundedLPError):
        return None
    values = {factor: S(point.get(factor, 0)) for factor in factors}
    return [values[factor] for factor in factors], Add(*[e.xreplace(values) * term for term, e in left.items()])
