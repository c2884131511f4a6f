"""Test the exercise checkers outside of their notebooks: with the chapter's right answer, and with corrupted ones.

Of a notebook only those statements run that the cell which tries the solutions depends on.
"""

import ast
import math
import symtable
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from typing import Any

import numpy as np
import torch
from nbformat import NotebookNode

import solutions


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


def answers(
    notebook: NotebookNode, reached: Callable[[Any], None] = lambda place: None
) -> dict[str, tuple[Callable[[Any], str], Callable[..., Any]]]:
    """Each checker of a notebook, by its name, with the first answer that its chapter tries and it calls right."""
    statements, tried = [], []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            nodes = ast.parse(cell.source).body
            if any(map(solutions.asks, nodes)):
                tried = [*range(len(statements), len(statements) + len(nodes))]
            statements += map(Statement, nodes)
    right: dict[str, tuple[Callable[[Any], str], Callable[..., Any]]] = {}
    names: dict[str, Any] = {"__name__": "checkers", "_reached": reached}
    for place in needed(statements, tried):
        node = statements[place].node
        is_checker = isinstance(node, ast.FunctionDef) and node.name.startswith("check_")
        if is_checker:
            Marked(node)
        exec(compile(ast.Module([node], []), "cell", "exec"), names)  # noqa: S102
        if is_checker:
            names[node.name] = _watched(node.name, names[node.name], right)
    return right


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


# --- branches ---------------------------------------------------------------------------------------------------------

# Wrong answers of many kinds, made of the right one: what is returned, or a part of it, is another number or matrix.
CHANGES: list[Callable[[torch.Tensor], torch.Tensor]] = [
    torch.neg, torch.square, torch.exp, torch.zeros_like, torch.ones_like, torch.abs, torch.reciprocal,
    *(lambda x, k=k: k * x for k in (0.1, 0.25, 1 / 3, 0.5, math.log(2), 0.98, 1.02, 1.5, 2, 3, 4, 10)),
    *(lambda x, k=k: x + k for k in (-2, -1, -0.01, 0.01, 0.1, 0.5, 1, 2)),
    lambda x: x.abs().sqrt(), lambda x: x.abs().log(), lambda x: 1 - x,
    *(lambda x, d=d: x.flip(d) if x.ndim else x for d in (0, -1)),
    *(lambda x, d=d: x.roll(1, d) if x.ndim else x for d in (0, -1)),
    *(lambda x, d=d: x.mean(d, keepdim=True).expand_as(x) if x.ndim else x for d in (0, -1)),
    *(lambda x, d=d: x - x.mean(d, keepdim=True) if x.ndim else x for d in (0, -1)),
    lambda x: x / x.sum(-1, keepdim=True) if x.ndim else x, lambda x: x.sort(-1).values if x.ndim else x,
    lambda x: x.cumsum(-1) if x.ndim else x, lambda x: x[..., :-1] if x.ndim else x,
    lambda x: torch.cat([x[..., :-1], 1.5 * x[..., -1:] + 0.1], -1) if x.ndim else x,
    lambda x: x.mT if x.ndim > 1 else x, lambda x: x.tril() if x.ndim > 1 else x,
    lambda x: torch.eye(*x.shape[-2:], dtype=x.dtype).expand_as(x) if x.ndim > 1 else x,
]  # fmt: skip


def changed(returned: Any, change: Callable[[torch.Tensor], torch.Tensor], only: int | None) -> Any:
    """What was returned with numbers, lists of numbers and tensors changed: all, or the one at this place."""
    place = count()

    def go(part: Any) -> Any:
        numbers = isinstance(part, list | tuple) and all(type(one) in (int, float) for one in part)
        if isinstance(part, dict):
            return {key: go(value) for key, value in part.items()}
        if isinstance(part, list | tuple) and not numbers:
            return type(part)(map(go, part))
        if only not in (None, next(place)) or not (numbers or isinstance(part, int | float | torch.Tensor)):
            return part
        found = change(torch.as_tensor(part, dtype=torch.float64))
        if isinstance(part, torch.Tensor):
            return found > 0.5 if part.dtype == torch.bool else found
        whole = not torch.as_tensor(part).is_floating_point() and bool((found == found.round()).all())
        return type(part)((found.long() if whole else found).tolist()) if numbers else (int if whole else float)(found)

    return go(returned)


def wrong(answer: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """Answers that are wrong in the many ways, or given to the question of other numbers, or in another order."""
    for change in CHANGES:
        yield from (lambda *x, c=change, k=k: changed(answer(*x), c, k) for k in (None, 0, 1))
    for k in range(3):
        yield lambda *x, k=k: answer(*x[:k], x[k] + 1, *x[k + 1 :])  # of one less some would never end
        yield lambda *x, k=k: answer(*x[:k], x[k].flip(0), *x[k + 1 :])
        yield from (lambda *x, k=k, m=m: answer(*x[:m], x[k], *x[m + 1 : k], x[m], *x[k + 1 :]) for m in range(k))


class Marked(ast.NodeTransformer):
    """A checker that notes in `_reached` which of its returns it comes to, by the line."""

    def __init__(self, checker: ast.FunctionDef) -> None:
        self.name = checker.name
        checker.body = [self.visit(node) for node in checker.body]
        ast.fix_missing_locations(checker)

    def visit_Return(self, node: ast.Return) -> ast.Return:
        note = ast.parse(f"_reached({(self.name, node.lineno)})", mode="eval").body
        node.value = ast.BoolOp(ast.Or(), [note, node.value or ast.Constant(None)])
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        return node


def unreached(notebook: NotebookNode) -> list[str]:
    """What checkers may return, and do not, to any answer that the chapter tries or that is made of the right one."""
    reached: set[tuple[str, int]] = set()
    for checker, answer in answers(notebook, reached.add).values():
        replies(checker, answer)
        for other in wrong(answer):
            with suppress(Exception):  # what the answer raises is its own
                checker(other)
    found = []
    for cell in notebook.cells:
        for node in ast.parse(cell.source).body if cell.cell_type == "code" else ():
            if isinstance(node, ast.FunctionDef) and node.name.startswith("check_"):
                inner = {
                    part
                    for one in ast.walk(node)
                    if one is not node and isinstance(one, ast.FunctionDef)
                    for part in ast.walk(one)
                }
                returns = [part for part in ast.walk(node) if isinstance(part, ast.Return) and part not in inner]
                found += [
                    f"{node.name}: {ast.unparse(one)}" for one in returns if (node.name, one.lineno) not in reached
                ]
    return found
