"""A book that is built from the last one is the book that is built anew, byte for byte; what fails, fails in both."""

import shutil
import sys
from itertools import count

import pytest

import build
import sources
import warm
from killed import STEPS, killed

pytestmark = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # of Sphinx's extensions for LaTeX

THEOREM = ":::{{prf:theorem}} {0}\n:label: {1}\nIt holds.\n:::\n"
ONE = "# One\n\nA word, a xylophone.\n\n" + THEOREM.format("First", "first") + "\n(place)=\n## A heading\n\nMore.\n"
# The theme adds to the list of templates that it finds, and so builds in one process differ where none is given.
BOOK = {
    "_toc.yml": "format: jb-book\nroot: book/index\noptions: {numbered: true}\n"
    "chapters: [{file: book/one}, {file: book/two}]\n",
    "_config.yml": "title: A book\nexecute: {execute_notebooks: 'off'}\nhtml: {use_multitoc_numbering: true}\n"
    "sphinx: {extra_extensions: [sphinx_proof], config: {numfig: true, templates_path: []}}\n",
    "book/index.md": "# A book\n\nSee {prf:ref}`second`.\n",
    "book/one.md": ONE,
    "book/two.md": "# Two\n\nSee {prf:ref}`first` and {ref}`place`.\n\n" + THEOREM.format("Second", "second"),
}


def write(root, files):
    for name, text in files.items():
        if text is None:
            (root / name).unlink()
        else:
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A book and a copy of what its first build has made."""
    root = tmp_path_factory.mktemp("book")
    write(root, BOOK)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "ROOT", root)
        patch.setattr(sys, "argv", ["build.py", str(root / "_build/html")])
        build.main()
    shutil.copytree(root / "_build", root / ".first")
    return root


@pytest.fixture
def root(first, monkeypatch):
    """The book as it was built first."""
    monkeypatch.setattr(build, "ROOT", first)
    monkeypatch.setattr(sys, "argv", ["build.py", str(first / "_build/html")])
    write(first, BOOK)
    again(first)
    return first


def again(root):
    """Go back to what the first build has made."""
    shutil.rmtree(root / "_build")
    shutil.copytree(root / ".first", root / "_build")


def made(root):
    html = root / "_build/html"
    return {path.relative_to(html): path.read_bytes() for path in html.rglob("*") if path.is_file()}


def build_counting(monkeypatch):
    """Build the book; whether it was built anew."""
    anew = []
    with monkeypatch.context() as patch:
        real = build.build_anew
        patch.setattr(build, "build_anew", lambda *given: anew.append(given) or real(*given))
        build.main()
    return bool(anew)


THIRD = ONE.replace("# One\n", "# One\n\n" + THEOREM.format("Before", "before"))


@pytest.mark.parametrize(
    ("files", "anew"),
    [
        ({"book/one.md": ONE.replace("xylophone", "zither and $x$")}, False),
        ({"book/one.md": ONE.replace("A word", "See {prf:ref}`second`")}, False),
        ({"book/one.md": THIRD}, True),
        ({"book/one.md": ONE.replace("# One", "# The one")}, True),
        ({"book/one.md": ONE.replace("heading", "*heading*")}, True),
        ({"book/one.md": ONE.replace("First", "The first")}, True),
        ({"book/one.md": ONE.replace("(place)=", "(place)=\n(other)=")}, True),
        ({"_config.yml": BOOK["_config.yml"].replace("title: A book", "title: The book")}, True),
        (
            {
                "_toc.yml": BOOK["_toc.yml"].replace("[{file: book/one}, ", "["),
                "book/one.md": None,
                "book/two.md": "# Two\n\n" + THEOREM.format("Second", "second"),
            },
            True,
        ),
    ],
    ids=["prose", "reference", "theorem", "title", "heading", "name", "label", "config", "page"],
)
def test_the_book_is_that_of_a_build_from_nothing(root, monkeypatch, files, anew):
    write(root, files)
    assert build_counting(monkeypatch) == anew
    warm = made(root)
    shutil.rmtree(root / "_build")
    build.main()
    assert warm == made(root)


def test_the_next_build_begins_from_one_that_began_from_another(root, monkeypatch):
    for text in (ONE.replace("xylophone", "zither"), ONE):
        write(root, {"book/one.md": text})
        assert not build_counting(monkeypatch)
    last = made(root)
    again(root)
    assert last == made(root)


@pytest.mark.parametrize(
    ("wrong", "warnings"),
    [(ONE.replace("(place)=\n", ""), 1), (ONE.replace("first", "another"), 2), (ONE + "\n{py:func}`nowhere`\n", 1)],
    ids=["label", "theorem", "role"],
)
def test_what_fails_fails_again_and_leaves_the_old_book(root, wrong, warnings, capfd):
    before = made(root)
    write(root, {"book/one.md": wrong})
    for _ in range(2):
        with pytest.raises(SystemExit, match="The book was not built"):
            build.main()
        said = capfd.readouterr().err
        assert said.count("WARNING") == warnings  # by the build that decides
    assert made(root) == before
    write(root, {"book/one.md": ONE})
    build.main()
    assert made(root) == before


def test_where_nothing_has_changed_nothing_is_built(root, monkeypatch):
    def never(*given):
        raise AssertionError("it was built")

    monkeypatch.setattr(build, "build", never)
    (root / "_build/html" / build.PDF).touch()
    (root / "book/one.md").touch()
    build.main()
    assert (root / "_build/html" / build.PDF).exists()


def test_what_was_made_from_the_last_book_is_not_in_the_next(root, monkeypatch):
    for name in (build.PDF, build.ARCHIVE):
        (root / "_build/html" / name).touch()
    write(root, {"book/one.md": ONE.replace("xylophone", "zither")})
    assert not build_counting(monkeypatch)
    assert not any((root / "_build/html" / name).exists() for name in (build.PDF, build.ARCHIVE))


def test_the_last_sitemap_stays_for_a_new_one_would_list_few_pages(root, monkeypatch):
    told = []

    def noted(app, changed):
        watch(app, changed)
        told.append(getattr(app.config, "sitemap_excludes", None))

    watch = warm.watch
    monkeypatch.setattr(warm, "watch", noted)
    for text in (ONE.replace("xylophone", "zither"), THIRD):  # the second begins again, from nothing
        write(root, {"book/one.md": text})
        build.main()
    assert told == [["*"], ["*"], None]


def test_without_what_the_last_build_has_read_the_book_is_built_anew(root, monkeypatch):
    shutil.rmtree(build.doctrees(root / "_build/html"))
    write(root, {"book/one.md": ONE.replace("xylophone", "zither")})
    assert build_counting(monkeypatch)


@pytest.mark.parametrize("folder", [".new", ".doctrees-.new"])
def test_a_build_that_was_stopped_is_not_begun_from(root, monkeypatch, folder):
    """It stopped when this folder was to take its place: the new book may be there, and not what was read of it."""
    before, rename = made(root), build.Path.rename

    def stopping(path, target):
        if path.name == folder:
            sys.exit("stopped")
        return rename(path, target)

    write(root, {"book/one.md": ONE.replace("xylophone", "zither")})
    with monkeypatch.context() as patch:
        patch.setattr(build.Path, "rename", stopping)
        with pytest.raises(SystemExit, match="stopped"):
            build.main()
    write(root, {"book/one.md": ONE})
    build.main()
    assert made(root) == before


@pytest.mark.parametrize(("steps", "stride"), [(STEPS, 150), pytest.param(["os.rename"], 1, marks=pytest.mark.deep)])
def test_killed_at_any_of_its_steps_it_leaves_one_of_both_books_and_the_next_build_is_right(root, steps, stride):
    before = made(root)
    write(root, {"book/one.md": ONE.replace("xylophone", "zither")})
    build.main()
    after = made(root)
    for step in count(0, stride):
        again(root)
        died = killed(build.main, step, steps)
        assert (root / "_build/.old").exists() or made(root) in (before, after)
        write(root, {"book/one.md": ONE})  # as it was: what the killed one has made is of no use now
        build.main()
        assert made(root) == before
        write(root, {"book/one.md": ONE.replace("xylophone", "zither")})
        if not died:
            break
    assert step >= 2 * stride


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("book/new.css", True),
        ("_toc.yml", True),
        ("book/test_it.py", False),
        ("book/.hidden/x", False),
        ("x.md", False),
    ],
)
def test_files_that_no_page_shows_do_not_count(tmp_path, name, counts):
    before = sources.read(tmp_path)
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("new", encoding="utf-8")
    assert (sources.read(tmp_path) != before) == counts


def test_where_the_book_is_and_what_node_is_to_do_count(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    before = sources.read(tmp_path)
    assert sources.read(tmp_path / "elsewhere") != before
    monkeypatch.setenv("NODE", "none")
    assert sources.read(tmp_path) != before


def test_only_changes_of_pages_are_looked_at_page_by_page():
    assert sources.changed_pages({"a.md": "1", "b.ipynb": "1"}, {"a.md": "2", "c.md": "1"}) == {
        "a.md",
        "b.ipynb",
        "c.md",
    }
    assert sources.changed_pages({"a.md": "1", "x.csv": "1"}, {"a.md": "2", "x.csv": "2"}) is None
