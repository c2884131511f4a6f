"""Combine the built pages into one HTML page for printing.

    onepage.py _build/html     writes _build/print

Each page keeps its markup and the look it has on paper (print.css). Only addresses change: ids get the page's name in
front, so that no two are the same, and links between pages become links within this one. No script of the pages is
taken along: what they would fold away stays open.
"""

import importlib.util
import re
import shutil
import sys
from html import escape
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from urllib.parse import unquote, urlsplit

import yaml
from bs4 import BeautifulSoup, Tag

import output_folder
from deepdive.book.contents import LEDGER, OPENINGS, outline
from deepdive.book.contents import read as read_contents
from smalltorch.files import in_one_line, write_text

ROOT = Path(__file__).resolve().parents[2]
REFERRING = ("aria-labelledby", "aria-describedby", "for", "headers")  # attributes that hold ids
HEADINGS = re.compile(r"h[1-6]")
# A formula as `formulas.cjs` makes it: a picture, in which brackets may be pictures too, and MathML with the TeX in it.
SHAPES = r'<svg aria-hidden="true" style=[^>]*>(?:(?!<math ).)*'
FORMULA = re.compile(rf"(?:{SHAPES})?<math class=.*?(<annotation .*?</annotation>)</semantics></math>", re.S)
PRE, SPAN = re.compile(r"<pre>.*?</pre>", re.S), re.compile(r"<span\b[^>]*>|</span>")
COMMENT = re.compile(r'class="(c|c1|cm|sd)"')
LISTS = {"book/theorems", "book/exercises"}  # repeat what stands in the chapters
# Formulas are set with fonts here: as the shapes that the HTML uses they would make the file half as large again.
MATHJAX = ("tex-chtml-full.js", "output/chtml/fonts/woff-v2")
PAGE = """\
<!doctype html>
<html lang="en" data-theme="light">
<head>
<meta charset="utf-8">
<title>{title}</title>
{styles}
<style>
@page {{ size: A4; font: 9pt Helvetica, Arial, sans-serif; @bottom-center {{ content: counter(page); }} }}
@page title {{ @bottom-center {{ content: none; }} }}
{running_heads}
</style>
<script>
MathJax = {{options: {{
  ignoreHtmlClass: "bd-content", processHtmlClass: "math", menuOptions: {{settings: {{assistiveMml: false}}}}
}}}}
</script>
<script defer src="mathjax/tex-chtml-full.js"></script>
</head>
<body class="whole-book">
<div class="bd-content"><div class="bd-article-container">
{front}
{pages}
</div></div>
</body>
</html>
"""


def anchor(page: str, name: str = "") -> str:
    """The id here of an anchor of a page, or of the page."""
    return f"{page}:{name}" if name else page


def parts(root: Path) -> list[tuple[str, list[str]]]:
    """The book in its order: the title of each part and its pages. The first page stands before the parts."""
    order = outline(root, read_contents(root))
    return [(title, [page for page in pages if page not in LISTS]) for title, pages in order]


def depth(part: str, page: str) -> int:
    """How many levels further down a page's headings stand than on their own: chapters stand below their part."""
    return 1 if part and not page.startswith(OPENINGS) else 0


def redirect(address: str, page: str, pages: set[str]) -> str | None:
    """Where a link of a page leads in the book on one page; None if it leads to nothing that is in it."""
    url = urlsplit(address)
    if url.scheme or url.netloc:
        return address
    target = normpath(PurePosixPath(page).parent / unquote(url.path)) if url.path else f"{page}.html"
    name = target.removesuffix(".html")
    if name.startswith(f"{LEDGER}/"):  # of the ledger, the page of all claims stands for those of the chapters
        return "#" + anchor(LEDGER, f"chapter-{name.rpartition('/')[2]}")
    return "#" + anchor(name, unquote(url.fragment)) if name in pages and target.endswith(".html") else None


def article(html: str, page: str, pages: set[str], depth: int, files: str) -> Tag:
    """A page's text, with addresses as the book on one page needs them and headings `depth` levels further down."""
    body = BeautifulSoup(lighter(html), "html.parser").find("article", class_="bd-article")
    body["class"], body["id"] = ["page"], page
    for element in body.select("script, form, .explorable, .takeaway"):
        element.decompose()
    for element in body(True):
        if element is not body and element.get("id") and not element.find_parent("svg"):  # a picture's are its own
            element["id"] = anchor(page, element["id"])
        for key in REFERRING:
            if element.get(key):
                value = element[key] if isinstance(element[key], list) else element[key].split()
                element[key] = " ".join(anchor(page, name) for name in value)
        if element.get("src") and not urlsplit(element["src"]).scheme:
            element["src"] = f"{files}/{normpath(PurePosixPath(page).parent / element['src'])}"
        if HEADINGS.fullmatch(element.name):
            element["aria-level"] = str(int(element.name[1]) + depth)
    for link in body("a", href=True):
        target = redirect(link["href"], page, pages)
        if "headerlink" in (link.get("class") or []):
            link.decompose()
        elif target is None:
            link.unwrap()
        else:
            link["href"] = target
    for formula in body(class_="math"):
        as_tex(formula)
    return body


def lighter(html: str) -> str:
    """A page without what paper does not have and most of its elements are: of formulas all but the TeX; colours."""
    html = FORMULA.sub(r"\1", html)
    return PRE.sub(lambda listing: flatten(listing[0]), html)


def flatten(listing: str) -> str:
    """Keep of a listing's colours only the comments': each coloured word would be an element of the PDF's structure."""
    kept = []

    def tag(found: re.Match) -> str:
        if found[0] == "</span>":
            return found[0] if kept.pop() else ""
        kept.append(bool(COMMENT.search(found[0])))
        return found[0] if kept[-1] else ""

    return SPAN.sub(tag, listing)


def as_tex(formula: Tag) -> None:
    """Mark a formula's TeX for MathJax: on paper it is set with fonts, which can break wide lines."""
    tex = formula.select_one("annotation, .tex")
    start, end = (r"\[", r"\]") if formula.name == "div" else (r"\(", r"\)")
    formula.append(start + tex.extract().string + end)


def unlink(book: list[tuple[str, list[Tag]]]) -> None:
    """Take away the links to what was left out."""
    bodies = [body for _, bodies in book for body in bodies]
    ids = {element["id"] for body in bodies for element in [body, *body(id=True)]}
    for body in bodies:
        for link in body("a", href=re.compile("^#")):
            if link["href"][1:] not in ids:
                link.unwrap()


def title_of(body: Tag) -> str:
    return " ".join(body.find("h1").get_text().split())


def contents(book: list[tuple[str, list[Tag]]]) -> str:
    """The table of contents; the page numbers are known only when it has been printed, and are filled in then."""
    lines = []
    for part, bodies in book:
        rows = [
            f'<a href="#{body["id"]}"><span>{escape(title_of(body))}</span>'
            f'<span class="page-number" data-of="{body["id"]}"></span></a>'
            for body in bodies
        ]
        head = rows.pop(0) if not part or bodies[0]["id"].startswith(OPENINGS) else escape(part)
        lines.append(f"<li>{head}<ul>\n" + "\n".join(f"<li>{row}</li>" for row in rows) + "\n</ul></li>")
    return '<nav class="book-contents"><h1>Contents</h1><ul>\n' + "\n".join(lines) + "\n</ul></nav>"


def title_page(title: str, subtitle: str, author: str, year: str) -> str:
    lines = [
        f'<p class="book-title">{escape(title)}</p>',
        f'<p class="book-subtitle">{escape(subtitle)}</p>',
        f"<p>{escape(author)}</p>",
        f"<p>© {escape(year)} {escape(author)}. Text and figures: CC BY 4.0. Code: MIT.</p>",
    ]
    return '<header class="title-page">\n' + "\n".join(lines) + "\n</header>"


def one_page(html: Path, root: Path = ROOT, files: str = "../html") -> str:
    """The book on one page. `files` is the way from its folder to the folder of the built pages."""
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    order = parts(root)
    names = {page for _, pages in order for page in pages}
    texts = {page: (html / f"{page}.html").read_text(encoding="utf-8") for page in names}
    book = [
        (part, [article(texts[page], page, names, depth(part, page), files) for page in pages]) for part, pages in order
    ]
    unlink(book)
    first, landing = order[0][1][0], book[0][1][0]
    subtitle = " ".join(landing.find("em").get_text().split())
    front = title_page(config["title"], subtitle, config["author"], config["copyright"]) + "\n" + contents(book)
    sheets = BeautifulSoup(texts[first], "html.parser").head("link", rel="stylesheet")
    for sheet in sheets:
        sheet["href"] = f"{files}/{normpath(PurePosixPath(first).parent / sheet['href'])}"
    heads = []
    for part, bodies in book:
        for body in bodies:
            body["style"] = f"page: page-{len(heads)}"
            head = title_of(body).replace("\\", "").replace('"', "”")
            heads.append(f'@page page-{len(heads)} {{ @top-left {{ content: "{head}"; }} }}')
        if bodies[0]["id"].startswith(OPENINGS):
            bodies[0].h1["class"] = "part-title"
        elif part:
            bodies[0].insert(0, BeautifulSoup(f'<h1 class="part-title">{escape(part)}</h1>', "html.parser"))
    pages = [str(body) for _, bodies in book for body in bodies]
    return PAGE.format(
        title=escape(config["title"]),
        styles="\n".join(map(str, sheets)),
        running_heads="\n".join(heads),
        front=front,
        pages="\n".join(pages),
    )


def main() -> None:
    html = Path(sys.argv[1]).resolve()
    folder = html.with_name("print")
    package = Path(importlib.util.find_spec("sphinx-mathjax-offline").origin).parent / "static/mathjax"
    with output_folder.taken(html.parent):
        shutil.rmtree(folder, ignore_errors=True)
        for name in MATHJAX:
            (folder / "mathjax" / name).parent.mkdir(parents=True, exist_ok=True)
            copy = shutil.copytree if (package / name).is_dir() else shutil.copy2
            copy(package / name, folder / "mathjax" / name)
        write_text(folder / "index.html", one_page(html, files=relpath(html, folder)))


if __name__ == "__main__":
    with in_one_line():
        main()
