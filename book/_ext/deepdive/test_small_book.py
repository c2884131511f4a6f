"""A book of two chapters, built with and without a public address: its links, its map and the page of its part."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import toc
from deepdive.book import contents, records

ROOT = Path(__file__).resolve().parents[3]
CHAPTER = "notebooks/spectrum/norm-bounds"
BUILD = """\
import sys
from pathlib import Path
from jupyter_book.sphinx import build_sphinx

root = Path(sys.argv[1])
sys.exit(build_sphinx(root, root / "html", noconfig=True, path_config=root / "_config.yml", quiet=True,
                      confoverrides={"latex_individualpages": False}))
"""
ADDRESSES = {
    "none": "",
    "github": "https://github.com/an-org/a-repo",
    "elsewhere": "https://forge.example/an-org/a-repo",
}


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """Build the book with an address, once; returns its folder."""
    built = {}

    def build(name):
        if name not in built:
            root = tmp_path_factory.mktemp(name)
            pages = [entry.relative_to(ROOT) for entry in (ROOT / "book").iterdir()]
            for entry in (*pages, "lib", "CITATION.cff", f"{CHAPTER}.ipynb", "notebooks/spectrum/causal.ipynb"):
                (root / entry).parent.mkdir(parents=True, exist_ok=True)
                (root / entry).symlink_to(ROOT / entry)
            order = yaml.safe_load((ROOT / contents.FILE).read_text(encoding="utf-8"))
            (root / contents.FILE).unlink()
            (root / contents.FILE).write_text(yaml.safe_dump(order | {"before": [], "after": [], "moved": {}}))
            toc.write(root)
            config = (ROOT / "_config.yml").read_text(encoding="utf-8")
            address = re.sub(r'(?m)^  url: ".*"$', f'  url: "{ADDRESSES[name]}"', config)
            (root / "_config.yml").write_text(address, encoding="utf-8")
            subprocess.run([sys.executable, "-c", BUILD, root], capture_output=True, text=True, check=True)
            built[name] = root
        return built[name]

    return build


def page(root, name):
    return (root / f"html/{name}.html").read_text(encoding="utf-8")


def words(html):
    """The text of a piece of HTML, without its tags."""
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


@pytest.mark.parametrize(
    ("name", "links"),
    [
        ("none", []),
        (
            "github",
            [
                "https://colab.research.google.com/github/an-org/a-repo/blob/main/notebooks/spectrum/norm-bounds.ipynb",
                "https://github.com/an-org/a-repo",
                "https://github.com/an-org/a-repo/issues/new?title=Error%20in%20notebooks/spectrum/norm-bounds%3A%20",
            ],
        ),
        (
            "elsewhere",
            [
                "https://forge.example/an-org/a-repo",
                "https://forge.example/an-org/a-repo/issues/new?title=Error%20in%20notebooks/spectrum/norm-bounds%3A%20",
            ],
        ),
    ],
)
def test_links_to_colab_and_the_repository_need_a_public_address(build, name, links):
    root = build(name)
    found = re.findall(r'href="(https?:[^"]*)"', page(root, CHAPTER))
    assert found == links
    assert ("/issues/new" in page(root, CHAPTER)) == (name != "none")
    assert "colab" not in page(root, "book/index")


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("none", ""),
        ("github", " https://github.com/an-org/a-repo/blob/main/notebooks/spectrum/norm-bounds.ipynb"),
        ("elsewhere", " https://forge.example/an-org/a-repo"),
    ],
)
def test_a_chapter_is_cited_with_its_title_and_address(build, name, address):
    root = build(name)
    cited = re.findall(r"<pre>([^<]*)</pre>", page(root, CHAPTER).partition('id="cite"')[2])
    assert "“How much can attention amplify?”" in cited[0] and cited[0].endswith(f"(unreleased).{address}")
    assert cited[1].startswith("@incollection{deep-dive-transformer-norm-bounds,")
    assert (f"url       = {{{address.strip()}}}" in cited[1]) == bool(address)
    assert "@misc{deep-dive-transformer," in page(root, "book/index")


def test_the_notebook_of_a_page_is_the_committed_one(build):
    root = build("none")
    button = re.compile(r'<a [^>]*href="([^"]*\.ipynb)" download')
    path = root / "html" / Path(CHAPTER).parent / button.search(page(root, CHAPTER))[1]
    assert path.read_bytes() == (ROOT / f"{CHAPTER}.ipynb").read_bytes()
    assert not button.search(page(root, "book/index"))


def test_the_map_has_what_the_records_say(build):
    root = build("none")
    book = records.read_book(root)
    rows = [words(row) for row in re.findall(r"<tr.*?</tr>", page(root, "book/index"), re.S)]
    expected = [(chapter.title, [chapter.name], chapter.seconds) for chapter in book.chapters.values()]
    whole = ("The spectrum of attention", list(book.chapters), sum(seconds for _, _, seconds in expected))
    for title, names, seconds in [*expected, whole]:
        counts = [str(count) for count in book.counts(book.claims_of(*names)).values() if count]
        assert f"{title} {' '.join(counts)} {seconds} s" in rows
    attention = next(part for part in book.parts if part.title == "Attention")
    to_come = f"Overview, Attention ({len(book.claims_of(*attention.chapters))}), Position"  # no claims, no number
    assert to_come in words(page(root, "book/index"))


def test_the_page_of_a_part_counts_its_claims_and_has_the_chapters_results(build):
    root = build("none")
    book = records.read_book(root)
    spectrum = next(part for part in book.parts if part.folder == "spectrum")
    counts = book.counts(book.claims_of(*spectrum.chapters))
    html = page(root, "book/parts/spectrum")
    part = "../ledger.html?part=the-spectrum-of-attention"
    for kind, text in [("true", "true"), ("true-if", "true if …"), ("not-yet-examined", "not yet examined")]:
        link = re.search(rf'href="{re.escape(part)}&amp;verdict={kind}">(.*?)</a>', html)[1]
        assert words(link) == f"{counts[kind.replace('-', ' ')]} {text}"
    for chapter in book.chapters.values():
        assert words(chapter.result.partition("$")[0]) in words(html)
    assert list(book.chapters) == ["norm-bounds", "causal"]


def test_the_page_of_a_part_has_the_parts_title_in_the_contents(build):
    root = build("none")
    assert re.search(r'href="../../book/parts/spectrum.html">\s*The spectrum of attention', page(root, CHAPTER))
