"""The words of the chapters that are held: each number, inequality and citation of their text is quoted in a list.

words.py           complain about texts that say what their list does not, and lists that quote what the text lacks
words.py NAME…     the same of these chapters, also where nothing holds their words yet

What a quotation is, and which numbers are trivial: `smalltorch.engine.words`, which holds the quotations of a chapter
against what it computed. Headings, captions, alternative texts, exercises and solutions are text too.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from nbformat import NotebookNode

import notebooks
from smalltorch.engine.words import numbers_in, relations_in
from smalltorch.files import in_one_line

# Chapters whose words nothing holds yet. The list only shrinks.
NOT_YET = (
    "four-variants",
    "measuring",
)

CITATION = re.compile(r"\{cite(?::\w+)?\}`[^`]*`")
NO_TEXT = re.compile(r"(?m)^(:[\w-]+:.*|- \*\*It runs\*\*.*|:::+.*?\}|:::+\s*|\d+\.(?= ))")  # options, fences, items
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
    found += [f"no text has {quotation!r}" for quotation in everywhere if not any(quotation in page for page in pages)]
    short = [one for one in quoted.get("citations", []) if len(CITATION.sub("", one).strip()) < LEAST]
    found += [f"too short to say where it stands: {quotation!r}" for quotation in short]
    for page in pages:
        numbers = _covered(page, quoted.get("numbers", []) + formulas)
        inequalities, cited = _covered(page, formulas), _covered(page, quoted.get("citations", []))
        for one in numbers_in(page):
            if not numbers[one.start] or not numbers[one.end - 1]:
                found.append(f"the number {one.text} is not held: … {_around(page, one.start, one.end)} …")
        for start, end in relations_in(page):
            if not all(inequalities[start:end]):
                found.append(f"the inequality is not held: {page[start:end]}")
        for match in CITATION.finditer(page):
            if not all(cited[slice(*match.span())]):
                found.append(f"the citation is not held: … {_around(page, *match.span())} …")
    return found


def _covered(page: str, quoted: list[str]) -> list[bool]:
    """For each character of a text whether it stands in a quotation."""
    covered = [False] * len(page)
    for quotation in quoted:
        for match in re.finditer(re.escape(quotation), page):
            covered[match.start() : match.end()] = [True] * len(quotation)
    return covered


def _around(page: str, start: int, end: int) -> str:
    return page[max(0, start - 40) : end + 30]


def of_chapters(names: list[str], root: Path = notebooks.ROOT) -> list[str]:
    """What is wrong in these chapters, one line each.

    Raises:
        ValueError: if there is no such chapter.
    """
    paths = {path.stem: path for path in notebooks.all_notebooks(root)}
    if unknown := [name for name in names if name not in paths]:
        raise ValueError(f"names: expected names of chapters, got {', '.join(unknown)}")
    return [
        f"{paths[name].relative_to(root)}: {problem}"
        for name in names
        for problem in problems(notebooks.read(paths[name]))
    ]


def of_the_book(root: Path = notebooks.ROOT) -> list[str]:
    """What is wrong in all chapters that are held, one line each; and in the list of those that are not yet."""
    paths, found = {path.stem: path for path in notebooks.all_notebooks(root)}, []
    for name, path in paths.items():
        notebook = notebooks.read(path)
        if name not in NOT_YET:
            found += [f"{path.relative_to(root)}: {problem}" for problem in problems(notebook)]
        elif quotations(notebook):
            found.append(f"{path.relative_to(root)}: it is held; take it off NOT_YET in book/_tools/words.py")
    return found + [
        f"NOT_YET in book/_tools/words.py: there is no chapter {name}" for name in NOT_YET if name not in paths
    ]


if __name__ == "__main__":
    with in_one_line():
        lines = of_chapters(sys.argv[1:]) if sys.argv[1:] else of_the_book()
    print(
        "\n".join(lines) or (f"words: held in all chapters but {len(NOT_YET)}" if not sys.argv[1:] else "words: held")
    )
    sys.exit(bool(lines))
