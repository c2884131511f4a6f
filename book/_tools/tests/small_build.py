"""For the tests: a small book, built by Sphinx with some of the rooms, and what to look at its pages with."""

import re
from collections.abc import Iterable, Mapping
from io import StringIO
from pathlib import Path

import nbformat
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

SHARED = ("page.directive", "page.tables", "page.fold", "page.links", "claims")
EMPTY = {  # a book without parts, claims, systems and works
    "book/references.bib": "",
    "book/parts.yml": "root: index\nbefore: []\nparts: []\nafter: []\n",
    "book/claims.csv": "id,source,place,claim,chapter\n",
    "book/systems.csv": "number,source,section,name,what,kind,where\n",
}
CONF = """\
from importlib import import_module

extensions = ["myst_nb", "sphinx_proof", "sphinx_exercise", "sphinxcontrib.bibtex"]
bibtex_bibfiles = ["book/references.bib"]
myst_enable_extensions = ["amsmath", "attrs_block", "colon_fence", "dollarmath"]
nb_execution_mode = "off"
numfig = True
math_numfig = True
html_math_renderer = "{math}"
suppress_warnings = ["mystnb.unknown_mime_type", *{unsaid}]


def setup(app):
    for room in {rooms}:
        import_module(f"deepdive.{{room}}").setup(app)
"""


def small_build(
    folder: Path,
    files: Mapping[str, str],
    rooms: Iterable[str] = (),
    unsaid: Iterable[str] = (),
    math: str = "mathjax",
    settings: Mapping[str, object] = {},
) -> str:
    """Write the files of a book and build it into `html`; what Sphinx warns of, but for the types `unsaid`.

    Its formulas stay TeX, unless `math` names the book's renderer. `settings` are more of Sphinx's, by their names.
    """
    more = "".join(f"{name} = {value!r}\n" for name, value in settings.items())
    conf = {"conf.py": CONF.format(rooms=(*SHARED, *rooms), unsaid=unsaid, math=math) + more}
    for name, text in (EMPTY | files | conf).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    warnings = StringIO()
    with patch_docutils(str(folder)), docutils_namespace():
        Sphinx(folder, folder, folder / "html", folder / "doctrees", "html", {"nitpicky": True}, None, warnings).build()
    return re.sub(r"\x1b\[[\d;]*m", "", warnings.getvalue())


def notebook(*cells: nbformat.NotebookNode) -> str:
    language = {"name": "python", "pygments_lexer": "ipython3"}
    return nbformat.writes(nbformat.v4.new_notebook(cells=list(cells), metadata={"language_info": language}))


def page(folder: Path, name: str) -> str:
    """A page that was built, without suffix."""
    return (folder / f"html/{name}.html").read_text(encoding="utf-8")


def words(html: str) -> str:
    """The text of a piece of HTML, without its tags."""
    return " ".join(re.sub(r"<[^>]+>", "", html).split())
