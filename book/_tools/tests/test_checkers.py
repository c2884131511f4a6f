"""Every exercise checker calls its chapter's answer right, and refuses it where a number of it is none."""

import re
from collections import Counter

import pytest
from nbformat.v4 import new_code_cell, new_notebook

import checkers
import new_chapter
import notebooks

PLACES = ("all", "the first", "the last", "those of the last call", "all, ∞", "all, −∞")
READER = """import torch
def numbers_of(answer):
    found = torch.as_tensor(answer, dtype=torch.float64)
    return found if found.isfinite().all() else None"""
CHECKER = """def check_double(answer):
    for x in (1.0, BASE):
        found = numbers_of(answer(x))
        if found is None:
            return "Two numbers are asked for."
        if not (found - target(x)).abs().max() <= 1e-9:
            return "No."
    return "Right.\""""
TRIED = """assert check_double(lambda x: (2 * x, x)) == "Right."
assert check_double(lambda x: (0, 0)) == "No.\""""


def chapter(reader=READER, checker=CHECKER, tried=TRIED):
    around = ["raise ValueError('a long run that no checker needs')", "BASE = 1.0\nBASE += 2"]
    later = "def target(x):\n    return torch.tensor([2 * x, x])"
    return new_notebook(cells=[new_code_cell(source) for source in (*around, reader, checker, later, tried)])


@pytest.mark.parametrize("path", [*notebooks.all_notebooks(), new_chapter.TEMPLATE], ids=lambda path: path.stem)
def test_each_checker_refuses_what_is_no_number(path):
    notebook = notebooks.read(path)
    code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    right = checkers.answers(notebook)
    assert sorted(right) == sorted(re.findall(r"^def (check_\w+)", code, re.MULTILINE))
    for name, (checker, answer) in right.items():
        for which, reply in checkers.replies(checker, answer).items():
            assert len(reply) > 10 and not re.search(r"\b(nan|inf)\b", reply), (name, which, reply)
    assert checkers.blind(notebook) == []


def test_a_checker_runs_with_what_it_needs_and_nothing_else():
    right = checkers.answers(chapter())
    assert list(right) == ["check_double"]
    assert right["check_double"][1](3.0) == (6.0, 3.0)
    refused = dict.fromkeys(PLACES, "Two numbers are asked for.")
    assert checkers.replies(*right["check_double"]) == refused


@pytest.mark.parametrize(
    ("changes", "passing"),
    [
        (("not (found - target(x)).abs().max() <= 1e-9", "(found - target(x)).abs().max() > 1e-9"), {*PLACES[:4]}),
        (("not (found - target(x)).abs().max() <= 1e-9", "(found < target(x) - 1e-9).any()"), {*PLACES[:5]}),
        (("not (found - target(x)).abs().max() <= 1e-9", "(target(x) + 1e-9 < found).any()"), {*PLACES[:4], PLACES[5]}),
        (("not (found - target(x)).abs().max() <= 1e-9", "not abs(found[0] - 2 * x) <= 1e-9"), {"the last"}),
        (("not (found - target(x)).abs().max() <= 1e-9", "not abs(found[1] - x) <= 1e-9"), {"the first"}),
        (("not (found - target(x))", "x == 1 and not (found - target(x))"), {"those of the last call"}),
    ],
)  # fmt: skip
def test_a_checker_that_takes_nan_for_right_is_found(changes, passing):
    reader = READER.replace("found if found.isfinite().all() else None", "found")
    blind = chapter(reader, CHECKER.replace(*changes), TRIED.splitlines()[0])
    checker, answer = checkers.answers(blind)["check_double"]
    assert {which for which, reply in checkers.replies(checker, answer).items() if reply == "Right."} == passing


def test_a_checker_without_an_answer_that_it_calls_right_is_found():
    assert checkers.answers(chapter(tried=TRIED.splitlines()[1])) == {}
    with pytest.raises(ValueError, match="calls its own answer wrong"):
        checkers.replies(lambda answer: "No.", lambda: 1)


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("error > 1e-9", ["error > 1e-09"]),
        ("found is None or norm(A) >= 1 + 1e-9", ["norm(A) >= 1 + 1e-09"]),
        ("not error <= 1e-9", []),
        ("(gains > 1 - 1e-9).sum() != 2", []),
        ("error < 1e-9", []),
        ("count > 64", []),
    ],
)
def test_a_condition_that_nan_passes_is_found(condition, found):
    cell = f"def check_it(answer):\n    if {condition}:\n        return 'No.'\n    return 'Right.'"
    assert checkers.blind(new_notebook(cells=[new_code_cell(cell)])) == found
    assert checkers.blind(new_notebook(cells=[new_code_cell(cell.replace("'No.'", "'Right.'"))])) == []


# How many replies of these checkers no answer gets yet: for each one more the chapter has to try an answer of its own.
UNTRIED = Counter(
    {
        **{"attention/check_prefix": 1, "attention/check_head": 1, "scaling/check_alike": 1, "softmax/check_stable": 1},
        **{"generation/check_saving": 1, "generation/check_step": 2, "reach/check_window": 1},
        **{"machine/check_shift": 2, "machine/check_unit": 1, "machine/check_gpt": 4, "batch-norm/check_step": 3},
        **{"overview/check_loss": 2, "overview/check_law": 4, "sinusoids/check_embed": 2, "cubic-law/check_stays": 1},
        **{"cubic-law/check_distance": 3, "four-variants/check_power": 2, "four-variants/check_believable": 1},
        **{"four-variants/check_watched": 2, "paths/check_decompose": 2, "causal/check_uniform": 1},
        **{"causal/check_most_sink": 1, "measuring/check_ceiling": 2, "norm-bounds/check_power": 1},
        **{"norm-bounds/check_block": 1, "placement/check_effect": 2, "placement/check_seeds": 2},
        **{"placement/check_sublayer": 1, "products/check_layers": 2, "products/check_rules": 2},
    }
)


@pytest.mark.deep
@pytest.mark.parametrize("path", notebooks.all_notebooks(), ids=lambda path: path.stem)
def test_each_reply_of_a_checker_is_given_to_some_answer(path):
    lost = Counter(f"{path.stem}/{one.partition(':')[0]}" for one in checkers.unreached(notebooks.read(path)))
    assert lost - UNTRIED == Counter()


@pytest.mark.parametrize(
    ("tried", "lost"),
    [("assert 'No' in check_double(lambda x: (0, 'NO'))", []), ("pass", ["check_double: return 'No letters.'"])],
)
def test_a_reply_that_no_answer_gets_is_found(tried, lost):
    letters = '    if "NO" in answer(1.0):\n        return "No letters."\n    for x in (1.0, BASE):'
    checker = CHECKER.replace("    for x in (1.0, BASE):", letters)
    assert checkers.unreached(chapter(checker=checker, tried=f"{TRIED.splitlines()[0]}\n{tried}")) == lost
