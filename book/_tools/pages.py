"""Check the built pages: links and anchors, alternative texts, stray markup, and that nothing is loaded from elsewhere;
one title and one width for each, and for each page of the book a description.

    pages.py _build/html

Old addresses must still lead to their place; `old_addresses.txt` lists them. Where the pages have a public address,
which robots.txt names, no page may say that it stands anywhere else, and the sitemap lists what is there.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import own
from smalltorch.files import in_one_line

OLD_ADDRESSES = Path(__file__).with_name("old_addresses.txt")
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
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
STRAY = re.compile(r"\$|\\[a-zA-Z]{2,}|:::|```|\{(?:cite|ref|eq|doc|numref|prf:ref)[^}]*\}`")
DESCRIBED = ("book", "notebooks")  # the folders of the pages that are the book's own
LENGTHS = range(40, 331)  # of a description, in letters
SITEMAP = re.compile(r"^Sitemap: (\S+/)sitemap\.xml$", re.MULTILINE)
FILE_NAME = re.compile(r"(^|/)(_images|[0-9a-f]{64})|\.(png|svg|jpe?g)$")


class Page(HTMLParser):
    """What a page defines (ids, and the choices of rows that it offers), what it refers to, and what is wrong in it."""

    def __init__(self, html: str):
        super().__init__()
        self.ids: set[str] = set()
        self.choices: set[str] = set()  # as the address has them, such as ?part=one
        self._select = ""
        self.repeated: list[str] = []  # a link to such an id leads to the first of them only
        self.references: list[tuple[str, str, str]] = []
        self.bad_alts: list[str] = []
        self.stray: list[str] = []
        self.said: dict[str, list[str]] = {"title": [], "viewport": [], "description": [], "canonical": []}
        self._open: list[tuple[str, bool]] = []  # the open elements, and whether what they hold is not prose
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if values.get("id") in self.ids:
            self.repeated.append(values["id"])
        self.ids.update(value for key in ("id", "name") if (value := values.get(key)))
        if tag == "select":
            self._select = values.get("name")
        if tag == "option":
            self.choices.update(f"?{self._select}={values[key]}" for key in ("value", "data-was") if values.get(key))
        if tag == "img" or (tag == "svg" and values.get("class") == "plot"):
            alt = values.get("alt" if tag == "img" else "aria-label")
            if not alt or FILE_NAME.search(alt):  # myst-nb writes the name
                self.bad_alts.append(values.get("src") or "")
        if tag == "title" and not any(name == "svg" for name, _ in self._open):
            self.said["title"].append("")
        for kind, key, value in (("meta", "name", "content"), ("link", "rel", "href")):
            if tag == kind and values.get(key) in self.said:
                self.said[values[key]].append(values.get(value) or "")
        for key in ("href", "src", "data"):
            if values.get(key) and values.get("rel") not in ("canonical", "next", "prev", "search", "index"):
                self.references.append((tag, key, values[key]))
        if tag not in VOID:
            classes = (values.get("class") or "").split()
            self._open.append((tag, tag in NOT_PROSE or "math" in classes))

    def handle_endtag(self, tag):
        if any(tag == name for name, _ in self._open):
            while self._open.pop()[0] != tag:
                pass

    def handle_data(self, data):
        if (stray := STRAY.search(data)) and not any(not_prose for _, not_prose in self._open):
            start = max(stray.start() - 30, 0)
            self.stray.append(" ".join(data[start : stray.end() + 30].split()))

    @property
    def leads_to(self) -> str | None:
        """Where a stub at an old address leads; None for any other page."""
        stub = any(tag == "script" and address.endswith("_static/moved.js") for tag, _, address in self.references)
        return next(address for tag, _, address in self.references if tag == "a") if stub else None


def wrong_in_head(page: Page, name: Path, site: str) -> Iterator[str]:
    """What a page says of itself too often, or not as it is; `site` is the public address of the pages, or empty."""
    for kind in ("title", "viewport"):
        if len(page.said[kind]) != 1:
            yield f"{name}: expected one {kind}, got {len(page.said[kind])}"
    if name.parts[0] in DESCRIBED and page.leads_to is None:
        described = page.said["description"]
        if len(described) != 1 or len(described[0]) not in LENGTHS or re.search(r"[\\$<>{}`]", described[0]):
            yield f"{name}: expected a description of {LENGTHS[0]} to {LENGTHS[-1]} letters, no markup; got {described}"
    if page.said["canonical"] not in ([], [f"{site}{name.as_posix()}"]):
        yield f"{name}: says that it stands at {page.said['canonical']}"


def not_there(root: Path, pages: dict[Path, Page], site: str) -> Iterator[str]:
    """What the sitemap lists and is no page."""
    for address in re.findall(r"<loc>(.*?)</loc>", (root / "sitemap.xml").read_text(encoding="utf-8")) if site else ():
        path = root / address.removeprefix(site)
        if path not in pages or pages[path].leads_to is not None:
            yield f"sitemap.xml: {address} is no page"


def site_of(root: Path) -> str:
    """The public address of the pages, with a slash at its end; empty where there is none."""
    robots = root / "robots.txt"
    return SITEMAP.search(robots.read_text(encoding="utf-8"))[1] if robots.exists() else ""


def lost(root: Path, pages: dict[Path, Page], addresses: str) -> Iterator[str]:
    """The old addresses that lead nowhere now.

    Each line of `addresses` is a page and what of it could be linked to: anchors, and choices of rows like ?part=one.
    """
    for name, *places in map(str.split, addresses.splitlines()):
        path = root / name
        while path in pages and (onward := pages[path].leads_to):
            path = (path.parent / onward).resolve()
        if path not in pages:
            yield f"{name}: this address was linked to, and leads nowhere now"
            continue
        for place in places:
            if place not in (pages[path].choices if place.startswith("?") else pages[path].ids):
                mark = "" if place.startswith("?") else "#"
                yield f"{name}{mark}{place}: this address was linked to, and {path.relative_to(root)} has no such place"


def problems(root: Path, addresses: str = "") -> tuple[list[str], str]:
    """What is wrong with the pages under root and what old addresses lead nowhere, one line each; and a line that says
    how much was looked at.
    """
    root = root.resolve()
    files = [path for path in sorted(root.rglob("*.html")) if "_static" not in path.parts]
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in files}
    site = site_of(root)
    base = urlsplit(site).path  # where the server has the folder: the page for dead links says all addresses in full
    found, links = list(not_there(root, pages, site)), 0
    for path, page in pages.items():
        name = path.relative_to(root)
        found += [f"{name}: the image {source[:60]} has no alternative text" for source in page.bad_alts]
        found += [f"{name}: the anchor {anchor} stands there more than once" for anchor in page.repeated]
        found += wrong_in_head(page, name, site)
        found += [f"{name}: stray markup in the text: … {text} …" for text in page.stray]
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
            target = (folder / place).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                found.append(f"{name}: {address} does not exist")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids:
                found.append(f"{name}: {address} has no such anchor")
    found += lost(root, pages, addresses)
    for sheet in sorted(root.glob("_static/**/*.css")):
        text = sheet.read_text(encoding="utf-8", errors="replace")
        for address in re.findall(r"url\(\s*['\"]?(https?:[^)'\"]+)", text):
            found.append(f"{sheet.relative_to(root)}: loads {address}")
    if not pages:
        found.append(f"{root}: no pages")
    old = sum(len(line.split()) for line in addresses.splitlines())
    return found, f"{len(pages)} pages, {links} internal links, {old} old addresses"


def main() -> None:
    html = Path(sys.argv[1]).resolve()
    with own.taken(html.parent):
        found, size = problems(html, OLD_ADDRESSES.read_text(encoding="utf-8"))
    print("\n".join(found) or f"{size}: all in order")
    sys.exit(bool(found))


if __name__ == "__main__":
    with in_one_line():
        main()
