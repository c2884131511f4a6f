r"""Numeric checks: random inputs of several distributions and sizes, then an attack that climbs to the worst it finds.

    >>> at_most(
    ...     "‖A‖₂ ≤ √n",
    ...     lambda A: torch.linalg.matrix_norm(A, ord=2),
    ...     lambda A: torch.full((len(A),), A.shape[-1] ** 0.5).double(),
    ...     domain=lambda S: S.softmax(-1),
    ...     shapes=[(4, 4)],
    ...     extremes=lambda shape: Extremes(lambda columns: torch.eye(4).double()[columns], length=4, choices=4),
    ... )
    ‖A‖₂ ≤ √n: holds on 233 inputs, attacks included; tightness 1.00 (structured search, 4×4); allowance 1e-12

A statement is given by its two sides, each a function from a batch of inputs to one number for each, and by its
`domain`: a map from unconstrained real tensors onto the inputs that satisfy the hypothesis, such as softmax for
row-stochastic matrices. So every sample meets the hypothesis, and the attack can follow the gradient through it.
All in float64. What comes back says how tight the statement is and which input is the worst.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from smalltorch.engine import ledger
from smalltorch.engine.sample import DISTRIBUTIONS, generator
from smalltorch.engine.schema import Evidence
from smalltorch.engine.show import number

Side = Callable[[Any], Tensor]
Shape = tuple[int, ...]

PER_DISTRIBUTION = 32  # random inputs for each distribution and shape
STARTS, STEPS, RATE = 8, 150, 0.1  # the gradient attack: the best samples so far, climbed together by Adam


class VerificationError(AssertionError):
    """A statement that an input breaks, or a violation that was demanded and not found."""


@dataclass(frozen=True)
class Extremes:
    """The inputs of an extreme family, written as codes: `length` digits, each below `choices`.

    `decode` maps a batch of codes (integer tensor, batch × length) to a batch of inputs. For a matrix with one-hot
    rows the k-th digit is the hot column of row k.
    """

    decode: Callable[[Tensor], Any]
    length: int
    choices: int


@dataclass(frozen=True)
class Check:
    """A numeric check that has run. `value`: tightness, error or mean; `at`: the input that gave it."""

    name: str
    text: str
    value: float
    at: Any
    evidence: Evidence

    def __repr__(self) -> str:
        return f"{self.name}: {self.text}".replace(": \n", ":\n")


@dataclass
class _Worst:
    ratio: float = -math.inf
    at: Any = None
    where: str = ""
    lhs: float = math.nan
    rhs: float = math.nan
    seen: int = 0
    climbed: bool = False  # whether the gradient attack had a slope to climb

    def update(self, inputs: Any, lhs: Tensor, rhs: Tensor, where: str, limit: float) -> None:
        """Keep the largest lhs/rhs. A tie goes to what was found first, so that rounding does not decide, unless only
        the later one exceeds the limit."""
        self.seen += len(lhs)
        ratio = _ratio(lhs, rhs)
        k = int(ratio.argmax())
        largest = float(ratio[k])
        decides = self.ratio <= limit < largest or not math.isfinite(self.ratio)
        tie = 0.0 if decides else 1e-6 * abs(self.ratio)
        if not self.where or largest > self.ratio + tie:
            self.ratio, self.where = largest, where
            self.at, self.lhs, self.rhs = _pick(inputs, k), float(lhs[k]), float(rhs[k])


def at_most(
    name: str,
    lhs: Side,
    rhs: Side,
    *,
    domain: Callable[[Tensor], Any],
    shapes: Iterable[Shape],
    extremes: Callable[[Shape], Extremes] | None = None,
    hypothesis: Callable[[Any], Tensor] | None = None,
    allowance: float = 1e-12,
) -> Check:
    """Check lhs ≤ rhs, and report its tightness: the largest lhs/rhs found.

    Args:
        name: the statement, in words or symbols.
        lhs, rhs: from a batch of inputs to a batch of numbers; rhs ≥ 0. Inputs where both are 0 count as ratio 0.
        domain: from free tensors (batch × shape) to a batch of inputs that satisfy the hypothesis.
        shapes: shapes of one free tensor.
        extremes: the extreme inputs for a shape, for the structured search. They lie outside the domain's image, so
            nothing but `hypothesis` sees to it that they satisfy the hypothesis.
        hypothesis: from a batch of inputs to True where one satisfies the hypothesis; tested on all inputs.
        allowance: relative slack for rounding, at most 0.01.

    Raises:
        VerificationError: with the input, if lhs > rhs·(1 + allowance) somewhere.
        ValueError: if a side gives NaN, infinity, a negative rhs, or not one number for each input; if an input
            violates the hypothesis; if there are no inputs.
    """
    _check_allowance(allowance)
    worst = _search(name, lhs, rhs, domain, shapes, extremes, hypothesis, limit=1 + allowance)
    if worst.ratio > 1 + allowance:
        raise VerificationError(
            f"{name}: broken by a factor {number(worst.ratio, 4)} at {worst.where}\n"
            f"  left {worst.lhs:.6g}, right {worst.rhs:.6g}\n  input {worst.at}"
        )
    tightness = number(worst.ratio)
    attacks = "attacks included" if worst.climbed else "structured search included" if extremes else "not attacked"
    text = (
        f"holds on {worst.seen} inputs, {attacks}; tightness {tightness} ({worst.where}); "
        f"allowance {number(allowance, 1)}"
    )
    evidence = ledger.executed("verified", f"verified, {name}: tightness {tightness}")
    return Check(name, text, worst.ratio, worst.at, evidence)


def fails(
    name: str,
    lhs: Side,
    rhs: Side,
    *,
    domain: Callable[[Tensor], Any],
    shapes: Iterable[Shape],
    extremes: Callable[[Shape], Extremes] | None = None,
    hypothesis: Callable[[Any], Tensor] | None = None,
    by: float = 1.001,
) -> Check:
    """Demand a violation: lhs ≤ rhs must fail by at least the factor `by`. For false claims and dropped hypotheses.

    Raises:
        VerificationError: if no input breaks the statement.
        ValueError: as for `at_most`.
    """
    if by <= 1:
        raise ValueError(f"by must be greater than 1, got {by}: at 1 the statement still holds")
    worst = _search(name, lhs, rhs, domain, shapes, extremes, hypothesis, limit=by)
    if worst.ratio < by:
        raise VerificationError(
            f"{name}: no counterexample among {worst.seen} inputs; the largest left/right is "
            f"{number(worst.ratio, 4)} at {worst.where}"
        )
    text = f"fails: left {number(worst.lhs)}, right {number(worst.rhs)} ({worst.where})"
    evidence = ledger.executed("counterexample", f"counterexample, {name}: {number(worst.lhs)} > {number(worst.rhs)}")
    return Check(name, text, worst.ratio, worst.at, evidence)


def equal(
    name: str,
    lhs: Side,
    rhs: Side,
    *,
    domain: Callable[[Tensor], Any],
    shapes: Iterable[Shape],
    allowance: float = 1e-12,
) -> Check:
    """Check lhs = rhs up to rounding, on random inputs; the sides may give tensors of any one shape for each input.

    The error of an input is max|lhs − rhs| / max(1, max|rhs|); it may be at most `allowance`.

    Raises:
        VerificationError: with the input of the largest error, if that exceeds the allowance.
        ValueError: if a side gives NaN or infinity, or the sides do not have one shape with a row for each input; for
            no inputs.
    """
    _check_allowance(allowance)
    error, at, where, seen = 0.0, None, "", 0
    for free, origin in _free_samples(name, _checked(shapes)):
        inputs = domain(free)
        a, b = _finite(lhs(inputs), "lhs"), _finite(rhs(inputs), "rhs")
        if a.shape != b.shape or a.shape[:1] != free.shape[:1] or not a.numel():
            raise ValueError(
                f"lhs and rhs must have one shape, with a row for each of {len(free)} inputs, got "
                f"{tuple(a.shape)} and {tuple(b.shape)}"
            )
        a, b = a.reshape(len(a), -1), b.reshape(len(b), -1)
        errors = (a - b).abs().amax(1) / b.abs().amax(1).clamp(min=1)
        seen += len(errors)
        k = int(errors.argmax())
        if at is None or errors[k] > error:
            error, at, where = float(errors[k]), _pick(inputs, k), origin
    if error > allowance:
        raise VerificationError(
            f"{name}: the sides differ by {number(error)}, allowed is {number(allowance, 1)}, at {where}\n  input {at}"
        )
    share = "a tenth of " if error <= allowance / 10 else ""  # the error itself is rounding noise: not printed
    text = f"holds on {seen} inputs; largest error below {share}the rounding allowance {number(allowance, 1)}"
    return Check(name, text, error, at, ledger.executed("verified", f"verified, {name}: equal up to rounding"))


def measured(
    name: str,
    values: Tensor | Sequence[float],
    *,
    above: float = -math.inf,
    below: float = math.inf,
    over: str = "seeds",
) -> Check:
    """An effect with its spread: mean ± standard deviation over seeds (or whatever `over` says).

    The mean must lie above and below the given values, of which there must be one, by two standard errors.

    Raises:
        VerificationError: if it does not.
        ValueError: for fewer than two values, NaN or infinity among them, or neither `above` nor `below`.
    """
    values = torch.as_tensor(values, dtype=torch.float64)
    if values.ndim != 1 or len(values) < 2:
        raise ValueError(f"values must be a list of at least two numbers, got shape {tuple(values.shape)}")
    _finite(values, "values")
    if not (above > -math.inf or below < math.inf):
        raise ValueError("above or below must be given: without either there is nothing that could fail")
    mean, spread = float(values.mean()), float(values.std())
    error = spread / math.sqrt(len(values))
    text = f"{number(mean)} ± {number(spread, 2)} over {len(values)} {over}"
    if not (mean - 2 * error > above and mean + 2 * error < below):
        raise VerificationError(f"{name}: {text} is not between {above} and {below} by two standard errors")
    return Check(name, text, mean, values, ledger.executed("measured", f"measured, {name}: {text}"))


def computed(name: str, rows: Iterable[tuple[str, float, float]], tolerance: float = 1e-9) -> Check:
    """Plain facts, settled together: rows of (what, the value computed here, the value that must come out).

    Raises:
        VerificationError: naming the first row whose values differ by more than `tolerance`, relative to the second
            (absolutely, where the second is 0).
        ValueError: for no rows, or NaN or infinity as the second value.
    """
    rows = list(rows)
    if not rows:
        raise ValueError("rows must hold at least one fact, got none")
    for what, value, expected in rows:
        if not math.isfinite(float(expected)):
            raise ValueError(f"rows: the expected value of {what} must be finite, got {float(expected)}")
        if not abs(float(value) - float(expected)) <= tolerance * (abs(float(expected)) or 1.0):
            raise VerificationError(f"{name}: {what} is {float(value):.6g}, not {float(expected):.6g}")
    text = "".join(
        f"\n  {what} = {expected if isinstance(expected, int) else number(expected, 4)}" for what, _, expected in rows
    )
    evidence = ledger.executed("computed", f"computed, {name}: {len(rows)} of {len(rows)} facts")
    return Check(name, text, 0.0, rows, evidence)


# -- the search --------------------------------------------------------------------------------------------------------


def _search(
    name: str,
    lhs: Side,
    rhs: Side,
    domain: Callable[[Tensor], Any],
    shapes: Iterable[Shape],
    extremes: Callable[[Shape], Extremes] | None,
    hypothesis: Callable[[Any], Tensor] | None,
    limit: float,
) -> _Worst:
    """Random inputs, a climb from the best of them, and the extremes; for each shape."""
    worst = _Worst()

    def look(inputs: Any, count: int, where: str) -> Tensor:
        a, b = lhs(inputs), rhs(inputs)
        if a.shape != (count,) or b.shape != (count,):
            raise ValueError(
                f"lhs and rhs must give one number for each of {count} inputs, got shapes "
                f"{tuple(a.shape)} and {tuple(b.shape)}"
            )
        if hypothesis is not None and not bool(hypothesis(inputs).all()):
            raise ValueError(f"hypothesis: violated by an input of the {where}")
        worst.update(inputs, a, b, where, limit)
        return _ratio(a, b)

    for shape in _checked(shapes):
        size = "×".join(map(str, shape))
        starts: list[tuple[int, float, Tensor]] = []
        for free, origin in _free_samples(name, [shape]):
            ratio = look(domain(free), len(free), origin)
            best = ratio.argsort(descending=True)[:STARTS]
            starts += [(rank, -float(ratio[k]), free[k]) for rank, k in enumerate(best)]
        starts.sort(key=lambda start: start[:2])  # the best of each distribution first: not all on one peak
        climbed, has_slope = _climb(torch.stack([z for *_, z in starts[:STARTS]]), lhs, rhs, domain)
        worst.climbed |= has_slope
        look(domain(climbed), len(climbed), f"gradient attack, {size}")
        if extremes is not None:
            look(_structured(name, extremes(shape), lhs, rhs), 1, f"structured search, {size}")
    return worst


def _checked(shapes: Iterable[Shape]) -> list[Shape]:
    shapes = list(shapes)
    if not shapes or any(size < 1 for shape in shapes for size in shape):
        raise ValueError(f"shapes must name at least one shape, without zeros, got {shapes}")
    return shapes


def _check_allowance(allowance: float) -> None:
    if not 0 <= allowance <= 0.01:
        raise ValueError(f"allowance must lie between 0 and 0.01, got {allowance}: it is for rounding only")


def _free_samples(name: str, shapes: Iterable[Shape]) -> Iterator[tuple[Tensor, str]]:
    rng = generator(name)
    for shape in shapes:
        for kind, draw in DISTRIBUTIONS.items():
            yield torch.from_numpy(draw(rng, (PER_DISTRIBUTION, *shape))), f"{kind} input, {'×'.join(map(str, shape))}"


def _ratio(lhs: Tensor, rhs: Tensor) -> Tensor:
    """lhs/rhs, where 0/0 counts as 0: it says nothing about how tight the statement is."""
    _finite(lhs, "lhs"), _finite(rhs, "rhs")
    if (rhs < 0).any():  # lhs/rhs ≤ 1 would not mean lhs ≤ rhs
        raise ValueError(f"rhs must not be negative, got {float(rhs.min()):.6g}: add the same to both sides")
    return torch.where((lhs == 0) & (rhs == 0), torch.zeros_like(lhs), lhs / rhs)


def _climb(free: Tensor, lhs: Side, rhs: Side, domain: Callable[[Tensor], Any]) -> tuple[Tensor, bool]:
    """Gradient ascent on log(lhs/rhs), all starts at once: each climb's best point, and whether there was a slope."""
    z = free.clone().requires_grad_(True)
    optimiser = torch.optim.Adam([z], lr=RATE, maximize=True)
    best, best_z = torch.full((len(z),), -math.inf, dtype=z.dtype), z.detach().clone()
    has_slope = False
    for _ in range(STEPS):
        inputs = domain(z)
        a, b = lhs(inputs), rhs(inputs)
        ratio = _ratio(a.detach(), b.detach())
        logarithm = a.clamp(min=1e-300).log() - b.clamp(min=1e-300).log()
        value = torch.where(a > 0, logarithm, a)  # where lhs is negative, it is itself the way up
        better = ratio > best
        best = torch.where(better, ratio, best)
        best_z = torch.where(better.reshape(-1, *[1] * (z.ndim - 1)), z.detach(), best_z)
        if not value.requires_grad:  # neither side depends on the input
            break
        (slope,) = torch.autograd.grad(value.sum(), z)
        z.grad = slope.nan_to_num(0.0, 0.0, 0.0)  # at ties of singular values the derivative may not exist
        has_slope |= bool(z.grad.any())
        optimiser.step()
    return best_z, has_slope


def _structured(name: str, family: Extremes, lhs: Side, rhs: Side) -> Any:
    """The worst extreme input: all of them where they are few, else a climb that changes one digit at a time."""
    length, choices = family.length, family.choices
    if choices**length <= 4096:
        codes = torch.cartesian_prod(*[torch.arange(choices)] * length).reshape(-1, length)
    else:
        codes = torch.from_numpy(generator(name + " codes").integers(0, choices, (64, length)))

    def score(batch: Tensor) -> Tensor:
        inputs = family.decode(batch)
        return _ratio(lhs(inputs), rhs(inputs))

    best = codes[score(codes).argmax()]
    value = score(best[None])[0]
    while True:
        neighbours = best.repeat(length * choices, 1)
        digit = torch.arange(length).repeat_interleave(choices)
        neighbours[torch.arange(length * choices), digit] = torch.arange(choices).repeat(length)
        scores = score(neighbours)
        if scores.max() <= value + 1e-9 * value.abs():
            return family.decode(best[None])
        best, value = neighbours[scores.argmax()], scores.max()


def _pick(inputs: Any, k: int) -> Any:
    return tuple(x[k].detach() for x in inputs) if isinstance(inputs, tuple) else inputs[k].detach()


def _finite(x: Tensor, what: str) -> Tensor:
    if not torch.isfinite(x).all():
        raise ValueError(f"{what} must be finite, got NaN or infinity")
    return x
