"""The build of the book: a warning fails it, it opens on its first page, what was built before stays until then, and
where nothing has changed nothing is built."""

import shutil
import sys
from itertools import count

import pytest

import build
import sources
from kill_at_step import STEPS, killed

pytestmark = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # of Sphinx's extensions for LaTeX


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A book of one page."""
    (tmp_path / "book").mkdir()
    (tmp_path / "book/index.md").write_text("# A page\n", encoding="utf-8")
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: book/index\n", encoding="utf-8")
    (tmp_path / "_config.yml").write_text("title: A book\nexecute: {execute_notebooks: 'off'}\n", encoding="utf-8")
    monkeypatch.setattr(build, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "argv", ["build.py", str(tmp_path / "_build/html")])
    return tmp_path


def test_a_book_without_warnings_opens_on_its_first_page(root):
    build.main()
    html = root / "_build/html"
    assert (html / "book/index.html").is_file() and "url=book/index.html" in (html / "index.html").read_text("utf-8")


@pytest.mark.parametrize("warned", ["{py:func}`nowhere`", "```{no-directive}\n```"])
def test_a_warning_is_a_failure_and_one_the_second_time_too(root, warned):
    (root / "book/index.md").write_text(f"# A page\n\n{warned}\n", encoding="utf-8")
    for _ in range(2):
        with pytest.raises(SystemExit, match="The book was not built"):
            build.main()


def pages(root):
    """What a reader finds: each page of the book, and what it says."""
    html = root / "_build/html"
    return {path.relative_to(html): path.read_bytes() for path in html.rglob("*.html") if "_static" not in path.parts}


@pytest.fixture
def built(root):
    """The book, built once; then its page says something else. Both as a reader finds them."""
    page = root / "book/index.md"
    page.write_text("# Another page\n", encoding="utf-8")
    build.main()
    after = pages(root)
    shutil.rmtree(root / "_build")
    page.write_text("# A page\n", encoding="utf-8")
    build.main()
    before = pages(root)
    page.write_text("# Another page\n", encoding="utf-8")
    return before, after


@pytest.mark.parametrize(
    ("steps", "stride"), [(STEPS, 150), (["os.rename"], 1), pytest.param(STEPS, 10, marks=pytest.mark.deep)]
)
def test_killed_at_any_of_its_steps_it_leaves_the_old_book_or_the_new_one(root, built, steps, stride):
    """Between the two renames the old one is aside, for the next build to put back."""
    before, after = built
    shutil.copytree(root / "_build", root / ".built")
    for step in count(0, stride):
        shutil.rmtree(root / "_build")
        shutil.copytree(root / ".built", root / "_build")
        died = killed(build.main, step, steps)
        aside = (root / "_build/.old").exists() and not pages(root)
        assert aside or pages(root) in (before, after)
        if aside:
            (root / "book/index.md").write_text("{py:func}`nowhere`", encoding="utf-8")
            with pytest.raises(SystemExit):
                build.main()
            assert pages(root) in (before, after)
            (root / "book/index.md").write_text("# Another page\n", encoding="utf-8")
        build.main()
        assert pages(root) == after
        if not died:
            break
    assert step >= 2 * stride


def test_a_build_that_was_stopped_when_the_new_book_stood_is_not_taken_for_done(root, built, monkeypatch):
    """What was built last is not what stands there, so its digest must not be."""
    rename = build.Path.rename

    def stopping(path, target):
        rename(path, target)
        if path.name == ".new":
            sys.exit("stopped")

    with monkeypatch.context() as patch:
        patch.setattr(build.Path, "rename", stopping)
        with pytest.raises(SystemExit, match="stopped"):
            build.main()
    assert pages(root) == built[1]
    (root / "book/index.md").write_text("# A page\n", encoding="utf-8")
    build.main()
    assert pages(root) == built[0]


def test_where_nothing_has_changed_nothing_is_built(root, built, monkeypatch):
    def never(*given):
        raise AssertionError("it was built")

    monkeypatch.setattr(build, "build", never)
    (root / "book/index.md").write_text("# A page\n", encoding="utf-8")
    build.main()
    assert pages(root) == built[0]
    (root / "book/index.md").write_text("# Another page\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="it was built"):
        build.main()


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
    before = sources.digest(tmp_path)
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("new", encoding="utf-8")
    assert (sources.digest(tmp_path) != before) == counts


def test_where_the_book_is_and_what_node_is_to_do_count(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    before = sources.digest(tmp_path)
    assert sources.digest(tmp_path / "elsewhere") != before
    monkeypatch.setenv("NODE", "none")
    assert sources.digest(tmp_path) != before


def test_what_fails_leaves_the_old_book(root, built):
    (root / "book/index.md").write_text("{py:func}`nowhere`", encoding="utf-8")
    with pytest.raises(SystemExit):
        build.main()
    assert pages(root) == built[0]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_full_disk_and_ctrl_c_leave_the_old_book_and_no_report(root, built, monkeypatch, capfd, error):
    def interrupted(**settings):
        raise error

    monkeypatch.setattr(build.jupyter_book, "Sphinx", interrupted)
    with pytest.raises(type(error)):
        build.main()
    assert pages(root) == built[0] and capfd.readouterr() == ("", "")


@pytest.mark.parametrize("html", ["site", "_build", "book/html", "mine/html"])
def test_a_folder_that_make_has_not_made_is_refused_and_stays_as_it_is(root, monkeypatch, html):
    (root / "mine").mkdir()
    (root / "mine/work.txt").touch()
    (root / "_build").mkdir()
    before = sorted(root.rglob("*"))
    monkeypatch.chdir(root)
    monkeypatch.setattr(sys, "argv", ["build.py", html])
    with pytest.raises(SystemExit, match="only folders that it has made"):
        build.main()
    assert sorted(root.rglob("*")) == before
