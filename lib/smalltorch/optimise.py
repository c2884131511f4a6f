"""First weights, and steps: how large weights are drawn, what Adam makes of gradients, and how rates rise and fall.

A schedule is a factor from 0 to 1 for each step, with which the highest rate is multiplied. Steps count from 1.

Source: Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks" (2010); He et
al., "Delving Deep into Rectifiers" (2015); Kingma and Ba, "Adam" (2015); Vaswani et al. (2017) for `noam`; Smith,
"Cyclical Learning Rates for Training Neural Networks" (2017).
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from smalltorch.shapes import check_floats, check_integers, check_numbers, check_range

# --- first weights ----------------------------------------------------------------------------------------------------


def xavier_std(d_in: int, d_out: int) -> float:
    """sqrt(2 / (d_in + d_out)): between what keeps signals at their size on the way up and gradients on the way down.

        >>> xavier_std(4, 4)
        0.5

    Chapter `initialisation`. Source: Glorot and Bengio (2010).

    Raises:
        ValueError: for a width below 1.
    """
    check_integers(1, d_in=d_in, d_out=d_out)
    return math.sqrt(2 / (d_in + d_out))


def he_std(d_in: int) -> float:
    """sqrt(2 / d_in): keeps the mean square of what ReLU lets through.

        >>> he_std(8)
        0.5

    Chapter `initialisation`. Source: He et al. (2015).

    Raises:
        ValueError: for a width below 1.
    """
    check_integers(1, d_in=d_in)
    return math.sqrt(2 / d_in)


# --- steps ------------------------------------------------------------------------------------------------------------


def adam_steps(
    G: Float[Tensor, "t parameters"], beta_1: float = 0.9, beta_2: float = 0.999, eps: float = 1e-8
) -> Float[Tensor, "t parameters"]:
    """The steps of Adam along given gradients, for the rate 1: m_hat / (sqrt(v_hat) + eps), to be subtracted.

    m = beta_1 m + (1 - beta_1) g and v = beta_2 v + (1 - beta_2) g^2 start at 0; m_hat = m / (1 - beta_1^t) and
    v_hat = v / (1 - beta_2^t) correct for it.

        >>> adam_steps(torch.tensor([[-3.0], [1.0]]).double())
        tensor([[-1.0000],
                [-0.4002]], dtype=torch.float64)

    Chapter `initialisation`. Source: Kingma and Ba (2015).

    Raises:
        ValueError: without a gradient, for a beta that is not from 0 to below 1, or an eps of 0 or below.
    """
    check_floats(G=(G, "t parameters"))
    check_numbers(0, beta_1=beta_1, beta_2=beta_2, eps=eps)
    for name, beta in (("beta_1", beta_1), ("beta_2", beta_2)):
        if beta >= 1:
            raise ValueError(f"{name}: expected a number below 1, got {beta!r}")
    if eps == 0:
        raise ValueError("eps: expected a number above 0, got 0: a gradient of 0 would have no step")
    m = v = torch.zeros_like(G[0])
    steps = []
    for t, g in enumerate(G, 1):
        m = beta_1 * m + (1 - beta_1) * g
        v = beta_2 * v + (1 - beta_2) * check_range(g**2, G=G)
        m_hat, v_hat = m / (1 - beta_1**t), v / (1 - beta_2**t)
        steps.append(m_hat / (v_hat.sqrt() + eps))
    return torch.stack(steps)


# --- schedules --------------------------------------------------------------------------------------------------------


def warm_up(step: int, steps: int) -> float:
    """step / steps, and 1 from there on.

        >>> [warm_up(step, 4) for step in (1, 2, 4, 5)]
        [0.25, 0.5, 1.0, 1.0]

    Chapter `initialisation`.
    """
    check_integers(1, step=step, steps=steps)
    return min(1.0, step / steps)


def linear_decay(step: int, steps: int) -> float:
    """From 1 at the first step down by 1 / steps with each, to 0 after the last.

        >>> [linear_decay(step, 4) for step in (1, 2, 4, 5)]
        [1.0, 0.75, 0.25, 0.0]

    Chapter `initialisation`.
    """
    check_integers(1, step=step, steps=steps)
    return max(0.0, 1 - (step - 1) / steps)


def cosine_decay(step: int, steps: int) -> float:
    """Half a wave of the cosine, from 1 at the first step to 0 after the last.

        >>> [round(cosine_decay(step, 4), 3) for step in (1, 2, 4, 5)]
        [1.0, 0.854, 0.146, 0.0]

    Chapter `initialisation`.
    """
    check_integers(1, step=step, steps=steps)
    return (1 + math.cos(math.pi * min(1.0, (step - 1) / steps))) / 2


def exponential_decay(step: int, half: int) -> float:
    """From 1 at the first step, halved every `half` steps.

        >>> [exponential_decay(step, 4) for step in (1, 5, 9)]
        [1.0, 0.5, 0.25]

    Chapter `initialisation`.
    """
    check_integers(1, step=step, half=half)
    return 0.5 ** ((step - 1) / half)


def inverse_root(step: int, warmup: int) -> float:
    """Up to 1 with `warm_up`, then down like sqrt(warmup / step).

        >>> [inverse_root(step, 4) for step in (1, 4, 16)]
        [0.25, 1.0, 0.5]

    Chapter `initialisation`.
    """
    check_integers(1, step=step, warmup=warmup)
    return min(step / warmup, math.sqrt(warmup / step))


def noam(step: int, d: int, warmup: int) -> float:
    """d^(-1/2) min(step^(-1/2), step warmup^(-3/2)): no factor but the rate itself, which is `inverse_root` times its
    peak 1 / sqrt(d warmup).

        >>> noam(4, d=16, warmup=4)
        0.125

    Chapter `initialisation`. Source: Vaswani et al. (2017).
    """
    check_integers(1, step=step, d=d, warmup=warmup)
    return min(step**-0.5, step * warmup**-1.5) / math.sqrt(d)


def triangle(step: int, half: int) -> float:
    """Up from 0 at the first step to 1 after `half` steps, down again in as many, and so on.

        >>> [triangle(step, 2) for step in range(1, 7)]
        [0.0, 0.5, 1.0, 0.5, 0.0, 0.5]

    Chapter `initialisation`. Source: Smith (2017), the policy of this name.
    """
    check_integers(1, step=step, half=half)
    return 1 - abs((step - 1) % (2 * half) - half) / half
