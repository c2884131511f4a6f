"""The kinds of arguments: how a valid one is drawn, what it is in words, and how it can be bad."""

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

HALF = (torch.float16, torch.bfloat16)
EXTREMES = {  # factors, beyond which squares are no floats
    torch.float64: (1e160, 1e-160),
    torch.float32: (1e20, 1e-20),
    torch.bfloat16: (1e20, 1e-20),
    torch.float16: (3000.0,),
}


class Given(NamedTuple):
    """What a draw depends on."""

    sizes: dict[str, int]
    batch: tuple[int, ...]  # the leading axes "..."
    dtype: torch.dtype
    rng: np.random.Generator
    full: bool = True  # whether what may be None is given


class Bad(NamedTuple):
    """A value to put in the place of a valid one.

    Where it is `outside` of the domain it must be refused; else the oracle says what is right, if the shapes fit.
    """

    kind: str  # the class that outcomes are counted by
    note: str
    value: Any
    outside: bool = False


class Kind:
    """A kind of argument. `shapes` are those of its tensors, in the notation of `check_shapes`."""

    words = ""

    def draw(self, given: Given) -> Any:
        raise NotImplementedError

    def bad(self, value: Any, given: Given) -> Iterator[Bad]:
        yield from ()

    def shapes(self, name: str, value: Any) -> Iterator[tuple[str, Any, str]]:
        """(name, tensor, shape) for every tensor that the shapes of the others are bound to."""
        yield from ()


# --- tensors ----------------------------------------------------------------------------------------------------------


class Array(Kind):
    """A tensor. The sizes of one that is `free` are not bound to those of the others: the oracle knows what fits."""

    def __init__(self, shape: str, free: bool = False):
        self.shape, self.free = shape, free
        self.words = f"{type(self).__name__.lower()} ({shape.replace(' ', ', ')})"

    def size(self, given: Given) -> tuple[int, ...]:
        own = [given.sizes.get(axis.removeprefix("#"), 1) for axis in self.shape.removeprefix("...").split()]
        return (*given.batch, *own) if self.shape.startswith("...") else tuple(own)

    def shapes(self, name, value):
        if not self.free:
            yield name, value, self.shape

    def layouts(self, x: Tensor) -> Iterator[Bad]:
        """What any tensor can be: of another rank, size, order in memory, device; or no tensor."""
        if x.ndim > 0:
            yield Bad("rank", "an axis less", x[0])
        yield Bad("rank", "a number", x.flatten()[0])
        yield Bad("rank", "an axis more", x[None])
        yield Bad("rank", "three times", x.expand(3, *x.shape))
        for axis in range(x.ndim):
            yield Bad("size", f"axis {axis} longer", torch.cat([x, x.narrow(axis, 0, 1)], axis))
        yield Bad("strided", "every second in memory", torch.stack([x, x], -1)[..., 0])
        if x.ndim > 1:
            yield Bad("strided", "transposed in memory", x.mT.contiguous().mT)
        yield Bad("meta", "", x.to("meta"))
        yield Bad("layout", "sparse", x.to_sparse(), outside=True)
        if x.ndim > 0:
            with warnings.catch_warnings():  # that their interface is young
                warnings.simplefilter("ignore")
                nested = torch.nested.nested_tensor([x[0], x[0]])
            yield Bad("layout", "nested", nested, outside=True)
        yield Bad("type", "list", x.tolist(), outside=True)
        yield Bad("type", "None", None, outside=True)


class Real(Array):
    """Real numbers, normally distributed."""

    def numbers(self, given: Given) -> np.ndarray:
        return given.rng.standard_normal(self.size(given))

    def draw(self, given):
        return torch.from_numpy(np.asarray(self.numbers(given))).to(given.dtype)

    def bad(self, x, given):
        if given.dtype == torch.float64:
            yield from self.layouts(x)
            yield Bad("dtype", "integers", (4 * x).round().long())
            yield Bad("dtype", "booleans", x > 0)
            yield Bad("dtype", "complex", x.to(torch.complex128))
            yield Bad("half", "this one only", x.half())
            for kind, value in (("nan", math.nan), ("inf", math.inf), ("inf", -math.inf)):
                yield Bad(kind, str(value), with_one(x, value))
            yield Bad("nan", "the first", with_one(x, math.nan, first=True))
        for factor in EXTREMES[given.dtype]:
            yield Bad("extreme", f"{given.dtype} times {factor:g}", x * factor)


class Nonnegative(Real):
    """Real numbers of at least 0, some of them 0."""

    def numbers(self, given):
        x = super().numbers(given)
        return np.where(x > -1, np.abs(x), 0)

    def bad(self, x, given):
        yield from super().bad(x, given)
        if given.dtype == torch.float64:
            yield Bad("negative", "", -x, outside=True)


class Distribution(Nonnegative):
    """Positive numbers with sum 1 over the last axis."""

    def numbers(self, given):
        x = np.exp(Real.numbers(self, given))
        return x / x.sum(-1, keepdims=True)

    def bad(self, x, given):
        for bad in super().bad(x, given):
            yield bad._replace(outside=bad.outside or bad.kind in ("nan", "inf", "extreme", "dtype", "half"))


class Tokens(Array):
    """Whole numbers from 0, below a size."""

    def __init__(self, shape: str, below: str, free: bool = False):
        super().__init__(shape, free)
        self.below = below
        self.words = f"{self.words}, 0 to {below} - 1"

    def draw(self, given):
        high = max(1, given.sizes[self.below])
        return torch.from_numpy(given.rng.integers(high, size=self.size(given)))

    def bad(self, x, given):
        if given.dtype != torch.float64:
            return
        yield from self.layouts(x)
        yield Bad("dtype", "int32", x.int())
        yield Bad("dtype", "float", x.double() + 0.5, outside=True)
        yield Bad("dtype", "booleans", x > 0, outside=True)
        yield Bad("dtype", "complex", x.to(torch.complex128), outside=True)
        yield Bad("negative", "-1", with_one(x, -1), outside=True)
        yield Bad("negative", "-100", with_one(x, -100), outside=True)  # which torch's cross-entropy ignores
        yield Bad("range", "", with_one(x, given.sizes[self.below]), outside=True)
        yield Bad("extreme", "2^62", with_one(x, 2**62), outside=True)


class Mask(Array):
    """Booleans, True where a query may attend."""

    def draw(self, given):
        return torch.from_numpy(np.asarray(given.rng.random(self.size(given)) < 0.7))

    def bad(self, x, given):
        if given.dtype != torch.float64:
            return
        yield from self.layouts(x)
        yield Bad("dtype", "integers", x.long(), outside=True)
        yield Bad("dtype", "float", x.double(), outside=True)


def with_one(x: Tensor, value: float, first: bool = False) -> Tensor:
    """One entry, in the middle or the first, replaced."""
    x = x.clone()
    if x.numel():
        x.view(-1)[0 if first else x.numel() // 2] = value
    return x


def other_numbers(value: float, numpy: type) -> Iterator[Bad]:
    """The same number, which is not Python's: it may be refused, but must not be computed with as it is."""
    yield Bad("number", f"NumPy's {numpy.__name__}", numpy(value))
    yield Bad("number", "0-d array", np.array(value))
    yield Bad("number", "0-d tensor", torch.tensor(value))
    yield Bad("type", "True", True, outside=True)


# --- others -----------------------------------------------------------------------------------------------------------


class Count(Kind):
    """A whole number: a size by its name, or as it is given."""

    def __init__(self, value: int | str, least: int = 1):
        self.value, self.least = value, least
        self.words = f"whole number ≥ {least}"

    def draw(self, given):
        return given.sizes[self.value] if isinstance(self.value, str) else self.value

    def bad(self, value, given):
        if given.dtype != torch.float64:
            return
        yield from other_numbers(value, np.int8 if value < 128 else np.int64)
        yield Bad("range", "zero", 0, outside=self.least > 0)
        yield Bad("negative", "", -1, outside=self.least > -1)
        yield Bad("nan", "", math.nan, outside=True)
        yield Bad("type", "a half more", value + 0.5, outside=True)
        yield Bad("type", "a word", "x", outside=True)


class Number(Kind):
    """A real number, above or at least some other."""

    def __init__(self, value: float, above: float = -math.inf, least: float = -math.inf):
        self.value, self.above, self.least = value, above, least
        self.words = "number" + (f" > {above:g}" if above > -math.inf else f" ≥ {least:g}" if least > -math.inf else "")

    def draw(self, given):
        return self.value

    def bad(self, value, given):
        if given.dtype != torch.float64:
            return
        yield from other_numbers(value, np.float32)
        for kind, note, bad in (
            ("range", "zero", 0.0),
            ("negative", "", -abs(value) or -1.0),
            ("nan", "", math.nan),
            ("inf", "", math.inf),
            ("extreme", "1e160", 1e160),
            ("extreme", "1e-160", 1e-160),
        ):
            yield Bad(kind, note, bad, outside=bad < self.least or bad <= self.above)
        yield Bad("type", "a word", "x", outside=True)


class Choice(Kind):
    """One of some words."""

    def __init__(self, *values: str | None):
        self.values = values
        self.words = " or ".join(map(repr, values))

    def draw(self, given):
        return self.values[0 if given.full else -1]

    def bad(self, value, given):
        if given.dtype != torch.float64:
            return
        yield Bad("type", "misspelt", str(value).capitalize(), outside=True)
        yield Bad("type", "a number", 3, outside=True)
        for other in self.values:
            yield Bad("valid", repr(other), other)


class Flag(Kind):
    """True or False."""

    words = "True or False"

    def __init__(self, value: bool):
        self.value = value

    def draw(self, given):
        return self.value if given.full else not self.value

    def bad(self, value, given):
        if given.dtype == torch.float64:
            yield Bad("type", "a word", "no", outside=True)


class Maybe(Kind):
    """Another kind, or None."""

    def __init__(self, kind: Kind):
        self.kind = kind
        self.words = f"{kind.words}, or None"

    def draw(self, given):
        return self.kind.draw(given) if given.full else None

    def bad(self, value, given):
        for bad in self.kind.bad(value, given) if value is not None else ():
            if bad.value is not None:
                yield bad

    def shapes(self, name, value):
        if value is not None:
            yield from self.kind.shapes(name, value)


class Rng(Kind):
    """NumPy's generator."""

    words = "numpy.random.Generator"

    def draw(self, given):
        return np.random.default_rng(7)

    def bad(self, value, given):
        if given.dtype == torch.float64:
            yield Bad("type", "a number", 7, outside=True)
            yield Bad("type", "None", None, outside=True)


class Precision(Kind):
    """The dtype of the weights: no argument of the library, and so never bad."""

    words = "float64, float32 or of half the width"

    def draw(self, given):
        return given.dtype


class Other(Kind):
    """Anything else: drawn by a function, bad in the ways that are listed: class, note, function of the valid value."""

    def __init__(
        self,
        words: str,
        draw: Callable[[Given], Any],
        *bad: tuple[str, str, Callable[[Any], Any]],
        types: bool = True,  # whether another type is bad as well
    ):
        other = (("type", "None", lambda _: None), ("type", "a number", lambda _: 3)) if types else ()
        self.words, self._draw, self._bad = words, draw, (*bad, *other)

    def draw(self, given):
        return self._draw(given)

    def bad(self, value, given):
        if given.dtype != torch.float64:
            return
        for kind, note, make in self._bad:
            yield Bad(kind, note, make(value), outside=True)
