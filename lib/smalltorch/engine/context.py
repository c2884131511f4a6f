"""What a derivation may use: hypotheses, lemmas, ranges; and what follows from them for one expression.

Nothing here makes a fact. The rules of `kernel` ask a `Context` whether an expression may enter, reduces to 0, or has a
sign; the answer rests on SymPy's core and on `sums`, `signs`, `domain`, `differentiate`, `regroup` and `interval`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
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
    Poly,
    PolynomialError,
    Pow,
    Product,
    S,
    Subs,
    Sum,
    Symbol,
    cancel,
    expand,
    simplify,
)
from sympy.core.relational import Equality, GreaterThan, Relational, Unequality

from smalltorch.engine import domain, signs
from smalltorch.engine.differentiate import differentiate
from smalltorch.engine.display import text
from smalltorch.engine.interval import is_nonzero_number
from smalltorch.engine.names import Name, declared
from smalltorch.engine.refusal import StepError
from smalltorch.engine.regroup import regroupings
from smalltorch.engine.sums import (
    Given,
    Range,
    SumRule,
    Usable,
    bound_ranges,
    lacking,
    match,
    normal_form,
    rename_bound,
    substitute,
    sum_rule,
)
from smalltorch.engine.trial import vanishes

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
        """The expression, if it is seen to be defined wherever the hypotheses hold; a StepError otherwise."""
        expr = domain.expression(given)
        domain.check(self.resolve(expr), self)
        return expr

    def resolve(self, expr: Basic) -> Any:
        """Derivatives, values of Subs and integrals of polynomials carried out, innermost first."""
        if not expr.has(Derivative, Subs, Integral):
            return expr
        if isinstance(expr, Derivative):
            return self._differentiated(expr)
        if isinstance(expr, Subs):
            return self._put_in(expr)
        if isinstance(expr, Integral):
            return self._integrated(expr)
        if isinstance(expr, Sum | Product):
            expr = rename_bound(expr)
            return expr.func(self.resolve(expr.function), *expr.limits)
        return expr.func(*map(self.resolve, expr.args))

    def _differentiated(self, expr: Derivative) -> Expr:
        result = self.resolve(expr.expr)
        if not any(isinstance(s, Dummy) for s in result.free_symbols):  # under a sum, the whole is checked
            domain.check(result, self)
        for x, times in expr.variable_count:
            if not times.is_Integer:
                raise StepError(f"{text(expr)}: how often must be a number")
            self._demand_constants(result, x)
            for _ in range(int(times)):
                result = differentiate(result, x)
        return result

    def _put_in(self, expr: Subs) -> Expr:
        inner, values = self.resolve(expr.expr), dict(zip(expr.variables, expr.point, strict=True))
        for x, value in values.items():
            domain.expression(value)
            self.demand_declared(x, value)
            self._demand_constants(inner, x)
        return substitute(inner, values)

    def _integrated(self, expr: Integral) -> Expr:
        """By an antiderivative, which the rules of `differentiate` confirm."""
        if len(expr.limits) != 1 or len(expr.limits[0]) != 3:
            raise StepError(f"{text(expr)} must have one range")
        (x, lo, hi), f = expr.limits[0], self.resolve(expr.function)
        if x._assumptions_orig != {"real": True} or not (signs.is_real(lo) and signs.is_real(hi)):
            raise StepError(f"{text(expr)}: {x} must be declared real and no more, and run between real numbers")
        self._demand_constants(f, x)
        domain.check(f, self)
        try:
            terms = Poly(f, x).terms()
        except PolynomialError:
            raise StepError(f"{text(f)} is not a polynomial in {x}; no other integral is known here") from None
        antiderivative = Add(*[c * x ** (k + 1) / (k + 1) for (k,), c in terms])
        if any(c.has(x) for _, c in terms) or expand(differentiate(antiderivative, x) - f) != 0:
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
        sizes: set[Any] = {
            s
            for e in (expr, *self._sides())
            for q in e.atoms(Sum, Product)
            for lim in q.limits
            for s in (lim[1].free_symbols | lim[2].free_symbols)
        }
        sizes |= {s for limits in self.ranges.values() for end in limits for s in end.free_symbols}
        tied: set[Name] = {own}
        for _ in self.given:  # at most so many steps lead from one name to another
            for fact in self.given:
                names = declared(fact.statement) - set(fact.free) - sizes
                if names & tied and not isinstance(fact.statement, Unequality):
                    tied |= names
        for name in sorted((tied - {own}) & declared(expr), key=str):
            raise StepError(
                f"the derivative by {x} holds {name} constant, and a hypothesis ties it to {x}; write it out"
            )

    def _sides(self) -> Iterator[Expr]:
        for fact in self.given:
            yield from (fact.statement.lhs, fact.statement.rhs)

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
        stated = (f for f in self.usable if isinstance(f.statement, Unequality) and f.statement.rhs == 0)
        return (
            expr.is_zero is False
            or any(match(f.statement.lhs, f, expr, self.ranges) is not None for f in stated)
            or self.is_positive(expr)
            or self.is_positive(-expr)
        )

    # -- reduction ---------------------------------------------------------------------------------------------------

    def reduce(self, expr: Expr) -> Reduced:
        """What definitions, sum rules and SymPy leave of the expression, and which reducer came last; 0 proves 0."""
        expr = self.unfold(rename_bound(self.resolve(expr)))
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
        return found

    def _close(self, rest: Expr, reducers: tuple[Callable[[Expr], Expr], ...] = ()) -> Reduced:
        hidden: dict[Expr, Dummy] = {}  # one name for a sum, whatever its bound index is called
        sums = {s: hidden.setdefault(s.as_dummy(), Dummy()) for s in rest.atoms(Sum)}
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
        """Whether a hypothesis, a lemma or a range depends on the symbol."""
        in_facts = any(symbol in f.statement.free_symbols - set(f.free) for f in self.usable)
        in_facts = in_facts or any(symbol in e.free_symbols for f in self.usable for r in f.within.values() for e in r)
        return in_facts or any(symbol in e.free_symbols for limits in self.ranges.values() for e in limits)

    def with_given(self, *statements: Relational) -> "Context":
        """The context with more hypotheses, of no free index."""
        return replace(self, given=(*self.given, *map(Given, statements)))


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
    for fact in context.given:
        within = context.quantified(dict(fact.within))
        for side in (fact.statement.lhs, fact.statement.rhs):
            within.admit(side)
    return context
