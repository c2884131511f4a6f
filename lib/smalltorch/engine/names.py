"""The symbols of an expression and what they were declared to be; no two may share a name."""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from sympy import Basic, Dummy, Expr, Indexed, IndexedBase, Integer, Product, Sum, Symbol
from sympy.core.function import AppliedUndef, FunctionClass

from smalltorch.engine.refusal import StepError
from smalltorch.engine.typeset import LOWERED, typeset

Name: TypeAlias = Symbol | IndexedBase | FunctionClass


def symbols_of(expr: Basic) -> set[Symbol]:
    """All symbols, bound ones and the labels of bases among them; no Dummies."""
    return {s for s in expr.atoms(Symbol) if not isinstance(s, Dummy)}


def declared(expr: Basic) -> set[Name]:
    """Symbols, bases and functions whose assumptions matter: bound indices and the labels of bases apart."""
    bases = {e.base for e in expr.atoms(Indexed)}
    functions = {e.func for e in expr.atoms(AppliedUndef)}
    bound = {limit[0] for s in expr.atoms(Sum, Product) for limit in s.limits}
    hidden = bound | {b.label for b in bases}
    return {s for s in symbols_of(expr) if s not in hidden} | bases | functions


def demand_unique(expressions: Iterable[Expr]) -> None:
    """Refuse two symbols, bases or functions of one name, or of names that look the same on the page.

    Raises:
        StepError: naming it.
    """
    by_name: dict[str, Name] = {}
    expressions = list(expressions)
    for expr in expressions:
        for name in sorted(_things(expr), key=str):
            other = by_name.setdefault(typeset(name), name)
            if other != name:
                kinds = {type(n) if isinstance(n, Symbol | IndexedBase) else FunctionClass for n in (name, other)}
                what = {Symbol: "symbols", IndexedBase: "bases", FunctionClass: "functions"}
                kind = what[kinds.pop()] if len(kinds) == 1 else "things"
                if str(name) != str(other):
                    raise StepError(f"two {kind} look alike on the page: {other} and {name}")
                raise StepError(f"two {kind} are called {name}, with different assumptions or of different kinds")
    for shown, name in by_name.items():  # x_{1} may be the first entry of x
        stem = LOWERED.fullmatch(shown)
        base = by_name.get(stem[1]) if stem else None
        if stem is None or not isinstance(base, IndexedBase) or isinstance(name, IndexedBase):
            continue
        if _may_be(stem[2], base, expressions) or getattr(by_name.get(stem[2]), "is_integer", False):
            raise StepError(f"the symbol {name} looks like an entry of {base}; call it otherwise")


def _may_be(number: str, base: IndexedBase, expressions: list[Expr]) -> bool:
    """Whether a number may be an index of a base: one that occurs, or not below all ranges."""
    if not number.isdigit():
        return False
    entries = {entry for e in expressions for entry in e.atoms(Indexed) if entry.base == base}
    lows = {limit[1] for e in expressions for q in e.atoms(Sum, Product) for limit in q.limits}
    below_all = lows and all((Integer(number) - lo).is_negative for lo in lows)
    return not below_all or any(Integer(number) in entry.indices for entry in entries)


def _things(expr: Basic) -> set[Name]:
    """All symbols (bound ones among them), bases and functions; a label counts where it stands alone."""
    if isinstance(expr, Symbol):
        return set() if isinstance(expr, Dummy) else {expr}
    if isinstance(expr, IndexedBase):
        return {expr}
    inner = set().union(*map(_things, expr.args)) if expr.args else set()
    return inner | {expr.func} if isinstance(expr, AppliedUndef) else inner


def properties(name: Name) -> Mapping[str, bool]:
    """The assumptions that a symbol, base or function was declared with."""
    if isinstance(name, FunctionClass):
        return name._kwargs
    return (name.label if isinstance(name, IndexedBase) else name)._assumptions_orig


def declaration(name: Name) -> list[str]:
    """What a name was declared to be, in words."""
    assumptions = properties(name)
    if assumptions.get("commutative") is False:
        return ["not commuting"]
    if isinstance(name, FunctionClass):
        assumptions = _fewest(assumptions)
    signs = {"nonnegative": "≥ 0", "positive": "> 0", "nonzero": "≠ 0", "nonpositive": "≤ 0", "negative": "< 0"}
    words = [signs.get(word, word) if holds else f"not {word}" for word, holds in assumptions.items()]
    return [" and ".join(words)] if words else ["complex"]


def _fewest(properties: Mapping[str, bool]) -> dict[str, bool]:
    """Properties from which all others follow: SymPy keeps for a function all that its declaration implies."""
    strong = [p for p in ("positive", "negative", "nonnegative", "nonpositive", "nonzero", "real") if properties.get(p)]
    chosen: dict[str, bool] = {}
    for name in [*strong, *sorted(properties)]:
        if Symbol("_", **chosen).assumptions0.get(name) != properties[name]:
            chosen[name] = properties[name]
    return chosen
