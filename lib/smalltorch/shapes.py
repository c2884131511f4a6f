"""What arguments must be: the shapes they need, and finite where a result would otherwise mean nothing."""

import torch
from torch import Tensor


def check_shapes(**arguments: tuple[object, str]) -> dict[str, int]:
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
        open_ended = expected.startswith("...")
        axes = expected.removeprefix("...").split()
        split = value.ndim - len(axes)
        fits = split >= 0 if open_ended else split == 0
        known = dict(sizes)  # only a shape that fits as a whole may fix sizes
        if fits:
            for axis, size in zip(axes, value.shape[split:], strict=True):
                wanted = int(axis) if axis.isdigit() else known.setdefault(axis.removeprefix("#"), size)
                fits &= size == wanted or (axis.startswith("#") and size == 1)
        if not fits:
            raise ValueError(f"{name}: expected shape ({_text(expected, sizes)}), got {tuple(value.shape)}")
        try:
            batch = torch.broadcast_shapes(batch, value.shape[:split])
        except RuntimeError:
            raise ValueError(
                f"{name}: expected leading axes that broadcast with {tuple(batch)}, got shape {tuple(value.shape)}"
            ) from None
        sizes = known
    return sizes


def check_finite(**arguments: Tensor) -> None:
    """Raise ValueError, naming the argument, its first bad entry and the place, if an entry is NaN or infinite."""
    for name, value in arguments.items():
        bad = ~torch.isfinite(value)
        if bad.any():
            place = tuple(bad.nonzero()[0].tolist())
            raise ValueError(f"{name}: expected finite entries, got {value[place].item()} at {place}")


def _text(expected: str, sizes: dict[str, int]) -> str:
    """The notation with the sizes that earlier arguments have fixed: `... key #d_h` as `..., key, d_h=8 or 1`."""
    axes = []
    for axis in expected.split():
        name = axis.removeprefix("#")
        size = f"{name}={sizes[name]}" if name in sizes else name
        axes.append(f"{size} or 1" if axis.startswith("#") else size)
    return ", ".join(axes)
