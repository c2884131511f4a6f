"""Parse the glossary, and find terms that a chapter uses before any chapter has defined them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

FILE = "book/glossary.yml"


@dataclass(frozen=True)
class Term:
    """A term, what it means, and the words by which a text uses it.

    The last of `chapters` defines it; those before say it in a clause, and come first in the book.
    """

    term: str
    means: str
    chapters: tuple[str, ...]
    words: tuple[str, ...] = ()

    def used_in(self, text: str) -> bool:
        words = "|".join(map(re.escape, self.words or (self.term,)))
        return bool(re.search(rf"(?<![\w-])(?:{words})(?![\w-])", text))


def read_terms(root: Path) -> tuple[Term, ...]:
    lists = ("chapters", "words")
    entries = yaml.safe_load((root / FILE).read_text(encoding="utf-8"))
    return tuple(Term(**entry | {name: tuple(entry[name]) for name in lists if name in entry}) for entry in entries)


def problems(terms: Sequence[Term], texts: Mapping[str, str], planned: Iterable[str]) -> list[str]:
    """What is wrong with the terms, one line each; `texts` are those of the chapters, in the order of the book."""
    names, order, known = [term.term for term in terms], list(texts), set(planned)
    found = [] if names == sorted(names, key=key) else ["the terms do not stand in alphabetical order"]
    found += [f"{name} stands twice" for name in sorted({name for name in names if names.count(name) > 1})]
    for term in terms:
        found += [f"{term.term}: there is no chapter {name}" for name in term.chapters if name not in known]
        said = min((order.index(name) for name in term.chapters if name in order), default=len(order))
        early = [name for name in order[:said] if term.used_in(texts[name])]
        found += [f"{term.term}: {early[0]} uses it before {term.chapters[0]} says what it is"] if early else []
        last = term.chapters[-1]
        if last in texts and any(map(term.used_in, texts.values())) and not term.used_in(texts[last]):
            found.append(f"{term.term}: {last} is to define it, and does not use it")
    return found


def key(name: str) -> str:
    """By what a term is sorted: its letters."""
    return re.sub(r"[^a-z]", "", name.lower())
