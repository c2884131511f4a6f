"""A page of questions of another form, or with a link or a number that no chapter has, is complained about."""

import pytest

import reviews

PLACES = {"softmax-bound": "softmax", "fig-softmax": "softmax", "fig-heads": "heads"}
NUMBERS = {"softmax": {"0.25"}, "heads": {"12"}}
ANSWER = """\
The bound $L(n)$ is that of {prf:ref}`softmax-bound`.
Measured it was 0.25.
{numref}`fig-softmax` shows it."""
PAGE = "# Ten questions\n" + "".join(f"\n## Why {k}?\n\n:::{{dropdown}} Answer\n{ANSWER}\n:::\n" for k in range(10))


def found(old: str = "", new: str = "") -> list[str]:
    """What is said of the page with the first `old` replaced."""
    assert old in PAGE
    return list(reviews.problems(PAGE.replace(old, new, 1) if old else PAGE, PLACES, NUMBERS))


def test_a_page_of_the_form_is_in_order():
    assert found() == []


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("## Why 0?", "## Why 0", "expected 10 questions, each with its answer folded below it, got 9"),
        ("## Why 0?", "Why 0?", "expected 10 questions, each with its answer folded below it, got 9"),
        ("Measured it was 0.25.\n", "", "Why 0? expected 3 sentences, a line each, got 2"),
        (" is that of {prf:ref}`softmax-bound`", "", "Why 0? expected a link to a theorem and one to a figure"),
        ("{numref}`fig-softmax` shows", "Much shows", "Why 0? expected a link to a theorem and one to a figure"),
        ("{prf:ref}`softmax-bound`", "{prf:ref}`softmax-bond`", "Why 0? no chapter has softmax-bond"),
        ("0.25", "0.26", "Why 0? none of the chapters that it leads to has 0.26"),
    ],
)
def test_another_form_is_complained_about(old, new, complaint):
    assert complaint in found(old, new)


def test_a_number_of_a_chapter_to_which_the_answer_does_not_lead_is_unheld():
    assert found("0.25", "12") == ["Why 0? none of the chapters that it leads to has 12"]
    assert found("it was 0.25.\n{numref}`fig-softmax` shows", "it was 12.\n{numref}`fig-heads` shows") == []


def test_a_part_without_its_page_is_missing(monkeypatch, tmp_path):
    (tmp_path / "book").mkdir()
    (tmp_path / "notebooks/one").mkdir(parents=True)
    (tmp_path / "notebooks/one/a.ipynb").touch()
    (tmp_path / "book/parts.yml").write_text(
        "root: book/index\nbefore: []\nafter: []\nparts:\n- {title: One, folder: one, chapters: [a]}\n",
        encoding="utf-8",
    )
    monkeypatch.setattr(reviews, "of_chapters", lambda root: (PLACES, NUMBERS))
    assert reviews.of_book(tmp_path) == ["book/reviews/one.md: missing"]
    (tmp_path / "book/reviews").mkdir()
    (tmp_path / "book/reviews/one.md").write_text(PAGE.replace("0.25", "0.26", 1), encoding="utf-8")
    assert reviews.of_book(tmp_path) == ["book/reviews/one.md: Why 0? none of the chapters that it leads to has 0.26"]


def test_labels_and_numbers_of_the_chapters_are_read_from_them():
    places, numbers = reviews.of_chapters(reviews.notebooks.ROOT)
    assert places["softmax-jacobian"] == "softmax" and any(label.startswith("fig-") for label in places)
    assert set(places.values()) <= set(numbers) and numbers["softmax"]
