"""The filter form above a table (`filters.js`), and the attributes of the rows that it selects by."""

from collections.abc import Collection, Mapping
from html import escape

from docutils import nodes
from sphinx.application import Sphinx

from deepdive.book.records import Book


def facet(name: str, value: str) -> str:
    """The class of rows that have this value: what a choice in `controls` selects by."""
    return nodes.make_id(f"{name}-is-{value}")


def chosen(**values: str) -> str:
    """The end of an address that shows only the rows with these values of facets, as filters.js reads it."""
    return "?" + "&".join(f"{name}={nodes.make_id(value)}" for name, value in values.items())


def controls(noun: str, choices: Mapping[str, Mapping[str, str]]) -> nodes.raw:
    """The form by which filters.js hides rows: words to search for, and for each facet its values with the words shown.

    It is hidden until that script runs, for without it the form could do nothing.
    """
    html = [
        f'<form class="filters" aria-label="Filter the {noun}" data-noun="{noun}" hidden>',
        '<label>Search <input type="search" name="words" autocomplete="off" spellcheck="false"></label>',
    ]
    for name, values in choices.items():
        html.append(f'<label>{name.capitalize()} <select name="{name}"><option value="">any</option>')
        html += [f'<option value="{nodes.make_id(value)}">{escape(words)}</option>' for value, words in values.items()]
        html.append("</select></label>")
    html.append('<button type="reset">Show all</button><output></output></form>')
    return nodes.raw("", "\n".join(html), format="html")


def part_choices(book: Book, chapters: Collection[str]) -> dict[str, str]:
    """The parts that have one of the chapters: a choice that leaves no row is none."""
    return {part.title: part.title for part in book.parts if not set(part.chapters).isdisjoint(chapters)}


def setup(app: Sphinx) -> None:
    app.add_js_file("filters.js", loading_method="defer")
