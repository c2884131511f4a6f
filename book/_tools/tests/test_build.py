"""The build of the book: a warning fails it, and it opens on its first page."""

import sys

import pytest

import build

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
