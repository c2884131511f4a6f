"""A new chapter is listed wherever it must be, and runs and settles its claims as it is."""

import nbformat
import pytest
import yaml

import new_chapter
import notebooks
from deepdive.book import records
from smalltorch import data

FILES = {
    "_config.yml": 'repository: {url: ""}',
    "_toc.yml": """\
root: book/index
parts:
  - caption: Attention
    chapters:
      - file: book/parts/attention
        title: Overview
  - numbered: true
    chapters:
      - file: notebooks/attention/reach
  - caption: Back matter
    chapters:
      - file: book/ledger
""",
    "book/parts.yml": """\
- title: Attention
  folder: 1-attention
  chapters: [attention, reach, scaling, heads]
- title: Position
  folder: 6-position
  chapters: [sinusoids, rotary]
""",
    "book/parts/attention.md": """\
# Attention

```{part}
reach: Far.
```
""",
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
    return tmp_path


def run(path):
    """The notebook's closing table, from its code run here."""
    cells = [cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
    space = {}
    exec("\n".join(cells).replace("chapter.close()", "closed = chapter.close()"), space)
    return space["closed"]


@pytest.mark.parametrize(
    ("name", "folder", "verdict"),
    [
        ("sinusoids", "", "open"),  # planned: its claims are there
        ("my-chapter", "1-attention", "true"),  # new: the template's own claim
    ],
)
def test_it_runs_and_settles_its_claims_as_it_is(root, name, folder, verdict):
    done = new_chapter.create(root, name, folder)
    book = records.read_book(root)
    page = book.chapters[name].page
    closed = run(root / f"{page}.ipynb")
    assert f"{page}.ipynb: written" in done
    assert closed.executed == closed.declared == 3
    assert {record.verdict for record in closed.settled.values()} == {verdict}
    assert list(closed.settled) == [claim.id for claim in book.claims_of(name)] != []
    assert not any("parts.yml" in problem or "source" in problem for problem in records.problems(book))


def test_every_part_of_the_book_can_have_a_new_chapter():
    text = (notebooks.ROOT / "book/parts.yml").read_text(encoding="utf-8")
    for part in yaml.safe_load(text):
        if part["folder"]:
            changed = yaml.safe_load(new_chapter.add_to_part(text, part["folder"], "new"))
            assert next(other for other in changed if other["title"] == part["title"]) == (
                part | {"chapters": [*part["chapters"], "new"]}
            )


def test_the_template_is_in_normal_form_but_for_its_counts():
    notebook = nbformat.read(new_chapter.TEMPLATE, 4)
    normal = notebooks.normalise(nbformat.read(new_chapter.TEMPLATE, 4))
    for cell in normal.cells:
        if cell.cell_type == "code":
            cell.execution_count = None
    assert notebooks.text_of(notebook) == notebooks.text_of(normal)


def test_chapters_are_listed_in_the_order_of_their_part(root):
    for name in ("heads", "scaling", "attention", "rotary"):
        new_chapter.create(root, name)
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    listed = [
        (
            part.get("caption"),
            part.get("numbered"),
            [chapter["file"].rpartition("/")[2] for chapter in part["chapters"]],
        )
        for part in toc["parts"]
    ]
    assert listed == [
        ("Attention", None, ["1-attention"]),
        (None, True, ["attention", "reach", "scaling", "heads"]),
        ("Position", None, ["6-position"]),
        (None, True, ["rotary"]),
        ("Back matter", None, ["ledger"]),
    ]


def test_the_page_that_opens_a_part_has_a_line_for_each_chapter(root):
    for name in ("heads", "rotary"):
        new_chapter.create(root, name)
    line = "What this chapter finds, in a sentence."
    opening = (root / "book/parts/attention.md").read_text(encoding="utf-8")
    assert opening == FILES["book/parts/attention.md"].replace("Far.\n", f"Far.\nheads: {line}\n")
    started = (root / "book/parts/6-position.md").read_text(encoding="utf-8")
    assert started.startswith("# Position\n") and started.endswith(f"```{{part}}\nrotary: {line}\n```\n")


@pytest.mark.parametrize(
    ("name", "folder", "complaint"),
    [
        ("", "", "NAME"),
        ("My Chapter", "1-attention", "NAME"),
        ("reach", "", "exists"),
        ("my-chapter", "", "PART"),
        ("my-chapter", "12-nowhere", "PART"),
        ("sinusoids", "1-attention", "expected 6-position"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_written(root, name, folder, complaint):
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    with pytest.raises(new_chapter.Refusal, match=complaint):
        new_chapter.create(root, name, folder)
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before
