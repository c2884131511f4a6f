"""Formulas are typeset at the build, each with its TeX; what cannot be typeset fails the build."""

import re
from pathlib import Path

import pytest
from docutils import nodes

from deepdive import formulas
from small_build import small_build

FORMULA = r"\frac{a}{b} < \lVert x\rVert_2"


@pytest.fixture
def setter():
    if formulas.node_program() is None:
        pytest.skip("there is no Node")
    setter = formulas.Typesetter(formulas.node_program())
    yield setter
    setter.close()


def test_a_formula_is_a_picture_with_mathml_and_tex(setter):
    html = setter.html(FORMULA, display=False)
    assert html.startswith('<svg aria-hidden="true"') and "<mfrac>" in html
    assert r'<annotation encoding="application/x-tex">\frac{a}{b} &lt; \lVert x\rVert_2</annotation>' in html


def test_a_page_has_the_shape_of_each_letter_once(setter):
    html = setter.html("x + x", display=False) + setter.html("x^2", display=True)
    used = set(re.findall(r'href="#([^"]*)"', html))
    shapes = setter.shapes(html + '<a href="#g-force">a heading</a>')
    assert sorted(used) == re.findall(r'<path id="([^"]*)" d="M', shapes) and len(used) == 3


@pytest.mark.parametrize("tex", [r"\unknown x", "a_{", r"\begin{split} a"])
def test_what_cannot_be_typeset_is_an_error(setter, tex):
    with pytest.raises(ValueError, match=r"\w"):
        setter.html(tex, display=True)


def test_what_was_typeset_is_kept(setter, tmp_path):
    html = setter.html(FORMULA, display=True)
    setter.store(tmp_path / "cache.json")
    again = formulas.Typesetter(None)  # nothing but the cache could answer
    again.load(tmp_path / "cache.json")
    again.node = "none"
    assert again.html(FORMULA, display=True) == html and again.process is None
    assert again.shapes(html) == setter.shapes(html)


def test_another_version_does_not_take_over_what_was_kept(setter, tmp_path):
    (tmp_path / "cache.json").write_text('{"version": "older", "known": {"Tx": {}}, "glyphs": {}}', encoding="utf-8")
    setter.load(tmp_path / "cache.json")
    assert setter.known == {}


def test_without_node_there_is_mathml_and_what_stays_tex_is_counted():
    setter = formulas.Typesetter(None)
    assert setter.html("a < b", display=False).startswith('<math class="alone"><semantics>')
    assert setter.html(r"\substack{a}", display=False) == r'<code class="tex">\substack{a}</code>'
    assert setter.left_as_tex == {r"\substack{a}"}


@pytest.mark.parametrize(
    ("text", "tex"),
    [
        (" a = b ", "a = b"),
        (r"a &= b \\ &= c", r"\begin{split}a &= b \\ &= c\end{split}"),
        ("a\n\nb", r"\begin{aligned}a\\b\end{aligned}"),
    ],
)
def test_lines_of_a_formula(text, tex):
    assert formulas.display_tex(nodes.math_block("", text, nowrap=False)) == tex


def built(folder: Path, text: str, renderer: str = "typeset") -> tuple[str, str]:
    """What a small build with one page warns of, and the page."""
    index = f"# Book\n{text}\n"
    said = small_build(folder, {"index.md": index}, ["formulas"], math=renderer)
    return said, (folder / "html/index.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("setter")
def test_a_page_shows_its_formulas_without_a_script(tmp_path):
    said, html = built(tmp_path, "Let $x$ be.\n\n$$x = 1$$ (eq-one)\n\nBy {eq}`eq-one`.\n")
    assert said == "" and not re.search(r"<script[^>]*mathjax", html, re.IGNORECASE)
    assert html.count('<svg aria-hidden="true"') == 2 and 'class="eqno">(1)' in html
    assert html.count('<path id="g-I-1D465"') == 1


@pytest.mark.usefixtures("setter")
def test_a_formula_that_cannot_be_typeset_is_a_warning(tmp_path):
    said, _ = built(tmp_path, r"Let $\unknown$ be.")
    assert "cannot be typeset: Undefined control sequence" in said and "index.md" in said
