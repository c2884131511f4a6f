"""An instance of the hypotheses (to come)."""

from collections.abc import Iterable, Mapping

from sympy import Expr

from smalltorch.engine.sums import Range, Usable

Instance = Mapping[Expr, Expr]


def instance_of(hypotheses: Iterable[Usable], ranges: Mapping[Expr, Range]) -> Instance:
    return {}
