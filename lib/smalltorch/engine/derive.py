r"""Derivations: chains e₀ = e₁ ≤ e₂ … in which every step is checked by SymPy when it is written.

    >>> from sympy import Eq, symbols
    >>> n = symbols("n", integer=True, positive=True)
    >>> i, j, k = symbols("i j k", integer=True)
    >>> I, J, K = (i, 1, n), (j, 1, n), (k, 1, n)
    >>> A, x = IndexedBase("A", nonnegative=True), IndexedBase("x", real=True)
    >>> d = Derivation("column-sums", scope="all n", given=[for_all(i, Eq(Sum(A[i, j], J), 1))])
    >>> d = d.start(Sum(Sum(A[i, j] * x[j], J)**2, I))
    >>> variance = Sum(A[i, j] * A[i, k] * (x[j] - x[k])**2, I, J, K) / 2
    >>> d.le(Sum(A[i, j] * x[j]**2, I, J), because="Jensen: the gap is a variance", gap=variance).qed()
    column-sums   [all n]
      given  Sum(A[i, j], (j, 1, n)) = 1 for all i
      given  A ≥ 0
      given  n integer and > 0
      given  x real
        Sum(Sum(A[i, j]*x[j], (j, 1, n))**2, (i, 1, n))
      ≤ Sum(A[i, j]*x[j]**2, (i, 1, n), (j, 1, n))   ✓ (1) Jensen: the gap is a variance
            certificate: Sum((x[j] - x[k])**2*A[i, j]*A[i, k], (i, 1, n), (j, 1, n), (k, 1, n))/2

An equality passes only if SymPy reduces the difference to the number 0. An inequality passes only with a certificate:
a gap whose structure shows its sign (a sum of squares, of non-negative terms, or a product of signed factors),
`Monotone`, or `Induction`. A hypothesis or another derivation enters through `given`, is shown, and nothing else may
be used. A search for values that break a step can refute it; it never passes one.

What SymPy simplifies while an expression is built (x/x to 1, √(ab) to √a·√b where a is declared positive) happens
before any check; the chain shows what is left. Outside the main thread a step is not bounded in time.
"""

import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from sympy import (
    Basic,
    Derivative,
    Dummy,
    Expr,
    Float,
    Indexed,
    IndexedBase,
    Integral,
    Lambda,
    Piecewise,
    Pow,
    Product,
    S,
    Subs,
    Sum,
    Symbol,
    atan,
    cancel,
    cos,
    cosh,
    diff,
    exp,
    expand,
    latex,
    log,
    simplify,
    sin,
    sinh,
    sympify,
    tanh,
)
from sympy.core.function import Application, AppliedUndef, FunctionClass
from sympy.core.relational import (
    Equality,
    GreaterThan,
    LessThan,
    Relational,
    StrictGreaterThan,
    StrictLessThan,
    Unequality,
)
from sympy.logic.boolalg import Boolean

from smalltorch.engine import ledger
from smalltorch.engine.refute import refute
from smalltorch.engine.schema import Evidence
from smalltorch.engine.signs import is_nonnegative, is_positive, is_real, sign, states
from smalltorch.engine.sums import (
    Fact,
    Range,
    SumRule,
    bound_ranges,
    is_plain_index,
    lacking,
    match,
    normal_form,
    rename_bound,
    sum_rule,
)

RELATIONS = {"=": "=", "≤": r"\le", "<": "<", "≥": r"\ge", ">": ">"}
_SYMBOLS = {"==": "=", "<=": "≤", "<": "<", ">=": "≥", ">": ">", "!=": "≠"}
_COMMANDS = {"==": "=", "<=": r"\leq", "<": "<", ">=": r"\geq", ">": ">", "!=": r"\neq"}
_SMOOTH = (exp, sin, cos, sinh, cosh, tanh, atan)  # differentiable on the whole line
SECONDS = 20  # for one step; the usual time is milliseconds

Holds = Callable[[Expr, list[Fact], Mapping[Symbol, Range]], bool]  # is_nonnegative, or is_positive


class StepError(AssertionError):
    """A step that is wrong, or that its certificate does not prove."""


def for_all(*indices_and_statement: Basic) -> Fact:
    """`for_all(i, Eq(Sum(A[i, j], J), 1))`: a hypothesis that holds for every integer i.

    If n was declared positive, `for_all(n, …)` speaks of positive n only.
    """
    *indices, statement = indices_and_statement
    return Fact(statement, tuple(indices))


@dataclass(frozen=True)
class Monotone:
    """Certificate: the gap is ≥ 0 (> 0) at x = `at`, and its derivative in x equals `slope`, which is ≥ 0.

    `x` must be a real symbol with x ≥ `at` by its own assumptions, and no hypothesis may speak of it: the derivative is
    needed on the whole way from `at` to x. The gap may use x in polynomials, exp, log and a few other smooth functions.
    """

    x: Symbol
    slope: Expr
    at: Expr = S.Zero


@dataclass(frozen=True)
class Induction:
    """Certificate: the statement holds at n = `base`, the least value that n may take, and the step from n to n + 1.

    For an equality the step shows that both sides gain the same. For an inequality with the gap g it shows that
    g(n + 1) − g(n) equals `gain`, whose structure shows its sign.
    """

    n: Symbol
    base: int = 1
    gain: Expr | None = None


Certificate = Monotone | Induction


@dataclass
class Step:
    """One line of a chain: the relation to the line before, the expression, the reason, and the certificate if any."""

    relation: str
    expr: Expr
    because: str
    certificate: Expr | None = None


@dataclass
class Derivation:
    """A chain of checked steps.

        >>> a, b = Symbol("a", real=True), Symbol("b", real=True)
        >>> d = Derivation("two-squares", scope="real a and b").start(a * b)
        >>> d.le((a**2 + b**2) / 2, because="a square is left over", gap=(a - b)**2 / 2).qed()
        two-squares   [real a and b]
          given  a, b real
            a*b
          ≤ a**2/2 + b**2/2   ✓ (1) a square is left over
                certificate: (a - b)**2/2

    Args:
        name: what the derivation is called, in words with hyphens.
        scope: what it is proved for; "all n and d" is refused where n or d does not occur.
        given: hypotheses: SymPy relations, `for_all(...)`, or finished derivations (their conclusion is used as a fact,
            and their own hypotheses must be given, or follow from what is).
        ranges: free indices and their ranges, such as {i: (1, d)}.
    """

    name: str
    scope: str
    given: Iterable["Boolean | Fact | Derivation | Lemma"] = ()
    ranges: Mapping[Symbol, tuple[Any, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.steps: list[Step] = []
        self.evidence: Evidence | None = None
        self.facts: list[Fact] = []
        self.ranges = {i: (sympify(lo), sympify(hi)) for i, (lo, hi) in dict(self.ranges).items()}
        for index in self.ranges:
            if not is_plain_index(index):
                raise ValueError(f"ranges: {index} must be a symbol declared integer and nothing more")
        lemmas = []
        for item in self.given:
            if isinstance(item, Derivation | Lemma):
                lemmas.append(item if isinstance(item, Lemma) else item.at({}))
            else:
                self.facts.append(item if isinstance(item, Fact) else Fact(item))
        for fact in self.facts:
            if not isinstance(fact.statement, Relational):
                raise ValueError(f"given: {fact.statement} is not a relation that says anything")
        for fact in self.facts:
            self._admit(fact.statement.lhs), self._admit(fact.statement.rhs)
        for lemma in lemmas:
            for hypothesis in lemma.hypotheses:
                with bounded(SECONDS):
                    if not self._follows(hypothesis):
                        raise StepError(f"{self.name}: lemma {lemma.fact.name!r} needs {_text(hypothesis.statement)}")
            for value, (lo, hi) in lemma.in_range.items():
                inside = all(is_nonnegative(d) or d.is_nonnegative for d in (value - lo, hi - value))
                if not inside and self.ranges.get(value) != (lo, hi):
                    raise StepError(f"{self.name}: lemma {lemma.fact.name!r} needs {_text(value)} from {lo} to {hi}")
            self.facts.append(lemma.fact)

    # -- writing the chain ---------------------------------------------------------------------------------------

    def start(self, expr: Expr | int) -> "Derivation":
        """The first expression of the chain."""
        self.steps, self.evidence = [Step("", self._admit(expr), "")], None
        return self

    def eq(self, expr: Expr | int, because: str, by: Induction | None = None) -> "Derivation":
        """… = expr: the difference must reduce to 0."""
        return self._step("=", expr, because, None, by)

    def le(
        self, expr: Expr | int, because: str, gap: Expr | int | None = None, by: Certificate | None = None
    ) -> "Derivation":
        """… ≤ expr: the gap must equal the difference, and its structure must show that it is ≥ 0."""
        return self._step("≤", expr, because, gap, by)

    def lt(
        self, expr: Expr | int, because: str, gap: Expr | int | None = None, by: Certificate | None = None
    ) -> "Derivation":
        """… < expr."""
        return self._step("<", expr, because, gap, by)

    def ge(
        self, expr: Expr | int, because: str, gap: Expr | int | None = None, by: Certificate | None = None
    ) -> "Derivation":
        """… ≥ expr."""
        return self._step("≥", expr, because, gap, by)

    def gt(
        self, expr: Expr | int, because: str, gap: Expr | int | None = None, by: Certificate | None = None
    ) -> "Derivation":
        """… > expr."""
        return self._step(">", expr, because, gap, by)

    def qed(self) -> "Derivation":
        """Finish: from here on the derivation is evidence, and can serve as a lemma."""
        if len(self.steps) < 2:
            raise StepError(f"{self.name}: nothing was derived")
        if self.evidence is not None:  # finished before, and counted
            return self
        self._check_symbols()
        self._check_scope()
        self.evidence = ledger.executed("derived", f"derived for {self.scope}: {self.name.replace('-', ' ')}")
        return self

    # -- as a lemma ----------------------------------------------------------------------------------------------

    @property
    def conclusion(self) -> Relational:
        """First expression, relation, last expression."""
        first, last = self.steps[0].expr, self.steps[-1].expr
        relation = max((s.relation for s in self.steps[1:]), key="=≤≥<>".index)
        kinds = {"=": Equality, "≤": LessThan, "<": StrictLessThan, "≥": GreaterThan, ">": StrictGreaterThan}
        return kinds[relation](first, last, evaluate=False)

    def at(self, values: Mapping[Symbol | IndexedBase, Expr | int], *free: Symbol) -> "Lemma":
        """The conclusion for given values of its symbols (bases take Lambdas), for all values of the indices `free`.

        These are, unless others are named, the indices with ranges; they keep their ranges.

        Raises:
            StepError: if the derivation is not finished, or a value lacks a property that its symbol was declared with.
        """
        if self.evidence is None:
            raise StepError(f"{self.name}: a derivation becomes a lemma when qed() has been reached")
        for symbol, value in values.items():
            _check_assumptions(symbol, value)
        free = free or tuple(i for i in self.ranges if i not in values)
        hypotheses = [_instance(f, values, free) for f in self.facts]
        ranges = {i: tuple(_substitute(e, values) for e in limits) for i, limits in self.ranges.items()}
        within = {i: limits for i, limits in ranges.items() if i in free and i not in values}
        in_range = {sympify(values.get(i, i)): limits for i, limits in ranges.items() if i not in within}
        conclusion = self.conclusion
        sides = (_substitute(side, values) for side in (conclusion.lhs, conclusion.rhs))
        fact = Fact(conclusion.func(*sides, evaluate=False), free, self.name, within)
        return Lemma(fact, hypotheses, in_range)

    # -- checking ------------------------------------------------------------------------------------------------

    def _step(
        self, relation: str, expr: Expr | int, because: str, gap: Expr | int | None, by: Certificate | None
    ) -> "Derivation":
        if not self.steps:
            raise StepError(f"{self.name}: start() comes first")
        if {relation, *(s.relation for s in self.steps)} & {"≤", "<"} and {
            relation,
            *(s.relation for s in self.steps),
        } & {"≥", ">"}:
            raise StepError(f"{self.name}: ≤ and ≥ in one chain say nothing about its ends")
        if gap is not None and by is not None:
            raise StepError(f"{self.name}: one certificate, gap or by, not both")
        left, right = self.steps[-1].expr, self._admit(expr)
        gap = None if gap is None else self._admit(gap)
        try:
            with bounded(SECONDS):
                certificate = self._certificate(relation, left, right, gap, by)
        except (StepError, ValueError, TypeError, NotImplementedError) as error:
            message = (
                f"{self.name}, step {len(self.steps)}: {error}\n  claimed  {_text(left)}\n"
                f"           {relation} {_text(right)}\n  because  {because}"
            )
            found = self._refute(left, relation, right)
            raise StepError(message + (f"\n  broken by {found}" if found else "")) from None
        self.steps.append(Step(relation, right, because, certificate))
        self.evidence = None
        return self

    def _refute(self, left: Expr, relation: str, right: Expr) -> str | None:
        try:
            with bounded(SECONDS):
                return refute(left, relation, right, self.facts)
        except StepError:
            return None

    def _certificate(
        self, relation: str, left: Expr, right: Expr, gap: Expr | None, by: Certificate | None
    ) -> Expr | None:
        """The expression that proves the step (None for an equality), or StepError."""
        larger_minus_smaller = left - right if relation in "≥>" else right - left
        holds = is_positive if relation in "<>" else is_nonnegative
        if relation == "=":
            if isinstance(by, Induction):
                self._induct(larger_minus_smaller, by, holds=None)
            elif by is not None:
                raise StepError(f"{type(by).__name__} proves no equality")
            else:
                self._demand_zero(larger_minus_smaller, "the difference does not reduce to 0")
            return None
        for side in (left, right):
            if not is_real(side, self._inequalities()):
                raise StepError(f"only real numbers have an order, and {_text(side)} is not seen to be real")
        if isinstance(by, Induction):
            return self._induct(larger_minus_smaller, by, holds)
        if isinstance(by, Monotone):
            return self._monotone(larger_minus_smaller, by, holds)
        if gap is None:
            gap = self._reduce(larger_minus_smaller)
            if not holds(gap, self._inequalities(), self.ranges):  # expanding may have hidden the squares
                gap = larger_minus_smaller
        else:
            self._demand_zero(larger_minus_smaller - gap, "the gap is not the difference")
        self._demand_sign(gap, holds, "the gap")
        return gap

    def _induct(self, claim: Expr, by: Induction, holds: Holds | None) -> Expr | None:
        """The gain, once base and step are proved; None for an equality, which `holds` is None for."""
        _check_assumptions(by.n, by.base)
        if not (by.n.is_integer and (by.n - by.base).is_nonnegative):
            raise StepError(f"an induction from {by.base} does not reach every value that {by.n} may take")
        if self._mentioned(by.n):
            raise StepError(f"a hypothesis speaks of this {by.n} only; for_all({by.n}, …) says it for {by.n} + 1 too")
        at_base = self._reduce(claim.xreplace({by.n: sympify(by.base)}).doit())
        gain = _peel(claim, by.n) - claim
        if holds is None:
            self._demand_zero(at_base, f"the base n = {by.base} fails")
            self._demand_zero(gain, "the step from n to n + 1 fails")
            return None
        self._demand_sign(at_base, holds, f"the gap at the base n = {by.base}")
        stated = self._admit(by.gain) if by.gain is not None else self._reduce(gain)
        self._demand_zero(gain - stated, "the gain is not what the step adds")
        self._demand_sign(stated, is_nonnegative, "the gain")
        return stated

    def _monotone(self, gap: Expr, by: Monotone, holds: Holds) -> Expr:
        """The slope, once the gap's sign at the start and the slope's on the way are proved."""
        if not isinstance(by.x, Symbol) or by.x.is_integer or not is_nonnegative(by.x - by.at):
            raise StepError(f"{by.x} is not declared to be a real number that is at least {by.at}")
        if self._mentioned(by.x):
            raise StepError(f"a hypothesis speaks of {by.x}, and may fail on the way from {by.at} to {by.x}")
        self._check_smooth(gap, by.x)
        self._demand_sign(self._reduce(gap.xreplace({by.x: sympify(by.at)})), holds, f"the gap at {by.x} = {by.at}")
        slope = self._admit(by.slope)
        self._demand_zero(diff(gap, by.x) - slope, "the slope is not the derivative of the gap")
        self._demand_sign(slope, is_nonnegative, "the slope")
        return slope

    def _check_smooth(self, gap: Expr, x: Symbol) -> None:
        """Refuse a gap that is not seen to be continuous, and differentiable where its derivative is defined."""
        for part in gap.atoms(Application, Pow, Derivative, Subs, Integral, Product):
            if x in part.free_symbols and not (
                isinstance(part, _SMOOTH)
                or (isinstance(part, Pow) and (part.exp.is_integer or is_nonnegative(part.base)))
                or (isinstance(part, log) and is_positive(part.args[0]))
            ):
                raise StepError(f"{_text(part)} is not seen to be a smooth function of {x}")

    def _mentioned(self, symbol: Symbol) -> bool:
        """Whether a hypothesis or a range depends on the symbol."""
        in_facts = any(symbol in f.statement.free_symbols - set(f.free) for f in self.facts)
        return in_facts or any(symbol in e.free_symbols for limits in self.ranges.values() for e in limits)

    def _demand_zero(self, expr: Expr, message: str) -> None:
        rest = self._reduce(expr)
        if rest != 0:
            raise StepError(f"{message}: {_text(rest)} is left over")

    def _demand_sign(self, expr: Expr, holds: Holds, what: str) -> None:
        if not holds(expr, self._inequalities(), self.ranges):
            wanted = "> 0" if holds is is_positive else "≥ 0"
            raise StepError(f"{what} is not seen to be {wanted}: {_text(expr)}")

    def _reduce(self, expr: Expr) -> Expr:
        """The difference after definitions, sum rules and SymPy's simplification; 0 proves it zero."""
        for derivative in expr.atoms(Derivative):
            self._check_constants(derivative)
        expr = expr.replace(lambda e: isinstance(e, Derivative | Subs), lambda e: e.doit())
        expr = self._unfold(rename_bound(expr))
        rest = normal_form(expr, self._sum_rules(), self.ranges)
        if not rest.is_commutative:  # what follows takes factors to commute
            return rest
        hidden: dict[Expr, Dummy] = {}  # one name for a sum, whatever its bound index is called
        sums = {s: hidden.setdefault(s.as_dummy(), Dummy()) for s in rest.atoms(Sum)}
        names = {d: s for s, d in sums.items()}
        for simpler in (expand, cancel, simplify):
            if rest != 0:
                rest = simpler(rest.xreplace(sums)).xreplace(names)
        return rest

    def _check_constants(self, derivative: Derivative) -> None:
        """Refuse ∂y/∂x where a hypothesis such as y = x² makes a function of x of a name that SymPy holds constant."""
        for variable in derivative.variables:
            x = variable.base if isinstance(variable, Indexed) else variable
            for fact in self.facts:
                for side, other in ((fact.statement.lhs, fact.statement.rhs), (fact.statement.rhs, fact.statement.lhs)):
                    names = _leaves(side) - set(fact.free)
                    if len(names) == 1 and names <= _leaves(derivative.expr) - {x} and x in _leaves(other):
                        raise StepError(f"{_text(derivative)} holds {names.pop()} constant; write out what it is")

    def _unfold(self, expr: Expr) -> Expr:
        """Apply the definitions among the facts until none applies."""
        for _ in range(10):
            before = expr
            for fact in self.facts:
                if isinstance(fact.statement, Equality) and sum_rule(fact) is None:
                    expr = _rewrite(expr, fact, self.ranges)
            if expr == before:
                return expr
        raise StepError("the definitions among the facts do not come to an end")

    def _sum_rules(self) -> list[SumRule]:
        return [rule for f in self.facts if isinstance(f.statement, Equality) and (rule := sum_rule(f))]

    def _inequalities(self) -> list[Fact]:
        return [f for f in self.facts if not isinstance(f.statement, Equality | Unequality)]

    def _follows(self, fact: Fact) -> bool:
        """Whether a lemma's hypothesis is among the facts, or follows from one, for arbitrary values of its indices."""
        statement = fact.statement.xreplace({i: Dummy(i.name, **i._assumptions_orig) for i in fact.free})
        if not isinstance(statement, Relational):  # decided by itself
            return statement is S.true
        if isinstance(statement, Equality):
            return self._reduce(statement.lhs - statement.rhs) == 0
        if isinstance(statement, Unequality):
            return statement.rhs == 0 and self._is_nonzero(statement.lhs)
        return states(statement, sign(statement.lhs - statement.rhs, self._inequalities()))

    def _admit(self, expr: Expr | int) -> Expr:
        """Refuse what cannot be reasoned about: floating-point numbers, undefined terms, unsafe denominators."""
        expr = sympify(expr)
        if expr.has(Float, S.NaN, S.ComplexInfinity, S.Infinity, S.NegativeInfinity, Piecewise):
            raise StepError(f"{self.name}: floats, infinities and cases are not admitted: {_text(expr)}")
        if any(isinstance(s, Dummy) for s in expr.free_symbols):
            raise StepError(f"{self.name}: a free Dummy would be shown as if it were a symbol: {_text(expr)}")
        if any(not entry.base.label.is_commutative for entry in expr.atoms(Indexed)):
            raise StepError(f"{self.name}: entries commute, whatever is declared of their base; use functions")
        for sum_ in expr.atoms(Sum, Product):
            for index, lo, hi in sum_.limits:
                if not (is_plain_index(index) and lo.is_integer and hi.is_integer):
                    raise StepError(f"{self.name}: {index} must run over integers, and be declared integer and no more")
        for power in rename_bound(expr).atoms(Pow):
            if not power.exp.is_nonnegative and not self._is_nonzero(power.base):
                raise StepError(f"{self.name}: the denominator {_text(power.base)} may be zero; declare it")
        return expr

    def _is_nonzero(self, expr: Expr) -> bool:
        stated = (f for f in self.facts if isinstance(f.statement, Unequality) and f.statement.rhs == 0)
        return (
            bool(expr.is_nonzero)
            or any(match(f.statement.lhs, f, expr) is not None for f in stated)
            or sign(expr, self._inequalities(), self.ranges) in ("> 0", "< 0")
        )

    def _check_symbols(self) -> None:
        by_name: dict[str, Symbol] = {}
        for symbol in set().union(*(_symbols(e) for e in self._expressions())):
            if by_name.setdefault(symbol.name, symbol) != symbol:
                raise StepError(f"{self.name}: two symbols are called {symbol.name}, with different assumptions")

    def _expressions(self) -> list[Expr]:
        """Everything that the proof uses: the chain, its certificates, the hypotheses and the ranges."""
        return [
            *(s.expr for s in self.steps),
            *(s.certificate for s in self.steps if s.certificate is not None),
            *(side for f in self.facts for side in (f.statement.lhs, f.statement.rhs)),
            *(e for limits in self.ranges.values() for e in limits),
        ]

    def _check_scope(self) -> None:
        sizes = {s.name for step in self.steps for s in _symbols(step.expr)}
        if self.scope.startswith("all "):
            for size in self.scope.removeprefix("all ").split(",")[0].split(" and "):
                if size.strip() not in sizes:
                    raise StepError(f"{self.name}: the scope says all {size.strip()}, which does not occur")

    # -- showing -------------------------------------------------------------------------------------------------

    def hypotheses(self) -> list[tuple[str, str]]:
        """What is assumed, as (text, LaTeX): the facts, and what the symbols were declared to be."""
        shown = []
        for fact in self.facts:
            text, tex = _text(fact.statement), f"${_tex(fact.statement)}$"
            if fact.free:
                names = ", ".join(map(str, fact.free))
                text, tex = f"{text} for all {names}", f"{tex} for all ${names}$"
            for index, (lo, hi) in fact.within.items():
                text, tex = f"{text}, {lo} ≤ {index} ≤ {hi}", rf"{tex}, ${_tex(lo)} \le {index} \le {_tex(hi)}$"
            suffix = f" (by {fact.name})" if fact.name else ""
            shown.append((text + suffix, tex + suffix))
        declared: dict[str, list[tuple[str, str]]] = {}
        for index, (lo, hi) in self.ranges.items():
            shown.append((f"{index} from {lo} to {hi}", f"${_tex(index)}$ from ${_tex(lo)}$ to ${_tex(hi)}$"))
        indices = set(self.ranges).union(*(filter(is_plain_index, f.free) for f in self.facts))
        occurring = set().union(*(_declared(e) for e in self._expressions())) - indices
        for symbol in sorted(occurring, key=str):
            for words in _declaration(symbol):
                declared.setdefault(words, []).append((str(symbol), _tex(symbol)))
        for words, symbols in declared.items():
            shown.append(
                (f"{', '.join(t for t, _ in symbols)} {words}", f"${', '.join(t for _, t in symbols)}$ {words}")
            )
        return shown

    def __repr__(self) -> str:
        lines = [f"{self.name}   [{self.scope}]" + ("" if self.evidence else "   unfinished")]
        lines += [f"  given  {text}" for text, _ in self.hypotheses()]
        lines += [f"    {_text(s.expr)}" for s in self.steps[:1]]
        for k, step in enumerate(self.steps[1:], 1):
            lines.append(f"  {step.relation} {_text(step.expr)}   ✓ ({k}) {step.because}")
            if step.certificate is not None:
                lines.append(f"        certificate: {_text(step.certificate)}")
        return "\n".join(lines)

    def _repr_markdown_(self) -> str:
        rows = [rf"& {_tex(s.expr)}" for s in self.steps[:1]]
        rows += [
            rf"&{RELATIONS[s.relation]} {_tex(s.expr)} && \checkmark\,({k})" for k, s in enumerate(self.steps[1:], 1)
        ]
        reasons = []
        for k, step in enumerate(self.steps[1:], 1):
            shown = "" if step.certificate is None else f" — certificate: $\\displaystyle {_tex(step.certificate)}$"
            reasons.append(f"{k}. {step.because}{shown}")
        given = "; ".join(tex for _, tex in self.hypotheses())
        chain = " \\\\\n".join(rows)
        unfinished = "" if self.evidence else ", unfinished"
        return (
            f"**{self.name.replace('-', ' ').capitalize()}** ({self.scope}{unfinished}). Given: {given}.\n\n"
            f"$$\n\\begin{{aligned}}\n{chain}\n\\end{{aligned}}\n$$\n\n" + "\n".join(reasons)
        )


@dataclass(frozen=True)
class Lemma:
    """An instance of a finished derivation's conclusion, with the hypotheses that it needs, and the values that must
    lie in ranges."""

    fact: Fact
    hypotheses: list[Fact]
    in_range: Mapping[Expr, Range]


def identity(
    name: str,
    left: Expr | int,
    right: Expr | int,
    because: str,
    *,
    scope: str,
    given: Iterable[Boolean | Fact | Derivation | Lemma] = (),
    ranges: Mapping[Symbol, tuple[Any, Any]] | None = None,
) -> Derivation:
    """A derivation of one equality: the numbered identities of a written proof."""
    return Derivation(name, scope=scope, given=given, ranges=ranges or {}).start(left).eq(right, because).qed()


class WrittenProof:
    """A proof in prose whose key identities, numbered in the text, are derivations of the same chapter."""

    def __init__(self, name: str, *identities: Derivation):
        distinct = len({id(d) for d in identities}) == len(identities)
        if not identities or not distinct or any(d.evidence is None for d in identities):
            raise StepError(f"{name}: a written proof needs finished derivations of its key identities, each once")
        self.name, self.identities = name, identities
        self.checked = f"proved in text, {len(identities)} of {len(identities)} identities checked"
        self.evidence = ledger.executed("proved in text", f"{self.checked}: {self.name.replace('-', ' ')}")

    def __repr__(self) -> str:
        return "\n".join(
            [f"{self.name}: {self.checked}"]
            + [f"  ({k}) {_text(d.conclusion)}" for k, d in enumerate(self.identities, 1)]
        )

    def _repr_markdown_(self) -> str:
        return "\n".join(
            [f"**{self.name.replace('-', ' ').capitalize()}**: {self.checked}.", ""]
            + [rf"{k}. $\displaystyle {_tex(d.conclusion)}$" for k, d in enumerate(self.identities, 1)]
        )


# -- helpers ---------------------------------------------------------------------------------------------------------


class _OutOfTime(BaseException):
    """Not an Exception: SymPy catches those broadly."""


def _stop(number: int, frame: FrameType | None) -> None:
    raise _OutOfTime


@contextmanager
def bounded(seconds: float) -> Iterator[None]:
    """Run a block for at most `seconds` (in the main thread); running out of time is a StepError."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGALRM, _stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)  # repeated, should a handler in SymPy swallow the first
    try:
        yield
    except _OutOfTime:
        raise StepError(f"undecided after {seconds} s") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def _peel(expr: Expr, n: Symbol) -> Expr:
    """expr at n + 1, with the last term of every sum up to n + 1 split off."""

    def split(e: Expr) -> Expr:
        if not e.has(Sum):
            return e
        if not isinstance(e, Sum):
            return e.func(*map(split, e.args))
        (index, lo, hi), *others = e.limits
        if others or expand(hi - n - 1) != 0:
            raise StepError(f"cannot split the last term off {_text(e)}: write nested sums up to n")
        summand = split(e.function)
        return Sum(summand, (index, lo, n)) + summand.xreplace({index: n + 1})

    return split(rename_bound(expr).xreplace({n: n + 1}))


def _rewrite(expr: Expr, fact: Fact, ranges: Mapping[Symbol, Range]) -> Expr:
    """Replace every instance of the left side of a definition by its right side."""
    left, right = fact.statement.lhs, fact.statement.rhs
    ranges = {**ranges, **bound_ranges(expr)}
    return expr.replace(
        lambda e: match(left, fact, e, ranges) is not None,
        lambda e: rename_bound(right).xreplace(match(left, fact, e, ranges)),
    )


def _substitute(expr: Expr, values: Mapping[Symbol | IndexedBase, Expr | int]) -> Expr:
    """Replace symbols by expressions, and bases by Lambdas of their indices, at once and without capturing indices."""
    bases = {b: sympify(v) for b, v in values.items() if isinstance(b, IndexedBase)}
    symbols = {s: sympify(v) for s, v in values.items() if not isinstance(s, IndexedBase)}
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


def _instance(fact: Fact, values: Mapping[Symbol | IndexedBase, Expr | int], free: tuple[Symbol, ...]) -> Fact:
    """A lemma's hypothesis for given values of its symbols; its own indices get fresh names first."""
    names = {i: Dummy(i.name, **i._assumptions_orig) for i in fact.free}
    statement = fact.statement
    sides = [_substitute(rename_bound(side).xreplace(names), values) for side in (statement.lhs, statement.rhs)]
    return Fact(fact.statement.func(*sides, evaluate=False), (*names.values(), *free))


def _check_assumptions(symbol: Symbol | IndexedBase, value: Expr | int) -> None:
    """A value must have every property that the symbol was declared with."""
    declared = symbol if isinstance(symbol, Symbol) else symbol.label
    if isinstance(value, Lambda):
        if not all(map(is_plain_index, value.variables)):
            raise StepError(f"the variables of {value} must be declared integer and nothing more")
        value = value.expr
    elif isinstance(value, IndexedBase):
        value = value.label
    for name in lacking(sympify(value), declared):
        raise StepError(f"{value} is not known to be {name}, as {symbol} is")


def _symbols(expr: Expr) -> set[Symbol]:
    return {s for s in expr.atoms(Symbol) if not isinstance(s, Dummy)}


def _declared(expr: Expr) -> set[Symbol | IndexedBase | FunctionClass]:
    """Symbols and bases whose assumptions matter: bound indices and the labels of bases apart."""
    bases = {e.base for e in expr.atoms(Indexed)}
    functions = {e.func for e in expr.atoms(AppliedUndef)}
    bound = {limit[0] for s in expr.atoms(Sum, Product) for limit in s.limits}
    hidden = bound | {b.label for b in bases}
    return {s for s in _symbols(expr) if s not in hidden} | bases | functions


def _leaves(expr: Expr) -> set[Symbol | IndexedBase | FunctionClass]:
    return {s for s in _declared(expr) if not (isinstance(s, Symbol) and s.is_integer)}


def _declaration(symbol: Symbol | IndexedBase | FunctionClass) -> list[str]:
    """What a symbol was declared to be, in words."""
    if isinstance(symbol, FunctionClass):
        assumptions = symbol._kwargs
    else:
        assumptions = (symbol.label if isinstance(symbol, IndexedBase) else symbol)._assumptions_orig
    if assumptions.get("commutative") is False:
        return ["not commuting"]
    if isinstance(symbol, FunctionClass):
        assumptions = _fewest(assumptions)
    signs = {"nonnegative": "≥ 0", "positive": "> 0", "nonzero": "≠ 0", "nonpositive": "≤ 0", "negative": "< 0"}
    words = [signs.get(name, name) if holds else f"not {name}" for name, holds in assumptions.items()]
    return [" and ".join(words)] if words else ["complex"]


def _fewest(properties: Mapping[str, bool]) -> dict[str, bool]:
    """Properties from which all others follow: SymPy keeps for a function all that its declaration implies."""
    strong = [p for p in ("positive", "negative", "nonnegative", "nonpositive", "nonzero", "real") if properties.get(p)]
    chosen: dict[str, bool] = {}
    for name in [*strong, *sorted(properties)]:
        if Symbol("_", **chosen).assumptions0.get(name) != properties[name]:
            chosen[name] = properties[name]
    return chosen


def _text(expr: Basic | FunctionClass) -> str:
    if isinstance(expr, Relational):
        return f"{_text(expr.lhs)} {_SYMBOLS[expr.rel_op]} {_text(expr.rhs)}"
    return str(_plain(expr))


def _tex(expr: Basic | FunctionClass) -> str:
    if isinstance(expr, Relational):
        return f"{_tex(expr.lhs)} {_COMMANDS[expr.rel_op]} {_tex(expr.rhs)}"
    return latex(_plain(expr)).replace("_{max}", r"_{\max}")


def _plain(expr: Basic | FunctionClass) -> Basic | FunctionClass:
    """For display: fresh indices under the names that they were made from; with primes where that would confuse two."""
    if isinstance(expr, FunctionClass):  # an undefined function, as a name
        return expr
    free = {d: Symbol(d.name) for d in expr.free_symbols if isinstance(d, Dummy)}
    expr = expr.xreplace(free)
    plain = expr.xreplace({d: Symbol(d.name) for d in expr.atoms(Dummy)})
    by_name = {s: Symbol(s.name) for s in _symbols(plain)}  # symbols of one name look the same, whatever they are
    if plain.xreplace(by_name).as_dummy() == expr.xreplace(by_name).as_dummy():
        return plain
    taken, names = {s.name for s in _symbols(expr)}, {}
    for dummy in sorted(expr.atoms(Dummy), key=lambda d: d.dummy_index):
        name = dummy.name
        while name in taken:
            name += "'"
        taken.add(name)
        names[dummy] = Symbol(name)
    return expr.xreplace(names)
