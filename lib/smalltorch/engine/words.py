r"""The words of a chapter, held: each number and each inequality of its text beside what the chapter computed.

    >>> held(numbers=[("the norm is 88 per cent of the bound", 87.6)], relations=[(r"$\sqrt n\le n$", 2.0, 4.0)])
    the text is held: 1 number in 1 sentence, 1 inequality, 0 citations

A sentence is quoted as it stands in the text, so that its numbers are typed twice, and the second time beside the
expression that they come from. A notebook cannot read itself; `book/_tools/words.py` reads it, and finds the numbers
and inequalities that no quotation covers, and quotations that the text does not have.

What is trivial, and covered by nothing: 0, 1 and 2, also as words; in formulas whole numbers up to 10; numbers in code,
in roles and in links, of cases, and in parentheses those of equations.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from sympy import Expr, Indexed, IndexedBase, Symbol
from torch import Tensor

from smalltorch.engine.check import VerificationError
from smalltorch.engine.derive import Derivation

FORMULA = re.compile(r"\$\$(?P<shown>.+?)\$\$|(?<!\\)\$(?P<inline>[^$]+?)(?<!\\)\$")
SILENT = re.compile(
    r"(\{[\w:-]+\})?(`+)(?!`).+?(?<!`)\2(?!`)|\]\([^()\s]*\)"  # code, roles, links
    r"|(?<=[Cc]ase )\d|\(\d\)"  # cases, equations
)
WORDS = dict(
    zip(
        "three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
        "nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million".split(),
        [*range(3, 21), *range(30, 91, 10), 100, 1000, 10**6],
        strict=True,
    )
)
IN_PROSE = re.compile(
    rf"(?<![\w.])(?<![A-Za-z]-)\d[\d,]*(?<!,)(?:\.\d+)?(?!\w)|\b(?:{'|'.join(WORDS)})\b(?!-)", re.IGNORECASE
)
IN_FORMULAS = re.compile(r"(?<![\d.])(?<!frac)\d+(?:\.\d+)?|(?<=frac)\d")
SIGNS = {r"\le": "≤", r"\leq": "≤", r"\ge": "≥", r"\geq": "≥", r"\lt": "<", r"\gt": ">", "<": "<", ">": ">", "=": "="}
SIGN = re.compile(r"\\(?:leq?|geq?|lt|gt)(?![A-Za-z])|[<>=]")
HOLDS = {"<": torch.lt, ">": torch.gt, "≤": torch.le, "≥": torch.ge}
CLOSE = 1e-9  # the sides of an equation, and of an inequality that is attained


@dataclass(frozen=True)
class Printed:
    """A number as the text has it: where it begins and ends, its value, and how far from it the truth may be."""

    start: int
    end: int
    text: str
    value: float
    within: float


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


def held(
    *,
    numbers: Sequence[tuple[Any, ...]] = (),
    relations: Sequence[tuple[Any, ...]] = (),
    derived: Sequence[tuple[str, Derivation, Mapping[Any, Any], float | Tensor, float | Tensor]] = (),
    citations: Sequence[str] = (),
) -> Held:
    r"""Hold quotations of the chapter's text against what was computed.

    Args:
        numbers: a quotation, and the value of each of its numbers that is not trivial, in order.
        relations: a formula, and the values of its sides, in order: numbers, or tensors of one shape, of which at least
            one entry must tell the two sides of an inequality apart.
        derived: a formula of one relation, the derivation whose conclusion it is, though terms may have changed sides;
            values for the symbols of that, and the two sides of the formula computed from the same values.
        citations: quotations with the roles in them that cite; there is nothing to compute.

    Raises:
        VerificationError: if a number is not what its value is rounded to, a relation does not hold or would hold
            turned round, or a derivation concludes something else.
        ValueError: for a quotation with another number of numbers or sides than there are values.
    """
    for quotation, *values in numbers:
        _hold_numbers(quotation, values)
    for formula, *sides in relations:
        _hold_relations(formula, sides)
    for formula, derivation, instance, left, right in derived:
        _hold_conclusion(formula, derivation, instance, left, right)
    count = sum(len(values) for _, *values in numbers)
    return Held(count, len(numbers), len(relations) + len(derived), len(citations))


# -- numbers -----------------------------------------------------------------------------------------------------------


def numbers_in(text: str) -> list[Printed]:
    """The numbers of a piece of Markdown that are not trivial.

        >>> [found.text for found in numbers_in("Of 9 heads on twelve texts, $2^{12}$ or 1.50 of 2 (GPT-2).")]
        ['9', 'twelve', '12', '1.50']

    Which ones are trivial, the head of this module says.
    """
    masked = SILENT.sub(lambda match: "¤" * len(match[0]), text)
    formulas = [match.span() for match in FORMULA.finditer(masked)]
    prose = FORMULA.sub(lambda match: "¤" * len(match[0]), masked)
    if re.search(r"(?<!\\)\$", prose):
        raise ValueError(f"text: a formula is cut through in {text!r}")
    found = [_printed(match, 0) for match in IN_PROSE.finditer(prose)]
    found = [one for one in found if one.text.lower() in WORDS or one.text not in ("0", "1", "2")]
    for start, end in formulas:
        inside = [_printed(match, start) for match in IN_FORMULAS.finditer(masked[start:end])]
        found += [one for one in inside if "." in one.text or one.value > 10]
    return sorted(found, key=lambda one: one.start)


def _printed(match: re.Match[str], offset: int) -> Printed:
    text = match[0]
    if value := WORDS.get(text.lower(), 0):
        within = 0.05 * value if value >= 100 else 0.5  # a thousand is 1024 too
    else:
        value, within = float(text.replace(",", "")), 0.5 * 10.0 ** -len(text.partition(".")[2])
    return Printed(offset + match.start(), offset + match.end(), text, value, within)


def _hold_numbers(quotation: str, values: Sequence[Any]) -> None:
    found = numbers_in(quotation)
    if not found or len(found) != len(values):
        raise ValueError(
            f"numbers: {quotation!r} has {len(found)} that are not trivial "
            f"({', '.join(one.text for one in found)}), and {len(values)} values"
        )
    for one, value in zip(found, map(float, values), strict=True):
        if not abs(value - one.value) <= one.within * (1 + CLOSE):
            raise VerificationError(f"{quotation!r} says {one.text}, and it is {value:.6g}")


# -- relations ---------------------------------------------------------------------------------------------------------


def relations_in(text: str) -> list[tuple[int, int]]:
    """Where the formulas of a piece of Markdown stand that have an inequality in them."""
    masked = re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", lambda match: "¤" * len(match[0]), text)
    formulas = FORMULA.finditer(masked)
    return [match.span() for match in formulas if any(set(signs) - {"="} for _, signs in chains(match[0]))]


def chains(formula: str) -> list[tuple[list[str], list[str]]]:
    r"""The statements of a formula, between commas with a space after them: sides and signs of each.

        >>> chains(r"$$1\;\le\; a_{i=1} < b,\qquad c=d .$$")
        [(['1', 'a_{i=1}', 'b'], ['≤', '<']), (['c', 'd'], ['='])]

    Signs within braces belong to subscripts.
    """
    plain = re.sub(r"\\[;,!:]|\\ ", " ", formula.strip().strip("$")).strip().rstrip(".,")
    found = []
    for statement in re.split(r",\s*\\q?quad(?![A-Za-z])", plain):
        sides, signs, begin = [], [], 0
        for match in SIGN.finditer(statement):
            before = statement[: match.start()]
            if before.count("{") == before.count("}"):
                sides.append(before[begin:])
                signs.append(SIGNS[match[0]])
                begin = match.end()
        found.append(([side.strip().rstrip(":").strip() for side in [*sides, statement[begin:]]], signs))
    return found


def _hold_relations(formula: str, values: Sequence[Any]) -> None:
    statements = chains(formula)
    names = [side for sides, _ in statements for side in sides]
    if len(names) != len(values) or not any(signs for _, signs in statements):
        raise ValueError(f"relations: {formula!r} has the sides {', '.join(names)}, and {len(values)} values")
    given = iter(torch.as_tensor(value, dtype=torch.float64) for value in values)
    for sides, signs in statements:
        for (left, right), sign in zip(pairwise([next(given) for _ in sides]), signs, strict=True):
            _hold(formula, left, sign, right)


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
    formula: str, derivation: Derivation, instance: Mapping[Any, Any], left: float | Tensor, right: float | Tensor
) -> None:
    ((_, signs),) = chains(formula)
    sign = {"<=": "≤", ">=": "≥", "==": "="}.get(derivation.conclusion.rel_op, derivation.conclusion.rel_op)
    concluded = sides_at(derivation, instance)
    if signs != [sign]:
        turned = dict(zip("≤≥<>=", "≥≤><=", strict=True))[sign]
        if signs != [turned]:
            raise VerificationError(f"{formula!r}: {derivation.name} concludes {sign}")
        concluded = concluded[::-1]
    said, shown = float(left) - float(right), concluded[0] - concluded[1]
    if not abs(said - shown) <= CLOSE * max(map(abs, (float(left), float(right), *concluded))):
        raise VerificationError(
            f"{formula!r}: the sides differ by {said:.6g}, and {derivation.name} concludes {concluded[0]:.6g} "
            f"{signs[0]} {concluded[1]:.6g}"
        )
    _hold_relations(formula, (left, right))


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
