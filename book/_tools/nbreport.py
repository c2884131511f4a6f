"""A pytest plugin that says, when a notebook no longer gives its outputs, which chapter and which claims that concerns.

Load it beside nbval with `-p nbreport`. Of a failing notebook it reports the first failing cell in full, the later ones
in a word, and at the end the claims that stand on that cell and on what follows it.
"""
from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest
from nbval.plugin import IPyNbCell

import records

COLOURS = re.compile(r"\x1b\[[0-9;]*m")
DIFFERENCES = ("mismatch", "dissimilar", "Missing output", "Unexpected output", "Timeout", "Kernel died")   # of nbval


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


class Report:
    def __init__(self, root: Path):
        self.root = root
        self.failed: dict[str, dict[int, str]] = defaultdict(dict)   # notebook -> code cell -> what nbval said

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
        positions = code_cells(self.root / path)
        first = min(failed)
        lines = [f"chapter {chapter.name}: code cell {first + 1} failed: {error_line(failed[first])}"]
        fell = {positions[number] for number in failed}
        claims = [record.claim for record in chapter.records if record.cell in fell]
        if claims:
            lines.append(f"claims that fell: {', '.join(claims)}")
        later = [record.claim for record in chapter.records if record.cell >= positions[first]]
        shaken = [claim for claim in later if claim not in claims]
        if shaken:
            lines.append(f"other claims settled from that cell on: {', '.join(shaken)}")
        return lines if claims or shaken else [*lines, "no claim is settled from that cell on"]
