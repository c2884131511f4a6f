"""Adversarial search for the worst input: random samples, gradient ascent, and extreme inputs."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from smalltorch.engine.check import shortened
from smalltorch.engine.rounding import refuse_lower_precision
from smalltorch.engine.sample import DISTRIBUTIONS, generator
from smalltorch.engine.statement import Batch, Domain, Side, Statement, admitted, called, differ, refuse_idle

Shape = tuple[int, ...]
Score = Callable[[Any], Tensor]  # of a batch of inputs: the larger, the nearer to a violation
Climbable = Callable[[Any], tuple[Tensor, Tensor]]  # a score, and what has a slope and rises with it

PER_DISTRIBUTION = 32  # random inputs for each distribution and shape
STARTS, STEPS, RATE = 8, 150, 0.1  # the gradient attack: the best samples so far, climbed together by Adam
EXTREME = "structured search"
NEXT_DOOR = 1e-10  # how far from a climb's start its twin starts, relatively


@dataclass(frozen=True)
class Extremes:
    """The inputs of an extreme family, written as codes: `length` digits, each below `choices`.

    `decode` maps a batch of codes (integer tensor, batch × length) to a batch of inputs. For a matrix with one-hot
    rows the k-th digit is the hot column of row k.
    """

    decode: Callable[[Tensor], Any]
    length: int
    choices: int


def checked_shapes(shapes: Iterable[Shape]) -> list[Shape]:
    """The shapes as a list.

    Raises:
        ValueError: if there are none, or one has no entries.
    """
    found = list(shapes) if isinstance(shapes, Iterable) else []
    if not found or not all(
        isinstance(shape, tuple | list) and all(isinstance(size, int) and size > 0 for size in shape) for shape in found
    ):
        raise ValueError(f"shapes must name at least one shape, without zeros, got {shortened(shapes)}")
    return list(map(tuple, found))


def size_of(shape: Shape) -> str:
    """A shape as text: 4×4; 1 for that of a number."""
    return "×".join(map(str, shape)) or "1"


def sizes_of(shapes: list[Shape]) -> str:
    """Shapes as text, for a line: `of size 4×4`, `of 7 sizes, 1 to 8×8×8`."""
    least, most = (size_of(extreme(shapes, key=math.prod)) for extreme in (min, max))
    return f"of size {most}" if len(set(shapes)) == 1 else f"of {len(set(shapes))} sizes, {least} to {most}"


def free_samples(name: str, shapes: Iterable[Shape]) -> Iterator[tuple[Shape, Tensor, str]]:
    """Random free tensors of each shape and distribution, and where each batch comes from."""
    rng = generator(name)
    for shape in shapes:
        for kind, draw in DISTRIBUTIONS.items():
            yield shape, torch.from_numpy(draw(rng, (PER_DISTRIBUTION, *shape))), f"{kind} input, {size_of(shape)}"


@dataclass
class Search:
    """The random inputs of all shapes, evaluated; from the best of them and from the extremes the attacks begin."""

    statement: Statement
    domain: Domain
    shapes: list[Shape]
    extremes: Callable[[Shape], Extremes] | None
    exact: bool = True  # all in float64
    samples: list[tuple[Shape, Tensor, Batch]] = field(default_factory=list)
    climbed: bool = False  # whether the gradient attack had a slope to climb
    looked: bool = True  # whether one side at least is computed from the inputs

    def __post_init__(self) -> None:
        statement = self.statement
        for shape, free, where in free_samples(statement.name, self.shapes):
            inputs = admitted(self.domain, free)
            batch = statement.batch(inputs, len(free), where)
            if self.exact and not self.samples:
                self.looked = computed_in_float64(self.domain, free, inputs, statement.lhs, statement.rhs)
            self.samples.append((shape, free, batch))
        right = torch.cat([batch.rhs for batch in self.random()])
        statement.ratio = bool((right >= 0).all() and (right > 0).any())
        for what, test in statement.tests.items():
            refuse_idle(what, test, self.samples[0][2].inputs)

    def random(self) -> list[Batch]:
        """The random inputs."""
        return [batch for *_, batch in self.samples]

    def attacks(self) -> Iterator[Batch]:
        """For each shape the ends of the climbs from the best samples, and the worst extreme."""
        statement = self.statement
        for shape in self.shapes:
            starts: list[tuple[int, float, Tensor]] = []
            for _, free, batch in (sample for sample in self.samples if sample[0] == shape):
                score = statement.scores(batch)
                best = score.argsort(descending=True)[:STARTS]
                starts += [(rank, -float(score[k]), free[k]) for rank, k in enumerate(best)]
            starts.sort(key=lambda start: start[:2])  # the best of each distribution first: not all on one peak
            free = torch.stack([z for *_, z in starts[:STARTS]])
            ends, moved = climb(torch.cat([free, free * (1 + NEXT_DOOR)]), self.domain, statement.climbable)
            self.climbed |= moved
            ends, twins = ends.chunk(2)
            batch = statement.batch(self.domain(ends), len(ends), f"gradient attack, {size_of(shape)}")
            yield replace(batch, twin=statement.score(self.domain(twins)))
            if self.extremes is not None:
                family = called(self.extremes, shape, "extremes")
                if not isinstance(family, Extremes):
                    raise ValueError(f"extremes must give Extremes for a shape, got {shortened(family)}")
                worst = structured(statement.name, family, statement.score)
                yield statement.batch(worst, 1, f"{EXTREME}, {size_of(shape)}")


def computed_in_float64(domain: Domain, free: Tensor, inputs: Any, *sides: Side) -> bool:
    """Whether one of the sides is computed from the inputs; a ValueError if one, or the domain, is not in float64."""
    refuse_lower_precision(domain, free, "domain")
    looks = [refuse_lower_precision(side, inputs, what) for side, what in zip(sides, ("lhs", "rhs"), strict=True)]
    return any(looks)


def refuse_vacuous(name: str, batches: list[Batch]) -> None:
    """A statement about one input is a single fact; 0 ≤ 0 throughout is none."""
    if not any(differ(batch.inputs) for batch in batches):
        raise ValueError(f"{name}: domain gives one input only, and a single fact is for `computed`")
    if not any(bool((batch.lhs != 0).any() or (batch.rhs != 0).any()) for batch in batches):
        raise ValueError(f"{name}: nothing could fail: both sides are 0 on all random inputs")


def climb(free: Tensor, domain: Domain, climbable: Climbable) -> tuple[Tensor, bool]:
    """Gradient ascent by Adam, all starts at once: each climb's best point, and whether there was a slope."""
    z = free.clone().requires_grad_(True)
    first, second = torch.zeros_like(free), torch.zeros_like(free)  # moments of the slope
    best, best_z = torch.full((len(z),), -math.inf, dtype=z.dtype), free.clone()
    has_slope = False
    for step in range(1, STEPS + 1):
        score, way_up = climbable(domain(z))
        better = score > best
        best = torch.where(better, score, best)
        best_z = torch.where(better.reshape(-1, *[1] * (z.ndim - 1)), z.detach(), best_z)
        if not way_up.requires_grad:  # neither side depends on the input
            break
        try:
            (slope,) = torch.autograd.grad(way_up.sum(), z)
        except RuntimeError as error:
            raise ValueError(f"lhs and rhs must have a slope, or x.detach() where they have none: {error}") from error
        slope = slope.nan_to_num(0.0, 0.0, 0.0)  # at ties of singular values the derivative may not exist
        has_slope |= bool(slope.any())
        first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
        change = first / (1 - 0.9**step) / ((second / (1 - 0.999**step)).sqrt() + 1e-8)
        z = (z.detach() + RATE * change).requires_grad_(True)
    return best_z, has_slope


def structured(name: str, family: Extremes, score: Score) -> Any:
    """The worst extreme input: all of them where they are few, else a climb that changes one digit at a time."""
    length, choices = family.length, family.choices
    if choices**length <= 4096:
        codes = torch.cartesian_prod(*[torch.arange(choices)] * length).reshape(-1, length)
    else:
        codes = torch.from_numpy(generator(name + " codes").integers(0, choices, (64, length)))

    def of_codes(batch: Tensor) -> Tensor:
        return score(family.decode(batch))

    best = codes[of_codes(codes).argmax()]
    value = of_codes(best[None])[0]
    while True:
        neighbours = best.repeat(length * choices, 1)
        digit = torch.arange(length).repeat_interleave(choices)
        neighbours[torch.arange(length * choices), digit] = torch.arange(choices).repeat(length)
        scores = of_codes(neighbours)
        if not scores.max() > value + 1e-9 * value.abs():
            return family.decode(best[None])
        best, value = neighbours[scores.argmax()], scores.max()
