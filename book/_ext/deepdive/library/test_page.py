"""The library's page of a small book: each entry has a link to its source, and nothing of the library is imported."""

from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from small_build import notebook, small_build

PARTS = """root: index
before: []
parts: [{title: One, folder: one, chapters: [sinks]}]
after: []
"""

FILES = {
    "index.md": "# Library\n\n```{library}\nengine.derive\n```\n",
    "lib/smalltorch/engine/derive.py": """\
\"\"\"About it.\"\"\"
raise SystemExit("imported")

class Derivation:
    \"\"\"A chain.\"\"\"

    def qed(self):
        \"\"\"The end.\"\"\"
""",
}


def test_every_entry_leads_to_its_source_and_back(tmp_path):
    assert small_build(tmp_path, FILES, ["library.page"]) == ""
    html = (tmp_path / "html/index.html").read_text(encoding="utf-8")
    source = (tmp_path / "html/_modules/smalltorch/engine/derive.html").read_text(encoding="utf-8")
    for name in ("Derivation", "Derivation.qed"):
        assert f'href="_modules/smalltorch/engine/derive.html#{name}"><span class="viewcode-link">' in html
        assert f'id="{name}"' in source and f'href="../../../index.html#smalltorch.engine.derive.{name}"' in source
    assert "viewcode-link" not in (tmp_path / "html/searchindex.js").read_text(encoding="utf-8")


def test_a_module_that_is_not_there_is_named(tmp_path):
    files = FILES | {"index.md": "# Library\n\n```{library}\nengine.derive\nengine.none\n```\n"}
    assert "library: engine.none: no module of lib/smalltorch" in small_build(tmp_path, files, ["library.page"])


def test_source_that_a_chapter_shows_leads_to_what_is_said_of_it(tmp_path):
    source = "```python\nclass Derivation:\n    def qed(self): ...\n\ndef own():\n    pass\n```"
    shown = new_output("display_data", data={"text/markdown": source})
    cells = [
        new_markdown_cell("# Sinks\n\n```python\nclass Derivation:\n```"),
        new_code_cell("from smalltorch.engine.derive import Derivation\nshow_source(Derivation)", outputs=[shown]),
    ]
    files = FILES | {
        "book/parts.yml": PARTS,
        "index.md": "# Library\n\n```{library}\nengine.derive\n```\n\n```{toctree}\nnotebooks/one/sinks\n```\n",
        "notebooks/one/sinks.ipynb": notebook(*cells),
    }
    said = small_build(tmp_path, files, ["library.page"], unsaid=["ledger"])
    assert said == ""
    html = (tmp_path / "html/notebooks/one/sinks.html").read_text(encoding="utf-8")
    assert (
        html.count("In the library: <a") == 1
        and "own</" not in html.partition("In the library: ")[2].partition("</p>")[0]
    )
