"""A chapter is read from its notebook as it stands, and each piece of evidence is traced to the cell that gave it."""

import json

import pytest

from deepdive.book.chapter import RUNTIME, Located, read_chapter, read_proofs
from smalltorch.engine.schema import CHAPTER_MIME, RECORD_MIME, Closing, Evidence, Record

EVIDENCE = (Evidence("derived", "all n", 1), Evidence("none", "nobody knows", 2))


def code(source, **data):
    return {"cell_type": "code", "id": f"cell-{source}", "source": source, "outputs": [{"data": data}] if data else []}


def prose(text):
    return {"cell_type": "markdown", "id": "", "source": text}


def notebook(tmp_path, *cells):
    path = tmp_path / "norm.ipynb"
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    return read_chapter(path, "notebooks/part/norm")


def whole(tmp_path, cell):
    """A chapter with two cells of code before the one that opens it; `cell` is what its closing counts."""
    entry = {
        "claim": "a",
        "chapter": "norm",
        "verdict": "open",
        "statement": "Unknown.",
        "assumptions": "",
        "evidence": [{"kind": piece.kind, "text": piece.text, "cell": piece.cell} for piece in EVIDENCE],
    }
    closing = {"chapter": "norm", "declared": 1, "executed": 1, "claims": ["a"], "cell": cell}
    return notebook(
        tmp_path,
        prose(
            [
                "# How large?\n",
                "\n",
                "**In short.** Less than\n",
                "$2$.\n",
                "\n",
                "Why?\n",
                "- **It runs** in about 7 s on one core.\n",
                "## As $\\sqrt n$: why?",
            ]
        ),
        code("setup"),
        code("imports"),
        code("open"),
        code(" "),  # an empty cell does not run
        prose("### Then"),
        code("derive"),
        code("settle", **{RECORD_MIME: {"records": [entry]}}),
        code("close", **{CHAPTER_MIME: closing}),
    )


def test_a_chapter_is_read_with_the_records_in_its_outputs(tmp_path):
    chapter = whole(tmp_path, 3)
    assert (chapter.name, chapter.title, chapter.result) == ("norm", "How large?", "Less than $2$.")
    assert chapter.seconds == 7
    assert chapter.headings == {"as-sqrt-n-why": r"As $\sqrt n$: why?", "then": "Then"}
    assert chapter.records == (Located(Record("a", "norm", "open", "Unknown.", "", EVIDENCE), 7),)
    assert chapter.closings == (Located(Closing("norm", 1, 1, ("a",), 3), 8),)


def test_evidence_is_traced_to_its_cell_past_prose_and_empty_cells(tmp_path):
    chapter = whole(tmp_path, 3)
    found = [chapter.cell_of(Evidence("derived", "all n", cell)) for cell in range(-1, 5)]
    assert found == [None, "cell-open", "cell-derive", "cell-settle", "cell-close", None]


def test_a_chapter_that_counts_more_cells_than_it_has_is_traced_nowhere(tmp_path):
    assert whole(tmp_path, 5).cell_of(EVIDENCE[0]) == "cell-imports"
    assert whole(tmp_path, 6).cell_of(EVIDENCE[0]) is None


def test_without_one_closing_there_is_nothing_to_count_from(tmp_path):
    assert notebook(tmp_path, prose("# Title"), code("open")).cell_of(EVIDENCE[0]) is None


@pytest.mark.parametrize(
    "text",
    [
        "# T\n\nWhy?",
        "# T\n\nWhy?\n\n**In short.** Less.",
        "**In short.** Less.",
        "# T\n\n**In short** less.",
        "# T\n\n**In short.**",
    ],
)
def test_a_result_stands_right_after_the_title(tmp_path, text):
    assert notebook(tmp_path, prose(text)).result == ""


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        ("- **It runs** in about 12 s on one core.", 12),
        ("- **It runs** in about 12 s on one core. (Measure it.)", 12),
        ("- **It runs** in about 12 s.", None),
        ("- **It runs** quickly on one core.", None),
        ("It runs in about 12 s on one core.", None),
    ],
)
def test_a_chapter_says_in_one_form_how_long_it_runs(line, seconds):
    found = RUNTIME.search(f"- **You need** nothing.\n{line}\n:::")
    assert (found and int(found[1])) == seconds


THEOREM = ":::{prf:theorem} A title\n:label: norm-all\n\nIt holds.\n:::\n"


@pytest.mark.parametrize(
    ("proof", "steps", "numbered", "resting", "unnamed"),
    [
        ("Suppose not.\nBy (1) and (2) it does.\nThat is a contradiction.", 3, False, 1, []),
        ("By (1)–(2) it does, by (2).", 1, False, 1, []),
        ("By (1) to (2) it does.", 1, False, 1, []),
        ("By (1), it does.\n\n$$\nx\n= (2)\n$$\n\nSo $f(2)=x$ and $(2)$.", 2, False, 1, [2]),
        ("1. Suppose not.\n   Say, so.\n2. By (2), it does.\n\n   It does.\n3. End.", 3, True, 1, [1]),
        ("Read this first.\n\n1. By (1), (2).\n2. End.", 2, True, 1, []),
        ("By f(1) and $x^{(2)}$.", 1, False, 0, [1, 2]),
        (":class: dropdown\nBy (1) and (2).", 1, False, 1, []),
    ],
)
def test_a_proof_is_counted_in_its_steps(proof, steps, numbered, resting, unnamed):
    read = read_proofs(f"{THEOREM}\nIn words: it holds.\n\n::::{{prf:proof}}\n{proof}\n::::\n")["norm-all"]
    assert (len(read.steps), read.numbered, read.resting, read.unnamed(2)) == (steps, numbered, resting, unnamed)


def test_a_proof_belongs_to_the_theorem_before_it():
    proof = ":::{prf:proof}\nIt does.\n:::\n"
    assert read_proofs(proof) == {}
    assert list(read_proofs(THEOREM + proof + THEOREM.replace("norm-all", "norm-none"))) == ["norm-all"]
    assert read_proofs(THEOREM + THEOREM.replace(":label: norm-all\n", "") + proof) == {}
