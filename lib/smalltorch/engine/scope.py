"""The scope of a derivation: words for its title, which may not say more than was declared and assumed."""

import re
from collections.abc import Iterable, Mapping

from sympy import Expr, S, Symbol

from smalltorch.engine.names import declared, properties, symbols_of
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
_BOUND = re.compile(r"(\w+) *(≥|>|≤|<|at least|above|at most|below) *(-?\d+)")


def demand_scope(scope: str, chain: Iterable[Expr], given: Iterable[Given]) -> None:
    """Refuse "all n" where n does not occur, "every complex a" where a is > 0, "every real r" where r ≥ 1 is assumed.

    Raises:
        StepError: naming the symbol.
    """
    symbols = {s.name: s for expr in chain for s in symbols_of(expr)}
    if scope.startswith("all "):
        for size in scope.removeprefix("all ").split(",")[0].split(" and "):
            if size.strip() not in symbols and not set(size.split()) & _all_words():
                raise StepError(f"the scope says all {size.strip()}, which does not occur")
    claimed = {name: said for name, said in _claims(scope).items() if name in symbols}
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
                raise StepError(f"the scope says {scope!r}, and {fact.statement} is assumed of {name}")


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
