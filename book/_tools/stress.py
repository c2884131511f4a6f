"""A book as long as this one is to be, to see how long its builds take: the chapters, repeated under other names.

    stress.py FOLDER [CHAPTERS]     writes the book there, and builds it: from nothing, with nothing changed, with a
                                    sentence more in a chapter, and with a theorem more

In a copy of a chapter all that has a name in the book is called otherwise: the chapter, its claims and its labels.
"""

from __future__ import annotations

import csv
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import yaml

import sources
import toc
from deepdive.book import contents, records

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = 47
LABEL = re.compile(r"^:(?:label|name): (\S+)$|^\(([\w-]+)\)=$|\$\$ \(([\w-]+)\)|label\{([\w-]+)\}", re.MULTILINE)
SENTENCE = "\n\nThis sentence was not there before."
THEOREM = "\n\n:::{prf:theorem} What is new\n:label: new-in-stress\n\nThis theorem was not there before.\n:::"
PATHS = ("book", "book/_ext", "book/paper", "book/_tools", "lib")


def labels(notebook: str) -> set[str]:
    """What is defined in a notebook and can be referred to."""
    cells = json.loads(notebook)["cells"]
    found = {label for cell in cells for groups in LABEL.findall("".join(cell["source"])) for label in groups if label}
    figures = [cell["metadata"].get("mystnb", {}).get("figure", {}) for cell in cells]
    return found | {figure["name"] for figure in figures if "name" in figure}


def renamed(notebook: str, name: str, claims: list[str], k: int) -> str:
    """The text of a notebook as its `k`-th copy: what the book knows by a name has the number after it."""
    names = "|".join(sorted(map(re.escape, {*labels(notebook), *claims}), key=len, reverse=True))
    text = re.sub(rf"(?<![\w./-])({names})(?![\w./-]|\()", rf"\1-{k}", notebook) if names else notebook
    text = re.sub(rf'(Chapter\(\\")({re.escape(name)})(\\")', rf"\1\2-{k}\3", text)
    return re.sub(rf'("chapter": ")({re.escape(name)})(")', rf"\1\2-{k}\3", text)


def repeat(root: Path, wanted: int) -> None:
    """Repeat the chapters of a book, each part by itself, until there are as many as wanted."""
    book = records.read_book(root)
    order = yaml.safe_load((root / contents.FILE).read_text(encoding="utf-8"))
    with (root / "book/claims.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for k, chapter in list(further(book, wanted - len(book.chapters))):
        own = [row for row in rows if row["chapter"] == chapter.name]
        path = root / chapter.file
        text = renamed(path.read_text(encoding="utf-8"), chapter.name, [row["id"] for row in own], k)
        path.with_name(f"{chapter.name}-{k}.ipynb").write_text(text, encoding="utf-8")
        part = next(part for part in order["parts"] if chapter.name in part["chapters"])
        part["chapters"].append(f"{chapter.name}-{k}")
        rows += [row | {"id": f"{row['id']}-{k}", "chapter": f"{chapter.name}-{k}"} for row in own]
    (root / contents.FILE).write_text(yaml.safe_dump(order, sort_keys=False, allow_unicode=True), encoding="utf-8")
    with (root / "book/claims.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    toc.write(root)


def further(book: records.Book, missing: int) -> Iterator[tuple[int, records.Chapter]]:
    copies = ((k, chapter) for k in count(2) for chapter in book.notebooks.values())
    yield from (copy for copy, _ in zip(copies, range(missing), strict=False))


def copy(root: Path, to: Path) -> None:
    """What a book is built from, and the formulas that are typeset already."""
    for name in (*sources.READ, ".cache/formulas.json"):
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        if (root / name).is_dir():
            shutil.copytree(root / name, to / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif (root / name).is_file():
            shutil.copy2(root / name, to / name)


def add(notebook: Path, text: str) -> None:
    """Put a text at the end of a chapter's words."""
    read = json.loads(notebook.read_text(encoding="utf-8"))
    next(cell for cell in reversed(read["cells"]) if cell["cell_type"] == "markdown")["source"].append(text)
    notebook.write_text(json.dumps(read, ensure_ascii=False), encoding="utf-8")


def measure(root: Path, what: str) -> None:
    """Build the book and say how long that took, on the clock and of the processor."""
    path = os.pathsep.join(str(root / name) for name in PATHS)
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, root / "book/_tools/build.py", root / "_build/html"]
    subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, check=True)
    after, end = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{what:<20} {end - start:4.0f} s, {used:4.0f} s of the processor", flush=True)


def main() -> None:
    root, wanted = Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else CHAPTERS
    copy(ROOT, root)
    repeat(root, wanted)
    book = records.read_book(root)
    print(f"{len(book.chapters)} chapters, {len(book.claims)} claims")
    notebook = root / f"{next(reversed(book.notebooks))}.ipynb"
    measure(root, "from nothing")
    measure(root, "nothing changed")
    add(notebook, SENTENCE)
    measure(root, "a sentence more")
    add(notebook, THEOREM)
    measure(root, "a theorem more")


if __name__ == "__main__":
    main()
