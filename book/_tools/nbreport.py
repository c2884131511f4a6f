"""A pytest plugin that says, when a notebook no longer gives its outputs, which chapter and which claims that concerns.

Load it beside nbval with `-p nbreport`. Of a failing notebook it reports the first failing cell in full, the later ones
in a word, and at the end two lists: the claims one of whose checks failed, and the claims one of whose checks did not
run because of that. Which checks a claim rests on is read from `chapter.settle(..., by=[...])`.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest
from nbval.plugin import IPyNbCell

import records

COLOURS = re.compile(r"\x1b\[[0-9;]*m")
DIFFERENCES = ("mismatch", "dissimilar", "Missing output", "Unexpected output", "Timeout", "Kernel died")  # of nbval


def pytest_configure(config):
    config.pluginmanager.register(Report(config.rootpath))


def error_line(text: str) -> str:
    """The line of nbval's report that says most: the exception, or else what differs."""
    lines = [line.strip() for line in COLOURS.sub("", text).splitlines()]
    errors = [line for line in lines if re.match(r"[A-Za-z_.]*(Error|Exception|Warning|Interrupt|Failure)\b.*:", line)]
    differs = [line for line in lines if line.startswith(DIFFERENCES)]
    return (errors[-1:] or differs[:1] or [line for line in lines if line][:1] or ["no message"])[0]


def code_cells(path: Path) -> list[int]:
    """The positions of the code cells among all cells, as nbval counts them."""
    import nbformat

    return [index for index, cell in enumerate(nbformat.read(path, 4).cells) if cell.cell_type == "code"]


def code_sources(path: Path) -> list[str]:
    import nbformat

    return [cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]


def parsed(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except SyntaxError:  # a cell with %magic
        return ast.Module([], [])


def names_in(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def evidence_of(source: str) -> dict[str, set[str]]:
    """Claim -> the names of its evidence, from the calls `….settle("id", …, by=[…])` of a cell."""
    found: dict[str, set[str]] = {}
    for call in ast.walk(parsed(source)):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "settle":
            behind = {name for keyword in call.keywords if keyword.arg == "by" for name in names_in(keyword.value)}
            found |= {claim.value: behind for claim in call.args if isinstance(claim, ast.Constant)}
    return found


def failed_names(source: str, error: str) -> tuple[set[str], set[str]]:
    """The names that a failing cell assigns: those whose check failed, and those that it did not reach.

    The check is the one whose title, a string in its call, begins the error message. Where there is none (assert,
    another output), all that the cell assigns counts as failed; where a name was missing, nothing does.
    """
    message = re.sub(r"^[\w.]+: ", "", error)
    failed, others, every = set(), set(), set()
    for statement in parsed(source).body:
        if not isinstance(statement, ast.Assign):
            continue
        names = {name for target in statement.targets for name in names_in(target)}
        titles = {
            part.value
            for part in ast.walk(statement.value)
            if isinstance(part, ast.Constant) and isinstance(part.value, str)
        }
        every |= names
        if any(message.startswith(f"{title}:") for title in titles if title):
            failed |= names
        elif failed:
            others |= names
    if error.startswith("NameError"):
        return set(), every
    return (failed, others) if failed else (every, set())


class Report:
    def __init__(self, root: Path):
        self.root = root
        self.failed: dict[str, dict[int, str]] = defaultdict(dict)  # notebook -> code cell -> what nbval said

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        report = (yield).get_result()
        if report.failed and isinstance(item, IPyNbCell):
            path = str(item.path.relative_to(self.root))
            report.notebook_cell = (path, item.cell_num, str(report.longrepr))
            if getattr(item.parent, "already_failed", False):
                report.longrepr = "an earlier cell of this notebook had failed"
            item.parent.already_failed = True

    def pytest_runtest_logreport(self, report):
        if hasattr(report, "notebook_cell"):
            path, number, text = report.notebook_cell
            self.failed[path].setdefault(number, text)

    def pytest_terminal_summary(self, terminalreporter):
        for path, cells in sorted(self.failed.items()):
            terminalreporter.section(f"claims of {path}", red=True)
            for line in self.claims(path, cells):
                terminalreporter.write_line(line)

    def claims(self, path: str, failed: dict[int, str]) -> list[str]:
        """What to tell of a notebook whose code cells with these numbers failed."""
        chapter = records.read_chapter(self.root / path, path.removesuffix(".ipynb"))
        positions, sources = code_cells(self.root / path), code_sources(self.root / path)
        errors = {number: error_line(text) for number, text in failed.items()}
        first = min(failed)
        fallen, missing = set(), set()
        for number, error in errors.items():
            names, not_reached = failed_names(sources[number], error)
            fallen, missing = fallen | names, missing | not_reached
        evidence = {claim: names for source in sources for claim, names in evidence_of(source).items()}
        broken = {positions[number] for number, error in errors.items() if not error.startswith("NameError")}
        late = positions[first]
        fell, not_run = [], []
        for record in chapter.records:
            behind = evidence.get(record.claim)
            if record.cell in broken or (behind and behind & fallen):
                fell.append(record.claim)
            elif behind & missing if behind else record.cell >= late:
                not_run.append(record.claim)
        lines = [f"chapter {chapter.name}: code cell {first + 1} failed: {errors[first]}"]
        if fell:
            lines.append(f"claims that fell: {', '.join(fell)}")
        if not_run:
            lines.append(f"claims with checks that did not run: {', '.join(not_run)}")
        return lines if fell or not_run else [*lines, "no claim rests on that cell"]
