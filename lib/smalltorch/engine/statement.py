"""A statement to be checked numerically: two sides, a domain and a hypothesis, evaluated with errors named."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from smalltorch.engine.check import numbers, shortened
from smalltorch.engine.rounding import MARGIN, noise
from smalltorch.engine.show import number

Side = Callable[[Any], Tensor]
Domain = Callable[[Tensor], Any]
Test = Callable[[Any], Tensor]  # from a batch of inputs to True where one satisfies a hypothesis

WILD = (lambda k: 1e9 + 0 * k, lambda k: -1e9 + 0 * k, lambda k: (-1) ** k * 1e9 / (k + 1))  # no hypothesis admits all


@dataclass(frozen=True)
class Batch:
    """Inputs with both sides, and where they come from; `twin`: the score of the same climb from next door."""

    inputs: Any
    lhs: Tensor
    rhs: Tensor
    where: str
    twin: Tensor | None = None


@dataclass
class Statement:
    """lhs ≤ rhs."""

    name: str
    lhs: Side
    rhs: Side
    tests: Mapping[str, Test]
    ratio: bool = True  # score by lhs/rhs, or where rhs is not positive by lhs − rhs

    def batch(self, inputs: Any, count: int, where: str) -> Batch:
        """Both sides at the inputs, if they are numbers and the inputs satisfy the hypothesis."""
        a, b = evaluated(self.lhs, inputs, "lhs"), evaluated(self.rhs, inputs, "rhs")
        if a.shape != (count,) or b.shape != (count,):
            raise ValueError(
                f"lhs and rhs must give one number for each of {count} inputs, got shapes "
                f"{tuple(a.shape)} and {tuple(b.shape)}"
            )
        refuse_one_tensor(a, b)
        for what, test in self.tests.items():
            if not bool(_booleans(test, inputs, count, what).all()):
                raise ValueError(f"{what}: violated by an input of the {where}")
        return Batch(inputs, a.detach(), b.detach(), where)

    def score(self, inputs: Any) -> Tensor:
        """What the search raises."""
        return self.climbable(inputs)[0]

    def climbable(self, inputs: Any) -> tuple[Tensor, Tensor]:
        """The score, and what rises with it and has a slope."""
        a, b = evaluated(self.lhs, inputs, "lhs"), evaluated(self.rhs, inputs, "rhs")
        if not self.ratio:
            return (a - b).detach(), a - b
        logarithm = a.clamp(min=1e-300).log() - b.clamp(min=1e-300).log()
        way_up = torch.where(a > 0, logarithm, a)  # where lhs is negative, it is itself the way up
        return _ratio(a.detach(), b.detach()), way_up

    def scores(self, batch: Batch) -> Tensor:
        """The score of each input of a batch."""
        return _ratio(batch.lhs, batch.rhs) if self.ratio else batch.lhs - batch.rhs

    def rounding(self, batch: Batch, among: Tensor) -> Tensor:
        """How much of lhs − rhs rounding may explain, for those among the inputs that are in question."""
        rows = among.nonzero().flatten()
        enough = (batch.lhs - batch.rhs)[rows] / MARGIN
        explained = torch.zeros_like(batch.lhs)
        explained[rows] = MARGIN * noise(lambda x: self.lhs(x) - self.rhs(x), rows_of(batch.inputs, rows), enough)
        return explained


@dataclass
class Worst:
    """The input with the largest score so far."""

    statement: Statement
    score: float = -math.inf
    at: Any = None
    where: str = ""
    lhs: float = math.nan
    rhs: float = math.nan
    twin: float = math.nan

    def beaten_by(self, batch: Batch, among: Tensor) -> int | None:
        """The row with the largest score among these, if it is larger than the score so far.

        A tie goes to what was found first, so that rounding does not decide: between the rows of a batch, and between
        batches, where climbs end at slightly different heights.
        """
        scores = self.statement.scores(batch).where(among, -math.inf)
        most = float(scores.max())
        level = most - 1e-9 * abs(most) if math.isfinite(most) else most
        k = int((scores >= level).int().argmax())
        tie = 1e-6 * abs(self.score) if math.isfinite(self.score) else 0.0
        return k if bool(among[k]) and (not self.where or float(scores[k]) > self.score + tie) else None

    def update(self, batch: Batch, k: int | None) -> None:
        """The k-th input of the batch is the worst from now on."""
        if k is not None:
            self.score, self.where = float(self.statement.scores(batch)[k]), batch.where
            self.at = picked(batch.inputs, k)
            self.lhs, self.rhs = float(batch.lhs[k]), float(batch.rhs[k])
            self.twin = self.score if batch.twin is None else float(batch.twin[k])

    def tightness(self) -> str:
        """As text, with the digits on which the climb and its twin agree: where a climb is chaotic, few."""
        sign, word = (1, "tightness") if self.statement.ratio else (-1, "least gap")
        for digits in (3, 2, 1):
            if number(self.score, digits) == number(self.twin, digits):
                return f"{word} {number(sign * self.score, digits)}"
        return f"{word} that depends on rounding"


# -- evaluation --------------------------------------------------------------------------------------------------------


def evaluated(side: Any, inputs: Any, what: str) -> Tensor:
    """A side at a batch of inputs, if it gives finite float64."""
    return numbers(called(side, inputs, what), what)


def admitted(domain: Any, free: Tensor) -> Any:
    """The inputs that a domain makes of free tensors: a tensor or a tuple of them, with a row for each."""
    inputs = called(domain, free, "domain")
    for part in inputs if isinstance(inputs, tuple) else (inputs,):
        if not isinstance(part, Tensor) or not part.ndim or len(part) != len(free):
            got = shortened(part)
            raise ValueError(f"domain must give tensors with a row for each of {len(free)} inputs, got {got}")
        if part.is_floating_point() and part.dtype != torch.float64:
            raise ValueError(f"domain must give float64, got {str(part.dtype).removeprefix('torch.')}")
    return inputs


def called(function: Any, argument: Any, what: str) -> Any:
    """function(argument); what it cannot compute, or writes into its argument, is an error of that function."""
    parts = [x for x in (argument if isinstance(argument, tuple) else (argument,)) if isinstance(x, Tensor)]
    before = [x.detach().clone() for x in parts]
    try:
        found = function(argument)
    except (TypeError, AttributeError, NameError, IndexError, KeyError, ArithmeticError, RuntimeError) as error:
        raise ValueError(f"{what} cannot be computed for a batch of inputs: {error}") from error
    if not all(bool(((x == y) | (y != y)).all()) for x, y in zip(parts, before, strict=True)):
        raise ValueError(f"{what} must not write into its input; x.clone() may be written into")
    return found


def _ratio(lhs: Tensor, rhs: Tensor) -> Tensor:
    """lhs/rhs; 0/0 counts as 0, as it says nothing about how tight the statement is. Infinite where rhs ≤ 0."""
    infinite = torch.where(lhs > rhs, math.inf, -math.inf).to(lhs.dtype)
    ratio = torch.where(rhs > 0, lhs / rhs.where(rhs > 0, 1), infinite)
    return ratio.where((lhs != 0) | (rhs != 0), 0)


def picked(inputs: Any, k: int) -> Any:
    """The k-th input of a batch."""
    return tuple(x[k].detach() for x in inputs) if isinstance(inputs, tuple) else inputs[k].detach()


def rows_of(inputs: Any, rows: Tensor) -> Any:
    """Some inputs of a batch."""
    return tuple(x[rows] for x in inputs) if isinstance(inputs, tuple) else inputs[rows]


def single(picked: Any) -> Any:
    """A batch of the one input that was picked."""
    return tuple(x[None] for x in picked) if isinstance(picked, tuple) else picked[None]


def differ(inputs: Any) -> bool:
    """Whether a batch holds two inputs that differ."""
    return any(bool((x != x[:1]).any()) for x in (inputs if isinstance(inputs, tuple) else (inputs,)))


# -- what is refused ---------------------------------------------------------------------------------------------------


def refuse_one_tensor(a: Tensor, b: Tensor) -> None:
    """What is compared with itself is equal."""
    if a.data_ptr() == b.data_ptr() and a.stride() == b.stride() and a.numel():
        raise ValueError("lhs and rhs must be computed each by itself, got one and the same tensor: nothing could fail")


def refuse_idle(what: str, test: Test, inputs: Any) -> None:
    """A hypothesis that any numbers meet does not look at its input."""
    for wild in WILD:
        try:
            met = test(_filled(inputs, wild))
        except (IndexError, RuntimeError):  # such as tokens beyond the vocabulary
            return
        if not bool(met.all()):
            return
    raise ValueError(f"{what} must be able to fail: 10⁹, −10⁹ and a sequence of both signs all meet it")


def _filled(inputs: Any, wild: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(inputs, tuple):
        return tuple(_filled(x, wild) for x in inputs)
    return wild(torch.arange(inputs.numel()).double()).to(inputs.dtype).reshape(inputs.shape)


def tests_of(hypothesis: Any) -> dict[str, Test]:
    """The tests by name; one alone is `hypothesis`, and there may be none."""
    if isinstance(hypothesis, Mapping):
        return {f"hypothesis {what!r}": test for what, test in hypothesis.items()}
    return {} if hypothesis in (None, ...) else {"hypothesis": hypothesis}


def _booleans(test: Test, inputs: Any, count: int, what: str) -> Tensor:
    holds = called(test, inputs, what)
    if not isinstance(holds, Tensor) or holds.dtype != torch.bool or holds.shape != (count,):
        got = f"{holds.dtype} of shape {tuple(holds.shape)}" if isinstance(holds, Tensor) else type(holds).__name__
        raise ValueError(f"{what} must give one boolean for each of {count} inputs, got {got}")
    return holds
