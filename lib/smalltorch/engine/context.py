"""The context of a derivation: hypotheses, lemmas and ranges, and what they imply for an expression.

Nothing here makes a fact. The rules of `kernel` ask a `Context` whether an expression may enter, reduces to 0, or has a
sign; the answer rests on SymPy's core and on `sums`, `signs`, `domain`, `differentiate`, `merge_sums` and `interval`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sympy import (
    Abs,
    Add,
    Basic,
    Derivative,
    Dummy,
    Expr,
    Indexed,
    Integral,
    Max,
    Min,
    Mul,
    Piecewise,
    Poly,
    PolynomialError,
    Pow,
    Product,
    S,
    Subs,
    Sum,
    Symbol,
    cancel,
    cosh,
    coth,
    exp,
    expand,
    reduced,
    simplify,
    sinh,
    tanh,
    together,
)
from sympy.core.relational import Equality, GreaterThan, Relational, Unequality

from smalltorch.engine import domain, signs
from smalltorch.engine.binders import Limit, Range, alike, bound_ranges, fresh_indices, rename_bound, substitute
from smalltorch.engine.combine import multipliers
from smalltorch.engine.differentiate import differentiate
from smalltorch.engine.display import text
from smalltorch.engine.interval import is_nonzero_number
from smalltorch.engine.merge_sums import regroupings
from smalltorch.engine.names import Name, declared
from smalltorch.engine.refusal import StepError
from smalltorch.engine.spot_check import vanishes
from smalltorch.engine.sums import (
    Given,
    SumRule,
    Usable,
    index_expressions,
    instances,
    lacking,
    match,
    normal_form,
    sum_rule,
)

_EXPONENTIAL = (sinh, cosh, tanh, coth)  # rewritten as exponentials, where nothing else shows it
Reduced = tuple[Expr, str]  # what is left of an expression, and the reducer that came to it


@dataclass(frozen=True)
class Context:
    """Hypotheses, proved facts, and the ranges of indices. `places`: free indices as lo + a number that is ≥ 0."""

    given: tuple[Given, ...] = ()
    lemmas: tuple[Usable, ...] = ()
    ranges: Mapping[Expr, Range] = field(default_factory=dict)
    places: Mapping[Expr, Expr] = field(default_factory=dict)

    @property
    def usable(self) -> tuple[Usable, ...]:
        return (*self.given, *self.lemmas)

    def inside(self, index: Symbol, lo: Expr, hi: Expr) -> tuple[Expr, "Context"]:
        """The index as lo + a number that is ≥ 0, and the context in which it lies in its range."""
        place = lo + Dummy(index.name, integer=True, nonnegative=True)
        below = GreaterThan(hi, place, evaluate=False)
        return place, replace(self, given=(*self.given, Given(below)), ranges={**self.ranges, place: (lo, hi)})

    # -- whether an expression may enter ---------------------------------------------------------------------------

    def admit(self, given: Any) -> Expr:
        """What an author wrote, as the kernel sees it; a StepError where it is not seen to be defined.

        Derivatives, values of Subs and integrals are carried out, bound indices renamed.
        """
        return self.enter(domain.expression(given))

    def enter(self, expr: Expr) -> Expr:
        """`admit` for an expression whose form is known to be right."""
        expr = rename_bound(self._resolve(expr, ()))
        domain.check(expr, self)
        return expr

    def _resolve(self, expr: Basic, around: tuple[Limit, ...]) -> Any:
        """Innermost first; what they are of is checked where it stands, inside the ranges `around` it."""
        if not expr.has(Derivative, Subs, Integral):
            return expr
        if isinstance(expr, Sum | Product):
            expr = fresh_indices(expr)
            limits = (*(tuple(limit) for limit in expr.limits), *around)
            return expr.func(self._resolve(expr.function, limits), *expr.limits)
        rule = {Derivative: self._differentiated, Subs: self._put_in, Integral: self._integrated}.get(expr.func)
        return rule(expr, around) if rule else expr.func(*[self._resolve(a, around) for a in expr.args])

    def _check_inside(self, expr: Expr, around: tuple[Limit, ...]) -> None:
        domain.check(rename_bound(Sum(expr, *around)) if around else rename_bound(expr), self)

    def _differentiated(self, expr: Derivative, around: tuple[Limit, ...]) -> Expr:
        result = self._resolve(expr.expr, around)
        self._check_inside(result, around)
        for x, times in expr.variable_count:
            if not times.is_Integer:
                raise StepError(f"{text(expr)}: how often must be a number")
            self._demand_constants(result, x)
            for _ in range(int(times)):
                result = differentiate(result, x, self.is_real)
        return result

    def _put_in(self, expr: Subs, around: tuple[Limit, ...]) -> Expr:
        points = [self._resolve(value, around) for value in expr.point]
        inner, values = self._resolve(expr.expr, around), dict(zip(expr.variables, points, strict=True))
        for x, value in values.items():
            domain.expression(value)
            self.demand_declared(x, value)
            self._demand_constants(inner, x)
        self._check_parts(inner, values, around)
        return substitute(inner, values)

    def _check_parts(self, expr: Basic, values: Mapping[Symbol, Expr], around: tuple[Limit, ...]) -> None:
        """Each part by itself, for a value may take away what is not defined: of r log t at r = 0 nothing is left."""
        if isinstance(expr, Sum | Product):
            expr = fresh_indices(expr)
            around = (*[(i, substitute(lo, values), substitute(hi, values)) for i, lo, hi in expr.limits], *around)
            self._check_parts(expr.function, values, around)
            return
        for part in expr.args:
            self._check_parts(part, values, around)
        if isinstance(expr, Expr):
            self._check_inside(substitute(expr, values), around)

    def _integrated(self, expr: Integral, around: tuple[Limit, ...]) -> Expr:
        """By an antiderivative, which the rules of `differentiate` confirm."""
        if len(expr.limits) != 1 or len(expr.limits[0]) != 3:
            raise StepError(f"{text(expr)} must have one range")
        (x, lo, hi), f = expr.limits[0], self._resolve(expr.function, around)
        lo, hi = (self._resolve(end, around) for end in (lo, hi))
        if x._assumptions_orig != {"real": True} or not (self.is_real(lo) and self.is_real(hi)):
            raise StepError(f"{text(expr)}: {x} must be declared real and no more, and run between real numbers")
        self._demand_constants(f, x)
        self._check_inside(f, around)
        try:
            terms = Poly(f, x).terms()
        except PolynomialError:
            raise StepError(f"{text(f)} is not a polynomial in {x}; no other integral is known here") from None
        antiderivative = Add(*[c * x ** (k + 1) / (k + 1) for (k,), c in terms])
        if any(c.has(x) for _, c in terms) or expand(differentiate(antiderivative, x, self.is_real) - f) != 0:
            raise StepError(f"{text(antiderivative)} is not an antiderivative of {text(f)}")
        return substitute(antiderivative, {x: hi}) - substitute(antiderivative, {x: lo})

    def demand_declared(self, symbol: Any, value: Expr) -> None:
        """Refuse a value without a property that its symbol was declared with."""
        if not isinstance(symbol, Symbol):
            raise StepError(f"{symbol} is no symbol, and takes no value")
        for name in lacking(value, symbol):
            holds = {"positive": self.is_positive, "nonnegative": self.is_nonnegative, "real": self.is_real}.get(name)
            if holds is None or not holds(value):
                raise StepError(f"{value} is not known to be {name}, as {symbol} is")

    def _demand_constants(self, expr: Expr, x: Expr) -> None:
        """Refuse ∂/∂x where a hypothesis ties another name of the expression to x."""
        own = x.base if isinstance(x, Indexed) else x
        tied: set[Name] = {own}
        for _ in self.given:  # at most so many steps lead from one name to another
            for names in map(self._tied_by, self.given):
                if names & tied:
                    tied |= names
        for name in sorted((tied - {own}) & declared(expr), key=str):
            raise StepError(
                f"the derivative by {x} holds {name} constant, and a hypothesis ties it to {x}; write it out"
            )

    def _tied_by(self, fact: Given) -> set[Name]:
        """The names of which one cannot move without another. Integers stay as they are while others move, unless the
        hypothesis speaks of one other name only, and says with the integer which value it has.
        """
        if isinstance(fact.statement, Unequality):
            return set()
        names = declared(fact.statement) - set(fact.free)
        moving = {name for name in names if not (isinstance(name, Symbol) and name.is_integer)}
        return names if len(moving) < 2 else moving

    # -- signs -----------------------------------------------------------------------------------------------------

    @property
    def inequalities(self) -> list[Usable]:
        return [f for f in self.usable if not isinstance(f.statement, Equality | Unequality)]

    def is_nonnegative(self, expr: Expr) -> bool:
        """Whether structure and hypotheses show that `expr` is ≥ 0."""
        return self._holds(signs.is_nonnegative, expr)

    def is_positive(self, expr: Expr) -> bool:
        """Whether they show that it is > 0."""
        return self._holds(signs.is_positive, expr)

    def _holds(self, seen: Callable[..., bool], expr: Expr) -> bool:
        if seen(expr, self.inequalities, self.ranges):
            return True
        placed = expr.xreplace(dict(self.places))
        return placed != expr and seen(placed, self.inequalities, self.ranges)

    def is_real(self, expr: Expr) -> bool:
        """Whether they show that it is real."""
        return signs.is_real(expr, self.inequalities)

    def is_nonzero(self, expr: Expr) -> bool:
        """Whether they show that it is not 0."""
        if expr.is_number:
            return is_nonzero_number(expr)
        if isinstance(expr, Mul) and expr.is_commutative:
            return all(map(self.is_nonzero, expr.args))
        if isinstance(expr, Pow) and expr.is_commutative:
            return self.is_nonzero(expr.base)
        return (
            expr.is_zero is False
            or any(self._is_unequal(f, expr) for f in self.usable if isinstance(f.statement, Unequality))
            or self.is_positive(expr)
            or self.is_positive(-expr)
        )

    def _is_unequal(self, fact: Usable, expr: Expr) -> bool:
        """Whether a hypothesis a ≠ b says that ± (a - b), or a where b = 0, is not 0."""
        left, right = fact.statement.lhs, fact.statement.rhs
        if right == 0 and match(left, fact, expr, self.ranges) is not None:
            return True
        return not fact.free and 0 in (expand(left - right - expr), expand(left - right + expr))

    # -- reduction ---------------------------------------------------------------------------------------------------

    def reduce(self, expr: Expr) -> Reduced:
        """What definitions, sum rules and SymPy leave of the expression, and which reducer came last; 0 proves 0."""
        expr = self._decided(self.unfold(rename_bound(expr)))
        expr = expr.replace(_is_extreme, lambda e: e.rewrite(Abs))
        rest = normal_form(expr, self._sum_rules(), self.ranges)
        if rest == 0 or not rest.is_commutative:  # what follows takes factors to commute
            return rest, "normal form"
        found = self._close(rest, (expand, cancel))
        if found[0] != 0:
            again = normal_form(self.unfold(rename_bound(rest)), self._sum_rules(), self.ranges)
            for regrouped in regroupings(again, lambda summand: self._close(summand)[0]):
                if (closed := self._close(regrouped, (expand, cancel)))[0] == 0:
                    return closed
            found = self._close(rest)
        if (
            found[0] != 0
            and rest.has(*_EXPONENTIAL)
            and (again := self._close(rest.rewrite(exp), (expand, cancel)))[0] == 0
        ):
            return again
        return found if found[0] == 0 else self._by_equalities(found[0]) or found

    def _by_equalities(self, rest: Expr) -> Reduced | None:
        """0, where the numerator is a combination of hypotheses a - b = 0 with polynomials; None where none is seen."""
        stated = [f.statement for f in self.given if isinstance(f.statement, Equality) and not f.free]
        if not stated or not rest.is_commutative:
            return None
        known = [_numerator(normal_form(e.lhs - e.rhs)) for e in stated]
        sums = _names_of_sums(rest, *known)
        numerator, *known = (e.xreplace(sums) for e in (_numerator(rest), *known))
        try:
            factors, left_over = reduced(numerator, known)
        except PolynomialError:
            return None
        combined = Add(*[factor * e for factor, e in zip(factors, known, strict=True)])
        return (S.Zero, "hypotheses") if left_over == 0 and expand(numerator - combined) == 0 else None

    def _decided(self, expr: Expr) -> Expr:
        """|u|, a larger and a smaller one, and cases, where the hypotheses decide which it is."""

        def decide(e: Expr) -> Expr:
            if isinstance(e, Piecewise):
                return self._case(e)
            if isinstance(e, Abs):
                return next((value for value in (e.args[0], -e.args[0]) if self.is_nonnegative(value)), e)
            way = 1 if isinstance(e, Max) else -1
            first = (a for a in e.args if all(a == b or self.is_nonnegative(way * (a - b)) for b in e.args))
            return next(first, e)

        return expr.replace(lambda e: isinstance(e, Abs | Max | Min | Piecewise), decide)

    def _case(self, expr: Expr) -> Expr:
        for value, condition in expr.args:
            if condition is S.true or self.follows(Given(condition)):
                return value
            if not self.follows(Given(condition.negated)):
                raise StepError(f"{text(condition)} is not decided; use Cases({text(condition)})")
        raise StepError(f"no case of {text(expr)} is met")

    def _close(self, rest: Expr, reducers: tuple[Callable[[Expr], Expr], ...] = ()) -> Reduced:
        sums = _names_of_sums(rest)
        names, how = {d: s for s, d in sums.items()}, "normal form"
        for simpler in reducers or (expand, cancel, simplify):
            if rest != 0:
                before, how = rest.xreplace(sums), simpler.__name__
                rest = simpler(before).xreplace(names)
                if rest == 0 and how == "simplify" and (doubt := vanishes(before, self.inequalities, self.ranges)):
                    raise StepError(f"SymPy simplifies {text(before.xreplace(names))} to 0, but {doubt}")
        return rest, how

    def unfold(self, expr: Expr) -> Expr:
        """The definitions among the facts applied until none applies."""
        for _ in range(10):
            before = expr
            for fact in self.usable:
                if isinstance(fact.statement, Equality) and sum_rule(fact) is None:
                    expr = _rewrite(expr, fact, self.ranges)
            if expr == before:
                return expr
        raise StepError("the definitions among the facts do not come to an end")

    def _sum_rules(self) -> list[SumRule]:
        return [rule for f in self.usable if isinstance(f.statement, Equality) and (rule := sum_rule(f))]

    def is_combination(self, expr: Expr, strict: bool) -> bool:
        """Whether the expression is hypotheses a - b ≥ 0, each times a number ≥ 0, and what is seen to be ≥ 0, added.

        `strict`: the sum must be > 0.
        """
        known: list[tuple[Expr, bool]] = []
        for fact in (f for f in self.inequalities if isinstance(f.statement, Relational)):
            difference = rename_bound(fact.statement.gts - fact.statement.lts)  # nothing that is put in is captured
            for values in instances(fact.free, index_expressions(expr) if fact.free else (), fact.within, self.ranges):
                known.append((difference.xreplace(values), fact.statement.rel_op in ("<", ">")))
        try:
            terms = [normal_form(e, self._sum_rules(), self.ranges) for e in (expr, *(e for e, _ in known))]
            terms[0] = normal_form(terms[0])  # sums that powers of roots have left
        except ValueError:  # outside the normal form's domain
            return False
        found = multipliers(terms[0], terms[1:], lambda term: signs.sign(term, self.inequalities, self.ranges))
        if found is None:
            return False
        factors, rest = found
        combined = Add(*[factor * e for factor, (e, _) in zip(factors, known, strict=True)])
        if self.reduce(expr - combined - rest)[0] != 0 or not all(factor >= 0 for factor in factors):
            return False
        is_strict = any(factor > 0 and s for factor, (_, s) in zip(factors, known, strict=True))
        return self.is_positive(rest) or (self.is_nonnegative(rest) and (is_strict or not strict))

    # -- what follows ----------------------------------------------------------------------------------------------

    def follows(self, fact: Usable) -> bool:
        """Whether a hypothesis of a lemma is among the facts, or follows from one, for all values of its indices."""
        names = {i: Dummy(i.name, **i._assumptions_orig) for i in fact.free}
        statement = fact.statement.xreplace(names)
        if not isinstance(statement, Relational):  # decided by itself
            return statement is S.true
        within = {names[i]: (lo.xreplace(names), hi.xreplace(names)) for i, (lo, hi) in fact.within.items()}
        known = self.quantified(within)
        difference = statement.lhs - statement.rhs
        if isinstance(statement, Equality):
            return known.reduce(difference)[0] == 0
        if isinstance(statement, Unequality):
            return known.is_nonzero(difference)
        return signs.states(statement, signs.sign(difference, known.inequalities, known.ranges))

    def quantified(self, within: Mapping[Symbol, Range]) -> "Context":
        """The context in which further indices lie in ranges."""
        places = {i: lo + Dummy(i.name, integer=True, nonnegative=True) for i, (lo, hi) in within.items()}
        return replace(self, ranges={**self.ranges, **within}, places={**self.places, **places})

    def lies(self, value: Expr, lo: Expr, hi: Expr) -> bool:
        """Whether an index is seen to lie in a range."""
        if self.ranges.get(value) == (lo, hi):
            return True
        return bool(value.is_integer) and all(
            self.is_nonnegative(d) or d.is_nonnegative for d in (value - lo, hi - value)
        )

    def mentions(self, symbol: Symbol) -> bool:
        """Whether a hypothesis or a range depends on the symbol. (What a lemma says of it holds for all its values.)"""
        ends = [end for f in self.given for limits in f.within.values() for end in limits]
        ends += [end for limits in self.ranges.values() for end in limits]
        in_facts = any(symbol in f.statement.free_symbols - set(f.free) for f in self.given)
        return in_facts or any(symbol in end.free_symbols for end in ends)

    def with_given(self, *statements: Relational) -> "Context":
        """The context with more hypotheses, of no free index."""
        return replace(self, given=(*self.given, *map(Given, statements)))


def _names_of_sums(*expressions: Expr) -> dict[Expr, Dummy]:
    """One name for each sum, whatever its bound indices are called."""
    names: dict[Expr, Dummy] = {}
    return {s: names.setdefault(alike(s), Dummy()) for e in expressions for s in e.atoms(Sum)}


def _numerator(expr: Expr) -> Expr:
    return expand(together(expr).as_numer_denom()[0])


def _is_extreme(e: Basic) -> bool:
    return isinstance(e, Max | Min) and len(e.args) == 2 and all(map(signs.is_real, e.args))


def _rewrite(expr: Expr, fact: Usable, ranges: Mapping[Expr, Range]) -> Expr:
    """Replace every instance of the left side of a definition by its right side."""
    left, right = fact.statement.lhs, fact.statement.rhs
    ranges = {**ranges, **bound_ranges(expr)}
    return expr.replace(
        lambda e: match(left, fact, e, ranges) is not None,
        lambda e: rename_bound(right).xreplace(match(left, fact, e, ranges)),
    )


def free_context(ranges: Mapping[Symbol, tuple[Any, Any]]) -> Context:
    """The context in which indices lie in ranges, and nothing else is known."""
    limits = {i: (domain.expression(lo), domain.expression(hi)) for i, (lo, hi) in ranges.items()}
    return Context().quantified(limits)


def assumed(context: Context, hypotheses: Iterable[Given]) -> Context:
    """The context with hypotheses whose sides may enter, once all of them are assumed."""
    context = replace(context, given=(*context.given, *hypotheses))
    admitted = []
    for fact in context.given:
        within = context.quantified(dict(fact.within))
        sides = [within.admit(side) for side in (fact.statement.lhs, fact.statement.rhs)]
        admitted.append(replace(fact, statement=fact.statement.func(*sides, evaluate=False)))
    return replace(context, given=tuple(admitted))
