"""The last hand on pages: a policy from the page itself, no script that is not needed, and themes without script."""

from base64 import b64encode
from hashlib import sha256

import pytest

from deepdive import postprocess

PAGE = """<html><head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width" /><meta name="viewport" content="width=640" />
    <link href="../_static/styles/theme.css?digest=1" rel="stylesheet" />
    <script>let a = 1;</script>
    <script defer src="../_static/scripts/fontawesome.js?digest=1"></script>
    <script src="../_static/doctools.js?v=1"></script>
    <script src="../searchindex.js"></script>
  </head><body></body></html>"""


def test_a_page_may_run_its_own_scripts_and_no_others():
    digest = b64encode(sha256(b"let a = 1;").digest()).decode()
    said = postprocess.policy(PAGE)
    assert said.startswith(f"default-src 'none'; script-src 'self' 'sha256-{digest}'; ")
    assert "unsafe-inline" not in said.partition("style-src")[0] and "http" not in said


def test_the_policy_comes_first_and_is_that_of_the_finished_page():
    html = postprocess.finished(PAGE, searches=False)
    head = html[html.index("<head>") :]
    assert head.index("Content-Security-Policy") < head.index("<link") and postprocess.policy(html) in html


def test_a_page_says_once_how_wide_it_is():
    assert postprocess.finished(PAGE, searches=False).count('name="viewport"') == 1


def test_data_is_no_script():
    data = '<script type="application/ld+json">{"name": "The book"}</script></head>'
    assert postprocess.policy(PAGE.replace("</head>", data)) == postprocess.policy(PAGE)


def test_icons_and_search_scripts_go():
    html = postprocess.finished(PAGE, searches=False)
    assert "fontawesome" not in html and "searchindex" not in html and "doctools" in html
    assert "searchindex" in postprocess.finished(PAGE, searches=True)


def test_pages_without_script_follow_the_system():
    assert '<noscript><link rel="stylesheet" href="../_static/plain.css" /></noscript>' in postprocess.finished(
        PAGE, False
    )
    sheet = """/* { */ @import url(x); html[data-theme="light"] { --ink: black; } p { color: red }
        html[data-theme=dark], html[data-theme="light"] b:not(.a, .b) { color: var(--ink) }
        @media print { html[data-theme=dark] { --ink: grey } } html[data-theme=dark] { --ink: white }"""
    assert postprocess.without_script([sheet]).splitlines() == [
        "html[data-theme=auto]{ --ink: black; }",
        "html[data-theme=auto] b:not(.a, .b){ color: var(--ink) }",
        "@media (prefers-color-scheme: dark) {",
        "html[data-theme=auto]{ color: var(--ink) }",
        "html[data-theme=auto]{ --ink: white }",
        "}",
    ]


def test_the_head_chooses_light_or_dark():
    html = postprocess.finished(
        PAGE.replace("let a = 1;", f"document.documentElement.{postprocess.CHOSEN_LATE}"), False
    )
    assert "matchMedia" in html and '|| "auto"' not in html


def test_words_in_code_are_marked_only_where_they_look_different():
    rules = """html[data-theme="{0}"] .highlight {{ background: #fff; color: {1} }}
        html[data-theme="{0}"] .highlight .n {{ color: {1} }} /* Name */
        html[data-theme="{0}"] .highlight .p {{ color: {2} }}
        html[data-theme="{0}"] .highlight .k {{ color: #123 }}
        html[data-theme="{0}"] .highlight .gs {{ font-weight: bold; color: {1} }}"""
    plain = postprocess.look_plain(rules.format("light", "#000", "#000") + rules.format("dark", "#eee", "#ddd"))
    assert plain == {"n"}
    code = '<span class="k">if</span> <span class="n">a</span><span class="p">:</span> <span class="n"><a>b</a></span>'
    assert postprocess.without_marks(code, plain) == code.replace('<span class="n">a</span>', "a")
    assert postprocess.without_marks(code, set()) == code


def test_the_theme_measures_nothing():
    script = 'a();document.querySelectorAll(["pre",".output"].join(", ")).forEach(e=>e)'
    assert postprocess.without_measuring(script) == "a();[].forEach(e=>e)"
    with pytest.raises(ValueError, match="expected one place where the theme looks for what scrolls, found 0"):
        postprocess.without_measuring("a()")
