r"""Ball arithmetic: a rigorous bound on the rounding error of a PyTorch computation, operation by operation.

    >>> x = torch.tensor([[3.0, 4.0]], dtype=torch.float64)
    >>> enclosed(lambda x: x.norm(dim=-1) - 5, x).radius < 1e-13
    tensor([True])

Each number is a ball: what float64 gave, and a radius within which the exact result lies. Every operation has its rule,
from what it does to errors of its inputs (|ab| moves by |a|r_b + |b|r_a + r_a r_b) and from what its own rounding adds.
What comes from outside is a ball as well: an input within 8 units in the last place of its largest entry, since a
domain has rounded it; a constant within one unit, also as an exponent or the end of a clamp, unless it is short in
binary, such as 1 or 0.25. So what is true of the ball is true of the exact inputs and constants that these stand for.

A number below 1e-300 may have underflowed, so 0 is exact only where it comes from an exact 0; an infinity that comes
from no infinity has overflowed, and may be anything. What has no rule may be anything too, and so may all that is
computed from it; a comparison, a whole number or a place that hangs on it is refused.

The rules trust PyTorch in this: its elementary functions err by 4 units at most, its sums and products of matrices are
sums and products in some order, and LAPACK's singular values and eigenvalues err by 10n units of the largest. The radii
are themselves rounded; whoever compares balls leaves a part in a thousand for it (`APART`).
"""

import functools
import math
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from smalltorch.engine.rounding import UNIT, Mode

TINY = 1e-300  # covers underflow
LARGEST = 2.0**53  # up to which whole numbers are floats
AROUND = 8  # units in the last place, of the largest entry, within which an input is known
APART = 1.001  # times the radii: how far apart two centres must be


class Unknown(ValueError):
    """No enclosure, for want of a rule for an operation."""


class Astray(Unknown):
    """No enclosure, and no telling: rounding decides a comparison, numbers overflow, or one has left PyTorch."""


class Ball(NamedTuple):
    """Numbers, and the radii within which the exact ones lie."""

    centre: Tensor
    radius: Tensor


def enclosed(side: Callable[[Any], Tensor], inputs: Any) -> Ball:
    """side(inputs) as a ball.

    Numbers that Python computes by itself, such as 2**0.5, are constants here; those that it reads must be exact, but
    where the library reads them, to check them or to see how long to iterate.

    Raises:
        Unknown: if there is none.
    """
    balls = _Balls()
    for x in inputs if isinstance(inputs, tuple) else (inputs,):
        if x.is_floating_point() and x.numel():
            largest = float(x.abs().max())
            balls.store(x, torch.full_like(x, AROUND * UNIT * largest + TINY * bool(largest)))
    try:
        with _Within(), balls:
            centre = side(inputs).detach()
    except (RuntimeError, TypeError, IndexError) as error:  # for one input, or where a tensor has no storage
        raise Astray(str(error)) from error
    found = Ball(centre, balls.radius(centre))
    if balls.missing and not bool(found.radius.isfinite().all()):
        raise (Astray if balls.unbounded else Unknown)(f"no rule for {balls.missing}")
    return found


class _Within(TorchFunctionMode):
    """Numbers that leave PyTorch for NumPy, or for lists, leave their radii behind."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (Tensor.numpy, Tensor.tolist, Tensor.__array__, Tensor.__dlpack__):
            raise Astray(f"{func.__name__} leaves PyTorch, and rounding cannot be followed")
        return func(*args, **(kwargs or {}))


class _Balls(Mode):
    """Keeps for every storage the radii of what it holds; so a view has those of its base."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.missing, self.unbounded = "", False  # an operation without a rule; whether one with a rule had no bound
        self.radii: dict[int, Tensor] = {}
        self.loose: set[int] = set()  # storages of what comes from operations without a rule
        self.kept: list[Any] = []  # storages, lest another one takes the place of one that is gone

    def radius(self, x: Any) -> Tensor:
        """The radii of a tensor, or of a constant."""
        if not isinstance(x, Tensor):
            return _constant(float(x)).radius
        if self.is_loose(x):
            return torch.full(x.shape, torch.inf, dtype=torch.float64)
        if not x.is_floating_point():
            exact = x.double().abs()
            return (UNIT * exact).where(exact >= LARGEST, 0)
        found = self.radii.get(x.untyped_storage()._cdata)
        return _of_constant(x) if found is None else found.as_strided(x.size(), x.stride(), x.storage_offset())

    def store(self, x: Tensor, radius: Tensor) -> None:
        """The radii of x from now on."""
        storage = x.untyped_storage()
        if storage._cdata not in self.radii:
            whole = torch.empty(0, dtype=x.dtype).set_(storage)
            self.radii[storage._cdata] = (
                _of_constant(whole) if x.numel() < whole.numel() else torch.full(whole.shape, torch.inf).double()
            )
            self.kept.append(storage)
        self.radius(x).copy_(radius.nan_to_num(torch.inf, torch.inf))

    def is_loose(self, x: Tensor) -> bool:
        """Whether x comes from an operation without a rule."""
        return x.untyped_storage()._cdata in self.loose

    def ball(self, x: Any) -> Ball:
        """A tensor, or a constant, with its radii."""
        return Ball(x, self.radius(x)) if isinstance(x, Tensor) else _constant(float(x))

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name, returns = func._schema.name.removeprefix("aten::"), func._schema.returns
        tensors = [x for x in _flat((args, kwargs)) if isinstance(x, Tensor)]
        if torch.Tag.nondeterministic_seeded in func.tags and "scaled_dot_product" not in name:  # without dropout
            raise Astray(f"{name} draws random numbers")
        if returns and all(r.alias_info is not None and not r.alias_info.is_write for r in returns):
            if func._overloadname == "dtype":
                raise Astray(f"{name} reads the bits of a number")
            return func(*args, **kwargs)  # a view
        if any(self.is_loose(x) and not x.is_floating_point() and not x.is_complex() for x in tensors):
            raise Astray(f"{name} looks at a place, or a case, that rounding may decide")
        if any(x.is_complex() for x in tensors):
            return self._missed(name, func(*args, **kwargs), tensors)
        if not any(x.is_floating_point() for x in tensors):
            return self._whole(func, name, args, kwargs)
        if name == "_local_scalar_dense":
            if bool(self.radius(args[0]) != 0) and not _read_by_library():
                raise Astray("the result hangs on a number that Python has read, and that is not exact")
            return func(*args)
        if name in COMPARED:
            self._decide(args)
            return func(*args, **kwargs)
        if name in TRUTHS:
            (x, r), more = self.ball(args[0]), args[1:]
            surely, maybe = x.abs() > APART * r, (x != 0) | (r > 0)
            if not torch.equal(func(surely, *more, **kwargs), func(maybe, *more, **kwargs)):
                raise Astray(f"rounding decides {name}")
            return func(*args, **kwargs)
        if name in FINITE and not bool(self.radius(args[0]).isfinite().all()):
            raise Astray(f"overflow, or a division by 0, may decide {name}")
        if name in FREE:
            return func(*args, **kwargs)
        if func._schema.is_mutable:
            return self._written(func, name, args, kwargs, tensors)
        found = func(*args, **kwargs)
        radii = self._radii(func, name, found, args, kwargs)
        if radii is None:
            return self._missed(name, found, tensors)
        for x, radius in zip(found, radii, strict=False) if isinstance(found, tuple) else [(found, radii)]:
            self._stored(x, radius, tensors)
        return found

    def _stored(self, x: Tensor, radius: Tensor, made_of: list[Tensor]) -> None:
        if not bool(radius.isfinite().all()):
            self.unbounded |= all(bool(self.radius(y).isfinite().all()) for y in made_of if y.is_floating_point())
        self.store(x, radius)

    def _missed(self, name: str, found: Any, tensors: list[Tensor]) -> Any:
        """What an operation without a rule gives may be anything, and is used for estimates at most."""
        made = [x for x in _flat(found) if isinstance(x, Tensor)]
        if name.removesuffix("_") in JUMPS or not made:
            raise Astray(f"no rule for {name}, which jumps")
        if any(x.is_floating_point() and x.dtype != torch.float64 for x in made):
            raise Astray(f"{name} gives other numbers than float64")
        self.missing = self.missing or name
        self.unbounded |= all(x.isfinite().all() for x in tensors) and not all(x.isfinite().all() for x in made)
        self.kept += [x.untyped_storage() for x in made]
        self.loose |= {x.untyped_storage()._cdata for x in made}
        return found

    def _whole(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        """An operation on whole numbers, which must not overflow; or one that makes constants."""
        if "shift" in name:
            raise Astray(f"whole numbers may overflow in {name}")
        wraps = name.removesuffix("_") in WRAPPED
        doubles = [x.double() if isinstance(x, Tensor) else x for x in args] if wraps else []
        found = func(*args, **kwargs)
        if name in MADE and found.is_floating_point() and bool((found % 1 != 0).any()):
            self.store(found, MADE[name] * torch.finfo(found.dtype).eps * found.abs().max())
        if wraps and not found.is_floating_point() and found.dtype != torch.bool:
            options = {k: v for k, v in kwargs.items() if k != "dtype"}
            exact = doubles[0] if name == "_to_copy" else func(*doubles, **options)
            if not bool(((found.double() - exact).abs() <= 2 * UNIT * exact.abs()).all()):
                raise Astray(f"whole numbers overflow in {name}")
        return found

    def _written(self, func: Any, name: str, args: Any, kwargs: Any, tensors: list[Tensor]) -> Any:
        """An operation that writes into its first argument."""
        if name[:-1] not in KNOWN or "out" in kwargs or not args[0].is_floating_point():
            return self._missed(name, func(*args, **kwargs), tensors)
        before = args[0].clone()
        self.store(before, self.radius(args[0]))
        plain = getattr(getattr(torch.ops.aten, name[:-1]), func._overloadname)
        after = plain(before, *args[1:], **kwargs)
        radius = self._radii(plain, name[:-1], after, (before, *args[1:]), kwargs)
        func(*args, **kwargs)
        if radius is None:
            return self._missed(name, args[0], tensors)
        self._stored(args[0], radius.expand(args[0].shape), tensors)
        return args[0]

    def _radii(self, func: Any, name: str, found: Any, args: Any, kwargs: Any) -> Any:
        """None where there is no rule."""
        if name not in KNOWN:
            return None
        if name in ORDERED and isinstance(found, tuple):
            self.loose.add(found[1].untyped_storage()._cdata)  # the places
            self.kept.append(found[1].untyped_storage())
            return (torch.full_like(found[0], float(self.radius(args[0]).max())),)
        if any(x.dtype != torch.float64 for x in (found if isinstance(found, tuple) else (found,))):
            raise Astray(f"{name} gives other numbers than float64")
        if name in FILLED:
            return func.overloadpacket(self.radius(args[0]), *args[1:-1], float(self.radius(args[-1])), **kwargs)
        if name in MOVED:
            return func(*self._moved(args, name in PLACED), **kwargs)
        try:
            if name in STEPS:
                below, above = (func(end, *args[1:], **kwargs) for end in _ends(self.ball(args[0])))
                if not bool((below == above).all()):
                    raise Astray(f"rounding decides {name}")
                return _of_constant(found)
            if name in RISING:
                x, r = self.ball(args[0])
                below, above = (func(end, *args[1:], **kwargs) for end in _ends(Ball(x, r)))
                change = torch.maximum((above - found).abs(), (found - below).abs())
                exact = (r == 0) & (found == 0) & ((x == 0) | (x == 1) | x.isinf())
                return change + 4 * UNIT * torch.maximum(above.abs(), below.abs()) + _tiny(exact)
            return RULES[name](self, found, *args, **kwargs) if name in RULES else None
        except Astray:
            raise
        except (Unknown, TypeError):
            return None

    def _moved(self, args: Any, placed: bool) -> list[Any]:
        """The arguments of an operation that moves its entries about: the radii of all but conditions and places."""
        return [
            self._moved(x, placed)
            if isinstance(x, list | tuple)
            else self.radius(x)
            if isinstance(x, Tensor) and (x.is_floating_point() or not (placed or x.dtype == torch.bool))
            else x
            for x in args
        ]

    def _decide(self, args: Any) -> None:
        """Raise if rounding may turn a comparison."""
        (a, r), (b, s) = map(self.ball, args[:2])
        if not bool((((a - b).abs() > APART * (r + s)) | (r + s == 0)).all()):
            raise Astray("rounding decides a comparison")


def _of_constant(x: Tensor) -> Tensor:
    """One unit in the last place; 0 for what is short: below 2⁵³, and the last 20 of 53 binary digits are 0."""
    eps, exact = torch.finfo(x.dtype).eps, x.double()
    digits = 1 - round(math.log2(eps))
    short = exact.frexp().mantissa * 2 ** (digits - min(20, digits // 2)) % 1 == 0
    short &= (exact.abs() < 2**digits) & (exact.abs() > TINY)
    return (max(UNIT, eps) * exact.abs() + TINY).where(~(short | exact.isinf() | (exact == 0)), 0)


def _read_by_library() -> bool:
    """Whether a number is read within a function of the library, which checks it, or sees how long to iterate."""
    frame, modules = sys._getframe(1), []
    while frame is not None and frame.f_code.co_qualname != "enclosed":
        modules.append(frame.f_globals["__name__"])
        frame = frame.f_back  # type: ignore[assignment]
    return any(name.startswith("smalltorch.") and not name.startswith("smalltorch.engine.") for name in modules)


@functools.cache
def _constant(x: float) -> Ball:
    centre = torch.tensor(x, dtype=torch.float64)
    return Ball(centre, _of_constant(centre))


def _flat(x: Any) -> list[Any]:
    if isinstance(x, dict):
        return _flat(list(x.values()))
    return [leaf for part in x for leaf in _flat(part)] if isinstance(x, list | tuple) else [x]


# -- rules: from what came out, and the arguments, to the radii --------------------------------------------------------


def _tiny(exact: Tensor) -> Tensor:
    """What underflow adds, but to an exact 0."""
    return TINY * (~exact).double()


def _ends(a: Ball) -> tuple[Tensor, Tensor]:
    """Below and above the ball, whatever the rounding of the ends."""
    away = (a.radius + UNIT * a.centre.abs()).where(a.radius > 0, 0)
    return a.centre - away, a.centre + away


def _settled(centre: Tensor, radius: Tensor, infinite: Tensor) -> Ball:
    """With what one rounding adds. An infinity that comes from no infinity has overflowed."""
    return Ball(centre, (radius + UNIT * centre.abs()).where(~(centre.isinf() & infinite), 0))


def _add(a: Ball, b: Ball) -> Ball:
    infinite = (a.centre.isinf() | b.centre.isinf()) & (a.radius + b.radius).isfinite()
    return _settled(a.centre + b.centre, a.radius + b.radius, infinite)


def _negative(a: Ball) -> Ball:
    return Ball(-a.centre, a.radius)


def _times(a: Ball, b: Ball) -> Ball:
    size, other = a.centre.abs(), b.centre.abs()
    moved = size * b.radius + other * a.radius + a.radius * b.radius
    moved = moved + _tiny((size + a.radius == 0) | (other + b.radius == 0))
    infinite = (size.isinf() | other.isinf()) & (size > a.radius) & (other > b.radius)
    return _settled(a.centre * b.centre, moved, infinite)


def _over(a: Ball, b: Ball) -> Ball:
    centre, away = a.centre / b.centre, b.centre.abs() - b.radius
    radius = (a.radius + centre.abs() * b.radius) / away + UNIT * centre.abs() + _tiny(a.centre.abs() + a.radius == 0)
    return Ball(centre, radius.where(away > 0, torch.inf))


def _summed(a: Ball, dim: Any, keepdim: bool = False) -> Ball:
    dims = tuple(range(a.centre.ndim)) if dim is None or dim == [] else dim
    centre = a.centre.sum(dims, keepdim)
    terms = a.centre.numel() / max(centre.numel(), 1)
    size = a.centre.abs().nan_to_num(torch.inf)
    return Ball(centre, a.radius.sum(dims, keepdim) + terms * UNIT * size.sum(dims, keepdim))


def _cumulated(balls: _Balls, found: Tensor, x: Tensor, dim: int) -> Tensor:
    return balls.radius(x).cumsum(dim) + x.shape[dim] * UNIT * x.abs().cumsum(dim)


def _mean(a: Ball, dim: Any, keepdim: bool = False) -> Ball:
    total = _summed(a, dim, keepdim)
    return _over(total, _exact(a.centre.numel() / max(total.centre.numel(), 1)))


def _exact(x: float) -> Ball:
    return Ball(torch.tensor(x, dtype=torch.float64), torch.tensor(0.0, dtype=torch.float64))


def _variance(a: Ball, dim: Any, correction: Ball, keepdim: bool) -> Ball:
    deviation = _add(a, _negative(_mean(a, dim, True)))
    total = _summed(_times(deviation, deviation), dim, keepdim)
    return _over(total, _add(_exact(a.centre.numel() / max(total.centre.numel(), 1)), _negative(correction)))


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


def _multiplied(balls: _Balls, found: Tensor, x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """prod, factor by factor."""
    parts = [(y.flatten() if dim is None else y).unbind(dim or 0) for y in balls.ball(x)]
    total = _exact(1.0)
    for part in zip(*parts, strict=True):
        total = _times(total, Ball(*part))
    return (found - total.centre.reshape_as(found)).abs() + total.radius.reshape_as(found)


def _power(balls: _Balls, found: Tensor, x: Any, exponent: Any) -> Tensor:
    """|x|^y lies between its values at the corners; where x may be 0 or less, y must be whole."""
    (x, r), (y, s) = balls.ball(x), balls.ball(exponent)
    size, whole = x.abs(), (s == 0) & (y % 1 == 0)
    bases, exponents = _ends(Ball(size, r)), _ends(Ball(y, s))
    corners = torch.stack(torch.broadcast_tensors(*[b.clamp(min=0) ** e for b in bases for e in exponents]))
    above, below = corners.amax(0), corners.amin(0)
    change = torch.maximum(above - found.abs(), found.abs() - below)
    change = torch.where(r < size, change, (above + found.abs()).where(whole & (y >= 0), torch.inf))
    exact = (size + r == 0) & ((exponents[0] > 0) | (whole & (y == 0)))
    return (change + 4 * UNIT * above + TINY).where(~exact, 0)


def _even(balls: _Balls, found: Tensor, x: Tensor) -> Tensor:
    """cosh, which rises with |x|."""
    below, above = (torch.cosh(end.clamp(min=0)) for end in _ends(Ball(x.abs(), balls.radius(x))))
    return torch.maximum(above - found, found - below).clamp(min=0) + 4 * UNIT * above


def _softmax(balls: _Balls, found: Tensor, x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    size = x.abs().where(x.isfinite(), 0)
    r = (balls.radius(x) + UNIT * size).amax(dim, keepdim=True) + UNIT * size.amax(dim, keepdim=True)
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
    moved = 2 * _length(balls.radius(A), (-2, -1)) + 10 * max(A.shape[-2:]) * UNIT * _length(A, (-2, -1))
    moved = moved[..., None] + TINY  # twice: for eigenvalues one triangle stands for both
    values = max(range(len(found)), key=lambda k: (found[k].ndim < A.ndim, found[k].numel()))
    return [moved.expand_as(x) if k == values else torch.full_like(x, torch.inf) for k, x in enumerate(found)]


def _length(x: Tensor, dim: Any) -> Tensor:
    """The norm, safe from underflow, by numbers that are at most 1 in size."""
    largest = x.abs().max().clamp(min=TINY)
    return (x / largest).square().sum(dim).sqrt() * largest


def _softmax_backward(balls: _Balls, found: Tensor, g: Tensor, p: Tensor, dim: int, dtype: Any) -> Tensor:
    slope, weight = balls.ball(g), balls.ball(p)
    mean = _summed(_times(slope, weight), dim, True)
    return _about(found, _times(weight, _add(slope, _negative(mean))))


def _where_above(balls: _Balls, found: Tensor, g: Tensor, x: Tensor, threshold: float) -> Tensor:
    balls._decide((x, threshold))
    return balls.radius(g).where(x > threshold, 0)


def _by(rule: Callable[..., Ball]) -> Callable[..., Tensor]:
    """The rule of an operation on two balls; `alpha` is the factor of the second."""

    def radii(balls: _Balls, found: Tensor, a: Any, b: Any, alpha: float = 1, rounding_mode: Any = None) -> Tensor:
        if rounding_mode:
            raise Astray("a quotient is rounded to a whole number")
        second = balls.ball(b)
        return rule(balls.ball(a), second if alpha == 1 else _times(second, balls.ball(alpha))).radius

    return radii


def _largest(balls: _Balls, found: Tensor, x: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
    return balls.radius(x).amax(dim, keepdim)


def _kept(balls: _Balls, found: Tensor, *of: Any, **more: Any) -> Tensor:
    """A function that moves by no more than any of its arguments: |x|, −x, max(x, y), clamp."""
    radii = [balls.radius(x) for x in (*of, *more.values()) if x is not None]
    return torch.stack(torch.broadcast_tensors(*radii)).amax(0)


def _norm(balls: _Balls, found: Tensor, x: Tensor, order: float = 2, *options: Any, **more: Any) -> Tensor:
    if order < 1 or float(balls.radius(order)):
        raise Unknown("a norm of an order that is below 1, or rounded")
    terms, r = x.numel() / max(found.numel(), 1) + 8, balls.radius(x)

    def norm(y: Tensor) -> Tensor:
        return torch.ops.aten.linalg_vector_norm(y, order, *options, **more)

    lost = (terms * TINY) ** (1 / order) if order < math.inf else TINY  # by what underflows in the sum
    rounded = terms + found.clamp(min=TINY).log().abs()  # as 1/order is
    return norm(r) + rounded * UNIT * found + 2 * lost * norm((x.abs() + r > 0).double()).clamp(max=1)


MOVED = set(
    "clone _unsafe_view _to_copy cat stack index index_select gather embedding where repeat "
    "roll flip tril triu diag_embed slice_backward select_backward slice_scatter select_scatter diagonal_backward copy "
    "lift_fresh_copy".split()
)
PLACED = set("index index_select gather embedding".split())  # whole numbers are places there
FILLED = set("fill masked_fill constant_pad_nd".split())
COMPARED = set("eq ne lt le gt ge equal".split())
TRUTHS = set("any all logical_not count_nonzero".split())  # whether numbers are 0
FINITE = set("isfinite isnan isinf".split())
FREE = FINITE | set(  # what they make does not hang on the entries
    "zeros_like ones_like full_like empty_like new_zeros new_ones new_full new_empty".split()
)
STEPS = set("sign floor ceil round trunc".split())
ORDERED = set("max min sort topk kthvalue median cummax cummin".split())  # values, with their places
JUMPS = set(
    "remainder fmod frac floor_divide heaviside nan_to_num copysign nextafter _unique2 unique_dim unique_consecutive "
    "nonzero mode linalg_pinv linalg_lstsq".split()
)
WRAPPED = set("_to_copy add sub rsub mul pow sum prod cumsum cumprod neg abs mm bmm mv dot bitwise_left_shift".split())
MADE = {"arange": 4, "linspace": 4, "logspace": 2**11}  # constants, and their units in the last place
RISING = set("exp expm1 log log1p log2 log10 sqrt tanh sigmoid erf atan asinh sinh rsqrt".split())
RULES: dict[str, Callable[..., Any]] = {
    "add": _by(_add),
    "sub": _by(lambda a, b: _add(a, _negative(b))),
    "rsub": _by(lambda a, b: _add(b, _negative(a))),
    "mul": _by(_times),
    "div": _by(_over),
    "reciprocal": lambda balls, found, x: _over(_exact(1.0), balls.ball(x)).radius,
    "neg": _kept, "abs": _kept, "clamp": _kept, "clamp_min": _kept, "clamp_max": _kept,
    "hardtanh": _kept, "maximum": _kept, "minimum": _kept,
    "amax": _largest, "amin": _largest, "max": _largest, "min": _largest,
    "aminmax": lambda balls, found, x, dim=(), keepdim=False: 2 * [_largest(balls, found[0], x, dim, keepdim)],
    "sin": lambda balls, found, x: balls.radius(x) + 4 * UNIT,
    "cos": lambda balls, found, x: balls.radius(x) + 4 * UNIT,
    "relu": lambda balls, found, x: balls.radius(x).where(x + balls.radius(x) >= 0, 0),
    "cosh": _even,
    "pow": _power,
    "gelu": lambda balls, found, x, approximate="none": 1.13 * balls.radius(x) + 8 * UNIT * x.abs(),
    "silu": lambda balls, found, x: 1.1 * balls.radius(x) + 8 * UNIT * x.abs(),
    "sum": lambda balls, found, x, dim=None, keepdim=False, dtype=None: _summed(balls.ball(x), dim, keepdim).radius,
    "prod": _multiplied,
    "cumsum": _cumulated,
    "mean": lambda balls, found, x, dim=None, keepdim=False, dtype=None: (
        _about(found, _mean(balls.ball(x), dim, keepdim))
    ),
    "var": lambda balls, found, x, dim=None, correction=1, keepdim=False: (
        _about(found, _variance(balls.ball(x), dim, balls.ball(correction), keepdim))
    ),
    "std": lambda balls, found, x, dim=None, correction=1, keepdim=False: (
        _about(found, _root(_variance(balls.ball(x), dim, balls.ball(correction), keepdim)))
    ),
    "mm": lambda balls, found, a, b: _product(balls.ball(a), balls.ball(b)),
    "bmm": lambda balls, found, a, b: _product(balls.ball(a), balls.ball(b)),
    "mv": lambda balls, found, a, b: _product(balls.ball(a), balls.ball(b)),
    "dot": lambda balls, found, a, b: _product(balls.ball(a), balls.ball(b)),
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
KNOWN = MOVED | FILLED | STEPS | ORDERED | RISING | RULES.keys()
