"""Render the API page from docstrings, and link to it from the chapters that use or print the library's code.

{library}   under it, on lines of their own, the modules of `lib/smalltorch` to show, in this order
"""

import re
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective

from deepdive.library import reference
from deepdive.library.reference import PACKAGE, Entry, Module

FOLDER = f"lib/{PACKAGE}"
DEFINED = re.compile(r"^(?:def|class) (\w+)", re.MULTILINE)
MOST = 5  # chapters that are listed by name


class Library(SphinxDirective):
    has_content = True

    def run(self) -> list[nodes.Node]:
        if unknown := [name for name in self.content if name not in self.env.book_library]:
            raise self.error(f"library: {', '.join(unknown)}: no module of {FOLDER}")
        return [self.section(self.env.book_library[name]) for name in self.content]

    def section(self, module: Module) -> nodes.section:
        name = f"{PACKAGE}.{module.name}"
        section = nodes.section("", nodes.title("", "", nodes.literal("", name)), names=[anchor(module.name)])
        self.state.document.note_explicit_target(section)
        text = [f"```{{py:currentmodule}} {name}\n```", self.markdown(module.doc)]
        text += [self.entry(entry, module.name) for entry in module.entries]
        self.state.nested_parse(StringList("\n\n".join(text).splitlines(), source=name), 0, section)
        return section

    def entry(self, entry: Entry, parent: str) -> str:
        """A directive of Sphinx's Python domain, which makes anchor, index and search know the name."""
        fence = "`" * (6 if entry.members else 5)
        head = f"{entry.name}\n:type: {entry.signature}\n" if entry.kind == "property" else entry.name + entry.signature
        text = [fence + f"{{py:{entry.kind}}} {head}", self.markdown(entry.doc)]
        text += [self.entry(member, f"{parent}.{entry.name}") for member in entry.members]
        return "\n\n".join([*text, self.used(f"{parent}.{entry.name}"), fence])

    def used(self, name: str) -> str:
        """Where the book uses it: the chapters, or, for what no chapter calls by itself, the modules."""
        chapters = [page for page, names in self.env.book_uses.items() if name in names]
        others = [module for module, names in self.env.book_library_uses.items() if name in names]
        if chapters:
            listed = chapters if len(chapters) <= MOST else chapters[:1]
            links = " · ".join(f"[]({self.address(page)})" for page in listed)
            if len(listed) == len(chapters):
                return f"*Used in* {links}"
            return f"*Used first in* {links}, *and in {len(chapters) - 1} other chapters*"
        links = " · ".join(f"[`{PACKAGE}.{module}`](#{anchor(module)})" for module in others)
        return f"*Used by* {links}" if others else ""

    def markdown(self, doc: str) -> str:
        chapters = {page.rpartition("/")[2]: self.address(page) for page in self.env.book_uses}
        return reference.markdown(doc, self.env.book_names, chapters)

    @staticmethod
    def address(page: str) -> str:
        return f"/{page}.ipynb"


def anchor(module: str) -> str:
    return f"{PACKAGE}-{module}".replace(".", "-")


def read_library(app: Sphinx) -> None:
    """Read the library, and what the chapters and the library's own modules use of it."""
    root, env = Path(app.srcdir), app.env
    env.book_library = reference.read_library(root / FOLDER)
    env.book_sources = reference.sources(root / FOLDER)
    env.book_library_uses = {
        name: reference.uses(path.read_text(encoding="utf-8"))
        for name, path in env.book_sources.items()
        if name in env.book_library
    }
    env.book_uses = {
        page: reference.uses(reference.code_of(root / chapter.file))
        for page, chapter in env.book_records.notebooks.items()
    }
    full = [
        (entry.name, f"{PACKAGE}.{module.name}.{entry.name}")
        for module in env.book_library.values()
        for entry in module.entries
    ]
    short = [name for name, _ in full]
    env.book_names = {name: target for name, target in full if short.count(name) == 1}


def reference_to(name: str, page: str) -> addnodes.pending_xref:
    """A link to a name of the library, such as attention.softmax."""
    target = {"refdomain": "py", "reftype": "obj", "reftarget": f"{PACKAGE}.{name}"}
    text = nodes.literal("", name.rpartition(".")[2])
    return addnodes.pending_xref("", text, **target, refexplicit=True, refdoc=page, refwarn=True)


def link_shown(app: Sphinx, doctree: nodes.document) -> None:
    """Below source of the library that a chapter shows: links to what the page of the library says of it."""
    page = app.env.docname
    known = {f"{module.name}.{entry.name}" for module in app.env.book_library.values() for entry in module.entries}
    names = {name.rpartition(".")[2]: name for name in known & set(app.env.book_uses.get(page, ()))}
    outputs = [node for node in doctree.findall(nodes.container) if node.get("nb_element") == "cell_code_output"]
    for listing in [listing for output in outputs for listing in output.findall(nodes.literal_block)]:
        shown = [names[name] for name in DEFINED.findall(listing.astext()) if name in names]
        if shown:
            line = nodes.paragraph("", "In the library: ", classes=["muted"])
            for k, name in enumerate(shown):
                line += [nodes.Text(" · " if k else ""), reference_to(name, page)]
            listing.parent.insert(listing.parent.index(listing) + 1, line)


def link_library(app: Sphinx, doctree: nodes.document) -> None:
    """At the end of a chapter: links to what it uses of the library, module by module."""
    page = app.env.docname
    if page not in app.env.book_uses:
        return
    line = nodes.paragraph("", "", nodes.strong("", "From the library"))
    for module in app.env.book_library.values():
        names = [entry.name for entry in module.entries if f"{module.name}.{entry.name}" in app.env.book_uses[page]]
        for before, name in zip([f" · {module.name}: ", *[", "] * len(names)], names, strict=False):
            line += [nodes.Text(before), reference_to(f"{module.name}.{name}", page)]
    last = [node for node in doctree.children[-1].children if isinstance(node, nodes.section)]
    (last[-1] if last else doctree.children[-1]).append(line)


def find_source(app: Sphinx, module: str) -> tuple[str, dict]:
    """The text of a module and where its names stand in it, for the pages that [source] leads to.

    Sphinx would import the module to find them.
    """
    path = app.env.book_sources[module.removeprefix(f"{PACKAGE}.")]
    analyzer = ModuleAnalyzer.for_file(str(path), module)
    return analyzer.code, analyzer.find_tags()


def setup(app: Sphinx) -> None:
    app.setup_extension("sphinx.ext.viewcode")
    app.config.viewcode_follow_imported_members = False  # nothing is imported
    app.connect("viewcode-find-source", find_source)
    app.add_directive("library", Library)
    app.connect("builder-inited", read_library)
    app.connect("doctree-read", link_shown)
    app.connect("doctree-read", link_library)
