r"""Ball arithmetic: a bound on what rounding has done to a number, operation by operation, while PyTorch computes it.

    >>> x = torch.tensor([[3.0, 4.0]], dtype=torch.float64)
    >>> enclosed(lambda x: x.norm(dim=-1) - 5, x).radius < 1e-13
    tensor([True])

Each number is a ball: what float64 gave, and a radius within which the exact result lies. Every operation has its rule,
from what it does to errors of its inputs (|ab| moves by |a|r_b + |b|r_a + r_a r_b) and from what its own rounding adds.
What comes from outside is a ball as well: an input within 8 units in the last place of its largest entry, since a
domain has rounded it; a constant within one unit, unless it is short in binary, such as 1 or 0.25. So what is true of
the ball is true of the exact inputs and constants that these stand for.

The rules trust PyTorch in this: its elementary functions err by 4 units at most, its sums and products of matrices are
sums and products in some order, and LAPACK's singular values and eigenvalues err by 10n units of the largest.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from smalltorch.engine.rounding import UNIT, Mode

TINY = 1e-300  # covers underflow
AROUND = 8  # units in the last place, of the largest entry, within which an input is known
NUDGE = 1 + 2**-10  # by which a number that Python reads is moved, to see whether the result hangs on it


class Unknown(ValueError):
    """No enclosure, for want of a rule for an operation."""


class Astray(Unknown):
    """No enclosure, and no telling: rounding decides a comparison, or a number has left PyTorch."""


class Ball(NamedTuple):
    """Numbers, and the radii within which the exact ones lie."""

    centre: Tensor
    radius: Tensor


def enclosed(side: Callable[[Any], Tensor], inputs: Any) -> Ball:
    """side(inputs) as a ball.

    Numbers that Python computes by itself, such as 2**0.5, are constants here.

    Raises:
        Unknown: if there is none.
    """
    found, leaks = _once(side, inputs, 1.0)
    if leaks and not torch.equal(_once(side, inputs, NUDGE)[0].centre, found.centre):
        raise Astray("the result hangs on a number that Python has read")
    return found


def _once(side: Callable[[Any], Tensor], inputs: Any, nudge: float) -> tuple[Ball, int]:
    balls = _Balls(nudge)
    for x in inputs if isinstance(inputs, tuple) else (inputs,):
        if x.is_floating_point() and x.numel():
            balls.store(x, torch.full_like(x, AROUND * UNIT * float(x.abs().max())))
    with _Within(), balls:
        centre = side(inputs)
    return Ball(centre.detach(), balls.radius(centre.detach())), balls.leaks


class _Within(TorchFunctionMode):
    """Numbers that leave PyTorch for NumPy, or for lists, leave their radii behind."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (Tensor.numpy, Tensor.tolist, Tensor.__array__):
            raise Astray(f"{func.__name__} leaves PyTorch, and rounding cannot be followed")
        return func(*args, **(kwargs or {}))


class _Balls(Mode):
    """Keeps for every storage the radii of what it holds; so a view has those of its base."""

    def __init__(self, nudge: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.nudge, self.leaks = nudge, 0
        self.radii: dict[int, Tensor] = {}
        self.kept: list[Any] = []  # storages, lest another one takes the place of one that is gone

    def radius(self, x: Any) -> Tensor:
        """The radii of a tensor, or of a constant."""
        if not isinstance(x, Tensor):
            return _of_constant(torch.tensor(float(x), dtype=torch.float64))
        if not x.is_floating_point():
            return torch.zeros(x.shape, dtype=torch.float64)
        found = self.radii.get(x.untyped_storage()._cdata)
        return _of_constant(x) if found is None else found.as_strided(x.size(), x.stride(), x.storage_offset())

    def store(self, x: Tensor, radius: Tensor) -> None:
        """The radii of x from now on."""
        storage = x.untyped_storage()
        if storage._cdata not in self.radii:
            whole = torch.empty(0, dtype=x.dtype).set_(storage)
            self.radii[storage._cdata] = _of_constant(whole)
            self.kept.append(storage)
        self.radius(x).copy_(radius.nan_to_num(torch.inf, torch.inf))

    def ball(self, x: Any) -> Ball:
        """A tensor, or a constant, with its radii."""
        return Ball(x if isinstance(x, Tensor) else torch.tensor(float(x), dtype=torch.float64), self.radius(x))

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name, returns = func._schema.name.removeprefix("aten::"), func._schema.returns
        tensors = [x for x in _flat((args, kwargs)) if isinstance(x, Tensor)]
        if any(x.is_complex() for x in tensors):
            raise Unknown("complex numbers")
        floats = any(x.is_floating_point() for x in tensors)
        if not floats or (returns and all(r.alias_info is not None and not r.alias_info.is_write for r in returns)):
            return func(*args, **kwargs)  # neither made of floats nor anything but a view of them
        if name == "_local_scalar_dense":
            self.leaks += 1
            return func(*args) * self.nudge
        if name in COMPARED:
            self._decide(args)
            return func(*args, **kwargs)
        if name in FREE:
            return func(*args, **kwargs)
        if func._schema.is_mutable:
            return self._written(func, name, args, kwargs)
        if name not in KNOWN:
            raise Unknown(f"no rule for {name}")
        found = func(*args, **kwargs)
        if name in ("max", "min") and isinstance(found, tuple):
            raise Unknown("no rule for the place of the largest")
        radii = self._radii(func, name, found, args, kwargs)
        for x, radius in zip(found, radii, strict=False) if isinstance(found, tuple) else [(found, radii)]:
            self.store(x, radius)
        return found

    def _written(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        """An operation that writes into its first argument."""
        if name[:-1] not in KNOWN or "out" in kwargs or not args[0].is_floating_point():
            raise Unknown(f"no rule for {name}")
        before = args[0].clone()
        self.store(before, self.radius(args[0]))
        plain = getattr(getattr(torch.ops.aten, name[:-1]), func._overloadname)
        after = plain(before, *args[1:], **kwargs)
        radius = self._radii(plain, name[:-1], after, (before, *args[1:]), kwargs)
        func(*args, **kwargs)
        self.store(args[0], radius.expand(args[0].shape))
        return args[0]

    def _radii(self, func: Any, name: str, found: Any, args: Any, kwargs: Any) -> Any:
        if any(x.dtype != torch.float64 for x in (found if isinstance(found, tuple) else (found,))):
            raise Astray(f"{name} gives other numbers than float64")
        if name in FILLED:
            return func(self.radius(args[0]), *args[1:-1], float(self.radius(args[-1])), **kwargs)
        if name in MOVED:
            return func(*self._moved(args), **kwargs)
        if name in RISING:
            x, r = self.ball(args[0])
            above, below = func(x + r, *args[1:], **kwargs), func(x - r, *args[1:], **kwargs)
            change = torch.maximum((above - found).abs(), (found - below).abs())
            return change + 4 * UNIT * torch.maximum(above.abs(), below.abs()) + TINY * (found != 0)
        try:
            return RULES[name](self, found, *args, **kwargs)
        except TypeError:
            raise Unknown(f"no rule for {name} with these arguments") from None

    def _moved(self, args: Any) -> list[Any]:
        """The arguments of an operation that moves its entries about: for floats their radii."""
        return [
            self._moved(x)
            if isinstance(x, list | tuple)
            else self.radius(x)
            if isinstance(x, Tensor) and x.is_floating_point()
            else x
            for x in args
        ]

    def _decide(self, args: Any) -> None:
        """Raise if rounding may turn a comparison."""
        (a, r), (b, s) = map(self.ball, args[:2])
        if not bool((((a - b).abs() > r + s) | (r + s == 0) | (a.isinf() != b.isinf())).all()):
            raise Astray("rounding decides a comparison")


def _of_constant(x: Tensor) -> Tensor:
    """One unit in the last place, where a constant has more than 20 binary digits after the point."""
    unit = max(UNIT, torch.finfo(x.dtype).eps)
    exact = x.double()
    return torch.where((exact * 2**20 % 1 == 0) | exact.isinf(), 0, unit * exact.abs())


def _flat(x: Any) -> list[Any]:
    if isinstance(x, dict):
        return _flat(list(x.values()))
    return [leaf for part in x for leaf in _flat(part)] if isinstance(x, list | tuple) else [x]


# -- rules: from what came out, and the arguments, to the radii --------------------------------------------------------


def _settled(centre: Tensor, radius: Tensor, *of: Tensor) -> Ball:
    """With what one rounding adds. Infinity is as it should be, where it comes from what is known."""
    known = torch.stack(torch.broadcast_tensors(*[r.isfinite() for r in of])).all(0)
    return Ball(centre, torch.where(centre.isinf() & known, 0, radius + UNIT * centre.abs()).nan_to_num(torch.inf))


def _add(a: Ball, b: Ball) -> Ball:
    return _settled(a.centre + b.centre, a.radius + b.radius, a.radius, b.radius)


def _negative(a: Ball) -> Ball:
    return Ball(-a.centre, a.radius)


def _times(a: Ball, b: Ball) -> Ball:
    moved = a.centre.abs() * b.radius + b.centre.abs() * a.radius + a.radius * b.radius
    underflow = TINY * ((a.centre != 0) & (b.centre != 0))
    return _settled(a.centre * b.centre, moved + underflow, a.radius, b.radius)


def _over(a: Ball, b: Ball) -> Ball:
    centre, away = a.centre / b.centre, b.centre.abs() - b.radius
    radius = (a.radius + centre.abs() * b.radius) / away + UNIT * centre.abs() + TINY * (a.centre != 0)
    return Ball(centre, radius.where(away > 0, torch.inf))


def _summed(a: Ball, dim: Any, keepdim: bool = False) -> Ball:
    dims = tuple(range(a.centre.ndim)) if dim is None or dim == [] else dim
    centre = a.centre.sum(dims, keepdim)
    terms = a.centre.numel() / max(centre.numel(), 1)
    size = a.centre.abs().nan_to_num(torch.inf)
    return Ball(centre, a.radius.sum(dims, keepdim) + terms * UNIT * size.sum(dims, keepdim))


def _mean(a: Ball, dim: Any, keepdim: bool = False) -> Ball:
    total = _summed(a, dim, keepdim)
    return _over(total, _exact(a.centre.numel() / max(total.centre.numel(), 1)))


def _exact(x: float) -> Ball:
    return Ball(torch.tensor(x, dtype=torch.float64), torch.tensor(0.0, dtype=torch.float64))


def _variance(a: Ball, dim: Any, correction: float, keepdim: bool) -> Ball:
    deviation = _add(a, _negative(_mean(a, dim, True)))
    total = _summed(_times(deviation, deviation), dim, keepdim)
    return _over(total, _exact(a.centre.numel() / max(total.centre.numel(), 1) - correction))


def _root(a: Ball) -> Ball:
    centre, above = a.centre.sqrt(), (a.centre + a.radius).sqrt()
    below = (a.centre - a.radius).clamp(min=0).sqrt()
    return Ball(centre, torch.maximum(above - centre, centre - below) + 4 * UNIT * above)


def _product(a: Ball, b: Ball) -> Tensor:
    """The radii of a matrix product, its terms in any order."""
    size, other = a.centre.abs(), b.centre.abs()
    terms = a.centre.shape[-1] + 2
    return size @ b.radius + a.radius @ (other + b.radius) + terms * UNIT * (size @ other) + TINY


def _about(found: Tensor, ball: Ball) -> Tensor:
    """The radii about what PyTorch found, given a ball that was computed in another way."""
    return (found - ball.centre).abs() + ball.radius


def _power(balls: _Balls, found: Tensor, x: Tensor, exponent: float) -> Tensor:
    if isinstance(exponent, Tensor):
        raise Unknown("a power whose exponent varies")
    size, r = x.abs(), balls.radius(x)
    bends = exponent == int(exponent) and exponent >= 0  # then 0 may lie within
    above, below = (size + r) ** exponent, (size - r).clamp(min=0) ** exponent
    change = torch.maximum((above - found.abs()).abs(), (found.abs() - below).abs())
    change = torch.where(r >= size, above + found.abs(), change) if bends else change.where(r < size, torch.inf)
    change = change.where((r > 0) | (size > 0), 0)  # 0 is 0
    return change + 4 * UNIT * torch.maximum(above, below) + TINY * (found != 0)


def _even(balls: _Balls, found: Tensor, x: Tensor) -> Tensor:
    """cosh, which rises with |x|."""
    above, below = torch.cosh(x.abs() + balls.radius(x)), torch.cosh((x.abs() - balls.radius(x)).clamp(min=0))
    return torch.maximum(above - found, found - below).clamp(min=0) + 4 * UNIT * above


def _softmax(balls: _Balls, found: Tensor, x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    r = balls.radius(x).amax(dim, keepdim=True)
    return found * (torch.expm1(2 * r) + (x.shape[dim] + 10) * UNIT) + TINY


def _log_softmax(balls: _Balls, found: Tensor, x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    r = balls.radius(x)
    size = x.abs().amax(dim, keepdim=True) + found.abs() + 1
    return r + r.amax(dim, keepdim=True) + (x.shape[dim] + 10) * UNIT * size


def _log_sum_exp(balls: _Balls, found: Tensor, x: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    terms = x.numel() / max(found.numel(), 1) + 10
    return balls.radius(x).amax(dim, keepdim) + terms * UNIT * (found.abs() + 1)


def _singular(balls: _Balls, found: Any, A: Tensor, *options: Any, **more: Any) -> list[Tensor]:
    """Weyl: no singular value moves by more than the matrix does. The vectors are not enclosed."""
    moved = balls.radius(A).square().sum((-2, -1)).sqrt()[..., None]
    moved = moved + 10 * max(A.shape[-2:]) * UNIT * A.square().sum((-2, -1)).sqrt()[..., None]
    values = max(range(len(found)), key=lambda k: (found[k].ndim < A.ndim, found[k].numel()))
    return [moved.expand_as(x) if k == values else torch.full_like(x, torch.inf) for k, x in enumerate(found)]


def _softmax_backward(balls: _Balls, found: Tensor, g: Tensor, p: Tensor, dim: int, dtype: Any) -> Tensor:
    slope, weight = balls.ball(g), balls.ball(p)
    mean = _summed(_times(slope, weight), dim, True)
    return _about(found, _times(weight, _add(slope, _negative(mean))))


def _where_above(balls: _Balls, found: Tensor, g: Tensor, x: Tensor, threshold: float) -> Tensor:
    balls._decide((x, threshold))
    return balls.radius(g).where(x > threshold, 0)


def _sign(balls: _Balls, found: Tensor, x: Tensor) -> Tensor:
    balls._decide((x, 0))
    return torch.zeros_like(found)


def _by(rule: Callable[..., Ball]) -> Callable[..., Tensor]:
    """The rule of an operation on two balls; `alpha` is the factor of the second."""

    def radii(balls: _Balls, found: Tensor, a: Any, b: Any, alpha: float = 1) -> Tensor:
        second = balls.ball(b)
        return rule(balls.ball(a), second if alpha == 1 else _times(second, balls.ball(alpha))).radius

    return radii


def _larger(balls: _Balls, found: Tensor, a: Any, b: Any) -> Tensor:
    return torch.maximum(*torch.broadcast_tensors(balls.radius(a), balls.radius(b)))


def _largest(balls: _Balls, found: Tensor, x: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
    return balls.radius(x).amax(dim, keepdim)


def _kept(balls: _Balls, found: Tensor, x: Tensor, *ends: Any, **more: Any) -> Tensor:
    """A function that brings no two numbers further apart: |x|, −x, max(x, c)."""
    if any(isinstance(end, Tensor) for end in _flat((ends, more))):
        raise Unknown("ends that are tensors")
    return balls.radius(x)


def _norm(balls: _Balls, found: Tensor, x: Tensor, order: float = 2, *options: Any, **more: Any) -> Tensor:
    if order < 1:
        raise Unknown("a norm of an order below 1")
    terms = x.numel() / max(found.numel(), 1) + 4
    return torch.ops.aten.linalg_vector_norm(balls.radius(x), order, *options, **more) + terms * UNIT * found


MOVED = set(
    "clone _unsafe_view _to_copy cat stack index index_select gather embedding where repeat "
    "roll flip tril triu diag_embed slice_backward select_backward slice_scatter select_scatter diagonal_backward copy "
    "lift_fresh_copy".split()
)
FILLED = set("fill masked_fill constant_pad_nd".split())
COMPARED = set("eq ne lt le gt ge equal".split())
FREE = set(  # what they make does not hang on the entries, or asks only whether they are finite
    "isfinite isnan isinf zeros_like ones_like full_like empty_like new_zeros new_ones new_full new_empty".split()
)
RISING = set("exp expm1 log log1p log2 log10 sqrt tanh sigmoid erf atan asinh sinh rsqrt".split())
RULES: dict[str, Callable[..., Any]] = {
    "add": _by(_add),
    "sub": _by(lambda a, b: _add(a, _negative(b))),
    "rsub": _by(lambda a, b: _add(b, _negative(a))),
    "mul": _by(_times),
    "div": _by(_over),
    "reciprocal": lambda balls, found, x: _over(_exact(1.0), balls.ball(x)).radius,
    "neg": _kept, "abs": _kept, "relu": _kept, "clamp": _kept, "clamp_min": _kept, "clamp_max": _kept,
    "maximum": _larger, "minimum": _larger,
    "amax": _largest, "amin": _largest, "max": _largest, "min": _largest,
    "aminmax": lambda balls, found, x, dim=(), keepdim=False: 2 * [_largest(balls, found[0], x, dim, keepdim)],
    "sin": lambda balls, found, x: balls.radius(x) + 4 * UNIT,
    "cos": lambda balls, found, x: balls.radius(x) + 4 * UNIT,
    "cosh": _even,
    "sign": _sign,
    "pow": _power,
    "gelu": lambda balls, found, x, approximate="none": 1.13 * balls.radius(x) + 8 * UNIT * x.abs(),
    "silu": lambda balls, found, x: 1.1 * balls.radius(x) + 8 * UNIT * x.abs(),
    "sum": lambda balls, found, x, dim=None, keepdim=False, dtype=None: _summed(balls.ball(x), dim, keepdim).radius,
    "mean": lambda balls, found, x, dim=None, keepdim=False, dtype=None: (
        _about(found, _mean(balls.ball(x), dim, keepdim))
    ),
    "var": lambda balls, found, x, dim=None, correction=1, keepdim=False: (
        _about(found, _variance(balls.ball(x), dim, correction, keepdim))
    ),
    "std": lambda balls, found, x, dim=None, correction=1, keepdim=False: (
        _about(found, _root(_variance(balls.ball(x), dim, correction, keepdim)))
    ),
    "mm": lambda balls, found, a, b: _product(balls.ball(a), balls.ball(b)),
    "bmm": lambda balls, found, a, b: _product(balls.ball(a), balls.ball(b)),
    "addmm": lambda balls, found, c, a, b: (
        balls.radius(c) + _product(balls.ball(a), balls.ball(b)) + UNIT * (c.abs() + found.abs())
    ),
    "linalg_vector_norm": _norm,
    "_linalg_svd": _singular,
    "_linalg_eigh": _singular,
    "_softmax": _softmax,
    "_log_softmax": _log_softmax,
    "logsumexp": _log_sum_exp,
    "_softmax_backward_data": _softmax_backward,
    "threshold_backward": _where_above,
}  # fmt: skip
KNOWN = MOVED | FILLED | RISING | RULES.keys()
