"""Check that each number, inequality and citation in a chapter's text is listed beside the value it comes from.

numbers_in_text.py        complain about texts that say what their list lacks, lists that quote what the text lacks,
                          and directions that no figure draws
numbers_in_text.py NAME…  the same of these chapters

Which numbers are trivial says `smalltorch.engine.printed`; `smalltorch.engine.words` holds the quotations of a chapter
against what it computed. Headings, captions, alternative texts, exercises and solutions are text too.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from nbformat import NotebookNode

import drawn
import notebooks
from smalltorch.engine.printed import numbers_in, relations_in
from smalltorch.files import in_one_line

CITATION = re.compile(r"\{cite(?::\w+)?\}`[^`]*`")
NO_TEXT = re.compile(r"(?m)^(:[\w-]+:.*|- \*\*It runs\*\*.*|:::+.*?\}|:::+\s*|\d+\.(?= ))")  # options, fences, items
THEOREM = re.compile(r"(?ms)^(:::+)\{prf:(?!proof)\w+\}.*?^\1$")
FRACTION = re.compile(r"\\[td]?frac\s*(?:\{(\d+)\}|(\d))\s*(?:\{(\d+)\}|(\d))")
HALF = "1/2"  # as trivial as 2
LEAST = 10  # characters that a quotation with a citation has besides it


def texts(notebook: NotebookNode) -> Iterator[str]:
    """The text of a notebook, cell by cell, each in one line."""
    for cell in notebook.cells:
        shown = cell.metadata.get("mystnb", {})
        found = [cell.source] if cell.cell_type == "markdown" else []
        found += [shown.get("figure", {}).get("caption", ""), shown.get("image", {}).get("alt", "")]
        yield from (" ".join(NO_TEXT.sub("", text).split()) for text in found if text)


def quotations(notebook: NotebookNode) -> dict[str, list[str]]:
    """What the calls of `held` quote, by keyword; empty where there is none.

    Raises:
        ValueError: for a list that is not written out.
    """
    found: dict[str, list[str]] = {}
    for cell in notebook.cells:
        if cell.cell_type != "code" or "held(" not in cell.source:
            continue
        for node in ast.walk(ast.parse(cell.source)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "held":
                for keyword in node.keywords:
                    found.setdefault(str(keyword.arg), []).extend(map(_quoted, _entries(keyword)))
    return found


def _entries(keyword: ast.keyword) -> list[ast.expr]:
    if not isinstance(keyword.value, ast.List):
        raise ValueError(f"{keyword.arg}: expected a list that is written out, got {ast.unparse(keyword.value)}")
    return keyword.value.elts


def _quoted(entry: ast.expr) -> str:
    first = entry.elts[0] if isinstance(entry, ast.Tuple) else entry
    if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
        raise ValueError(f"expected a quotation that is written out, got {ast.unparse(first)}")
    return " ".join(first.value.split())


def problems(notebook: NotebookNode) -> list[str]:
    """What is wrong between the text of a notebook and its list, one line each."""
    quoted = quotations(notebook)
    if not quoted:
        return ["nothing holds its words: a call of smalltorch.engine.words.held is missing"]
    pages, found = list(texts(notebook)), []
    formulas = quoted.get("relations", []) + quoted.get("derived", [])
    everywhere = [*quoted.get("numbers", []), *formulas, *quoted.get("citations", [])]
    found += [f"no text has {quotation!r}" for quotation in everywhere if not any(_places(p, quotation) for p in pages)]
    short = [one for one in quoted.get("citations", []) if len(CITATION.sub("", one).strip()) < LEAST]
    found += [f"too short to say where it stands: {quotation!r}" for quotation in short]
    for page in pages:
        numbers, inequalities, cited = (
            [place for quotation in some for place in _places(page, quotation)]
            for some in (quoted.get("numbers", []) + formulas, formulas, quoted.get("citations", []))
        )
        for one in numbers_in(page):
            if not _within(numbers, one.start, one.end):
                found.append(f"the number {one.text} is not held: … {_around(page, one.start, one.end)} …")
        for start, end in relations_in(page):
            if not _within(inequalities, start, end):
                found.append(f"the inequality is not held: {page[start:end]}")
        for match in CITATION.finditer(page):
            if not _within(cited, *match.span()):
                found.append(f"the citation is not held: … {_around(page, *match.span())} …")
    theorems = [
        match[0] for cell in notebook.cells if cell.cell_type == "markdown" for match in THEOREM.finditer(cell.source)
    ]
    computed = fractions(notebook) if theorems else set()
    for theorem in (" ".join(NO_TEXT.sub("", one).split()) for one in theorems):
        held = [place for one in quoted.get("numbers", []) + formulas for place in _places(theorem, one)]
        for fraction in FRACTION.finditer(theorem):
            value = "/".join(filter(None, fraction.groups()))
            if value not in computed and not _within(held, *fraction.span()):
                found.append(f"nothing computes {value} of a theorem: … {_around(theorem, *fraction.span())} …")
    return found


def fractions(notebook: NotebookNode) -> set[str]:
    """The fractions of a chapter's code, and of what its derivations and records print: 7/8, Rational(7, 8)."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    printed = [str(output.get("data", output)) for cell in code for output in cell.outputs]
    found = re.findall(r"(?<![\w.])(\d+) ?(?:/|, ) ?(\d+)(?![\w.])", "\n".join([*printed, *(c.source for c in code)]))
    return {HALF, *map("/".join, found)}


def _places(page: str, quotation: str) -> list[tuple[int, int]]:
    """Where a text has a quotation as a whole: what begins or ends within a number or a word quotes half of it."""
    whole = rf"(?<!\w)(?<!\d[.,]){re.escape(quotation)}(?!\w|[.,]\d)" if quotation else "(?!)"
    return [match.span() for match in re.finditer(whole, page)]


def _within(places: list[tuple[int, int]], start: int, end: int) -> bool:
    """Whether one quotation has all of this; the halves of two have nothing of it."""
    return any(first <= start and end <= last for first, last in places)


def _around(page: str, start: int, end: int) -> str:
    return page[max(0, start - 40) : end + 30]


def of_chapters(names: list[str], root: Path = notebooks.ROOT) -> list[str]:
    """What is wrong in these chapters, or in all where none is named, one line each.

    Raises:
        ValueError: if there is no such chapter.
    """
    paths = {path.stem: path for path in notebooks.all_notebooks(root)}
    if unknown := [name for name in names if name not in paths]:
        raise ValueError(f"names: expected names of chapters, got {', '.join(unknown)}")
    return [
        f"{paths[name].relative_to(root)}: {problem}"
        for name in names or paths
        for notebook in [notebooks.read(paths[name])]
        for problem in problems(notebook) + drawn.problems(notebook)
    ]


if __name__ == "__main__":
    with in_one_line():
        lines = of_chapters(sys.argv[1:])
    print("\n".join(lines) or "words: held")
    sys.exit(bool(lines))
