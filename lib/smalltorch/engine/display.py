"""Derivations as text and as LaTeX, generated from the SymPy objects themselves."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sympy import Basic, Dummy, Expr, Symbol, latex
from sympy.core.function import FunctionClass
from sympy.core.relational import Relational

from smalltorch.engine.names import declaration, declared, symbols_of
from smalltorch.engine.sums import Range, Usable, is_plain_index

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
    return latex(_plain(expr)).replace("_{max}", r"_{\max}")


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
    """Values at which all hypotheses hold, as (text, LaTeX); the first ones, where they are many."""
    shown = list(values.items())[:INSTANCE]
    more = f", and {len(values) - len(shown)} more" if len(values) > len(shown) else ""
    words = ", ".join(f"{text(name)} = {text(value)}" for name, value in shown)
    return words + more, ", ".join(f"${tex(name)} = {tex(value)}$" for name, value in shown) + more


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


def chain_text(
    title: str, given: Sequence[tuple[str, str]], steps: Sequence[Any], instance: tuple[str, str] = ("", "")
) -> str:
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
    title: str, given: Sequence[tuple[str, str]], steps: Sequence[Any], instance: tuple[str, str] = ("", "")
) -> str:
    """The same as an aligned formula, with its reasons as a list."""
    rows = [rf"& {tex(s.expr)}" for s in steps[:1]]
    rows += [rf"&{RELATIONS[s.relation]} {tex(s.expr)} && \checkmark\,({k})" for k, s in enumerate(steps[1:], 1)]
    reasons = []
    for k, step in enumerate(steps[1:], 1):
        shown = "" if step.certificate is None else f" — certificate: $\\displaystyle {tex(step.certificate)}$"
        reasons.append(f"{k}. {step.because}{_closed(step)}{shown}")
    reasons += ["", f"The hypotheses hold, for instance, at {instance[1]}."] if instance[1] else []
    formulas = "; ".join(formula for _, formula in given)
    chain = " \\\\\n".join(rows)
    return f"{title} Given: {formulas}.\n\n$$\n\\begin{{aligned}}\n{chain}\n\\end{{aligned}}\n$$\n\n" + "\n".join(
        reasons
    )


def _closed(step: Any) -> str:
    """How a step was closed, after its reason."""
    return f" [{step.reducer}]" if step.reducer else ""


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
    if plain.xreplace(by_name).as_dummy() == expr.xreplace(by_name).as_dummy():
        return plain
    taken, names = {s.name for s in symbols_of(expr)}, {}
    for dummy in sorted(expr.atoms(Dummy), key=lambda d: d.dummy_index):
        name = dummy.name
        while name in taken:
            name += "'"
        taken.add(name)
        names[dummy] = Symbol(name)
    return expr.xreplace(names)
