"""Exercise checkers outside of their notebooks: each with a right answer of its chapter, and this answer spoilt.

Of a notebook only those statements run that the cell which tries the solutions depends on.
"""

from __future__ import annotations

import ast
import math
import symtable
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import numpy as np
import torch
from nbformat import NotebookNode


class Statement:
    """A statement of a notebook: the names that it binds, and those that it or its functions read."""

    def __init__(self, node: ast.stmt) -> None:
        self.node = node
        table = symtable.symtable(ast.unparse(node), "cell", "exec")
        self.binds = {one.get_name() for one in table.get_symbols() if one.is_assigned() or one.is_imported()}
        self.binds |= {one.get_name() for one in table.get_symbols() if one.is_namespace()}
        self.binds |= {f.value.id for f in _stored(node) if isinstance(f.value, ast.Name)}
        self.reads = {one.get_name() for one in table.get_symbols() if one.is_referenced()}
        self.reads |= {name for child in table.get_children() for name in _globals(child)}
        if isinstance(node, ast.AugAssign):
            self.reads |= self.binds


def _stored(node: ast.stmt) -> Iterator[ast.Attribute | ast.Subscript]:
    """What a statement changes in place by an assignment."""
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute | ast.Subscript) and isinstance(part.ctx, ast.Store):
            yield part


def _globals(table: symtable.SymbolTable) -> set[str]:
    own = {one.get_name() for one in table.get_symbols() if one.is_global() and one.is_referenced()}
    return own.union(*map(_globals, table.get_children()))


def needed(statements: list[Statement], wanted: list[int]) -> list[int]:
    """The places of the statements that these depend on, and of these, in their order.

    A name is what the last statement before has made of it, and so on back to one that does not read it; what a
    function reads may also be bound between its definition and its first use.
    """
    found: set[int] = set()
    queue = list(wanted)
    while queue:
        place = queue.pop()
        if place in found:
            continue
        found.add(place)
        for name in statements[place].reads:
            binding = [at for at, one in enumerate(statements) if name in one.binds]
            before = [at for at in binding if at < place]
            for at in reversed(before):
                queue.append(at)
                if name not in statements[at].reads:
                    break
            queue += binding[:1] if not before else []
    return sorted(found)


def answers(notebook: NotebookNode) -> dict[str, tuple[Callable[[Any], str], Callable[..., Any]]]:
    """Each checker of a notebook, by its name, with the first answer that its chapter tries and it calls right."""
    statements, tried = [], []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            nodes = ast.parse(cell.source).body
            if any(_tries(node) for node in nodes):
                tried = [*range(len(statements), len(statements) + len(nodes))]
            statements += map(Statement, nodes)
    right: dict[str, tuple[Callable[[Any], str], Callable[..., Any]]] = {}
    names: dict[str, Any] = {"__name__": "checkers"}
    for place in needed(statements, tried):
        node = statements[place].node
        exec(compile(ast.Module([node], []), "cell", "exec"), names)  # noqa: S102
        if isinstance(node, ast.FunctionDef) and node.name.startswith("check_"):
            names[node.name] = _watched(node.name, names[node.name], right)
    return right


def _tries(node: ast.stmt) -> bool:
    """Whether a statement, which is no function, asks a checker."""
    inside = () if isinstance(node, ast.FunctionDef) else ast.walk(node)
    return any(isinstance(part, ast.Name) and part.id.startswith("check_") for part in inside)


def _watched(name: str, checker: Callable[[Any], str], right: dict) -> Callable[[Any], str]:
    def watched(answer: Callable[..., Any]) -> str:
        reply = checker(answer)
        if reply == "Right.":
            right.setdefault(name, (checker, answer))
        return reply

    return watched


def spoilt(returned: Any, bad: float, places: range) -> tuple[Any, int]:
    """What was returned, with `bad` at these places of its numbers; and how many it has, texts counted like numbers."""
    size = 0

    def spoil(part: Any) -> Any:
        nonlocal size
        if isinstance(part, dict):
            return {key: spoil(value) for key, value in part.items()}
        if isinstance(part, list | tuple):
            return type(part)(map(spoil, part))
        values = torch.as_tensor(part).double() if isinstance(part, torch.Tensor | np.ndarray) else torch.zeros(())
        place = torch.arange(size, size + values.numel()).reshape(values.shape)
        size += values.numel()
        if isinstance(part, torch.Tensor | np.ndarray):
            return values.masked_fill((place >= places.start) & (place < places.stop), bad)
        return bad if int(place) in places else part

    return spoil(returned), size


def replies(checker: Callable[[Any], str], answer: Callable[..., Any]) -> dict[str, str]:
    """What a checker says to its right answer where numbers are none: all, one, or those of the last call."""
    calls = 0

    def counted(*given: Any) -> Any:
        nonlocal calls
        calls += 1
        return answer(*given)

    if (reply := checker(counted)) != "Right.":
        raise ValueError(f"{checker.__name__} calls its own answer wrong: {reply}")

    def reply_to(places: Callable[[int], range], first: int = 0, bad: float = math.nan) -> str:
        call = count()

        def made_bad(*given: Any) -> Any:
            returned = answer(*given)
            size = spoilt(returned, bad, range(0))[1]
            return spoilt(returned, bad, places(size) if next(call) >= first else range(0))[0]

        return checker(made_bad)

    return {
        "all": reply_to(range),
        "the first": reply_to(lambda size: range(1)),
        "the last": reply_to(lambda size: range(size - 1, size)),
        "those of the last call": reply_to(range, calls - 1),
        "all, ∞": reply_to(range, bad=math.inf),
        "all, −∞": reply_to(range, bad=-math.inf),
    }


def blind(notebook: NotebookNode) -> list[str]:
    """The conditions of a notebook's checkers that refuse an answer by `error > tolerance`, which NaN never is."""
    found = []
    for cell in notebook.cells:
        if cell.cell_type == "code" and "\ndef check_" in f"\n{cell.source}":
            choices = [node for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.If)]
            found += [
                ast.unparse(part)
                for choice in choices
                for part in _parts(choice.test)
                if isinstance(part, ast.Compare)
                and isinstance(part.ops[-1], ast.Gt | ast.GtE)
                and any(_is_small(number) for number in ast.walk(part.comparators[-1]))
                and "'Right.'" not in ast.unparse(choice.body[0])
            ]
    return found


def _parts(test: ast.expr) -> list[ast.expr]:
    """What a condition puts together by `and` and `or`."""
    return [part for one in test.values for part in _parts(one)] if isinstance(test, ast.BoolOp) else [test]


def _is_small(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, float) and 0 < node.value <= 0.05
