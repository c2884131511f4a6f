"""Interactive figures: a placeholder below a figure, filled by a script of `book/explore`, and the list of them.

    {explorables}   the figures that can be moved, with links

`book/explore/figures.yml` says which. Only pages with such a figure load the scripts. In print, and in another format
than HTML pages, there is the figure alone.
"""

import shutil
from dataclasses import dataclass
from html import escape
from pathlib import Path

import yaml
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

from deepdive.page.directive import BookDirective
from deepdive.page.links import link

logger = logging.getLogger(__name__)
FOLDER = "book/explore"
LIST = f"{FOLDER}/figures.yml"
SHARED = ("numbers", "text", "axes", "box")  # scripts, each of which builds on those before it


@dataclass(frozen=True)
class Explorable:
    """A figure that can be moved: its script's name, its page, the figure's anchor on it, what to do there, and JSON of
    what its script cannot compute, if there is a file of its name with that."""

    name: str
    page: str
    figure: str
    title: str
    stored: str = ""


def read(root: Path) -> tuple[Explorable, ...]:
    found = []
    for entry in yaml.safe_load((root / LIST).read_text(encoding="utf-8")):
        file = root / FOLDER / f"{entry['name']}.json"
        found.append(Explorable(**entry, stored=file.read_text(encoding="utf-8").strip() if file.is_file() else ""))
    return tuple(found)


def load(app: Sphinx) -> None:
    app.env.book_explorables = read(Path(app.srcdir))
    folder = Path(app.srcdir) / FOLDER
    for path in (*folder.glob("*.js"), *folder.glob("*.css")):
        target = Path(app.outdir) / "_static/explore" / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)
    for one in app.env.book_explorables:
        if not (Path(app.srcdir) / script(one)).is_file():
            logger.warning("%s: there is no %s", LIST, script(one), type="explorables")


def script(one: Explorable) -> str:
    return f"{FOLDER}/{one.name}.js"


def add_box(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Put an empty box below the figure, for the script to fill."""
    if app.builder.name != "html":
        return
    for one in app.env.book_explorables:
        if one.page == page:
            figure = next((node for node in doctree.findall(nodes.figure) if one.figure in node["ids"]), None)
            if figure is None:
                logger.warning("%s: %s has no figure %s", LIST, page, one.figure, type="explorables")
                continue
            stored = f' data-stored="{escape(one.stored)}"' if one.stored else ""
            box = (
                f'<div class="explorable" id="move-{one.figure}" data-explorable="{one.name}"'
                f' data-title="{escape(one.title)}"{stored}></div>'
            )
            figure.parent.insert(figure.parent.index(figure) + 1, nodes.raw("", box, format="html"))


def add_scripts(app: Sphinx, page: str, template: str, context: dict, doctree: nodes.document | None) -> None:
    here = [one.name for one in app.env.book_explorables if one.page == page]
    if here:
        app.add_css_file("explore/explore.css")
        for name in (*SHARED, *here):
            app.add_js_file(f"explore/{name}.js", loading_method="defer")


class Explorables(BookDirective):
    def run(self) -> list[nodes.Node]:
        items = nodes.bullet_list()
        for one in self.env.book_explorables:
            title = self.inline(self.book.pages[one.page].title)
            line = nodes.paragraph("", "", link(title, one.page, f"#{one.figure}"), nodes.Text(f" {one.title}"))
            items += nodes.list_item("", line)
        return [items]


def setup(app: Sphinx) -> None:
    app.add_directive("explorables", Explorables)
    app.connect("builder-inited", load)
    app.connect("doctree-resolved", add_box)
    app.connect("html-page-context", add_scripts)
