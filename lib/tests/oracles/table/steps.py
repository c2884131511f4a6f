"""initialisation, optim, schedules."""

import math

from smalltorch import initialisation, optim, schedules

from .. import formulas as f
from ..judge import Entry
from ..kinds import Count, Number, Real


class Share(Number):
    """A number from 0 to below 1."""

    def bad(self, value, given):
        for bad in super().bad(value, given):
            yield bad if bad.note != "1e160" else bad._replace(outside=True)


def of_steps(module, name, oracle, **arguments):
    """An entry of numbers that are counted."""
    call = getattr(module, name)
    name = f"{module.__name__.removeprefix('smalltorch.')}.{name}"
    return Entry(name, lambda **given: call(**given), oracle, {k: Count(v) for k, v in arguments.items()})


ENTRIES = [
    of_steps(initialisation, "xavier_std", lambda d_in, d_out: ((d_in + d_out) / 2) ** -0.5, d_in=3, d_out=5),
    of_steps(initialisation, "he_std", lambda d_in: 2**0.5 / d_in**0.5, d_in=3),
    Entry(
        "optim.adam_steps",
        lambda G, beta_1, beta_2, eps: optim.adam_steps(G, beta_1, beta_2, eps),
        f.adam_steps,
        {"G": Real("n d"), "beta_1": Share(0.8, least=0), "beta_2": Share(0.9, least=0), "eps": Number(1e-3, above=0)},
    ),
    of_steps(schedules, "warm_up", lambda step, steps: step / max(step, steps), step=3, steps=5),
    of_steps(schedules, "linear_decay", lambda step, steps: max(steps + 1 - step, 0) / steps, step=3, steps=5),
    of_steps(
        schedules,
        "cosine_decay",
        lambda step, steps: math.cos(math.pi * min(step - 1, steps) / steps / 2) ** 2,
        step=3,
        steps=5,
    ),
    of_steps(
        schedules, "exponential_decay", lambda step, half: math.exp(math.log(2) * (1 - step) / half), step=3, half=5
    ),
    of_steps(
        schedules, "inverse_root", lambda step, warmup: min(step / warmup, (warmup / step) ** 0.5), step=7, warmup=5
    ),
    of_steps(
        schedules,
        "noam",
        lambda step, d, warmup: step / (d * warmup**3) ** 0.5 if step < warmup else (d * step) ** -0.5,
        step=3,
        d=4,
        warmup=5,
    ),
    of_steps(
        schedules,
        "triangle",
        lambda step, half: math.acos(math.cos(math.pi * (step - 1) / half)) / math.pi,
        step=4,
        half=5,
    ),
    Entry("optim.adafactor_steps", lambda G: optim.adafactor_steps(G), f.adafactor_steps, {"G": Real("t n m")}),
    Entry("optim.sm3_bounds", lambda G: optim.sm3_bounds(G), f.sm3_bounds, {"G": Real("t n m")}),
    Entry("optim.lion_steps", lambda G: optim.lion_steps(G), f.lion_steps, {"G": Real("t n")}),
    Entry("optim.adam_mini_steps", lambda G: optim.adam_mini_steps(G), f.adam_mini_steps, {"G": Real("t n m")}),
]
