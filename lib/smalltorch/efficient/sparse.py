"""Sparse attention: masks of several patterns, and how many layers a message needs under each.

A mask is boolean, `mask[i, j]` is True where token i sees token j, and every token sees itself. Masks are joined by
`|`, and `& causal_mask(n)` hides what lies ahead. A kernel that computes all pairs and then hides some saves nothing.

Source: Beltagy et al., "Longformer" (2020); Zaheer et al., "Big Bird" (2020); Shirzad et al., "Exphormer" (2023).
"""

import math

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from smalltorch.shapes import anywhere, check_finite, check_floats, check_integers, check_shapes, check_type


def window_mask(n: int, w: int, gap: int = 1) -> Bool[Tensor, "n n"]:
    """Token i sees i - w gap, ..., i - gap, i, i + gap, ..., i + w gap: with a gap above 1 the window is dilated.

        >>> window_mask(5, 1, gap=2).int()
        tensor([[1, 0, 1, 0, 0],
                [0, 1, 0, 1, 0],
                [1, 0, 1, 0, 1],
                [0, 1, 0, 1, 0],
                [0, 0, 1, 0, 1]], dtype=torch.int32)

    Chapter `sparse`. Source: Beltagy et al. (2020), section 3.1, whose window counts both sides, 2 w here.

    Raises:
        ValueError: unless n and gap are at least 1, and w is at least 0.
    """
    n, gap = check_integers(1, n=n, gap=gap)
    w = check_integers(0, w=w)
    place = torch.arange(n)
    offset = place - place[:, None]
    return (offset.abs() <= w * gap) & (offset % gap == 0)


def global_mask(n: int, g: int) -> Bool[Tensor, "n n"]:
    """The first g of n tokens see all and are seen by all; the others see only these and themselves.

        >>> global_mask(4, 1).int()
        tensor([[1, 1, 1, 1],
                [1, 1, 0, 0],
                [1, 0, 1, 0],
                [1, 0, 0, 1]], dtype=torch.int32)

    Chapter `sparse`. Source: Beltagy et al. (2020), section 3.1; in graphs such tokens are virtual nodes.

    Raises:
        ValueError: unless n is at least 1, and g lies between 0 and n.
    """
    n = check_integers(1, n=n)
    g = check_integers(0, g=g)
    if g > n:
        raise ValueError(f"g: expected at most n = {n} tokens, got {g}")
    everywhere = torch.arange(n) < g
    return everywhere | everywhere[:, None] | torch.eye(n, dtype=torch.bool)


def random_mask(n: int, r: int, rng: np.random.Generator) -> Bool[Tensor, "n n"]:
    """Each token sees itself and r others, drawn for each token by itself: to be seen is not to see.

        >>> random_mask(6, 2, np.random.default_rng(0)).sum(1)
        tensor([3, 3, 3, 3, 3, 3])

    Chapter `sparse`. Source: Zaheer et al. (2020), section 2; their code draws blocks of tokens.

    Raises:
        ValueError: unless n is at least 1, and r lies between 0 and n - 1.
    """
    n = check_integers(1, n=n)
    r = check_integers(0, r=r)
    check_type(np.random.Generator, rng=rng)
    if r >= n:
        raise ValueError(f"r: expected fewer than n = {n} others, got {r}")
    mask = torch.eye(n, dtype=torch.bool)
    for i in range(n):
        j = torch.from_numpy(rng.choice(n - 1, r, replace=False))
        mask[i, j + (j >= i)] = True
    return mask


def expander_mask(n: int, degree: int, rng: np.random.Generator) -> Bool[Tensor, "n n"]:
    """Each token sees itself and `degree` others, which see it: degree / 2 random rings, no two of which share an edge.

    A ring that shares an edge with those before is drawn again, about e^(degree - 2) times for the last one.

        >>> mask = expander_mask(40, 4, np.random.default_rng(0))
        >>> bool((mask == mask.T).all()), mask.sum(1).unique()
        (True, tensor([5]))

    Chapter `sparse`. Source: Shirzad et al. (2023), whose expanders are random regular graphs.

    Raises:
        ValueError: unless degree is even, from 2 to 12, and n is at least 4 degree.
    """
    degree = check_integers(2, degree=degree)
    if degree % 2 or degree > 12:
        raise ValueError(f"degree: expected an even number from 2 to 12, got {degree}")
    n = check_integers(4 * degree, n=n)
    check_type(np.random.Generator, rng=rng)
    mask = torch.eye(n, dtype=torch.bool)
    for _ in range(degree // 2):
        ring = torch.from_numpy(rng.permutation(n))
        while mask[ring, ring.roll(1)].any():
            ring = torch.from_numpy(rng.permutation(n))
        mask[ring, ring.roll(1)] = mask[ring.roll(1), ring] = True
    return mask


def top_mask(S: Float[Tensor, "*batch query key"], k: int) -> Bool[Tensor, "*batch query key"]:
    """The k largest logits of each row, the first of equals; fewer where fewer are above -inf.

        >>> top_mask(torch.tensor([[0.0, 3.0, 1.0, 2.0], [5.0, -math.inf, -math.inf, -math.inf]]), 2).int()
        tensor([[0, 1, 0, 1],
                [1, 0, 0, 0]], dtype=torch.int32)

    Chapter `sparse`. All logits must be known first, so that it costs more than full attention.

    Raises:
        ValueError: if S is not of floating point, has no axis of keys or has NaN in it, or k is below 1.
    """
    check_floats(S=(S, "... query key"))
    k = check_integers(1, k=k)
    if anywhere(S.isnan()):
        raise ValueError("S: expected no NaN, got one")
    first = S.argsort(dim=-1, descending=True, stable=True)[..., :k]
    return torch.zeros_like(S, dtype=torch.bool).scatter(-1, first, True) & (S > -math.inf)


def hops(mask: Bool[Tensor, "n n"], source: int) -> Float[Tensor, " n"]:
    """Layers until each token has heard of the source: its distance in the graph of the mask; infinite if never.

        >>> hops(window_mask(6, 2), 0)
        tensor([0., 1., 1., 2., 2., 3.], dtype=torch.float64)

    Chapter `sparse`. Every token keeps what it has, also where the mask does not let it see itself.

    Raises:
        ValueError: unless the mask is boolean and square, and the source is one of its tokens.
    """
    check_type(Tensor, mask=mask)
    n = check_shapes(mask=(mask, "n n"))["n"]
    if mask.dtype != torch.bool:
        raise ValueError(f"mask: expected a boolean tensor, True where a token sees another, got {mask.dtype}")
    check_finite(mask=mask)  # refuses what cannot be read
    source = check_integers(0, source=source)
    if source >= n:
        raise ValueError(f"source: expected one of {n} tokens, got {source}")
    layers = torch.full((n,), math.inf, dtype=torch.float64, device=mask.device)
    heard = torch.arange(n, device=mask.device) == source
    new, layer = heard, 0
    while new.any():
        layers[new] = layer
        new = mask[:, new].any(1) & ~heard
        heard = heard | new
        layer += 1
    return layers
