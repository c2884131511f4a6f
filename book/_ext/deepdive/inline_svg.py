"""Inline SVG figures into the page, so that they follow the theme's colours and their text can be searched.

Two kinds do: the drawings of `smalltorch.figures.draw`, which are made for it, and the figures of
`smalltorch.figures.plot`. A notebook stores a figure once, as light pages show it; here the palette's colours, black
and the greys are exchanged for those that the theme gives them (book.css). What a heat map shows, and the texts on it,
stay as they are.
"""

import re
import xml.etree.ElementTree as ET
from hashlib import sha256
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

from smalltorch.figures import draw, plot, svg_export

SVG, LINK = "http://www.w3.org/2000/svg", "{http://www.w3.org/1999/xlink}href"
ET.register_namespace("", SVG)
COLOUR = re.compile(r"(fill|stroke): (#[0-9a-f]{6})")
NAMES = ("BLUE", "ORANGE", "GREEN", "PINK", "SKY")
PALETTE = {getattr(plot, name).lower(): name.lower() for name in NAMES} | {"#000000": "black", "#ffffff": "white"}
GREY = re.compile(r"#([0-9a-f]{2})\1\1")
KEPT = re.compile(r"QuadMesh_|QuadContourSet_|over-")  # groups that keep their colours
STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)
UNSEEN = re.compile(r"<(title|desc)>")  # Sphinx marks the words of a search by boxes, and fails where text has none
USED = re.compile(r"#([\w.-]+)")


def put_in(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Replace every image that is such a picture by the picture itself."""
    if app.builder.format != "html":
        return
    for image in list(doctree.findall(nodes.image)):
        file = Path(app.srcdir) / image["uri"]
        if file.suffix == ".svg" and file.is_file():
            svg = file.read_text(encoding="utf-8")
            head = svg[svg.find("<svg") :].partition(">")[0]
            if 'class="drawn"' in head:
                svg = UNSEEN.sub(r'<\1 class="nohighlight">', STYLE.sub("", svg))
                image.replace_self(nodes.raw("", scrolling(svg, 0.55), format="html"))
            elif 'class="plot"' in head or '<g id="figure_1">' in svg:
                image.replace_self(nodes.raw("", scrolling(themed(svg, image.get("alt", "")), 0.65), format="html"))


def scrolling(svg: str, share: float) -> str:
    """A picture that scrolls sideways where there is less room than this share of its width: its text stays legible."""
    width = re.search(r' width="([\d.]+)(pt)?"', svg)
    least = share * float(width[1]) * (4 / 3 if width[2] else 1) if width else 0
    return f'<div class="picture" style="--least: {least:.0f}px">{svg}</div>'


def themed(svg: str, alt: str) -> str:
    """A figure's SVG for the page: with alternative text, colours of the theme, and ids that no other picture has."""
    root = ET.fromstring(svg_export.slim(svg))
    paper = root.find(f"{{{SVG}}}rect")  # white, below the picture of the first page
    if paper is not None:
        root.remove(paper)
    greys: set[str] = set()
    recolour(root, greys)
    ids = {element.get("id") for element in root.iter()}
    used = {name for element in root.iter() for value in element.attrib.values() for name in USED.findall(value)} & ids
    own = sha256(svg.encode()).hexdigest()[:8]
    for element in root.iter():
        if LINK in element.attrib:
            element.set("href", element.attrib.pop(LINK))
        if KEPT.match(name := element.attrib.pop("id", "")):
            element.set("class", "over")  # black, where nothing else is said
        for key, value in element.items():
            element.set(key, USED.sub(lambda link: f"#{own}-{link[1]}" if link[1] in used else link[0], value))
        if name in used:
            element.set("id", f"{own}-{name}")
    mixed = "--grey-{0}: color-mix(in srgb, var(--plot-black) {1:.0f}%, var(--plot-white))"
    root.set("style", "; ".join(mixed.format(grey, 100 - int(grey, 16) / 2.55) for grey in sorted(greys)))
    root.set("role", "img")
    root.set("aria-label", alt)
    return ET.tostring(root, encoding="unicode")


def recolour(element: ET.Element, greys: set[str]) -> None:
    """Give an element and what it holds the theme's colours, and note which greys occur."""

    def exchanged(found: re.Match[str]) -> str:
        what, colour = found.groups()
        if grey := GREY.fullmatch(colour) if colour not in PALETTE else None:
            greys.add(grey[1])
            return f"{what}: var(--grey-{grey[1]})"
        return f"{what}: var(--plot-{PALETTE[colour]})" if colour in PALETTE else found[0]

    if KEPT.match(element.get("id", "")):
        return
    if style := element.get("style"):
        element.set("style", COLOUR.sub(exchanged, style))
    for child in element:
        recolour(child, greys)


def add_style(app: Sphinx) -> None:
    """The look of all drawings, once for each page, in place of the one that each brings along."""
    if app.builder.format == "html":
        sheet = Path(app.outdir) / "_static/drawn.css"
        sheet.parent.mkdir(parents=True, exist_ok=True)
        sheet.write_text(draw.STYLE + "\n", encoding="utf-8")
        app.add_css_file(sheet.name)


def setup(app: Sphinx) -> None:
    app.connect("builder-inited", add_style)
    app.connect("doctree-resolved", put_in)
