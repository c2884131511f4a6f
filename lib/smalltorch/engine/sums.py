r"""A normal form of sums with symbolic bounds: it proves identities for all n.

SymPy's own simplification does not decide identities such as
$\sum_i\sum_j p_ip_j(x_i-x_j)^2/2=\sum_i p_ix_i^2-(\sum_i p_ix_i)^2$ for symbolic n. This module does, by
rewriting a polynomial in sums into one canonical expression:

1. products and powers of sums become multiple sums, each bound index with a fresh name;
2. numerators are expanded; negative powers and functions stay whole, as atoms;
3. Kronecker deltas are summed out;
4. declared sum rules, such as $\sum_j A_{ij}=1$, are applied, and a summand free of its index is counted;
5. each monomial falls into components that share no index, and each component takes the least of its renamings.

Factors that do not commute, such as matrices, keep their order throughout; they are symbols and functions declared so.

Equal results prove equality. Unequal results prove nothing. Ranges must be known not to be reversed. One that depends
on an index, such as j ≤ i, becomes the widest one with a factor `Within(i - j)` that is 1 within and 0 else. Other sums
are refused. The cost grows with k! for a component of k indices (k = 6: half a second).

Not seen here: what SymPy cancels when an expression is built, such as x/x; the point x = 0 is lost before any check.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import permutations, product
from typing import NamedTuple

from sympy import (
    Add,
    Basic,
    Derivative,
    Dummy,
    Expr,
    Function,
    Indexed,
    Integral,
    KroneckerDelta,
    Mul,
    Number,
    Pow,
    Product,
    S,
    Subs,
    Sum,
    Symbol,
    exp,
    expand,
    expand_log,
    log,
    sympify,
)
from sympy.concrete.expr_with_limits import ExprWithLimits
from sympy.core.function import AppliedUndef
from sympy.core.relational import Equality
from sympy.logic.boolalg import Boolean

from smalltorch.engine.binders import Limit, Range, Ranges, alike, rename_bound
from smalltorch.engine.readonly import ReadOnlyDict

# Names of canonical indices. They are Dummies, so that no symbol of a user can be equal to one of them, and made once,
# so that two normal forms can be compared. `_PRINTED` replaces them where two renamings are ordered by their text.
_CANONICAL = [Dummy(f"k{i}", integer=True) for i in range(10)]
AT_ONCE = 8  # terms that are split off a sum when n grows by 1
_PRINTED = {k: Symbol(f"__k{i}") for i, k in enumerate(_CANONICAL)}


class Within(Function):  # type: ignore[misc]
    """1 where its argument, an integer, is ≥ 0, and else 0: where a range depends on another index, what lies in it."""

    is_integer = is_nonnegative = True

    @classmethod
    def eval(cls, difference: Expr) -> Expr | None:
        return S(int(bool(difference >= 0))) if difference.is_Integer else None


class SumRule(NamedTuple):
    r"""The hypothesis $\sum_{w=lo}^{hi}$ `term` = `value`, for every value of the indices `free`."""

    term: Expr
    index: Symbol
    range: Range
    value: Expr
    free: tuple[Symbol, ...] = ()
    within: Mapping[Symbol, Range] = {}


@dataclass(frozen=True)
class Usable:
    """A statement that may be used, for all values of the indices `free` that have the properties declared of them.

    `within`: the ranges that some of these indices must lie in; `name`: the derivation that proved it, if one did.
    """

    statement: Boolean  # a relation, unless SymPy decides it when it is written down
    free: tuple[Symbol, ...] = ()
    within: Mapping[Symbol, Range] = field(default_factory=dict)
    name: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "within", ReadOnlyDict(self.within))


@dataclass(frozen=True)
class Given(Usable):
    """A statement that is assumed."""


def is_plain_index(index: Basic) -> bool:
    """Whether nothing but integer is assumed of an index: whatever else holds must come from its range."""
    return isinstance(index, Symbol) and index._assumptions_orig in ({}, {"integer": True})


def lacking(value: Expr, symbol: Symbol) -> list[str]:
    """The properties that `symbol` was declared with and `value` is not known to have."""
    return [
        name if wanted else f"not {name}"
        for name, wanted in symbol._assumptions_orig.items()
        if getattr(value, f"is_{name}") is not wanted
    ]


def sum_rule(fact: Usable) -> SumRule | None:
    """The fact as a rule for a sum, if it is the equality Σ (factors without a number) = value."""
    left, right = fact.statement.lhs, fact.statement.rhs
    is_rule = isinstance(fact.statement, Equality) and isinstance(left, Sum) and not right.has(Sum)
    if not is_rule or len(left.limits) != 1 or any(f.is_number for f in Mul.make_args(left.function)):
        return None
    index, lo, hi = left.limits[0]
    return SumRule(left.function, index, (lo, hi), right, fact.free, fact.within)


def normal_form(expr: Expr, rules: Iterable[SumRule] = (), ranges: Mapping[Symbol, Range] | None = None) -> Expr:
    """The canonical form of `expr`: a polynomial in atoms and in sums over independent symbolic ranges.

        >>> from sympy import IndexedBase, symbols
        >>> i, j = symbols("i j", integer=True)
        >>> n, x = symbols("n", integer=True, positive=True), IndexedBase("x")
        >>> pairs = Sum((x[i] - x[j])**2, (i, 1, n), (j, 1, n)) / 2
        >>> normal_form(pairs - n * Sum(x[i]**2, (i, 1, n)) + Sum(x[i], (i, 1, n))**2)       # Lagrange's identity
        0

    Args:
        expr: the expression; its atoms are symbols, indexed entries, functions and negative powers.
        rules: sums that are known; a rule applies where its index occurs in one factor only.
        ranges: free indices that are known to lie in a range, so that a delta with a bound index can be summed out.

    Raises:
        ValueError: for ranges that may be reversed or not of integers, for undefined terms, and for integrals and
            substitutions.
    """
    expr = sympify(expr)
    if expr.has(Integral, Subs):  # they bind symbols that rename_bound does not rename
        raise ValueError(f"expr must have no integrals or substitutions, got {expr}")
    rules, free_ranges = tuple(rules), dict(ranges or {})
    result, pending = S.Zero, _flatten(rename_bound(expr), {})
    while pending:
        term, bound = pending.pop()
        term = _expand_numerators(term, rules, free_ranges | bound)
        if term.has(S.NaN, S.ComplexInfinity):
            raise ValueError(f"undefined term in {expr}")
        if isinstance(term, Add):
            pending += [(t, dict(bound)) for t in term.args]
            continue
        factors = _within_once([f for factor in Mul.make_args(term) for f in _split_exponential(factor, bound)], bound)
        reduced = _sum_out_delta(factors, bound, free_ranges) or _sum_out_index(factors, bound, rules, free_ranges)
        if reduced is not None:
            pending.append(reduced)
        else:
            result += _canonical_monomial(factors, bound)
    return _expand_outside(result)


def _expand_outside(expr: Expr) -> Expr:
    """Expanded, but exp(Σ) stays whole: `expand` would make a product of it."""
    hidden = {e: Dummy() for e in expr.atoms(exp) if e.args[0].has(Sum)}
    return expand(expr.xreplace(hidden)).xreplace({dummy: e for e, dummy in hidden.items()})


def index_expressions(expr: Expr) -> list[Expr]:
    """Everything that may stand for an index in `expr`: subscripts, integer arguments of functions, integer symbols."""
    found = {s for s in expr.free_symbols if isinstance(s, Symbol) and s.is_integer}
    for entry in expr.atoms(Indexed, AppliedUndef, KroneckerDelta):
        found.update(a for a in (entry.indices if isinstance(entry, Indexed) else entry.args) if a.is_integer)
    return sorted(found, key=str)


def instances(
    free: tuple[Symbol, ...],
    values: Iterable[Expr],
    within: Mapping[Symbol, Range] | None = None,
    ranges: Mapping[Expr, Range] | None = None,
) -> Iterable[dict[Symbol, Expr]]:
    """All assignments of `values` to the indices `free` that respect what is declared of them and `within`.

    `ranges`: the ranges that the values are known to lie in.
    """
    values = list(values)
    for choice in product(*[[v for v in values if not lacking(v, i)] for i in free]):
        chosen = dict(zip(free, choice, strict=True))
        wanted = [(chosen[i], (lo.xreplace(chosen), hi.xreplace(chosen))) for i, (lo, hi) in (within or {}).items()]
        if all((ranges or {}).get(value) == value_range for value, value_range in wanted):
            yield chosen


def match(
    pattern: Expr, fact: Usable | SumRule, expr: Basic, ranges: Mapping[Expr, Range] | None = None
) -> dict[Symbol, Expr] | None:
    """The values of a fact's free indices for which `pattern` is `expr`, up to the names of bound indices."""
    if pattern.func != expr.func and not isinstance(pattern, Mul):  # a product of equal factors is a power
        return None
    pattern = rename_bound(pattern)
    for values in instances(fact.free, index_expressions(expr) if fact.free else (), fact.within, ranges):
        instance = pattern.xreplace(values)
        if instance == expr or (expr.has(Sum, Product) and alike(instance) == alike(expr)):
            return values
    return None


def _flatten(expr: Expr, outer: Ranges) -> list[tuple[Expr, Ranges]]:
    """Terms without a Sum outside of atoms, each with its bound indices (fresh Dummies) and their ranges.

    A range that depends on another index becomes the widest one, and the term gets factors that are 1 within, else 0.
    """
    if isinstance(expr, Sum):
        summand, limits = expr.function, list(expr.limits)
        bound: Ranges = {}
        while limits:  # outermost first
            index, lo, hi = limits.pop()
            fresh = Dummy(index.name, integer=True)
            summand = summand.xreplace({index: fresh})
            limits = [(i, *(end.xreplace({index: fresh}) for end in ends)) for i, *ends in limits]
            widest, within = _widest(fresh, lo, hi, outer | bound)
            if widest is None:
                raise ValueError(f"the range from {lo} to {hi} may be reversed, or not of integers, in {expr}")
            summand, bound[fresh] = summand * within, widest
        return [(term, bound | inner) for term, inner in _flatten(summand, outer | bound)]
    if isinstance(expr, Add):
        return [term for arg in expr.args for term in _flatten(arg, outer)]
    is_power = isinstance(expr, Pow) and expr.exp.is_Integer and expr.exp > 1
    if isinstance(expr, Mul) or (is_power and (expr.base.has(Sum) or isinstance(expr.base, Add))):
        factors = expr.args if isinstance(expr, Mul) else [expr.base] * int(expr.exp)
        terms: list[tuple[Expr, Ranges]] = [(S.One, {})]
        for factor in factors:  # flattened once for each occurrence, so that bound indices stay distinct
            terms = [(a * b, s | t) for a, s in terms for b, t in _flatten(factor, outer)]
        return terms
    return [(expr, {})]


def _widest(index: Symbol, lo: Expr, hi: Expr, outer: Ranges) -> tuple[Range | None, Expr]:
    """A range that contains the one from lo to hi for all values of other indices; what is 1 within this, and else 0.

    None where it is not seen that lo ≤ hi + 1, or an end is no index with a number added.
    """
    within = S.One
    if not (lo.is_integer and hi.is_integer and _least(hi - lo + 1, outer).is_nonnegative):
        return None, within
    ends = (
        _least(lo, outer) if lo.free_symbols & outer.keys() else lo,
        -_least(-hi, outer) if hi.free_symbols & outer.keys() else hi,
    )
    if not is_range(*ends) or any(end.free_symbols & outer.keys() for end in ends):
        return None, within
    if ends[0] != lo:
        within *= Within(index - lo)
    if ends[1] != hi:
        within *= Within(hi - index)
    return ends, within


def _least(expr: Expr, ranges: Ranges) -> Expr:
    """A lower bound: what an index with the factor 1 or -1 adds is least at an end of its range; other parts stay."""
    expr = expand(expr)
    for index, (lo, hi) in ranges.items():
        slope = expr.coeff(index)
        if slope in (1, -1):
            expr = expand(expr - slope * index + (lo if slope == 1 else -hi))
    return expr


def is_range(lo: Expr, hi: Expr) -> bool:
    """Whether lo and hi are integers with lo ≤ hi + 1. (SymPy reads a reversed range as Σ_{i=1}^{-3} 1 = −3.)"""
    return bool(lo.is_integer and hi.is_integer and (hi - lo + 1).is_nonnegative)


def _expand_numerators(expr: Expr, rules: tuple[SumRule, ...], ranges: Ranges) -> Expr:
    """Expand products, keeping everything else whole: `expand` would merge denominators."""
    hidden: dict[Expr, Dummy] = {}

    def inside(e: Expr) -> Expr:
        """An atom with the normal form of what it is a function of, where that has sums."""
        if not e.has(Sum) or isinstance(e, ExprWithLimits | Indexed | Derivative):
            return e
        try:
            return e.func(*[normal_form(a, rules, ranges) if a.has(Sum) else a for a in e.args])
        except ValueError:  # outside the normal form's domain: it stays as it is
            return e

    def hide(e: Expr) -> Expr:
        """A polynomial in which everything else has a name; `hidden` keeps the names."""
        if isinstance(e, Add | Mul) or (isinstance(e, Pow) and e.exp.is_Integer and e.exp > 0):
            return e.func(*[hide(a) for a in e.args])
        if isinstance(e, Number | Symbol | Indexed):
            return e
        atom = inside(e)
        if isinstance(atom, log):  # of positive factors, into a sum of logarithms
            atom = expand_log(atom, deep=False)
        if atom != e and isinstance(atom, Add | Mul):  # a quotient of sums has become a product, for instance
            return hide(atom)
        return hidden.setdefault(atom, Dummy(commutative=bool(atom.is_commutative)))

    return expand(hide(expr)).xreplace({dummy: e for e, dummy in hidden.items()})


def _split_exponential(factor: Expr, bound: Ranges) -> list[Expr]:
    """exp(a + b) as exp(a) and exp(b), where a has bound indices and b has none: SymPy joins what `expand` splits."""
    if not (isinstance(factor, exp) and isinstance(factor.args[0], Add) and factor.is_commutative):
        return [factor]
    constant, varying = factor.args[0].as_independent(*bound, as_Add=True) if bound else (S.Zero, factor.args[0])
    return [factor] if constant == 0 or varying == 0 else [exp(constant), exp(varying)]


def _sum_out_delta(factors: list[Expr], bound: Ranges, free_ranges: Ranges) -> tuple[Expr, Ranges] | None:
    """Σ_p δ(p, q) f(p) = f(q), where p is bound and q lies in p's range."""
    for k, factor in enumerate(factors):
        if isinstance(factor, KroneckerDelta) and len(factor.args) == 2:  # a third argument is a range of its own
            for p, q in (factor.args[:2], factor.args[1::-1]):
                if p in bound and bound[p] in (bound.get(q), free_ranges.get(q)):
                    rest = Mul(*factors[:k], *factors[k + 1 :]).xreplace({p: q})
                    return rest, {index: r for index, r in bound.items() if index != p}
    return None


def _sum_out_index(
    factors: list[Expr], bound: Ranges, rules: tuple[SumRule, ...], free_ranges: Ranges
) -> tuple[Expr, Ranges] | None:
    """Sum out an index that occurs in no factor (a count), or in factors that a rule sums."""
    for index in reversed(bound):  # innermost first
        users = [f for f in factors if index in f.free_symbols]
        rest = {i: r for i, r in bound.items() if i != index}
        limiting = [f for f in users if isinstance(f, Within)]
        lo, hi = _limited(index, limiting, bound)
        if lo is None:
            continue
        users = [f for f in users if f not in limiting]
        factors_left = [f for f in factors if f not in limiting]
        if not users:
            return Mul(*factors_left, hi - lo + 1), rest
        if len(users) > 1 and not all(f.is_commutative for f in users):
            continue
        value = _apply_rules(Mul(*users), index, (lo, hi), rules, free_ranges | bound)
        if value is not None:  # in the place of the first, as others may not commute
            return Mul(*[value if f is users[0] else f for f in factors_left if f not in users[1:]]), rest
    return None


def _within_once(factors: list[Expr], bound: Ranges) -> list[Expr]:
    """Without factors `Within` that are 1; a power of one is that one, and the product of none is 0."""
    kept: list[Expr] = []
    for factor in factors:
        base = factor.base if isinstance(factor, Pow) and isinstance(factor.base, Within) else factor
        if not isinstance(base, Within):
            kept.append(factor)
        elif _least(-base.args[0] - 1, bound).is_nonnegative:
            return [S.Zero]
        elif not _least(base.args[0], bound).is_nonnegative and base not in kept:
            kept.append(base)
    return kept


def _limited(index: Symbol, within: list[Expr], bound: Ranges) -> tuple[Expr | None, Expr | None]:
    """The range that an index has under at most one factor `Within`, if that is seen to lie in its own."""
    lo, hi = bound[index]
    if not within:
        return lo, hi
    if len(within) > 1 or (slope := expand(within[0].args[0]).coeff(index)) not in (1, -1):
        return None, None
    end = expand(index - slope * within[0].args[0])  # index ≥ end, or ≤ end
    others = {i: r for i, r in bound.items() if i != index}
    first, last = (end, hi) if slope == 1 else (lo, end)
    inside = _least(first - lo, others).is_nonnegative and _least(hi - last, others).is_nonnegative
    return (first, last) if inside and _least(last - first + 1, others).is_nonnegative else (None, None)


def _apply_rules(factor: Expr, index: Symbol, within: Range, rules: tuple[SumRule, ...], ranges: Ranges) -> Expr | None:
    """The sum of factors over their index, by the first rule that knows it."""
    for rule in rules:
        values = match(rename_bound(rule.term).xreplace({rule.index: index}), rule, factor, ranges)
        if values is not None and not any(index in v.free_symbols for v in values.values()):
            if tuple(e.xreplace(values) for e in rule.range) == within:
                return rename_bound(rule.value).xreplace(values)
    return None


def _canonical_monomial(factors: list[Expr], bound: Ranges) -> Expr:
    """The product of canonical sums, one for each group of factors that share bound indices.

    All factors that do not commute count as one, their product in the order given.
    """
    ordered = [f for f in factors if not f.is_commutative]
    factors = [f for f in factors if f.is_commutative] + ([Mul(*ordered)] if ordered else [])
    factors = [alike(f) for f in factors]
    rest = [f for f in factors if f.free_symbols & bound.keys()]
    result = Mul(*[f for f in factors if not f.free_symbols & bound.keys()])
    while rest:
        group = [rest.pop()]
        indices = group[0].free_symbols & bound.keys()
        while connected := [f for f in rest if f.free_symbols & indices]:
            group += connected
            rest = [f for f in rest if not f.free_symbols & indices]
            indices = indices.union(*[f.free_symbols & bound.keys() for f in connected])
        result *= _least_renaming(Mul(*group), {i: bound[i] for i in indices})
    return result


def _least_renaming(summand: Expr, bound: Ranges) -> Expr:
    """The sum under those canonical names of its indices that come first in text."""
    if len(bound) > len(_CANONICAL):
        raise ValueError(f"at most {len(_CANONICAL)} indices may be tied together, got {len(bound)}")
    indices = sorted(bound, key=lambda i: i.name)  # any order will do: the least over all permutations is taken
    summand, limits = min((_renaming(summand, bound, order) for order in permutations(indices)), key=_printed)
    return Sum(summand, *limits)


def _renaming(summand: Expr, bound: Ranges, order: tuple[Symbol, ...]) -> tuple[Expr, list[Limit]]:
    names = dict(zip(order, _CANONICAL, strict=False))
    return summand.xreplace(names), [(names[i], *bound[i]) for i in order]


def _printed(renaming: tuple[Expr, list[Limit]]) -> tuple[str, str]:
    summand, limits = renaming
    return str(summand.xreplace(_PRINTED)), str(limits)


def peel(expr: Expr, n: Symbol) -> Expr:
    """expr at n + 1, with the last terms split off every sum that has more there.

    Raises:
        ValueError: for a sum whose range moves in another way, and for one in a range that moves.
    """

    def split(e: Expr) -> Expr:
        if not e.has(Sum):
            return e
        if not isinstance(e, Sum):
            return e.func(*map(split, e.args))
        *inner, (index, lo, hi) = e.limits
        last = hi.xreplace({n: n - 1})
        grown = expand(hi - last)
        if lo.has(n) or any(end.has(n) for limit in inner for end in limit[1:]) or not grown.is_Integer:
            raise ValueError(f"cannot split the last term off {e}: write nested sums up to n")
        summand = split(e.func(e.function, *inner) if inner else e.function)
        if not 0 <= grown <= AT_ONCE:
            raise ValueError(f"cannot split the last term off {e}: its range grows by {grown}")
        ends = [rename_bound(summand).xreplace({index: expand(last + k)}) for k in range(1, int(grown) + 1)]
        return Add(Sum(summand, (index, lo, expand(last))), *ends)

    return split(rename_bound(expr).xreplace({n: n + 1}))
