"""The ledger of a small book: each piece of evidence leads to the cell that gave it, and a chapter to its page."""

import re
from dataclasses import replace

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from small_build import notebook, page, small_build, words
from smalltorch.engine.schema import Closing, Evidence, Record, bundle

PROVED = "proved in text, 1 identity checked and the rest in words: a proof"
PROOF = """\
:::{prf:theorem} All
:label: sinks-all
It holds.
:::

:::{prf:proof}
Suppose not.
Then by (1) it does.
:::
"""
MISSING = "WARNING: ledger: parts.yml: notebooks/two/other is missing\n"  # its claim has a part of another name
HEAD = "# Sinks\n\n**In short.** They hold.\n\n- **It runs** in about 5 s on one core."
EVIDENCE = (
    Evidence("derived", "derived: all $n$", 1, ("x ≤ y*z, where x real",), (), "all n", ("normal form",)),
    Evidence("verified", "with 8 inputs", 2, ("x ≤ y",), (), "8 inputs"),
)


def chapter(evidence, verdict):
    """Four cells of code, whose ids are not their positions: setup, the opening, a check, the closing."""
    record = Record("N1-1", "sinks", verdict, "It holds.", "it does", evidence or ())
    records, claims = ([], ()) if evidence is None else ([record], ("N1-1",))
    outputs = [new_output("display_data", bundle(records, Closing("sinks", 2, 2, claims, 2)))]
    cells = [
        new_markdown_cell(HEAD, id="cell-0"),
        new_code_cell("import this", id="cell-a1", metadata={"tags": ["setup"]}),
        new_markdown_cell(f"## First\n\n{PROOF}", id="cell-5"),
        new_code_cell("open()", id="cell-b2"),
        new_code_cell("derive()", id="cell-c3"),
        new_code_cell("close()", id="cell-d4", outputs=outputs),
    ]
    return notebook(*cells)


def build(folder, evidence=EVIDENCE, verdict="true", corrections="", claim="It is said."):
    files = {
        "book/parts.yml": """\
root: index
before: []
parts: [{title: One, folder: one, chapters: [sinks]}, {title: Two, folder: two, chapters: [other]}]
after: []
""",
        "book/claims.csv": "id,source,place,claim,chapter\n"
        + ("" if evidence is None else f"N1-1,N1,§1,{claim},sinks\n")
        + "N1-2,N1,§1,And this.,other\n",
        "book/references.bib": "@misc{key,\n title = {All}, author = {Other, An}, year = {1999}\n}\n",
        "index.md": "# Book\n```{toctree}\nnotebooks/one/sinks\nbook/ledger\nbook/ledger/sinks\n```\n",
        "book/ledger.md": f"# Ledger\n\n{corrections}\n\n```{{ledger-table}}\n```\n",
        "book/ledger/sinks.md": "# Claims\n\n```{chapter-ledger}\n```\n\n```{bibliography}\n```\n",
        "notebooks/one/sinks.ipynb": chapter(evidence, verdict),
    }
    said = small_build(folder, files)
    return said, page(folder, "book/ledger/sinks")


def links(html):
    return re.findall(
        r'<a class="reference internal" href="../../notebooks/one/sinks.html(#[^"]*)"><strong>(.*?)<', html
    )


def test_each_piece_of_evidence_leads_to_its_cell(tmp_path):
    said, html = build(tmp_path)
    assert said == MISSING
    assert links(html) == [("#cell-c3", "derived"), ("#cell-d4", "verified")]
    html = page(tmp_path, "notebooks/one/sinks")
    assert [name for name in ("a1", "b2", "c3", "d4") if f'id="cell-{name}"' in html] == ["c3", "d4"]


@pytest.mark.parametrize("cell", [-1, 3])
def test_evidence_from_no_cell_of_the_chapter_fails_the_build_and_is_no_dead_link(tmp_path, cell):
    said, html = build(tmp_path, (Evidence("derived", "all", cell, ("x = y",)),))
    assert f"is from cell {cell}, which is not in the chapter" in said
    assert links(html) == [] and 'href="../../notebooks/one/sinks.html"><strong>derived<' in html


def rows(html):
    """The text of the rows' evidence: what is seen, and what is folded under it."""
    folded = re.findall(r'<details class="evidence">\s*<summary>(.*?)</summary>(.*?)</details>', html, re.DOTALL)
    return [[" ".join(re.sub(r"<[^>]+>", " ", part).split()) for part in parts] for parts in folded]


LABELS = {
    Evidence("derived", "it", 1, ("x = y",), (), "all n"): "proved for all n",
    Evidence("derived", "it", 1, ("x = y",), ("y = 1",), "all n"): "proved for all n, with 1 hypothesis",
    Evidence("derived", "it", 1, ("x = y",), ("y = 1", "z = 1"), "all n"): "proved for all n, with 2 hypotheses",
    Evidence("proved in text", "it", 1, ("x = y",), about=("sinks-all",)): (
        "proved in words: 2 sentences, 1 by checked identities"
    ),
    Evidence("fact", "it", 1, ("1 = 1",)): "fact",
    Evidence("computed", "it", 1, ("1 = 1",), (), "n = 6"): "computed at n = 6",
    Evidence("measured", "it", 1, ("m: above 1",), (), "12 texts of SmolLM2"): "measured on 12 texts of SmolLM2",
    Evidence("cited", "it (key)", 1, ("it",), about=("key",)): "cited",  # the key is not shown
}


def test_what_was_shown_is_seen_at_a_glance_and_folded_under_it(tmp_path):
    said, html = build(tmp_path, tuple(LABELS))
    assert said == MISSING
    ((glance, folded),) = rows(html)
    assert glance == " ".join(LABELS.values())
    assert "cited : it [ Oth99 ]" in folded  # by the work, not by its key
    for kind in ("derived", "proved-in-text", "fact", "computed", "measured", "cited"):
        assert f'<span class="shown shown-{kind}">' in html
    said, html = build(tmp_path / "again", (replace(EVIDENCE[0], given=("y ≥ 0 for all i",), instance="n = 2, x = 1"),))
    ((_, folded),) = rows(html)
    assert folded == (
        r"In the claim and in its evidence: nothing. derived : all \(n\) shown: x ≤ y*z, where x real "
        "given: y ≥ 0 for all i which holds at: n = 2, x = 1 closed by: normal form"
    )


def test_what_a_claim_and_its_evidence_name_stands_side_by_side(tmp_path):
    evidence = Evidence("derived", "by sinks in SmolLM2", 1, ("A[i, j] = 1",))
    _, html = build(tmp_path, (evidence,), claim="In SmolLM2 each $A_{ij}$ is at most $k$.")
    ((_, folded),) = rows(html)
    assert folded.startswith("In the claim and in its evidence: A, i, j, smollm2.")


def test_the_ledger_of_all_claims_leads_to_the_evidence_on_the_page_of_the_chapter(tmp_path):
    build(tmp_path)
    html = page(tmp_path, "book/ledger")
    (row,) = re.findall(r'<tr [^>]*id="claim-N1-1">(.*?)</tr>', html, re.DOTALL)
    glance = re.search(r'<a class="reference internal" href="ledger/sinks.html#claim-n1-1">(.*?)</a>', row, re.DOTALL)
    assert 'shown-derived">proved for all n' in glance[1] and 'shown-verified">' in glance[1]
    assert 'id="claim-n1-1"' in page(tmp_path, "book/ledger/sinks") and "cell-c3" not in html
    assert '<code class="docutils literal notranslate"><span class="pre">N1-1' not in html


def test_a_chapter_says_in_one_line_what_it_settles_and_leads_to_its_page_of_the_ledger(tmp_path):
    build(tmp_path)
    html = page(tmp_path, "notebooks/one/sinks")
    (line,) = re.findall(r'<p class="settled">(.*?)</p>', html, re.DOTALL)
    assert words(line) == "This chapter settles 1 claim of the notes: 1 true → its page of the ledger"
    assert 'href="../../book/ledger/sinks.html"' in line
    assert '<span class="verdict verdict-true">1 true</span>' in line


def test_a_chapter_without_claims_has_neither_table_nor_line(tmp_path):
    build(tmp_path, None)
    assert "chapter-sinks" not in page(tmp_path, "book/ledger")
    assert "settle" not in re.sub(
        r"<summary>.*?</summary>", "", page(tmp_path, "notebooks/one/sinks").partition("<main")[2]
    )


REFUTED = (Evidence("counterexample", "it", 1, ("x > y",), about=("N1-1",)),)


@pytest.mark.parametrize(
    ("lines", "verdict", "taken"),
    [
        ("N1-1: It does *not* hold.", "false", True),
        ("N1-1: It holds.", "true", False),
        ("N1-1: Not so.\nN1-1: Not so.", "false", False),
        ("N1-2: It has no record.", "false", False),
        ("N1-1", "false", False),
    ],
)
def test_a_correction_leads_to_its_evidence_and_what_is_none_fails_the_build(tmp_path, lines, verdict, taken):
    evidence = REFUTED if verdict == "false" else EVIDENCE
    said, _ = build(tmp_path, evidence, verdict, f"```{{corrections}}\n{lines}\n```")
    assert ("corrections: expected a claim that is not true" in said) != taken, said
    if taken:
        (entry,) = re.findall(r'<ol class="[^"]*corrections.*?</ol>', page(tmp_path, "book/ledger"), re.S)
        assert 'href="ledger/sinks.html#claim-n1-1"' in entry and "verdict-false" in entry and "<em>not</em>" in entry
