"""Post-process the built HTML: remove scripts and styles that a page does not need, and add its security policy.

The theme's icons come from a style sheet and a font; the script that would draw them again goes, and so do the search's
scripts on pages that do not search. Sphinx, docutils and the theme each say how wide a page is; here it is said once.
Nor does the theme measure what scrolls, which book.js does: it would lay out all of a page at once, also what is folded
or far below. In code, words that look like the text around them need no mark of their own, which is every third element
of a chapter. The policy is made from the page itself: scripts of the book and those that stand on the page, by their
hashes, styles, pictures and fonts of the book, and nothing from elsewhere.

The theme's script chooses light or dark when all of a page stands, which is then styled again: here the head does.
Where no script runs, a style sheet of the same rules follows the system.
"""

import re
import shutil
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path

from sphinx.application import Sphinx

from smalltorch.files import write_text

ICONS = re.compile(r'\s*<script defer src="[^"]*_static/scripts/fontawesome\.js[^"]*"></script>')
SEARCH = re.compile(r'\s*<script src="[^"]*(?:_static/searchtools|_static/language_data|searchindex)\.js"></script>')
INLINE = re.compile(r'<script(?![^>]* (?:src=|type="application/ld\+json"))[^>]*>(.*?)</script>', re.DOTALL)  # and data
WIDTH = re.compile(r'\s*<meta name="viewport"[^>]*>')
VIEWPORT = '<meta name="viewport" content="width=device-width, initial-scale=1" />'
HEAD = re.compile(r"<head>\s*<meta charset=[^>]*>", re.IGNORECASE)
SHEET = re.compile(r'<link\b(?=[^>]* rel="stylesheet")[^>]* href="([^"?]*)(_static/[^"?]*)')
THEME = re.compile(r"""\[data-theme=["']?(light|dark)["']?\]""")
COMMA = re.compile(r",(?![^(]*\))")  # between selectors, and not in brackets
PLAIN = "_static/plain.css"
THEME_SCRIPT = "_static/scripts/pydata-sphinx-theme.js"
CHOSEN_LATE = 'dataset.theme = localStorage.getItem("theme") || "auto";'
CHOSEN = """dataset.theme = document.documentElement.dataset.mode !== "auto" ? document.documentElement.dataset.mode
      : matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";"""
HIGHLIGHT = re.compile(
    r'html\[data-theme="(\w+)"\] \.highlight (?:\.(\w+) )?\{(?: background: #\w+;)? color: (#\w+) \}'
)
MEASURED = re.compile(r'document\.querySelectorAll\(\["pre",[^\]]*\]\.join\(", "\)\)')
NOT_NEEDED = ("_static/scripts/fontawesome.js", "_static/scripts/fontawesome.js.LICENSE.txt")


def policy(html: str) -> str:
    """The content security policy of a page."""
    hashes = sorted({b64encode(sha256(script.encode()).digest()).decode() for script in INLINE.findall(html)})
    scripts = " ".join(["'self'", *(f"'sha256-{digest}'" for digest in hashes)])
    return (
        f"default-src 'none'; script-src {scripts}; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
        "font-src 'self' data:; connect-src 'self'; base-uri 'none'"
    )


def rules(css: str) -> Iterator[tuple[str, str]]:
    """Selectors and declarations of the rules of a style sheet; those of one medium are one rule here."""
    depth, start = 0, 0
    css = re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL)
    for brace in re.finditer("[{}]", css):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            selectors, _, declarations = css[start : brace.start()].partition("{")
            start = brace.end()
            yield selectors.rpartition(";")[2].strip(), declarations  # an @import may stand before the first


def without_script(sheets: Iterable[str]) -> str:
    """The rules for light and dark pages, as a style sheet that follows the system while no script says which it is."""
    lines: dict[str, list[str]] = {"light": [], "dark": []}
    for selectors, declarations in (rule for css in sheets for rule in rules(css)):
        for theme in dict.fromkeys(THEME.findall(selectors)):
            own = [one for one in COMMA.split(selectors) if theme in THEME.findall(one)]
            lines[theme].append(f"{THEME.sub('[data-theme=auto]', ','.join(own)).strip()}{{{declarations}}}")
    return "\n".join([*lines["light"], "@media (prefers-color-scheme: dark) {", *lines["dark"], "}\n"])


def finished(html: str, searches: bool) -> str:
    """A page as it is served."""
    html = ICONS.sub("", html).replace(CHOSEN_LATE, CHOSEN)
    html = html if searches else SEARCH.sub("", html)
    html = WIDTH.sub("", html)
    if sheet := SHEET.search(html):
        plain = f'<noscript><link rel="stylesheet" href="{sheet[1]}{PLAIN}" /></noscript>'
        html = html.replace("</head>", f"{plain}\n  </head>", 1)
    meta = f'\n    {VIEWPORT}\n    <meta http-equiv="Content-Security-Policy" content="{policy(html)}" />'
    return HEAD.sub(lambda head: head[0] + meta, html, count=1)


def look_plain(css: str) -> set[str]:
    """The classes of words in code that look, in light and dark, as code without a class does."""
    looks = HIGHLIGHT.findall(css)
    text = {(theme, colour) for theme, name, colour in looks if not name}
    count = Counter(name for theme, name, colour in looks if name and (theme, colour) in text)
    return {name for name, themes in count.items() if themes == len(text)}


def without_marks(html: str, names: set[str]) -> str:
    """A page whose code does not mark words of these classes."""
    return re.sub(rf'<span class="(?:{"|".join(sorted(names))})">([^<]*)</span>', r"\1", html) if names else html


def without_measuring(script: str) -> str:
    """The theme's script, without its search for what scrolls.

    Raises ValueError if there is none in it.
    """
    script, found = MEASURED.subn("[]", script)
    if found != 1:
        raise ValueError(f"script: expected one place where the theme looks for what scrolls, found {found}")
    return script


def finish(app: Sphinx, exception: Exception | None) -> None:
    out = Path(app.outdir)
    if exception is not None or app.builder.name != "html":
        return
    first = (out / f"{app.config.root_doc}.html").read_text(encoding="utf-8")
    sheets = [out / name for _, name in SHEET.findall(first)]
    write_text(out / PLAIN, without_script(sheet.read_text(encoding="utf-8") for sheet in sheets))
    plain = look_plain((out / "_static/pygments.css").read_text(encoding="utf-8"))
    theme = out / THEME_SCRIPT
    write_text(theme, without_measuring(theme.read_text(encoding="utf-8")))
    for page in out.rglob("*.html"):
        html = page.read_text(encoding="utf-8")
        if "_static" not in page.relative_to(out).parts and "Content-Security-Policy" not in html:
            page.write_text(finished(without_marks(html, plain), page.name == "search.html"), encoding="utf-8")
    for file in [*out.glob("_static/**/*.map"), *(out / name for name in NOT_NEEDED)]:
        file.unlink(missing_ok=True)
    for folder in out.glob("_static/locales/*"):
        if folder.name != "en":
            shutil.rmtree(folder)


def setup(app: Sphinx) -> None:
    app.connect("build-finished", finish, priority=900)  # when all pages stand, and all that is on them
