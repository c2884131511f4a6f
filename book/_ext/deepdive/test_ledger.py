"""The ledger's page of a small book: each piece of evidence leads to the cell that gave it, and to no other."""

import re

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from deepdive.small_build import small_build
from smalltorch.engine.schema import Closing, Evidence, Record, bundle

HEAD = "# Sinks\n\n**In short.** They hold.\n\n- **It runs** in about 5 s on one core."
EVIDENCE = (Evidence("derived", "derived: all $n$", 1), Evidence("verified", "with 8 inputs", 2))


def chapter(evidence):
    """Four cells of code, whose ids are not their positions: setup, the opening, a check, the closing."""
    record = Record("N1-1", "sinks", "true", "It holds.", "", evidence)
    outputs = [new_output("display_data", bundle([record], Closing("sinks", 2, 2, ("N1-1",), 2)))]
    cells = [
        new_markdown_cell(HEAD, id="cell-0"),
        new_code_cell("import this", id="cell-a1", metadata={"tags": ["setup"]}),
        new_markdown_cell("## First", id="cell-5"),
        new_code_cell("open()", id="cell-b2"),
        new_code_cell("derive()", id="cell-c3"),
        new_code_cell("close()", id="cell-d4", outputs=outputs),
    ]
    language = {"name": "python", "pygments_lexer": "ipython3"}
    return nbformat.writes(new_notebook(cells=cells, metadata={"language_info": language}))


def build(folder, evidence=EVIDENCE):
    files = {
        "book/parts.yml": """\
root: index
before: []
parts: [{title: One, folder: one, chapters: [sinks]}, {title: Two, was: Second, folder: two, chapters: [other]}]
after: []
moved: {}
""",
        "book/claims.csv": "id,source,place,claim,chapter\nN1-1,N1,§1,It is said.,sinks\nN1-2,N1,§1,And this.,other\n",
        "book/systems.csv": "number,source,section,name,what,kind,where\n",
        "index.md": "# Book\n```{toctree}\nnotebooks/one/sinks\nbook/ledger\n```\n",
        "book/ledger.md": "# Ledger\n\n```{ledger-table}\n```\n",
        "notebooks/one/sinks.ipynb": chapter(evidence),
    }
    said = small_build(folder, files)
    return said, (folder / "html/book/ledger.html").read_text(encoding="utf-8")


def links(html):
    return re.findall(r'<a class="reference internal" href="../notebooks/one/sinks.html(#[^"]*)"><strong>(.*?)<', html)


def test_each_piece_of_evidence_leads_to_its_cell(tmp_path):
    said, html = build(tmp_path)
    assert said == ""
    assert links(html) == [("#cell-c3", "derived"), ("#cell-d4", "verified")]
    chapter_page = (tmp_path / "html/notebooks/one/sinks.html").read_text(encoding="utf-8")
    assert [name for name in ("a1", "b2", "c3", "d4") if f'id="cell-{name}"' in chapter_page] == ["c3", "d4"]


@pytest.mark.parametrize("cell", [-1, 3])
def test_evidence_from_no_cell_of_the_chapter_fails_the_build_and_is_no_dead_link(tmp_path, cell):
    said, html = build(tmp_path, (Evidence("derived", "all", cell),))
    assert f"is from cell {cell}, which is not in the chapter" in said
    assert links(html) == [] and 'href="../notebooks/one/sinks.html"><strong>derived<' in html
