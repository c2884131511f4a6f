"""Refutation: small exact values that break a step. They explain a failure; that none are found proves nothing."""

from collections.abc import Callable, Iterable
from fractions import Fraction
from random import Random

from sympy import Add, Expr, Indexed, Rational, S, Sum, Symbol, sympify
from sympy.core.function import AppliedUndef
from sympy.core.relational import Relational

from smalltorch.engine.sums import SumRule, Usable, index_expressions, instances, sum_rule

TRUE: dict[str, Callable[[Expr, Expr], bool]] = {
    "=": lambda a, b: a == b,
    "≤": lambda a, b: a <= b,
    "<": lambda a, b: a < b,
    "≥": lambda a, b: a >= b,
    ">": lambda a, b: a > b,
}


def refute(left: Expr, relation: str, right: Expr, facts: Iterable[Usable], trials: int = 60) -> str | None:
    """Small rational values that satisfy the hypotheses and break `left relation right`, as text; None if none found.

        >>> x = Symbol("x", real=True)
        >>> refute(x, "≤", x**2, [])
        'left = 3/4, right = 9/16, x = 3/4'

    Exact arithmetic; sizes 1 to 3. Hypotheses of the form Σ (entry) = value are met by scaling; samples that meet not
    all hypotheses are passed over.
    """
    random, facts = Random(0), list(facts)
    sizes = sorted(
        {
            s
            for e in (left, right)
            for q in e.atoms(Sum)
            for lim in q.limits
            for s in lim[2].free_symbols
            if s.is_integer
        },
        key=str,
    )
    for trial in range(trials):
        values = {size: sympify(1 + (trial // 3**k) % 3) for k, size in enumerate(sizes)}
        try:
            found = _sample(left, relation, right, facts, values, random)
        except (TypeError, ValueError, ZeroDivisionError, RecursionError):
            return None
        if found:
            return ", ".join(f"{k} = {v}" for k, v in sorted(found.items(), key=lambda kv: str(kv[0])))
    return None


def _sample(
    left: Expr, relation: str, right: Expr, facts: list[Usable], values: dict[Symbol, Expr], random: Random
) -> dict[Expr | str, Expr] | None:
    """One draw: everything that breaks the relation at the sizes given, or None if this draw does not."""
    sides = [side.xreplace(values).doit() for side in (left, right)]
    leaves = sorted({a for e in sides for a in e.atoms(Indexed, AppliedUndef)} | _free_symbols(sides), key=str)
    point = {leaf: _draw(leaf, random) for leaf in leaves}
    for fact in facts:
        rule = sum_rule(fact)
        if rule is not None and isinstance(rule.term, Indexed):
            _scale(rule, point, values)
    if any(not _holds(f, values, point) for f in facts):
        return None
    a, b = (e.xreplace(point) for e in sides)
    if not (a.is_Rational and b.is_Rational):
        return None
    return None if TRUE[relation](a, b) else {**values, **point, "left": a, "right": b}


def _free_symbols(sides: Iterable[Expr]) -> set[Symbol]:
    labels = {entry.base.label for e in sides for entry in e.atoms(Indexed)}
    return {s for e in sides for s in e.free_symbols if isinstance(s, Symbol) and s not in labels}


def _draw(leaf: Expr, random: Random) -> Rational:
    magnitude = Rational(Fraction(random.randint(0, 6), random.randint(1, 4)))
    if leaf.is_integer:
        magnitude = Rational(random.randint(0, 4))
    if leaf.is_positive or leaf.is_negative or leaf.is_nonzero:
        magnitude += 1
    if leaf.is_negative or leaf.is_nonpositive:
        return -magnitude
    return magnitude if leaf.is_nonnegative else magnitude * random.choice((-1, 1))


def _scale(rule: SumRule, point: dict[Expr, Expr], values: dict[Symbol, Expr]) -> None:
    """Make Σ_w term = value hold, by scaling the entries that enter it."""
    lo, hi = (int(e.xreplace(values)) for e in rule.range)
    positions = sorted({e for leaf in point for e in index_expressions(leaf)}, key=str)
    for choice in instances(rule.free, positions):
        entries = [rule.term.xreplace({**choice, rule.index: sympify(w)}) for w in range(lo, hi + 1)]
        total = Add(*[point.get(e, 0) for e in entries])
        value = rule.value.xreplace(values)
        if all(e in point for e in entries) and total != 0 and value.is_Rational:
            point.update({e: point[e] * value / total for e in entries})


def _holds(fact: Usable, values: dict[Symbol, Expr], point: dict[Expr, Expr]) -> bool:
    """Whether a hypothesis holds at a point, wherever its entries occur there; False where that cannot be decided."""
    positions = sorted({e for leaf in point for e in index_expressions(leaf)}, key=str) if fact.free else []
    for choice in instances(fact.free, positions):
        instance = fact.statement.xreplace({**choice, **values}).doit()
        entries = instance.atoms(Indexed, AppliedUndef) if isinstance(instance, Relational) else set()
        if fact.free and not entries <= point.keys():
            continue  # this instance speaks of entries that do not occur
        truth = instance.xreplace(point) if isinstance(instance, Relational) else instance
        if truth not in (True, S.true):
            return False
    return True
