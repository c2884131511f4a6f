"""Proofs that begin with a list, and others."""

import re

import pytest

from small_build import small_build

LIST = '<p>Proof.</p> <ol class="arabic simple"> <li><p>One.</p></li> <li><p>Two.</p></li> </ol>'


@pytest.mark.parametrize(
    ("proof", "shown"),
    [("1. One.\n2. Two.", LIST), ("See:\n\n- one", "<p>Proof. See:</p> <ul"), ("It is 1.", "It is 1.</p>")],
)
def test_a_list_that_a_proof_begins_with_is_one(tmp_path, proof, shown):
    page = f"# Page\n\n:::{{prf:proof}}\n{proof}\n:::\n"
    assert small_build(tmp_path, {"index.md": page}, rooms=["proof"]) == ""
    html = " ".join((tmp_path / "html/index.html").read_text(encoding="utf-8").split())
    assert shown in html, re.search(r'class="proof.*', html)[0][:500]
