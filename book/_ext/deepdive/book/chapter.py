"""Parse a chapter's notebook: its metadata, and the verdict records and counts of checks stored in its outputs."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from docutils.nodes import make_id

from smalltorch.engine.schema import Closing, Evidence, Record, read_closing, read_records
from smalltorch.files import read_notebook

TITLE = re.compile(r"\A# +(.+?) *$", re.MULTILINE)
RESULT = re.compile(r"\A# .+\n\n\*\*In short\.\*\* (.+(?:\n.+)*)")  # the paragraph after the title
HEADING = re.compile(r"^#{2,4} +(.+?) *$", re.MULTILINE)
BLOCK = re.compile(r"^(:{3,})\{prf:(\w+)\}[^\n]*\n(.*?)^\1[ ]*$", re.MULTILINE | re.DOTALL)
LABEL = re.compile(r"^:label: (\S+)$", re.MULTILINE)
STEP = re.compile(r"^\d+\. ", re.MULTILINE)
NAMED = re.compile(r"(?<!\w)\((\d+)\)(?:(?:–| to )\((\d+)\))?")  # (2), (1)–(3)
RUNTIME = re.compile(r"^- \*\*It runs\*\* in about (\d+) s on one core\.", re.MULTILINE)


class Located(NamedTuple):
    """A record or a closing, and the position among the notebook's cells of the one that holds it."""

    entry: Record | Closing
    cell: int


@dataclass(frozen=True)
class Proof:
    """A proof on the page, in its steps: the items of its numbered list or, where it has none, its sentences.

    A sentence stands on a line of its own (`make lint`).
    """

    steps: tuple[str, ...]
    numbered: bool

    def named(self, step: str) -> set[int]:
        """The identities that a step names: 2 for “by (2)”, 1 to 3 for “(1)–(3)”."""
        found = NAMED.findall(re.sub(r"\$[^$]*\$", "", step))
        return {k for first, last in found for k in range(int(first), int(last or first) + 1)}

    @property
    def resting(self) -> int:
        """How many of the steps name an identity."""
        return sum(bool(self.named(step)) for step in self.steps)

    def unnamed(self, count: int) -> list[int]:
        """Those of the identities 1 to `count` that no step names."""
        named = set().union(*map(self.named, self.steps))
        return [k for k in range(1, count + 1) if k not in named]


def read_proofs(prose: str) -> dict[str, Proof]:
    """The proofs in a chapter's Markdown, by the label of the theorem that each follows."""
    found: dict[str, Proof] = {}
    label = None
    for _, kind, body in BLOCK.findall(prose):
        if kind != "proof":
            label = LABEL.search(body)
        elif label:
            sentences = re.sub(r"^\$\$.*?\$\$", "", body, flags=re.MULTILINE | re.DOTALL).splitlines()
            _, *items = STEP.split(body)
            steps = items or [line for line in sentences if line.strip() and not line.startswith(":")]
            found[label[1]] = Proof(tuple(steps), bool(items))
    return found


@dataclass(frozen=True)
class Chapter:
    """A notebook as the pages see it.

    `page` is its path from the root of the book, without the suffix; `result` what it says in short that it found;
    `headings` are those of its sections, by anchor; `seconds` is what its box says it runs on one core. `cells` are the
    ids of its cells, which are anchors on the built page, and `code` the positions of those that hold code; `proofs`
    are those on the page, by the labels of their theorems.
    """

    name: str
    page: str
    title: str
    cells: tuple[str, ...]
    code: tuple[int, ...]
    records: tuple[Located, ...]
    closings: tuple[Located, ...]
    result: str = ""
    headings: dict[str, str] = field(default_factory=dict)
    seconds: int | None = None
    proofs: dict[str, Proof] = field(default_factory=dict)

    @property
    def file(self) -> str:
        """What it is written in, from the root of the book."""
        return f"{self.page}.ipynb"

    def cell_of(self, evidence: Evidence) -> str | None:
        """The id of the cell that made a piece of evidence; None where its number points outside the chapter.

        Evidence and closing count the code cells as they ran, from the one that opened the chapter.
        """
        if len(self.closings) != 1:
            return None
        closing, cell = self.closings[0]
        opening = self.code.index(cell) - closing.cell
        inside = opening >= 0 and 0 <= evidence.cell <= closing.cell
        return self.cells[self.code[opening + evidence.cell]] if inside else None


def read_chapter(path: Path, page: str) -> Chapter:
    """Read a notebook; `page` is its path from the root of the book, without the suffix."""
    cells = read_notebook(path)["cells"]
    sources = ["".join(cell["source"]) for cell in cells]
    prose = "\n\n".join(source for cell, source in zip(cells, sources, strict=True) if cell["cell_type"] == "markdown")
    code = tuple(k for k, cell in enumerate(cells) if cell["cell_type"] == "code" and sources[k].strip())
    outputs = [(output.get("data", {}), position) for position in code for output in cells[position]["outputs"]]
    title, result, runtime = TITLE.search(prose), RESULT.search(prose), RUNTIME.search(prose)
    return Chapter(
        name=path.stem,
        page=page,
        title=title[1] if title else path.stem,
        cells=tuple(cell.get("id", "") for cell in cells),
        code=code,
        records=tuple(Located(record, position) for data, position in outputs for record in read_records(data)),
        closings=tuple(
            Located(closing, position) for data, position in outputs if (closing := read_closing(data)) is not None
        ),
        result=" ".join(result[1].splitlines()) if result else "",
        headings={make_id(heading): heading for heading in HEADING.findall(prose)},
        seconds=int(runtime[1]) if runtime else None,
        proofs=read_proofs(prose),
    )
