"""Reproducible random inputs: NumPy's generator with a named seed, in float64."""

import zlib
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor


def generator(name: str) -> np.random.Generator:
    """A generator whose seed is its name: `generator("scaling")`."""
    return np.random.default_rng(zlib.crc32(name.encode()))


def normal(name: str, *shape: int) -> Tensor:
    """Independent standard normal entries, float64.

        >>> normal("an example", 3)
        tensor([ 0.9220, -1.8846, -0.2652], dtype=torch.float64)

    They come from `generator(name)`.
    """
    return torch.from_numpy(generator(name).standard_normal(shape))


def _sparse(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.standard_normal(shape) * (rng.random(shape) < 0.2)


def _ties(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.integers(-1, 2, shape).astype(float)


# The distributions that every check draws from: typical, large, tiny, heavy-tailed, mostly zero, with ties, one-sided.
DISTRIBUTIONS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]] = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "large": lambda rng, shape: 30 * rng.standard_normal(shape),
    "tiny": lambda rng, shape: 1e-3 * rng.standard_normal(shape),
    "heavy-tailed": lambda rng, shape: rng.standard_t(2, shape),
    "sparse": _sparse,
    "with ties": _ties,
    "positive": lambda rng, shape: rng.random(shape),
}
