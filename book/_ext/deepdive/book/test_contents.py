"""The contents follow from parts.yml and the notebooks that exist; what belongs to no part is found."""

from pathlib import Path

import pytest
import yaml

from deepdive.book import contents

ROOT = Path(__file__).resolve().parents[4]
PARTS = """\
root: book/index
before: [book/preface]
parts:
- {title: One, folder: one, chapters: [a, b, c]}
- {title: Two, folder: two, chapters: [d]}
- {title: Last, folder: "", chapters: [e]}
after: [book/ledger]
moved: {notebooks/1/a: notebooks/one/a}
"""


@pytest.fixture
def root(tmp_path):
    """Three chapters, of which a later one of the first part is missing, and a page of prose."""
    for name in ("notebooks/one/a.ipynb", "notebooks/one/c.ipynb", "book/e.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / contents.FILE).write_text(PARTS, encoding="utf-8")
    return tmp_path


def test_the_contents_hold_what_exists_in_its_order(root):
    text = contents.toc(root, contents.read(root))
    assert text.startswith("# Written by make toc")
    assert yaml.safe_load(text) == {
        "format": "jb-book",
        "root": "book/index",
        "parts": [
            {"caption": "Before you start", "chapters": [{"file": "book/preface"}]},
            {"chapters": [{"file": "book/parts/one", "title": "One"}]},
            {"numbered": True, "chapters": [{"file": "notebooks/one/a"}, {"file": "notebooks/one/c"}]},
            {"caption": "Last", "chapters": [{"file": "book/e"}]},
            {"caption": "Back matter", "chapters": [{"file": "book/ledger"}]},
        ],
    }


def test_the_pages_of_the_ledger_stand_below_it(root):
    parsed = yaml.safe_load(contents.toc(root, contents.read(root), ["a", "c"]))
    below = [{"file": "book/ledger/a"}, {"file": "book/ledger/c"}]
    assert parsed["parts"][-1]["chapters"] == [{"file": "book/ledger", "sections": below}]


def test_a_part_is_closed_by_its_questions(root):
    (root / "book/reviews").mkdir()
    for name in ("one", "two"):  # of the second part nothing exists
        (root / f"book/reviews/{name}.md").touch()
    order = contents.read(root)
    assert contents.outline(root, order)[2][1] == [
        *("book/parts/one", "notebooks/one/a", "notebooks/one/c", "book/reviews/one")
    ]
    parts = yaml.safe_load(contents.toc(root, order))["parts"]
    assert parts[2:4] == [
        {"numbered": True, "chapters": [{"file": "notebooks/one/a"}, {"file": "notebooks/one/c"}]},
        {"chapters": [{"file": "book/reviews/one"}]},
    ]
    assert len(parts) == 6


def test_a_chapter_moves_with_its_line(root):
    before = contents.outline(root, contents.read(root))
    (root / contents.FILE).write_text(PARTS.replace("[a, b, c]", "[c, b, a]"), encoding="utf-8")
    after = contents.outline(root, contents.read(root))
    assert before[2] == ("One", ["book/parts/one", "notebooks/one/a", "notebooks/one/c"])
    assert after[2] == ("One", ["book/parts/one", "notebooks/one/c", "notebooks/one/a"])


@pytest.mark.parametrize("name", ["notebooks/one/d.ipynb", "notebooks/two/a.ipynb", "notebooks/e.ipynb"])
def test_a_notebook_without_a_place_in_the_book_is_found(root, name):
    assert contents.stray_notebooks(root) == []
    (root / name).parent.mkdir(exist_ok=True)
    (root / name).touch()
    assert contents.stray_notebooks(root) == [f"{name}: not in book/parts.yml"]


def test_the_parts_of_this_book_have_the_titles_of_the_pages_that_open_them():
    for part in contents.read(ROOT).parts:
        if part.folder and contents.written(ROOT, part):
            assert (ROOT / f"{part.opening}.md").read_text(encoding="utf-8").startswith(f"# {part.title}\n")
