"""A notebook that no longer gives its outputs fails, and is reported with its chapter, its claims and the reason."""

import os
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output
from sympy import Symbol

import nbreport
import notebooks
import outcomes
from smalltorch.engine.derive import Derivation
from smalltorch.engine.schema import Closing, Evidence, Record, bundle
from smalltorch.engine.verify import VerificationError, computed, measured

CHAPTER = [
    """\
from pathlib import Path

from smalltorch import data
from smalltorch.engine import ledger
from smalltorch.engine.ledger import Chapter, cited

data.BOOK = Path("../book").resolve()


def check(name, value):
    assert value == 1, f"{name}: {value} instead of 1"
    text = f"computed, {name}: 1 of 1 facts agree to 1e-9"
    return ledger._left("computed", text, shows=("1 = 1",), scope="n = 1")""",
    'chapter = Chapter("norm", checks=4)',
    "one = 1\none",
    'mean = check("mean of a row", 1)\nvariance = check("variance of a row", 1)\nlength = check("length", 1)',
    'other = check("something else", 1)',
    """\
chapter.settle("C1", verdict="true", holds="It holds.", by=[mean])
chapter.settle("C2", verdict="true", holds="It holds.", by=[mean, variance])
chapter.settle("C3", verdict="true", holds="It holds.", by=[length])
chapter.settle("C4", verdict="true", holds="It holds.", by=[other, cited("key", for_="history")])
chapter.close()""",
]
CHANGES = {  # of a notebook: what stands in it, and what replaces it
    "as-it-was": ("", ""),
    "check": ('"variance of a row", 1', '"variance of a row", 2'),
    "verdict": ('settle("C4", verdict="true"', 'settle("C4", verdict="imprecise"'),
    "new-output": ("chapter = Chapter(", "print('new')\nchapter = Chapter("),
    "lost-output": ("one = 1\none", "one = 1"),
    "other-output": ("one = 1\none", "one = 1\none + 1"),
}


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What `make notebooks` says of a chapter that was run, and of copies with one change each: by their names."""
    root = tmp_path_factory.mktemp("book")
    (root / ".pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider\n", encoding="utf-8")
    (root / "book").mkdir()
    rows = "".join(f"C{n},N1,§1,It is said.,norm\n" for n in range(1, 5))
    (root / "book/claims.csv").write_text(f"id,source,place,claim,chapter\n{rows}", encoding="utf-8")
    (root / "book/references.bib").write_text("@book{key,\n}\n", encoding="utf-8")
    (root / "notebooks").mkdir()
    path = root / "notebooks/as-it-was.ipynb"
    path.write_text(notebooks.text_of(new_notebook(cells=list(map(new_code_cell, CHAPTER)))), encoding="utf-8")
    assert notebooks.execute(path) == ""
    for name, (old, new) in CHANGES.items():
        notebook = notebooks.read(path)
        for cell in notebook.cells:
            cell.source = cell.source.replace(old, new)
        path.with_stem(name).write_text(notebooks.text_of(notebook), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "2", *outcomes.NBVAL, str(root / "notebooks")],
        cwd=notebooks.ROOT,
        env={**os.environ, "PYTHONPATH": "book/_tools"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    sections = re.findall(r"^=+ claims of notebooks/(.*)\.ipynb =+\n((?:[^=].*\n)*)", done.stdout, re.MULTILINE)
    return {"in full": done.stdout, **dict(sections)}


def test_a_notebook_as_it_was_passes(told):
    assert "as-it-was" not in told["in full"]


def test_the_claims_of_the_check_that_failed_are_named_and_no_others(told):
    """All claims are settled in the last cell, which fails for want of names; that alone must not name them."""
    first, fell, not_run = told["check"].splitlines()
    assert first == "chapter check: code cell 4 failed: AssertionError: variance of a row: 2 instead of 1"
    assert fell == "claims that fell: C2"
    assert not_run == "claims with checks that did not run: C3"


def test_the_later_cells_are_reported_in_a_word(told):
    word = "an earlier cell of this notebook had failed"
    assert told["in full"].splitlines().count(word) == 1  # pytest's own summary may name it again, in a longer line
    assert "NameError" not in told["in full"]  # what the last cell of `check` ends in


def test_a_record_that_no_longer_says_the_same_is_a_failure(told):
    assert "code cell 6 failed: mismatch" in told["verdict"] and "claims that fell: C4\n" in told["verdict"]


@pytest.mark.parametrize(
    ("name", "line"),
    [  # "new-output": the cell has none in store
        ("new-output", "code cell 2 failed: Unexpected output fields from running code: {'stdout'}"),
        ("lost-output", "code cell 3 failed: Missing output fields from running code: {'text/plain'}"),
        ("other-output", "code cell 3 failed: mismatch 'text/plain'"),
    ],
)
def test_an_output_that_is_new_or_lost_or_other_is_a_failure(told, name, line):
    assert told[name] == f"chapter {name}: {line}\nno claim rests on that cell\n"


def test_a_kernel_that_did_not_start_is_started_once_more(monkeypatch):
    tries = []

    def running(name, works_at):
        tries.append(name)
        if len(tries) < works_at:
            raise RuntimeError("Kernel didn't respond in 60 seconds")
        return "a kernel"

    monkeypatch.setattr(nbreport, "RunningKernel", running)
    monkeypatch.setattr(nbreport.nbval, "RunningKernel", running)
    nbreport.pytest_configure(SimpleNamespace(rootpath="", pluginmanager=SimpleNamespace(register=lambda plugin: None)))
    assert nbreport.nbval.RunningKernel("python", works_at=2) == "a kernel" and tries == ["python", "python"]
    with pytest.raises(RuntimeError, match="60 seconds"):
        nbreport.nbval.RunningKernel("python", works_at=5)


def test_what_pytest_says_of_a_kernel_is_told():
    text = "cls = <class 'CallInfo'>\n\nE           RuntimeError: Kernel died before replying to kernel_info\nx.py:9"
    assert nbreport.error_line(text) == "RuntimeError: Kernel died before replying to kernel_info"


def code(*sources, evidence, opened=0):
    """The code cells of a notebook that settles C1, C2 … on this evidence, in its last cell."""
    cells = [new_code_cell(source) for source in sources]
    records = [Record(f"C{n}", "norm", "true", "It holds.", "", e) for n, e in enumerate(evidence, start=1)]
    closing = Closing("norm", 1, 1, tuple(r.claim for r in records), len([s for s in sources if s]) - 1 - opened)
    cells[-1].outputs = [new_output("execute_result", bundle(records, closing))]
    return cells


def verified(name, cell):
    return Evidence("verified", f"verified, {name}: tightness 1.00", cell)


@pytest.mark.parametrize(
    ("error", "fell", "not_run"),
    [
        ("VerificationError: rows: all of them: broken at (4, 4)", ["C2"], ["C3", "C4"]),  # who knows of C4
        ("VerificationError: rows: broken at (4, 4)", ["C1", "C2"], ["C3", "C4"]),  # a name within a name
        ("VerificationError: ‖A‖*2: broken at (4, 4)", ["C3"], ["C4"]),
        ("StepError: mean-and-squares, step 2: x > 1", ["C4"], ["C1", "C2", "C3"]),  # begun elsewhere
        ("StepError: a derivation", ["C1", "C2", "C3", "C4"], []),
        ("AssertionError", ["C1", "C2", "C3", "C4"], []),
        ("mismatch 'text/plain'", ["C1", "C2", "C3", "C4"], []),
        ("NameError: name 'x' is not defined", [], ["C1", "C2", "C3", "C4"]),
        ("pytest plugin exception: Kernel dead on test start", [], ["C1", "C2", "C3", "C4"]),
    ],
)
def test_the_error_tells_which_check_of_a_cell_failed(error, fell, not_run):
    source = "a = at_most('rows', f)\nb = at_most('rows: all of them', g)\nc = at_most('‖A‖*2', h)\nd.qed()"
    derived = Evidence("derived", "derived for all n: mean and squares", 0)
    evidence = [(verified("rows", 0),), (verified("rows: all of them", 0),), (verified(r"‖A‖\*2", 0),), (derived,)]
    cells = code("import smalltorch", source, "chapter.close()", evidence=evidence, opened=1)
    assert nbreport.outcome(cells, {1: error}, []) == (fell, not_run)


def test_only_the_checks_of_the_failing_cells_count():
    """Empty cells are numbered, but do not run; a citation is no check."""
    cited = Evidence("cited", "history (key)", 3)
    evidence = [(verified("a", 1),), (verified("b", 2), cited), (cited,), (verified("a", 1), verified("b", 2))]
    cells = code("open", "a", "", "b", "close", evidence=evidence)
    errors = {1: "AssertionError", 3: "NameError: name 'a' is not defined", 4: "NameError: name 'a' is not defined"}
    assert nbreport.outcome(cells, errors, []) == (["C1", "C4"], ["C2"])
    assert nbreport.outcome(cells, {2: "pytest plugin exception: Kernel dead on test start"}, []) == ([], [])


def test_with_the_last_cell_fall_the_claims_of_which_it_says_something_else_or_all():
    cells = code("open", "close", evidence=[(verified("a", 0),)] * 3)
    assert nbreport.outcome(cells, {1: "mismatch 'text/plain'"}, ["C2"]) == (["C2"], [])
    assert nbreport.outcome(cells, {1: "AssertionError: 2 checks ran"}, []) == (["C1", "C2", "C3"], [])


def test_a_last_cell_that_refuses_to_settle_adds_nothing_to_what_failed_before():
    cells = code("open", "check", "close", evidence=[(verified("a", 1),), (verified("b", 2),), (verified("c", 0),)])
    errors = {1: "StepError: a, step 1: no", 2: "ValueError: by: a derivation is evidence only after qed()"}
    assert nbreport.outcome(cells, errors, []) == (["C1"], ["C2"])
    assert nbreport.outcome(cells, {1: errors[1], 2: "mismatch 'text/plain'"}, ["C3"]) == (["C1", "C2", "C3"], [])


def test_without_a_record_no_claim_is_named():
    assert nbreport.outcome([new_code_cell("0")], {0: "AssertionError"}, []) == ([], [])


def test_what_the_library_says_of_a_check_names_it():
    with pytest.raises(VerificationError) as failure:
        computed("a*b: the sum", [("1 + 1", 2, 3)])
    error = f"VerificationError: {failure.value}"
    x = Symbol("x", real=True)
    done = {
        computed("a*b: the sum", [("1 + 1", 2, 2)]).evidence,
        measured("a*b, apart", [1.0, 1.1, 1.2, 0.9, 1.0], above=0, over="seeds").evidence,
        Derivation("a-b", scope="all x").start((x + 1) ** 2).eq(x**2 + 2 * x + 1, because="").qed().evidence,
    }
    assert {e.kind for e in nbreport.of_failed_check(error, done)} == {"computed"}
    assert {e.kind for e in nbreport.of_failed_check("VerificationError: a*b, apart: 1.05 is", done)} == {"measured"}
    assert {e.kind for e in nbreport.of_failed_check("StepError: a-b, step 1: no", done)} == {"derived"}
