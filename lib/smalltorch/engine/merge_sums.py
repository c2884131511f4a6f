"""Merge sums over the same range into one, after shifting ranges that differ by a fixed number of terms."""

from collections.abc import Callable, Iterator

from sympy import Add, Expr, Indexed, Mul, S, Sum, expand_mul
from sympy.core.function import AppliedUndef

from smalltorch.engine.sums import is_range

Limits = tuple[tuple[Expr, ...], ...]


def regroupings(expr: Expr, simpler: Callable[[Expr], Expr]) -> Iterator[Expr]:
    """Forms of a sum of sums that have its value: as it is; merged; ends split off and merged; shifted first.

    `simpler` simplifies the summand of a merged sum.
    """
    yield expr
    if expr.has(Sum):
        for arranged in (expr, _aligned(expr), _aligned(_shifted(expr)), _aligned(_shifted(expr, by_subscript=True))):
            yield merged(arranged, simpler)


def merged(expr: Expr, simpler: Callable[[Expr], Expr]) -> Expr:
    """One sum for each range; factors before a sum go into it."""
    collected: dict[Limits, Expr] = {}
    rest = S.Zero
    for term in Add.make_args(expr):
        coefficient, total = _parts(term)
        if total is None:
            rest += term
        else:
            collected[total.limits] = collected.get(total.limits, S.Zero) + coefficient * total.function
    sums = ((limits, simpler(summand)) for limits, summand in collected.items())
    return Add(rest, *[Sum(summand, *limits) for limits, summand in sums if summand != 0])


def _parts(term: Expr) -> tuple[Expr, Sum | None]:
    """A term as a factor and a sum, if it has exactly one, whose indices the factor does not have."""
    sums = [f for f in Mul.make_args(term) if isinstance(f, Sum)]
    if len(sums) != 1 or not term.is_commutative:
        return term, None
    others = Mul(*[f for f in Mul.make_args(term) if f is not sums[0]])
    if others.free_symbols & {limit[0] for limit in sums[0].limits}:
        return term, None
    return others, sums[0]


def _single(expr: Expr) -> list[Sum]:
    return [total for term in Add.make_args(expr) if (total := _parts(term)[1]) is not None and len(total.limits) == 1]


def _aligned(expr: Expr) -> Expr:
    """Terms split off, so that sums whose ranges differ at an end by a number have the same range."""
    groups: list[list[Sum]] = []
    for total in _single(expr):
        _, lo, hi = total.limits[0]
        for group in groups:
            _, first_lo, first_hi = group[0].limits[0]
            if (lo - first_lo).is_Integer and (hi - first_hi).is_Integer:
                group.append(total)
                break
        else:
            groups.append([total])
    replaced: dict[Sum, Expr] = {}
    for group in groups:
        _, lo, hi = group[0].limits[0]
        lo += max(int(t.limits[0][1] - lo) for t in group)
        hi += min(int(t.limits[0][2] - hi) for t in group)
        if is_range(lo, hi):
            replaced |= {total: _split(total, lo, hi) for total in group}
    return expand_mul(expr.xreplace(replaced))


def _split(total: Sum, lo: Expr, hi: Expr) -> Expr:
    index, first, last = total.limits[0]
    before = [total.function.xreplace({index: first + k}) for k in range(int(lo - first))]
    after = [total.function.xreplace({index: hi + k}) for k in range(1, int(last - hi) + 1)]
    return Add(*before, Sum(total.function, (index, lo, hi)), *after)


def _shifted(expr: Expr, by_subscript: bool = False) -> Expr:
    """Every sum over one index from 0 on; or so that its least subscript index + c has c = 0."""
    replaced: dict[Sum, Expr] = {}
    for total in _single(expr):
        index, lo, hi = total.limits[0]
        by = lo
        if by_subscript:
            subscripts = [s - index for e in total.function.atoms(Indexed, AppliedUndef) for s in e.args[-1:]]
            by = -min((c for c in subscripts if c.is_Integer), default=S.Zero)
        replaced[total] = Sum(total.function.xreplace({index: index + by}), (index, lo - by, hi - by))
    return expr.xreplace(replaced)
