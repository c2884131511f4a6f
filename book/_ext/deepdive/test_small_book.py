"""A book of two chapters, built with and without a public address: its links, its map and the page of its part."""

import csv
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

import pages
import toc
from deepdive.book import contents, records
from deepdive.page.verdicts import WORDS
from deepdive.theme.buttons import address_of, colab_of
from small_build import page
from smalltorch.engine.schema import VERDICTS, anchor

ROOT = Path(__file__).resolve().parents[3]
CHAPTER = "notebooks/spectrum/norm-bounds"
SYSTEMS = "book/systems.csv"
CHAPTERS = ("norm-bounds", "causal")
BUILD = """\
import sys
from pathlib import Path
from jupyter_book.sphinx import build_sphinx

root = Path(sys.argv[1])
sys.exit(build_sphinx(root, root / "html", noconfig=True, path_config=root / "_config.yml", quiet=True,
                      confoverrides={"latex_individualpages": False}))
"""
LEFT_OUT = ("ledger", "reviews", "landscape.md", "landscape.yml")  # they name chapters that are not there
GENERATED = [f"book/{page}" for page in ("ledger", "systems", "theorems", "exercises")]
ADDRESSES = {"none": "", "github": "https://github.com/an-org/a-repo"}
ADDRESS, PUBLISHED = ADDRESSES["github"], {"github": "https://reader.example/deep/"}  # where the pages stand


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """Build the book with a public address or without, each once; returns its folder."""
    built = {}

    def build(name):
        if name not in built:
            root = tmp_path_factory.mktemp(name)
            pages = [entry.relative_to(ROOT) for entry in (ROOT / "book").iterdir() if entry.name not in LEFT_OUT]
            for entry in (*pages, "lib", "CITATION.cff", f"{CHAPTER}.ipynb", "notebooks/spectrum/causal.ipynb"):
                (root / entry).parent.mkdir(parents=True, exist_ok=True)
                (root / entry).symlink_to(ROOT / entry)
            order = yaml.safe_load((ROOT / contents.FILE).read_text(encoding="utf-8"))
            (root / contents.FILE).unlink()
            (root / contents.FILE).write_text(yaml.safe_dump(order | {"before": [], "after": GENERATED}))
            (root / SYSTEMS).unlink()
            (root / SYSTEMS).write_text(here((ROOT / SYSTEMS).read_text(encoding="utf-8")), encoding="utf-8")
            (root / "book/reviews").mkdir()
            (root / "book/reviews/spectrum.md").write_text(
                "# Ten questions\n\nEach of them has an answer of three sentences.\n", encoding="utf-8"
            )
            toc.write(root)
            config = (ROOT / "_config.yml").read_text(encoding="utf-8")
            address = re.sub(r'(?m)^  url: ".*"$', f'  url: "{ADDRESSES[name]}"', config)
            address = re.sub(r'(?m)^  baseurl: ".*"$', f'  baseurl: "{PUBLISHED.get(name, "")}"', address)
            (root / "_config.yml").write_text(address, encoding="utf-8")
            subprocess.run([sys.executable, "-c", BUILD, root], capture_output=True, text=True, check=True)
            built[name] = root
        return built[name]

    return build


def here(systems):
    """The index of systems in a book of two chapters: other places are left out, and the first system works here."""
    known = re.sub(r"(?<=[ ,])(?!norm-bounds|causal)([\w-]+)#[\w-]+", r"\1", systems)
    return known.replace("I D,attention attention\n", "I D,norm-bounds#exercises\n", 1)


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
                "https://colab.research.google.com/github/an-org/a-repo/blob/notebooks/spectrum/norm-bounds.ipynb",
                ADDRESS,
                f"{ADDRESS}/issues/new?title=Error%20in%20notebooks/spectrum/norm-bounds%3A%20",
            ],
        ),
    ],
)
def test_links_to_colab_and_the_repository_need_a_public_address(build, name, links):
    root = build(name)
    found = re.findall(r'<a [^>]*href="(https?:[^"]*)"', page(root, CHAPTER))
    assert found == links
    assert ("/issues/new" in page(root, CHAPTER)) == (name != "none")
    assert "colab" not in page(root, "book/index")


def test_the_page_of_a_part_leads_to_its_questions(build):
    assert '<a class="reference internal" href="../reviews/spectrum.html">ten questions</a>' in page(
        build("none"), "book/parts/spectrum"
    )


@pytest.mark.parametrize("name", ["none", "github"])
def test_the_pages_say_what_they_are_about_and_where_they_stand(build, name):
    html = build(name) / "html"
    wrong = [line for line in pages.problems(html)[0] if re.search("expected|stands at|sitemap|404", line)]
    heads = [line for line in wrong if not line.startswith("index.html")]  # build.py writes another
    address = PUBLISHED.get(name)
    canonical = re.findall('<link rel="canonical" href="([^"]*)"', page(build(name), CHAPTER))
    assert heads == [] and canonical == ([f"{address}{CHAPTER}.html"] if address else [])
    assert (html / "404.html").exists() == (html / "sitemap.xml").exists() == bool(address)
    if address:
        assert not re.search('(?:href|src)="(?!https:|#|/deep/)', page(build(name), "404"))


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("none", ""),
        ("github", f" {ADDRESS}/blob/main/notebooks/spectrum/norm-bounds.ipynb"),
    ],
)
def test_a_chapter_is_cited_with_its_title_and_address(build, name, address):
    root = build(name)
    cited = re.findall(r"<pre>([^<]*)</pre>", page(root, CHAPTER).partition('id="cite"')[2])
    assert "“How much can attention amplify?”" in cited[0] and re.search(
        rf"Version \d+\.\d+\.\d+( \(unreleased\))?\.{re.escape(address)}$", cited[0]
    )
    assert cited[1].startswith("@incollection{deep-dive-transformer-norm-bounds,")
    assert (f"url       = {{{address.strip()}}}" in cited[1]) == bool(address)
    assert "@misc{deep-dive-transformer," in page(root, "book/index")


def test_the_notebook_of_a_page_is_the_readers_edition_and_leads_to_the_committed_one(build):
    root = build("none")
    button = re.compile(r'<a [^>]*href="([^"]*\.ipynb)" download')
    path = root / "html" / Path(CHAPTER).parent / button.search(page(root, CHAPTER))[1]
    edition = path.read_text(encoding="utf-8")
    assert "{prf:" not in edition and "image/svg+xml" not in edition and "image/png" in edition
    whole = re.search(r"\[the whole notebook\]\(([^)]*)\)", edition)[1]
    assert (path.parent / whole).read_bytes() == (ROOT / f"{CHAPTER}.ipynb").read_bytes()
    assert not button.search(page(root, "book/index"))


@pytest.mark.parametrize("name", CHAPTERS)
def test_an_edition_refers_as_the_page_does(build, name):
    """Its numbers, and where its links lead."""
    root = build("none")
    chapter = f"notebooks/spectrum/{name}"
    cells = json.loads((root / f"html/{chapter}.ipynb").read_text(encoding="utf-8"))["cells"]
    prose = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    html = page(root, chapter)
    shown = words(html)
    links = re.findall(r"\[((?:Theorem|Lemma|Fig\.) [\d.]+)\]\(([^)]*)\)", prose)
    assert links and all(text in shown for text, _ in links)
    for text, target in re.findall(r"\[([^\]]*)\]\(([^)\s]*\.html[^)\s]*)\)", prose):
        file, _, anchor = target.partition("#")
        to = root / "html" / Path(chapter).parent / file
        if to.exists():  # this small book lacks most chapters
            assert not anchor or f'id="{anchor}"' in to.read_text(encoding="utf-8"), (text, target)
    heads = re.findall(r"\*\*((?:Theorem|Lemma) [\d.]+) \(", prose)
    assert heads == re.findall(r"((?:Theorem|Lemma) \d+\.\d+)\s+\(", shown)[: len(heads)]
    assert heads and set(re.findall(r"\*\*(Fig\. [\d.]+)\.\*\*", prose)) == set(
        re.findall(r'caption-number">(Fig\. [\d.]+) ', html)
    )


def test_colab_opens_the_edition():
    app = SimpleNamespace(config=SimpleNamespace(public_address="https://github.com/us/book"))
    assert (
        colab_of(app, "notebooks/one/a")
        == "https://colab.research.google.com/github/us/book/blob/notebooks/one/a.ipynb"
    )
    app.config.public_address = "https://forge.example/book"
    assert colab_of(app, "notebooks/one/a") == ""


def test_the_address_of_a_chapter_elsewhere_than_on_github_is_that_of_the_book():
    app = SimpleNamespace(config=SimpleNamespace(public_address="https://forge.example/book", public_branch="main"))
    assert address_of(app, "notebooks/one/a.ipynb") == "https://forge.example/book"


def test_the_map_has_what_the_records_say(build):
    root = build("none")
    book = records.read_book(root)
    rows = [words(row) for row in re.findall(r"<tr.*?</tr>", page(root, "book/index"), re.S)]
    expected = [(chapter.title, [chapter.name], chapter.seconds) for chapter in book.chapters.values()]
    whole = ("The spectrum of attention", list(book.chapters), sum(seconds for _, _, seconds in expected))
    for title, names, seconds in [*expected, whole]:
        counts = [str(count) for count in book.counts(book.claims_of(*names)).values() if count]
        assert f"{title} {' '.join(counts)} {seconds} s" in rows


def test_the_page_of_a_part_counts_its_claims_and_has_the_chapters_results(build):
    root = build("none")
    book = records.read_book(root)
    spectrum = next(part for part in book.parts if part.folder == "spectrum")
    counts = book.counts(book.claims_of(*spectrum.chapters))
    html = page(root, "book/parts/spectrum")
    part = "../ledger.html?part=the-spectrum-of-attention"
    for kind, text in [("true", "true"), ("true-if", "true if …")]:
        link = re.search(rf'href="{re.escape(part)}&amp;verdict={kind}">(.*?)</a>', html)[1]
        assert words(link) == f"{counts[kind.replace('-', ' ')]} {text}"
    for chapter in book.chapters.values():
        assert words(chapter.result.partition("$")[0]) in words(html)
    assert list(book.chapters) == ["norm-bounds", "causal"]


def test_the_page_of_a_part_has_the_parts_title_in_the_contents(build):
    root = build("none")
    assert re.search(r'href="../../book/parts/spectrum.html">\s*The spectrum of attention', page(root, CHAPTER))


# --- the generated pages say what the records and the notebooks say, which are read here without the book's rooms -----


def notebook(name):
    return json.loads((ROOT / f"notebooks/spectrum/{name}.ipynb").read_text(encoding="utf-8"))["cells"]


def recorded():
    """The records of both chapters, from the outputs of their notebooks, and all claims, from their table."""
    outputs = [output for name in CHAPTERS for cell in notebook(name) for output in cell.get("outputs", ())]
    bundles = [output.get("data", {}).get("application/vnd.smalltorch.record+json", {}) for output in outputs]
    with (ROOT / "book/claims.csv").open(encoding="utf-8", newline="") as file:
        return [record for found in bundles for record in found.get("records", ())], list(csv.DictReader(file))


def rows(html):
    """The rows of a page's tables by their ids."""
    return dict(re.findall(r'<tr [^>]*id="([^"]+)">(.*?)</tr>', html, re.S))


def kind_of(record):
    return re.match(r"true if|\w+", record["verdict"])[0]


@pytest.mark.parametrize("of", ["all claims", *CHAPTERS])
def test_the_ledger_has_each_record_with_its_verdict_mark(build, of):
    found = rows(page(build("none"), "book/ledger" if of == "all claims" else f"book/ledger/{of}"))
    records, claims = recorded()
    if of == "all claims":
        assert len(records) == 16 and sorted(found) == sorted(f"claim-{record['claim']}" for record in records)
    else:
        records = [record for record in records if record["chapter"] == of]
        assert sorted(found) == sorted(anchor(record["claim"]) for record in records) and records
    for record in records:
        row = found[f"claim-{record['claim']}" if of == "all claims" else anchor(record["claim"])]
        assert f'<span class="verdict verdict-{kind_of(record).replace(" ", "-")}">' in row, record["claim"]
        assert record["verdict"].partition("$")[0].strip() in words(row)
        assert ("Assuming:" in words(row)) == bool(record["assumptions"])
        assert record["claim"] not in words(row)


@pytest.mark.parametrize("name", CHAPTERS)
def test_the_page_of_a_chapter_in_the_ledger_has_all_evidence_and_the_chapter_counts_it(build, name):
    found = rows(page(build("none"), f"book/ledger/{name}"))
    records = [record for record in recorded()[0] if record["chapter"] == name]
    for record in records:
        kinds = re.findall(r"<strong>([\w ]+)</strong></a>", found[anchor(record["claim"])])
        assert kinds == [piece["kind"] for piece in record["evidence"]]
    said = words(re.search(r'<p class="settled">(.*?)</p>', page(build("none"), f"notebooks/spectrum/{name}"), re.S)[1])
    counts = Counter(map(kind_of, records))
    told = [f"{counts[kind]} {WORDS.get(kind, kind)}" for kind in VERDICTS if counts[kind]]
    number = f"{len(records)} claim{'s' if len(records) > 1 else ''}"
    assert said == f"This chapter settles {number} of the notes: {' · '.join(told)} → its page of the ledger"


def test_the_ledger_counts_the_records(build):
    html = words(page(build("none"), "book/ledger"))
    records, claims = recorded()
    assert f"{len(records)} of {len(claims)} claims have a verdict:" in html
    kinds = Counter(map(kind_of, records))
    for kind, count in kinds.items():
        assert f"{'true if …' if kind == 'true if' else kind} {count}" in html, kind


def test_the_index_of_systems_counts_its_rows(build):
    html = page(build("none"), "book/systems")
    with (build("none") / "book/systems.csv").open(encoding="utf-8", newline="") as file:
        systems = list(csv.DictReader(file))
    told = sum(row["kind"] == "N" for row in systems)
    said = f"Of {len(systems)} systems, {len(systems) - told} work in this book and {told} are named only."
    assert said in words(html) and told > 0
    found = rows(html)
    assert sorted(found) == sorted(f"system-{row['number']}" for row in systems)
    for row in systems:
        number = row["number"]
        assert words(found[f"system-{number}"]).startswith(f"{number} · {row['source']}, {row['section']}")
