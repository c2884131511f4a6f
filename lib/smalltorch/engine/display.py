"""Render derivations as text and as Markdown with LaTeX, directly from the SymPy objects."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sympy import Basic, Dummy, Expr, Indexed, Symbol
from sympy.core.function import FunctionClass
from sympy.core.relational import Relational

from smalltorch.engine.binders import Range, alike
from smalltorch.engine.names import declaration, declared, symbols_of
from smalltorch.engine.sums import Usable, is_plain_index
from smalltorch.engine.typeset import typeset

INSTANCE = 5  # as many values are shown
RELATIONS = {"=": "=", "≤": r"\le", "<": "<", "≥": r"\ge", ">": ">"}
_SYMBOLS = {"==": "=", "<=": "≤", "<": "<", ">=": "≥", ">": ">", "!=": "≠"}
_COMMANDS = {"==": "=", "<=": r"\leq", "<": "<", ">=": r"\geq", ">": ">", "!=": r"\neq"}


def text(expr: Basic | FunctionClass) -> str:
    """An expression or relation as one line of text."""
    if isinstance(expr, Relational):
        return f"{text(expr.lhs)} {_SYMBOLS[expr.rel_op]} {text(expr.rhs)}"
    return str(_plain(expr))


def tex(expr: Basic | FunctionClass) -> str:
    """An expression or relation in LaTeX."""
    if isinstance(expr, Relational):
        return f"{tex(expr.lhs)} {_COMMANDS[expr.rel_op]} {tex(expr.rhs)}"
    return typeset(_plain(expr)).replace("_{max}", r"_{\max}")


def assumed(usable: Iterable[Usable]) -> list[tuple[str, str]]:
    """What is given or used, as (text, LaTeX)."""
    shown = []
    for fact in usable:
        words, formula = text(fact.statement), f"${tex(fact.statement)}$"
        if fact.free:
            names = ", ".join(map(str, fact.free))
            words, formula = f"{words} for all {names}", f"{formula} for all ${names}$"
        for index, (lo, hi) in fact.within.items():
            words = f"{words}, {lo} ≤ {index} ≤ {hi}"
            formula = rf"{formula}, ${tex(lo)} \le {index} \le {tex(hi)}$"
        suffix = f" (by {fact.name})" if fact.name else ""
        shown.append((words + suffix, formula + suffix))
    return shown


def instance(values: Mapping[Expr, Expr]) -> tuple[str, str]:
    """Values at which all hypotheses hold, as (text, LaTeX); where they are many, the first ones that sums speak of."""
    shown = sorted(values.items(), key=lambda item: _before_1(item[0]))[:INSTANCE]
    more = f", and {len(values) - len(shown)} more" if len(values) > len(shown) else ""
    words = ", ".join(f"{text(name)} = {text(value)}" for name, value in shown)
    return words + more, ", ".join(f"${tex(name)} = {tex(value)}$" for name, value in shown) + more


def _before_1(name: Any) -> bool:
    """An entry with an index below 1, where sums begin: a hypothesis for all integers speaks of it too."""
    return isinstance(name, Indexed) and any(bool(index < 1) for index in name.indices if index.is_Integer)


def hypotheses(
    usable: Iterable[Usable], ranges: Mapping[Symbol, Range], expressions: Sequence[Expr]
) -> list[tuple[str, str]]:
    """What is assumed, as (text, LaTeX): what is given or used, and what the names were declared to be."""
    usable = list(usable)
    shown = assumed(usable)
    for index, (lo, hi) in ranges.items():
        shown.append((f"{index} from {lo} to {hi}", f"${tex(index)}$ from ${tex(lo)}$ to ${tex(hi)}$"))
    by_words: dict[str, list[tuple[str, str]]] = {}
    indices = set(ranges).union(*(filter(is_plain_index, f.free) for f in usable))
    occurring = set().union(*(declared(e) for e in expressions)) - indices
    for name in sorted(occurring, key=str):
        for words in declaration(name):
            by_words.setdefault(words, []).append((str(name), tex(name)))
    for words, names_ in by_words.items():
        shown.append((f"{', '.join(t for t, _ in names_)} {words}", f"${', '.join(t for _, t in names_)}$ {words}"))
    return shown


def chain_text(title: str, given: Sequence[tuple[str, str]], steps: Sequence[Any], instance: tuple[str, str]) -> str:
    """A title, what is given with an instance of it, and the steps (`Step` of `derive`), each on a line."""
    lines = [title, *(f"  given  {words}" for words, _ in given)]
    lines += [f"  such as  {instance[0]}"] if instance[0] else []
    lines += [f"    {text(s.expr)}" for s in steps[:1]]
    for k, step in enumerate(steps[1:], 1):
        lines.append(f"  {step.relation} {text(step.expr)}   ✓ ({k}) {step.because}{_closed(step)}")
        if step.certificate is not None:
            lines.append(f"        certificate: {text(step.certificate)}")
    return "\n".join(lines)


def chain_markdown(
    title: str,
    given: Sequence[tuple[str, str]],
    names: Sequence[tuple[str, str]],
    steps: Sequence[Any],
    instance: tuple[str, str],
) -> str:
    """The same in Markdown: a table with a row for each step, its reason beside it. A tick opens what closed the step.

    HTML's `details` fold in the book, on Colab and in a forge alike.
    """
    rows = [_row(r"\phantom{=}", s, "") for s in steps[:1]]
    rows += [_row(RELATIONS[s.relation], s, f"{s.because} {_tick(s)}") for s in steps[1:]]
    lines = [title + (f" Given: {_listed(given)}." if given else ""), "", '<div class="derivation">', ""]
    lines += ["| step | because |", "| :--- | :--- |", *rows, "", "</div>", ""]
    what = ["what the names stand for"] * bool(names) + ["an instance"] * bool(instance[1])
    if what:
        lines += [f'<details class="declared"><summary>{" and ".join(what)}</summary>', ""]
        lines += [f"{_listed(names)}.", ""] if names else []
        lines += [f"The hypotheses hold, for instance, at {instance[1]}.", ""] if instance[1] else []
        lines += ["</details>"]
    return "\n".join(lines)


def _listed(shown: Sequence[tuple[str, str]]) -> str:
    return "; ".join(formula for _, formula in shown)


def _row(relation: str, step: Any, because: str) -> str:
    return f"| $\\displaystyle {relation} {tex(step.expr)}$ | {_cell(because)} |"


def _tick(step: Any) -> str:
    """What opens to say how the step was closed: by the structure of a gap, by a reducer, or both."""
    how = [f"by {step.reducer}"] if step.reducer else []
    how += [f"the gap is $\\displaystyle {tex(step.certificate)}$"] if step.certificate is not None else []
    return f'<details class="by"><summary>✓</summary>{"; ".join(how) or "by its structure"}</details>'


def _cell(words: str) -> str:
    """Text for a cell of a table, which the sign | would end."""
    parts = re.split(r"(\$[^$]*\$)", " ".join(words.split()))
    for k, part in enumerate(parts):
        if part.startswith("$"):
            parts[k] = part.replace(r"\|", r"\Vert{}").replace("|", r"\vert{}")
        else:
            parts[k] = part.replace("|", "&#124;")
    return "".join(parts)


def _closed(step: Any) -> str:
    """How a step was closed, after its reason."""
    return f" [{step.reducer}]" if step.reducer else ""


def set_names(words: str, expressions: Iterable[Expr]) -> str:
    """Words with the names that occur in expressions as formulas, but for “a”, which is a word itself."""
    names = {str(name): tex(name) for e in expressions for name in declared(e)}
    return re.sub(r"\w+", lambda word: f"${names[word[0]]}$" if word[0] in names.keys() - {"a"} else word[0], words)


def capitalised(name: str) -> str:
    """A name with hyphens as the beginning of a sentence."""
    return name.replace("-", " ").capitalize()


def _plain(expr: Basic | FunctionClass) -> Basic | FunctionClass:
    """For display: fresh indices under the names that they were made from; with primes where that would confuse two."""
    if isinstance(expr, FunctionClass):  # an undefined function, as a name
        return expr
    free = {d: Symbol(d.name) for d in expr.free_symbols if isinstance(d, Dummy)}
    expr = expr.xreplace(free)
    plain = expr.xreplace({d: Symbol(d.name) for d in expr.atoms(Dummy)})
    by_name = {s: Symbol(s.name) for s in symbols_of(plain)}  # symbols of one name look the same, whatever they are
    if alike(plain.xreplace(by_name)) == alike(expr.xreplace(by_name)):
        return plain
    taken, names = {s.name for s in symbols_of(expr)}, {}
    for dummy in sorted(expr.atoms(Dummy), key=lambda d: d.dummy_index):
        name = dummy.name
        while name in taken:
            name += "'"
        taken.add(name)
        names[dummy] = Symbol(name)
    return expr.xreplace(names)
