"""The result of a numeric check, and what every check rejects: NaN, infinity, tolerances that could never fail."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

import torch
from torch import Tensor

from smalltorch.engine.schema import Evidence
from smalltorch.engine.show import number

ROUNDING = 1e-6  # the widest allowance that rounding in float64 explains
WIDEST = 0.05  # the widest of all, for which a reason must be given


class VerificationError(AssertionError):
    """A statement that an input breaks, or a violation that was demanded and not found."""


@dataclass(frozen=True)
class Check:
    """A numeric check that has run. `value`: tightness, gap, error or mean; `at`: the input that gave it.

    `without`: for each hypothesis that was dropped, the violation that was found.
    """

    name: str
    text: str
    value: float
    at: Any
    evidence: Evidence
    without: Mapping[str, "Check"] = field(default_factory=dict)

    def __repr__(self) -> str:
        dropped = "".join(f"\n  without {hypothesis}: {check.text}" for hypothesis, check in self.without.items())
        return f"{self.name}: {self.text}{dropped}".replace(": \n", ":\n")


class Checks:
    """What was tried: a line for each check and for each hypothesis that was dropped, which opens what is said of it.

    In a terminal it is their whole text. A notebook shows Markdown with HTML's `details`, which a browser folds in the
    book, on Colab and in a forge alike.

    Raises:
        ValueError: if nothing was tried.
    """

    def __init__(self, *checks: Check):
        if not checks:
            raise ValueError("checks: expected at least one")
        self.checks = checks

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.checks))

    def _repr_markdown_(self) -> str:
        lines = []
        for check in self.checks:
            lines.append(_folded(check.name, check.text))
            lines += [_folded(f"without {what}", dropped.text) for what, dropped in check.without.items()]
        return "\n\n".join(lines)


def _folded(name: str, text: str) -> str:
    """A name and the first clause of a text as one line, with the rest of the text folded under it."""
    first, semicolon, rest = text.partition("; ")
    if not semicolon or "\n" in first:
        first, _, rest = text.partition("\n")
    sign, kind = ("✗", "fails") if first.startswith("fails") else ("✓", "holds")
    line = f"{sign} <b>{escape(name, quote=False)}</b>: {escape(first, quote=False)}"
    if not rest:
        return f'<p class="check {kind}">{line}</p>'
    folded = f"<pre>{escape(rest, quote=False)}</pre>"
    return f'<details class="check {kind}"><summary>{line}</summary>{folded}</details>'


def real(x: Any, what: str) -> float:
    """x as a float, if it is one real number."""
    try:
        return float(x)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise ValueError(f"{what} must be one real number, got {shortened(x)}") from None


def checked_tolerance(what: str, size: Any, because: str) -> float:
    """The tolerance, if it is no wider than rounding in float64 explains, or its reason."""
    size = real(size, what)
    if not isinstance(because, str) or (because and len(because.split()) < 2):
        raise ValueError(f"because must say in words why {what} is wider than rounding explains, got {because!r}")
    if not 0 <= size <= (WIDEST if because else ROUNDING):
        raise ValueError(
            f"{what} must lie between 0 and {ROUNDING:g} (with a reason, because=…, {WIDEST:g}), got {size}: "
            "it is for rounding"
        )
    return size


def numbers(x: Any, what: str) -> Tensor:
    """x, if it is a tensor of finite float64."""
    if not isinstance(x, Tensor) or x.dtype != torch.float64:
        got = str(x.dtype).removeprefix("torch.") if isinstance(x, Tensor) else shortened(x)
        raise ValueError(f"{what} must be float64, got {got}")
    if not torch.isfinite(x).all():
        raise ValueError(f"{what} must be finite, got NaN or infinity")
    return x


def allowed_text(size: float, because: str) -> str:
    """A tolerance with its reason."""
    return f"{number(size, 1)} ({because})" if because else number(size, 1)


def apart(left: float, right: float) -> tuple[str, str]:
    """Two numbers with as many digits as tell them apart, three at least.

        >>> apart(1.0011, 1.0), apart(2.0, 1.0)
        (('1.001', '1.000'), ('2.00', '1.00'))

    Where no digits do, Python's own text of both.
    """
    for digits in range(3, 17):
        texts = number(left, digits), number(right, digits)
        if texts[0] != texts[1]:
            return texts
    return repr(left), repr(right)


def shortened(x: Any) -> str:
    """What was got instead, on one short line."""
    if isinstance(x, Tensor):
        return f"a tensor of {str(x.dtype).removeprefix('torch.')}, shape {tuple(x.shape)}"
    text = " ".join(repr(x).split())
    return text if len(text) <= 60 else f"{text[:57]}…"
