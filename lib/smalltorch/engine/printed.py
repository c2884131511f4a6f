r"""Find the numbers and inequalities in a text, and tell which of them are trivial.

What is trivial: 0, 1 and 2, also as words; in formulas whole numbers up to 10, except as exponents of 10 and 2; numbers
in code, in roles and in links, of cases, and in parentheses those of equations.

Standard library only: what reads all chapters need not wait for torch.
"""

import math
import re
from dataclasses import dataclass

FORMULA = re.compile(r"\$\$(?P<shown>.+?)\$\$|(?<!\\)\$(?P<inline>[^$]+?)(?<!\\)\$")
SILENT = re.compile(
    r"(\{[\w:-]+\})?(`+)(?!`).+?(?<!`)\2(?!`)|\]\([^()\s]*\)"  # code, roles, links
    r"|(?<=[Cc]ase )\d|\(\d\)"  # cases, equations
)
UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
VALUES = dict(zip(UNITS + TENS, [*range(20), *range(20, 91, 10)], strict=True))
ROUND = {"hundred": 100, "thousand": 1000, "million": 10**6}
BINARY = {"hundred": 100, "thousand": 2**10, "million": 2**20}
# A number in words, as a whole: twenty-five, two hundred and three, ten thousand, a hundred million.
SMALL = rf"(?:(?:{'|'.join(TENS)})(?:-(?:{'|'.join(UNITS[1:10])}))?|{'|'.join(reversed(UNITS))})"
HUNDREDS = rf"(?:(?:{SMALL}\s)?hundred(?:\s(?:and\s)?{SMALL}(?![-\w]))?|{SMALL})"
WORDS = rf"(?:(?:{HUNDREDS}\s)?(?:thousand|million)(?:\s(?:and\s)?{HUNDREDS}(?![-\w]))?|{HUNDREDS})"
MINUS = r"(?:(?<![\w)\]}¤.])[-−](?=\d)|\bminus\s)?"  # between numbers it subtracts, or is a dash
IN_PROSE = re.compile(
    rf"{MINUS}(?:(?<![\w.])(?<![A-Za-z]-)\d[\d,]*(?<!,)(?:\.\d+)?(?!\w)|\b{WORDS}\b(?!-))", re.IGNORECASE
)
TRIVIAL = re.compile(r"(?:[-−]|minus\s)?(?:[012]|zero|one|two)")
IN_FORMULAS = re.compile(r"(?<![\d.])(?<!frac)\d+(?:\.\d+)?|(?<=frac)\d")
POWERS = re.compile(r"(?<![\d._])(?:10|2)\^(?:\{(-?\d+)\}|(\d))")  # of ten and two
SIGNED = re.compile(  # what stands before a number with a minus sign: a bracket, another sign, or nothing
    r"(?:[({\[=,;:<>&|^$]|\\[,;!:> ]|\\(?:leq?|geq?|[lg]t|to|in|cdot|times|approx|sim|q?quad))\s*"
    r"(?P<minus>-\s*(?:\\[td]?frac\{?)?)$"
)
SIGNS = {r"\le": "≤", r"\leq": "≤", r"\ge": "≥", r"\geq": "≥", r"\lt": "<", r"\gt": ">", "<": "<", ">": ">", "=": "="}
SIGN = re.compile(r"\\(?:leq?|geq?|lt|gt)(?![A-Za-z])|[<>=]")


@dataclass(frozen=True)
class Printed:
    """A number as the text has it: where it begins and ends, its value, and how far from it the truth may be.

    `binary`: the power of two that the text may mean by it as well, 1024 by a thousand.
    """

    start: int
    end: int
    text: str
    value: float
    within: float
    binary: float = math.nan


def numbers_in(text: str) -> list[Printed]:
    """The numbers of a piece of Markdown that are not trivial.

        >>> [found.text for found in numbers_in("Of 9 heads on twelve texts, $2^{12}$ or 1.50 of 2 (GPT-2).")]
        ['9', 'twelve', '12', '1.50']
        >>> [(found.text, found.value) for found in numbers_in("$-12.5$, below $10^{-9}$, two hundred")]
        [('-12.5', -12.5), ('-9', -9.0), ('two hundred', 200.0)]

    Which ones are trivial, the head of this module says.
    """
    masked = SILENT.sub(lambda match: "¤" * len(match[0]), text)
    formulas = [match.span() for match in FORMULA.finditer(masked)]
    prose = FORMULA.sub(lambda match: "¤" * len(match[0]), masked)
    if re.search(r"(?<!\\)\$", prose):
        raise ValueError(f"text: a formula is cut through in {text!r}")
    found = [_printed(*match.span(), match[0]) for match in IN_PROSE.finditer(prose)]
    found = [one for one in found if not TRIVIAL.fullmatch(one.text.lower())]
    for start, end in formulas:
        exponents = {match.end(match.lastindex or 0) for match in POWERS.finditer(masked, start, end)}
        for match in IN_FORMULAS.finditer(masked, start, end):
            minus = SIGNED.search(masked[start : match.start()])
            sign = start + minus.start("minus") if minus else match.start()
            if "." in match[0] or float(match[0]) > 10 or match.end() in exponents:
                found.append(_printed(sign, match.end(), f"{'-' if minus else ''}{match[0]}"))
    return sorted(found, key=lambda one: one.start)


def _printed(start: int, end: int, text: str) -> Printed:
    minus, plain = re.fullmatch(r"([-−]|minus\s)?(.+)", text.lower(), re.DOTALL).groups()  # type: ignore[union-attr]
    sign, digits = -1 if minus else 1, plain.replace(",", "")
    if not digits[0].isdigit():
        value, binary, last = _in_words(plain)
        within = value / 40 if last in ROUND else 0.5  # a round number need not be exact
        return Printed(start, end, text, sign * value, within, sign * binary)
    return Printed(start, end, text, sign * float(digits), 0.5 * 10.0 ** -len(digits.partition(".")[2]))


def _in_words(text: str) -> tuple[float, float, str]:
    """The value of a number in words, the same in powers of two, and its last word."""
    words = [word for word in re.split(r"[-\s]", text.lower()) if word and word != "and"]
    values = []
    for powers in (ROUND, BINARY):
        total, group = 0.0, 0.0
        for word in words:
            if word == "hundred":
                group = 100 * (group or 1)
            elif word in powers:
                total, group = total + powers[word] * (group or 1), 0.0
            else:
                group += VALUES[word]
        values.append(total + group)
    return values[0], values[1], words[-1]


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
