r"""Estimate rounding errors by Monte Carlo arithmetic: evaluate again with every operation rounded at random.

    >>> x = torch.tensor([[3.0, 4.0]], dtype=torch.float64)
    >>> bool(noise(lambda x: x.norm(dim=-1) - 5, x) > 1e-16)
    True

A number that is the difference of larger ones knows nothing of their size: 2e-16 may be a violation, or what rounding
left of 0. `noise` estimates it: it computes the function some times more, each time with the inputs and the result of
every operation moved by up to one unit in the last place, and takes the largest change that this makes.

It sees what PyTorch computes. Numbers that Python computes, and rounding inside one operation (a singular value), enter
only through the rounding of inputs and results; hence `MARGIN`.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

UNIT = 2.0**-52
RUNS = 8
SHAPED = ("zeros_like", "ones_like", "full_like", "empty_like", "new_")  # what looks at the shape of its input only
MARGIN = 100  # how many times larger than the noise a difference must be, that rounding shall not explain it


def noise(side: Callable[[Any], Tensor], inputs: Any, enough: Tensor | float = torch.inf) -> Tensor:
    """The largest change of side(inputs), entry by entry, over `RUNS` evaluations with random rounding.

    It may only grow from run to run; so the runs end early where it is `enough` everywhere.
    """
    rng = torch.Generator().manual_seed(0)
    exact = side(inputs).detach()
    change = torch.zeros_like(exact)
    for _ in range(RUNS):
        nearby = _moved(inputs, rng)
        with _RandomRounding(rng):
            found = side(nearby).detach()
        change = torch.maximum(change, (found - exact).abs().nan_to_num(torch.inf))
        if (change >= enough).all():
            break
    return change


def largest_on_the_way(side: Callable[[Any], Tensor], inputs: Any) -> float:
    """The largest finite number, in size, among the inputs of side(inputs) and what is computed on the way."""
    sizes = _Sizes()
    for x in inputs if isinstance(inputs, tuple) else (inputs,):
        sizes.see(x)
    with sizes:
        side(inputs)
    return sizes.largest


def refuse_lower_precision(side: Callable[[Any], Any], inputs: Any, what: str) -> bool:
    """Raise a ValueError if side(inputs) is computed in less than float64 somewhere on the way.

    What is created in float32 may pass where float32 holds it exactly, such as `torch.eye(4).double()`.

    Returns whether anything was computed from the entries of the inputs.
    """
    watch = _Watch(what, inputs)
    try:
        with watch:
            found = side(inputs)
    except NotImplementedError as error:
        raise ValueError(f"{what} must be computed with dense tensors: {error}") from error
    return watch.looked or (isinstance(found, Tensor) and watch.reads(found))


def _moved(inputs: Any, rng: torch.Generator) -> Any:
    if isinstance(inputs, tuple):
        return tuple(_moved(x, rng) for x in inputs)
    return _rounded(inputs.detach(), rng)


def _rounded(x: Tensor, rng: torch.Generator) -> Tensor:
    if x.dtype != torch.float64:  # whole numbers; or such as torch.eye(4), which single precision holds exactly
        return x
    return x * (1 + UNIT * (2 * torch.rand(x.shape, generator=rng, dtype=torch.float64) - 1))


class Mode(TorchDispatchMode):
    """Sees every operation that PyTorch carries out, also within gradients and vmap."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else its first use imports the compiler, which takes seconds and has no part in this


class _RandomRounding(Mode):
    """Each new tensor of floats is moved by up to one unit in the last place; not a view, nor what is overwritten."""

    def __init__(self, rng: torch.Generator) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.rng = rng

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        new = [result.alias_info is None for result in func._schema.returns]
        if isinstance(found, Tensor):
            return _rounded(found, self.rng) if new[0] else found
        if isinstance(found, tuple):
            return tuple(
                _rounded(x, self.rng) if fresh and isinstance(x, Tensor) else x
                for x, fresh in zip(found, new, strict=True)
            )
        return found


class _Sizes(Mode):
    """Remembers the largest finite number."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.largest = 0.0

    def see(self, x: Any) -> None:
        if isinstance(x, Tensor) and x.is_floating_point() and x.numel():
            self.largest = max(self.largest, float(x.abs().nan_to_num(0, 0, 0).max()))

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        for x in found if isinstance(found, tuple | list) else [found]:
            self.see(x)
        return found


class _Watch(Mode):
    def __init__(self, what: str, inputs: Any) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.what, self.looked = what, False
        self.inputs = [x.untyped_storage()._cdata for x in (inputs if isinstance(inputs, tuple) else (inputs,))]

    def reads(self, x: Tensor) -> bool:
        """Whether x is an input, or part of one."""
        return x.untyped_storage()._cdata in self.inputs

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        if not func.__name__.startswith(SHAPED) and any(r.alias_info is None for r in func._schema.returns):
            parts = [part for a in args for part in (a if isinstance(a, list | tuple) else (a,))]
            self.looked |= any(isinstance(part, Tensor) and self.reads(part) for part in parts)
        for x in found if isinstance(found, tuple | list) else [found]:
            if isinstance(x, Tensor) and x.is_floating_point() and x.dtype != torch.float64 and x.numel():
                lowered = any(isinstance(a, Tensor) and a.dtype == torch.float64 for a in args)
                if lowered or not bool((8 * x.nan_to_num(0, 0, 0) % 1 == 0).all()):
                    raise ValueError(
                        f"{self.what} must be computed in float64, got {str(x.dtype).removeprefix('torch.')} "
                        f"from {func.__name__}"
                    )
        return found
