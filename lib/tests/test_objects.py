"""What sentences are about: a record and its evidence that name nothing in common are listed, and looked at."""

import csv
import json

import pytest

from smalltorch import data
from smalltorch.engine.objects import in_common, objects_in
from smalltorch.engine.schema import Evidence, Record, read_records

# Records that name nothing which their evidence names, each looked at by a reader: the numbers of an example, of which
# the evidence has the values under other words, and what no program can compute.
LOOKED_AT = {
    "C27": "angles in degrees, which the evidence has as steps of the fast and the slow pair",
    "C51": "the weights of an example, which the evidence has as quotients",
    "C93": "open: the phrase names no quantity",
    "C183": "open: reported by a paper",
    "C185": "open: that a theory is lacking",
    "S0-1.2.3-updown": "the widths of published models",
    "S4-5-cat": "a sum of two vectors of numbers",
    "S4-N-mean": "the mean of four numbers",
    "S4-R-example": "a sum of two vectors of numbers",
}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (r"$\lVert A\rVert_2\le\sqrt{n}$, a bound.", {"A", "n", "bound"}),
        (r"$\mathrm{softmax}(S)$ and $\varepsilon$, $\mathbf 1c^\top$", {"S", "epsilon", "c"}),
        ("‖A‖₂ ≤ √n, where σ > 0", {"A", "n", "sigma"}),
        ("Sum(A[i, j], (j, 1, n)) = 1 for all i", {"A", "i", "j", "n"}),
        ("A model's GPT-2, SmolLM2 or Pre-LN", {"model", "gpt-2", "smollm2", "pre-ln"}),
        ("computed, it: 5 of 5 facts agree", set()),
    ],
)
def test_objects(text, found):
    assert objects_in(text) == found


def test_what_a_record_and_its_evidence_both_name():
    evidence = Evidence("derived", "derived for all n: it", shows=("A[i, j]*n <= n",), scope="all n")
    record = Record("C1", "norms", "true", r"$\lVert A\rVert\le\sqrt n$ for attention.", "", (evidence,))
    assert in_common(record, "The norm of $A$ is at most $n$.") == ["A", "n"]
    assert in_common(Record("C1", "norms", "true", "$P=NP$.", "", (evidence,)), "It is said that $P=NP$.") == []


def test_records_whose_evidence_names_nothing_of_theirs_have_been_looked_at():
    with data.path("claims.csv").open(encoding="utf-8", newline="") as file:
        claims = {row["id"]: row["claim"] for row in csv.DictReader(file)}
    notebooks = [json.loads(path.read_text(encoding="utf-8")) for path in data.BOOK.parent.glob("notebooks/*/*.ipynb")]
    outputs = [out for notebook in notebooks for cell in notebook["cells"] for out in cell.get("outputs", ())]
    records = [record for output in outputs for record in read_records(output.get("data", {}))]
    assert len(records) > 300
    strange = {record.claim for record in records if not in_common(record, claims[record.claim])}
    assert strange <= LOOKED_AT.keys(), "evidence that names nothing of its claim: does it bear on it?"
