"""Format the citation of the book from CITATION.cff, as text and as BibTeX."""

from dataclasses import dataclass
from pathlib import Path

import yaml

KEY = "deep-dive-transformer"
ESCAPED = str.maketrans({sign: f"\\{sign}" for sign in "&%$#_"})


@dataclass(frozen=True)
class Citation:
    """The book, and a chapter of it where `chapter` is not empty; `url` is empty while there is no public address."""

    authors: tuple[str, ...]
    title: str
    year: str
    version: str
    chapter: str = ""
    url: str = ""

    def text(self) -> str:
        """One line, as in a list of references."""
        of_chapter = [f"“{self.chapter}”, in:"] if self.chapter else []
        said = [f"{', '.join(self.authors)} ({self.year}).", *of_chapter, f"{self.title}. {self.version}."]
        return " ".join([*said, self.url] if self.url else said)

    def bibtex(self, key: str) -> str:
        """An entry whose titles keep their capitals."""
        fields = {"author": " and ".join(self.authors), "title": self.chapter or self.title}
        if self.chapter:
            fields["booktitle"] = self.title
        fields |= {"year": self.year, "note": self.version, "url": self.url}
        lines = [f"  {name:<9} = {{{braced(name, value)}}}" for name, value in fields.items() if value]
        return ",\n".join([f"@{'incollection' if self.chapter else 'misc'}{{{key}", *lines]) + "\n}"


def braced(name: str, value: str) -> str:
    """A field's value: an address as it is, a number too, and words in braces of their own, so that none is changed."""
    return value if name in ("url", "year") else f"{{{value.translate(ESCAPED)}}}"


def read(path: Path, year: str) -> Citation:
    """The citation that a file in the Citation File Format gives; `year` is that of a version not yet released."""
    cff = yaml.safe_load(path.read_text(encoding="utf-8"))
    released = str(cff.get("date-released", ""))
    version = f"Version {cff['version']}" + ("" if released else " (unreleased)")
    return Citation(tuple(author["name"] for author in cff["authors"]), cff["title"], released[:4] or year, version)
