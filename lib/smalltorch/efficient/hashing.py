"""Attention by locality-sensitive hashing, as in Reformer: buckets, chunks, and keys that equal their queries.

Source: Kitaev, Kaiser and Levskaya, "Reformer: The Efficient Transformer" (2020); the hash: Andoni et al., "Practical
and Optimal LSH for Angular Distance" (2015). Chapter `low-rank`.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from smalltorch.attention import attention
from smalltorch.shapes import check_finite, check_floats, check_integers, check_mask, check_tokens, computed_wide


@computed_wide
def hash_buckets(X: Float[Tensor, "*batch n d"], R: Float[Tensor, "d half"]) -> Int[Tensor, "*batch n"]:
    """argmax [x R, -x R]: which of the directions in R, or of their opposites, a vector leans to most.

    Its length does not matter. With one column the bucket is the side of a hyperplane. Chapter `low-rank`. Source:
    Kitaev et al. (2020), section 2.

        >>> hash_buckets(torch.tensor([[3.0, 1.0], [0.1, -2.0]]), torch.eye(2))
        tensor([0, 3])

    Raises:
        ValueError: if shapes, dtypes or devices do not fit, or an entry is not finite.
    """
    check_floats(X=(X, "... n d"), R=(R, "d half"))
    check_finite(X=X, R=R)
    leaning = (X / X.abs().amax(-1, keepdim=True).clamp(min=torch.finfo(X.dtype).tiny)) @ R
    return torch.cat([leaning, -leaning], -1).argmax(-1)


def chunk_mask(buckets: Int[Tensor, "batch n"], size: int) -> Bool[Tensor, "batch n n"]:
    """Who may attend to whom when tokens, sorted by bucket and place, are cut into chunks: one's own, and one back.

    Tokens of other buckets in these chunks are not left out. Chapter `low-rank`. Source: Kitaev et al. (2020),
    equation (5).

        >>> chunk_mask(torch.tensor([[1, 0, 1, 0]]), 1).int()[0]     # sorted: tokens 1, 3, 0, 2
        tensor([[1, 0, 0, 1],
                [0, 1, 0, 0],
                [1, 0, 1, 0],
                [0, 1, 0, 1]], dtype=torch.int32)

    Raises:
        ValueError: if the buckets are no integers from 0 on, or the size is below 1.
    """
    check_tokens(buckets=(buckets, "batch n", None))
    size = check_integers(1, size=size)
    chunk = buckets.argsort(dim=-1, stable=True).argsort(-1) // size
    back = chunk[:, :, None] - chunk[:, None, :]
    return (back == 0) | (back == 1)


@computed_wide
def shared_attention(
    Q: Float[Tensor, "*batch n d_h"], V: Float[Tensor, "*batch n d_v"], mask: Bool[Tensor, "..."] | None = None
) -> tuple[Float[Tensor, "*batch n d_v"], Float[Tensor, "*batch n n"]]:
    """A V and A = softmax(Q K^T) with k_j = q_j / ||q_j||: no token reads itself, unless it may read no other.

    For i itself the score would be ||q_i||, and no other exceeds it. The scores are not divided by sqrt(d_h). Chapter
    `low-rank`. Source: Kitaev et al. (2020), section 2.

    Args:
        mask: who may attend, as for `smalltorch.attention.attention`; a token that may not even read itself gets
            zeros.

    Raises:
        ValueError: if shapes, dtypes or devices do not fit, the mask is not boolean, an entry of Q is not finite, or a
            query is 0.
    """
    n = check_floats(Q=(Q, "... n d_h"), V=(V, "... n d_v"))["n"]
    check_finite(Q=Q)
    most = Q.abs().amax(-1, keepdim=True)
    if (most == 0).any():
        raise ValueError("Q: expected queries with a direction, got one that is 0")
    K = Q / most
    K = K / K.norm(dim=-1, keepdim=True)
    itself = torch.eye(n, dtype=torch.bool, device=Q.device)
    seen = torch.ones_like(itself) if mask is None else mask
    if mask is not None:
        check_mask(mask, (*Q.shape[:-1], n), Q.device, pairs=True)
    others = seen & ~itself
    return attention(Q, K, V, torch.where(others.any(-1, keepdim=True), others, seen & itself), scale=1.0)
