r"""Numeric checks of equalities and inequalities: random inputs, then a search for the worst one by gradient ascent.

    >>> at_most(
    ...     "‖A‖₂ ≤ √n",
    ...     lambda A: torch.linalg.matrix_norm(A, ord=2),
    ...     lambda A: torch.full((len(A),), A.shape[-1] ** 0.5).double(),
    ...     domain=lambda S: S.softmax(-1),
    ...     shapes=[(4, 4)],
    ...     extremes=lambda shape: Extremes(lambda columns: torch.eye(4).double()[columns], length=4, choices=4),
    ... )
    ‖A‖₂ ≤ √n: holds, tightness 1.00; 233 inputs, attacks included, worst: structured search, 4×4; allowance 1e-12

A statement is given by its two sides, each a function from a batch of inputs to one number for each, and by its
`domain`: a map from unconstrained real tensors onto the inputs that satisfy the hypothesis, such as softmax for
row-stochastic matrices. So every sample meets the hypothesis, and the attack can follow the gradient through it.
All in float64. What comes back says how tight the statement is and which input is the worst.

The sides decide, not their ratio, so they may have any sign: lhs ≤ rhs is broken where lhs − rhs is more than the
allowance times the larger side, and more than rounding explains, which is estimated (`smalltorch.engine.rounding`).
A counterexample carries a verdict, so there an estimate is not enough: both sides are enclosed in ball arithmetic
(`smalltorch.engine.balls`). Facts and effects have rooms of their own, and can be had from here as well.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from types import EllipsisType, MappingProxyType
from typing import Any

import torch
from torch import Tensor

from smalltorch.engine import ledger
from smalltorch.engine.balls import APART, Astray, Unknown, enclosed
from smalltorch.engine.check import (
    ROUNDING,
    Check,
    VerificationError,
    allowed_text,
    apart,
    checked_tolerance,
    real,
    shortened,
)
from smalltorch.engine.check import Checks as Checks
from smalltorch.engine.effects import measured as measured
from smalltorch.engine.facts import computed as computed
from smalltorch.engine.facts import fact as fact
from smalltorch.engine.rounding import MARGIN, largest_on_the_way, noise
from smalltorch.engine.search import (
    EXTREME,
    Extremes,
    Search,
    Shape,
    checked_shapes,
    computed_in_float64,
    free_samples,
    refuse_vacuous,
    sizes_of,
)
from smalltorch.engine.show import number
from smalltorch.engine.statement import (
    Batch,
    Domain,
    Side,
    Statement,
    Test,
    Worst,
    admitted,
    differ,
    evaluated,
    picked,
    refuse_one_tensor,
    rows_of,
    single,
    tests_of,
)

SLIGHT = 2e-14  # of the larger side: a violation that is less may be that of a hypothesis which the inputs meet nearly
BEYOND = 1e-8  # of the largest number on the way: what a difference must exceed where rounding is estimated only
TRIES = 4  # inputs of a batch that are enclosed, before the next batch is looked at
REACH = 10  # a scale is at most so many times as large as what occurs


@ledger._check
def at_most(
    name: str,
    lhs: Side,
    rhs: Side,
    *,
    domain: Domain,
    shapes: Iterable[Shape],
    extremes: Callable[[Shape], Extremes] | None = None,
    hypothesis: Test | Mapping[str, Test] | None = None,
    allowance: float = 1e-12,
    because: str = "",
    without: Mapping[str, Domain | tuple[Domain, Iterable[Shape]]] = MappingProxyType({}),
) -> Check:
    """Check lhs ≤ rhs, and report how tight it is: the largest lhs/rhs found, or where rhs is not positive the gap.

    Args:
        name: the statement, in words or symbols.
        lhs, rhs: from a batch of inputs to a batch of numbers, float64. Inputs where both are 0 count as ratio 0.
        domain: from free tensors (batch × shape) to a batch of inputs that satisfy the hypothesis.
        shapes: shapes of one free tensor.
        extremes: the extreme inputs for a shape, for the structured search. They lie outside the domain's image, so
            nothing but `hypothesis` sees to it that they satisfy the hypothesis.
        hypothesis: from a batch of inputs to True where one satisfies the hypothesis, as a tensor of booleans; tested
            on all inputs. Several are given by name; one that is dropped (`without`) is then violated by the
            counterexample, and the others are not.
        allowance: slack relative to the larger side, for rounding: at most 1e-6; at most 0.05 with a reason.
        because: why the allowance is wider than 1e-6, or covers what is more than rounding.
        without: for each hypothesis that is dropped the domain without it, where a violation is demanded (by `fails`);
            with shapes of its own if it has other ones.

    Raises:
        VerificationError: with the input, if lhs > rhs somewhere, also by less than an allowance for rounding, where
            ball arithmetic shows that rounding has not done it; if a dropped hypothesis is not missed.
        ValueError: if a side gives NaN, infinity, another type than float64, or not one number for each input; if an
            input violates the hypothesis; if nothing could fail: no inputs, or one, sides that are one tensor, or
            look at no input, or are 0 throughout; if rounding leaves it open which side is larger.
    """
    allowance = checked_tolerance("allowance", allowance, because)
    shapes = checked_shapes(shapes)
    if not isinstance(without, Mapping):
        raise ValueError(f"without must map each hypothesis to the domain without it, got {shortened(without)}")
    named = hypothesis if isinstance(hypothesis, Mapping) else {}
    if named and (unknown := [what for what in without if what not in named]):
        raise ValueError(f"without must name hypotheses, among {', '.join(named)}, got {', '.join(unknown)}")
    statement = Statement(name, lhs, rhs, tests_of(hypothesis))
    search = Search(statement, domain, shapes, extremes, exact=allowance <= ROUNDING)
    refuse_vacuous(name, search.random())
    _refuse_blind(name, search.looked)
    largest = max(float(side.abs().max()) for batch in search.random() for side in (batch.lhs, batch.rhs))
    worst, seen, slight = Worst(statement), 0, _Slight()
    for batch in chain(search.random(), search.attacks()):
        _refuse_broken(statement, batch, allowance, largest)
        slight.update(batch)
        worst.update(batch, worst.beaten_by(batch, torch.ones_like(batch.lhs, dtype=torch.bool)))
        seen += len(batch.lhs)
    if not because:
        slight.refuse(statement, allowance)
    attacks = "attacks included" if search.climbed else "structured search included" if extremes else "not attacked"
    tightness = worst.tightness()
    allowed = allowed_text(allowance, because)
    text = f"holds, {tightness}; {seen} inputs, {attacks}, worst: {worst.where}; allowance {allowed}"
    tried = f"{seen} inputs, {sizes_of(shapes)}"
    found = f"verified, {name}: {tightness}; {tried}, {attacks}; allowance {allowed}"
    evidence = ledger._left("verified", found, shows=(_loosely(name, allowance, allowed),), scope=tried)
    dropped = {}
    for what, other in without.items():
        its_domain, its_shapes = other if isinstance(other, tuple) else (other, shapes)
        kept = {key: test for key, test in named.items() if key != what}
        check = fails(f"{name}, without {what}", lhs, rhs, domain=its_domain, shapes=its_shapes, hypothesis=kept)
        if named and bool(named[what](single(check.at)).all()):
            raise VerificationError(f"{name}, without {what}: the counterexample satisfies it")
        dropped[what] = check
    return Check(name, text, worst.score if statement.ratio else -worst.score, worst.at, evidence, dropped)


@ledger._check
def fails(
    name: str,
    lhs: Side,
    rhs: Side,
    *,
    domain: Domain,
    shapes: Iterable[Shape],
    extremes: Callable[[Shape], Extremes] | None = None,
    hypothesis: Test | Mapping[str, Test] | EllipsisType | None = ...,
    by: float = 1.001,
    against: str = "",
) -> Check:
    """Demand a violation: lhs must exceed rhs by at least (by − 1)|rhs|, whatever rounding has done.

    For false claims and dropped hypotheses. The random inputs come first; the attack climbs only where none of them
    will do, because where a climb ends may hang on the last digit. `against` names the claim that is refuted, where a
    record rests on the counterexample; `hypothesis` then tests the inputs for what that claim assumes, and is None for
    one that assumes nothing, which the evidence says.

    What rounding has done is bounded operation by operation (`smalltorch.engine.balls`): lhs > rhs then holds for the
    exact values, for all inputs and constants within a few units in the last place. Where an operation has no such
    bound, the difference must be 100 times what random rounding moves it by, and a part in 10⁸ of the largest number on
    the way; the evidence then says "beyond rounding".

    Raises:
        VerificationError: if no input breaks the statement.
        ValueError: as for `at_most`, except that one input is enough; for an extreme input, or `against` a claim,
            without `hypothesis`.
    """
    if not isinstance(against, str):
        raise ValueError(f"against must be ids of claims, with spaces between, as one string, got {against!r}")
    if against and hypothesis is ...:
        raise ValueError(
            f"hypothesis must be given against {against}: a test of what the claim assumes of its inputs, such as "
            "lambda A: (A.sum(-1) - 1).abs().amax(-1) < 1e-9, or None where it assumes nothing"
        )
    by = real(by, "by")
    if not 1 + 1e-9 <= by < math.inf:
        raise ValueError(f"by must be at least 1 + 1e-9, got {by}: nearer to 1 rounding decides")
    statement = Statement(name, lhs, rhs, tests_of(hypothesis))
    search = Search(statement, domain, checked_shapes(shapes), extremes)
    worst, seen, why_not, how = Worst(statement), 0, "", ""
    for batches in (search.random(), search.attacks()):
        for batch in batches:
            seen += len(batch.lhs)
            over = (batch.lhs > batch.rhs) & (batch.lhs - batch.rhs >= (by - 1) * batch.rhs.abs())
            for _ in range(TRIES):
                k = worst.beaten_by(batch, over)
                if k is None:
                    break
                confirmed, reason = _confirmed(statement, batch, k)
                if confirmed:
                    worst.update(batch, k)
                    how = reason
                    break
                over[k], why_not = False, f"; where the left side is larger, {reason}"
        if worst.where:
            break
    if not worst.where:
        raise VerificationError(f"{name}: no counterexample among {seen} inputs{why_not}")
    if worst.where.startswith(EXTREME) and not statement.tests:
        raise ValueError("hypothesis must be given: the counterexample is an extreme input, which no domain has made")
    left, right = apart(worst.lhs, worst.rhs)
    refuted = f"counterexample, {name}: {left} > {right}, by {number(worst.lhs - worst.rhs, 2)}; {worst.where}{how}"
    refuted += ", with no hypothesis" if against and not statement.tests else ""
    evidence = ledger._left("counterexample", refuted, shows=(name,), about=tuple(against.split()))
    return Check(name, f"fails: left {left}, right {right}; {worst.where}{how}", worst.score, worst.at, evidence)


@ledger._check
def equal(
    name: str,
    lhs: Side,
    rhs: Side,
    *,
    domain: Domain,
    shapes: Iterable[Shape],
    allowance: float = 1e-12,
    because: str = "",
    scale: float = 0.0,
) -> Check:
    """Check lhs = rhs up to rounding, on random inputs; the sides may give tensors of any one shape for each input.

    Entry by entry: |lhs − rhs| may be at most `allowance` times the larger of the two, plus what rounding explains
    where the entry is a difference of larger terms (`smalltorch.engine.rounding`). Where a side is 0, `scale` says
    what counts as large: the allowance is then at least `allowance` times the scale.

    Raises:
        VerificationError: with the input of the largest error, if an entry differs by more.
        ValueError: if a side gives NaN, infinity or another type than float64, or the sides do not have one shape with
            a row for each input; if nothing could fail: no inputs, or one; sides that are one tensor, or look at no
            input; a scale beyond what occurs; or if on more than half of the inputs a larger error would pass.
    """
    allowance, scale = checked_tolerance("allowance", allowance, because), real(scale, "scale")
    if not 0 <= scale < math.inf:
        raise ValueError(f"scale must be a size, got {scale}")
    if lhs is rhs:
        raise ValueError("lhs and rhs must be computed each by itself, got one function: nothing could fail")
    worst, seen, telling, various, largest = _Difference(), 0, 0, False, 0.0
    shapes = checked_shapes(shapes)
    for _, free, origin in free_samples(name, shapes):
        inputs = admitted(domain, free)
        a, b = evaluated(lhs, inputs, "lhs"), evaluated(rhs, inputs, "rhs")
        if a.shape != b.shape or a.shape[:1] != free.shape[:1] or not a.numel():
            raise ValueError(
                f"lhs and rhs must have one shape, with a row for each of {len(free)} inputs, got "
                f"{tuple(a.shape)} and {tuple(b.shape)}"
            )
        refuse_one_tensor(a, b)
        if not seen and allowance <= ROUNDING:
            _refuse_blind(name, computed_in_float64(domain, free, inputs, lhs, rhs))
        difference = _Entries.of(a, b, allowance, scale)
        rows = (difference.error > difference.allowed).any(1).nonzero().flatten()
        if len(rows):
            enough = (a - b)[rows].abs() / MARGIN
            explained = MARGIN * noise(lambda x: lhs(x) - rhs(x), rows_of(inputs, rows), enough)
            difference.allowed[rows] += explained.reshape(len(rows), -1)
        worst.update(inputs, difference, origin)
        seen += len(a)
        telling += difference.telling(max(1e-3, 10 * allowance))
        various |= differ(inputs)
        parts = inputs if isinstance(inputs, tuple) else (inputs,)
        largest = max(largest, *(float(x.abs().max()) for x in (a, b, *parts) if x.numel() and x.dtype != torch.bool))
    if worst.share > 1:
        left, right = apart(worst.lhs, worst.rhs)
        raise VerificationError(
            f"{name}: the sides differ: left {left}, right {right}, at {worst.where}\n  input {worst.at}"
        )
    if not various:
        raise ValueError(f"{name}: domain gives one input only, and a single fact is for `computed`")
    if scale > REACH * largest:
        raise ValueError(f"scale must be a size that occurs, got {scale:g}: nothing here is larger than {largest:.3g}")
    if 2 * telling < seen:
        raise ValueError(
            f"{name}: nothing could fail: on {seen - telling} of {seen} inputs the sides are 0, or an error of one "
            "part in a thousand would pass as rounding; where 0 is right, scale=… says what is not"
        )
    allowed, tried = allowed_text(allowance, because), f"{seen} inputs, {sizes_of(shapes)}"
    allowed += f", on a scale of {number(scale)}" if scale else ""
    text = f"holds, entry by entry; {seen} inputs; rounding allowance {allowed}"
    found = f"verified, {name}: equal up to rounding; {tried}, not attacked; allowance {allowed}"
    evidence = ledger._left("verified", found, shows=(_loosely(name, allowance, allowed),), scope=tried)
    return Check(name, text, worst.share, worst.at, evidence)


def _loosely(name: str, allowance: float, allowed: str) -> str:
    """What is shown: the statement, or where its allowance is wider than rounding needs, no more than that."""
    return name if allowance <= ROUNDING else f"{name}, up to {allowed}"


@dataclass
class _Slight:
    """The input where lhs exceeds rhs by most, relative to the larger side, and by more than SLIGHT."""

    share: float = SLIGHT
    batch: Batch | None = None
    k: int = 0

    def update(self, batch: Batch) -> None:
        share = (batch.lhs - batch.rhs) / torch.maximum(batch.lhs.abs(), batch.rhs.abs()).clamp(min=1e-300)
        if float(share.max()) > self.share:
            self.share, self.batch, self.k = float(share.max()), batch, int(share.argmax())

    def refuse(self, statement: Statement, allowance: float) -> None:
        """Raise if it is a counterexample, although the allowance would cover it."""
        if self.batch and _confirmed(statement, self.batch, self.k)[0]:
            left, right = apart(float(self.batch.lhs[self.k]), float(self.batch.rhs[self.k]))
            raise VerificationError(
                f"{statement.name}: broken at {self.batch.where}, by more than rounding explains and less than the "
                f"allowance of {number(allowance, 1)}\n  left {left}, right {right}\n"
                f"  input {picked(self.batch.inputs, self.k)}"
            )


@dataclass
class _Entries:
    """The entries of two sides, a row for each input, and by how much they may differ."""

    lhs: Tensor
    rhs: Tensor
    allowed: Tensor
    zero: Tensor  # whether a side is 0 in all entries

    @classmethod
    def of(cls, a: Tensor, b: Tensor, allowance: float, scale: float) -> "_Entries":
        a, b = (x.detach().reshape(len(x), -1) for x in (a, b))
        zero = (a == 0).all(1) | (b == 0).all(1) if scale else torch.zeros(len(a), dtype=torch.bool)
        return cls(a, b, allowance * torch.maximum(a.abs(), b.abs()).clamp(min=scale), zero)

    @property
    def error(self) -> Tensor:
        return (self.lhs - self.rhs).abs()

    def telling(self, share: float) -> int:
        """On how many inputs an error of this share of an entry would not pass, or 0 comes out where it should."""
        size = torch.maximum(self.lhs.abs(), self.rhs.abs())
        return int(((share * size > self.allowed).any(1) | self.zero).sum())


@dataclass
class _Difference:
    """The entry of two sides that differ most, as a share of what is allowed."""

    share: float = -1.0
    at: Any = None
    where: str = ""
    lhs: float = math.nan
    rhs: float = math.nan

    def update(self, inputs: Any, entries: _Entries, where: str) -> None:
        share = torch.where(entries.lhs == entries.rhs, 0, entries.error / entries.allowed)
        row, entry = divmod(int(share.argmax()), share.shape[1])
        if share[row, entry] > self.share:
            self.share, self.at, self.where = float(share[row, entry]), picked(inputs, row), where
            self.lhs, self.rhs = float(entries.lhs[row, entry]), float(entries.rhs[row, entry])


def _confirmed(statement: Statement, batch: Batch, k: int) -> tuple[bool, str]:
    """Whether lhs > rhs at the k-th input, whatever rounding has done; and how that is known, or why it is not."""
    inputs, gap = rows_of(batch.inputs, torch.tensor([k])), batch.lhs[k] - batch.rhs[k]
    try:
        (a, r), (b, s) = (enclosed(side, inputs) for side in (statement.lhs, statement.rhs))
        certain = bool((a - b > APART * (r + s)).all())
        return certain, "" if certain else "rounding explains it"
    except Astray as reason:
        return False, str(reason)
    except Unknown:
        among = torch.arange(len(batch.lhs)) == k
        largest = max(largest_on_the_way(side, inputs) for side in (statement.lhs, statement.rhs))
        explained = max(float(statement.rounding(batch, among)[k]), BEYOND * largest)
        return bool(gap > explained), ", beyond rounding" if gap > explained else "rounding may explain it"


# -- what is refused ---------------------------------------------------------------------------------------------------


def _refuse_broken(statement: Statement, batch: Batch, allowance: float, largest: float) -> None:
    """Raise if an input of the batch breaks lhs ≤ rhs, or may break it by more than rounding to `largest` is worth."""
    a, b = batch.lhs, batch.rhs
    over = a - b - allowance * torch.maximum(a.abs(), b.abs())
    if not (over > 0).any():
        return
    explained = statement.rounding(batch, over > 0)
    broken = over > explained
    if broken.any():
        k = int(over.where(broken, -math.inf).argmax())
        left, right = apart(float(a[k]), float(b[k]))
        raise VerificationError(
            f"{statement.name}: broken at {batch.where}\n"
            f"  left {left}, right {right}\n  input {picked(batch.inputs, k)}"
        )
    k = int(over.argmax())
    if over[k] > ROUNDING * largest:
        raise ValueError(
            f"{statement.name}: undecided at {batch.where}: left − right is {float(a[k] - b[k]):.3g}, and rounding may "
            f"explain up to {float(explained[k]):.3g}; state the terms as sides, not their difference"
        )


def _refuse_blind(name: str, looked: bool) -> None:
    if not looked:
        raise ValueError(f"{name}: neither side is computed from its input, and a single fact is for `computed`")
