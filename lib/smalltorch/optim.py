"""Optimisers that remember less: what Adafactor, SM3, Lion and Adam-mini make of given gradients, for the rate 1.

Steps are to be subtracted. Weight decay, clipping and scales of the rate are left out; the factors are the published
ones.

Source: Shazeer and Stern, "Adafactor" (2018); Anil et al., "Memory-Efficient Adaptive Optimization" (2019), SM3-II;
Chen et al., "Symbolic Discovery of Optimization Algorithms" (2023); Zhang et al., "Adam-mini" (2025).
"""

import torch
from jaxtyping import Float
from torch import Tensor

from smalltorch.shapes import check_floats, check_range


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


def lion_steps(G: Float[Tensor, "t parameters"]) -> Float[Tensor, "t parameters"]:
    """sign(0.9 m + 0.1 g), and then m becomes 0.99 m + 0.01 g: one number for each weight. Chapter `memory`.

        >>> lion_steps(torch.tensor([[-3.0], [1.0]]).double())
        tensor([[-1.],
                [ 1.]], dtype=torch.float64)

    Source: Chen et al. (2023).

    Raises:
        ValueError: without a gradient.
    """
    check_floats(G=(G, "t parameters"))
    m = torch.zeros_like(G[0])
    steps = []
    for g in G:
        steps.append((0.9 * m + 0.1 * g).sign())
        m = 0.99 * m + 0.01 * g
    return torch.stack(steps)


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
