"""An entry of the table, a call of it, and what is to be said of the outcome.

    agrees    with the oracle, which is evaluated on that very input
    clear     refused: `name: expected X, got Y`, and the name is that of the argument which is bad; or by the system,
              with the file's name
    obscure   another exception, or one that does not name the argument
    wrong     another number than the oracle's, or any number where the callable is not defined, and not a word
    nan       NaN or infinite where the input is finite and so is the truth, and not a word

NaN in the input may spread to all that depends on it. So may an infinite entry, where the limit is not what the formula
gives; and a truth beyond the greatest float may be infinite or NaN. A tensor on the device `meta` has no numbers: what
comes of it has none either, or is refused.
"""

import contextlib
import copy
import io
import math
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import mpmath
import numpy as np
import torch
from torch import Tensor

from .kinds import HALF, Bad, Given, Kind, Precision, Real

SIZES = dict(n=3, query=3, key=5, d=4, d_h=4, d_v=2, d_ff=5, head=2, layer=2, vocabulary=7, batch=2)
TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 2e-2, torch.bfloat16: 1e-1}
FORM = re.compile(r"(?P<names>[^:\n]+): expected [^\n]+[,;] got [^\n]+")
# What does not fit together can be said of either argument.
RELATIONS = ("half", "rank", "size", "dtype", "empty", "zero batch", "meta")
MUST_AGREE = ("valid", "strided")


class Outside(Exception):
    """The callable is not defined for these arguments, and must refuse them."""


class Enclosed(NamedTuple):
    """An oracle's word on a pair: lower <= truth <= upper, and not further apart than by a relative `width`."""

    truth: Any
    width: float


@dataclass(frozen=True, repr=False)
class Entry:
    """One public callable.

    Args:
        name: module and callable, from `smalltorch` on.
        call: makes the call, with the arguments by name.
        oracle: what must come of it, from the same arguments as NumPy's arrays: of float64, or of mpmath's numbers
            where a magnitude is extreme. With `raw`, from the arguments as they are, for torch's own functions.
        arguments: by name, the kind of each.
        where: what else the arguments must fulfil, on top of their kinds and shapes; `relation` is the same in words.
        sizes: other ones than `SIZES`.
        also: names of what is computed from the arguments, which an error may name in their place.
        digits: of mpmath's numbers.
        dtypes: those that it is for.
        needs: packages without which it cannot be called.
    """

    name: str
    call: Callable[..., Any]
    oracle: Callable[..., Any]
    arguments: dict[str, Kind]
    where: Callable[..., Any] = lambda **_: True
    relation: str = ""
    raw: bool = False
    sizes: dict[str, int] = field(default_factory=dict)
    also: tuple[str, ...] = ()
    digits: int = 40
    dtypes: tuple[torch.dtype, ...] = tuple(TOLERANCE)
    needs: tuple[str, ...] = ()
    tolerance: float = 1.0  # times those of `TOLERANCE`
    absolute: float = 0.0  # what is added to it, for logarithms

    def __repr__(self) -> str:
        return f"<{self.name}>"

    @property
    def domain(self) -> str:
        """In words."""
        words = [f"{name}: {kind.words}" for name, kind in self.arguments.items() if not isinstance(kind, Precision)]
        return "; ".join([*words, *([self.relation] if self.relation else [])])


class Outcome(NamedTuple):
    entry: str
    kind: str
    argument: str
    note: str
    verdict: str
    said: str  # the message of an exception

    def __str__(self):
        return f"{self.kind}: {self.argument} {self.note} → {self.verdict} {self.said}".strip()


# --- the calls --------------------------------------------------------------------------------------------------------


def draw(
    entry: Entry, dtype: torch.dtype = torch.float64, full: bool = True, seed: int = 0, **sizes: Any
) -> tuple[dict, Given]:
    """Valid arguments."""
    batch = sizes.pop("batch_axes", (2,) if full else ())
    given = Given(SIZES | entry.sizes | sizes, batch, dtype, np.random.default_rng(seed), full)
    return {name: kind.draw(given) for name, kind in entry.arguments.items()}, given


def outcomes(entry: Entry) -> Iterator[Outcome]:
    """Of valid arguments, and of those with one thing wrong."""
    typed = any(isinstance(kind, (Real, Precision)) or hasattr(kind, "typed") for kind in entry.arguments.values())
    for dtype in entry.dtypes if typed else (torch.float64,):
        for full in (True, False):
            arguments, given = draw(entry, dtype, full)
            kind = "half" if dtype in HALF else "valid"
            yield judge(entry, arguments, given, Bad(kind, f"all in {dtype}", None), "")
            for name, kind in entry.arguments.items() if full else ():
                for bad in kind.bad(arguments[name], given):
                    yield judge(entry, arguments | {name: bad.value}, given, bad, name)
    for size in axes(entry):
        arguments, given = draw(entry, entry.dtypes[0], **{size: 0})
        yield judge(entry, arguments, given, Bad("empty", f"{size} = 0", None), "")
    if any("..." in shape for _, _, shape in shapes(entry, draw(entry, entry.dtypes[0])[0])):
        arguments, given = draw(entry, entry.dtypes[0], batch_axes=(0,))
        yield judge(entry, arguments, given, Bad("zero batch", "", None), "")


def shapes(entry: Entry, arguments: dict[str, Any]) -> Iterator[tuple[str, Any, str]]:
    for name, kind in entry.arguments.items():
        yield from kind.shapes(name, arguments[name])


def axes(entry: Entry) -> list[str]:
    """The names of sizes that the tensors among the arguments have."""
    names = (
        axis.removeprefix("#")
        for _, _, shape in shapes(entry, draw(entry, entry.dtypes[0])[0])
        for axis in shape.split()
    )
    return [name for name in dict.fromkeys(names) if name != "..." and not name.isdigit()]


def judge(entry: Entry, arguments: dict[str, Any], given: Given, bad: Bad, argument: str) -> Outcome:
    """Make the call, and compare."""

    def outcome(verdict: str, said: str = "") -> Outcome:
        return Outcome(entry.name, bad.kind, argument, bad.note, verdict, said)

    truth = None
    if not bad.outside:
        with contextlib.suppress(Outside):
            truth = expected(entry, arguments, given, bad)
    try:
        found, warned = called(entry, arguments)
    except Exception as error:
        said = f"{type(error).__name__}: {error}".partition("\n")[0]
        refused = isinstance(error, (ValueError, OSError)) and named(error, entry, bad, argument)
        return outcome("clear" if refused and bad.kind not in MUST_AGREE else "obscure", said)
    if truth is None:
        lost = any(isinstance(x, np.ndarray) and x.dtype.kind == "f" and np.isnan(x).any() for x in leaves(found))
        return outcome("nan" if lost and bad.kind not in ("nan", "inf") else "wrong")
    return outcome(compare(found, truth, warned))


def seed() -> None:
    """torch's numbers from the start: what `torch.manual_seed(0)` does on the CPU, without its search for others."""
    torch.default_generator.manual_seed(0)


def called(entry: Entry, arguments: dict[str, Any]) -> tuple[Any, bool]:
    """The result, as plain arrays, and whether there was a warning. What is printed is not looked at here."""
    seed()
    silent = contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO())
    with warnings.catch_warnings(record=True) as said, silent[0], silent[1]:
        warnings.simplefilter("always")
        return plain(entry.call(**copied(arguments))), any(w.category is UserWarning for w in said)


def copied(arguments: dict[str, Any]) -> dict[str, Any]:
    """Deep copies, but where there is a nested tensor, which torch cannot copy."""
    copies = dict(arguments)
    for name, value in arguments.items():
        with contextlib.suppress(NotImplementedError):
            copies[name] = copy.deepcopy(value)
    return copies


def named(error: Exception, entry: Entry, bad: Bad, argument: str) -> bool:
    """Whether an error has the form that all have, and names what is bad; the system's own names the file."""
    if isinstance(error, OSError) and error.filename:
        return True
    match = FORM.fullmatch(str(error))
    names = set(re.findall(r"\w+", match["names"])) if match else set()
    kind = entry.arguments.get(argument)
    allowed = {argument, *entry.also, *(name for name, _, _ in (kind.shapes(argument, None) if kind else ()))}
    if bad.kind in RELATIONS:
        allowed |= {*entry.arguments, *(name for name, _, _ in shapes(entry, draw(entry, entry.dtypes[0])[0]))}
    return not names.isdisjoint(allowed)


class Truth(NamedTuple):
    """What an oracle says, and how near a result must be."""

    value: Any
    blurred: Any  # the same, of NaN in the place of infinite entries
    dtype: torch.dtype
    relative: float
    absolute: float


def expected(entry: Entry, arguments: dict[str, Any], given: Given, bad: Bad) -> Truth:
    """What the oracle says of these arguments.

    Raises:
        Outside: if it says nothing, for they are outside of the domain.
    """
    if bad.kind == "meta":  # of the shape that the numbers would have
        arguments, bad = draw(entry, entry.dtypes[0])[0], bad._replace(kind="valid")
    if not fit(shapes(entry, arguments)):
        raise Outside("the shapes do not fit")
    dtype = precision(entry, arguments, given)
    extreme = bad.kind == "extreme" and not entry.raw

    def evaluate(arguments: dict[str, Any]) -> Any:
        seed()
        values = copy.deepcopy(arguments) if entry.raw else numbers(arguments, extreme)
        try:
            with np.errstate(all="ignore"), mpmath.workdps(entry.digits), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if not entry.where(**values):
                    raise Outside(entry.relation)
                return plain(entry.oracle(**values))
        except Exception as error:  # an oracle that cannot be evaluated says nothing
            if bad.kind == "zero batch":  # the first axis alone is another than with a batch of one
                one = draw(entry, entry.dtypes[0], batch_axes=(1,))[0]
                return without_rows(expected(entry, one, given, bad._replace(kind="valid")).value)
            if isinstance(error, Outside) or bad.kind == "valid":
                raise
            raise Outside("no truth") from error

    truth = evaluate(arguments)
    blurred = truth
    if bad.kind == "inf":
        try:
            blurred = evaluate(each_number(arguments, lambda x: x.where(x.isfinite(), torch.nan)))
        except Outside:  # of NaN nothing can be said: all may be NaN
            blurred = each_number(truth, lambda x: x * torch.nan)
    elif any(x.dtype.kind == "f" and np.isnan(x).any() for x in leaves(truth) if isinstance(x, np.ndarray)):
        if bad.kind != "nan":
            raise Outside("0/0")
    weighted = any(isinstance(kind, Precision) for kind in entry.arguments.values())
    near = 4 * torch.finfo(dtype).eps if dtype in HALF and not weighted else TOLERANCE[dtype]  # once rounded
    return Truth(truth, blurred, dtype, entry.tolerance * near, entry.absolute)


def without_rows(value: Any) -> Any:
    if isinstance(value, list):
        return [without_rows(part) for part in value]
    return value[:0] if isinstance(value, np.ndarray) and value.shape[:1] == (1,) else value


def precision(entry: Entry, arguments: dict[str, Any], given: Given) -> torch.dtype:
    """The coarsest dtype among the arguments; torch's own where there are whole numbers only."""
    found: list[torch.dtype] = []
    each_number(arguments, lambda x: found.append(x.dtype) or x)
    if any(isinstance(kind, Precision) for kind in entry.arguments.values()):
        found.append(given.dtype)
    coarse = [dtype for dtype in reversed(TOLERANCE) if dtype in found]
    exact = any(isinstance(kind, Real) for kind in entry.arguments.values())
    return coarse[0] if coarse else torch.float32 if exact and torch.complex128 not in found else given.dtype


def fit(arguments: Iterator[tuple[str, Any, str]]) -> bool:
    """Whether tensors have shapes that fit together."""
    sizes: dict[str, int] = {}
    batch: tuple[int, ...] = ()
    for _, x, shape in arguments:
        if not isinstance(x, Tensor):
            return False
        own = shape.removeprefix("...").split()
        split = x.ndim - len(own)
        if split < 0 or (split > 0 and not shape.startswith("...")):
            return False
        for axis, size in zip(own, x.shape[split:], strict=True):
            one = axis.startswith("#") and size == 1
            if not one and sizes.setdefault(axis.removeprefix("#"), size) != size:
                return False
        try:
            batch = np.broadcast_shapes(batch, tuple(x.shape[:split]))
        except ValueError:
            return False
    return True


# --- values -----------------------------------------------------------------------------------------------------------


def each_number(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """The same structure with every real or complex tensor changed, and every float that is not finite."""
    if isinstance(value, Tensor):
        return change(value) if value.is_floating_point() or value.is_complex() else value
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return change(torch.from_numpy(np.array(value))).numpy()
    if isinstance(value, float) and not math.isfinite(value):
        return change(torch.tensor(value, dtype=torch.float64)).item()
    if isinstance(value, dict):
        return {key: each_number(item, change) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        items = [each_number(item, change) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


EXACT = np.frompyfunc(mpmath.mpf, 1, 1)


def numbers(value: Any, exact: bool) -> Any:
    """Arguments for an oracle: arrays of float64 in the place of tensors, or of mpmath's numbers."""
    if isinstance(value, Tensor):
        value = value.detach()
        x = value.double().numpy() if value.is_floating_point() else value.numpy()
        return np.asarray(EXACT(x), dtype=object) if exact and x.dtype.kind == "f" else x
    if isinstance(value, dict):
        return {key: numbers(item, exact) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        items = [numbers(item, exact) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else items
    if isinstance(value, (np.generic, np.ndarray)) and np.ndim(value) == 0:
        return value.item()
    return copy.deepcopy(value) if isinstance(value, np.random.Generator) else value


class Meta(NamedTuple):
    """A tensor without numbers."""

    shape: tuple[int, ...]


def plain(value: Any) -> Any:
    """A result as nested lists of arrays, or an oracle's word on it."""
    if isinstance(value, Tensor):
        if value.is_meta:
            return Meta(tuple(value.shape))
        value = value.detach()
        return value.double().numpy() if value.is_floating_point() else value.numpy()
    if isinstance(value, (str, bytes, Enclosed, type(None))):
        return value
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    x = np.asarray(value)
    if x.dtype == object:  # mpmath's
        x = np.vectorize(float, otypes=[float])(x) if x.size else x.astype(float)
    return x


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Enclosed):
        yield np.asarray(value.truth)
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from leaves(item)
    else:
        yield value


def compare(found: Any, truth: Truth, warned: bool = False) -> str:
    """agrees, wrong or nan."""
    value = truth.value
    if isinstance(value, Enclosed):
        return within(found, value, warned)
    if isinstance(value, (list, dict)):
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        if type(found) is not type(value) or len(found) != len(value):
            return "wrong"
        if isinstance(value, dict) and found.keys() != value.keys():
            return "wrong"
        parts = (truth._replace(value=value[key], blurred=truth.blurred[key]) for key in keys)
        verdicts = [compare(found[key], part, warned) for key, part in zip(keys, parts, strict=True)]
        return max(verdicts, key=("agrees", "nan", "wrong").index, default="agrees")
    if isinstance(found, Meta):
        return "agrees" if isinstance(value, np.ndarray) and found.shape == value.shape else "wrong"
    if not isinstance(value, np.ndarray) or not isinstance(found, np.ndarray):
        return "agrees" if type(found) is type(value) and found == value else "wrong"
    if found.shape != value.shape:
        return "wrong"
    if value.dtype.kind in "biuO" or value.size == 0:
        return "agrees" if (found == value).all() else "wrong"

    float_info = torch.finfo(truth.dtype)
    with np.errstate(all="ignore"):
        scale = np.abs(value[np.isfinite(value)]).max(initial=0)
        underflow = 32 * float_info.smallest_normal * float_info.eps
        margin = truth.relative * (np.abs(value) + scale) + truth.absolute + underflow
        near = (found == value) | (np.abs(found - value) <= margin)
        too_large = ~(np.abs(value) <= float_info.max) & ~np.isnan(value)
        good = near | (np.isnan(found) & np.isnan(truth.blurred)) | (too_large & ~np.isfinite(found))
    if good.all():
        return "agrees"
    return "wrong" if np.isfinite(found[~good]).any() else "nan"


def within(found: Any, truth: Enclosed, warned: bool) -> str:
    """Whether a pair encloses; the truth itself is known to some digits only. A wide pair must have been warned of."""
    if not (isinstance(found, list) and len(found) == 2):
        return "wrong"
    (lower, upper), exact = found, plain(truth.truth)
    if np.shape(lower) != exact.shape or np.shape(upper) != exact.shape:
        return "wrong"
    if np.isnan(lower).any() or np.isnan(upper).any():
        return "nan"
    slack = 1e-13 * np.abs(exact)
    enclosed = (lower <= exact + slack) & (exact - slack <= upper)
    if not warned:
        enclosed &= upper <= lower * (1 + truth.width) + slack
    return "agrees" if enclosed.all() else "wrong"


# --- sabotage ---------------------------------------------------------------------------------------------------------


def distorted(value: Any) -> Iterator[Any]:
    """The same result with one part of it a little wrong: scaled, of the other sign, rolled along an axis."""
    if isinstance(value, (list, dict)):
        for key in value if isinstance(value, dict) else range(len(value)):
            for item in distorted(value[key]):
                changed = copy.copy(value)
                changed[key] = item
                yield changed
    elif isinstance(value, np.ndarray) and value.dtype != bool:
        whole = value.dtype.kind in "iu"
        changes = [value + 1 if whole else 1.01 * value, -value]
        changes += [np.roll(value, 1, axis) for axis in range(value.ndim)]
        yield from (change for change in changes if not np.array_equal(change, value))
    elif isinstance(value, np.ndarray) and value.size:
        yield ~value
    elif isinstance(value, (str, bytes)):
        yield value + ("?" if isinstance(value, str) else b"?")
