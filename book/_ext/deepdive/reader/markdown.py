"""The MyST of a notebook's Markdown cells as Markdown that any front end reads.

A theorem becomes a paragraph that begins with its name and number, a hint is folded, a reference becomes a link.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

FENCE = re.compile(
    r"^(?P<fence>:{3,})\{(?P<kind>[\w:]+)\}[ ]*(?P<title>.*)\n(?P<body>(?:.*\n)*?)(?P=fence)[ ]*$", re.MULTILINE
)
OPTION = re.compile(r"\A(?::(\w+):[ ]*(.*)\n)+\n*")
ROLE = re.compile(r"\{(?P<role>cite|prf:ref|numref|doc|ref)\}`(?P<target>[^`]+)`")
TITLED = re.compile(r"(?P<text>.+?)\s*<(?P<target>[^>]+)>", re.DOTALL)
PAGE = re.compile(r"\]\((?P<file>[^):#\s]+\.(?:ipynb|md))(?P<anchor>#[^)\s]*)?\)")
ITEM = re.compile(r"(?:\d+[.)]|[-*+]) ")
MYST = re.compile(r"^:{3,}|^:label:|\{(?:cite|numref|doc|ref|prf:\w+|exercise|solution|eq|term)\}", re.MULTILINE)


class Link(NamedTuple):
    text: str
    address: str


# What a role and its target are on the pages: their text and address. Of `cite` there is no address, as the entries
# stand at the end, and the text is that of one key; `exercise` is asked for as a role, though no chapter refers to one.
Resolve = Callable[[str, str], Link]


class Block(NamedTuple):
    """A fenced block: what it is, its title, its label or that of what it solves, and its text."""

    kind: str
    title: str
    label: str
    body: str


def block_of(found: re.Match[str]) -> Block:
    options = OPTION.match(found["body"])
    label = re.search(r"^:label:[ ]*(\S+)", options[0], re.MULTILINE) if options else None
    body = found["body"][options.end() :] if options else found["body"]
    kind, title = found["kind"].removeprefix("prf:"), found["title"].strip()
    return Block(kind, title, title if kind == "solution" else label[1] if label else "", body.strip("\n"))


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a cell, in order."""
    return [block_of(found) for found in FENCE.finditer(text)]


def folded(line: str, body: str) -> str:
    """Text behind a line; the empty lines let a front end read the text as Markdown."""
    return f"<details><summary>{line}</summary>\n\n{body}\n\n</details>"


def plain(text: str, resolve: Resolve) -> str:
    """A cell's text as Markdown.

    Raises:
        ValueError: if a directive or a role is left that this does not know.
    """
    text = FENCE.sub(lambda found: _set(block_of(found), resolve), text)
    text = ROLE.sub(lambda found: _reference(found["role"], found["target"], resolve), text)
    text = PAGE.sub(lambda found: f"]({resolve('page', found['file']).address}{found['anchor'] or ''})", text)
    if left := MYST.search(text):
        raise ValueError(f"no front end reads {left[0]!r}, in: {text[max(0, left.start() - 40) : left.end() + 40]!r}")
    return text


def _set(block: Block, resolve: Resolve) -> str:
    match block.kind:
        case "admonition":
            return f"**{block.title}**\n\n{block.body}"
        case "proof":
            gap = "\n\n" if ITEM.match(block.body) else " "  # else its word became part of the first item
            return f"**Proof.**{gap}{block.body}"
        case "dropdown":
            return folded(block.title, block.body)
        case "solution":
            return folded("Solution", block.body)
        case "exercise":
            return f"### {resolve('exercise', block.label).text} ({block.title})\n\n{block.body}"
        case "div":
            return block.body
        case _:
            return f"**{resolve('prf:ref', block.label).text} ({block.title}).**\n\n{block.body}"


def _reference(role: str, target: str, resolve: Resolve) -> str:
    if role == "cite":
        return f"[{'; '.join(resolve(role, key.strip()).text for key in target.split(','))}]"
    titled = TITLED.fullmatch(target)
    link = resolve(role, titled["target"] if titled else target)
    return f"[{titled['text'] if titled else link.text}]({link.address})"


def cited(text: str) -> list[str]:
    """The keys that a text cites, as often as it does."""
    return [key.strip() for role, target in ROLE.findall(text) if role == "cite" for key in target.split(",")]
