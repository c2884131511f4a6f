"""What arguments must be: the shapes they need, entries that mean something, numbers in their range.

Whatever does not fit raises ValueError in one form: `name: expected X, got Y`. Entries are read by `look`, also inside
`vmap` and `grad`, so that a model checks its tokens while it is trained.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from numbers import Integral, Real
from types import UnionType
from typing import Any, get_args

import torch
from torch import Tensor
from torch.func import debug_unwrap

# --- shapes -----------------------------------------------------------------------------------------------------------


def check_shapes(**arguments: tuple[Any, str]) -> dict[str, int]:
    """Raise ValueError unless each argument is a tensor of the shape written beside it; return the sizes by name.

        >>> Q, K = torch.zeros(5, 2, 4), torch.zeros(3, 4)
        >>> check_shapes(Q=(Q, "... query d_h"), K=(K, "... key d_h"))
        {'query': 2, 'd_h': 4, 'key': 3}
        >>> check_shapes(Q=(Q, "... query d_h"), K=(K.mT, "... key d_h"))
        Traceback (most recent call last):
        ValueError: K: expected shape (..., key, d_h=4), got (4, 3)

    The notation is that of jaxtyping: a name stands for one size in all arguments; a number for itself; `#name` for
    that size or 1; a leading `...` for any further axes, which must broadcast with those of the arguments before.

    Raises:
        ValueError: names the argument, the shape expected and what was got.
    """
    sizes: dict[str, int] = {}
    batch = torch.Size()
    for name, (value, expected) in arguments.items():
        if not isinstance(value, Tensor):
            raise ValueError(
                f"{name}: expected a tensor of shape ({_text(expected, sizes)}), got {type(value).__name__}"
            )
        open_ended, axes = _parsed(expected)
        shape = value.shape
        split = len(shape) - len(axes)
        fits = split >= 0 if open_ended else split == 0
        known = dict(sizes)  # only a shape that fits as a whole may fix sizes
        if fits:
            for (axis, number, may_be_1), size in zip(axes, shape[split:], strict=True):
                wanted = known.setdefault(axis, size) if number is None else number
                fits &= size == wanted or (may_be_1 and size == 1)
        if not fits:
            raise ValueError(f"{name}: expected shape ({_text(expected, sizes)}), got {tuple(shape)}")
        leading = shape[:split]
        try:
            batch = torch.broadcast_shapes(batch, leading) if batch and leading not in (batch, ()) else batch or leading
        except RuntimeError:
            raise ValueError(
                f"{name}: expected leading axes that broadcast with {tuple(batch)}, got shape {tuple(shape)}"
            ) from None
        sizes = known
    return sizes


def check_floats(**arguments: tuple[Any, str]) -> dict[str, int]:
    """The same for floating-point tensors of one dtype on one device; no axis with a name may be empty.

        >>> check_floats(X=(torch.zeros(2, 3), "n d"), gamma=(torch.ones(3).int(), "d"))
        Traceback (most recent call last):
        ValueError: gamma: expected floating-point entries, got torch.int32

    Raises:
        ValueError: names the argument, what was expected and what was got.
    """
    sizes = check_shapes(**arguments)
    first: Tensor | None = None
    for name, (value, expected) in arguments.items():
        if not value.is_floating_point():
            raise ValueError(f"{name}: expected floating-point entries, got {value.dtype}")
        first = value if first is None else first
        if value.dtype != first.dtype or value.device != first.device:
            kind = f"{first.dtype} on {first.device}, as in {next(iter(arguments))}"
            raise ValueError(f"{name}: expected entries of {kind}, got {value.dtype} on {value.device}")
        if 0 in sizes.values() and any(sizes.get(axis) == 0 for axis, _, _ in _parsed(expected)[1]):
            raise ValueError(f"{name}: expected no empty axis in ({_text(expected, {})}), got {tuple(value.shape)}")
    return sizes


def check_tokens(**arguments: tuple[Any, str, int | None]) -> dict[str, int]:
    """The same for token numbers: int64, from 0 on and below the vocabulary (None: any), at least one in every row.

        >>> check_tokens(tokens=(torch.tensor([[3, 0, -1]]), "batch n", 20))
        Traceback (most recent call last):
        ValueError: tokens: expected tokens from 0 to 19, got -1

    Raises:
        ValueError: names the argument, what was expected and what was got.
    """
    sizes = check_shapes(**{name: (value, shape) for name, (value, shape, _) in arguments.items()})
    for name, (value, _, vocabulary) in arguments.items():
        if value.dtype != torch.int64:
            raise ValueError(f"{name}: expected integers of torch.int64, got {value.dtype}")
        if value.ndim and value.shape[-1] == 0:
            raise ValueError(f"{name}: expected at least one token per row, got shape {tuple(value.shape)}")
        _check_readable(name, value)
        if value.numel():
            least, most = (int(end) for end in look(value).aminmax())
            if least < 0 or (vocabulary is not None and most >= vocabulary):
                until = "on" if vocabulary is None else f"to {vocabulary - 1}"
                raise ValueError(f"{name}: expected tokens from 0 {until}, got {least if least < 0 else most}")
    return sizes


def check_mask(
    mask: object, scores: Sequence[int], device: torch.device, name: str = "mask", pairs: bool = False
) -> None:
    """Raise ValueError unless the mask is boolean and has the axes of the scores, each of the same size or 1.

    So it can neither enlarge what is computed, nor can a padding mask (batch, key) pass for a mask (query, key). Where
    `pairs` are allowed, the two axes (query, key) alone are a mask for all batches and heads.
    """
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        got = mask.dtype if isinstance(mask, Tensor) else type(mask).__name__
        raise ValueError(f"{name}: expected a boolean tensor, True where a query may attend, got {got}")
    if mask.device != device:
        raise ValueError(f"{name}: expected a tensor on {device}, got one on {mask.device}")
    scores = tuple(scores)
    wanted = scores[-2:] if pairs and mask.ndim == 2 else scores
    if mask.ndim != len(wanted) or any(size not in (1, whole) for size, whole in zip(mask.shape, wanted, strict=True)):
        axes = f"{scores[-2:]} or {scores}" if pairs and len(scores) > 2 else f"{scores}"
        raise ValueError(
            f"{name}: expected shape {axes}, or 1 in place of a size, got {tuple(mask.shape)}; "
            "a padding mask (batch, key) is written padding[:, None, None, :]"
        )


# --- entries ----------------------------------------------------------------------------------------------------------


def look(value: Tensor) -> Tensor:
    """The entries of a tensor, to be read and not to be computed with: inside `vmap`, those of all samples at once."""
    return debug_unwrap(value).detach()


def at_least_float32(value: Tensor) -> Tensor:
    """float16 and bfloat16 as float32, all else as it is: in half types squares overflow, and long sums lose digits."""
    check_type(Tensor, value=value)
    return value.float() if value.is_floating_point() and value.itemsize < 4 else value


def largest(value: Tensor) -> float:
    """The largest |entry|: NaN if one is NaN, 0 if there is none, or none that can be read."""
    if value.is_meta or value.numel() == 0:
        return 0.0
    low, high = look(value).aminmax()
    return max(-low.item(), high.item())


def anywhere(condition: Tensor) -> bool:
    """Whether a condition holds for an entry that can be read."""
    return not condition.is_meta and bool(look(condition).any())


def check_finite(**arguments: Tensor) -> None:
    """Raise ValueError, naming the argument, its first bad entry and the place, if an entry is NaN or infinite."""
    for name, value in arguments.items():
        check_type(Tensor, **{name: value})
        _check_readable(name, value)
        bad = ~torch.isfinite(value)
        if bad.any():
            place = tuple(bad.nonzero()[0].tolist())
            raise ValueError(f"{name}: expected finite entries, got {value[place].item()} at {place}")


def check_range(result: Tensor, /, **arguments: Tensor | float) -> Tensor:
    """The result; ValueError, naming the arguments, if it is not finite although all of them are: it overflowed."""
    if largest(result) < math.inf:
        return result
    sizes = [largest(value) if isinstance(value, Tensor) else abs(value) for value in arguments.values()]
    if all(size < math.inf for size in sizes):
        got = " and ".join(f"{size:.3g}" for size in sizes)
        raise ValueError(
            f"{', '.join(arguments)}: expected sizes whose products {result.dtype} can hold, got up to {got}"
        )
    return result


def _check_readable(name: str, value: Tensor) -> None:
    if value.is_meta:
        raise ValueError(f"{name}: expected entries that can be read, got a tensor on meta")


# --- numbers ----------------------------------------------------------------------------------------------------------


def check_integers(least: int, /, **numbers: object) -> None:
    """Raise ValueError unless each is an integer, not below the least."""
    for name, number in numbers.items():
        if not isinstance(number, Integral) or isinstance(number, bool) or number < least:
            raise ValueError(f"{name}: expected an integer of at least {least}, got {number!r}")


def check_numbers(least: float, /, **numbers: Any) -> None:
    """Raise ValueError unless each is a finite number, not below the least."""
    for name, number in numbers.items():
        real = isinstance(number, Real) and not isinstance(number, bool)
        if not real or not math.isfinite(number) or number < least:
            size = "" if least == -math.inf else f" of at least {least:g}"
            raise ValueError(f"{name}: expected a finite number{size}, got {number!r}")


def check_choice(options: Sequence[object], /, **choices: object) -> None:
    """Raise ValueError unless each is one of the options."""
    for name, choice in choices.items():
        if choice not in options:
            raise ValueError(f"{name}: expected {' or '.join(map(repr, options))}, got {choice!r}")


def check_type(kind: type | UnionType, /, **arguments: object) -> None:
    """Raise ValueError unless each is of this kind."""
    for name, argument in arguments.items():
        if not isinstance(argument, kind):
            kinds = " or ".join(k.__name__ for k in get_args(kind) or (kind,))
            raise ValueError(f"{name}: expected a {kinds}, got {type(argument).__name__}")


@lru_cache(maxsize=1024)
def _parsed(expected: str) -> tuple[bool, Any]:
    """Whether the notation begins with `...`, and of each axis its name, its number, and whether it may be 1."""
    axes = expected.removeprefix("...").split()
    return expected.startswith("..."), tuple(
        (axis.removeprefix("#"), int(axis) if axis.isdigit() else None, axis.startswith("#")) for axis in axes
    )


def _text(expected: str, sizes: dict[str, int]) -> str:
    """The notation with the sizes that earlier arguments have fixed: `... key #d_h` as `..., key, d_h=8 or 1`."""
    axes = []
    for axis in expected.split():
        name = axis.removeprefix("#")
        size = f"{name}={sizes[name]}" if name in sizes else name
        axes.append(f"{size} or 1" if axis.startswith("#") else size)
    return ", ".join(axes)
