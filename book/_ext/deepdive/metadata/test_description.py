"""A page is described by its own first sentence, or by more of them where that is a short one."""

import pytest
from docutils import nodes

from deepdive.metadata.description import MOST, describe

LONG = "Attention averages the values of the tokens, and averages of averages become more and more alike."


def page(*paragraphs):
    """A page of these paragraphs, each in pieces: text, or formulas between dollars."""
    section = nodes.section("", nodes.title("", "Title"))
    for pieces in paragraphs:
        made = (nodes.math("", piece.strip("$")) if piece[0] == "$" else nodes.Text(piece) for piece in pieces)
        section += nodes.paragraph("", "", *made)
    document = nodes.document(None, None)
    document += section
    return document


@pytest.mark.parametrize(
    ("paragraphs", "said"),
    [
        ([[f"{LONG}\nMore."]], LONG),
        ([["Little.\nAs good as nothing."], [LONG], ["More."]], f"Little. As good as nothing. {LONG}"),
        ([[f"In short. {LONG}"]], LONG),
        ([["At most ", r"$\sqrt n$", f".\n{LONG}"]], f"At most √n. {LONG}"),
        ([["See ", r"$\bar x$", f".\n{LONG}"]], LONG),
        ([], ""),
    ],
)
def test_the_first_sentences_describe_a_page(paragraphs, said):
    assert describe(page(*paragraphs)) == said


def test_what_stands_in_a_box_or_a_table_does_not():
    document = page([LONG])
    document[0].insert(1, nodes.note("", nodes.paragraph("", "A note.")))
    document[0].insert(1, nodes.paragraph("", "", nodes.raw("", "<b>", format="html")))
    assert describe(document) == LONG


def test_a_sentence_without_an_end_is_cut_between_words():
    said = describe(page(["words " * 200]))
    assert MOST - 8 < len(said) <= MOST and said.endswith("words …")
