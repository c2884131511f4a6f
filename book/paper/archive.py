"""Add the PDF to the built book, pack both into an archive for offline reading, and link it.

    archive.py _build/html

The archive holds the pages as they are when only the PDF is linked: it cannot tell its own size. It leaves out the
stubs at old addresses, and what is there only for those who come to the pages' public address.
"""

import sys
import zipfile
from collections.abc import Collection, Iterable
from pathlib import Path

import output_folder
from deepdive.book import contents
from deepdive.metadata.site import ONLINE
from deepdive.takeaway import ARCHIVE, NAME, fill
from smalltorch.files import in_one_line, replacing

EPOCH = (2000, 1, 1, 0, 0, 0)  # the same book gives the same archive, whenever it is packed
ROOT = Path(__file__).resolve().parents[2]


def pack(html: Path, archive: Path, left_out: Collection[Path] = ()) -> None:
    """All files under html, in order, in a folder of the archive."""
    files = sorted(path for path in html.rglob("*") if path.is_file() and path not in (archive, *left_out))
    with replacing(archive) as new, zipfile.ZipFile(new, "w") as out:
        for path in files:
            entry = zipfile.ZipInfo(f"{NAME}/{path.relative_to(html).as_posix()}", EPOCH)
            entry.external_attr = 0o644 << 16
            out.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)


def not_for_a_folder(html: Path, moved: Iterable[str]) -> list[Path]:
    """What helps only those who come to the pages by an address."""
    return [html / f"{old}.html" for old in moved] + [path for name in ONLINE for path in html.glob(name)]


def main() -> None:
    html = Path(sys.argv[1]).resolve()
    listed = contents.read(ROOT)
    with output_folder.taken(html.parent):
        (html / ARCHIVE).unlink(missing_ok=True)
        fill(html, listed.root)
        pack(html, html / ARCHIVE, not_for_a_folder(html, listed.moved))
        fill(html, listed.root)


if __name__ == "__main__":
    with in_one_line():
        main()
