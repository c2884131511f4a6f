"""Pages that are generated are read again when what they are made of has changed.

What they are made of has names, and a digest for each: `book`, what the notebooks say of their chapters; `texts`, the
notebooks as they are; `uses`, what their code uses of the library; `chapter x`, what one says of itself. Other files
have none: when they change, the book is built anew (`build.py`).
"""

from __future__ import annotations

from hashlib import sha256

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment


def digest(thing: object) -> str:
    """The digest of plain data, in which no set is: their order is not always the same."""
    return sha256(repr(thing).encode()).hexdigest()


def note(env: BuildEnvironment, name: str) -> None:
    """The page that is read now is made of this."""
    env.book_made_of.setdefault(env.docname, {})[name] = env.book_digests[name]


def start(app: Sphinx) -> None:
    app.env.book_made_of = getattr(app.env, "book_made_of", {})
    app.env.book_digests = {}


def forget(app: Sphinx, env: BuildEnvironment, page: str) -> None:
    env.book_made_of.pop(page, None)


def outdated(app: Sphinx, env: BuildEnvironment, added: set[str], changed: set[str], removed: set[str]) -> list[str]:
    now = env.book_digests
    return [
        page
        for page, parts in env.book_made_of.items()
        if any(now.get(name) != digest for name, digest in parts.items())
    ]


def setup(app: Sphinx) -> None:
    app.connect("builder-inited", start)
    app.connect("env-purge-doc", forget)
    app.connect("env-get-outdated", outdated)
