"""Check the built HTML: links and anchors, alternative texts, stray markup, no requests to other hosts;
one title and one width for each, and for each page of the book a description.

    pages.py _build/html

Where the pages have a public address, which robots.txt names, no page may say that it stands anywhere else, and the
sitemap lists what is there.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from lxml import etree

import output_folder
from smalltorch.files import in_one_line

LOADING = {
    ("script", "src"),
    ("img", "src"),
    ("link", "href"),
    ("source", "src"),
    ("iframe", "src"),
    ("video", "src"),
    ("audio", "src"),
    ("embed", "src"),
    ("object", "data"),
}
NOT_PROSE = {"script", "style", "pre", "code", "kbd", "textarea", "title"}
STRAY = re.compile(r"\$|\\[a-zA-Z]{2,}|:::|```|\{(?:cite|ref|eq|doc|numref|prf:ref)[^}]*\}`")
DESCRIBED = ("book", "notebooks")  # the folders of the pages that are the book's own
LENGTHS = range(40, 331)  # of a description, in letters
SITEMAP = re.compile(r"^Sitemap: (\S+/)sitemap\.xml$", re.MULTILINE)
ELSEWHERE = re.compile(r"(?:url\(|@import)\s*['\"]?((?:[a-z][a-z\d+.-]*:)?//[^)'\"\s]+)", re.IGNORECASE)  # in styles
FILE_NAME = re.compile(r"(^|/)(_images|[0-9a-f]{64})|\.(png|svg|jpe?g)$")


class Page:
    """What ids a page has, what it refers to, and what is wrong in it."""

    def __init__(self, html: str):
        root = etree.HTML(html, etree.HTMLParser(huge_tree=True))
        ids = root.xpath("//@id | //a[not(@id)]/@name")
        self.ids = {*ids, *root.xpath("//@name")}
        self.repeated = [name for name, count in Counter(ids).items() if count > 1]  # a link leads to the first only
        self.references = [
            (element.tag, key, element.get(key))
            for element in root.xpath("//*[@href or @src or @data]")
            for key in ("href", "src", "data")
            if element.get(key) and element.get("rel") not in ("canonical", "next", "prev", "search", "index")
        ]
        self.loaded = ELSEWHERE.findall("\n".join(root.xpath("//style/text() | //@style")))
        alts = [(image.get("alt"), image.get("src", "")) for image in root.iter("img")]
        alts += [(picture.get("aria-label"), "") for picture in root.xpath('//svg[@class="plot"]')]
        self.bad_alts = [source for alt, source in alts if not alt or FILE_NAME.search(alt)]  # myst-nb writes the name
        self.said = {kind: root.xpath(f'//meta[@name="{kind}"]/@content') for kind in ("viewport", "description")}
        self.said["title"] = root.xpath("//title[not(ancestor::svg)]")
        self.said["canonical"] = root.xpath('//link[@rel="canonical"]/@href')
        etree.strip_elements(root, *NOT_PROSE, with_tail=False)
        for formula in root.xpath('//*[contains(concat(" ", @class, " "), " math ")]'):
            formula.clear(keep_tail=True)
        texts = [(text, found) for text in root.xpath("//text()") if (found := STRAY.search(text))]
        self.stray = [" ".join(text[max(at.start() - 30, 0) : at.end() + 30].split()) for text, at in texts]

    @property
    def is_stub(self) -> bool:
        """Whether it stands at an old address, and leads on."""
        return any(tag == "script" and address.endswith("_static/moved.js") for tag, _, address in self.references)


def wrong_in_head(page: Page, name: Path, site: str) -> Iterator[str]:
    """What a page says of itself too often, or not as it is; `site` is the public address of the pages, or empty."""
    for kind in ("title", "viewport"):
        if len(page.said[kind]) != 1:
            yield f"{name}: expected one {kind}, got {len(page.said[kind])}"
    if name.parts[0] in DESCRIBED and not page.is_stub:
        described = page.said["description"]
        if len(described) != 1 or len(described[0]) not in LENGTHS or re.search(r"[\\$<>{}`]", described[0]):
            yield f"{name}: expected a description of {LENGTHS[0]} to {LENGTHS[-1]} letters, no markup; got {described}"
    if page.said["canonical"] not in ([], [f"{site}{name.as_posix()}"]):
        yield f"{name}: says that it stands at {page.said['canonical']}"


def not_there(root: Path, pages: dict[Path, Page], site: str) -> Iterator[str]:
    """What the sitemap lists and is no page."""
    for address in re.findall(r"<loc>(.*?)</loc>", (root / "sitemap.xml").read_text(encoding="utf-8")) if site else ():
        path = root / address.removeprefix(site)
        if path not in pages or pages[path].is_stub:
            yield f"sitemap.xml: {address} is no page"


def site_of(root: Path) -> str:
    """The public address of the pages, with a slash at its end; empty where there is none."""
    robots = root / "robots.txt"
    return SITEMAP.search(robots.read_text(encoding="utf-8"))[1] if robots.exists() else ""


def led_to(folder: Path, place: str) -> tuple[Path, bool]:
    """The file to which an address leads, and whether it is there."""
    target = (folder / place).resolve()
    target = target / "index.html" if target.is_dir() else target
    return target, target.exists()


def problems(root: Path) -> tuple[list[str], str]:
    """What is wrong with the pages under root, one line each; and a line that says how much was looked at."""
    root = root.resolve()
    files = [path for path in sorted(root.rglob("*.html")) if "_static" not in path.parts]
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in files}
    site, leading = site_of(root), cache(led_to)  # most links stand on many pages
    base = urlsplit(site).path  # where the server has the folder: the page for dead links says all addresses in full
    found, links = list(not_there(root, pages, site)), 0
    for path, page in pages.items():
        name = path.relative_to(root)
        found += [f"{name}: the image {source[:60]} has no alternative text" for source in page.bad_alts]
        found += [f"{name}: the anchor {anchor} stands there more than once" for anchor in page.repeated]
        found += wrong_in_head(page, name, site)
        found += [f"{name}: stray markup in the text: … {text} …" for text in page.stray]
        found += [f"{name}: loads {address}" for address in page.loaded]
        for tag, key, address in page.references:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                if (tag, key) in LOADING and parts.scheme != "data":
                    found.append(f"{name}: loads {address}")
                continue
            links += 1
            folder, place = path.parent, unquote(parts.path)
            if base and place.startswith(base):
                folder, place = root, place.removeprefix(base)
            target, is_there = leading(folder, place) if parts.path else (path, True)
            if not is_there:
                found.append(f"{name}: {address} does not exist")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids:
                found.append(f"{name}: {address} has no such anchor")
    for sheet in sorted(root.glob("_static/**/*.css")):
        text = sheet.read_text(encoding="utf-8", errors="replace")
        found += [f"{sheet.relative_to(root)}: loads {address}" for address in ELSEWHERE.findall(text)]
    if not pages:
        found.append(f"{root}: no pages")
    return found, f"{len(pages)} pages, {links} internal links"


def main() -> None:
    html = Path(sys.argv[1]).resolve()
    with output_folder.taken(html.parent):
        found, size = problems(html)
    print("\n".join(found) or f"{size}: all in order")
    sys.exit(bool(found))


if __name__ == "__main__":
    with in_one_line():
        main()
