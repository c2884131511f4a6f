"""The scope of a derivation: words for its title, which may not say more than was declared."""

from collections.abc import Iterable

from sympy import Expr

from smalltorch.engine.names import symbols_of
from smalltorch.engine.refusal import StepError
from smalltorch.engine.sums import Usable


def demand_scope(scope: str, chain: Iterable[Expr], given: Iterable[Usable]) -> None:
    """Refuse "all n" where n does not occur."""
    sizes = {s.name for expr in chain for s in symbols_of(expr)}
    if scope.startswith("all "):
        for size in scope.removeprefix("all ").split(",")[0].split(" and "):
            if size.strip() not in sizes:
                raise StepError(f"the scope says all {size.strip()}, which does not occur")
