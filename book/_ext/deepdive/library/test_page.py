"""The library's page of a small book: each entry has a link to its source, and nothing of the library is imported."""

from deepdive.small_build import small_build

FILES = {
    "book/parts.yml": "root: index\nbefore: []\nparts: []\nafter: []\nmoved: {}\n",
    "book/claims.csv": "id,source,place,claim,chapter\n",
    "book/systems.csv": "number,source,section,name,what,kind,where\n",
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
