"""Optimisers: the steps of Adam, and of Adafactor, SM3, Lion and Adam-mini, which keep fewer numbers.

All along given gradients and for the learning rate 1. Steps are to be subtracted. Weight decay, clipping and scales of
the rate are left out; the factors are the published ones.

Source: Kingma and Ba, "Adam" (2015); Shazeer and Stern, "Adafactor" (2018); Anil et al., "Memory-Efficient Adaptive
Optimization" (2019), SM3-II; Chen et al., "Symbolic Discovery of Optimization Algorithms" (2023); Zhang et al.,
"Adam-mini" (2025).
"""

import torch
from jaxtyping import Float
from torch import Tensor

from smalltorch.shapes import check_finite, check_floats, check_numbers, check_range, computed_wide


@computed_wide
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
    beta_1, beta_2, eps = check_numbers(0, beta_1=beta_1, beta_2=beta_2, eps=eps)
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


@computed_wide
def adafactor_steps(G: Float[Tensor, "t n m"]) -> Float[Tensor, "t n m"]:
    """g / sqrt(r c^T / sum r): the second moment kept as row sums r and column sums c. Chapter `memory`.

    r and c are running sums of g^2 + 1e-30 with the factor 1 - t^(-0.8): n + m numbers in the place of n m.

        >>> adafactor_steps(torch.tensor([[[1.0, 2.0], [2.0, 4.0]]]).double())
        tensor([[[1., 1.],
                 [1., 1.]]], dtype=torch.float64)

    Source: Shazeer and Stern (2018), algorithm 4 without clipping and relative rates.

    Raises:
        ValueError: without a gradient.
    """
    check_floats(G=(G, "t n m"))
    rows, columns = torch.zeros_like(G[0, :, 0]), torch.zeros_like(G[0, 0])
    steps = []
    for t, g in enumerate(G, 1):
        beta = 1 - t**-0.8
        square = check_range(g**2, G=G) + 1e-30
        rows, columns = beta * rows + (1 - beta) * square.sum(1), beta * columns + (1 - beta) * square.sum(0)
        steps.append(g / (rows / rows.sum()).sqrt()[:, None] / columns.sqrt())  # the product of both may be 0
    return torch.stack(steps)


@computed_wide
def sm3_bounds(G: Float[Tensor, "t n m"]) -> Float[Tensor, "t n m"]:
    """nu_t = min(row_i, column_j) + g^2: what SM3-II has for the sums of g^2, and never less. Chapter `memory`.

    Kept are the largest nu_t of each row and column, n + m numbers. Its steps are g / sqrt(nu_t), where 0/0 is 0.

        >>> sm3_bounds(torch.tensor([[[1.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]]]).double())[1]
        tensor([[1., 0.],
                [0., 1.]], dtype=torch.float64)

    Source: Anil et al. (2019), SM3-II with rows and columns as the cover.

    Raises:
        ValueError: without a gradient.
    """
    check_floats(G=(G, "t n m"))
    rows, columns = torch.zeros_like(G[0, :, 0]), torch.zeros_like(G[0, 0])
    bounds = []
    for g in G:
        nu = torch.minimum(rows[:, None], columns) + check_range(g**2, G=G)
        rows, columns = nu.amax(1), nu.amax(0)
        bounds.append(check_range(nu, G=G))
    return torch.stack(bounds)


@computed_wide
def lion_steps(G: Float[Tensor, "t parameters"]) -> Float[Tensor, "t parameters"]:
    """sign(0.9 m + 0.1 g), and then m becomes 0.99 m + 0.01 g: one number for each weight. Chapter `memory`.

        >>> lion_steps(torch.tensor([[-3.0], [1.0]]).double())
        tensor([[-1.],
                [ 1.]], dtype=torch.float64)

    Source: Chen et al. (2023).

    Raises:
        ValueError: without a gradient, or if one is not finite: the sign would hide it, and m keep it.
    """
    check_floats(G=(G, "t parameters"))
    check_finite(G=G)
    m = torch.zeros_like(G[0])
    steps = []
    for g in G:
        steps.append((0.9 * m + 0.1 * g).sign())
        m = 0.99 * m + 0.01 * g
    return torch.stack(steps)


@computed_wide
def adam_mini_steps(G: Float[Tensor, "t blocks parameters"]) -> Float[Tensor, "t blocks parameters"]:
    """Adam with one v for each block, the running mean of the block's mean of g^2. Chapter `memory`.

    Of `blocks` equal blocks; beta_1 = 0.9, beta_2 = 0.999 and eps = 1e-8 as Adam has them.

        >>> adam_mini_steps(torch.tensor([[[3.0, 4.0]]]).double()) * 12.5**0.5
        tensor([[[3.0000, 4.0000]]], dtype=torch.float64)

    Source: Zhang et al. (2025).

    Raises:
        ValueError: without a gradient.
    """
    check_floats(G=(G, "t blocks parameters"))
    m, v = torch.zeros_like(G[0]), torch.zeros_like(G[0, :, :1])
    steps = []
    for t, g in enumerate(G, 1):
        m = 0.9 * m + (1 - 0.9) * g
        v = 0.999 * v + (1 - 0.999) * check_range(g**2, G=G).mean(1, keepdim=True)
        steps.append(m / (1 - 0.9**t) / ((v / (1 - 0.999**t)).sqrt() + 1e-8))
    return torch.stack(steps)
