"""Write the reader's edition of each chapter beside its page, when all pages are written."""

import json
import posixpath
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from pybtex.database import Entry
from pybtex.plugin import find_plugin
from sphinx.application import Sphinx

from deepdive.blocks import number
from deepdive.metadata.preview_image import png
from deepdive.reader.edition import Book, edition
from deepdive.reader.markdown import Link
from smalltorch.files import read_notebook, write_text

REFERENCES = "book/references"


def cited_as(entry: Entry) -> str:
    """A work as the pages cite it: one or two names, or the first *et al.*, and the year."""
    names = [
        " ".join([*one.prelast_names, *one.last_names]).replace("{", "").replace("}", "")
        for one in entry.persons["author"]
    ]
    who = " and ".join(names) if len(names) < 3 else f"{names[0]} et al."
    return f"{who}, {entry.fields['year']}"


class Writer:
    """The editions of a book whose pages are written: what `app` knows of them, as plain data."""

    def __init__(self, app: Sphinx):
        env = app.env
        self.root, self.out, self.base = Path(app.srcdir), Path(app.outdir), app.config.html_baseurl
        self.titles = {page: title.astext() for page, title in env.titles.items()}
        self.numbers = {page: env.toc_secnumbers[page][""][0] for page in env.book_records.notebooks}
        self.blocks, self.figures = {}, {}
        for page, contents in env.book_blocks.items():
            for block in contents.blocks:
                self.blocks[block.label] = page, f"{block.kind.title()} {number(env, page, block)}"
        for page in env.book_records.notebooks:
            for name, counted in env.toc_fignumbers.get(page, {}).get("figure", {}).items():
                self.figures[name] = page, f"Fig. {'.'.join(map(str, counted))}"
        self.works = env.get_domain("cite").bibdata.data.entries
        self.style = find_plugin("pybtex.style.formatting", app.config.bibtex_default_style)()
        self.moving = {one.figure: one.title for one in env.book_explorables}

    def address(self, page: str, target: str) -> str:
        """Of a page or a file of the book, from a page: its public address or, where there is none, the way there."""
        return f"{self.base}{target}" if self.base else posixpath.relpath(target, posixpath.dirname(page))

    def resolve(self, page: str, role: str, target: str) -> Link:
        if role == "cite":
            return Link(cited_as(self.works[target]), "")
        if role in ("doc", "page"):
            to = posixpath.normpath(
                posixpath.join(posixpath.dirname(page), target.removesuffix(".ipynb").removesuffix(".md"))
            )
            return Link(self.titles.get(to, target), self.address(page, f"{to}.html"))
        # Of what is missing Sphinx has complained, which stops the build of the book.
        to, text = (self.blocks if role in ("prf:ref", "exercise") else self.figures).get(target, (page, target))
        return Link(text, self.address(page, f"{to}.html#{target}"))

    def entry(self, key: str) -> str:
        """A work as the list of references has it."""
        return self.style.format_entry(key, self.works[key]).text.render_as("markdown")

    def write(self, page: str) -> None:
        """Write the edition of a chapter beside its page."""
        here = self.address(page, f"{page}.html")
        book = Book(
            resolve=lambda role, target: self.resolve(page, role, target),
            place=f"*Chapter {self.numbers[page]} of [Deep Dive into the Transformer]({here}).*",
            entries=lambda keys: "\n".join(f"- {self.entry(key)}" for key in keys),
            whole=self.address(page, f"_sources/{page}.ipynb"),
            moving=self.moving,
            draw=lambda svg, width: png(svg, width, "white"),
        )
        notebook = read_notebook(self.root / f"{page}.ipynb")
        write_text(self.out / f"{page}.ipynb", json.dumps(edition(notebook, book), indent=1, ensure_ascii=False) + "\n")


def write_editions(app: Sphinx, exception: Exception | None) -> None:
    if exception is None and app.builder.name == "html":
        writer = Writer(app)
        with ProcessPoolExecutor(mp_context=get_context("fork")) as workers:  # most of the time draws pictures
            list(workers.map(writer.write, app.env.book_records.notebooks))


def setup(app: Sphinx) -> None:
    app.connect("build-finished", write_editions)
