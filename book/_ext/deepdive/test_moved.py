"""Old addresses of a small book lead to their pages; a pair that leads nowhere fails the build."""

import re

import pytest

import pages
from small_build import small_build

MOVED = """\
moved:
  notebooks/1-one/sinks: book/here
"""
FILES = {
    "index.md": "# Book\n```{toctree}\nbook/here\n```\n",
    "book/here.md": "# Sinks & sources\n\nText.\n",
}


def build(folder, moved=MOVED):
    parts = f"root: index\nbefore: []\nparts: []\nafter: []\n{moved}"
    return small_build(folder, FILES | {"book/parts.yml": parts}, ["moved"])


def test_a_stub_leads_from_the_old_address_to_the_new_one(tmp_path):
    assert build(tmp_path) == ""
    html = tmp_path / "html"
    (html / "_static/moved.js").touch()
    stub = (html / "notebooks/1-one/sinks.html").read_text(encoding="utf-8")
    assert '<html lang="en">' in stub and "<title>Sinks &amp; sources</title>" in stub and "noindex" in stub
    assert '<a href="../../book/here.html">Sinks &amp; sources</a>' in stub
    assert '<noscript><meta http-equiv="refresh" content="0; url=../../book/here.html"></noscript>' in stub
    assert 'src="../../_static/moved.js"' in stub
    assert not [problem for problem in pages.problems(html)[0] if problem.startswith("notebooks")]
    index = (html / "searchindex.js").read_text(encoding="utf-8")
    assert "book/here" in index and "1-one" not in index


@pytest.mark.parametrize(
    ("pair", "complaint"),
    [
        ("a: book/nowhere", "moved: a leads to book/nowhere: expected no page there, and one here"),
        ("book/here: index", "moved: book/here leads to index: expected no page there, and one here"),
    ],
)
def test_a_pair_that_leads_nowhere_or_hides_a_page_is_a_warning(tmp_path, pair, complaint):
    said = build(tmp_path, f"moved:\n  {pair}\n")
    assert re.findall("WARNING: (.*)", said) == [complaint]
    assert "Sinks" in (tmp_path / "html/book/here.html").read_text(encoding="utf-8")
