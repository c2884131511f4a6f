"""Find a witness: values that satisfy all hypotheses of a derivation, so that these do not contradict each other.

A derivation from hypotheses that nothing meets proves nothing. An instance that is found is exact or enclosed in
intervals, and shown; that none is found is an error, though there might be one.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from random import Random

from sympy import (
    Basic,
    Dummy,
    Expr,
    Indexed,
    KroneckerDelta,
    Poly,
    PolynomialError,
    Product,
    Rational,
    S,
    Sum,
    Symbol,
    expand,
    roots,
)
from sympy.core.relational import Equality, GreaterThan, Relational

from smalltorch.engine.binders import Range, write_out
from smalltorch.engine.display import text
from smalltorch.engine.interval import Unknown, enclose, sign_of_number
from smalltorch.engine.refusal import StepError
from smalltorch.engine.spot_check import draw, kind_of, leaves_of, places_of, put
from smalltorch.engine.sums import Given, lacking

Instance = Mapping[Expr, Expr]
SIZES, TRIES, MOST = (2, 3), 60, 40
SCALES = [Rational(1, 256), Rational(1, 16), Rational(1, 2), S(4)]
_TRUE = {">": ("> 0",), ">=": ("> 0", "= 0"), "<": ("< 0",), "<=": ("< 0", "= 0"), "!=": ("> 0", "< 0")}
_found: dict[object, list[Instance]] = {}


def instance_of(hypotheses: Iterable[Given], ranges: Mapping[Symbol, Range]) -> Instance:
    """Values of all that the hypotheses speak of, at which they hold while the indices lie in their ranges.

        >>> from sympy import Eq, symbols
        >>> r, t = symbols("r t", positive=True)
        >>> instance_of([Given(Eq(r * t, 1)), Given(r >= 2)], {})
        {r: 5/2, t: 2/5}

    The instance at the least size is given. A symbol that is not determined is not given the value 0.

    Raises:
        StepError: if none is found.
    """
    return instances_of(hypotheses, ranges)[0]


def instances_of(hypotheses: Iterable[Given], ranges: Mapping[Symbol, Range]) -> list[Instance]:
    """One instance at each of two sizes; one where nothing depends on a size."""
    given = list(hypotheses)
    named = set().union(*(g.statement.free_symbols - set(g.free) for g in given))
    for index, (lo, hi) in ranges.items():
        ends = [(index, lo), (hi, index)] if index in named else [(hi, lo)]
        given += [Given(GreaterThan(larger, smaller, evaluate=False)) for larger, smaller in ends]
    key = tuple((g.statement, g.free, tuple(g.within.items())) for g in given)
    if key not in _found:
        _found[key] = [_at_size(given, size) for size in (SIZES if _sizes(given) else SIZES[:1])] if given else [{}]
    return _found[key]


def _sizes(given: list[Given], sides: Iterable[Expr] = ()) -> list[Symbol]:
    """The integers that ends of sums and ranges depend on."""
    sums = [q for e in (*(g.statement for g in given), *sides) for q in e.atoms(Sum, Product)]
    ends = [end for q in sums for limit in q.limits for end in limit[1:]]
    ends += [end for g in given for limits in g.within.values() for end in limits]
    bound = {limit[0] for q in sums for limit in q.limits} | {i for g in given for i in g.free}
    return sorted({s for end in ends for s in end.free_symbols if s.is_integer} - bound, key=str)


def _at_size(given: list[Given], size: int) -> Instance:
    sizes: dict[Expr, Expr] = {s: S(size) for s in _sizes(given)}
    for k in range(TRIES):
        if (found := _drawn(given, sizes, size, k)) is not None:
            return {**sizes, **{leaf: found[leaf] for leaf in sorted(found, key=str)}}
    at = f" at {', '.join(f'{s} = {size}' for s in sizes)}" if sizes else ""
    listed = "; ".join(text(g.statement) + (f" for all {', '.join(map(str, g.free))}" if g.free else "") for g in given)
    raise StepError(f"no instance of the hypotheses was found{at}; they may contradict each other: {listed}")


def points(
    given: list[Given], ranges: Mapping[Symbol, Range], sides: tuple[Expr, ...], draws: int
) -> Iterator[tuple[Instance, list[Expr]]]:
    """Values of all that the hypotheses and the sides speak of, at which these hold, and the sides at them.

    The hypotheses' part is one of their instances, the rest is drawn; sizes are 1 to 3. A draw is left out where a side
    speaks of an entry that a hypothesis for all integers may speak of, and the instance does not.
    """
    instances = instances_of(given, ranges)
    for k in range(draws):
        values, random = dict(instances[k % len(instances)]), Random(k)
        for m, size in enumerate(_sizes([], sides)):
            if size not in ranges:
                values.setdefault(size, S(1 + (k + (k // 3) * m) % 3))
        for index, limits in ranges.items():
            if index in values:
                continue
            lo, hi = (_at(end, values) for end in limits)
            values[index] = (
                S(random.randint(int(lo), int(hi))) if lo.is_Integer and hi.is_Integer and lo <= hi else index
            )
        written = [_at(side, values) for side in sides]
        while leaves := _innermost(written) or set().union(*map(leaves_of, written)):
            if any(_may_be_spoken_of(leaf, given) for leaf in leaves):
                break
            values |= {leaf: _drawn_freely(leaf, random, k) for leaf in sorted(leaves, key=str)}
            written = [_at(side, values) for side in written]
        else:
            yield values, written


def _drawn_freely(leaf: Expr, random: Random, k: int) -> Expr:
    """A value as declared; now and then 0, where things often go wrong."""
    if random.random() < 0.2 and not (leaf.is_positive or leaf.is_negative or leaf.is_zero is False):
        return S.Zero
    return draw(leaf, random) * (S.One if leaf.is_integer else SCALES[k % len(SCALES)])


def _drawn(given: list[Given], sizes: Mapping[Expr, Expr], size: int, attempt: int) -> dict[Expr, Expr] | None:
    """One try for values of all leaves. What stands inside of leaves comes first: x[k] is x[l] where k = l."""
    relations, random = _relations(given, sizes, size), Random(attempt)
    chosen: dict[Expr, Expr] = {}
    while inner := _innermost(relations):
        found = _Search([r for r in relations if leaves_of(r) <= inner], random, attempt, inner).solve()
        if found is None:
            return None
        chosen |= found
        relations = [r.func(_at(r.lhs, found), _at(r.rhs, found), evaluate=False) for r in relations]
    found = _Search(relations, random, attempt).solve()
    return None if found is None else {**chosen, **found}


def _innermost(expressions: Iterable[Basic]) -> set[Expr]:
    """Leaves that stand inside of others, and that nothing stands inside of."""
    leaves = set().union(*map(leaves_of, expressions))
    inner: set[Expr] = set()
    while leaves := {deeper for leaf in leaves for place in places_of(leaf) for deeper in leaves_of(place)}:
        inner |= leaves
    return {leaf for leaf in inner if not any(map(leaves_of, places_of(leaf)))}


def _at(expr: Expr, values: Mapping[Expr, Expr]) -> Expr:
    """Values put in, and sums written out; then what has got a value by that."""
    before = None
    while expr != before:
        before, expr = expr, write_out(expr.xreplace(dict(values)))
    return expr


def _may_be_spoken_of(leaf: Expr, given: list[Given]) -> bool:
    """Whether a hypothesis for all integers speaks of entries of the same base, or values of the same function."""
    general = [g.statement for g in given if set(g.free) - set(g.within)]
    return any(kind_of(leaf) == kind_of(other) for statement in general for other in leaves_of(statement))


def _relations(given: list[Given], sizes: Mapping[Expr, Expr], size: int) -> list[Relational]:
    """Instances of the hypotheses; with those of one index, in which they speak of what the others speak of."""
    found = [list(_instances(g, sizes, size)) for g in given]
    met = {
        int(place)
        for relations in found
        for leaf in set().union(*map(leaves_of, relations))
        for place in places_of(leaf)
        if place.is_Integer
    }
    for g, relations in zip(given, found, strict=True):
        if len(g.free) == 1 and not g.within:
            index = g.free[0]
            steps = [(place.coeff(index), place) for leaf in leaves_of(g.statement) for place in places_of(leaf)]
            values = {(v - p.xreplace({index: S.Zero})) / a for a, p in steps if a.is_Integer and a != 0 for v in met}
            reached = sorted((v for v in values if v.is_Integer and not lacking(v, index)), key=int)[:MOST]
            relations += [r for v in reached if (r := _instance(g, (v,), sizes)) not in relations]
    return [r for relations in found for r in relations]


def _instances(given: Given, sizes: Mapping[Expr, Expr], size: int) -> Iterator[Relational]:
    """The statement for its indices' values: those in its ranges, or else from below 1 to above the size."""
    margin = 2 if len(given.free) < 3 else 1
    sizes = {s: v for s, v in sizes.items() if s not in given.free}
    choices: list[list[Expr]] = []
    for index in given.free:
        lo, hi = given.within.get(index, (S(1 - margin), S(size + margin)))
        ends = [write_out(end.xreplace(sizes)) for end in (lo, hi)]
        if not all(end.is_Integer for end in ends):
            ends = [S(1), S(size)]
        choices.append([S(v) for v in range(int(ends[0]), int(ends[1]) + 1) if not lacking(S(v), index)])
    for values in product(*choices):
        yield _instance(given, values, sizes)


def _instance(given: Given, values: tuple[Expr, ...], sizes: Mapping[Expr, Expr]) -> Relational:
    chosen = {**sizes, **dict(zip(given.free, values, strict=True))}
    sides = [_at(side, chosen) for side in (given.statement.lhs, given.statement.rhs)]
    return given.statement.func(*sides, evaluate=False)


class _Search:
    """One try: equalities are solved for one unknown at a time, the rest is drawn so that the inequalities hold."""

    def __init__(self, relations: list[Relational], random: Random, attempt: int, also: Iterable[Expr] = ()):
        self.random, self.scale, self.attempt, self.also = random, SCALES[attempt % len(SCALES)], attempt, set(also)
        self.equal = [r.lhs - r.rhs for r in relations if isinstance(r, Equality)]
        self.order = [(r.lhs - r.rhs, r.rel_op) for r in relations if not isinstance(r, Equality)]
        self.leaves = {e: leaves_of(e) for e in (*self.equal, *(e for e, _ in self.order))}
        self.defined = {side for r in relations if isinstance(r, Equality) for side in (r.lhs, r.rhs)}
        self.defined |= {power.base for power in self.defined if power.is_Pow}
        self.values: dict[Expr, Expr] = {}

    def solve(self) -> dict[Expr, Expr] | None:
        if self.attempt % 3 == 2:  # entries of a matrix, as those of the identity
            for leaf in self.also.union(*self.leaves.values()):
                if isinstance(leaf, Indexed) and len(leaf.indices) == 2 and self.attempt % 2 == 0:
                    self.values[leaf] = KroneckerDelta(*leaf.indices)
        if self.attempt % 2:
            self._eliminate()
        while True:
            if not self._propagate():
                return None
            unknown = self.also.union(*self.leaves.values()) - self.values.keys()
            if not unknown:
                return self.values if all(self._holds(e, op) for e, op in self.order) else None
            leaf = min(unknown, key=lambda e: (e in self.defined, isinstance(e, Symbol), str(e)))
            if not self._choose(leaf):
                return None

    def _eliminate(self) -> None:
        """Solve each equality for an unknown that is linear in it, and put that into the others."""
        solved: dict[Expr, Expr] = {}
        rest = []
        for expr in self.equal:
            left = expand(expr.xreplace(solved))
            for leaf in sorted(leaves_of(left) - self.values.keys(), key=str, reverse=True):
                slope = left.coeff(leaf)
                if slope.is_number and slope != 0 and leaf not in leaves_of(other := left - slope * leaf):
                    value = expand(-other / slope)
                    solved = {k: v.xreplace({leaf: value}) for k, v in solved.items()} | {leaf: value}
                    break
            else:
                rest.append(left)
        self.equal = [leaf - value for leaf, value in solved.items()] + [e.xreplace(solved) for e in rest]
        self.leaves |= {e: leaves_of(e) for e in self.equal}
        self.defined |= solved.keys()

    def _unknown(self, expr: Expr) -> set[Expr]:
        return self.leaves[expr] - self.values.keys()

    def _propagate(self) -> bool:
        """Solve what has one unknown, until nothing has; False where an equality fails."""
        pending, changed = list(self.equal), True
        while changed:
            changed, later = False, []
            for expr in pending:
                unknown = self._unknown(expr)
                if len(unknown) > 1:
                    later.append(expr)
                elif not unknown and not self._is_zero(expr):
                    return False
                elif unknown:
                    leaf = unknown.pop()
                    solutions = [v for v in _solutions(put(expr, self.values), leaf) if self._fits(leaf, v)]
                    if not solutions:
                        return False
                    self.values[leaf], changed = self.random.choice(solutions), True
            pending = later
        self.equal = pending
        return True

    def _is_zero(self, expr: Expr) -> bool:
        value = expand(put(expr, self.values))
        if value == 0:
            return True
        try:
            size = abs(enclose(value, {}))
        except Unknown:
            return False
        return bool(size.a <= 0 and size.b < 1e-40)

    def _holds(self, expr: Expr, relation: str) -> bool:
        value = put(expr, self.values)
        return sign_of_number(expand(value) if value.is_rational else value) in _TRUE[relation]

    def _fits(self, leaf: Expr, value: Expr) -> bool:
        """Whether a value has the declared properties, and meets the inequalities in which nothing else is unknown."""
        if value.has(S.NaN, S.ComplexInfinity, S.Infinity) or not value.is_number:
            return False
        sign = sign_of_number(value)
        if sign is None and value != 0:
            return False
        if (leaf.is_positive and sign != "> 0") or (leaf.is_nonnegative and sign == "< 0"):
            return False
        if (leaf.is_negative and sign != "< 0") or (leaf.is_nonpositive and sign == "> 0"):
            return False
        if (leaf.is_zero is False and sign == "= 0") or (leaf.is_integer and not value.is_Integer):
            return False
        self.values[leaf] = value
        met = all(self._holds(e, op) for e, op in self.order if leaf in self.leaves[e] and not self._unknown(e))
        del self.values[leaf]
        return met

    def _choose(self, leaf: Expr) -> bool:
        candidates = [draw(leaf, self.random) for _ in range(12)]
        candidates = [c if leaf.is_integer else (c.as_real_imag()[0] or S.One) * self.scale for c in candidates]
        candidates += [4 * c for c in candidates[:4]] + [16 * c for c in candidates[:4]]
        candidates += [c / 16 for c in candidates[:4] if not leaf.is_integer]
        if not isinstance(leaf, Symbol):
            candidates.append(S.Zero)
        for value in candidates:
            if self._fits(leaf, value):
                self.values[leaf] = value
                return True
        return False


def _solutions(expr: Expr, leaf: Expr) -> list[Expr]:
    """The numbers that make `expr` zero in place of its only leaf, as far as they are the roots of a polynomial."""
    unknown = Dummy()
    try:
        polynomial = Poly(expr.xreplace({leaf: unknown}).as_numer_denom()[0], unknown)
    except PolynomialError:
        return []
    if polynomial.degree() == 1:
        slope, rest = polynomial.all_coeffs()
        return [-rest / slope]
    return sorted(roots(polynomial), key=str) if 1 < polynomial.degree() < 5 else []
