"""A chapter's notebook as a reader opens it: plain Markdown, pictures that need no trust, code folded as on the page.

The committed notebook is audited, and so holds more than a reader wants: lists that hold its words against its numbers,
trials of its checkers, records. These are left out, and a line says where they are. Every cell keeps its id; what is
made of one cell carries its id with an ending.
"""

import ast
import base64
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from deepdive.code import HIDDEN, kind_of
from deepdive.first_screen import answer
from deepdive.reader.markdown import FENCE, Block, Resolve, block_of, blocks, cited, folded, plain

AUDIT = {"records", "words held", "solutions tried"}
LEFT_OUT = (
    "*Left out here: {left} cells that hold the words of this chapter against its numbers, try the checkers of its "
    "exercises and record its verdicts. They are in [the whole notebook]({whole}), which the tests of the book run.*"
)
SETTLES = "## What this chapter settles"
SVG, PNG = "image/svg+xml", "image/png"
SCALE = 2  # pixels of a picture for each of its points
OWN = "application/vnd.smalltorch."
VIEW = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')
WIDTH = re.compile(r'<svg\b[^>]*?\swidth="([\d.]+)(pt)?"')
TRY = re.compile(r"`(check_\w+\([^`]*\))`")
MADE = re.compile(r'\b(?:Derivation|WrittenProof|identity)\(\s*"([^"]+)"')
CHECKED = re.compile(r'\b(?:at_most|fails|equal|measured|computed|fact)\(\s*"([^"]+)"')


class Book(NamedTuple):
    """What a chapter's edition takes from the book: how references resolve, the line under its title, the entries of
    what it cites, where the whole notebook is, the pictures that move (by their names, with what one does there), and
    what draws a picture of a certain width in pixels."""

    resolve: Resolve
    place: str
    entries: Callable[[Sequence[str]], str]
    whole: str
    moving: dict[str, str]
    draw: Callable[[str, int], bytes]


def edition(notebook: dict, book: Book) -> dict:
    """The reader's edition of a notebook.

    Raises:
        ValueError: if a cell holds MyST that no front end reads.
    """
    cells = list(_cells(notebook["cells"], book))
    for number, cell in enumerate((cell for cell in cells if cell["cell_type"] == "code"), 1):
        cell["execution_count"] = number
        for output in cell["outputs"]:
            if output["output_type"] == "execute_result":
                output["execution_count"] = number
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}, "colab": {"toc_visible": True}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def _cells(source: list[dict], book: Book) -> Iterator[dict]:
    solutions = {block.label: block for cell in source for block in blocks(_text(cell)) if block.kind == "solution"}
    keys, exercises, left, settled = [], [], 0, False
    for cell in _in_order(source):
        text, metadata, name = _text(cell), cell["metadata"], cell["id"]
        if cell["cell_type"] == "markdown":
            keys += [key for key in cited(text) if key not in keys]
            if "{exercise}" in text:
                exercises.append(cell)
                text = text[: FENCE.search(text).start()]
            settled = settled or text.startswith(SETTLES)
            text = FENCE.sub(lambda found: "" if block_of(found).kind == "solution" else found[0], text).strip()
            if text.startswith("# "):
                title, _, rest = text.partition("\n")
                text = f"{title}\n\n{book.place}\n{rest}"
            if text.startswith("## References"):
                text += f"\n\n{book.entries(keys)}"
            if text:
                yield _markdown(name, plain(text, book.resolve))
            continue
        kind = kind_of(text, metadata)
        if kind in AUDIT or settled:
            left += 1
            if kind == "records":  # what the chapter settles is told; what told it is left out
                told = ["".join(output["data"]["text/markdown"]) for output in cell["outputs"] if "data" in output]
                yield _markdown(name, plain("\n\n".join(told), book.resolve))
            continue
        tags = metadata.get("tags", ())
        hidden = not HIDDEN.isdisjoint(tags)
        title = cell.get("title") or (_title(kind, text, metadata, book) if hidden and kind != "setup" else "")
        yield _code(name, text, title, hidden, _outputs(cell, book), "hide-cell" in tags)
        yield from _figure(cell, book)
        if kind == "exercise checkers":
            for held in exercises:
                yield from _exercises(held, solutions, book)
    if left:
        yield _markdown("left-out", LEFT_OUT.format(left=left, whole=book.whole))


def _in_order(source: list[dict]) -> list[dict]:
    """The cells as a reader meets them: title and answer, imports, the numbers to change, the picture that shows the
    answer; then the rest of the first cell, and the map that the second draws."""
    first, *others = source
    ends = next((k for k, cell in enumerate(others) if cell["cell_type"] == "markdown"), len(others))
    setup, *begins = others[:ends]
    place = answer(["figure" in cell["metadata"].get("mystnb", ()) for cell in others[:ends]]) or 1
    title, short, *rest = _text(first).split("\n\n")
    imports, *more = _opening(begins[0])
    late = [more.pop()] if place > 1 and "figure" in begins[0]["metadata"].get("mystnb", ()) else []
    head = _markdown(first["id"], f"{title}\n\n{short}")
    below = _markdown(f"{first['id']}-more", "\n\n".join(rest))
    return [head, setup, imports, *more, *begins[1:place], below, *late, *begins[place:], *others[ends:]]


def _opening(cell: dict) -> list[dict]:
    """The first cell in parts: imports and what begins the records; the numbers to change; the rest, which may draw."""
    imports, numbers, rest = opening(_text(cell))
    begins = re.search(r"^chapter = .*$", rest, re.MULTILINE)[0]
    rest = rest.replace(begins, "").strip("\n")
    draws, folded = "figure" in cell["metadata"].get("mystnb", ()), {"tags": ["hide-input"]}
    parts = [
        ("imports", f"{imports}\n\n{begins}", "Imports", folded),
        ("numbers", numbers, "Numbers to change: run this cell and those below it again", {}),
        ("", rest, "" if draws else "What was stated before anything was measured", cell["metadata"]),
    ]
    cells = [
        {**_code(f"{cell['id']}-{part}".strip("-"), code, "", hidden=False), "metadata": metadata, "title": title}
        for part, code, title, metadata in parts
        if code
    ]
    cells[-1]["outputs"] = cell["outputs"]
    return cells


def _text(cell: dict) -> str:
    return "".join(cell["source"])


def _markdown(name: str, text: str) -> dict:
    return {"cell_type": "markdown", "id": name[-64:], "metadata": {}, "source": _lines(text.strip("\n"))}


def _code(name: str, text: str, title: str, hidden: bool, outputs: Sequence[dict] = (), closed: bool = False) -> dict:
    metadata: dict = {}
    if hidden:
        metadata = {"cellView": "form", "jupyter": {"source_hidden": True}}
        if closed:
            metadata["jupyter"]["outputs_hidden"] = True
    text = f"#@title {title}\n{text}" if title else text
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": name[-64:],
        "metadata": metadata,
        "outputs": list(outputs),
        "source": _lines(text),
    }


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _title(kind: str, code: str, metadata: dict, book: Book) -> str:
    """What a cell does, in a line."""
    if kind == "figure":
        return f"Draws {book.resolve('numref', metadata['mystnb']['figure']['name']).text}"
    if kind == "exercise checkers":
        return "The checkers of the exercises: run this cell before you try yours"
    if shown := re.match(r"show_source\(([^)]*)\)", code):
        return f"Shows the source of {' '.join(shown[1].split())}"
    if made := MADE.findall(code):
        return _short("Derives: ", [name.replace("-", " ") for name in made])
    if checked := CHECKED.findall(code):
        return _short("Checks: ", checked)
    defined = [node.name for node in ast.parse(code).body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return _short("Defines ", defined) if defined else "Computes what follows"


def _short(head: str, names: Sequence[str], most: int = 90) -> str:
    shown = list(names)
    while len(shown) > 1 and len(head + ", ".join(shown)) > most:
        shown.pop()
    more = f" and {len(names) - len(shown)} more" if len(shown) < len(names) else ""
    return f"{head}{', '.join(shown)}{more}"


def _outputs(cell: dict, book: Book) -> list[dict]:
    """What a cell shows: pictures as PNG, which an untrusted notebook shows too, and no records."""
    found = []
    for output in cell["outputs"]:
        output = json.loads(json.dumps(output))
        data = {kind: value for kind, value in output.get("data", {}).items() if not kind.startswith(OWN)}
        if svg := "".join(data.pop(SVG, "")):
            width, height = (float(size) for size in VIEW.search(svg).groups())
            data[PNG] = base64.b64encode(book.draw(svg, round(SCALE * width))).decode()
            shown = WIDTH.search(svg)
            size = float(shown[1]) * (4 / 3 if shown[2] else 1)  # CSS has 4 pixels for 3 points
            output["metadata"] = {PNG: {"width": round(size), "height": round(size * height / width)}}
        if "data" in output:
            output["data"] = data
        found.append(output)
    return found


def _figure(cell: dict, book: Book) -> Iterator[dict]:
    """The caption of a picture, with its number, and what it shows in words."""
    if (about := cell["metadata"].get("mystnb", {})).get("figure"):
        name = about["figure"]["name"]
        link = book.resolve("numref", name)
        moves = f" [On the page it can be moved: {book.moving[name]}]({link.address})" if name in book.moving else ""
        caption = f"**{link.text}.** {plain(about['figure']['caption'], book.resolve)}{moves}"
        words = folded("the picture in words", about["image"]["alt"])
        yield _markdown(f"{cell['id']}-caption", f"{caption}\n\n{words}")


def opening(code: str) -> tuple[str, str, str]:
    """The parts of the first cell, with their comments: the imports, the constants (names in capitals), the rest."""
    lines, parts, done = code.splitlines(), ([], [], []), 0
    for node in ast.parse(code).body:
        constant = isinstance(node, ast.Assign) and all(
            isinstance(name, ast.Name) and name.id.isupper()
            for target in node.targets
            for name in (target.elts if isinstance(target, ast.Tuple) else [target])
        )
        part = 0 if isinstance(node, ast.Import | ast.ImportFrom) else 1 if constant else 2
        parts[part].extend(lines[done : node.end_lineno])
        done = node.end_lineno
    return tuple("\n".join(part).strip("\n") for part in parts)


def _exercises(cell: dict, solutions: dict[str, Block], book: Book) -> Iterator[dict]:
    """Each exercise with its hint and its solution, folded, and a cell for the answer."""
    text = _text(cell)
    starts = [found.start() for found in FENCE.finditer(text) if block_of(found).kind == "exercise"]
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        exercise = blocks(text[start:end])[0]
        question = plain(text[start:end].strip(), book.resolve)
        solution = folded("Solution", plain(solutions[exercise.label].body, book.resolve))
        yield _markdown(exercise.label, f"{question}\n\n{solution}")
        checker = TRY.search(exercise.body)
        number = book.resolve("exercise", exercise.label).text
        yield _code(f"{exercise.label}-answer", f"# {number}: your answer. Then try it: {checker[1]}", "", hidden=False)
