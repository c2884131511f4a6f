"""What holds each chapter, in one small file that a diff shows: checks, how strict they are, steps, asserts, records.

manifest.py check                complain about every chapter whose manifest is not what its notebook gives
manifest.py write [NAME ...]     write them from the notebooks as they are stored (NAME: a path or a chapter)

`make execute` writes them too. A manifest that would be weaker than the stored one is written only where WEAKEN=1 is
in the environment: fewer steps, inputs or rows, wider allowances and thresholds, and whatever was there and is gone or
says something else. `engine.toml` has the constants of the engine, such as its budgets for attacks, in the same way.
"""

from __future__ import annotations

import ast
import os
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from nbformat import NotebookNode

import notebooks
from smalltorch.files import in_one_line, write_text

FOLDER = Path("book/data/manifests")
ENGINE = Path("lib/smalltorch/engine")
CHECKS = ("at_most", "fails", "equal", "measured", "computed", "fact")
PROOFS = ("Derivation", "identity", "WrittenProof")
STEPS = ("eq", "le", "lt", "ge", "gt")
FACTS = ("computed", "fact")  # their rows are counted
# Numbers that make a check weaker when they grow, and when they shrink; of all others any change may.
WIDER = ("allowance", "tolerance", "scale", "below")
LENIENT = ("allowance", "tolerance", "scale", "given")  # weaker where there were none
SMALLER = (
    "by",
    "above",
    "steps",
    "rows",
    "inputs",
    "identities",
    "numbers",
    "relations",
    "derived",
    "citations",
    "count",
)

Manifest = dict[str, dict[str, str | float]]  # what, and for each: how strict


# -- reading a notebook ------------------------------------------------------------------------------------------------


def of_notebook(notebook: NotebookNode) -> Manifest:
    """The manifest of a notebook as it is stored: from its code; from its outputs the inputs tried and the records."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code" and not notebooks.is_setup(cell)]
    trees = [ast.parse(cell.source) for cell in code]
    found: Manifest = {}
    settings = {name: call for tree in trees for name, call in _settings(tree)}
    for tree in trees:
        for node in ast.walk(tree):
            for what, entry in _entries(node, settings):
                found[_free(what, found)] = entry
    for chain, steps in _steps(trees).items():
        found.setdefault(f"derivation {chain}", {})["steps"] = steps
    printed = "\n".join(_texts(code))
    for what in found:
        if tried := re.search(
            rf"^\s*{re.escape(what.partition(' ')[2])}: holds, [^;\n]+; (\d+) inputs", printed, re.MULTILINE
        ):
            found[what]["inputs"] = int(tried[1])
    for record in notebooks.records_in(notebook):
        kinds = ", ".join(evidence.kind for evidence in record.evidence)
        found[f"record {record.claim}"] = {"verdict": record.verdict, "by": kinds}
    return dict(sorted(found.items()))


def _settings(tree: ast.Module) -> Iterator[tuple[str, ast.Call]]:
    """Names for what several checks share: `setting = dict(…)`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and _called(node.value) == "dict" and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value


def _entries(node: ast.AST, settings: dict[str, ast.Call]) -> Iterator[tuple[str, dict[str, str | float]]]:
    """What a piece of code adds to the manifest."""
    if isinstance(node, ast.Assert):
        yield f"assert {ast.unparse(node.test)}", {}
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id.isupper():
        yield f"size {node.targets[0].id}", {"value": ast.unparse(node.value)}
    called = _called(node)
    if called in CHECKS and node.args:
        entry = {key: _value(value) for key, value in _keywords(node, settings) if key not in ("domain", "against")}
        if called in FACTS and len(node.args) > 1:
            rows = node.args[1]
            entry["rows"] = len(rows.elts) if isinstance(rows, ast.List) else ast.unparse(rows)
        yield f"{called} {_name(node)}", entry
    if called in PROOFS and node.args:
        kind = "proof" if called == "WrittenProof" else "derivation"
        given = next((value for key, value in _keywords(node, settings) if key == "given"), None)
        entry = {"given": ast.unparse(given)} if given is not None else {}
        entry |= {"identities": len(node.args) - 1} if kind == "proof" else {}
        yield f"{kind} {_name(node)}", entry | ({"steps": 1} if called == "identity" else {})
    if called == "Contrasts":
        thresholds = node.args[1] if len(node.args) > 1 else None
        for key, bounds in (
            zip(thresholds.keys, thresholds.values, strict=True) if isinstance(thresholds, ast.Dict) else ()
        ):
            yield f"contrast {_text(key)}", _bounds(bounds)
    if called == "Chapter":
        yield "checks declared", {"count": next((_value(k.value) for k in node.keywords if k.arg == "checks"), 0)}
    if called == "held":
        yield "words", {str(k.arg): len(k.value.elts) for k in node.keywords if isinstance(k.value, ast.List)}


def _called(node: ast.AST) -> str:
    """The name of what is called: of a function, or of a method."""
    function = node.func if isinstance(node, ast.Call) else None
    return (
        function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""
    )


def _keywords(node: ast.Call, settings: dict[str, ast.Call]) -> Iterator[tuple[str, ast.expr]]:
    for keyword in node.keywords:
        if keyword.arg:
            yield keyword.arg, keyword.value
        elif isinstance(keyword.value, ast.Name) and keyword.value.id in settings:
            yield from _keywords(settings[keyword.value.id], settings)
        else:
            yield f"**{ast.unparse(keyword.value)}", ast.Constant("…")


def _steps(trees: list[ast.Module]) -> dict[str, int]:
    """How many steps the chains have that are written as `name = Derivation(…)` and `name.le(…)`."""
    chains, steps = {}, {}
    for tree in trees:
        for statement in tree.body:
            for node in ast.walk(statement):
                if _called(node) == "Derivation" and node.args:
                    name = _text(node.args[0])
                    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                        chains[statement.targets[0].id] = name
                    steps.setdefault(name, 0)
            for node in ast.walk(statement):
                if _called(node) in STEPS and isinstance(node.func, ast.Attribute):
                    root = node.func.value
                    while isinstance(root, ast.Call) and isinstance(root.func, ast.Attribute):
                        root = root.func.value
                    name = _text(root.args[0]) if _called(root) == "Derivation" else chains.get(getattr(root, "id", ""))
                    if name in steps:
                        steps[name] += 1
    return steps


def _name(call: ast.Call) -> str:
    return _text(call.args[0])


def _text(node: ast.expr | None) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else ast.unparse(node) if node else ""


def _value(node: ast.expr) -> str | float:
    """A number, where it is one; else its text."""
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return ast.unparse(node)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else ast.unparse(node)


def _bounds(node: ast.expr) -> dict[str, str | float]:
    """The thresholds of a contrast, written as `dict(above=…)` or `{"above": …}`."""
    if isinstance(node, ast.Dict):
        return {_text(key): _value(value) for key, value in zip(node.keys, node.values, strict=True)}
    return {str(k.arg): _value(k.value) for k in node.keywords} if isinstance(node, ast.Call) else {}


def _free(what: str, taken: Manifest) -> str:
    """A name that no entry has yet: the name, or with a number."""
    names = (what if number == 1 else f"{what} ({number})" for number in range(1, len(taken) + 2))
    return next(name for name in names if name not in taken)


def _texts(code: list[NotebookNode]) -> Iterator[str]:
    for cell in code:
        for output in cell.outputs:
            yield output.get("text") or output.get("data", {}).get("text/plain", "")


def _parts(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]


def of_engine(root: Path = notebooks.ROOT) -> Manifest:
    """The constants of the engine's modules that are numbers."""
    found = {}
    for path in sorted((root / ENGINE).glob("*.py")):
        constants = {}
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign):
                pairs = zip(*map(_parts, (node.targets[0], node.value)), strict=False)
                found_here = {ast.unparse(name): _value(value) for name, value in pairs}
                constants |= {k: v for k, v in found_here.items() if k.isupper() and not isinstance(v, str)}
        found |= {f"constants {path.stem}": constants} if constants else {}
    return found


# -- files, and what is weaker -----------------------------------------------------------------------------------------


def text_of(manifest: Manifest) -> str:
    lines = ["# Made by `make execute` from the notebook. Read its diff: what is weaker needs WEAKEN=1."]
    for what, entry in manifest.items():
        lines += ["", f"[{_quoted(what)}]", *(f"{_quoted(key)} = {_written(value)}" for key, value in entry.items())]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return text if re.fullmatch(r"[A-Za-z0-9_-]+", text) else _written(text)


def _written(value: str | float) -> str:
    if not isinstance(value, str):
        return repr(value)
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


def weaker(old: Manifest, new: Manifest) -> list[str]:
    """In what a manifest is weaker than the one before it, one line each."""
    found = []
    for what, before in old.items():
        if what not in new:
            found.append(f"gone: {what}")
            continue
        for key, value in before.items():
            now = new[what].get(key)
            if now != value and not _stricter(key, value, now):
                found.append(f"{what}: {key} was {value}, and is {'not there' if now is None else now}")
        found += [
            f"{what}: {key} is new: {new[what][key]}" for key in new[what] if key in LENIENT and key not in before
        ]
    return found


def _stricter(key: str, old: str | float, new: str | float | None) -> bool:
    if isinstance(old, str) and isinstance(new, str):
        return (key == "shapes" and _more_of(old, new)) or (key == "by" and _kinds(old) <= _kinds(new))
    if isinstance(old, str) or isinstance(new, str) or new is None:
        return False
    return new <= old if key in WIDER else new >= old if key in SMALLER else False


def _kinds(evidence: str) -> Counter[str]:
    return Counter(evidence.split(", "))


def _more_of(old: str, new: str) -> bool:
    """Whether the sizes of the old list are all in the new one."""
    try:
        return set(ast.literal_eval(old)) <= set(ast.literal_eval(new))
    except (ValueError, SyntaxError, TypeError):
        return False


def paths_of(names: list[str], root: Path = notebooks.ROOT) -> dict[Path, Manifest]:
    """The files of manifests, and what must stand in them; the engine's with them."""
    chapters = {root / FOLDER / f"{path.stem}.toml": path for path in notebooks.find(names, root)}
    found = {file: of_notebook(notebooks.read(path)) for file, path in chapters.items()}
    return found | {root / FOLDER / "engine.toml": of_engine(root)}


def write(names: list[str], root: Path = notebooks.ROOT) -> list[str]:
    """Write manifests; what kept one from being written, one line each."""
    found = []
    for file, manifest in paths_of(names, root).items():
        stored = tomllib.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        lost = [] if os.environ.get("WEAKEN") == "1" else weaker(stored, manifest)
        found += [f"{file.relative_to(root)}, weaker: {line}" for line in lost]
        if not lost and manifest != stored:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_text(file, text_of(manifest))
    return [*found, "not written; if it is meant: make manifest WEAKEN=1"] if found else []


def problems(root: Path = notebooks.ROOT) -> list[str]:
    """Every manifest that is missing, stale, or of no chapter, one line each."""
    wanted, found = paths_of([], root), []
    for file, manifest in wanted.items():
        if not file.exists() or file.read_text(encoding="utf-8") != text_of(manifest):
            found.append(f"{file.relative_to(root)} is not what its notebook gives: make manifest")
    return found + [
        f"{file.relative_to(root)} is of no chapter" for file in (root / FOLDER).glob("*") if file not in wanted
    ]


def main(arguments: list[str]) -> list[str]:
    if arguments[:1] == ["check"]:
        return problems()
    if arguments[:1] == ["write"]:
        return write(arguments[1:])
    return [str(__doc__)]


if __name__ == "__main__":
    with in_one_line():
        lines = main(sys.argv[1:])
    print("\n".join(lines) or "manifests: as the notebooks are")
    sys.exit(bool(lines))
