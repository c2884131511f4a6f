"""Validation of arguments: shapes, finite entries, and numbers within their range.

Whatever does not fit raises ValueError in one form: `name: expected X, got Y`, and where a usual slip explains it,
`; try Z`, in which Z can be typed in place of the argument. Entries are read by `look`, also inside `vmap` and `grad`,
so that a model checks its tokens while it is trained. A check of numbers returns them as Python's own, for the
products of NumPy's wrap.

Half types: what is computed from float16 or bfloat16 is computed in float32 at least, and rounded once. Arrays come
back in the type of the arguments; a number that measures one (a norm, a rank, a floor) stays in float32.
`computed_wide` does this for a function, `at_least_float32` for a tensor. The weights of a model stay in their type:
each product with them is rounded, as in torch's own layers.
"""

import math
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from inspect import signature
from numbers import Integral, Real
from types import UnionType
from typing import Any, ParamSpec, TypeVar, get_args

import numpy as np
import torch
from torch import Tensor
from torch.func import debug_unwrap
from torch.utils._pytree import tree_leaves, tree_map

P = ParamSpec("P")
R = TypeVar("R")

# --- shapes -----------------------------------------------------------------------------------------------------------


def check_shapes(**arguments: tuple[Any, str]) -> dict[str, int]:
    """Raise ValueError unless each argument is a tensor of the shape written beside it; return the sizes by name.

        >>> Q, K = torch.zeros(5, 2, 4), torch.zeros(3, 4)
        >>> check_shapes(Q=(Q, "... query d_h"), K=(K, "... key d_h"))
        {'query': 2, 'd_h': 4, 'key': 3}
        >>> check_shapes(Q=(Q, "... query d_h"), K=(K.mT, "... key d_h"))
        Traceback (most recent call last):
        ValueError: K: expected shape (..., key, d_h=4), got (4, 3); try K.mT

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
                f"{_tensor_from(name, value)}"
            )
        _check_dense(name, value)
        shape = value.shape
        known = _sizes(shape, expected, sizes)
        together = None if known is None else _leading(shape, expected, batch)
        if known is None or together is None:
            broadcasts = f"leading axes that broadcast with {tuple(batch)}, got shape {tuple(shape)}"
            said = f"shape ({_text(expected, sizes)}), got {tuple(shape)}" if known is None else broadcasts
            raise ValueError(f"{name}: expected {said}{_rearranged(name, shape, expected, sizes, batch)}")
        sizes, batch = known, together  # only a shape that fits as a whole fixes sizes
    return sizes


def _check_dense(name: str, value: Tensor) -> None:
    if value.is_nested or value.layout != torch.strided:
        kind = "nested" if value.is_nested else value.layout
        slip = "to_padded_tensor(0.0)" if value.is_nested else "to_dense()"
        raise ValueError(f"{name}: expected a dense tensor, got one that is {kind}; try {name}.{slip}")


def check_floats(**arguments: tuple[Any, str]) -> dict[str, int]:
    """The same for floating-point tensors of one dtype on one device; no axis with a name may be empty.

        >>> check_floats(X=(torch.zeros(2, 3), "n d"), gamma=(torch.ones(3).int(), "d"))
        Traceback (most recent call last):
        ValueError: gamma: expected floating-point entries, got torch.int32; try gamma.to(torch.float32)

    Raises:
        ValueError: names the argument, what was expected and what was got.
    """
    sizes = check_shapes(**arguments)
    first: Tensor | None = None
    for name, (value, expected) in arguments.items():
        if not value.is_floating_point():
            real = "float()" if first is None else f"to({first.dtype})"
            slip = "" if value.is_complex() else f"; try {name}.{real}"
            raise ValueError(f"{name}: expected floating-point entries, got {value.dtype}{slip}")
        first = value if first is None else first
        if value.dtype != first.dtype or value.device != first.device:
            kind = f"{first.dtype} on {first.device}, as in {next(iter(arguments))}"
            slip = _moved(name, value, first.device, first.dtype)
            raise ValueError(f"{name}: expected entries of {kind}, got {value.dtype} on {value.device}{slip}")
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
            slip = "" if value.is_complex() else f"; try {name}.long()"
            raise ValueError(f"{name}: expected integers of torch.int64, got {value.dtype}{slip}")
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

    So it cannot enlarge what is computed. Where `pairs` are allowed, the two axes (query, key) alone are a mask for all
    batches and heads. Where the first axis of the scores is as long as that of the queries, two axes could as well be a
    padding mask (batch, key): then they must be causal, each query seeing itself and no later key, or are refused.
    With fewer queries than keys, as with a cache, the queries are the last tokens.
    """
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        if isinstance(mask, Tensor):
            added = f", or {name} == 0 if it is one to be added" if mask.is_floating_point() else ""
            got, slip = str(mask.dtype), f"; try {name}.bool(){added}"
        else:
            got, slip = type(mask).__name__, _tensor_from(name, mask)
        raise ValueError(f"{name}: expected a boolean tensor, True where a query may attend, got {got}{slip}")
    _check_dense(name, mask)
    if mask.device != device:
        slip = _moved(name, mask, device)
        raise ValueError(f"{name}: expected a tensor on {device}, got one on {mask.device}{slip}")
    scores = tuple(scores)
    wanted = scores[-2:] if pairs and mask.ndim == 2 else scores
    if mask.ndim != len(wanted) or any(size not in (1, whole) for size, whole in zip(mask.shape, wanted, strict=True)):
        axes = f"{scores[-2:]} or {scores}" if pairs and len(scores) > 2 else f"{scores}"
        alone = len(wanted) == 4 and mask.shape == scores[-2:]
        raise ValueError(
            f"{name}: expected shape {axes}, or 1 in place of a size, got {tuple(mask.shape)}; "
            f"a padding mask (batch, key) is written {name}[:, None, None, :]"
            f"{f', and one (query, key) for all {name}[None, None]' if alone else ''}"
        )
    either = mask.ndim < len(scores) and 1 < mask.shape[0] == scores[0] and mask.shape[1] > 1
    itself = (
        wanted[-1] - wanted[-2]
    )  # the key of the first query's own token: with a cache the queries are the last tokens
    if either and (anywhere(mask & ~mask.tril(itself)) or anywhere(~mask.diagonal(itself))):
        ones = ", ".join(["None"] * (len(scores) - 2))
        raise ValueError(
            f"{name}: expected all axes {scores}, for two could be (query, key) or (batch, key), got two; "
            f"try {name}[{ones}] for all batches and heads, or {name}[:, {ones}, :] for padding"
        )


# --- what to try instead ----------------------------------------------------------------------------------------------


def _rearranged(name: str, shape: torch.Size, expected: str, sizes: dict[str, int], batch: torch.Size) -> str:
    """What to type in place of a tensor whose shape does not fit, where its axes in another order would."""
    for typed, axes in (
        (f"{name}.mT", shape[:-2] + shape[-2:][::-1]),
        (f"{name}.transpose(-3, -2)", shape[:-3] + shape[-3:-1][::-1] + shape[-1:]),  # heads after tokens, or batch
        (f"{name}[None]", (1, *shape)),
        (f"{name}.squeeze()", (size for size in shape if size != 1)),
    ):
        other = torch.Size(axes)
        if _sizes(other, expected, sizes) is not None and _leading(other, expected, batch) is not None:
            return f"; try {typed}"
    return ""


def _tensor_from(name: str, value: object) -> str:
    """What to type in place of a value that is no tensor, where it holds one or the entries of one."""
    if isinstance(value, tuple) and value and isinstance(value[0], Tensor):
        return f"; try {name}[0]"  # such as the output of attention, which comes with its matrices
    if isinstance(value, list) and value and isinstance(value[0], Tensor):
        return f"; try torch.stack({name})"
    return f"; try torch.as_tensor({name})" if isinstance(value, list | tuple | np.ndarray) else ""


def _moved(name: str, value: Tensor, device: torch.device, dtype: torch.dtype | None = None) -> str:
    """What to type in place of a tensor of another dtype or on another device; from or to meta, nothing has entries."""
    if value.is_meta or device.type == "meta":
        return ""
    place = [] if value.device == device else [f"'{device}'"]
    return f"; try {name}.to({', '.join(place + ([] if dtype in (None, value.dtype) else [str(dtype)]))})"


# --- entries ----------------------------------------------------------------------------------------------------------


def look(value: Tensor) -> Tensor:
    """The entries of a tensor, to be read and not to be computed with: inside `vmap`, those of all samples at once."""
    return debug_unwrap(value).detach()


def at_least_float32(value: Tensor) -> Tensor:
    """float16 and bfloat16 as float32, all else as it is: in half types squares overflow, and long sums lose digits."""
    check_type(Tensor, value=value)
    return value.float() if value.is_floating_point() and value.itemsize < 4 else value


def computed_wide(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator: arguments in half types reach the function as float32, and what it returns is rounded to their type.

        >>> @computed_wide
        ... def mean_square(X):
        ...     return X.square().mean()
        >>> mean_square(torch.tensor([300.0, 0.0]).bfloat16())
        tensor(45056., dtype=torch.bfloat16)

    Arguments of several types are left as they are, for the function to refuse.

    Raises:
        ValueError: if a finite result is infinite in the type of the arguments; or as the function does.
    """
    names = list(signature(function).parameters)

    @wraps(function)
    def wide(*args: P.args, **kwargs: P.kwargs) -> R:
        given = dict(zip(names, args, strict=False)) | kwargs
        types = {x.dtype for x in tree_leaves(given) if isinstance(x, Tensor) and x.is_floating_point()}
        if len(types) != 1 or next(iter(types)).itemsize > 2:
            return function(*args, **kwargs)
        dtype = types.pop()

        def widened(x: Any) -> Any:
            return at_least_float32(x) if isinstance(x, Tensor) else x

        def rounded(x: Any) -> Any:
            if not isinstance(x, Tensor) or x.dtype != torch.float32:
                return x
            half = x.to(dtype)
            if anywhere(half.isinf() & x.isfinite()):
                floats = [name for name, x in given.items() if isinstance(x, Tensor) and x.is_floating_point()]
                raise ValueError(
                    f"{', '.join(floats)}: expected results that {dtype} can hold, got others; try torch.float32"
                )
            return half

        args, kwargs = tree_map(widened, (args, kwargs))
        return tree_map(rounded, function(*args, **kwargs))

    return wide


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
        bad = ~torch.isfinite(look(value))
        if bad.any():
            place = tuple(bad.nonzero()[0].tolist())
            raise ValueError(f"{name}: expected finite entries, got {look(value)[place].item()} at {place}")


def check_range(result: Tensor, /, **arguments: Tensor | float) -> Tensor:
    """The result; ValueError, naming the arguments, if it is not finite although all of them are: it overflowed."""
    if largest(result) < math.inf:
        return result
    sizes = [largest(value) if isinstance(value, Tensor) else abs(value) for value in arguments.values()]
    if all(size < math.inf for size in sizes):
        got = " and ".join(f"{size:.3g}" for size in sizes)
        raise ValueError(
            f"{', '.join(arguments)}: expected sizes whose products {result.dtype} can hold, got up to {got}"
            f"{'' if result.dtype == torch.float64 else '; try torch.float64'}"
        )
    return result


def _check_readable(name: str, value: Tensor) -> None:
    if value.is_meta:
        raise ValueError(f"{name}: expected entries that can be read, got a tensor on meta")


# --- numbers ----------------------------------------------------------------------------------------------------------

MOST = sys.float_info.max  # also whole numbers may be beyond it


def check_integers(least: int, /, **numbers: object) -> Any:
    """The integers as Python's own: one, or a tuple of several; ValueError unless each is one, not below the least.

        >>> check_integers(1, n=np.int8(100)) * 100
        10000

    The numbers are given by their names.
    """
    found = []
    for name, number in numbers.items():
        if not isinstance(number, Integral) or isinstance(number, bool) or number < least:
            whole = isinstance(number, float) and number.is_integer() or getattr(number, "shape", None) == ()
            slip = f"; try int({name})" if whole and number >= least else ""  # type: ignore[operator]
            raise ValueError(f"{name}: expected an integer of at least {least}, got {number!r}{slip}")
        found.append(int(number))
    return found[0] if len(found) == 1 else tuple(found)


def check_numbers(least: float, /, **numbers: Any) -> Any:
    """The numbers as Python's own: one, or a tuple; ValueError unless each is finite, not below the least."""
    found = []
    for name, number in numbers.items():
        own = math.nan
        if isinstance(number, Real) and not isinstance(number, bool):
            own = int(number) if isinstance(number, Integral) else float(number)
        if not max(least, -MOST) <= own <= MOST:
            size = "" if least == -math.inf else f" of at least {least:g}"
            slip = f"; try {name}.item()" if isinstance(number, Tensor) and number.numel() == 1 else ""
            raise ValueError(f"{name}: expected a finite number{size}, got {number!r}{slip}")
        found.append(own)
    return found[0] if len(found) == 1 else tuple(found)


def check_choice(options: Sequence[object], /, **choices: object) -> None:
    """Raise ValueError unless each is one of the options."""
    for name, choice in choices.items():
        if choice not in options:
            raise ValueError(f"{name}: expected {' or '.join(map(repr, options))}, got {choice!r}")


def check_type(kind: type | UnionType, instead: str | None = None, /, **arguments: object) -> None:
    """Raise ValueError unless each is of this kind; its message ends with what to try instead, where that is known."""
    for name, argument in arguments.items():
        if not isinstance(argument, kind):
            kinds = " or ".join(k.__name__ for k in get_args(kind) or (kind,))
            slip = f"; try {instead}" if instead else ""
            raise ValueError(f"{name}: expected a {kinds}, got {type(argument).__name__}{slip}")
        if isinstance(argument, Tensor):
            _check_dense(name, argument)


# --- the notation -----------------------------------------------------------------------------------------------------


def _sizes(shape: torch.Size, expected: str, sizes: dict[str, int]) -> dict[str, int] | None:
    """The sizes by name, with those of this shape; None where it does not fit the notation."""
    open_ended, axes = _parsed(expected)
    split = len(shape) - len(axes)
    if split < 0 or (split and not open_ended):
        return None
    known = dict(sizes)
    for (axis, number, may_be_1), size in zip(axes, shape[split:], strict=True):
        wanted = known.setdefault(axis, size) if number is None else number
        if size != wanted and not (may_be_1 and size == 1):
            return None
    return known


def _leading(shape: torch.Size, expected: str, batch: torch.Size) -> torch.Size | None:
    """The leading axes of all arguments so far, and of this shape; None where they do not broadcast."""
    leading = shape[: len(shape) - len(_parsed(expected)[1])]
    try:
        return torch.broadcast_shapes(batch, leading) if batch and leading not in (batch, ()) else batch or leading
    except RuntimeError:
        return None


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
