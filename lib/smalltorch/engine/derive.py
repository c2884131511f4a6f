r"""Derivations: chains e₀ = e₁ ≤ e₂ … in which SymPy checks each step as it is written.

    >>> from sympy import Eq, Sum, symbols
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
      such as  n = 2, A[1, 1] = 19/1024, A[1, 2] = 1005/1024, A[2, 1] = 11/1024, A[2, 2] = 1013/1024, and 8 more
        Sum(Sum(A[i, j]*x[j], (j, 1, n))**2, (i, 1, n))
      ≤ Sum(A[i, j]*x[j]**2, (i, 1, n), (j, 1, n))   ✓ (1) Jensen: the gap is a variance [normal form]
            certificate: Sum((x[j] - x[k])**2*A[i, j]*A[i, k], (i, 1, n), (j, 1, n), (k, 1, n))/2

An equality passes only if SymPy reduces the difference to the number 0. An inequality passes only with a certificate: a
gap whose structure shows its sign (a sum of squares, of non-negative terms, a product of signed factors, or hypotheses
added and scaled), `Monotone`, `Increasing`, `Induction` or `Cases`. A hypothesis or another derivation enters through
`given`, is shown, and nothing else may be used. A search for values that break a step can refute it; it never passes
one. A conclusion is tried at small values, too, before it counts.

What SymPy simplifies while an expression is built (x/x to 1, √(ab) to √a·√b where a is declared positive) happens
before any check; the chain shows what is left. Outside the main thread a step is not bounded in time.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sympy import Expr, IndexedBase, S, Symbol
from sympy.core.function import FunctionClass
from sympy.core.relational import Relational
from sympy.logic.boolalg import Boolean

from smalltorch.engine import display, domain, kernel, ledger
from smalltorch.engine.binders import Range
from smalltorch.engine.context import Context, assumed, free_context
from smalltorch.engine.display import tex, text
from smalltorch.engine.kernel import Fact
from smalltorch.engine.names import declared
from smalltorch.engine.readonly import ReadOnlyDict, ReadOnlyList
from smalltorch.engine.refusal import StepError, bounded
from smalltorch.engine.refute import refute
from smalltorch.engine.schema import Evidence
from smalltorch.engine.scope import demand_scope, scope_of
from smalltorch.engine.sums import Given, Usable, is_plain_index

LABEL = r"[a-z][a-z0-9]*(-[a-z0-9]+)*"  # of a theorem
SECONDS = 20  # for one step; the usual time is milliseconds
Lemma = Fact  # what `at` gives


def for_all(*indices_and_statement: Any) -> Given:
    """`for_all(i, Eq(Sum(A[i, j], J), 1))`: a hypothesis that holds for every integer i.

    `for_all((i, 1, n), …)` speaks of i from 1 to n only. If n was declared positive, `for_all(n, …)` speaks of positive
    n only.

    Raises:
        ValueError: for an index that is no integer symbol, and one with a range that was declared more than an integer.
    """
    *indices, statement = indices_and_statement
    ranges = [i if isinstance(i, tuple) or hasattr(i, "__len__") else (i,) for i in indices]
    within: dict[Symbol, Range] = {}
    for index, *limits in ranges:
        if not isinstance(index, Symbol) or not index.is_integer or len(limits) not in (0, 2):
            raise ValueError(f"for_all: expected an integer symbol i, or (i, lo, hi), got {(index, *limits)}")
        if limits:
            if not is_plain_index(index):
                raise ValueError(f"for_all: {index} has a range, and must be declared integer and nothing more")
            within[index] = (domain.expression(limits[0]), domain.expression(limits[1]))
    return Given(statement, tuple(index for index, *_ in ranges), within)


@dataclass(frozen=True)
class Monotone:
    """Certificate: the gap is ≥ 0 (> 0) at x = `at`, and its derivative `slope` is ≥ 0 from there on.

    `x` must be declared real, ≥ 0 or > 0, `at` must have the same property, and no hypothesis may speak of x. Where x
    may be less than `at`, the slope must be ≤ 0 there: the gap is least at `at`.
    """

    x: Symbol
    slope: Expr
    at: Expr | int = S.Zero


@dataclass(frozen=True)
class Induction:
    """Certificate: the statement holds at n = `base`, the least value that n may take, and the step from n to n + 1.

    For an equality the step shows that both sides gain the same, or uses the statement at n. For an inequality with the
    gap g it shows that g(n + 1) − `factor` g(n) equals `gain`, and the structure of both shows that they are ≥ 0 (where
    the inequality is strict, `factor` > 0).
    """

    n: Symbol
    base: int = 1
    gain: Expr | None = None
    factor: Expr | int = 1


@dataclass(frozen=True)
class Increasing:
    """Certificate: f(smaller) ≤ f(larger), for f = `exp`, `log` between positive numbers, or 2 for the square.

    `gap` is f(larger) − f(smaller), written so that its structure shows its sign.
    """

    f: FunctionClass | int
    gap: Expr | None = None


class Cases:
    """Certificate: the statement holds in each case. `Cases(r >= 0, s > t)` has four: each of both, or its opposite."""

    def __init__(self, *conditions: Relational):
        self.conditions = conditions


Certificate = Monotone | Induction | Increasing | Cases


@dataclass(frozen=True)
class Step:
    """One line of a chain: the relation to the line before, the expression, the reason, and the certificate if any.

    `reducer`: what came last to show that the difference, or the gap, is as stated: normal form, expand, cancel or
    simplify.
    """

    relation: str
    expr: Expr
    because: str
    certificate: Expr | None = None
    reducer: str = ""


@dataclass
class Derivation:
    """A chain of checked steps.

        >>> a, b = Symbol("a", real=True), Symbol("b", real=True)
        >>> d = Derivation("two-squares", scope="real a and b").start(a * b)
        >>> d.le((a**2 + b**2) / 2, because="a square is left over", gap=(a - b)**2 / 2).qed()
        two-squares   [real a and b]
          given  a, b real
            a*b
          ≤ a**2/2 + b**2/2   ✓ (1) a square is left over [normal form]
                certificate: (a - b)**2/2

    Args:
        name: what the derivation is called, in words with hyphens.
        scope: what it is proved for; "all n and d" is refused where n or d does not occur.
        given: hypotheses: SymPy relations, `for_all(...)`, or finished derivations (their conclusion is used as a fact,
            and their own hypotheses must be given, or follow from what is).
        ranges: free indices and their ranges, such as {i: (1, d)}.

    Raises:
        ValueError: for a hypothesis that says nothing.
        StepError: for a step that is not proved; and by `qed`, where the hypotheses have no instance, two things have
            one name, the conclusion says nothing, or the scope says more than was declared.
    """

    name: str
    scope: str
    given: Iterable["Boolean | Given | Derivation | Fact"] = ()
    ranges: Mapping[Symbol, tuple[Any, Any]] = field(default_factory=dict)

    @ledger._check
    def __post_init__(self) -> None:
        ledger._begun.append(self)
        self.steps: list[Step] = ReadOnlyList()
        self.fact: Fact | None = None  # what the chain has shown so far
        self.evidence: Evidence | None = None
        self.ranges = ReadOnlyDict(self.ranges)
        for index in self.ranges:
            if not is_plain_index(index):
                raise ValueError(f"ranges: {index} must be a symbol declared integer and nothing more")
        hypotheses, lemmas = [], []
        for item in self.given:
            if isinstance(item, Derivation | Fact):
                lemmas.append(item if isinstance(item, Fact) else item.at({}))
            else:
                hypotheses.append(item if isinstance(item, Given) else Given(item))
        for given in hypotheses:
            if not isinstance(given.statement, Relational):
                raise ValueError(f"given: {given.statement} is not a relation that says anything")
        with self._named():
            context = assumed(free_context(self.ranges), hypotheses)
            for lemma in lemmas:
                with bounded(SECONDS):
                    context = kernel.used(context, lemma)
        self.given = tuple(context.usable)
        self.ranges = ReadOnlyDict(context.ranges)
        self.context: Context = context

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except StepError as error:
            raise StepError(f"{self.name}: {error}") from None
        except Exception as error:  # of SymPy, where it meets what it does not expect: nothing is shown
            raise StepError(f"{self.name}: undecided, {type(error).__name__}: {error}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        if "context" in self.__dict__:
            raise StepError(f"{self.name}: {name} is read and not set; a derivation grows by its steps")
        super().__setattr__(name, value)

    def _set(self, **values: Any) -> None:
        self.__dict__.update(values)

    def _demand_unfinished(self) -> None:
        if getattr(self, "evidence", None) is not None:
            raise StepError(f"{self.name}: it is finished, and others may rest on it; begin a new Derivation")

    # -- writing the chain ---------------------------------------------------------------------------------------

    @ledger._check
    def start(self, expr: Expr | int) -> "Derivation":
        """The first expression of the chain."""
        self._demand_unfinished()
        with self._named():
            self.context.admit(expr)
            self._set(steps=ReadOnlyList([Step("", domain.expression(expr), "")]), fact=None)
        return self

    def eq(self, expr: Expr | int, because: str, by: Certificate | None = None) -> "Derivation":
        """… = expr: the difference must reduce to 0, or both sides gain the same by an `Induction`."""
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

    @ledger._check
    def qed(self) -> "Derivation":
        """Finish: from here on the derivation is evidence, can serve as a lemma, and does not change any more."""
        if self.fact is None:
            raise StepError(f"{self.name}: nothing was derived")
        if self.evidence is not None:  # finished before, and counted
            return self
        with self._named(), bounded(SECONDS):
            fact = kernel.concluded(self.fact, self.name, self.conclusion, self._expressions())
            demand_scope(self.scope, [step.expr for step in self.steps], self.context.given)
        self._set(fact=fact)
        evidence = ledger._left(
            "derived",
            f"derived for {self.scope}: {self.name.replace('-', ' ')}",
            shows=(self._shown(),),
            given=tuple(words for words, _ in display.assumed(fact.hypotheses)),
            scope=scope_of((self.steps[0].expr, self.steps[-1].expr), self.ranges),
            by=tuple(dict.fromkeys(step.reducer for step in self.steps if step.reducer)),
            instance=display.instance(fact.instance or {})[0],
        )
        self._set(evidence=evidence)
        return self

    # -- as a lemma ----------------------------------------------------------------------------------------------

    @property
    def conclusion(self) -> Relational:
        """First expression, relation, last expression, as they were written."""
        if self.fact is None:
            raise StepError(f"{self.name}: nothing was derived")
        left, right = self.steps[0].expr, self.steps[-1].expr
        return self.fact.statement.func(left, right, evaluate=False)

    @ledger._check
    def at(self, values: Mapping[Symbol | IndexedBase, Any], *free: Symbol) -> Fact:
        """The conclusion for given values of its symbols (bases take Lambdas), for all values of the indices `free`.

        These are, unless others are named, the indices with ranges; they keep their ranges. Where a symbol was declared
        positive or at least 0, and its value is not seen to be, that becomes a hypothesis.

        Raises:
            StepError: if the derivation is not finished, or a value lacks another property that its symbol was declared
                with.
        """
        if self.evidence is None or self.fact is None:
            raise StepError(f"{self.name}: a derivation becomes a lemma when qed() has been reached")
        with self._named():
            return kernel.instantiated(self.fact, values, free)

    # -- checking ------------------------------------------------------------------------------------------------

    @ledger._check
    def _step(
        self, relation: str, expr: Expr | int, because: str, gap: Expr | int | None, by: Certificate | None
    ) -> "Derivation":
        if not self.steps:
            raise StepError(f"{self.name}: start() comes first")
        self._demand_unfinished()
        if gap is not None and by is not None:
            raise StepError(f"{self.name}: one certificate, gap or by, not both")
        with self._named():
            left, right = self.steps[-1].expr, domain.expression(expr)
            gap = None if gap is None else domain.expression(gap)
        try:
            with bounded(SECONDS):
                shown = self._by_rule(relation, left, right, gap, by)
                fact = shown if self.fact is None else kernel.chained([self.fact, shown])
        except Exception as error:  # a StepError, or one of SymPy, where it meets what it does not expect
            message = (
                f"{self.name}, step {len(self.steps)}: {error}\n  claimed  {text(left)}\n"
                f"           {relation} {text(right)}\n  because  {because}"
            )
            if near := self._nearest(left, right):
                message += f"\n  nearest  {text(near.statement)}"
            found = self._refute(left, relation, right)
            raise StepError(message + (f"\n  broken by {found}" if found else "")) from None
        step = Step(relation, right, because, shown.certificate, shown.reducer)
        self._set(steps=ReadOnlyList([*self.steps, step]), fact=fact)
        return self

    def _by_rule(self, relation: str, left: Expr, right: Expr, gap: Expr | None, by: Certificate | None) -> Fact:
        sides = (self.context, left, relation, right)
        if isinstance(by, Induction):
            return kernel.by_induction(*sides, by.n, by.base, by.gain, by.factor)
        if isinstance(by, Cases):
            return kernel.by_cases(*sides, by.conditions)
        if relation == "=":
            if by is not None:
                raise StepError(f"{type(by).__name__} proves no equality")
            return kernel.by_reduction(self.context, left, right)
        if isinstance(by, Monotone):
            return kernel.by_slope(*sides, by.x, by.slope, by.at)
        if isinstance(by, Increasing):
            return kernel.by_increasing(*sides, by.f, by.gap)
        return kernel.by_sign(*sides, gap)

    def _nearest(self, left: Expr, right: Expr) -> Usable | None:
        """The hypothesis or lemma that shares most names with a step, and has the fewest others."""
        names = declared(left) | declared(right)
        near = [f for f in self.context.usable if names & declared(f.statement)]
        return max(
            near,
            key=lambda f: (len(names & declared(f.statement)), -len(declared(f.statement) - names)),
            default=None,
        )

    def _refute(self, left: Expr, relation: str, right: Expr) -> str | None:
        try:
            with bounded(SECONDS):
                return refute(
                    self.context.enter(left), relation, self.context.enter(right), self.context.given, self.ranges
                )
        except Exception:  # of SymPy: the failure stands as it is
            return None

    def _expressions(self) -> list[Expr]:
        """Everything that the proof uses: the chain, its certificates, the hypotheses, the lemmas and the ranges."""
        facts = [f.statement for f in self.context.usable if isinstance(f.statement, Relational)]
        return [
            *(s.expr for s in self.steps),
            *(s.certificate for s in self.steps if s.certificate is not None),
            *(side for statement in facts for side in (statement.lhs, statement.rhs)),
            *(e for limits in self.ranges.values() for e in limits),
        ]

    # -- showing -------------------------------------------------------------------------------------------------

    def hypotheses(self) -> list[tuple[str, str]]:
        """What is assumed, as (text, LaTeX): the facts, and what the symbols were declared to be."""
        return display.hypotheses(self.context.usable, self.ranges, self._expressions())

    def _shown(self) -> str:
        """The conclusion as one line of text, with what its names stand for."""
        named = display.hypotheses([], self.ranges, [self.steps[0].expr, self.steps[-1].expr])
        where = "; ".join(words for words, _ in named)
        return text(self.conclusion) + (f", where {where}" if where else "")

    def __repr__(self) -> str:
        title = f"{self.name}   [{self.scope}]" + ("" if self.evidence else "   unfinished")
        return display.chain_text(title, self.hypotheses(), self.steps, self._instance())

    def _repr_markdown_(self) -> str:
        unfinished = "" if self.evidence else ", unfinished"
        scope = display.set_names(self.scope, self._expressions())
        title = f"**{display.capitalised(self.name)}** ({scope}{unfinished})."
        given = display.assumed(self.context.usable)
        names = self.hypotheses()[len(given) :]
        return display.chain_markdown(title, given, names, self.steps, self._instance())

    def _instance(self) -> tuple[str, str]:
        return display.instance(self.fact.instance or {} if self.fact else {})


def identity(
    name: str,
    left: Expr | int,
    right: Expr | int,
    because: str,
    *,
    scope: str,
    given: Iterable[Boolean | Given | Derivation | Fact] = (),
    ranges: Mapping[Symbol, tuple[Any, Any]] | None = None,
) -> Derivation:
    """A derivation of one equality: the numbered identities of a written proof."""
    return Derivation(name, scope=scope, given=given, ranges=ranges or {}).start(left).eq(right, because).qed()


class WrittenProof:
    """A proof in prose whose key identities, numbered in the text, are derivations of the same chapter.

    The rest of the proof is words; the ledger counts its steps on the page, and those that name an identity.

    Args:
        name: what is proved, in words.
        identities: (1), (2), … of the proof.
        of: the label of the theorem that is proved.

    Raises:
        StepError: for identities that are not finished or not derivations, one twice, or none; without a label.
    """

    @ledger._check
    def __init__(self, name: str, *identities: Derivation, of: str = ""):
        evidence = [d.evidence for d in identities if isinstance(d, Derivation) and d.evidence is not None]
        if not identities or len({id(e) for e in evidence}) != len(identities):
            raise StepError(f"{name}: a written proof needs finished derivations of its key identities, each once")
        if not isinstance(of, str) or not re.fullmatch(LABEL, of):
            raise StepError(f"{name}: of=… must be the label of the theorem that is proved, got {of!r}")
        self.name = name
        self.identities = tuple(d.fact for d in identities if d.fact is not None)
        count = f"{len(identities)} {'identity' if len(identities) == 1 else 'identities'}"
        self.checked = f"proved in text, {count} checked and the rest in words"
        self.evidence = ledger._left(
            "proved in text",
            f"{self.checked}: {self.name.replace('-', ' ')}",
            shows=tuple(conclusion for e in evidence for conclusion in e.shows),
            given=tuple(dict.fromkeys(hypothesis for e in evidence for hypothesis in e.given)),
            by=tuple(dict.fromkeys(reducer for e in evidence for reducer in e.by)),
            about=(of,),
        )

    def __repr__(self) -> str:
        lines = [f"  ({k}) {text(fact.statement)}" for k, fact in enumerate(self.identities, 1)]
        return "\n".join([f"{self.name}: {self.checked}", *lines])

    def _repr_markdown_(self) -> str:
        lines = [rf"{k}. $\displaystyle {tex(fact.statement)}$" for k, fact in enumerate(self.identities, 1)]
        return "\n".join([f"**{display.capitalised(self.name)}**: {self.checked}.", "", *lines])
