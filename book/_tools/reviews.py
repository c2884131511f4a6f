"""Check the review questions that close each part: ten, each answered in three sentences with links to the proof.

reviews.py     complain about every part without its page, and every page that is not of this form

A number in an answer has to stand in one of the chapters to which the answer leads, where it is held.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import notebooks
from deepdive.book import contents
from numbers_in_text import texts
from smalltorch.engine.printed import numbers_in
from smalltorch.files import in_one_line

QUESTIONS, SENTENCES = 10, 3
QUESTION = re.compile(r"^## (?P<question>[^\n]+\?)\n\n:::\{dropdown\} Answer\n(?P<answer>.+?)\n:::$", re.M | re.S)
THEOREM = re.compile(r"\{prf:ref\}`([\w-]+)`")
FIGURE = re.compile(r"\{numref\}`(fig-[\w-]+)`")


def of_chapters(root: Path) -> tuple[dict[str, str], dict[str, set[str]]]:
    """The chapter of each label, and the numbers that the text of each chapter has."""
    places, numbers = {}, {}
    for path in notebooks.all_notebooks(root):
        notebook = notebooks.read(path)
        found = re.findall(r"(?m)^:label: ([\w-]+)$", "\n".join(cell.source for cell in notebook.cells))
        found += [cell.metadata.get("mystnb", {}).get("figure", {}).get("name", "") for cell in notebook.cells]
        places |= dict.fromkeys(found, path.stem)
        numbers[path.stem] = {one.text for text in texts(notebook) for one in numbers_in(text)}
    return places, numbers


def problems(text: str, places: dict[str, str], numbers: dict[str, set[str]]) -> Iterator[str]:
    """What is wrong with a page of questions, one line each."""
    found = list(QUESTION.finditer(text))
    if len(found) != QUESTIONS or text.count("\n## ") != QUESTIONS:
        yield f"expected {QUESTIONS} questions, each with its answer folded below it, got {len(found)}"
    for match in found:
        question, answer = match["question"], match["answer"]
        if (count := len(answer.split("\n"))) != SENTENCES:
            yield f"{question} expected {SENTENCES} sentences, a line each, got {count}"
        theorems, figures = THEOREM.findall(answer), FIGURE.findall(answer)
        if not theorems or not figures:
            yield f"{question} expected a link to a theorem and one to a figure"
        if lost := [label for label in (*theorems, *figures) if label not in places]:
            yield f"{question} no chapter has {', '.join(lost)}"
        known = set().union(*(numbers[places[label]] for label in (*theorems, *figures) if label in places))
        if unheld := [one.text for one in numbers_in(FIGURE.sub("", answer)) if one.text not in known]:
            yield f"{question} none of the chapters that it leads to has {', '.join(unheld)}"


def of_book(root: Path = notebooks.ROOT) -> list[str]:
    """What is wrong in the pages of all parts, one line each."""
    places, numbers = of_chapters(root)
    found = []
    for part in contents.read(root).parts:
        path = root / f"{part.review}.md"
        if not part.folder or not contents.written(root, part):
            continue
        if not path.is_file():
            found.append(f"{path.relative_to(root)}: missing")
            continue
        text = path.read_text(encoding="utf-8")
        found += [f"{path.relative_to(root)}: {problem}" for problem in problems(text, places, numbers)]
    return found


if __name__ == "__main__":
    with in_one_line():
        lines = of_book()
    print("\n".join(lines) or "questions: answered")
    sys.exit(bool(lines))
