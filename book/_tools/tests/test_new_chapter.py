"""A new chapter has its place in the book, and runs and settles its claims as it is."""

import re

import nbformat
import pytest
import yaml

import new_chapter
import notebooks
import toc
from deepdive.book import records
from smalltorch import data
from smalltorch.engine import ledger

FILES = {
    "_config.yml": 'repository: {url: ""}',
    "book/parts.yml": """\
root: book/index
before: [book/preface]
parts:
- title: Attention
  folder: attention
  chapters: [attention, reach, scaling, heads]
- title: Position
  folder: position
  chapters: [sinusoids, rotary]
- title: Landscape
  folder: ""
  chapters: [landscape]
after: [book/ledger]
""",
    "book/parts/attention.md": "# Attention\n\n```{part}\n```\n",
    "book/references.bib": "",
    "book/claims.csv": """\
id,source,place,claim,chapter
C1,N4,§1,It is said.,sinusoids
C2,N4,§1,It is said as well.,sinusoids
""",
}


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A book of two parts with one chapter."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    path = tmp_path / "notebooks/attention/reach.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(notebooks.text_of(nbformat.v4.new_notebook()), encoding="utf-8")
    monkeypatch.setattr(data, "BOOK", tmp_path / "book")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    for kept in (
        "_failed",
        "_begun",
        "_promised",
    ):  # what other tests here have left, as it is in a kernel that has just started
        monkeypatch.setattr(ledger, kept, [])
    return tmp_path


def run(path):
    """The notebook's closing table, from its code run here."""
    cells = [cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
    space = {}
    exec("\n".join(cells).replace("chapter.close()", "closed = chapter.close()"), space)
    return space["closed"]


@pytest.mark.parametrize(
    ("name", "folder", "settled"),
    [
        ("sinusoids", "", {"C1": "open", "C2": "open"}),  # listed already: its claims are there
        ("my-chapter", "attention", {}),  # new: it has none
    ],
)
def test_it_runs_and_settles_its_claims_as_it_is(root, name, folder, settled):
    done = new_chapter.create(root, name, folder)
    book = records.read_book(root)
    page = book.chapters[name].page
    closed = run(root / f"{page}.ipynb")
    assert f"{page}.ipynb: written" in done
    assert closed.closing.executed == closed.closing.declared == 3
    assert {claim.id: record.verdict for claim, record in closed.settled} == settled
    assert (root / "book/claims.csv").read_text(encoding="utf-8") == FILES["book/claims.csv"]
    assert ("What this chapter settles" in (root / f"{page}.ipynb").read_text(encoding="utf-8")) == bool(settled)
    problems = records.problems(book)
    assert not any(("parts.yml" in problem and name in problem) or "source" in problem for problem in problems)
    assert book.chapters[name].result == "What this chapter finds, in a sentence or two."


def test_every_part_of_the_book_can_have_a_new_chapter():
    text = (notebooks.ROOT / "book/parts.yml").read_text(encoding="utf-8")
    for number, part in enumerate(yaml.safe_load(text)["parts"]):
        if part["folder"]:
            changed = yaml.safe_load(new_chapter.add_to_part(text, part["folder"], "new"))
            assert changed["parts"][number] == part | {"chapters": [*part["chapters"], "new"]}


def test_the_template_is_in_normal_form_but_for_its_counts():
    notebook = nbformat.read(new_chapter.TEMPLATE, 4)
    normal = notebooks.normalise(nbformat.read(new_chapter.TEMPLATE, 4))
    for cell in normal.cells:
        if cell.cell_type == "code":
            cell.execution_count = None
    assert notebooks.text_of(notebook) == notebooks.text_of(normal)


def test_the_contents_are_written_anew_in_the_order_of_the_parts(root):
    for name in ("heads", "scaling", "attention", "rotary"):
        new_chapter.create(root, name)
        assert toc.problems(root) == []
    listed = re.findall(r"file: .*/(.*)", (root / "_toc.yml").read_text(encoding="utf-8"))
    assert listed == ["preface", "attention", "attention", "reach", "scaling", "heads", "position", "rotary", "ledger"]


def test_contents_that_are_not_what_the_parts_say_are_found(root):
    toc.write(root)
    path = root / "book/parts.yml"
    path.write_text(path.read_text(encoding="utf-8").replace("book/preface", "book/foreword"), encoding="utf-8")
    assert toc.problems(root) == ["_toc.yml is not what book/parts.yml and the notebooks say: make toc"]


def test_a_chapter_with_claims_has_its_page_of_the_ledger_and_one_without_has_none(root):
    new_chapter.create(root, "sinusoids")
    new_chapter.create(root, "my-chapter", "attention")
    (page,) = (root / "book/ledger").iterdir()
    assert page.name == "sinusoids.md"
    text = page.read_text(encoding="utf-8")
    assert text == "# Claims: sinusoids: the question that this chapter answers?\n\n```{chapter-ledger}\n```\n"
    assert "      - file: book/ledger\n        sections:\n          - file: book/ledger/sinusoids\n" in (
        root / "_toc.yml"
    ).read_text(encoding="utf-8")


@pytest.mark.parametrize("spoil", ["missing", "of another title", "of no chapter"])
def test_pages_of_the_ledger_that_are_missing_or_stale_are_found_and_written_anew(root, spoil):
    new_chapter.create(root, "sinusoids")
    page = root / "book/ledger" / ("other.md" if spoil == "of no chapter" else "sinusoids.md")
    if spoil == "missing":
        page.unlink()
    else:
        page.write_text("# Claims: another\n", encoding="utf-8")
    assert toc.problems(root) == [f"book/ledger/{page.name} is not what book/parts.yml and the notebooks say: make toc"]
    toc.write(root)
    assert toc.problems(root) == []


def test_the_first_chapter_of_a_part_brings_the_page_that_opens_it(root):
    for name in ("heads", "rotary"):
        new_chapter.create(root, name)
    assert (root / "book/parts/attention.md").read_text(encoding="utf-8") == FILES["book/parts/attention.md"]
    started = (root / "book/parts/position.md").read_text(encoding="utf-8")
    assert started.startswith("# Position\n") and started.endswith("```{part}\n```\n")


@pytest.mark.parametrize(
    ("name", "folder", "complaint"),
    [
        ("", "", "NAME"),
        ("My Chapter", "attention", "NAME"),
        ("reach", "", "exists"),
        ("landscape", "", "a page of prose"),
        ("my-chapter", "", "PART"),
        ("my-chapter", "nowhere", "PART"),
        ("sinusoids", "attention", "expected position"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_written(root, name, folder, complaint):
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    with pytest.raises(new_chapter.Refusal, match=complaint):
        new_chapter.create(root, name, folder)
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before
