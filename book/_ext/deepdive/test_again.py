"""A generated page is read again when what it is made of has changed: each its own, and no other."""

from types import SimpleNamespace

import pytest

from deepdive.page import again


@pytest.mark.parametrize(
    ("changed", "pages"),
    [("book", ["ledger"]), ("texts", ["theorems"]), ("chapter one", ["ledger/one"]), ("uses", [])],
)
def test_pages_are_read_again_when_what_they_are_made_of_has_changed(changed, pages):
    names = ("book", "texts", "chapter one", "chapter two", "uses")
    env = SimpleNamespace(book_made_of={}, book_digests={name: again.digest([name, 1.5]) for name in names})
    made_of = {"ledger": "book", "theorems": "texts", "ledger/one": "chapter one", "ledger/two": "chapter two"}
    for env.docname, name in made_of.items():
        again.note(env, name)
    assert again.outdated(None, env, set(), set(), set()) == []
    env.book_digests[changed] = again.digest([changed, 2.5])
    assert again.outdated(None, env, set(), set(), set()) == pages
    again.forget(None, env, "ledger")
    assert "ledger" not in again.outdated(None, env, set(), set(), set())
