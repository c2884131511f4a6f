"""Check the printed PDF against its pages: outline, formulas, solutions, contents, links and fonts.

pdf.py _build/html
"""

import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from html import unescape
from pathlib import Path

from pypdf import PdfReader
from pypdf.generic import Destination, DictionaryObject

import output_folder
from deepdive.book.contents import OPENINGS
from deepdive.takeaway import PDF
from onepage import ROOT, depth, parts
from smalltorch.files import in_one_line

FORMULA = re.compile(r'<(span|div) class="[^"]*\bmath\b[^"]*"[^>]*>(.*?)</\1>', re.S)
HEADING = re.compile(r"<h([1-6])[ >](.*?)</h\1>", re.S)
EXERCISES = re.compile(r'<section id="exercises">\s*<h2.*?</h2>(.*?)(?=<h2|\Z)', re.S)
# What is not printed; what is folded within something that is folded goes first.
FOLDED = [
    re.compile(rf'<details class="(?:{kinds})">\s*<summary>.*?</summary>.*?</details>', re.S)
    for kinds in ("check [a-z]+|by|declared", "code")
]
OUTSIDE = re.compile(r"https?://(?!127\.0\.0\.1|localhost)|mailto:")
LIGATURES = str.maketrans({"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl"})
LEAST = 25  # letters of a piece of text that is looked for
MOST = 16  # printed pages of a chapter
LARGEST = 40_000_000  # bytes of the PDF


def bare(text: str) -> str:
    """Without white space, which a PDF does not keep, and without ligatures, which some fonts have there."""
    return re.sub(r"\s+", "", text).translate(LIGATURES)


def plain(html: str) -> str:
    """The letters of a piece of HTML, with a … for each formula."""
    html = FORMULA.sub("…", re.sub(r'<a class="headerlink".*?</a>', "", html, flags=re.S))
    return bare(unescape(re.sub(r"<[^>]*>", "", html)))


def printed(html: str) -> str:
    """A page without what is folded away on paper."""
    for folded in FOLDED:
        html = folded.sub("", html)
    return html


def formulas(html: str) -> Iterator[str]:
    """The TeX of the formulas of a page."""
    for _, inner in FORMULA.findall(printed(html)):
        for tex in re.findall(r"<annotation[^>]*>(.*?)</annotation>", inner, re.S):
            yield bare(unescape(tex))


def headings(html: str, depth: int) -> Iterator[tuple[int, str]]:
    """Level, `depth` further down, and text of the headings of a page."""
    for level, text in HEADING.findall(html):
        yield int(level) + depth, plain(text)


def pieces(html: str) -> Iterator[str]:
    """The beginnings of the pieces of text between the tags that are long enough to be recognised."""
    for text in re.split(r"<[^>]*>", FORMULA.sub("<>", printed(html))):
        text = bare(unescape(text))
        if len(text) >= LEAST:
            yield text[:LEAST]


def outline(entries: list, level: int = 1) -> Iterator[tuple[int, Destination]]:
    for entry in entries:
        if isinstance(entry, list):
            yield from outline(entry, level + 1)
        else:
            yield level, entry


def alternatives(element: DictionaryObject) -> Iterator[str]:
    """The alternative texts of all figures under an element of the PDF's structure."""
    waiting = [element]
    while waiting:
        element = waiting.pop()
        if element.get("/S") == "/Figure" and "/Alt" in element:
            yield bare(str(element["/Alt"]))
        children = element.get("/K", [])
        children = children if isinstance(children, list) else [children]
        children = [child.get_object() for child in children]
        waiting += [child for child in children if isinstance(child, DictionaryObject)]


def compare(name: str, wanted: Counter, found: Counter) -> list[str]:
    missing = list((wanted - found).elements())
    return [f"{len(missing)} {name} of {wanted.total()} are missing, such as {missing[0]}"] if missing else []


def chapter_lengths(begins: Mapping[str, int]) -> dict[str, int]:
    """The number of printed pages of each chapter, by its name; `begins` is where each page of the book begins."""
    ends = [*begins.values()][1:]
    spans = zip(begins.items(), ends, strict=False)
    return {page.rpartition("/")[2]: end - begin for (page, begin), end in spans if page.startswith("notebooks/")}


def lengths(pages: Mapping[str, int]) -> list[str]:
    """The chapters that have too many pages."""
    return [f"{name} has {count} pages, {MOST} at most" for name, count in pages.items() if count > MOST]


def weight(size: int) -> list[str]:
    """Whether the PDF is too large."""
    return [f"the PDF has {size / 1e6:.1f} MB, {LARGEST / 1e6:.0f} at most"] if size > LARGEST else []


def problems(pdf: PdfReader, order: list[tuple[str, list[str]]], texts: dict[str, str]) -> tuple[list[str], str]:
    """What is wrong with the PDF of these pages, one line each, and a line that says how much was looked at."""
    wanted, begins = [(1, "Contents")], {}
    for part, pages in order:
        wanted += [(1, bare(part))] if part and not pages[0].startswith(OPENINGS) else []
        for page in pages:
            begins[page] = len(wanted)
            wanted += headings(texts[page], depth(part, page))
    entries = [(level, bare(entry.title), entry) for level, entry in outline(pdf.outline)]
    found = []
    if len(entries) != len(wanted):
        found.append(f"the outline has {len(entries)} entries, the pages have {len(wanted)} headings")
    for (level, title), (found_level, found_title, _) in zip(wanted, entries, strict=False):
        if level != found_level or not re.fullmatch(".+".join(map(re.escape, title.split("…"))), found_title):
            found.append(f"the outline has {found_title} (level {found_level}) in place of {title} (level {level})")
            break

    tex = Counter(formula for html in texts.values() for formula in formulas(html))
    found += compare("formulas", tex, Counter(alternatives(pdf.root_object["/StructTreeRoot"])))

    page_of = [pdf.get_destination_page_number(entry) for _, _, entry in entries]
    counts = chapter_lengths({page: page_of[k] for page, k in begins.items() if k < len(page_of)})
    found += lengths(counts)
    exercises = [k for k, (_, title, _) in enumerate(entries) if title.endswith("Exercises")]
    looked_at = sorted({page for k in exercises for page in range(page_of[k], page_of[k + 1] + 1)})
    found_there = "".join(bare(pdf.pages[page].extract_text()) for page in looked_at)
    sought = {piece for html in texts.values() for section in EXERCISES.findall(html) for piece in pieces(section)}
    open_ones = {piece for piece in sought if piece in found_there}
    found += compare("pieces of exercises and solutions", Counter(sought), Counter(open_ones))

    contents = bare("".join(pdf.pages[page].extract_text() for page in range(page_of[0], page_of[1])))
    for page, k in begins.items():  # by place and not by title, which the ledger may repeat
        _, title = next(headings(texts[page], 0))
        if k < len(page_of) and f"{title}{page_of[k] + 1}" not in contents:
            found.append(f"the contents lack {title} and its page, {page_of[k] + 1}")

    links = [annotation.get_object() for page in pdf.pages for annotation in page.get("/Annots", [])]
    for link in links:
        place, address = link.get("/Dest"), link.get("/A", {}).get("/URI", "")
        if place is not None and str(place) not in pdf.root_object["/Dests"]:
            found.append(f"a link leads to {place}, which is not there")
        if place is None and not OUTSIDE.match(address):
            found.append(f"a link leads to {address or 'nothing'}")

    fonts = {
        reference.idnum: reference.get_object()
        for page in pdf.pages
        for reference in page["/Resources"].get("/Font", {}).values()
    }
    for font in fonts.values():
        descriptors = [item.get_object().get("/FontDescriptor", {}) for item in font.get("/DescendantFonts", [font])]
        embedded = any(key.startswith("/FontFile") for descriptor in descriptors for key in descriptor)
        if font["/Subtype"] != "/Type3" and not embedded:
            found.append(f"the font {font.get('/BaseFont')} is not embedded")
    size = f"{len(pdf.pages)} pages, {len(entries)} headings, {tex.total()} formulas, {len(links)} links"
    return found, f"{size}; of the chapters: {', '.join(f'{name} {count}' for name, count in counts.items())}"


def main() -> None:
    html = Path(sys.argv[1]).resolve()
    order = parts(ROOT)
    texts = {}
    with output_folder.taken(html.parent):
        for page in [page for _, pages in order for page in pages]:
            text = (html / f"{page}.html").read_text(encoding="utf-8")
            texts[page] = text.partition('<article class="bd-article">')[2].partition("</article>")[0]
        found, size = problems(PdfReader(html / PDF), order, texts)
        found += weight((html / PDF).stat().st_size)
    print(f"{PDF}, {size}", "\n".join(found) or "all in order", sep="\n")
    sys.exit(bool(found))


if __name__ == "__main__":
    with in_one_line():
        main()
