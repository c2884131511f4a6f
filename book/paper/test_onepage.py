"""The book on one page: links stay within it, ids are unique, and what cannot be on paper is left out."""

import pytest

import onepage

PAGES = {"a/x", "a/y"}


@pytest.mark.parametrize(
    ("address", "there"),
    [
        ("y.html#here", "#a/y:here"),
        ("../a/y.html", "#a/y"),
        ("y.html?part=one", "#a/y"),
        ("#here", "#a/x:here"),
        ("../book/ledger/y.html#claim-1", "#book/ledger:chapter-y"),
        ("https://example.org/y.html", "https://example.org/y.html"),
        ("../genindex.html", None),
        ("../_sources/a/y.ipynb", None),
    ],
)
def test_links_lead_into_the_page_or_nowhere(address, there):
    assert onepage.redirect(address, "a/x", PAGES) == there


def test_an_article_keeps_its_text_and_loses_what_paper_cannot_do():
    html = """<nav>menu</nav><article class="bd-article"><section id="s">
        <h1>T<a class="headerlink" href="#s">#</a></h1>
        <form><input></form><p>See <a href="../genindex.html">the index</a>, <a href="y.html#z">there</a>.</p>
        <svg><use href="#m"></use><path id="m"></path></svg>
        <img src="../_images/p.svg" alt="p"><pre><span class="k">if</span> x: <span class="c1"># why</span></pre>
        </section></article>"""
    body = onepage.article(html, "a/x", PAGES, 1, "../html")
    assert body["id"] == "a/x" and body.section["id"] == "a/x:s" and body.h1["aria-level"] == "2"
    assert " ".join(body.get_text().split()) == "T See the index, there. if x: # why"
    assert [link["href"] for link in body("a")] == ["#a/y:z"]
    assert body.img["src"] == "../html/_images/p.svg" and body.path["id"] == "m"  # what the picture refers to
    assert str(body.pre) == '<pre>if x: <span class="c1"># why</span></pre>'


def test_of_a_formula_its_tex_is_left():
    picture = '<svg aria-hidden="true" style="x"><g><svg><path d="M0"></path></svg></g></svg>'
    mathml = (
        '<math class="assistive"><semantics><mrow><mi>a</mi></mrow>'
        '<annotation encoding="application/x-tex">{}</annotation></semantics></math>'
    )
    html = f"""<article class="bd-article"><p><svg aria-hidden="true" class="icon"></svg>
        <span class="math">{picture}{mathml.format("a &lt; b")}</span> and
        <span class="math"><code class="tex">c</code></span></p>
        <div class="math"><span class="eqno">(1)</span>{picture}{mathml.format("d")}</div></article>"""
    body = onepage.article(html, "a/x", PAGES, 0, "")
    assert " ".join(body.get_text().split()) == r"\(a < b\) and \(c\) (1)\[d\]"
    assert [svg.get("class") for svg in body("svg")] == [["icon"]] and not body(["math", "annotation", "code"])


def test_colours_of_listings_go_and_comments_keep_theirs():
    html = '<span class="k">a</span><pre><span></span><b><span class="n"><span class="c1"># x</span></span></b></pre>'
    kept = '<span class="k">a</span><pre><b><span class="c1"># x</span></b></pre>'
    assert onepage.lighter(html) == kept


def test_links_to_what_is_left_out_are_taken_away():
    html = (
        '<article class="bd-article"><p class="explorable" id="m">x</p>'
        '<a href="#m">M</a> <a href="#t">T</a><i id="t"></i></article>'
    )
    body = onepage.article(html, "a/x", {"a/x"}, 0, "")
    onepage.unlink([("", [body])])
    assert [link["href"] for link in body("a")] == ["#a/x:t"] and body.get_text().strip() == "M T"


def test_parts_have_their_pages_and_lists_are_left_out(tmp_path):
    (tmp_path / "book").mkdir()
    (tmp_path / "book/parts.yml").write_text(
        """
        root: index
        before: []
        parts:
        - {title: One, folder: one, chapters: [a, b, c]}
        after: [book/theorems, c]""",
        encoding="utf-8",
    )
    (tmp_path / "notebooks/one").mkdir(parents=True)
    for name in "ab":
        (tmp_path / f"notebooks/one/{name}.ipynb").touch()
    order = onepage.parts(tmp_path)
    assert order == [
        ("", ["index"]),
        ("One", ["book/parts/one", "notebooks/one/a", "notebooks/one/b"]),
        ("Back matter", ["c"]),
    ]
    assert [onepage.depth(part, page) for part, pages in order for page in pages] == [0, 0, 1, 1, 1]


def test_the_contents_name_every_page():
    html = '<article class="bd-article"><h1>{}</h1></article>'
    book = [
        ("", [onepage.article(html.format("Book"), "b", {"b"}, 0, "")]),
        ("Part", [onepage.article(html.format(name), name, {name}, 1, "") for name in ("One", "Two &amp; a half")]),
    ]
    text = onepage.contents(book)
    assert all(f'data-of="{name}"' in text for name in ("b", "One")) and "<span>Two &amp; a half</span>" in text
