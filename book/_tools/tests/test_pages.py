"""The checks of built pages find what they are for."""

import sys

import pytest

import output_folder
import pages

HEAD = '<title>Page</title><meta name="viewport" content="width=device-width">'


def check(tmp_path, body, head=HEAD, name="page"):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / f"{name}.html").write_text(f"<html><head>{head}</head><body>{body}</body></html>", encoding="utf-8")
    (tmp_path / "other.html").write_text(f'{HEAD}<p id="here">Text.</p>', encoding="utf-8")
    return pages.problems(tmp_path)[0]


@pytest.mark.parametrize(
    "body",
    [
        '<a href="other.html#here">a</a> <a href="https://example.org">b</a>',
        '<img src="other.html" alt="A line that rises">',
        "<svg><title>What is seen</title></svg>",
        r'<span class="math notranslate">\(\frac{1}{2}\)</span> <code>\frac $x$</code> <pre>cost: $5</pre>',
    ],
)
def test_what_is_right_passes(tmp_path, body):
    assert check(tmp_path, body) == []


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ('<a href="nowhere.html">a</a>', "nowhere.html does not exist"),
        ('<a href="other.html#there">a</a>', "has no such anchor"),
        ('<a href="#there">a</a>', "has no such anchor"),
        ('<p id="a">One.</p> <p id="a">Two.</p>', "more than once"),
        ('<img src="other.html">', "no alternative text"),
        ('<img src="other.html" alt="../_images/0123.png">', "no alternative text"),
        ('<svg class="plot" aria-label=""></svg>', "no alternative text"),
        ("<p>the norm is $\\sqrt n</p>", "stray markup"),
        (r"<p>the norm is \sqrt n</p>", "stray markup"),
        ("<p>:::{note}</p>", "stray markup"),
        ('<script src="https://cdn.example/x.js"></script>', "loads https://cdn.example/x.js"),
        ('<img src="//cdn.example/x.png" alt="A picture">', "loads //cdn.example/x.png"),
    ],
)
def test_what_is_wrong_is_found(tmp_path, body, complaint):
    found = check(tmp_path, body)
    assert len(found) == 1 and complaint in found[0]


@pytest.mark.parametrize(
    ("head", "complaint"),
    [
        (HEAD + "<title>Page</title>", "expected one title, got 2"),
        (HEAD.partition("<meta")[0], "expected one viewport, got 0"),
        (HEAD + HEAD.partition("</title>")[2], "expected one viewport, got 2"),
        (HEAD + '<link rel="canonical" href="https://book.example/page.html">', "says that it stands at"),
    ],
)
def test_what_is_wrong_in_the_head_is_found(tmp_path, head, complaint):
    found = check(tmp_path, "", head)
    assert len(found) == 1 and complaint in found[0]


SENTENCE = "A page that says in a sentence what it is about, such as √n."


@pytest.mark.parametrize(
    ("told", "wrong"),
    [
        ([SENTENCE], 0),
        ([], 1),
        ([SENTENCE, SENTENCE], 1),
        (["Short."], 1),
        ([SENTENCE * 9], 1),
        ([SENTENCE + "$n$"], 1),
    ],
)
def test_each_page_of_the_book_has_a_description(tmp_path, told, wrong):
    head = HEAD + "".join(f'<meta name="description" content="{sentence}">' for sentence in told)
    found = check(tmp_path, "", head, "book/page")
    assert len(found) == wrong and all("expected a description of 40 to 330 letters" in line for line in found)


@pytest.mark.parametrize(
    ("body", "canonical", "listed", "complaint"),
    [
        ('<a href="/deep/other.html#here">a</a>', "deep/page.html", "deep/page.html", ""),
        ('<a href="/deep/none.html">a</a>', "deep/page.html", "deep/page.html", "/deep/none.html does not exist"),
        ('<a href="/other.html">a</a>', "deep/page.html", "deep/page.html", "/other.html does not exist"),
        ("", "page.html", "deep/page.html", "says that it stands at ['https://book.example/page.html']"),
        ("", "deep/page.html", "deep/none.html", "sitemap.xml: https://book.example/deep/none.html is no page"),
    ],
)
def test_where_the_book_has_an_address_pages_are_found_there(tmp_path, body, canonical, listed, complaint):
    host = "https://book.example/"
    (tmp_path / "robots.txt").write_text(f"User-agent: *\nDisallow:\n\nSitemap: {host}deep/sitemap.xml\n")
    (tmp_path / "sitemap.xml").write_text(f"<urlset><url><loc>{host}{listed}</loc></url></urlset>")
    found = check(tmp_path, body, f'{HEAD}<link rel="canonical" href="{host}{canonical}">')
    assert len(found) == bool(complaint) and all(complaint in line for line in found)


@pytest.mark.parametrize("scheme", ["https:", "http:", "HTTP:", ""])
@pytest.mark.parametrize(
    "style", ["a {{ background: url('{}') }}", "a {{ src: url( {}) }}", '@import "{}";', "@import url({});"]
)
def test_a_style_must_not_load_from_elsewhere(tmp_path, scheme, style):
    address = f"{scheme}//cdn.example/x.png"
    (tmp_path / "_static").mkdir()
    (tmp_path / "_static/x.css").write_text(style.format(address), encoding="utf-8")
    assert check(tmp_path, "") == [f"_static/x.css: loads {address}"]
    (tmp_path / "_static/x.css").write_text(style.format("x.png") + style.format("data:image/png;base64,//8="))
    assert check(tmp_path, f"<style>{style.format(address)}</style>") == [f"page.html: loads {address}"]
    assert check(tmp_path, f'<p style="background: url({address})">a</p>') == [f"page.html: loads {address}"]


def test_an_empty_folder_is_not_a_book(tmp_path):
    assert pages.problems(tmp_path)[0]


@pytest.mark.parametrize(("alt", "status"), [("A line that rises", 0), ("", 1)])
def test_the_exit_status_says_whether_all_is_in_order(tmp_path, monkeypatch, alt, status):
    (tmp_path / output_folder.MARK).touch()
    (html := tmp_path / "html").mkdir()
    check(html, f'<img src="other.html" alt="{alt}">')
    monkeypatch.setattr(sys, "argv", ["pages.py", str(html)])
    with pytest.raises(SystemExit) as done:
        pages.main()
    assert done.value.code == status
