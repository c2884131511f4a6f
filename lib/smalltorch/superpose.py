"""Superposition: more features than dimensions, bounds on their interference, codes, and sparse autoencoders.

Source: Welch, "Lower bounds on the maximum cross correlation of signals" (1974); Cunningham et al., "Sparse
Autoencoders Find Highly Interpretable Features in Language Models" (2023). Chapter `superposition`.
"""

import itertools

import torch
from jaxtyping import Float
from torch import Tensor, nn

from smalltorch.shapes import check_finite, check_floats, check_integers, check_range


def welch_bound(m: int, d: int) -> float:
    """sqrt((m - d) / (d (m - 1))): among m unit vectors of d entries, some two have a product at least this large.

    Chapter `superposition`. Source: Welch (1974).

        >>> welch_bound(3, 2)       # three directions of a plane, 120 degrees apart
        0.5

    Raises:
        ValueError: unless 1 <= d <= m and m >= 2.
    """
    m = check_integers(2, m=m)
    d = check_integers(1, d=d)
    if d > m:
        raise ValueError(f"d: expected at most m, {m}, got {d}")
    return ((m - d) / (d * (m - 1))) ** 0.5


def coherence(W: Float[Tensor, "*batch m d"]) -> Float[Tensor, "*batch"]:
    """The largest |cos| between two of the m rows: what their interference is at worst. Computed in float64.

    Chapter `superposition`.

        >>> coherence(torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 4.0]]))
        tensor(0.8000)

    Raises:
        ValueError: for fewer than two rows, a row of zeros, or an entry that is not finite.
    """
    m = check_floats(W=(W, "... m d"))["m"]
    check_finite(W=W)
    rows = W.double()
    largest = rows.abs().amax(-1, keepdim=True)
    if m < 2 or (largest == 0).any():
        raise ValueError("W: expected two rows at least, and none of zeros, got other ones")
    rows = rows / largest
    rows = rows / rows.norm(dim=-1, keepdim=True)
    cosines = (rows @ rows.mT).abs()
    return cosines.masked_fill(torch.eye(m, dtype=torch.bool, device=W.device), 0).amax((-2, -1)).to(W.dtype)


def polynomial_code(p: int, k: int) -> Float[Tensor, "features p_squared"]:
    """p^k unit vectors of p^2 entries, of which no two have a product above (k - 1) / p.

    One vector for each polynomial with k coefficients modulo the prime p: 1 / sqrt(p) at the p points of its graph.
    It is a Reed-Solomon code, written out. Chapter `superposition`.

        >>> polynomial_code(2, 2) * 2**0.5       # the lines 0, x, 1 and 1 + x
        tensor([[1., 0., 1., 0.],
                [1., 0., 0., 1.],
                [0., 1., 0., 1.],
                [0., 1., 1., 0.]], dtype=torch.float64)

    Raises:
        ValueError: unless p is a prime and 1 <= k <= p.
    """
    p = check_integers(2, p=p)
    k = check_integers(1, k=k)
    if any(p % factor == 0 for factor in range(2, int(p**0.5) + 1)):
        raise ValueError(f"p: expected a prime, got {p}")
    if k > p:
        raise ValueError(f"k: expected at most p, {p}, got {k}")
    coefficients = torch.tensor(list(itertools.product(range(p), repeat=k)))
    x = torch.arange(p)
    values = torch.zeros(p**k, p, dtype=torch.int64)
    for power in reversed(range(k)):
        values = (values * x + coefficients[:, power : power + 1]) % p
    return torch.nn.functional.one_hot(values, p).double().flatten(1) / p**0.5


def winners(X: Float[Tensor, "*batch units"], k: int) -> Float[Tensor, "*batch units"]:
    """The k largest of each row, and those equal to the k-th; 0 in place of the others. Chapter `superposition`.

        >>> winners(torch.tensor([0.3, -1.0, 2.0, 0.7]), 2)
        tensor([0.0000, 0.0000, 2.0000, 0.7000])

    Raises:
        ValueError: unless 1 <= k <= units.
    """
    units = check_floats(X=(X, "... units"))["units"]
    k = check_integers(1, k=k)
    if k > units:
        raise ValueError(f"k: expected at most the {units} units, got {k}")
    return torch.where(X >= X.topk(k, -1).values[..., -1:], X, 0)


class SparseAutoencoder(nn.Module):
    """z = relu((x - b) W_E + c), and b + z W_D: a sum of few rows of the dictionary W_D, if most of z is 0.

    Returned are the sum and the parts z_j |row j of W_D|, whose total is what training keeps small: so it gains nothing
    by long rows and small z. Chapter `superposition`. Source: Cunningham et al. (2023) for the encoder and the penalty.

        >>> x, parts = SparseAutoencoder(d=3, m=5)(torch.ones(2, 3))
        >>> x.shape, parts.shape
        (torch.Size([2, 3]), torch.Size([2, 5]))

    Args:
        d: entries of a state.
        m: parts that the dictionary knows.
    """

    def __init__(self, d: int, m: int):
        super().__init__()
        d, m = check_integers(1, d=d, m=m)
        self.W_E, self.W_D = nn.Parameter(torch.zeros(d, m)), nn.Parameter(torch.zeros(m, d))
        self.b, self.c = nn.Parameter(torch.zeros(d)), nn.Parameter(torch.zeros(m))

    def forward(self, x: Float[Tensor, "*batch d"]) -> tuple[Float[Tensor, "*batch d"], Float[Tensor, "*batch m"]]:
        check_floats(W_E=(self.W_E, "d m"), x=(x, "... d"))
        z = torch.relu((x - self.b) @ self.W_E + self.c)
        return check_range(self.b + z @ self.W_D, x=x), z * self.W_D.norm(dim=-1)
