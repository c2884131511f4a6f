"""Print the book to PDF with a headless browser, unless the input is what was printed last.

    printed.py _build/html     of the page in _build/print; keeps the PDF in _build/printed

A PDF's name there is the hash of all that it was printed from: the page, the styles, pictures and fonts beside it, and
the programs that print. The book is one volume, because what makes it whole cannot be joined later: numbers of pages,
links between chapters, outline and tags.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pikepdf

import output_folder
from deepdive.takeaway import PDF
from smalltorch.files import in_one_line, replacing

SCRIPT = Path(__file__).with_name("print.sh")
WEB = Path(__file__).parents[1] / "_tools/web"
PROGRAMS = (
    Path(__file__),
    SCRIPT,
    SCRIPT.with_suffix(".mjs"),
    *(WEB / name for name in ("setup.sh", "shared.mjs", "package-lock.json")),
)


def read(html: Path) -> Iterator[Path]:
    """What a PDF is made from, in order."""
    for folder in (html.with_name("print"), html / "_static", html / "_images"):
        yield from sorted(path for path in folder.rglob("*") if path.is_file())
    yield from PROGRAMS


def digest(html: Path) -> str:
    found = sha256()
    for path in read(html):
        found.update(f"{path.name} {sha256(path.read_bytes()).hexdigest()}\n".encode())
    return found.hexdigest()


def pieces(page: pikepdf.Page) -> list[str]:
    """The pieces of a page that its tags refer to, by their marks in what is drawn."""
    marks = pikepdf.parse_content_stream(page, "BDC BMC EMC")
    return [" ".join(map(str, (*mark.operands, mark.operator))) for mark in marks]


def number(book: pikepdf.Pdf, contents: pikepdf.Pdf) -> None:
    """Draw the first pages of a book as those of the contents, which have the same pieces, and numbers of pages.

    Only what is drawn is taken over: links, tags and outline stay those of the book.

    Raises ValueError if a page has other pieces: the tags would tell something else than is seen.
    """
    for count, (old, new) in enumerate(zip(book.pages, contents.pages, strict=False), 1):
        if pieces(old) != pieces(new):
            raise ValueError(f"page {count} of the contents: expected the pieces that it had without numbers of pages")
        drawn = pikepdf.Dictionary(Contents=new.Contents, Resources=new.Resources)
        drawn = book.copy_foreign(contents.make_indirect(drawn))
        old.Contents, old.Resources = drawn.Contents, drawn.Resources


def finish(pdf: Path, contents: Path) -> None:
    """Number the contents of a PDF, and compress its objects, which browsers leave as text: a third of it is tags."""
    with pikepdf.open(pdf, allow_overwriting_input=True) as book, pikepdf.open(contents) as front:
        number(book, front)
        book.save(pdf, object_stream_mode=pikepdf.ObjectStreamMode.generate, deterministic_id=True)


def printed(html: Path, lock: int) -> Path:
    """The PDF of the book, printed now if need be; `lock` is held by the programs that print, too."""
    folder = html.with_name("printed")
    folder.mkdir(exist_ok=True)
    pdf = folder / f"{digest(html)}.pdf"
    if not pdf.is_file():
        output_folder.empty(folder)
        with replacing(pdf) as new, tempfile.TemporaryDirectory() as other:
            contents = Path(other, "contents.pdf")
            command = ["sh", SCRIPT, html.parent, "print/index.html", new, contents]
            status = subprocess.run(command, pass_fds=[lock]).returncode
            if status:
                sys.exit(status)
            finish(new, contents)
    return pdf


def main() -> None:
    html = Path(sys.argv[1]).resolve()
    with output_folder.taken(html.parent) as lock, replacing(html / PDF) as new:
        new.write_bytes(printed(html, lock).read_bytes())


if __name__ == "__main__":
    with in_one_line():
        main()
