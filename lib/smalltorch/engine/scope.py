"""The scope of a derivation in words: for which sizes and under which hypotheses it holds."""

import re
from collections.abc import Iterable, Mapping

from sympy import Expr, S, Symbol

from smalltorch.engine.binders import Range
from smalltorch.engine.display import text
from smalltorch.engine.names import declaration, declared, properties, symbols_of
from smalltorch.engine.refusal import StepError
from smalltorch.engine.sums import Given, lacking

# What may be said of a symbol in words, and what may then have been declared of it at most.
_WORDS: Mapping[str, Mapping[str, bool]] = {
    "complex": {},
    "number": {},
    "real": {"real": True},
    "rational": {"rational": True},
    "integer": {"integer": True},
    "whole": {"integer": True},
    "natural": {"integer": True, "nonnegative": True},
    "non-zero": {"zero": False},
    "nonzero": {"zero": False},
    "positive": {"positive": True},
    "non-negative": {"nonnegative": True},
    "nonnegative": {"nonnegative": True},
    "negative": {"negative": True},
    "even": {"integer": True, "even": True},
    "odd": {"integer": True, "odd": True},
}
_QUANTIFIERS = "all|every|any|each"
_CONNECTING = {"and", "or", "at", "least", "most", "above", "below", "up", "to", "numbers", "number", "constants"}
# How a group of names is called that were declared alike; others as they were declared: `real x`.
_SAID = {
    "integer and > 0": "all {}",
    "integer and ≥ 0": "all {} ≥ 0",
    "> 0": "{} > 0",
    "≥ 0": "{} ≥ 0",
    "< 0": "{} < 0",
    "≤ 0": "{} ≤ 0",
    "not commuting": "{} that need not commute",
}
_BOUND = re.compile(r"(\w+) *(≥|>|≤|<|at least|above|at most|below) *(-?\d+)")


def scope_of(sides: Iterable[Expr], ranges: Mapping[Symbol, Range]) -> str:
    """What the names of a conclusion were declared to be, and the ranges of its indices: `all n; real x; p ≥ 0`."""
    names = set().union(*map(declared, sides)) - ranges.keys()
    by_words: dict[str, list[str]] = {}
    for name in sorted(names, key=str):
        for words in declaration(name):
            by_words.setdefault(words, []).append(str(name))
    said = [
        _SAID.get(words, f"{words} {{}}").format(", ".join(group))
        for words, group in sorted(by_words.items(), key=_sizes_first)
    ]
    return "; ".join([*said, *(f"{index} from {lo} to {hi}" for index, (lo, hi) in ranges.items())])


def _sizes_first(group: tuple[str, list[str]]) -> tuple[bool, str]:
    return not group[0].startswith("integer"), group[0]


def demand_scope(scope: str, chain: Iterable[Expr], given: Iterable[Given]) -> None:
    """Refuse words that claim more than was proved: "all n" where n does not occur or n ≤ 3 is assumed, "every complex
    a" where a is > 0, "any matrix", of which no name speaks.

    After all, every, any or each come names that occur, and what they were declared to be. What else the scope says
    stands before that, or after "where" or "with".

    Raises:
        StepError: naming the symbol or the word.
    """
    symbols = {s.name: s for expr in chain for s in symbols_of(expr)}
    claimed: dict[str, Mapping[str, bool]] = {name: said for name, said in _claims(scope).items() if name in symbols}
    for quantified in re.findall(rf"\b(?:{_QUANTIFIERS})\b((?:(?!\b(?:where|with|{_QUANTIFIERS})\b|;).)*)", scope):
        for word in re.findall(r"[^\s,]+", quantified):
            if word in symbols:
                claimed.setdefault(word, properties(symbols[word]))
            elif word not in _all_words() | _CONNECTING and not re.fullmatch(r"-?\d+|[≥>≤<]", word):
                raise StepError(
                    f"the scope says {scope!r}, and {word} does not occur; after all, every, any or each say names "
                    "that do, or real, integer, positive … and names: 'all n and real r'"
                )
    for name, said in claimed.items():
        anyone = Symbol("_", **said)
        if missing := lacking(anyone, symbols[name]):
            was = ", ".join(properties(symbols[name]))
            raise StepError(
                f"the scope says {scope!r}, and {name} was declared {was}: it need not be {missing[0]} there"
            )
        for fact in given:
            implied = fact.statement.func(*[e.xreplace({symbols[name]: anyone}) for e in fact.statement.args]) is S.true
            if declared(fact.statement) - set(fact.free) == {symbols[name]} and not implied:
                raise StepError(f"the scope says {scope!r}, and {text(fact.statement)} is assumed of {name}")


def _all_words() -> set[str]:
    return {*_WORDS, *(f"{word}s" for word in _WORDS)}


def _claims(scope: str) -> dict[str, dict[str, bool]]:
    """What the scope says of each name: the words before it in the same part, and its bound, if that is a number."""
    claims: dict[str, dict[str, bool]] = {}
    for part in re.split(r";| in | with | where ", scope):
        said: dict[str, bool] = {}
        for word in re.findall(r"[\w-]+", part):
            if word in _all_words():
                said |= _WORDS.get(word, _WORDS.get(word.removesuffix("s"), {}))
                claims.setdefault("", {})
            elif "" in claims:
                claims[word] = dict(said)
        claims.pop("", None)
    for name, relation, number in _BOUND.findall(scope):
        above, bound = relation in ("≥", ">", "at least", "above"), int(number)
        strict = relation in (">", "above")
        said = {"real": True}
        if above and bound >= 0:
            said = {"positive": True} if bound > 0 or strict else {"nonnegative": True}
        claims[name] = claims.get(name, {}) | said
    return claims
