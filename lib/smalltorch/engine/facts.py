"""Checks of computed values: a table of what was computed and what was expected.

    >>> computed("A square", [("its diagonal", 2**0.5, 1.41421356237)], at="side 1")
    A square: at side 1: agree to 1e-9
      its diagonal = 1.414

What was computed is shown, not what was expected.
"""

import math
import re
from collections.abc import Iterable
from typing import Any

from torch import Tensor

from smalltorch.engine import ledger
from smalltorch.engine.check import (
    Check,
    VerificationError,
    allowed_text,
    apart,
    checked_tolerance,
    real,
    shortened,
)
from smalltorch.engine.show import number

UNIVERSAL = re.compile(r"(?:for\s+)?(?:all|every|any|each)\s", re.IGNORECASE)  # what no computation is made for

Row = tuple[str, Any, Any] | tuple[str, Any, Any, float]


@ledger._check
def computed(name: str, rows: Iterable[Row], tolerance: float = 1e-9, because: str = "", at: str = "") -> Check:
    """A computation whose outcome is known beforehand: rows of (what, the value computed here, what must come out).

    Whole numbers must be the same. Others may differ by `tolerance`, relative to the second; where that is 0, a fourth
    number in the row says relative to which scale. The text shows what was computed.

    Args:
        name: what was computed, in words or symbols.
        rows: the values.
        tolerance: relative; at most 1e-6, or at most 0.05 with a reason. Times a scale, it is no larger either.
        because: why the tolerance is wider than 1e-6.
        at: the sizes, inputs or models that it was computed for, such as `n = 6` or `SmolLM2, 12 texts`; a record that
            calls a claim true on the strength of it needs them.

    Raises:
        VerificationError: naming the first row whose values differ by more.
        ValueError: for no rows, or one that is none; for one object as both values; for NaN or infinity as the second;
            for a tolerance above 1e-6 without a reason; for `at` that says all, every or any.
    """
    if not isinstance(at, str) or UNIVERSAL.match(at.strip()):
        raise ValueError(f"at must name the sizes, inputs or models that were computed, got {at!r}")
    return _facts("computed", name, rows, at, tolerance, because)


@ledger._check
def fact(name: str, rows: Iterable[Row], tolerance: float = 1e-9, because: str = "") -> Check:
    """Plain facts, which hold for no sizes but their own: a definition, a count, one piece of arithmetic.

    As `computed` in all else.
    """
    return _facts("fact", name, rows, "", tolerance, because)


def _facts(kind: str, name: str, rows: Iterable[Row], at: str, tolerance: float, because: str) -> Check:
    rows = list(rows) if isinstance(rows, Iterable) else []
    if not rows:
        raise ValueError("rows must hold at least one fact, got none")
    tolerance = checked_tolerance("tolerance", tolerance, because)
    shown = tuple(f"{row[0]} = {_settled(name, row, tolerance, because)}" for row in map(_row, rows))
    within = f"{f'at {at}: ' if at else ''}agree to {allowed_text(tolerance, because)}"
    text = f"{kind}, {name}: {len(rows)} of {len(rows)} facts {within}"
    evidence = ledger._left(kind, text, shows=shown, scope=at.strip())
    return Check(name, "\n  ".join([within, *shown]), 0.0, rows, evidence)


def _row(row: Any) -> tuple[str, Any, Any, float]:
    if not isinstance(row, tuple | list) or len(row) not in (3, 4) or not isinstance(row[0], str):
        raise ValueError(f"rows must hold (what, value, expected), or a scale as well, got {shortened(row)}")
    what, value, expected, scale = (*row, 0.0)[:4]
    if value is expected and isinstance(value, float | complex | Tensor):
        raise ValueError(f"rows: the value of {what} must be computed, got the very object that is expected")
    return what, value, expected, scale


def _settled(name: str, row: tuple[str, Any, Any, float], tolerance: float, because: str) -> str:
    """The value of a row as text, if it is the one that must come out."""
    what, given, wanted, scale = row
    value, expected = real(given, f"rows: the value of {what}"), real(wanted, f"rows: the expected value of {what}")
    if not math.isfinite(expected):
        raise ValueError(f"rows: the expected value of {what} must be finite, got {expected}")
    whole = _whole(given) and _whole(wanted)
    allowed = 0.0 if whole else tolerance * abs(expected)
    if not whole and expected == 0:
        what_is_zero = f"rows: the tolerance of {tolerance:g} times the scale of {what}"
        allowed = checked_tolerance(what_is_zero, tolerance * real(scale, f"rows: the scale of {what}"), because)
    differ = int(given) != int(wanted) if whole else not abs(value - expected) <= allowed
    if differ:
        left, right = (str(int(given)), str(int(wanted))) if whole else apart(value, expected)
        hint = "" if whole or expected or scale else " (0 up to rounding needs its scale, as the row's fourth entry)"
        raise VerificationError(f"{name}: {what} is {left}, not {right}{hint}")
    if whole:
        return str(int(given))
    if not expected:
        return f"0 within {number(allowed, 1)}" if allowed else "0"
    shown = float(f"{value:.9g}")  # where rounding has the say, ten digits and 4 of them may not agree
    return str(int(shown)) if _whole(wanted) and shown == int(shown) and abs(shown) < 1e9 else number(shown, 4)


def _whole(x: Any) -> bool:
    if isinstance(x, Tensor):
        return x.numel() == 1 and not x.is_floating_point() and not x.is_complex()
    return not isinstance(x, float) and hasattr(x, "__index__")
