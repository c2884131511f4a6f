"""Witnesses: values at which all hypotheses of a derivation hold, at sizes 2 and 3, indices beyond the ranges included.

A derivation from hypotheses that nothing meets proves nothing. An instance that is found is exact or enclosed in
intervals, and shown; that none is found is an error, though there might be one.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from random import Random

from sympy import (
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

from smalltorch.engine.display import text
from smalltorch.engine.interval import Unknown, enclose, sign_of_number
from smalltorch.engine.refusal import StepError
from smalltorch.engine.sums import Given, Range, lacking, write_out
from smalltorch.engine.trial import draw, leaves_of, put

Instance = Mapping[Expr, Expr]
SIZES, TRIES = (2, 3), 60
SCALES = [Rational(1, 256), Rational(1, 16), Rational(1, 2), S(4)]
_TRUE = {">": ("> 0",), ">=": ("> 0", "= 0"), "<": ("< 0",), "<=": ("< 0", "= 0"), "!=": ("> 0", "< 0")}
_found: dict[object, Instance] = {}


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
    given = list(hypotheses) + [Given(GreaterThan(hi, lo, evaluate=False)) for lo, hi in ranges.values()]
    key = tuple((g.statement, g.free, tuple(g.within.items())) for g in given)
    if given and key not in _found:
        instances = [_at_size(given, size) for size in (SIZES if _sizes(given) else SIZES[:1])]
        _found[key] = instances[0]
    return _found.get(key, {})


def _sizes(given: list[Given]) -> set[Symbol]:
    """The integers that ends of sums and ranges depend on."""
    ends = [end for g in given for s in g.statement.atoms(Sum, Product) for limit in s.limits for end in limit[1:]]
    ends += [end for g in given for limits in g.within.values() for end in limits]
    bound = {limit[0] for g in given for s in g.statement.atoms(Sum, Product) for limit in s.limits}
    free = {i for g in given for i in g.free}
    return {s for end in ends for s in end.free_symbols if s.is_integer} - bound - free


def _at_size(given: list[Given], size: int) -> Instance:
    sizes: dict[Expr, Expr] = {s: S(size) for s in sorted(_sizes(given), key=str)}
    relations = [r for g in given for r in _instances(g, sizes, size)]
    for k in range(TRIES):
        found = _Search(relations, Random(k), k).solve()
        if found is not None:
            return {**sizes, **{leaf: found[leaf] for leaf in sorted(found, key=str)}}
    at = f" at {', '.join(f'{s} = {size}' for s in sizes)}" if sizes else ""
    listed = "; ".join(text(g.statement) + (f" for all {', '.join(map(str, g.free))}" if g.free else "") for g in given)
    raise StepError(f"no instance of the hypotheses was found{at}; they may contradict each other: {listed}")


def _instances(given: Given, sizes: Mapping[Expr, Expr], size: int) -> Iterator[Relational]:
    """The statement for its indices' values: those in its ranges, or else from below 1 to above the size."""
    names = {i: Dummy(i.name, **i._assumptions_orig) for i in given.free}
    sizes = {s: v for s, v in sizes.items() if s not in names}
    margin = 2 if len(names) < 3 else 1
    choices: list[list[Expr]] = []
    for index in given.free:
        lo, hi = given.within.get(index, (S(1 - margin), S(size + margin)))
        ends = [write_out(end.xreplace(sizes)) for end in (lo, hi)]
        if not all(end.is_Integer for end in ends):
            ends = [S(1), S(size)]
        choices.append([S(v) for v in range(int(ends[0]), int(ends[1]) + 1) if not lacking(S(v), index)])
    for values in product(*choices):
        chosen = dict(zip(given.free, values, strict=True))
        sides = [
            write_out(side.xreplace(names).xreplace({names[i]: v for i, v in chosen.items()}).xreplace(dict(sizes)))
            for side in (given.statement.lhs, given.statement.rhs)
        ]
        yield given.statement.func(*sides, evaluate=False)


class _Search:
    """One try: equalities are solved for one unknown at a time, the rest is drawn so that the inequalities hold."""

    def __init__(self, relations: list[Relational], random: Random, attempt: int):
        self.random, self.scale, self.attempt = random, SCALES[attempt % len(SCALES)], attempt
        self.equal = [r.lhs - r.rhs for r in relations if isinstance(r, Equality)]
        self.order = [(r.lhs - r.rhs, r.rel_op) for r in relations if not isinstance(r, Equality)]
        self.leaves = {e: leaves_of(e) for e in (*self.equal, *(e for e, _ in self.order))}
        self.defined = {side for r in relations if isinstance(r, Equality) for side in (r.lhs, r.rhs)}
        self.defined |= {power.base for power in self.defined if power.is_Pow}
        self.values: dict[Expr, Expr] = {}

    def solve(self) -> dict[Expr, Expr] | None:
        if self.attempt % 3 == 2:  # entries of a matrix, as those of the identity
            for leaf in set().union(*self.leaves.values()):
                if isinstance(leaf, Indexed) and len(leaf.indices) == 2 and self.attempt % 2 == 0:
                    self.values[leaf] = KroneckerDelta(*leaf.indices)
        if self.attempt % 2:
            self._eliminate()
        while True:
            if not self._propagate():
                return None
            unknown = set().union(*self.leaves.values()) - self.values.keys() if self.leaves else set()
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
