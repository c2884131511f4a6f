"""The files to take away are linked where they are, packed the same way each time; faults of the PDF are found."""

import zipfile
from collections import Counter

import archive as archives
import pdf
from deepdive import takeaway


def links(folder, *names):
    page = folder / "book/index.html"
    page.parent.mkdir(exist_ok=True)
    if not page.exists():
        page.write_text(f"<p>before</p>{takeaway.PLACE.format('')}<p>after</p>", encoding="utf-8")
    for name in names:
        (folder / name).write_bytes(b"x" * 2_500_000)
    takeaway.fill(folder, "book/index")
    return page.read_text(encoding="utf-8").removeprefix("<p>before</p>").removesuffix("<p>after</p>")


def test_without_files_there_is_no_link(tmp_path):
    assert links(tmp_path) == takeaway.PLACE.format("")


def test_each_file_is_linked_with_format_and_size(tmp_path):
    html = links(tmp_path, takeaway.PDF)
    assert f'href="../{takeaway.PDF}"' in html and "(PDF, 2.5 MB)" in html and takeaway.ARCHIVE not in html
    assert f'href="../{takeaway.ARCHIVE}"' in links(tmp_path, takeaway.PDF, takeaway.ARCHIVE)


def test_links_are_filled_in_again_without_a_trace_of_the_first_ones(tmp_path):
    links(tmp_path, takeaway.PDF)
    assert links(tmp_path).count(takeaway.PDF) == 1
    (tmp_path / takeaway.PDF).unlink()
    assert links(tmp_path) == takeaway.PLACE.format("")


def test_the_archive_is_the_same_each_time_and_does_not_hold_itself(tmp_path):
    for name in ("b.html", "a/c.html"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    archive = tmp_path / "all.zip"
    archives.pack(tmp_path, archive)
    first = archive.read_bytes()
    (tmp_path / "b.html").touch()
    archives.pack(tmp_path, archive)
    assert archive.read_bytes() == first
    packed = zipfile.ZipFile(archive)
    assert packed.namelist() == [f"{takeaway.NAME}/{name}" for name in ("a/c.html", "b.html")]
    assert all(entry.external_attr >> 16 & 0o444 == 0o444 for entry in packed.infolist())  # all may read
    archives.pack(tmp_path, archive, [tmp_path / "b.html"])
    assert zipfile.ZipFile(archive).namelist() == [f"{takeaway.NAME}/a/c.html"]


def test_what_helps_only_at_an_address_stays_out_of_the_archive(tmp_path):
    (tmp_path / "_static/cards").mkdir(parents=True)
    names = ["404.html", "_static/cards/a.png", "old.html", "robots.txt", "sitemap.xml"]
    for name in [*names, "_static/touch-icon.png", "page.html"]:
        (tmp_path / name).touch()
    assert sorted(archives.not_for_a_folder(tmp_path, ["old"])) == [tmp_path / name for name in names]


def test_what_a_page_has_is_read_from_it():
    formula = '<svg></svg><math><mi>{0}</mi><annotation encoding="application/x-tex">{0}</annotation></math>'
    n, less = formula.format("n"), formula.format("a &lt; b")
    html = f"""<h2><span>1.2. </span>Of <span class="math">{n}</span> &amp; more
        <a class="headerlink" href="#x">#</a></h2>
        <div class="math"><span class="eqno">(1)</span>{less}</div>
        <p>Short.</p><p>A text that is long enough to be found again.</p>"""
    assert list(pdf.headings(html, 1)) == [(3, "1.2.Of…&more")]
    assert list(pdf.formulas(html)) == ["n", "a<b"]
    assert list(pdf.pieces(html.partition("</h2>")[2])) == ["Atextthatislongenoughtobe"]


def test_a_missing_formula_is_named():
    assert pdf.compare("formulas", Counter("aab"), Counter("aabb")) == []
    assert pdf.compare("formulas", Counter("aab"), Counter("ab")) == ["1 formulas of 3 are missing, such as a"]
