"""The sidebar of a page: its links start there, its entry is marked, and what the entry stands in is open."""

from deepdive.theme import sidebar

ENTRY = '<li class="toctree-l{}"><a class="reference internal" href="{}.html">{}</a>{}</li>'
BELOW = "<details><summary></summary><ul>" + ENTRY.format(2, "book/all/one", "One", "") + "</ul></details>"
ALL = ENTRY.format(1, "book/all", "<em>All</em>", BELOW).replace('l1"', 'l1 has-children"')
BOOK = f'<ul class="nav bd-sidenav">{ENTRY.format(1, "first", "First", "")}{ALL}</ul>'


def test_a_page_that_is_not_listed_gets_links_that_start_there():
    assert sidebar.of_page(BOOK, "genindex") == BOOK
    assert sidebar.of_page(BOOK, "book/x") == BOOK.replace("first.html", "../first.html").replace("book/all", "all")


def test_an_entry_is_marked_with_all_that_it_stands_in():
    found = sidebar.of_page(BOOK, "book/all/one")
    assert '<ul class="current nav bd-sidenav"><li class="toctree-l1"><a' in found and "../../first.html" in found
    assert (
        '<li class="toctree-l1 current active has-children"><a class="reference internal" href="../all.html">' in found
    )
    assert '<details open="open"><summary></summary><ul class="current"><li class="toctree-l2 current active">' in found
    assert '<a class="current reference internal" href="#">One</a>' in found and found.count("current") == 5


def test_what_stands_below_the_page_is_open():
    found = sidebar.of_page(BOOK, "book/all")
    assert '<a class="current reference internal" href="#"><em>All</em></a><details open="open">' in found
    assert 'href="all/one.html"' in found and found.count("current") == 3
