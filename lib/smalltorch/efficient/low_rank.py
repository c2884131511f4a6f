"""Low-rank attention: the best approximation of rank k, Linformer, and Latte.

Source: Eckart and Young, "The approximation of one matrix by another of lower rank" (1936); Wang et al., "Linformer"
(2020); Dolga et al., "Latte: Latent Attention for Linear Time Transformers" (2024). Chapter `low-rank`.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from smalltorch.attention import attention, softmax
from smalltorch.shapes import (
    at_least_float32,
    check_finite,
    check_floats,
    check_integers,
    check_range,
    check_type,
    computed_wide,
)


def rank_floors(A: Float[Tensor, "*batch m n"]) -> Float[Tensor, "*batch floors"]:
    """sqrt(sigma_{k+1}^2 + sigma_{k+2}^2 + ...) for k = 0, 1, ..., min(m, n): no matrix of rank k is nearer to A.

    In the Frobenius norm; in the spectral norm the floor is sigma_{k+1}. In float32 at least. Chapter `low-rank`.

        >>> rank_floors(torch.diag(torch.tensor([4.0, 3.0, 0.0])))
        tensor([5., 3., 0., 0.])

    Raises:
        ValueError: if A has an empty axis, or an entry that is not finite.
    """
    check_floats(A=(A, "... m n"))
    check_finite(A=A)
    A = at_least_float32(A)
    size = A.abs().amax((-2, -1), keepdim=True)
    size = torch.where(size == 0, 1, size)
    sigma = torch.linalg.svdvals(A / size)
    tails = sigma.square().flip(-1).cumsum(-1).flip(-1).sqrt()
    return torch.nn.functional.pad(tails, (0, 1)) * size[..., 0]


@computed_wide
def best_rank(A: Float[Tensor, "*batch m n"], k: int) -> Float[Tensor, "*batch m n"]:
    """The sum of the k largest terms sigma_i u_i v_i^T of A: at its floor in both norms. Chapter `low-rank`.

        >>> best_rank(torch.diag(torch.tensor([4.0, 3.0, 0.0])), 1)[0, 0]
        tensor(4.)

    Raises:
        ValueError: if A has an empty axis or an entry that is not finite, or k is negative.
    """
    check_floats(A=(A, "... m n"))
    check_finite(A=A)
    k = check_integers(0, k=k)
    U, sigma, V_T = torch.linalg.svd(A, full_matrices=False)
    return (U[..., :k] * sigma[..., None, :k]) @ V_T[..., :k, :]


@computed_wide
def linformer(
    Q: Float[Tensor, "*#batch query d_h"],
    K: Float[Tensor, "*#batch key d_h"],
    V: Float[Tensor, "*#batch key d_v"],
    E: Float[Tensor, "*#batch k key"],
    F: Float[Tensor, "*#batch k key"],
) -> Float[Tensor, "... query d_v"]:
    """softmax(Q (E K)^T / sqrt(d_h)) F V: keys and values are mixed down from n rows to k before they meet a query.

    There is no causal mask: each of the k rows mixes early tokens with late ones. Chapter `low-rank`. Source: Wang et
    al. (2020), equation (7).

    Raises:
        ValueError: if shapes, dtypes or devices do not fit, or what is mixed or the scores overflow.
    """
    check_floats(
        Q=(Q, "... query d_h"), K=(K, "... key d_h"), V=(V, "... key d_v"), E=(E, "... k key"), F=(F, "... k key")
    )
    return attention(Q, check_range(E @ K, E=E, K=K), check_range(F @ V, F=F, V=V))[0]


@computed_wide
def latte(
    Q: Float[Tensor, "*#batch query l"],
    K: Float[Tensor, "*#batch key l"],
    V: Float[Tensor, "*#batch key d_v"],
    causal: bool = False,
) -> Float[Tensor, "... query d_v"]:
    """sum_j p(j | t) sum_s p(s | j) v_s: a query asks l latents, each of which attends to the tokens.

    p(j | t) is the softmax of row t of Q, and p(s | j) that of column j of K over the tokens s; if `causal`, over
    s <= t only, by running sums. Chapter `low-rank`. Source: Dolga et al. (2024).

        >>> latte(torch.zeros(3, 1), torch.zeros(3, 1), torch.tensor([[4.0], [2.0], [0.0]]), causal=True).flatten()
        tensor([4., 3., 2.])

    Raises:
        ValueError: if shapes, dtypes or devices do not fit, an entry of K is not finite, or a causal layer has not as
            many queries as keys.
    """
    sizes = check_floats(Q=(Q, "... query l"), K=(K, "... key l"), V=(V, "... key d_v"))
    check_type(bool, causal=causal)
    check_finite(K=K)
    P = softmax(Q)
    if not causal:
        return P @ (softmax(K, -2).mT @ V)
    if sizes["query"] != sizes["key"]:
        raise ValueError(f"Q: expected a query for each of the {sizes['key']} keys, got {sizes['query']}")
    top = K.cummax(-2).values
    shape = torch.broadcast_shapes(Q.shape[:-2], K.shape[:-2], V.shape[:-2])
    mass, carried = K.new_zeros(*K.shape[:-2], sizes["l"]), V.new_zeros(*shape, sizes["l"], sizes["d_v"])
    outputs, before = [], top[..., 0, :]
    for t in range(sizes["key"]):
        kept, new = (before - top[..., t, :]).exp(), (K[..., t, :] - top[..., t, :]).exp()
        mass = kept * mass + new
        carried = kept[..., None] * carried + new[..., None] * V[..., t, None, :]
        outputs.append((P[..., t, None, :] / mass[..., None, :] @ carried)[..., 0, :])
        before = top[..., t, :]
    return torch.stack(outputs, -2)
