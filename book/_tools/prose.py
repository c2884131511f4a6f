"""Check that the book's Markdown has one sentence per line, so that diffs show the sentences that changed.

prose.py [NAME ...]    complain about every line of the pages and the notebooks on which a second sentence begins
                       (NAME: a chapter; all if none, and the pages)
"""

import re
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

import yaml
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from myst_parser.config.main import MdParserConfig
from myst_parser.parsers.mdit import create_md_parser

from smalltorch.files import in_one_line, read_notebook

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("*.md", "docs/**/*.md", "book/**/*.md", "lib/**/*.md", "notebooks/**/*.ipynb", "book/_tools/*.ipynb")

# Code (and so what a role is given), a formula, a link: no sentence ends or begins within one.
WHOLE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)|\$\$.+?\$\$|(?<!\\)\$.+?(?<!\\)\$|!?\[[^][]*\]\([^()\s]*\)", re.DOTALL)
# Without this no line has the end of a sentence before its last word, so that the text need not be read as Markdown.
WITHIN_A_LINE = re.compile(r"[.?!][)\]”’\"'*_]*(\[\^[^]\s]+\])*[^\S\n]+\S")
MASK = "¤"  # stands for each character of these
END = re.compile(r"[.?!][)\]”’\"'*_]*(\[\^[^]\s]+\])*$")
NO_END = re.compile(
    r"(^|[\s(“])([A-Z]|e\.g|i\.e|cf|vs|et al|[Ee]qs?|[Ff]igs?|Secs?|Thm|pp?|resp|approx|ca|Dr|St)\.$"  # abbreviations
    r"|(^|[.?!:]\S*\s)([*_]+[^*_]+[*_]+|\d+\.)$"  # a head or a number, run in: *Case 1.*
)
START = re.compile(rf"[(\[“‘\"'*_]*(?P<first>[^\W_]|[{MASK}{{√‖])")
NUMBERED = re.compile(r"\bno\.$")  # before a digit
# What may not begin a line: a list's number, a fence, a displayed formula, attributes; and the end of a proof.
STAYS = re.compile(r"\d{1,9}[.)](\s|$)|```|\$\$|\{(?![\w:-]+\}`)|\$\\square\$")


def ends(text: str) -> list[re.Match[str]]:
    """The white space between the sentences of a paragraph of Markdown. In doubt there is none."""
    masked = WHOLE.sub(lambda match: MASK * len(match[0]), text)
    return [space for space in re.finditer(r"\s+", masked) if _parts(text, masked, space)]


def _parts(text: str, masked: str, space: re.Match[str]) -> bool:
    """Whether this white space has the end of a sentence before it, and the start of one after it."""
    before, start = masked[: space.start()], START.match(masked, space.end())
    return bool(
        END.search(before)
        and not NO_END.search(before)
        and start
        and not start["first"].islower()
        and not (NUMBERED.search(before) and start["first"].isdigit())
        and not STAYS.match(text, space.end())
    )


def parser(root: Path = ROOT) -> MarkdownIt:
    """Markdown as the book reads it."""
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    extensions = set(config["parse"]["myst_enable_extensions"])
    return create_md_parser(MdParserConfig(enable_extensions=extensions, dmath_double_inline=True), RendererHTML)


def paragraphs(markdown: str, reader: MarkdownIt) -> Iterator[tuple[int, str]]:
    """The paragraphs of a page, also those in lists, quotes and colon fences.

    Each comes with the number of its first line, from 0, and without the indentation and the marks of its lines.
    """
    tokens = reader.parse(markdown)
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        if token.type == "paragraph_open":
            yield token.map[0], "\n".join(line.strip() for line in following.content.split("\n"))
        if token.type == "colon_fence":
            first = token.map[0] + 1
            yield from ((first + line, text) for line, text in paragraphs(body(token.content), reader))


def body(fence: str) -> str:
    """The contents of a colon fence, with empty lines for the options that stand before them."""
    return re.sub(r"\A(\s*:[\w-]+:.*\n?)+", lambda options: "\n" * options[0].count("\n"), fence)


def crowded(markdown: str, reader: MarkdownIt) -> list[tuple[int, str]]:
    """The lines on which a second sentence begins: their numbers, from 1, and the words around the place."""
    found = []
    for first, text in paragraphs(markdown, reader) if WITHIN_A_LINE.search(markdown) else ():
        for space in ends(text) if WITHIN_A_LINE.search(text) else ():
            if "\n" not in space[0]:
                before, after = text[: space.start()].split("\n"), text[space.end() :].split("\n")
                words = before[-1].split()[-3:] + after[0].split()[:3]
                found.append((first + len(before), " ".join(words)))
    return found


def problems(root: Path = ROOT, names: Collection[str] = ()) -> list[str]:
    """Every line with two sentences, of these chapters or of everything, one line each: file, cell, line and words."""
    reader, found = parser(root), []
    pages = [f"notebooks/**/{name}.ipynb" for name in names] or PAGES
    for path in sorted({path for pattern in pages for path in root.glob(pattern)}):
        if any(part.startswith(".") for part in path.relative_to(root).parts):  # checkpoints
            continue
        place = path.relative_to(root)
        if path.suffix == ".ipynb":
            cells = enumerate(read_notebook(path)["cells"], start=1)
            sources = {
                f"{place}, cell {n}": "".join(cell["source"]) for n, cell in cells if cell["cell_type"] == "markdown"
            }
        else:
            sources = {f"{place}": path.read_text(encoding="utf-8")}
        for where, source in sources.items():
            found += [f"{where}, line {line}: two sentences: … {words} …" for line, words in crowded(source, reader)]
    return found


if __name__ == "__main__":
    with in_one_line():
        lines = problems(names=sys.argv[1:])
    print("\n".join(lines) or "prose: one sentence a line")
    sys.exit(bool(lines))
