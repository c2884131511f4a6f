"""The trusted kernel: facts, and the inference rules that alone can make them.

A `Fact` says that a statement holds for all values of its free indices within their ranges, and of its symbols as they
were declared, wherever its hypotheses hold. Each rule is a function to a fact (from facts, where it needs some) whose
side conditions are its own code; what it asks of one expression, a `Context` answers.

Trusted beside these lines: `context`, `binders`, `domain`, `differentiate`, `sums`, `merge_sums`, `signs`, `interval`;
of SymPy `xreplace`, `expand`, `cancel`, `together`, its polynomials, and what it knows of assumptions. The adversary is
an honest mistake made through public names, not a program that reaches into private ones.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import InitVar, dataclass, replace
from typing import Any

from sympy import Basic, Derivative, Dummy, Expr, IndexedBase, Integral, Lambda, Rational, S, Subs, Symbol, exp, log
from sympy.core.relational import (
    Equality,
    GreaterThan,
    LessThan,
    Relational,
    StrictGreaterThan,
    StrictLessThan,
)

from smalltorch.engine import domain
from smalltorch.engine.binders import Range, alike, rename_bound, substitute, write_out
from smalltorch.engine.context import Context
from smalltorch.engine.differentiate import differentiate
from smalltorch.engine.display import text
from smalltorch.engine.names import demand_unique
from smalltorch.engine.refusal import StepError
from smalltorch.engine.refute import refute
from smalltorch.engine.sums import Given, Usable, is_plain_index, lacking, peel
from smalltorch.engine.witness import Instance, instance_of

KINDS = {"=": Equality, "≤": LessThan, "<": StrictLessThan, "≥": GreaterThan, ">": StrictGreaterThan}
Values = Mapping[Symbol | IndexedBase, Any]
DRAWS = 4  # of values at which a conclusion is tried
_RULE = object()  # what only the rules below can show


@dataclass(frozen=True)
class Fact(Usable):
    """What a rule has proved: the statement, wherever the hypotheses hold.

    `demands`: values that must lie in ranges, for an instance; `certificate`, `reducer`: how the last step was closed;
    `instance`: of the hypotheses.
    """

    hypotheses: tuple[Given, ...] = ()
    demands: tuple[tuple[Expr, Range], ...] = ()
    certificate: Expr | None = None
    reducer: str = ""
    instance: Instance | None = None
    rule: InitVar[object] = None

    def __post_init__(self, rule: object) -> None:
        super().__post_init__()
        if rule is not _RULE:
            raise StepError("a fact comes out of a rule of the kernel, and out of nothing else")


def _fact(c: Context, left: Expr, relation: str, right: Expr, certificate: Expr | None, reducer: str) -> Fact:
    if not all(isinstance(lemma, Fact) for lemma in c.lemmas):
        raise StepError("what is used without being assumed must be a fact")
    within = dict(c.ranges)
    statement = KINDS[relation](left, right, evaluate=False)
    return Fact(statement, tuple(within), within, "", c.given, (), certificate, reducer, rule=_RULE)


# -- rules for one step ------------------------------------------------------------------------------------------------


def by_reduction(c: Context, left: Expr, right: Expr) -> Fact:
    """left = right: the difference reduces to 0."""
    left, right = c.admit(left), c.admit(right)
    reducer = _demand_zero(c, right - left, "the difference does not reduce to 0")
    return _fact(c, left, "=", right, None, reducer)


def by_sign(c: Context, left: Expr, relation: str, right: Expr, gap: Expr | None = None) -> Fact:
    """left ≤ right: the gap equals the difference, and its structure shows its sign. Without one, it is looked for."""
    left, right, difference = _ordered(c, left, relation, right)
    if gap is None:
        gap, reducer = difference, ""
        if not _holds(c, relation)(gap):
            gap, reducer = c.reduce(difference)
        if not _holds(c, relation)(gap) and any(c.is_combination(e, relation in "<>") for e in (difference, gap)):
            return _fact(c, left, relation, right, None, "a sum of hypotheses")
    else:
        gap = c.admit(gap)
        reducer = _demand_zero(c, difference - gap, "the gap is not the difference")
    _demand_sign(c, gap, relation, "the gap")
    return _fact(c, left, relation, right, gap, reducer)


def by_cases(c: Context, left: Expr, relation: str, right: Expr, conditions: Iterable[Relational]) -> Fact:
    """The statement in each case: with every condition, or its opposite, among the hypotheses."""
    left, right = c.admit(left), c.admit(right)
    cases = [c]
    for condition in conditions:
        if not isinstance(condition, Relational):
            raise StepError(f"a case is a relation that may hold or not, got {condition}")
        condition = condition.func(*map(c.admit, condition.args), evaluate=False)
        if not all(map(c.is_real, condition.args)):
            raise StepError(f"a case is a relation between real numbers, and {text(condition)} is not seen to be one")
        cases = [case.with_given(one) for case in cases for one in (condition, condition.negated)]
    for case in cases:
        by_reduction(case, left, right) if relation == "=" else by_sign(case, left, relation, right)
    return _fact(c, left, relation, right, None, "cases")


def by_increasing(c: Context, left: Expr, relation: str, right: Expr, f: Any, gap: Expr | None) -> Fact:
    """left ≤ right, because f(left) ≤ f(right): f is exp, log between positive numbers, or 2, the square.

    For the square the larger side must be ≥ 0.
    """
    left, right, _ = _ordered(c, left, relation, right)
    small, large = (right, left) if relation in "≥>" else (left, right)
    if f == log and not (c.is_positive(small) and c.is_positive(large)):
        raise StepError("the logarithm increases between positive numbers; one side is not seen to be > 0")
    if f == 2 and not c.is_nonnegative(large):
        raise StepError(f"squares are compared below a number that is ≥ 0, and {text(large)} is not seen to be one")
    if f not in (exp, log, 2):
        raise StepError(f"f must be exp, log or 2 for the square, got {f}")
    lower, upper = (small**2, large**2) if f == 2 else (f(small), f(large))
    proved = by_sign(c, lower, "<" if relation in "<>" else "≤", upper, gap)
    return _fact(c, left, relation, right, proved.certificate, proved.reducer)


def by_slope(c: Context, left: Expr, relation: str, right: Expr, x: Symbol, slope: Expr, at: Expr | int) -> Fact:
    """left ≤ right: the gap is ≥ 0 (> 0) at x = at, and grows from there on, in both directions if x may be below.

    x must be declared real, ≥ 0 or > 0, and `at` must have the same property; no hypothesis may speak of x. Then all
    that lies between `at` and x is declared too, and there the slope must be the derivative of the gap, with its sign.
    """
    left, right, gap = _ordered(c, left, relation, right)
    at, slope = c.admit(at), c.admit(slope)
    if not isinstance(x, Symbol) or set(x._assumptions_orig) - {"real", "nonnegative", "positive"} or not x.is_real:
        raise StepError(f"{x} is not declared to be a real number, all numbers ≥ 0, or all numbers > 0")
    if x in at.free_symbols:
        raise StepError(f"the start {text(at)} moves with {x}")
    c.demand_declared(x, at)
    if c.mentions(x):
        raise StepError(f"a hypothesis speaks of {x}, and may fail on the way from {at} to {x}")
    derivative = differentiate(gap, x, c.is_real)
    domain.check(derivative, c)
    _demand_sign(c, c.reduce(gap.xreplace({x: at}))[0], relation, f"the gap at {x} = {at}")
    reducer = _demand_zero(c, derivative - slope, "the slope is not the derivative of the gap")
    if c.is_nonnegative(x - at):  # as declared
        _demand_sign(c, slope, "≥", "the slope")
    else:
        t = Dummy("t", nonnegative=True)
        below = at / (1 + t) if x.is_nonnegative else at - t  # all that is declared, and below `at`
        _demand_sign(c, _simplest(c, slope.xreplace({x: at + t})), "≥", f"the slope where {x} ≥ {at}")
        _demand_sign(c, _simplest(c, -slope.xreplace({x: below})), "≥", f"the falling slope where {x} ≤ {at}")
    return _fact(c, left, relation, right, slope, reducer)


def by_induction(
    c: Context,
    left: Expr,
    relation: str,
    right: Expr,
    n: Symbol,
    base: Any,
    gain: Expr | None,
    factor: Any,
) -> Fact:
    """The statement at n = base, and the step from n to n + 1, which may use the statement at n.

    n must be declared a positive integer or one ≥ 0, and no more: n + 1 has the same properties. No hypothesis may
    speak of this n only. An equality's two sides must gain the same; an inequality's gap g must have
    g(n + 1) − factor g(n) = gain, with factor and gain ≥ 0.
    """
    left, right, base = c.admit(left), c.admit(right), c.admit(base)
    if not isinstance(n, Symbol) or not n.is_integer:
        raise StepError(f"{n} is no integer; an induction from {base} does not reach every value that it may take")
    if more := set(n._assumptions_orig) - {"integer", "positive", "nonnegative"}:
        raise StepError(f"{n} + 1 need not have every property that {n} was declared with: {', '.join(sorted(more))}")
    if not base.is_Integer:
        raise StepError(f"the base must be an integer, got {base}")
    c.demand_declared(n, base)
    if not (n - base).is_nonnegative:
        raise StepError(f"an induction from {base} does not reach every value that {n} may take")
    if c.mentions(n):
        raise StepError(f"a hypothesis speaks of this {n} only; for_all({n}, …) says it for {n} + 1 too")
    if relation == "=":
        claim = right - left
    else:
        left, right, claim = _ordered(c, left, relation, right)
    at_base = c.reduce(write_out(claim.xreplace({n: base})))[0]
    after = peel(claim, n)
    assumed = c.with_given(KINDS[relation](left, right, evaluate=False))
    if relation == "=":
        _demand_zero(c, at_base, f"the base n = {base} fails")
        reducer = _gains_nothing(c, assumed, KINDS["="](right, left, evaluate=False), after - claim, after)
        return _fact(c, left, relation, right, None, reducer)
    _demand_sign(c, at_base, relation, f"the gap at the base n = {base}")
    factor = c.admit(factor)
    _demand_sign(c, factor, relation, "the factor")
    added = after - factor * claim
    stated = c.admit(gain) if gain is not None else c.reduce(added)[0]
    reducer = _demand_zero(c, added - stated, "the gain is not what the step adds")
    if not assumed.is_nonnegative(stated) and not assumed.is_combination(stated, strict=False):
        _demand_sign(assumed, stated, "≥", "the gain")
    return _fact(c, left, relation, right, stated, reducer)


def _gains_nothing(c: Context, assumed: Context, reversed_: Relational, added: Expr, after: Expr) -> str:
    """Both sides of an equality gain the same; or they are equal with the statement at n put in, either way round."""
    rest, reducer = c.reduce(added)
    for known in (assumed, c.with_given(reversed_)):
        if rest == 0:
            return reducer
        try:
            left_over, reducer = known.reduce(after)
        except StepError:  # a definition in terms of itself does not come to an end
            continue
        rest = S.Zero if left_over == 0 else rest
    if rest != 0:
        raise StepError(f"the step from n to n + 1 fails: {text(rest)} is left over")
    return reducer


# -- rules for facts ---------------------------------------------------------------------------------------------------


def chained(facts: Iterable[Fact]) -> Fact:
    """a = b and b ≤ c give a ≤ c: facts of one direction, each beginning where the one before ends."""
    first, *others = facts
    relation, last = _relation(first), first.statement.rhs
    for fact in others:
        if alike(fact.statement.lhs) != alike(last) or (fact.hypotheses, fact.within) != (
            first.hypotheses,
            first.within,
        ):
            raise StepError("a chain needs facts under the same hypotheses, each beginning where the one before ends")
        if {relation, _relation(fact)} & {"≤", "<"} and {relation, _relation(fact)} & {"≥", ">"}:
            raise StepError("≤ and ≥ in one chain say nothing about its ends")
        relation, last = max(relation, _relation(fact), key="=≤≥<>".index), fact.statement.rhs
    return replace(first, statement=KINDS[relation](first.statement.lhs, last, evaluate=False), rule=_RULE)


def concluded(fact: Fact, name: str, written: Relational, expressions: Iterable[Expr]) -> Fact:
    """The fact under a name: it says something, every name means one thing, and its hypotheses have an instance.

    `written`: the statement in the words of the author, with derivatives; `expressions`: everything else that its proof
    used.
    """
    left, right = fact.statement.lhs, fact.statement.rhs
    sides = [alike(_evaluated(written.lhs)), alike(_evaluated(written.rhs))]
    if sides[0] == sides[1] or all(isinstance(side, Rational) for side in sides):
        raise StepError(f"{text(written)} says nothing")
    stated = _up_to_names(fact.statement)
    if any(stated in (_up_to_names(g.statement), _up_to_names(g.statement.reversed)) for g in fact.hypotheses):
        raise StepError(f"{text(written)} says nothing: it is assumed")
    assumed = [side for given in fact.hypotheses for side in (given.statement.lhs, given.statement.rhs)]
    limits = [end for limits in fact.within.values() for end in limits]
    demand_unique([left, right, *assumed, *fact.within, *limits, *expressions])
    instance = instance_of(fact.hypotheses, fact.within)
    if broken := refute(left, _relation(fact), right, fact.hypotheses, fact.within, DRAWS):
        raise StepError(f"{text(written)} is false where {broken}: a step passed that should not have")
    return replace(fact, name=name, instance=instance, rule=_RULE)


def instantiated(fact: Fact, values: Values, free: tuple[Symbol, ...]) -> Fact:
    """The fact for given values of its symbols (bases take Lambdas), for all values of the indices `free`.

    These are, unless others are named, the indices with ranges that take no value. What a value must be and is not seen
    to be, positive or at least 0, becomes a hypothesis; its range, a demand.
    """
    values = {name: _value(name, value) for name, value in values.items()}
    free = free or tuple(i for i in fact.within if i not in values)
    needed = [Given(r, free) for name, value in values.items() for r in _missing(name, value)]
    hypotheses = [_given_at(given, values, free) for given in fact.hypotheses]

    def at(expr: Expr) -> Expr:
        return substitute(expr, values)

    ranges = {i: (at(lo), at(hi)) for i, (lo, hi) in fact.within.items()}
    within = {i: limits for i, limits in ranges.items() if i in free and i not in values}
    demands = [(at(value), (at(lo), at(hi))) for value, (lo, hi) in fact.demands]
    demands += [(values.get(i, i), limits) for i, limits in ranges.items() if i not in within]
    sides = [at(side) for side in _sides([fact])]
    statement = fact.statement.func(*sides, evaluate=False)
    return Fact(statement, free, within, fact.name, (*hypotheses, *needed), tuple(demands), rule=_RULE)


def used(c: Context, fact: Fact) -> Context:
    """The context in which a lemma may be used: what it needs is among the hypotheses, or follows from them."""
    if not isinstance(fact, Fact) or not fact.name:
        raise StepError("a lemma is a fact with a name: a derivation that has reached qed()")
    for given in fact.hypotheses:
        if not c.follows(given):
            raise StepError(f"lemma {fact.name!r} needs {text(given.statement)}")
    names = {i: Dummy(i.name, **i._assumptions_orig) for i in fact.free}  # not the context's own indices
    known = c.quantified({names[i]: (lo.xreplace(names), hi.xreplace(names)) for i, (lo, hi) in fact.within.items()})
    for value, (lo, hi) in fact.demands:
        if not known.lies(*(e.xreplace(names) for e in (value, lo, hi))):
            raise StepError(f"lemma {fact.name!r} needs {text(value)} from {lo} to {hi}")
    for side in _sides([fact]):
        known.enter(side.xreplace(names))
    return replace(c, lemmas=(*c.lemmas, fact))


# -- their side conditions ---------------------------------------------------------------------------------------------


def _ordered(c: Context, left: Expr, relation: str, right: Expr) -> tuple[Expr, Expr, Expr]:
    """Both sides, admitted and real, and the larger less the smaller."""
    left, right = c.admit(left), c.admit(right)
    for side in (left, right):
        if not c.is_real(side):
            raise StepError(f"only real numbers have an order, and {text(side)} is not seen to be real")
    return left, right, left - right if relation in "≥>" else right - left


def _demand_zero(c: Context, expr: Expr, message: str) -> str:
    rest, reducer = c.reduce(expr)
    if rest != 0:
        raise StepError(f"{message}: {text(rest)} is left over")
    return reducer


def _holds(c: Context, relation: str) -> Callable[[Expr], bool]:
    return c.is_positive if relation in "<>" else c.is_nonnegative


def _demand_sign(c: Context, expr: Expr, relation: str, what: str) -> None:
    if not _holds(c, relation)(expr):
        wanted = "> 0" if relation in "<>" else "≥ 0"
        raise StepError(f"{what} is not seen to be {wanted}: {text(expr)}")


def _simplest(c: Context, expr: Expr) -> Expr:
    """The expression, or what reduction leaves of it, where only that shows its sign."""
    return expr if c.is_nonnegative(expr) else c.reduce(expr)[0]


def _relation(fact: Fact) -> str:
    return {kind: relation for relation, kind in KINDS.items()}[fact.statement.func]


def _up_to_names(statement: Relational) -> tuple[Expr, str, Expr]:
    return alike(statement.lhs), statement.rel_op, alike(statement.rhs)


def _sides(facts: Iterable[Any]) -> list[Expr]:
    return [side for f in facts if isinstance(f.statement, Relational) for side in (f.statement.lhs, f.statement.rhs)]


def _evaluated(e: Basic) -> Any:
    return e.func(*map(_evaluated, e.args)) if e.args and not isinstance(e, Subs | Derivative | Integral) else e


def _value(name: Any, value: Any) -> Any:
    """What a symbol or base is given, in form: an expression, a base, or a Lambda of plain indices."""
    if not isinstance(name, Symbol | IndexedBase):
        raise StepError(f"values are put in for symbols and bases, got one for {name}")
    if isinstance(value, IndexedBase) and isinstance(name, IndexedBase):
        return value
    if isinstance(name, IndexedBase) and (
        not isinstance(value, Lambda) or not all(map(is_plain_index, value.variables))
    ):
        raise StepError(
            f"the base {name} takes a base or a Lambda whose variables are declared integer and nothing more"
        )
    inner = domain.expression(value.expr if isinstance(value, Lambda) else value)
    if inner.has(Derivative, Subs, Integral):
        raise StepError(f"{text(inner)} cannot be put in for {name}: write out what it is")
    return value if isinstance(value, Lambda) else inner


def _missing(name: Symbol | IndexedBase, value: Any) -> list[Relational]:
    """The signs that a value must have and is not seen to have; a StepError for any other property."""
    c = Context()
    symbol = name if isinstance(name, Symbol) else name.label
    inner = value.expr if isinstance(value, Lambda) else value.label if isinstance(value, IndexedBase) else value
    needed = []
    for missing in lacking(inner, symbol):
        kind = {"positive": StrictGreaterThan, "nonnegative": GreaterThan}.get(missing)
        if kind and (c.is_positive if missing == "positive" else c.is_nonnegative)(inner):
            continue
        if missing == "real" and c.is_real(inner):
            continue
        wrong = kind and (c.is_positive(-inner) or (missing == "positive" and c.is_nonnegative(-inner)))
        if not kind or wrong or not isinstance(name, Symbol) or not c.is_real(inner):
            raise StepError(f"{value} is not known to be {missing}, as {name} is")
        needed.append(kind(inner, 0, evaluate=False))
    return needed


def _given_at(given: Given, values: Values, free: tuple[Symbol, ...]) -> Given:
    """A lemma's hypothesis for given values of its symbols; its own indices get fresh names first."""
    names = {i: Dummy(i.name, **i._assumptions_orig) for i in given.free}
    statement = given.statement
    sides = [substitute(rename_bound(side).xreplace(names), values) for side in (statement.lhs, statement.rhs)]
    within = {
        names[i]: tuple(substitute(e.xreplace(names), values) for e in limits) for i, limits in given.within.items()
    }
    return Given(statement.func(*sides, evaluate=False), (*names.values(), *free), within)
