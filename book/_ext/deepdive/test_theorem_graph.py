"""The map of the theorems: what rests on what in a small book, in a drawing with links and in words."""

import re

import nbformat
import pytest

from deepdive import theorem_graph
from small_build import notebook, small_build

PARTS = """root: index
before: []
parts: [{title: One, folder: one, chapters: [sinks, two-keys]}]
after: []
"""
BOX = ":::{admonition} In this chapter\n- **You need** nothing.\n:::\n\n"


def theorem(label, statement, proof):
    return f":::{{prf:theorem}} About {label}\n:label: {label}\n{statement}\n:::\n\n:::{{prf:proof}}\n{proof}\n:::\n\n"


def chapter(title, text):
    return notebook(nbformat.v4.new_markdown_cell(f"# {title}\n\n{BOX}{text}"))


def build(folder, first, second):
    files = {
        "book/parts.yml": PARTS,
        "index.md": "# Book\n\n```{toctree}\n:numbered:\nnotebooks/one/sinks\nnotebooks/one/two-keys\n```\n"
        "```{toctree}\nmap\n```\n",
        "map.md": "# Map\n\n```{theorem-map}\n```\n",
        "notebooks/one/sinks.ipynb": chapter("Sinks", first),
        "notebooks/one/two-keys.ipynb": chapter("Two keys", second),
    }
    said = small_build(folder, files, ("blocks", "theorem_graph"), unsaid=["ledger"])
    return [line for line in said.splitlines() if "exercise" not in line], (folder / "html/map.html").read_text("utf-8")


def words(text):
    lists = re.search(r'<ul class="[^"]*rests-list.*?</ul>', text, re.DOTALL)[0]
    return [" ".join(re.sub("<.*?>", "", item).split()) for item in re.findall(r"<li>(.*?)</li>", lists, re.DOTALL)]


def test_what_a_statement_or_a_proof_names_is_drawn_and_said(tmp_path):
    first = theorem("a", "All is one.", "See {prf:ref}`a`.") + "As {prf:ref}`c` says later.\n"
    second = theorem("b", "By {prf:ref}`a`.", "Twice: {prf:ref}`a`.") + theorem(
        "c", "So.", "{prf:ref}`b`, {prf:ref}`a`."
    )
    said, text = build(tmp_path, first, second)
    assert said == []
    assert words(text) == [
        "Theorem 2.1 (About b) rests on Theorem 1.1 (About a)",
        "Theorem 2.2 (About c) rests on Theorem 2.1 (About b) and on Theorem 1.1 (About a)",
    ]
    assert text.count('<path class="rests"') == 3
    for page, label, title in (("sinks", "a", "1.1"), ("two-keys", "b", "2.1"), ("two-keys", "c", "2.2")):
        assert f'<a href="notebooks/one/{page}.html#{label}" aria-label="Theorem {title} (About {label})">' in text
    assert '<a href="notebooks/one/two-keys.html"><text class="name"' in text and ">two keys</text>" in text


def test_a_lemma_has_a_number_and_a_shape_of_its_own(tmp_path):
    lemma = theorem("b", "So.", "By {prf:ref}`a`.").replace("{prf:theorem}", "{prf:lemma}")
    said, text = build(tmp_path, theorem("a", "So.", "So.") + lemma, "")
    assert said == [] and words(text) == ["Lemma 1.1 (About b) rests on Theorem 1.1 (About a)"]
    shapes = re.findall(r"</title><(\w+) [^>]*/><text [^>]*>(\d+)</text>", text)
    assert shapes == [("circle", "1"), ("rect", "1")]


def test_no_theorem_rests_on_itself(tmp_path):
    said, _ = build(tmp_path, theorem("a", "By {prf:ref}`b`.", "So."), theorem("b", "By {prf:ref}`a`.", "So."))
    assert len(said) == 2 and "a rests on itself, by way of others" in said[0]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"a": (), "b": ("a",), "c": ("a", "b")}, []),
        ({"a": ("a",)}, ["a"]),
        ({"a": ("b",), "b": ("c",), "c": ("a",), "d": ("a",)}, ["a", "b", "c"]),
    ],
)
def test_circles(given, found):
    assert theorem_graph.circles(given) == found
