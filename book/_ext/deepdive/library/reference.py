"""Parse the library's source without importing it: signatures, docstrings, and which chapter uses which name.

It knows nothing of Sphinx; `page` shows what it reads.
"""

import ast
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from smalltorch.files import read_notebook

PACKAGE = "smalltorch"
CHAPTER = re.compile(r"\b([Cc]hapter) `([\w-]+)`")  # in a docstring: the chapter that derives what it documents


@dataclass(frozen=True)
class Entry:
    """A public function, class, method or property; its kind is a directive of Sphinx's Python domain."""

    kind: str
    name: str
    signature: str
    doc: str
    members: tuple["Entry", ...] = ()


@dataclass(frozen=True)
class Module:
    name: str
    doc: str
    entries: tuple[Entry, ...]


def read_library(folder: Path) -> dict[str, Module]:
    """The library's modules by name, such as `norm` and `engine.derive`; not those that only lead on to another."""
    modules = [read_module(name, path.read_text(encoding="utf-8")) for name, path in sources(folder).items()]
    return {module.name: module for module in modules if module.entries}


def sources(folder: Path) -> dict[str, Path]:
    """The files of the public modules, by the modules' names."""
    paths = [path.relative_to(folder) for path in sorted(folder.rglob("*.py"))]
    public = [path for path in paths if not any(part.startswith("_") for part in path.parts)]
    return {".".join(path.with_suffix("").parts): folder / path for path in public}


def read_module(name: str, source: str) -> Module:
    tree = ast.parse(source)
    return Module(name, ast.get_docstring(tree) or "", tuple(_entries(tree, "function")))


def _entries(parent: ast.Module | ast.ClassDef, kind: str) -> Iterator[Entry]:
    """What is public in a module (functions and classes) or a class (methods and properties)."""
    for node in parent.body:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name.startswith("_"):
            continue
        doc = ast.get_docstring(node) or ""
        if isinstance(node, ast.ClassDef):
            yield Entry("class", node.name, _constructor(node), doc, tuple(_entries(node, "method")))
        elif any(ast.unparse(decorator).endswith("property") for decorator in node.decorator_list):
            yield Entry("property", node.name, ast.unparse(node.returns) if node.returns else "", doc)
        else:
            yield Entry(kind, node.name, _signature(node, bound=kind == "method"), doc)


def _signature(node: ast.FunctionDef, bound: bool) -> str:
    """`(X: Float[Tensor, 'n d'], eps: float=1e-05) -> …`, without `self` where the function is bound."""
    if bound:
        node.args.args = node.args.args[1:]
    return f"({ast.unparse(node.args)})" + (f" -> {ast.unparse(node.returns)}" if node.returns else "")


def _constructor(node: ast.ClassDef) -> str:
    """The arguments of `__init__`, or the fields of a dataclass or a named tuple."""
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and method.name == "__init__":
            return _signature(method, bound=True).partition(" -> ")[0]
    fields = [ast.unparse(field) for field in node.body if isinstance(field, ast.AnnAssign)]
    fields = [re.sub(r" = field\(.*", " = ...", field) for field in fields if "init=False" not in field]
    return f"({', '.join(fields)})" if fields else ""


def uses(source: str) -> set[str]:
    """What of the library a piece of Python imports, or reaches through an imported module: `norm.layer_norm`, …"""
    tree, imported = list(ast.walk(ast.parse(source))), {}
    for node in tree:
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(f"{PACKAGE}."):
            for alias in node.names:
                imported[alias.asname or alias.name] = f"{node.module}.{alias.name}".removeprefix(f"{PACKAGE}.")
    reached = {
        f"{imported[node.value.id]}.{node.attr}"
        for node in tree
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in imported
    }
    return {*imported.values(), *reached}


def code_of(notebook: Path) -> str:
    cells = read_notebook(notebook)["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")


def markdown(doc: str, names: Mapping[str, str], chapters: Mapping[str, str]) -> str:
    """A docstring as Markdown. Names in backticks, and chapters that are mentioned, become links.

    Args:
        names: full names by the short ones.
        chapters: addresses by the chapters' names.
    """

    def mention(found: re.Match) -> str:
        return f"{found[1]} “[]({chapters[found[2]]})”" if found[2] in chapters else found[0]

    def name(found: re.Match) -> str:
        return f"{{py:obj}}`{found[1]} <{names[found[1]]}>`" if found[1] in names else found[0]

    blocks = []
    for block in re.split(r"\n\s*\n", doc):
        if not block.startswith("    "):  # code stays as it is
            block = re.sub(r"(?<!`)`(\w+)`(?!`)", name, CHAPTER.sub(mention, _block(block)))
        blocks.append(block)
    return "\n\n".join(blocks)


def _block(block: str) -> str:
    """A paragraph on one line, so that no line of it begins like a list; `Raises:` and its like as a list."""
    head, _, rest = block.partition("\n")
    if head.endswith(":") and head[:-1].isalpha() and rest.startswith("    "):
        items = re.split(r"\n(?=\S)", textwrap.dedent(rest))
        return f"{head}\n\n" + "\n".join(re.sub(r"^([^:]+):", r"- `\1`:", " ".join(item.split())) for item in items)
    if re.match(r"(\d+\.|[-*]) ", block):
        return block
    return " ".join(block.split())
