r"""Check the numbers and inequalities quoted in a chapter's text against the values that the chapter computed.

    >>> n, share = 4, 100 * 1.752 / 2
    >>> held(numbers=[("the norm is 88 per cent of the bound", share)], relations=[(r"$\sqrt n\le n$", n**0.5, n)])
    the text is held: 1 number in 1 sentence, 1 inequality, 0 citations

A sentence is quoted as it stands in the text, so that its numbers are typed twice, and the second time beside the
expression that they come from. A notebook cannot read itself; `book/_tools/numbers_in_text.py` reads it, and finds the
numbers and inequalities that no quotation covers, and quotations that the text does not have.

Which numbers are trivial, and covered by nothing, `printed` says. What a number is held against comes from somewhere: a
measured one that is typed again in place of its value is refused, and so is an inequality whose sides are.
"""

import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from sympy import Expr, Indexed, IndexedBase, Symbol
from torch import Tensor

from smalltorch.engine import ledger
from smalltorch.engine.check import VerificationError, apart
from smalltorch.engine.derive import Derivation
from smalltorch.engine.printed import Printed, chains, numbers_in
from smalltorch.engine.written import typed_by_hand

HOLDS = {"<": torch.lt, ">": torch.gt, "≤": torch.le, "≥": torch.ge}
CLOSE = 1e-9  # the sides of an equation, and of an inequality that is attained
MEASURED = re.compile(r"0*\.?0*[1-9]\d*\.?\d+")  # a number of two digits or more, of which there are decimals
LETTERS = re.compile(r"(?<!\\)(?<![A-Za-z])[A-Za-z]|\\(?![td]?frac|cdot|[,;:!])")  # not a number
PER_CENT = re.compile(r"\s?(?:\\?%|per cent)")


@dataclass(frozen=True)
class Held:
    """What the text was held against; shown in the notebook."""

    numbers: int
    sentences: int
    relations: int
    citations: int

    def __repr__(self) -> str:
        parts = [
            f"{_count(self.numbers, 'number')} in {_count(self.sentences, 'sentence')}",
            "1 inequality" if self.relations == 1 else f"{self.relations} inequalities",
            _count(self.citations, "citation"),
        ]
        return f"the text is held: {', '.join(parts)}"


@ledger._check
def held(
    *,
    numbers: Sequence[tuple[Any, ...]] = (),
    relations: Sequence[tuple[Any, ...]] = (),
    derived: Sequence[tuple[str, Derivation, Sequence[Mapping[Any, Any]], Sequence[Any], Sequence[Any]]] = (),
    citations: Sequence[str] = (),
) -> Held:
    r"""Hold quotations of the chapter's text against what was computed.

    Args:
        numbers: a quotation, and the value of each of its numbers that is not trivial, in order; not all typed by hand,
            where one has decimals or is a percentage.
        relations: a formula, and the values of its sides, in order: numbers, or tensors of one shape, of which at least
            one entry must tell the two sides of an inequality apart. A side that is a number is that number, and one
            that is computed from symbols which are sides themselves is what comes of their values.
        derived: a formula of one relation, the derivation whose conclusion it is, though terms may have changed sides;
            two points or more, each with values for the symbols of that, and for each side of the formula its values at
            these points. No symbol has the same value at all of them, nor 0, 1 or −1 only.
        citations: quotations with the roles in them that cite; there is nothing to compute.

    Raises:
        VerificationError: if a number is not what its value is rounded to, a relation does not hold or would hold
            turned round, or a derivation concludes something else.
        ValueError: for a quotation with another number of numbers or sides than there are values, or values that are
            typed a second time; for a conclusion at one point.
    """
    for keyword, k in typed_by_hand(sys._getframe(1), ("numbers", "relations")):
        _refuse_typed((numbers if keyword == "numbers" else relations)[k][0], keyword)
    for quotation, *values in numbers:
        _hold_numbers(quotation, values)
    for formula, *sides in relations:
        _hold_relations(formula, sides)
    for formula, derivation, points, left, right in derived:
        _hold_conclusion(formula, derivation, points, left, right)
    count = sum(len(values) for _, *values in numbers)
    return Held(count, len(numbers), len(relations) + len(derived), len(citations))


# -- numbers -----------------------------------------------------------------------------------------------------------


def _hold_numbers(quotation: str, values: Sequence[Any]) -> None:
    found = numbers_in(quotation)
    if not found or len(found) != len(values):
        raise ValueError(
            f"numbers: {quotation!r} has {len(found)} that are not trivial "
            f"({', '.join(one.text for one in found)}), and {len(values)} values"
        )
    for one, value in zip(found, map(float, values), strict=True):
        if not abs(value - one.value) <= one.within * (1 + CLOSE) and value != one.binary:
            raise VerificationError(f"{quotation!r} says {one.text}, and it is {value:.6g}")


# -- what is typed a second time ---------------------------------------------------------------------------------------


def _refuse_typed(quotation: str, keyword: str) -> None:
    """Raise for what looks like a result, or a formula of more than symbols, whose values are typed by hand."""
    found = [one.text for one in numbers_in(quotation) if _is_found(one, quotation)] if keyword == "numbers" else []
    if found:
        raise ValueError(
            f"numbers: {quotation!r} says {', '.join(found)}, and its values are typed by hand; give what they are "
            "computed from, or name the setting or the source that they are taken from"
        )
    sides = [side for sides, _ in chains(quotation) for side in sides if LETTERS.search(side)]
    if keyword == "relations" and (compound := [side for side in sides if len(_tokens(side) or "??") > 1]):
        raise ValueError(f"relations: {quotation!r} is held against numbers typed by hand; compute {compound[0]}")


def _is_found(one: Printed, quotation: str) -> bool:
    """Whether a number looks like something that was found: two digits with decimals, or a percentage."""
    decimal = "." in one.text and MEASURED.fullmatch(one.text.lstrip("-−"))
    return bool(decimal or PER_CENT.match(quotation, one.end))


# -- relations ---------------------------------------------------------------------------------------------------------


def _hold_relations(formula: str, values: Sequence[Any]) -> None:
    statements = chains(formula)
    names = [side for sides, _ in statements for side in sides]
    if len(names) != len(values) or not any(signs for _, signs in statements):
        raise ValueError(f"relations: {formula!r} has the sides {', '.join(names)}, and {len(values)} values")
    _refuse_others(formula, names, values)
    given = iter(torch.as_tensor(value, dtype=torch.float64) for value in values)
    for sides, signs in statements:
        for (left, right), sign in zip(pairwise([next(given) for _ in sides]), signs, strict=True):
            _hold(formula, left, sign, right)


TOKEN = re.compile(
    r"\s*(\\(?:alpha|beta|gamma|delta|epsilon|varepsilon|eta|theta|kappa|lambda|mu|nu|rho|sigma|tau|omega)(?![A-Za-z])"
    r"(?:_(?:\w|\{\w+\}))?|[A-Za-z](?:_(?:\w|\{\w+\}))?(?!\()|\d+(?:\.\d+)?|[-+^(){}]|\\cdot(?![A-Za-z]))\s*"
)


def _refuse_others(formula: str, names: Sequence[str], values: Sequence[Any]) -> None:
    """Raise if a side is a number and has another value, or is computed from symbols and has not what comes of them."""
    tokens = {k: found for k, name in enumerate(names) if names.count(name) == 1 and (found := _tokens(name))}
    known = {
        found[0]: torch.as_tensor(values[k], dtype=torch.float64)
        for k, found in tokens.items()
        if len(found) == 1 and not found[0][0].isdigit()
    }
    for k, found in tokens.items():
        symbols = {token for token in found if token[0].isalpha() or (token[0] == "\\" and token != "\\cdot")}
        if not symbols <= known.keys() or (symbols and len(found) == 1):
            continue
        wanted, value = _computed(found, known), torch.as_tensor(values[k], dtype=torch.float64)
        if wanted is None or (wanted.numel() > 1 < value.numel() and wanted.shape != value.shape):
            continue  # another statement's symbols, with other samples
        digits = found[0].partition(".")[2] if len(found) == 1 else ""
        rounded = 0.5 * 10.0 ** -len(digits) if digits else 1e-9  # 0.105 stands for what rounds to it
        value, wanted = torch.broadcast_tensors(value, wanted)
        for given, right in zip(value.reshape(-1).tolist(), wanted.reshape(-1).tolist(), strict=True):
            if not math.isclose(given, right, rel_tol=1e-6, abs_tol=rounded):
                got = ", got ".join(apart(right, given))
                raise VerificationError(f"{formula!r} is held against other numbers: {names[k]} would be {got}")


def _tokens(side: str) -> list[str] | None:
    """The numbers, symbols, signs and brackets of a side in plain arithmetic; None where there is more."""
    found, at = [], 0
    while at < len(side):
        match = TOKEN.match(side, at)
        if not match:
            return None
        found.append(match[1])
        at = match.end()
    return found


def _computed(tokens: Sequence[str], known: Mapping[str, Tensor]) -> Tensor | None:
    """What comes of the symbols' values; None for what is no arithmetic after all."""
    names = {symbol: f"v{k}" for k, symbol in enumerate(known)}
    words, before = [], "("
    for token in tokens:
        word = names.get(token) or {"{": "(", "}": ")", "^": "**", "\\cdot": "*"}.get(token, token)
        times = (before[-1].isalnum() or before == ")") and (word[0].isalnum() or word == "(")
        words += ["*", word] if times else [word]
        before = word
    try:
        found = eval(" ".join(words), {"__builtins__": {}}, {names[symbol]: known[symbol] for symbol in known})
    except (SyntaxError, ArithmeticError):
        return None
    return torch.as_tensor(found, dtype=torch.float64)


def _hold(formula: str, left: Tensor, sign: str, right: Tensor) -> None:
    left, right = torch.broadcast_tensors(left, right)
    close = (left - right).abs() <= CLOSE * torch.maximum(left.abs(), right.abs())
    if sign == "=":
        holds, told_apart = close, True
    else:
        holds = HOLDS[sign](left, right) & ~close if sign in "<>" else HOLDS[sign](left, right) | close
        told_apart = not bool(close.all())
    if not bool(holds.all()):
        k = int((~holds).reshape(-1).int().argmax())
        raise VerificationError(
            f"{formula!r}: {float(left.reshape(-1)[k]):.6g} {sign} {float(right.reshape(-1)[k]):.6g} does not hold"
        )
    if not told_apart:
        raise ValueError(f"relations: in {formula!r} the sides of {sign} are the same throughout; it could be turned")


# -- what the engine derived -------------------------------------------------------------------------------------------


def sides_at(derivation: Derivation, instance: Mapping[Any, Any]) -> tuple[float, float]:
    """Both sides of a conclusion, as numbers: symbols have numbers as values, and indexed ones tensors."""
    conclusion = derivation.conclusion
    return _at(conclusion.lhs, instance), _at(conclusion.rhs, instance)


def _at(expr: Expr, instance: Mapping[Any, Any]) -> float:
    numbers = {name: value for name, value in instance.items() if isinstance(name, Symbol)}
    entries = {name: value for name, value in instance.items() if isinstance(name, IndexedBase)}
    expr = expr.subs({name: value for name, value in numbers.items() if name.is_integer}).doit()
    found = {term: float(entries[term.base][tuple(int(k) - 1 for k in term.indices)]) for term in expr.atoms(Indexed)}
    return float(expr.subs(found | {name: float(value) for name, value in numbers.items()}))


def _hold_conclusion(
    formula: str,
    derivation: Derivation,
    points: Sequence[Mapping[Any, Any]],
    left: Sequence[Any],
    right: Sequence[Any],
) -> None:
    if isinstance(points, Mapping) or len(points) < 2:
        raise ValueError(
            f"derived: {formula!r} is held at one point, where other formulas have the same value; give two or more, "
            "as [{…}, {…}], and for each side a list of its values there"
        )
    if not len(points) == len(left) == len(right):
        raise ValueError(
            f"derived: {formula!r} has {len(points)} points, {len(left)} left and {len(right)} right sides"
        )
    if any(point.keys() != points[0].keys() for point in points):
        raise ValueError(f"derived: {formula!r} has points with values for other symbols than the first one")
    for name in points[0]:
        values = [torch.as_tensor(point[name], dtype=torch.float64).reshape(-1).tolist() for point in points]
        if values.count(values[0]) == len(values) or all(set(value) <= {0, 1, -1} for value in values):
            raise ValueError(f"derived: {formula!r}: the points must differ in {name}, and not be 0, 1 and −1 only")
    for point, one, other in zip(points, map(float, left), map(float, right), strict=True):
        _hold_at(formula, derivation, point, one, other)
    _hold_relations(formula, ([*map(float, left)], [*map(float, right)]))


def _hold_at(formula: str, derivation: Derivation, instance: Mapping[Any, Any], left: float, right: float) -> None:
    ((_, signs),) = chains(formula)
    sign = {"<=": "≤", ">=": "≥", "==": "="}.get(derivation.conclusion.rel_op, derivation.conclusion.rel_op)
    concluded = sides_at(derivation, instance)
    if signs != [sign]:
        turned = dict(zip("≤≥<>=", "≥≤><=", strict=True))[sign]
        if signs != [turned]:
            raise VerificationError(f"{formula!r}: {derivation.name} concludes {sign}")
        concluded = concluded[::-1]
    said, shown = left - right, concluded[0] - concluded[1]
    if not abs(said - shown) <= CLOSE * max(map(abs, (left, right, *concluded))):
        raise VerificationError(
            f"{formula!r}: the sides differ by {said:.6g}, and {derivation.name} concludes {concluded[0]:.6g} "
            f"{signs[0]} {concluded[1]:.6g}"
        )


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
