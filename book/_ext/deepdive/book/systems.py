"""Parse `systems.csv`: the systems that the notes name, and the chapters that implement or discuss them.

A system is a row of `book/systems.csv`. Its `kind` says by the letters of KINDS what the book does with it. Its `where`
lists sections, each by its chapter and the anchor of its heading: `attention#masks`.
"""

import csv
from dataclasses import dataclass
from pathlib import Path

from deepdive.book.essay import Essay
from deepdive.book.records import NOTES, Book

KINDS = {"I": "implemented", "D": "derived", "M": "measured", "N": "narrative"}
STATES = ("works", "named only")


@dataclass(frozen=True)
class System:
    """A named system, mechanism or technique: one row of systems.csv."""

    number: int
    source: str
    section: str
    name: str
    what: str
    kinds: tuple[str, ...]
    where: tuple[str, ...]

    @property
    def places(self) -> list[tuple[str, str]]:
        """Chapter and anchor of each section in which the book has it."""
        return [(chapter, anchor) for chapter, _, anchor in (entry.partition("#") for entry in self.where) if anchor]

    @property
    def chapters(self) -> list[str]:
        return [entry.partition("#")[0] for entry in self.where]

    @property
    def state(self) -> str:
        """One of STATES. What is only told never counts as working."""
        return "named only" if self.kinds == ("N",) else "works"


def read_systems(path: Path) -> tuple[System, ...]:
    with path.open(encoding="utf-8", newline="") as file:
        return tuple(
            System(
                int(row["number"]),
                row["source"],
                row["section"],
                row["name"],
                row["what"],
                tuple(row["kind"].split()),
                tuple(row["where"].split()),
            )
            for row in csv.DictReader(file, strict=True)
        )


def problems(systems: tuple[System, ...], book: Book) -> list[str]:
    """Everything that is wrong with the index, one line each."""
    to_have = {name for part in book.parts for name in part.chapters}
    found = []
    for number, system in enumerate(systems, 1):
        wrong = []
        if system.number != number:
            wrong.append(f"expected the number {number}")
        if system.source not in NOTES:
            wrong.append(f"the source {system.source!r} is none of N1 to N5")
        if not (system.section and system.name and system.what):
            wrong.append("the section, the name or the description is empty")
        if not system.kinds or list(system.kinds) != [kind for kind in KINDS if kind in system.kinds]:
            wrong.append(f"the kind {' '.join(system.kinds)!r} is not made of the letters I D M N, in this order")
        having = [book.chapters.get(name) for name in system.chapters]
        if having and all(isinstance(chapter, Essay) for chapter in having) and system.kinds != ("N",):
            wrong.append("only an essay has it, and an essay makes nothing work: its kind is N")
        if not system.where:
            wrong.append("no chapter has it")
        wrong += [f"{entry}: name the section that has it" for entry in system.where if "#" not in entry]
        for name, anchor in system.places:
            if name not in to_have:
                wrong.append(f"the chapter {name!r} is not in parts.yml")
            elif name not in book.chapters:
                wrong.append(f"{name} is not written and has no section {anchor!r}")
            elif anchor not in book.chapters[name].headings:
                wrong.append(f"{name} has no section {anchor!r}")
        found += [f"systems.csv: {system.number} ({system.name}): {problem}" for problem in wrong]
    return found
