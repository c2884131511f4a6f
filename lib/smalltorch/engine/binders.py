"""Bound names: whatever renames, compares, or puts values under sums and products, does it here.

SymPy's `xreplace` puts values in for bound indices too, and its `as_dummy` gives nested indices one name: to it
Σᵢ log Σⱼ B[i, j] and Σᵢ log Σⱼ B[j, i] are the same. So the engine uses neither on sums whose indices have not been
renamed here.
"""

from collections.abc import Mapping
from typing import Any

from sympy import Add, Basic, Dummy, Expr, Indexed, IndexedBase, Lambda, Mul, Product, S, Sum, Symbol

Range = tuple[Expr, Expr]
Ranges = dict[Symbol, Range]
Limit = tuple[Symbol, Expr, Expr]  # as SymPy writes a range in a sum

_BY_DEPTH: list[Dummy] = []  # the names of bound indices in `alike`, made once so that two results can be compared


def rename_bound(expr: Expr) -> Expr:
    """The same expression with fresh bound indices, so that whatever is substituted into it cannot be captured."""
    return expr.replace(lambda e: isinstance(e, Sum | Product), fresh_indices)


def fresh_indices(expr: Sum | Product) -> Expr:
    """One sum or product with fresh indices of its own; those within it stay."""
    names: dict[Symbol, Symbol] = {}
    limits: list[Limit] = []
    for index, lo, hi in reversed(expr.limits):  # outermost first: an inner bound may depend on an outer index
        lo, hi = lo.xreplace(names), hi.xreplace(names)
        names[index] = Dummy(index.name, integer=True)
        limits.insert(0, (names[index], lo, hi))
    return expr.func(expr.function.xreplace(names), *limits)


def alike(expr: Expr) -> Expr:
    """The expression with every bound index named by how deep the sums within its own are nested.

        >>> from sympy import log, symbols
        >>> i, j, n, B = *symbols("i j n", integer=True), IndexedBase("B")
        >>> rows, columns = (Sum(log(Sum(entry, (j, 1, n))), (i, 1, n)) for entry in (B[i, j], B[j, i]))
        >>> alike(rows) == alike(rows.xreplace({i: j, j: i})), alike(rows) == alike(columns)
        (True, False)

    Two expressions that differ only in the names of bound indices have the same.
    """
    return _alike(rename_bound(expr))[0] if expr.has(Sum, Product) else expr


def _alike(e: Basic) -> tuple[Any, int]:
    if not e.has(Sum, Product):
        return e, 0
    if not isinstance(e, Sum | Product):
        parts = [_alike(a) for a in e.args]
        return e.func(*[part for part, _ in parts]), max(depth for _, depth in parts)
    function, depth = _alike(e.function)
    limits = [(index, _alike(lo), _alike(hi)) for index, lo, hi in e.limits]
    depth = max(depth, *(end[1] for _, lo, hi in limits for end in (lo, hi)))
    while len(_BY_DEPTH) < depth + len(limits):
        _BY_DEPTH.append(Dummy(f"_{len(_BY_DEPTH)}", integer=True))
    names = {index: _BY_DEPTH[depth + k] for k, (index, _, _) in enumerate(limits)}
    ends = [(names[index], lo[0].xreplace(names), hi[0].xreplace(names)) for index, lo, hi in limits]
    return e.func(function.xreplace(names), *ends), depth + len(limits)


def substitute(expr: Expr, values: Mapping[Symbol | IndexedBase, Expr]) -> Expr:
    """Replace symbols by expressions, and bases by Lambdas of their indices, at once and without capturing indices."""
    bases = {b: v for b, v in values.items() if isinstance(b, IndexedBase)}
    symbols = {s: v for s, v in values.items() if not isinstance(s, IndexedBase)}
    places = {s: Dummy() for s in symbols}  # what is put in is not searched for the bases

    def entry(q: Indexed) -> Expr:
        value, indices = bases[q.base], [fill(index) for index in q.indices]
        return (
            rename_bound(value.expr).xreplace(dict(zip(value.variables, indices, strict=True)))
            if isinstance(value, Lambda)
            else value[indices]
        )

    def fill(e: Expr) -> Expr:
        return e.xreplace({q: entry(q) for q in e.atoms(Indexed) if q.base in bases})

    return fill(rename_bound(expr).xreplace(places)).xreplace({place: symbols[s] for s, place in places.items()})


def write_out(expr: Basic, at_most: int = 60) -> Any:
    """The same with sums and products between numbers written out, unless they have more than `at_most` terms."""
    if isinstance(expr, Sum | Product):
        *inner, (index, lo, hi) = ((i, write_out(lo), write_out(hi)) for i, lo, hi in expr.limits)
        if lo.is_Integer and hi.is_Integer and hi - lo < at_most:
            body = expr.func(expr.function, *inner) if inner else expr.function
            parts = [write_out(rename_bound(body).xreplace({index: S(v)})) for v in range(int(lo), int(hi) + 1)]
            return (Add if isinstance(expr, Sum) else Mul)(*parts)
        return expr.func(write_out(expr.function), *inner, (index, lo, hi))
    return expr.func(*map(write_out, expr.args)) if expr.has(Sum, Product) else expr


def bound_ranges(expr: Expr) -> Ranges:
    """The ranges of the bound indices of an expression that `rename_bound` has renamed."""
    return {index: (lo, hi) for e in expr.atoms(Sum, Product) for index, lo, hi in e.limits}
