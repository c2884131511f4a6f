"""Theorems and exercises: what a chapter lacks is found; lists, permalinks and the search's index of a small book."""

import json
import re
from dataclasses import replace

import nbformat
import pytest

import new_chapter
import pages
from deepdive import blocks
from deepdive.blocks import Block, Contents
from small_build import notebook, small_build

EXERCISES = tuple(Block("exercise", f"ex-{name}", name) for name in "ab")
CHAPTER = Contents((Block("lemma", "a-lemma", "Sinks"), *EXERCISES), ("ex-a", "ex-b"), ("check_a", "check_b"))


def test_a_whole_chapter_passes():
    assert blocks.problems(CHAPTER) == []


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"blocks": (Block("lemma", "a-lemma", ""), *EXERCISES)}, "the lemma a-lemma has no title"),
        ({"blocks": (Block("lemma", "lemma-3", "Sinks"), *EXERCISES)}, "the lemma “Sinks” has no label"),
        ({"blocks": (Block("lemma", "a-lemma", "Two \\varepsilon"), *EXERCISES)}, "holds a formula"),
        ({"blocks": EXERCISES[:1], "checkers": ("check_a",)}, "2 exercises at least, and has 1"),
        ({"solved": ("ex-b",)}, "ex-a has no solution"),
        ({"checkers": ("check_a",)}, "2 exercises and 1 checkers"),
    ],
)
def test_what_is_missing_is_found(changes, complaint):
    found = blocks.problems(replace(CHAPTER, **changes))
    assert len(found) == 1 and complaint in found[0], found


# --- a small book -----------------------------------------------------------------------------------------------------

FILES = {
    "book/parts.yml": """\
root: index
before: []
parts:
- {title: One, folder: 1-one, chapters: [sinks]}
- {title: Two, folder: 2-two, chapters: [other]}
after: []
""",
    "book/systems.csv": """\
number,source,section,name,what,kind,where
1,N3,a list,Layer normalisation,what comes before,D,sinks#more sinks#again
2,N3,a list,The factor $c$,a number,D,sinks#more
3,N3,a list,Scaling law,a later part,N,other-chapter
""",
    "index.md": """\
# Book
```{toctree}
:numbered:
notebooks/1-one/sinks
notebooks/2-two/other
```
```{toctree}
book/theorems
book/exercises
book/notation
```
""",
    "book/theorems.md": "# Theorems\n\n```{theorem-list}\n```\n",
    "book/exercises.md": "# Exercises\n\n```{exercise-list}\n```\n",
    "book/notation.md": """\
# Notation

| symbol | meaning | in code | spoken |
|---|---|---|---|
| $C_n$ | average | `uniform` | C sub n, Cesàro matrix |
| $s$ | sink mass | `sink_mass` | s, sink mass |
| $S$ | logits | `S` | S |
""",
}
BOX = ":::{admonition} In this chapter\n- **You need** {doc}`../2-two/other`.\n:::\n\n"
THEOREM = """\
:::{prf:theorem} A sink forces the norm
:label: sinks-norm
See {doc}`../2-two/other` and [there](../2-two/other.ipynb). Then

$$a\\le b. $$ (bound)
:::

:::{prf:proof}
By {eq}`bound`.
:::

"""
EXERCISE = """\
:::{{exercise}} Title {0}
:label: ex-{1}-{0}
Prove $a_{0}$, with {{prf:ref}}`sinks-norm`.
:::

:::{{solution}} ex-{1}-{0}
:class: dropdown
Look at $b_{0}$.
:::

"""


def chapter(title, name, text=""):
    checkers = "def check_a(answer):\n    return 'Right.'\n\n\ndef check_b(answer):\n    return 'Right.'"
    source = f"# {title}\n\n{BOX}{text}" + "".join(EXERCISE.format(letter, name) for letter in "ab")
    return notebook(nbformat.v4.new_markdown_cell(source), nbformat.v4.new_code_cell(checkers))


FILES |= {
    "notebooks/1-one/sinks.ipynb": chapter("Sinks", "sinks", THEOREM),
    "notebooks/2-two/other.ipynb": chapter("Other", "other"),
}


def build(folder, **files):
    return small_build(folder, FILES | files, ("blocks", "search_index"), unsaid=["ledger"])


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    folder = tmp_path_factory.mktemp("book")
    assert build(folder) == ""
    return folder / "html"


def read(book, page):
    return (book / f"{page}.html").read_text(encoding="utf-8")


def test_theorems_are_listed_with_links_that_start_from_the_list(book):
    text = read(book, "book/theorems")
    assert 'href="../notebooks/1-one/sinks.html#sinks-norm">Theorem 1.1 (A sink forces the norm)</a>' in text
    assert text.count('href="../notebooks/2-two/other.html"') >= 3  # once by the list, twice in the statement
    assert r"\[a\le b. \]" in text and "equation-bound" not in text
    assert "1 theorems in 1 chapters" in text and "It has no theorems." in text


def test_exercises_are_listed_with_checker_solution_and_what_the_chapter_needs(book):
    text = read(book, "book/exercises")
    for name, number in (("a", 1), ("b", 2)):
        place = "../notebooks/1-one/sinks.html#"
        assert f'href="{place}ex-sinks-{name}">Exercise 1.{number} (Title {name})</a>' in text
        aids = rf'href="{place}checkers">.*check_{name}.* checks it · .*href="{place}ex-sinks-{name}-solution">solution'
        assert re.search(aids, text)
    assert text.count("<strong>You need</strong>") == 2 and "4 exercises in 2 chapters" in text
    assert text.count(f'href="{place}sinks-norm"') == 4


def test_every_link_leads_to_an_anchor_that_stands_once(book):
    assert [problem for problem in pages.problems(book)[0] if "anchor" in problem] == []


def test_blocks_have_permalinks(book):
    text = read(book, "notebooks/1-one/sinks")
    for label in ("sinks-norm", "ex-sinks-a", "ex-sinks-a-solution"):
        assert f'<a class="headerlink" href="#{label}" title="Link to this ' in text


def test_the_search_finds_names_and_lists_them_once(book):
    text = (book / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))
    names = {
        (index["objnames"][str(kind)][2], f"{prefix}.{name}".strip("."))
        for prefix, entries in index["objects"].items()
        for _, kind, _, _, name in entries
    }
    assert names == {
        ("theorem", "1.1 A sink forces the norm"),
        ("system", "Layer normalisation"),
        ("system", "Layer normalization"),
        *(("exercise", f"{n}.{k} Title {letter}") for n in (1, 2) for k, letter in ((1, "a"), (2, "b"))),
        *(("symbol", name) for name in ("C sub n", "Cesàro matrix", "Cesaro matrix", "uniform", "s", "sink mass", "S")),
    }
    assert not any("sink forces" in title or "Solution" in title for title in index["alltitles"])
    assert "objNameMatch" in (book / "_static/language_data.js").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ("| $t$ | time | | |\n", "the symbol t has no spoken name"),
        ("| $s'$ | another | | s, s prime |\n", "two symbols are called s first"),
    ],
)
def test_a_symbol_needs_a_name_of_its_own(tmp_path, row, complaint):
    assert complaint in build(tmp_path, **{"book/notation.md": FILES["book/notation.md"] + row})


def test_a_build_says_what_a_chapter_lacks(tmp_path):
    text = chapter("Other", "other").replace("{solution} ex-other-b", "{solution} ex-sinks-b")
    warnings = build(tmp_path, **{"notebooks/2-two/other.ipynb": text})
    assert "other.ipynb: WARNING: the exercise ex-other-b has no solution" in warnings


def test_a_chapter_from_the_template_lacks_nothing(tmp_path):
    text = new_chapter.TEMPLATE.read_text(encoding="utf-8").replace("NAME", "other")
    warnings = build(tmp_path, **{"notebooks/2-two/other.ipynb": text})
    assert [line for line in warnings.splitlines() if "exercise" in line or "label" in line] == []
