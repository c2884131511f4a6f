"""Punctuation is joined to the formula before it, and to no other place."""

from docutils import nodes
from docutils.utils import new_document

from deepdive.theme import surroundings


def test_a_full_stop_goes_to_its_own_formula_where_two_texts_are_equal():
    document = new_document("page")
    formula = nodes.math("", "x")
    document += nodes.paragraph("", "", nodes.strong("", "one"), nodes.Text(". For"), formula, nodes.Text(". For"))
    surroundings.keep_punctuation(None, document, "page")
    assert document.astext() == "one. Forx. For"
    assert formula.parent.astext() == "x."
