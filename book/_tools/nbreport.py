"""Pytest plugin: when a notebook no longer reproduces its outputs, report the chapter and the claims concerned.

Load it beside nbval with `-p nbreport`. Of a failing notebook it reports the first failing cell in full, the later ones
in a word, and at the end two lists: the claims one of whose checks failed, and the claims one of whose checks did not
run because of that. Which cell ran which check is on record in the notebook's outputs.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from pathlib import Path

import pytest
from nbval import kernel as nbval_kernel
from nbval import plugin as nbval
from nbval.kernel import RunningKernel

import kernel_server
from smalltorch.engine.schema import NOT_CHECKS, Closing, Evidence, Record, read_closing, read_records
from smalltorch.files import read_notebook

COLOURS = re.compile(r"\x1b\[[0-9;]*m")
DIFFERENCES = ("mismatch", "dissimilar", "Missing output", "Unexpected output", "Timeout", "Kernel died")  # of nbval
UNREACHED = ("NameError", "pytest plugin exception: Kernel dead")  # an earlier cell is to blame
STRING = re.compile(r"""(["'])(.+?)\1""")  # in code


def pytest_configure(config):
    config.pluginmanager.register(Report(config.rootpath))
    nbval.RunningKernel = kernel
    nbval_kernel.NbvalKernelspecManager = kernel_server.specifications
    nbval.IPyNbFile.setup = noting(nbval.IPyNbFile.setup)


def noting(setup):
    """Let the kernel of each notebook note what it opens in a file of the notebook's name, if a folder is named."""
    folder = os.environ.get(kernel_server.OPENED)

    def with_notes(notebook):
        if folder:
            os.environ[kernel_server.OPENED] = str(Path(folder) / notebook.path.stem)
        setup(notebook)

    return with_notes


def kernel(*args, **kwargs) -> RunningKernel:
    """A kernel that runs, at the second try if need be.

    The ports of a kernel are chosen before it opens them, and now and then another process has taken one in between.
    """
    try:
        return RunningKernel(*args, **kwargs)
    except RuntimeError:
        return RunningKernel(*args, **kwargs)


def error_line(text: str) -> str:
    """The line of nbval's report that says most: the exception, or else what differs."""
    lines = [line.removeprefix("E ").strip() for line in COLOURS.sub("", text).splitlines()]  # E: pytest's own mark
    errors = [line for line in lines if re.match(r"[A-Za-z_.]*(Error|Exception|Warning|Interrupt|Failure)\b.*:", line)]
    differs = [line for line in lines if line.startswith(DIFFERENCES)]
    return (errors[-1:] or differs[:1] or [line for line in lines if line][:1] or ["no message"])[0]


def source_of(cell: dict) -> str:
    return "".join(cell["source"])


def on_record(outputs: list[dict]) -> tuple[Closing | None, dict[str, Record]]:
    """The closing of a chapter in these outputs, and its records by claim."""
    data = next((d for output in outputs if read_closing(d := output.get("data", {}))), {})
    return read_closing(data), {record.claim: record for record in read_records(data)}


def plain(text: str) -> str:
    """Without what distinguishes a check's name in its evidence from the name in its error and in the code."""
    return re.sub(r"\\([*<`$])", r"\1", text).replace("-", " ")


def speaks_of(text: str, name: str) -> bool:
    """Whether an error or a piece of evidence is that of the check with this name."""
    return bool(re.search(rf"[,:] {re.escape(plain(name))}(:|, step|$)", plain(text)))


def of_failed_check(error: str, evidence: set[Evidence]) -> set[Evidence]:
    """The evidence that the check whose name begins the error would have given; all of it, where no name does."""
    message = error.partition(": ")[2]
    for end in reversed([end.start() for end in re.finditer(r": |, step ", message)]):  # names may have colons
        if found := {e for e in evidence if speaks_of(e.text, message[:end])}:
            return found
    return evidence


def place(text: str, source: str) -> int:
    """Where a cell's code names the check of which an error or a piece of evidence speaks; -1 where it does not."""
    return max((string.start() for string in STRING.finditer(source) if speaks_of(text, string[2])), default=-1)


def outcome(cells: list[dict], errors: dict[int, str], changed: list[str]) -> tuple[list[str], list[str]]:
    """The claims that fell, and those with checks that did not run.

    Args:
        cells: the code cells of a notebook, with the outputs that are stored.
        errors: what went wrong, by the number of the cell.
        changed: the claims whose records differ from those that are stored.
    """
    ran = {number: turn for turn, number in enumerate(n for n, cell in enumerate(cells) if source_of(cell).strip())}
    closed = next((number for number in ran if on_record(cells[number]["outputs"])[0]), None)
    if closed is None:
        return [], []
    closing, records = on_record(cells[closed]["outputs"])
    opened = ran[closed] - closing.cell
    checks = {e for record in records.values() for e in record.evidence if e.kind not in NOT_CHECKS}
    fallen, missing, settled = set(), set(), set()
    for number, error in errors.items():
        made = {e for e in checks if opened + e.cell == ran.get(number)}
        refused = number == closed and number > min(errors) and not error.startswith(DIFFERENCES)  # to settle
        if refused or error.startswith(UNREACHED):
            missing |= made
            continue
        failed = of_failed_check(error, made)
        here = place(error, source_of(cells[number]))
        fallen |= failed
        missing |= {e for e in made - failed if not 0 <= place(e.text, source_of(cells[number])) < here}
        if number == closed:
            settled = set(changed or records)
    fell = [claim for claim, record in records.items() if claim in settled or fallen & set(record.evidence)]
    not_run = [claim for claim, record in records.items() if claim not in fell and missing & set(record.evidence)]
    return fell, not_run


class Report:
    def __init__(self, root: Path):
        self.root = root
        self.failed: dict[str, dict[int, str]] = defaultdict(dict)  # notebook -> code cell -> what nbval said
        self.changed: dict[str, list[str]] = defaultdict(list)  # notebook -> claims

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        report = (yield).get_result()
        if report.failed and isinstance(item, nbval.IPyNbCell):
            path = str(item.path.relative_to(self.root))
            (_, stored), (_, new) = on_record(item.cell.outputs), on_record(item.test_outputs or [])
            changed = [claim for claim in stored if claim in new and new[claim] != stored[claim]]
            report.notebook_cell = (path, item.cell_num, str(report.longrepr), changed)
            if getattr(item.parent, "already_failed", False):
                report.longrepr = "an earlier cell of this notebook had failed"
            item.parent.already_failed = True

    def pytest_runtest_logreport(self, report):
        if hasattr(report, "notebook_cell"):
            path, number, text, changed = report.notebook_cell
            self.failed[path].setdefault(number, text)
            self.changed[path] += changed

    def pytest_terminal_summary(self, terminalreporter):
        for path, texts in sorted(self.failed.items()):
            terminalreporter.section(f"claims of {path}", red=True)
            for line in self.claims(path, texts):
                terminalreporter.write_line(line)

    def claims(self, path: str, texts: dict[int, str]) -> list[str]:
        """What to tell of a notebook whose code cells with these numbers failed."""
        cells = read_notebook(self.root / path)["cells"]
        errors = {number: error_line(text) for number, text in texts.items()}
        first = min(errors)
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        fell, not_run = outcome(code, errors, self.changed[path])
        lines = [f"chapter {Path(path).stem}: code cell {first + 1} failed: {errors[first]}"]
        if fell:
            lines.append(f"claims that fell: {', '.join(fell)}")
        if not_run:
            lines.append(f"claims with checks that did not run: {', '.join(not_run)}")
        return lines if fell or not_run else [*lines, "no claim rests on that cell"]
