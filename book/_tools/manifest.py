"""Compare how strictly each chapter is checked with an earlier commit: fewer or looser checks are an error.

manifest.py [NAME ...]    complain about what is weaker than at an earlier commit (NAME: a chapter; all if none)

A manifest says what holds a chapter and how strictly: it is computed from the notebook as it is stored. Another one
has the constants of the engine, such as its budgets for attacks. They are compared with those of an earlier commit:
BASE, where that is in the environment; HEAD, while notebooks or engine have changes that are not committed; else the
one that `.ci/whole` names. Weaker are fewer steps, inputs or rows, wider allowances and thresholds, and whatever was
there and is gone or says something else; so the words that turn the sense of a theorem or of what is said of a figure,
a theorem's formulas, those of exercises with their hints and solutions, and what their checkers ask for may not change.
It is allowed where a commit since then says why, in a line of its message as this program prints it:
`Weakens: CHAPTER: WHAT: why`, where CHAPTER is `engine` for the constants. The file MESSAGE is read as the message of
the commit to come. Nothing is weaker than a chapter that git does not know at the earlier commit, or that still had a
check of the template there.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Collection, Iterator
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import nbformat
from nbformat import NotebookNode

import notebooks
from smalltorch.files import in_one_line

ENGINE = Path("lib/smalltorch/engine")
FOLDERS = "notebooks", str(ENGINE)
TEMPLATE = Path(__file__).with_name("template.ipynb")
LINE, WHY = "Weakens: ", "<why>"
CHECKS = ("at_most", "fails", "equal", "measured", "missed", "computed", "fact")
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

Value = str | float | None  # None: not there
Manifest = dict[str, dict[str, Value]]  # what, and for each: how strict


# -- reading a notebook ------------------------------------------------------------------------------------------------


def of_notebook(notebook: NotebookNode) -> Manifest:
    """The manifest of a notebook as it is stored: from its code; from its outputs the inputs tried and the records."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code" and not notebooks.is_setup(cell)]
    statements = [[*ast.walk(statement)] for cell in code for statement in ast.parse(cell.source).body]
    found: Manifest = {}
    settings = {name: call for nodes in statements for name, call in _settings(nodes)}
    for nodes in statements:
        for node in nodes:
            for what, entry in _entries(node, settings):
                found[_free(what, found)] = entry
    for functions in (
        [one for one in ast.parse(cell.source).body if isinstance(one, ast.FunctionDef)] for cell in code
    ):
        if any(one.name.startswith("check_") for one in functions):  # and what reads the answers for them
            found |= {f"checker {one.name}": {"says": " ".join(_conditions(one))} for one in functions}
    for chain, steps in _steps(statements).items():
        found.setdefault(f"derivation {chain}", {})["steps"] = steps
    printed = "\n".join(_texts(code))
    for what in found:
        if tried := re.search(
            rf"^\s*{re.escape(what.partition(' ')[2])}: holds, [^;\n]+; (\d+) inputs", printed, re.MULTILINE
        ):
            found[what]["inputs"] = int(tried[1])
    found |= {what: {"says": sense(text)} for what, text in _statements(notebook)}
    if notebooks.SECONDS in notebook.metadata:
        found["time measured"] = {}
    for record in notebooks.records_in(notebook):
        kinds = ", ".join(evidence.kind for evidence in record.evidence)
        found[f"record {record.claim}"] = {"verdict": record.verdict, "by": kinds}
    return dict(sorted(found.items()))


# What turns the sense of a sentence: directions, comparisons, extremes, quantities, negations, rows and columns, how
# lines and points are drawn; and of a formula: signs, numbers, letters.
TURNING = re.compile(
    r"(?i)\b(?:(?:r[io]s|fall|fell|grow|grew|shrink|shrank|increas|decreas|climb|drop|declin|descend|ascend|sink|sank"
    r"|fad|vanish|widen|narrow|diverg|converg|approach|exceed|doubl|halv)\w*"
    r"|above|below|over|under|up|down|upper|lower|left|right|top|bottom|beside|beyond|within|before|after|until"
    r"|(?:high|low|larg|small|great|big|long|short|steep|flat|fast|slow|earl|lat|strong|weak|near|far|light|dark|pal|deep)"
    r"(?:i?er|i?est|r|st)|further|farthest|more|most|less|least|few(?:er|est)?|best|worst|better|worse"
    r"|max\w*|min\w*|positive|negative|convex|concave|even|odd|equal\w*|same|different|constant|bounded|unbounded"
    r"|no|not|non|none|never|nothing|neither|nor|always|only|every|each|all|any|some|both|half|except|without|alone"
    r"|if|unless|first|last|zero|one|two|once|twice|start\w*|end\w*"
    r"|rows?|columns?|solid|dashed|dotted|dots?|circles?|squares?|triangles?|cross(?:es)?|diamonds?)\b|n't\b"
    r"|(?<![\w.,])[012](?![\w.,]\d|\w)"
)
SIGN = re.compile(
    r"\\(?:leq?|geq?|lt|gt|ne|neq|approx|to|not|pm|mp|min|max|inf|sup|frac\W*\w+\W*\w+)(?![A-Za-z])|[<>=+/-]|\d+(?:\.\d+)?"
    r"|(?<![A-Za-z\\])[A-Za-z](?![A-Za-z])"
    r"|\\(?:[Aa]lpha|[Bb]eta|[Gg]amma|[Dd]elta|(?:var)?epsilon|zeta|eta|[Tt]heta|kappa"
    r"|[Ll]ambda|[mn]u|[Xx]i|[Pp]i|rho|[Ss]igma|tau|(?:var)?[Pp]hi|chi|[Pp]si|[Oo]mega)(?![A-Za-z])"
)
FORMULA = re.compile(r"\$\$?[^$]+\$\$?")
EXERCISE = re.compile(r"(?ms)^:::+\{(exercise|dropdown|solution)\} ([^\n]*)\n(.*?)^:::+$")
BLOCK = re.compile(r"(?ms)^:::+\{prf:(?!proof)\w+\}[^\n]*\n:label: (\S+)\n(.*?)^:::+$")


def sense(text: str) -> str:
    """The words of a text that turn its sense, and the signs, numbers and letters of its formulas, in their order."""
    parts = re.split(f"({FORMULA.pattern})", text)
    found = [SIGN.findall(part) if part.startswith("$") else TURNING.findall(part.lower()) for part in parts]
    return " ".join("".join(word.split()) for words in found for word in words)


def _statements(notebook: NotebookNode) -> Iterator[tuple[str, str]]:
    """What is said of figures, in captions and alternative texts, in theorems, and by formulas in exercises."""
    for cell in notebook.cells:
        shown = cell.metadata.get("mystnb", {})
        if "figure" in shown:
            yield f"caption {shown['figure'].get('name')}", shown["figure"].get("caption", "")
            yield f"picture {shown['figure'].get('name')}", shown.get("image", {}).get("alt", "")
        for label, text in BLOCK.findall(cell.source) if cell.cell_type == "markdown" else ():
            yield f"theorem {label}", text
        label = ""
        for kind, title, text in EXERCISE.findall(cell.source) if cell.cell_type == "markdown" else ():
            if kind == "exercise":
                label = text.partition(":label: ")[2].partition("\n")[0]
            name = f"solution {title}" if kind == "solution" else f"{kind} {label}"
            yield name, " ".join(FORMULA.findall(text))


def _settings(nodes: list[ast.AST]) -> Iterator[tuple[str, ast.Call]]:
    """Names for what several checks share: `setting = dict(…)`."""
    for node in nodes:
        if isinstance(node, ast.Assign) and _called(node.value) == "dict" and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value


def _entries(node: ast.AST, settings: dict[str, ast.Call]) -> Iterator[tuple[str, dict[str, Value]]]:
    """What a piece of code adds to the manifest."""
    if isinstance(node, ast.Assert):
        yield f"assert {ast.unparse(node.test)}", {}
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and _is_size(node):
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


def _conditions(checker: ast.FunctionDef) -> Iterator[str]:
    """What a checker tries and asks for: its defaults, the values that it goes through, its conditions."""
    for node in ast.walk(checker):
        if isinstance(node, ast.Assign | ast.Return) and isinstance(node.value, ast.Compare | ast.BoolOp):
            yield ast.unparse(node.value)
        parts = (getattr(node, field, None) for field in ("test", "iter", "ifs", "defaults", "kw_defaults"))
        for part in parts:
            yield from (ast.unparse(one) for one in (part if isinstance(part, list) else [part]) if one is not None)


def _is_size(node: ast.Assign) -> bool:
    """Whether a name in capitals gets a value that may be a size; `X = A @ V` is a step in the letters of a formula."""
    name, letters = node.targets[0].id, any(isinstance(part, ast.Name) for part in ast.walk(node.value))
    return name.isupper() and not (letters and len(name.partition("_")[0]) == 1)


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


def _steps(statements: list[list[ast.AST]]) -> dict[str, int]:
    """How many steps the chains have that are written as `name = Derivation(…)` and `name.le(…)`."""
    chains, steps = {}, {}
    for nodes in statements:
        calls = [node for node in nodes if isinstance(node, ast.Call)]
        for node in calls:
            if _called(node) == "Derivation" and node.args:
                name = _text(node.args[0])
                if isinstance(nodes[0], ast.Assign) and isinstance(nodes[0].targets[0], ast.Name):
                    chains[nodes[0].targets[0].id] = name
                steps.setdefault(name, 0)
        for node in calls:
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


def _value(node: ast.expr) -> Value:
    return value_of(ast.unparse(node))


def value_of(text: str) -> Value:
    """A number, where it is one; None for what is not there; else the text."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return None if text == "not there" else text
    return value if isinstance(value, int | float) and not isinstance(value, bool) else text


def _bounds(node: ast.expr) -> dict[str, Value]:
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


def of_module(name: str, text: str) -> Manifest:
    """The constants of a module that are numbers."""
    constants: dict[str, Value] = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign):
            pairs = zip(*map(_parts, (node.targets[0], node.value)), strict=False)
            found = {ast.unparse(name): _value(value) for name, value in pairs}
            constants |= {k: v for k, v in found.items() if k.isupper() and not isinstance(v, str)}
    return {f"constants {name}": constants} if constants else {}


# -- what is weaker ----------------------------------------------------------------------------------------------------


class Loss(NamedTuple):
    """What is gone; or, with a key, what has that value, and had a stricter one."""

    what: str
    key: str = ""
    old: Value = None
    new: Value = None

    def __str__(self) -> str:
        old, new = ("not there" if value is None else value for value in (self.old, self.new))
        return f"{self.what}: {self.key} was {old}, and is {new}" if self.key else f"gone: {self.what}"


def weaker(old: Manifest, new: Manifest) -> list[Loss]:
    """In what a manifest is weaker than the one before it."""
    found = []
    for what, before in old.items():
        if what not in new:
            found.append(Loss(what))
            continue
        for key in before | new[what]:
            values = before.get(key), new[what].get(key)
            if not as_strict(key, *values):
                found.append(Loss(what, key, *(map(value_of, _differing(*values)) if key == "says" else values)))
    return found


def _differing(old: str, new: str) -> tuple[str, str]:
    """What is left of two lists of words without those that both begin and end with."""
    one, other = old.split(), new.split()
    same = len(os.path.commonprefix([one, other]))
    one, other = one[same:], other[same:]
    same = len(os.path.commonprefix([one[::-1], other[::-1]]))
    return " ".join(one[: len(one) - same]) or "nothing", " ".join(other[: len(other) - same]) or "nothing"


def as_strict(key: str, old: Value, new: Value) -> bool:
    """Whether the new value of a key is at least as strict as the old one."""
    if old == new:
        return True
    if old is None:
        return key not in LENIENT
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


def is_named(chapter: str, loss: Loss, reasons: list[str]) -> bool:
    """Whether lines of messages, without their first word, name the loss and say why.

    Several commits may have brought it about step by step, each with its own line, and made it stricter in between.
    """
    if not loss.key:
        return any(line.startswith(f"{chapter}: {loss}: ") for line in reasons)
    head, steps = f"{chapter}: {loss.what}: {loss.key} was ", []
    for line in reasons:
        if line.startswith(head):
            old, _, rest = line.removeprefix(head).partition(", and is ")
            parts = rest.split(": ")  # a value may have a colon in it, and so may the reason
            steps += [(value_of(old), value_of(": ".join(parts[:k]))) for k in range(1, len(parts))]
    reached = [loss.old]
    for old, new in steps * len(steps):
        if new not in reached and any(as_strict(loss.key, value, old) for value in reached):
            reached.append(new)
    return any(as_strict(loss.key, value, loss.new) for value in reached)


# -- what git knows ----------------------------------------------------------------------------------------------------


class NoBase(Exception):
    """There is no earlier commit to compare with: what is missing, in one line."""


def git(root: Path, *arguments: str) -> bytes:
    try:
        return subprocess.run(["git", "-C", root, *arguments], capture_output=True, check=True).stdout
    except FileNotFoundError:
        raise NoBase("git is missing") from None
    except subprocess.CalledProcessError as error:
        raise NoBase(f"git says {error.stderr.decode().strip()}") from None


def base_of(root: Path) -> str:
    """The commit to compare with.

    Raises:
        NoBase: where there is none.
    """
    if git(root, "rev-parse", "--show-prefix").strip():
        raise NoBase("this folder is not the top of a git repository")
    name = os.environ.get("BASE", "").strip()
    if not name:
        changed = git(root, "status", "--porcelain", "--", *FOLDERS)
        name = "HEAD" if changed else (root / ".ci/whole").read_text(encoding="utf-8").split()[0]
    try:
        return git(root, "rev-parse", "--verify", f"{name}^{{commit}}").decode().strip()
    except NoBase:
        raise NoBase(f"this clone lacks the commit {name}: git fetch --unshallow, or BASE=another") from None


def reasons_since(base: str, root: Path) -> list[str]:
    """What the messages of the commits since the base say of what is weaker, and the message of the one to come."""
    messages = git(root, "log", "--format=%B", f"{base}..HEAD").decode()
    if file := os.environ.get("MESSAGE", "").strip():
        messages += Path(file).read_text(encoding="utf-8")
    lines = [line.removeprefix(LINE) for line in messages.splitlines() if line.startswith(LINE)]
    return [line for line in lines if not line.endswith(WHY)]


def changed_since(base: str, root: Path) -> Iterator[tuple[Path, str]]:
    """The notebooks and the engine's modules that were there and are no longer the same, each with its old text."""
    changed = git(root, "diff", "--name-only", "-z", "--no-renames", "--diff-filter=a", base, "--", *FOLDERS)
    if changed:
        packed = BytesIO(git(root, "archive", base, *changed.decode().strip("\0").split("\0")))
        with tarfile.open(fileobj=packed) as tar:
            for member in filter(tarfile.TarInfo.isfile, tar):
                yield Path(member.name), tar.extractfile(member).read().decode()


# -- chapters ----------------------------------------------------------------------------------------------------------


@cache
def checks_of_template() -> set[str]:
    named = (*CHECKS, "derivation")
    return {what for what in of_notebook(notebooks.read(TEMPLATE)) if what.partition(" ")[0] in named}


def losses(root: Path, base: str, names: Collection[str] = ()) -> Iterator[tuple[str, Loss]]:
    """In what chapters are weaker than at the base, and in what the engine is."""
    now = {path.stem: path for path in notebooks.all_notebooks(root)}
    for path, text in changed_since(base, root):
        if path.parent == ENGINE:
            new = of_module(path.stem, (root / path).read_text("utf-8") if (root / path).exists() else "")
            yield from (("engine", loss) for loss in weaker(of_module(path.stem, text), new))
        elif not names or path.stem in names:
            old = of_notebook(nbformat.v4.reads(text))
            if old.keys() & checks_of_template():
                continue
            new = of_notebook(notebooks.read(now[path.stem])) if path.stem in now else {}
            found = weaker(old, new) if path.stem in now else [Loss("the chapter")]
            yield from ((path.stem, loss) for loss in found)


def problems(names: Collection[str] = (), root: Path = notebooks.ROOT) -> list[str]:
    """What is weaker and not named by a commit: the line that names it, for each.

    Raises:
        NoBase: where there is no commit to compare with.
    """
    base = base_of(root)
    reasons = reasons_since(base, root)
    found = [(chapter, loss) for chapter, loss in losses(root, base, names) if not is_named(chapter, loss, reasons)]
    head = f"weaker than at {base[:10]}; if it is meant, say why in the commit's message, in a line for each:"
    return [head, *(f"{LINE}{chapter}: {loss}: {WHY}" for chapter, loss in found)] if found else []


if __name__ == "__main__":
    with in_one_line():
        try:
            lines = problems([path.stem for path in notebooks.find(sys.argv[1:])] if sys.argv[1:] else ())
        except NoBase as error:
            lines = [f"only a full clone can tell what is weaker than before: {error}"]
    print("\n".join(lines) or "manifests: nothing is weaker than before")
    sys.exit(bool(lines))
