"""The solutions of exercises: the code that a page shows is the code that the chapter tries."""

import ast
import re
from collections.abc import Iterator

from nbformat import NotebookNode

SOLUTION = re.compile(r"(?ms)^(:{3,})\{solution\} (\S+)\n(.*?)^\1$")
FENCE = re.compile(r"(?ms)^```python\n(.*?)^```$")


def code_of(notebook: NotebookNode) -> Iterator[tuple[str, str]]:
    """The label of each exercise whose solution has code, and that."""
    for cell in notebook.cells:
        for _, label, text in SOLUTION.findall(cell.source) if cell.cell_type == "markdown" else ():
            yield from ((label, code) for code in FENCE.findall(text))


def problems(notebook: NotebookNode) -> list[str]:
    """What of the solutions' code is not tried, one line each.

    It is tried if a cell that asks a checker has it, comments aside, or hands over what another cell defines so.
    """
    code = [ast.parse(cell.source).body for cell in notebook.cells if cell.cell_type == "code"]
    trying = [body for body in code if any(map(asks, body))]
    tried = {ast.dump(node) for body in trying for node in body}
    used = {part.id for body in trying for node in body for part in ast.walk(node) if isinstance(part, ast.Name)}
    defined = {node.name: ast.dump(node) for body in code for node in body if isinstance(node, ast.FunctionDef)}
    found = []
    for label, text in code_of(notebook):
        for node in ast.parse(text).body:
            name = node.name if isinstance(node, ast.FunctionDef) else ""
            same = ast.dump(node) == defined.get(name) if name else ast.dump(node) in tried
            if not same or (name and name not in used):
                found.append(f"the solution of {label} is not what is tried: {text.splitlines()[node.lineno - 1]}")
    return found


def asks(node: ast.stmt) -> bool:
    """Whether a statement, which is no function, asks a checker."""
    inside = () if isinstance(node, ast.FunctionDef) else ast.walk(node)
    return any(isinstance(part, ast.Name) and part.id.startswith("check_") for part in inside)
