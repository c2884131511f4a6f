"""A notebook that no longer gives its outputs is reported with its chapter, its claims and the input that broke it."""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_notebook, new_output

import notebooks
import records

TOOLS = Path(__file__).resolve().parents[1]
SHOW = """
class Shown:
    def _repr_mimebundle_(self, **kwargs):
        return BUNDLE
"""


def settling(claim, verdict="true"):
    """A cell that leaves a record of the claim, with its output."""
    entry = {
        "claim": claim,
        "chapter": "norm",
        "verdict": verdict,
        "statement": "It holds.",
        "assumptions": "",
        "evidence": [{"kind": "derived", "text": "all n"}],
    }
    bundle = {"text/plain": "recorded", records.RECORD: {"records": [entry]}}
    source = f"assert variance == 1\nBUNDLE = {bundle!r}\n{SHOW}\n\nShown()"
    return new_code_cell(source, outputs=[new_output("execute_result", bundle)])


def run(folder, *cells):
    (folder / "notebooks").mkdir()
    (folder / ".pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    notebook = notebooks.normalise(new_notebook(cells=list(cells)))
    nbformat.write(notebook, folder / "notebooks/norm.ipynb")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "nbreport",
        "-p",
        "no:cacheprovider",
        "--nbval",
        "--nbval-current-env",
        "notebooks",
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(TOOLS), str(TOOLS.parent / "_ext")))}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def test_the_claims_that_fall_with_a_check_are_named(tmp_path):
    check = new_code_cell("variance = 2\nassert variance == 1, 'variance of [1, 3]: 2 instead of 1'")
    zero = new_code_cell("0", outputs=[new_output("execute_result", {"text/plain": "0"})])
    done = run(tmp_path, zero, check, settling("S0-1"), new_code_cell("variance = 1"), settling("S0-2"))
    assert done.returncode == 1
    assert "chapter norm: code cell 2 failed: AssertionError: variance of [1, 3]: 2 instead of 1" in done.stdout
    assert "claims that fell: S0-1\n" in done.stdout
    assert "claims with checks that did not run: S0-2\n" in done.stdout


def test_only_the_claims_of_the_check_that_failed_are_named(tmp_path):
    """All claims are settled in the last cell, which fails for want of names; that alone must not name them."""
    check = new_code_cell(
        "def check(name, value):\n    assert value == 1, f'{name}: {value} instead of 1'\n    return value\n"
        "mean = check('mean of a row', 1)\nvariance = check('variance of a row', 2)\nlength = check('length', 1)"
    )
    ids = {"S0-1": "mean", "S0-2": "mean, variance", "S0-3": "length", "S0-4": "mean"}
    settle = "".join(f"chapter.settle('{claim}', verdict='true', by=[{names}])\n" for claim, names in ids.items())
    cell = settling("S0-1")
    entries = [settling(claim).outputs[0]["data"][records.RECORD]["records"][0] for claim in ids]
    cell.outputs[0]["data"][records.RECORD]["records"] = entries
    cell.source = settle + cell.source
    done = run(tmp_path, check, cell)
    assert "failed: AssertionError: variance of a row: 2 instead of 1" in done.stdout
    assert "claims that fell: S0-2\n" in done.stdout
    assert "claims with checks that did not run: S0-3\n" in done.stdout


def test_a_record_that_no_longer_says_the_same_is_a_failure(tmp_path):
    cell = settling("S0-1", verdict="false")
    cell.outputs = settling("S0-1", verdict="true").outputs
    done = run(tmp_path, new_code_cell("variance = 1"), cell)
    assert done.returncode == 1 and "claims that fell: S0-1\n" in done.stdout


def test_outputs_that_are_missing_are_a_failure(tmp_path):
    assert run(tmp_path, new_code_cell("0")).returncode == 1


def test_a_notebook_as_it_was_passes(tmp_path):
    done = run(tmp_path, new_code_cell("variance = 1"), settling("S0-1"))
    assert done.returncode == 0 and "claims" not in done.stdout
