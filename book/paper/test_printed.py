"""The book is printed when what is printed has changed, and only then; what could not be printed is tried again."""

import sys

import pikepdf
import pytest

import printed


def document(texts):
    """A PDF with a marked text on each page, the resources that belong to it, and where its tags are."""
    pdf = pikepdf.new()
    for text in texts:
        page = pdf.add_blank_page()
        page.Contents = pdf.make_stream(f"/Span <</MCID 0>> BDC ({text}) Tj EMC".encode())
        page.Resources = pikepdf.Dictionary(Of=pikepdf.String(text))
        page.StructParents = len(pdf.pages)
    return pdf


def drawn(page):
    return page.Contents.read_bytes().decode(), str(page.Resources.Of), page.StructParents


@pytest.fixture
def html(tmp_path, monkeypatch):
    """A book that can be printed: a file beside it says how often that was done."""
    for name in ("html/_static/print.css", "print/index.html"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("one", encoding="utf-8")
    script = tmp_path / "print.sh"
    script.write_text(
        f'echo x >> {tmp_path}/times; cp {tmp_path}/browser.pdf "$3"; cp {tmp_path}/contents.pdf "$4"\n',
        encoding="utf-8",
    )
    document(["000", "1"] + [""] * 98).save(
        tmp_path / "browser.pdf", object_stream_mode=pikepdf.ObjectStreamMode.disable
    )
    document(["17"]).save(tmp_path / "contents.pdf")
    (tmp_path / printed.output_folder.MARK).touch()
    monkeypatch.setattr(printed, "SCRIPT", script)
    monkeypatch.setattr(sys, "argv", ["printed.py", str(tmp_path / "html")])
    return tmp_path / "html"


def times(html):
    printed.main()
    assert len(pikepdf.open(html / printed.PDF).pages) == 100
    return (html.parent / "times").read_text(encoding="utf-8").count("x")


def test_the_same_page_is_printed_once(html):
    assert times(html) == 1
    (html / printed.PDF).unlink()  # the book was built again
    assert times(html) == 1


@pytest.mark.parametrize("name", ["print/index.html", "html/_static/print.css", "html/_images/new.svg"])
def test_what_has_changed_is_printed_again(html, name):
    assert times(html) == 1
    file = html.parent / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("two", encoding="utf-8")
    assert times(html) == 2
    assert len(list(html.with_name("printed").iterdir())) == 1


def test_what_was_not_printed_well_is_printed_again(html):
    script = printed.SCRIPT.read_text(encoding="utf-8")
    printed.SCRIPT.write_text(f"{script}exit 3\n", encoding="utf-8")
    for _ in range(2):
        with pytest.raises(SystemExit, match="3"):
            printed.main()
    assert not (html / printed.PDF).exists() and (html.parent / "times").read_text(encoding="utf-8") == "x\nx\n"


def test_what_the_browser_leaves_as_text_is_compressed_and_the_same_each_time(html):
    printed.main()
    first = (html / printed.PDF).read_bytes()
    assert len(first) < (html.parent / "browser.pdf").stat().st_size / 2
    printed.output_folder.empty(html.with_name("printed"))
    printed.main()
    assert (html / printed.PDF).read_bytes() == first


def test_the_contents_get_their_numbers_and_all_else_stays(html):
    printed.main()
    book = pikepdf.open(html / printed.PDF)
    first, second, *_ = book.pages
    assert drawn(first) == ("/Span <</MCID 0>> BDC (17) Tj EMC", "17", 1)
    assert drawn(second) == ("/Span <</MCID 0>> BDC (1) Tj EMC", "1", 2)


def test_contents_of_other_pieces_are_refused():
    book, contents = document(["000", "000"]), document(["17", "18"])
    contents.pages[1].Contents = contents.make_stream(b"/Span <</MCID 1>> BDC (18) Tj EMC")
    with pytest.raises(ValueError, match="page 2 of the contents: expected the pieces"):
        printed.number(book, contents)
