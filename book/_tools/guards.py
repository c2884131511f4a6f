"""The guards and the defaults of the library, each of which a test must reach: which there are.

A guard is a statement `raise`. A default belongs to a function or method that can be called by a name without an
underscore; a test reaches it by a call that leaves the argument out.
"""

import ast
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

EVENT = "smalltorch.reached"  # for sys.audit; its argument is a name as below


class Guard(NamedTuple):
    """A `raise`: its name, by its function and its number there, which does not change where lines move."""

    name: str
    line: int
    column: int  # in bytes
    bare: bool


def guards(text: str, path: str) -> list[Guard]:
    found: list[Guard] = []

    def walk(node: ast.AST, within: str, count: list[int]) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                walk(child, f"{within}.{child.name}".lstrip("."), [0])
                continue
            if isinstance(child, ast.Raise):
                count[0] += 1
                name = f"{path} {within} raise {count[0]}"
                found.append(Guard(name, child.lineno, child.col_offset, child.exc is None))
            walk(child, within, count)

    walk(ast.parse(text), "", [0])
    return found


def is_public(name: str) -> bool:
    """Of a function's qualified name."""
    return all(not part.startswith("_") or part in ("__init__", "__call__") for part in name.split("."))


def defaults(text: str, path: str) -> Iterator[tuple[str, int]]:
    """The names of the defaults of public functions and methods, as `FUNCTION(ARGUMENT)`, with their lines."""

    def walk(node: ast.AST, within: str) -> Iterator[tuple[str, int]]:
        for child in getattr(node, "body", []):
            if isinstance(child, ast.ClassDef):
                yield from walk(child, f"{within}{child.name}.")
            if isinstance(child, ast.FunctionDef) and is_public(name := f"{within}{child.name}"):
                given = child.args
                optional = [*given.posonlyargs, *given.args][
                    len(given.posonlyargs + given.args) - len(given.defaults) :
                ]
                optional += [a for a, default in zip(given.kwonlyargs, given.kw_defaults, strict=True) if default]
                yield from ((f"{path} {name}({a.arg})", child.lineno) for a in optional)

    yield from walk(ast.parse(text), "")


def unreached(reached: Collection[str], root: Path) -> list[str]:
    """The guards and defaults of the library that are not among the names of those reached, one line each."""
    found = []
    for file in sorted((root / "lib/smalltorch").rglob("*.py")):
        text, path = file.read_text(encoding="utf-8"), file.relative_to(root).as_posix()
        lines = text.splitlines()
        found += [
            f"{path}:{guard.line}: no test reaches {lines[guard.line - 1].strip()}"
            for guard in guards(text, path)
            if guard.name not in reached
        ]
        found += [
            f"{path}:{line}: no test leaves the argument to its default: {name.partition(' ')[2]}"
            for name, line in defaults(text, path)
            if name not in reached
        ]
    return found
