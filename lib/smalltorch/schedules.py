"""Learning-rate schedules: a factor from 0 to 1 for each step, with which the highest rate is multiplied.

Steps count from 1.

Source: Vaswani et al. (2017) for `noam`; Smith, "Cyclical Learning Rates for Training Neural Networks" (2017).
"""

import math

from smalltorch.shapes import check_integers


def warm_up(step: int, steps: int) -> float:
    """step / steps, and 1 from there on.

        >>> [warm_up(step, 4) for step in (1, 2, 4, 5)]
        [0.25, 0.5, 1.0, 1.0]

    Chapter `initialisation`.
    """
    step, steps = check_integers(1, step=step, steps=steps)
    return min(1.0, step / steps)


def linear_decay(step: int, steps: int) -> float:
    """From 1 at the first step down by 1 / steps with each, to 0 after the last.

        >>> [linear_decay(step, 4) for step in (1, 2, 4, 5)]
        [1.0, 0.75, 0.25, 0.0]

    Chapter `initialisation`.
    """
    step, steps = check_integers(1, step=step, steps=steps)
    return max(0.0, 1 - (step - 1) / steps)


def cosine_decay(step: int, steps: int) -> float:
    """Half a wave of the cosine, from 1 at the first step to 0 after the last.

        >>> [round(cosine_decay(step, 4), 3) for step in (1, 2, 4, 5)]
        [1.0, 0.854, 0.146, 0.0]

    Chapter `initialisation`.
    """
    step, steps = check_integers(1, step=step, steps=steps)
    return (1 + math.cos(math.pi * min(1.0, (step - 1) / steps))) / 2


def exponential_decay(step: int, half: int) -> float:
    """From 1 at the first step, halved every `half` steps.

        >>> [exponential_decay(step, 4) for step in (1, 5, 9)]
        [1.0, 0.5, 0.25]

    Chapter `initialisation`.
    """
    step, half = check_integers(1, step=step, half=half)
    return 0.5 ** ((step - 1) / half)


def inverse_root(step: int, warmup: int) -> float:
    """Up to 1 with `warm_up`, then down like sqrt(warmup / step).

        >>> [inverse_root(step, 4) for step in (1, 4, 16)]
        [0.25, 1.0, 0.5]

    Chapter `initialisation`.
    """
    step, warmup = check_integers(1, step=step, warmup=warmup)
    return min(step / warmup, math.sqrt(warmup / step))


def noam(step: int, d: int, warmup: int) -> float:
    """d^(-1/2) min(step^(-1/2), step warmup^(-3/2)): no factor but the rate itself, which is `inverse_root` times its
    peak 1 / sqrt(d warmup).

        >>> noam(4, d=16, warmup=4)
        0.125

    Chapter `initialisation`. Source: Vaswani et al. (2017).
    """
    step, d, warmup = check_integers(1, step=step, d=d, warmup=warmup)
    return min(step**-0.5, step * warmup**-1.5) / math.sqrt(d)


def triangle(step: int, half: int) -> float:
    """Up from 0 at the first step to 1 after `half` steps, down again in as many, and so on.

        >>> [triangle(step, 2) for step in range(1, 7)]
        [0.0, 0.5, 1.0, 0.5, 0.0, 0.5]

    Chapter `initialisation`. Source: Smith (2017), the policy of this name.
    """
    step, half = check_integers(1, step=step, half=half)
    return 1 - abs((step - 1) % (2 * half) - half) / half
