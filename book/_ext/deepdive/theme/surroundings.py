"""The theme's options, and its links to the public address where there is one."""

from urllib.parse import quote

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config

PUNCTUATION = (".", ",", ";", ":", "!", "?", ")", "’", "”")


def set_theme_options(app: Sphinx, config: Config) -> None:
    """Choose what stands around a page. Links to the project's public address appear only where _config.yml names one.

    The address is kept from the theme: it would link in menus that need a script, and stop at a host it does not know.
    """
    options = dict(config.html_theme_options)
    config.public_address = (options.pop("repository_url", "") or "").rstrip("/")
    config.public_branch = options.pop("repository_branch", "") or "main"
    for button in ("repository", "issues", "edit_page", "download", "fullscreen"):
        options[f"use_{button}_button"] = False
    options["launch_buttons"] = {}
    options["navbar_persistent"] = []  # the theme would show a second search button
    options["enable_search_shortcuts"] = False  # they keep Escape from closing what a button opened
    options["article_header_end"] = ["page-tools.html", "article-header-buttons.html"]
    options["article_footer_items"] = ["cite.html", *(["report-error.html"] if config.public_address else [])]
    config.html_theme_options = options


def add_report_link(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    address = app.config.public_address
    context["repository_url"] = address
    context["report_error_url"] = f"{address}/issues/new?title={quote(f'Error in {pagename}: ')}"


def keep_punctuation(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Join punctuation to the formula before it, so that no line begins with a full stop."""
    for formula in list(doctree.findall(nodes.math)):
        after = formula.next_node(descend=False, siblings=True)
        if isinstance(after, nodes.Text) and after[:1] in PUNCTUATION:
            place = next(k for k, node in enumerate(after.parent) if node is after)  # equal texts may stand before it
            after.parent[place] = nodes.Text(after[1:])
            together = nodes.inline(classes=["unbroken"])
            formula.parent.replace(formula, together)
            together += [formula, nodes.Text(after[:1])]


def setup(app: Sphinx) -> None:
    if "comments_config" not in app.config.values:  # Jupyter Book sets it for sphinx_comments, which is not loaded
        app.add_config_value("comments_config", {}, "html")
    app.add_config_value("public_address", "", "html")
    app.add_config_value("public_branch", "main", "html")
    app.connect("config-inited", set_theme_options)
    app.connect("html-page-context", add_report_link)
    app.connect("doctree-resolved", keep_punctuation)
