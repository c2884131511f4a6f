"""Attribution: Shapley values, integrated gradients, layer-wise relevance propagation and attention rollout.

Source: Shapley, "A Value for n-Person Games" (1953); Sundararajan et al., "Axiomatic Attribution for Deep Networks"
(2017); Bach et al., "On Pixel-Wise Explanations" (2015); Abnar and Zuidema, "Quantifying Attention Flow in
Transformers" (2020). Chapter `attribution`.
"""

import math
from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from smalltorch.shapes import at_least_float32, check_finite, check_floats, check_integers, check_range, computed_wide


def shapley(values: Float[Tensor, "*batch coalitions"]) -> Float[Tensor, "*batch features"]:
    """Shapley's shares: what a feature adds to those before it, on average over all orders of m features.

    phi_i = sum over S without i of (v(S + i) - v(S)) / (m C(m - 1, |S|)). There are 2^m values; that of a coalition
    stands at the number whose bit i says whether feature i is in it. Computed in float64. Chapter `attribution`.

        >>> shapley(torch.tensor([0.0, 0.0, 0.0, 1.0]))       # of use only together: each has half
        tensor([0.5000, 0.5000])

    Raises:
        ValueError: unless the number of values is a power of 2, and they are finite.
    """
    count = check_floats(values=(values, "... coalitions"))["coalitions"]
    check_finite(values=values)
    m = count.bit_length() - 1
    if count < 2 or count != 2**m:
        raise ValueError(f"values: expected 2^m of them, for m >= 1 features, got {count}")
    v, S = values.double(), torch.arange(count, device=values.device)
    members = ((S[:, None] >> torch.arange(m, device=S.device)) & 1).sum(1)
    share = torch.tensor([1 / (m * math.comb(m - 1, s)) for s in range(m)], dtype=torch.float64, device=v.device)
    shares = []
    for i in range(m):
        without = S[(S >> i) & 1 == 0]
        shares.append(((v[..., without + 2**i] - v[..., without]) * share[members[without]]).sum(-1))
    return check_range(torch.stack(shares, -1).to(values.dtype), values=values)


def integrated_gradients(
    f: Callable[[Tensor], Tensor], x: Float[Tensor, "*shape"], baseline: Float[Tensor, "*shape"], steps: int = 16
) -> Float[Tensor, "*shape"]:
    """(x - b) times the mean gradient of f on the straight way from the baseline b to x.

    The mean is taken by Gauss' rule, which is exact where the gradient is a polynomial of degree 2 steps - 1 in the
    way's length. Chapter `attribution`. Source: Sundararajan et al. (2017).

        >>> integrated_gradients(lambda z: z[:, 0] ** 2 * z[:, 1], torch.ones(2), torch.zeros(2))
        tensor([0.6667, 0.3333])

    Args:
        f: from a batch of points in the type of x, an axis before those of x, to a number for each.
        x: where the value is to be explained.
        baseline: where nothing is said to be there.
        steps: points on the way.
    """
    steps = check_integers(1, steps=steps)
    check_floats(x=(x, " ".join(f"axis_{k}" for k in range(x.ndim)) if isinstance(x, Tensor) else "n"))
    check_floats(x=(x, " ".join(map(str, x.shape))), baseline=(baseline, " ".join(map(str, x.shape))))
    check_finite(x=x, baseline=baseline)
    end, start = at_least_float32(x.detach()), at_least_float32(baseline.detach())
    nodes, weights = (torch.from_numpy(part).to(end) / 2 for part in np.polynomial.legendre.leggauss(steps))
    nodes, weights = (part.view(-1, *[1] * x.ndim) for part in (nodes + 0.5, weights))
    way = end - start
    points = (start + nodes * way).to(x.dtype).requires_grad_()
    with torch.enable_grad():
        (slopes,) = torch.autograd.grad(f(points).sum(), points)
    return check_range((way * (weights * slopes).sum(0)).to(x.dtype), x=x, baseline=baseline)


def relevance(
    x: Float[Tensor, "*batch d"], W: Float[Tensor, "d m"], R: Float[Tensor, "*batch m"]
) -> Float[Tensor, "*batch d"]:
    """R_i = sum_j x_i W_ij R_j / z_j with z = x W: each output hands its relevance back in the shares that made it.

    The plain rule of layer-wise relevance propagation, LRP-0. Computed in float64. Chapter `attribution`.
    Source: Bach et al. (2015).

        >>> relevance(torch.tensor([1.0, 3.0]), torch.ones(2, 1), torch.tensor([8.0]))
        tensor([2., 6.])

    Raises:
        ValueError: if some z_j is 0; there is nothing then to share by.
    """
    check_floats(W=(W, "d m"), x=(x, "... d"))
    check_floats(W=(W, "d m"), x=(x, "... d"), R=(R, " ".join(map(str, (*x.shape[:-1], "m")))))
    check_finite(x=x, W=W, R=R)
    wide = x.double()
    z = wide @ W.double()
    if (z == 0).any():
        raise ValueError("x, W: expected sums x W that are not 0, got one")
    return check_range((wide * ((R.double() / z) @ W.double().mT)).to(x.dtype), x=x, W=W, R=R)


@computed_wide
def rollout(A: Float[Tensor, "*batch layer n n"]) -> Float[Tensor, "*batch n n"]:
    """The product of (A + I) / 2 over the layers, the last to the left: attention, with a skip of equal weight.

    Chapter `attribution`. Source: Abnar and Zuidema (2020).

        >>> rollout(torch.tensor([[[1.0, 0.0], [1.0, 0.0]]]))
        tensor([[1.0000, 0.0000],
                [0.5000, 0.5000]])

    Raises:
        ValueError: for an entry that is not finite.
    """
    n = check_floats(A=(A, "... layer n n"))["n"]
    check_finite(A=A)
    eye = torch.eye(n, dtype=A.dtype, device=A.device)
    product = eye.expand(*A.shape[:-3], n, n)
    for layer in A.unbind(-3):
        product = (layer + eye) / 2 @ product
    return check_range(product, A=A)
