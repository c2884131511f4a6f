"""The page of an essay: its verdicts lead to the ledger, the ledger leads back, and what it settles is counted."""

import re

from small_build import page, small_build, words

TEXT = """\
# Far away

It cannot be tried here.

## Models by name

They are said to be large, which is {claim}`C1`, and cheap, which is {claim}`C2`.

```{settled}
```
"""
VERDICTS = """\
- claim: C1
  verdict: open
  reason: No desk has one.
  read: {key: that there is one}
- claim: C2
  verdict: imprecise
  reason: Cheaper than *what*?
  read: {key: what one costs}
"""


def build(folder, text=TEXT, first="One book."):
    files = {
        "book/parts.yml": "root: index\nbefore: []\nparts: [{title: Far, folder: '', chapters: [far]}]\nafter: []\n",
        "book/claims.csv": "id,source,place,claim,chapter\nC1,N4,VI,It is large.,far\nC2,N4,VI,It is cheap.,far\n",
        "book/references.bib": "@misc{key,\n title = {All}, author = {Other, An}, year = {1999}\n}\n",
        "book/systems.csv": "number,source,section,name,what,kind,where\n1,N4,VI,GPT,a model,N,far#models-by-name\n",
        "index.md": f"# Book\n\n{first}\n\n```{{book-map}}\n```\n\n```{{theorem-list}}\n```\n\n"
        "```{toctree}\nbook/far\nbook/ledger\nbook/ledger/far\nbook/systems\n```\n",
        "book/far.md": text,
        "book/far.yml": VERDICTS,
        "book/systems.md": "# Systems\n\n```{systems-table}\n```\n",
        "book/ledger.md": "# Ledger\n\n```{ledger-counts}\n```\n\n```{ledger-table}\n```\n",
        "book/ledger/far.md": "# Claims\n\n```{chapter-ledger}\n```\n\n```{bibliography}\n```\n",
    }
    return small_build(folder, files, ["essay", "systems", "parts", "blocks"])


def test_a_verdict_in_the_text_leads_to_its_row_of_the_ledger_and_that_back(tmp_path):
    assert build(tmp_path) == ""
    html = page(tmp_path, "book/far")
    for claim, kind in (("c1", "open"), ("c2", "imprecise")):
        (sign,) = re.findall(rf'<a [^>]*href="ledger/far.html#claim-{claim}">(.*?)</a>', html)
        assert sign == f'<span class="verdict verdict-{kind}">{kind}</span>'
    ledger = page(tmp_path, "book/ledger/far")
    (row,) = re.findall(r'<tr [^>]*id="claim-c2">(.*?)</tr>', ledger, re.DOTALL)
    assert "Cheaper than <em>what</em>?" in row and 'href="../far.html"><strong>cited<' in row
    assert "cited: what one costs [Oth99]" in words(row)


def test_an_essay_says_in_one_line_what_it_settles(tmp_path):
    build(tmp_path)
    (line,) = re.findall(r'<p class="settled">(.*?)</p>', page(tmp_path, "book/far"), re.DOTALL)
    said = "This chapter settles 2 claims of the notes: 1 imprecise · 1 open → its page of the ledger"
    assert words(line) == said and 'href="ledger/far.html"' in line


def test_the_ledger_the_map_and_the_index_of_systems_have_it_and_the_theorems_do_not(tmp_path):
    build(tmp_path)
    assert "2 of 2 claims have a verdict:" in words(page(tmp_path, "book/ledger"))
    assert 'href="far.html#models-by-name"' in page(tmp_path, "book/systems")
    first = page(tmp_path, "index").partition("<main")[2] or page(tmp_path, "index")
    rows = [row for row in re.findall(r"<tr.*?</tr>", first, re.DOTALL) if "Far" in row]
    assert len(rows) == 2 and all('href="book/far.html"' in row and " s<" not in row for row in rows)
    assert "part-far" not in first


def test_a_claim_without_a_verdict_fails_the_build(tmp_path):
    said = build(tmp_path, TEXT.replace("`C2`", "`C3`"))
    assert "C3 has no verdict here" in said and "are not the same: C2, C3" in said


def test_a_verdict_on_another_page_fails_the_build(tmp_path):
    assert "C1 has no verdict here" in build(tmp_path, first="It is {claim}`C1`.")
