"""Names: the symbols, bases and functions of an expression, what they were declared to be; and no two share one."""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from sympy import Basic, Dummy, Expr, Indexed, IndexedBase, Product, Sum, Symbol
from sympy.core.function import AppliedUndef, FunctionClass

from smalltorch.engine.refusal import StepError

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
    """Refuse two symbols, bases or functions of one name.

    Raises:
        StepError: naming it.
    """
    by_name: dict[str, Name] = {}
    for expr in expressions:
        for name in sorted(_things(expr), key=str):
            other = by_name.setdefault(str(name), name)
            if other != name:
                kinds = {type(n) if isinstance(n, Symbol | IndexedBase) else FunctionClass for n in (name, other)}
                what = {Symbol: "symbols", IndexedBase: "bases", FunctionClass: "functions"}
                kind = what[kinds.pop()] if len(kinds) == 1 else "things"
                raise StepError(f"two {kind} are called {name}, with different assumptions or of different kinds")


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
