"""Which files a file of Python uses, by the imports that are written in it, and what of them can change a number.

A stored table, an outcome of the tests and a check of a change all hold as long as this stays the same.
"""

import ast
import json
from collections.abc import Iterable, Sequence
from functools import cache
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

from smalltorch.files import read_notebook


def closure(path: str, root: Path, folders: Sequence[str]) -> set[str]:
    """The files that are run when this one is: itself, what it imports, and what that imports.

    Args:
        path: of the file, from the root; of a notebook, the code cells count.
        root: the folder of the checkout; the paths that are returned begin there.
        folders: where modules are looked for, as `sys.path` would, from the root.

    An import counts wherever it stands, also within a function. What is not found in the folders is a package of
    somebody else's.
    """
    found, waiting = {path}, [path]
    while waiting:
        new = imported(waiting.pop(), root, tuple(folders)) - found
        found |= new
        waiting += new
    return found


@cache
def imported(path: str, root: Path, folders: tuple[str, ...]) -> frozenset[str]:
    """The files that a file imports directly, with those of the packages around them."""
    found: set[str] = set()
    for level, names in _imports(code_of(root / path)):
        where = (Path(path).parents[level - 1].as_posix(),) if level else folders
        found.update(*(_files(name, where, root) for name in names))
    return frozenset(found)


@cache
def _imports(code: str) -> list[tuple[int, list[str]]]:
    """Of each import the number of its dots, and what it may name: `from a import b` may name the module a.b."""
    found = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            found.append((0, [alias.name for alias in node.names]))
        elif isinstance(node, ast.ImportFrom):
            package = f"{node.module}." if node.module else ""
            found.append((node.level, [package + alias.name for alias in node.names]))
    return found


def _files(name: str, folders: Iterable[str], root: Path) -> list[str]:
    """The files that are run when the module is imported: those of the packages around it, and its own."""
    steps, found = name.split("."), []
    prefixes = ["" if folder in ("", ".") else f"{folder}/" for folder in folders]
    for depth in range(1, len(steps) + 1):
        place = "/".join(steps[:depth])
        candidates = (f"{prefix}{place}{end}" for prefix in prefixes for end in (".py", "/__init__.py"))
        found += list(islice((path for path in candidates if _is_there(path, root)), 1))
    return found


@cache
def _is_there(path: str, root: Path) -> bool:
    return (root / path).is_file()


def code_of(path: Path) -> str:
    """The code of a module, or of a notebook's cells."""
    if path.suffix != ".ipynb":
        return path.read_text(encoding="utf-8")
    cells = [cell for cell in read_notebook(path)["cells"] if cell["cell_type"] == "code"]
    return "\n".join("".join(cell["source"]) for cell in cells)


def fingerprint(paths: Iterable[str], root: Path) -> str:
    """A digest of what the files mean, whatever their order."""
    return digest([[path, meaning(root / path)] for path in sorted(set(paths))])


def meaning(path: Path) -> str:
    """What of a file can change numbers: of code all but comments, docstrings and form; the bytes of any other file."""
    if path.suffix in (".py", ".ipynb"):
        return _meaning_of_code(code_of(path))
    return sha256(path.read_bytes()).hexdigest()


@cache
def _meaning_of_code(code: str) -> str:
    return digest(tree(ast.parse(code)))


def tree(node: Any) -> Any:
    """A syntax tree as lists, the same for all versions of Python: without places, docstrings and empty fields."""
    if isinstance(node, list):
        return [tree(entry) for entry in node]
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = dict(ast.iter_fields(node))
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
        fields["body"] = fields["body"][1:]
    kept = {name: tree(value) for name, value in fields.items() if value not in (None, [])}
    return [type(node).__name__, sorted((name, value) for name, value in kept.items() if name not in ("ctx", "kind"))]


def digest(what: Any) -> str:
    """SHA-256 of anything that JSON can hold."""
    return sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()
