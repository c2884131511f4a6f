"""CITATION.cff is valid and fits the changelog, and what the pages make of it is right."""

import re
from dataclasses import replace
from pathlib import Path

import yaml

import smalltorch
from deepdive.theme import citation

ROOT = Path(__file__).resolve().parents[4]
CFF = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
# Of the schema of version 1.2.0: what a file must have, and what else is used here.
REQUIRED = {"authors", "cff-version", "message", "title"}
ALLOWED = REQUIRED | {"abstract", "date-released", "keywords", "license", "type", "version"}
LICENCES = {"MIT", "CC-BY-4.0"}

BOOK = citation.Citation(("The authors",), "Transformers: all & sundry", "2026", "Version 1.2")
CHAPTER = replace(BOOK, chapter="What is $A$?", url="https://example.org/a_b")


def problems(cff, changelog):
    """What is wrong with a citation file, one line each; `changelog` begins with the version that is worked on."""
    found = [f"{key} is missing" for key in sorted(REQUIRED - cff.keys())]
    found += [f"{key} is unknown" for key in sorted(cff.keys() - ALLOWED)]
    found += [f"{key} is not text" for key in ("message", "title", "abstract") if not cff.get(key, "?").strip()]
    if cff.get("cff-version") != "1.2.0":
        found.append("cff-version is not 1.2.0")
    if cff.get("type") not in ("software", "dataset"):
        found.append("type is neither software nor dataset")
    if not cff.get("authors") or any(set(author) != {"name"} for author in cff["authors"]):
        found.append("an author is not a name")
    if set(cff.get("license", [])) != LICENCES:
        found.append("license is not that of code and text")
    if len(set(cff.get("keywords", []))) != len(cff.get("keywords", [])):
        found.append("a keyword stands twice")
    version, state = re.search(r"^## (\S+) \((.+)\)$", changelog, re.MULTILINE).groups()
    if cff.get("version") != version:
        found.append(f"version is not that of the changelog, {version}")
    if str(cff.get("date-released", "unreleased")) != state:
        found.append(f"date-released is not that of the changelog, {state}")
    return found


def test_the_citation_file_is_valid_and_fits_the_changelog():
    assert problems(CFF, CHANGELOG) == []


def test_the_library_has_the_version_of_the_book():
    assert smalltorch.__version__ == CFF["version"]


def test_a_released_version_is_cited_with_its_year(tmp_path):
    path = tmp_path / "CITATION.cff"
    text = "title: A book\nversion: 1.2.0\nauthors: [{name: Us}, {name: You}]\n"
    path.write_text(text, encoding="utf-8")
    assert citation.read(path, "2026").text() == "Us, You (2026). A book. Version 1.2.0 (unreleased)."
    path.write_text(text + "date-released: 2027-01-31\n", encoding="utf-8")
    assert citation.read(path, "2026").text() == "Us, You (2027). A book. Version 1.2.0."


def test_a_chapter_is_cited_as_part_of_the_book():
    assert BOOK.text() == "The authors (2026). Transformers: all & sundry. Version 1.2."
    assert CHAPTER.text() == (
        "The authors (2026). “What is $A$?”, in: Transformers: all & sundry. Version 1.2. https://example.org/a_b"
    )


def test_bibtex_keeps_capitals_signs_and_addresses():
    assert (
        BOOK.bibtex("key")
        == """\
@misc{key,
  author    = {{The authors}},
  title     = {{Transformers: all \\& sundry}},
  year      = {2026},
  note      = {{Version 1.2}}
}"""
    )
    assert (
        CHAPTER.bibtex("key-a")
        == """\
@incollection{key-a,
  author    = {{The authors}},
  title     = {{What is \\$A\\$?}},
  booktitle = {{Transformers: all \\& sundry}},
  year      = {2026},
  note      = {{Version 1.2}},
  url       = {https://example.org/a_b}
}"""
    )
