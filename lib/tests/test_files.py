"""A file is written whole or not at all, and what was there stays until then."""

import os

import pytest

from smalltorch.files import replacing, write_text


def test_the_old_file_stays_until_the_new_one_is_whole(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("old")
    with replacing(path) as new:
        new.write_text("ne")
        assert path.read_text() == "old" and new.parent == tmp_path  # a rename within one folder is atomic
        new.write_text("new")
    assert path.read_text() == "new" and os.listdir(tmp_path) == ["table.csv"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_what_is_interrupted_leaves_no_trace(tmp_path, error):
    path = tmp_path / "table.csv"
    path.write_text("old")
    with pytest.raises(type(error)), replacing(path) as new:
        new.write_text("half")
        raise error
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["table.csv"]


def test_modes_and_links_stay(tmp_path):
    path, link, fresh = (tmp_path / name for name in ("run.sh", "link.sh", "fresh.sh"))
    path.write_text("old")
    path.chmod(0o750)
    link.symlink_to(path)
    write_text(link, "a\r\nb\n")
    assert link.is_symlink() and path.read_bytes() == b"a\r\nb\n" and path.stat().st_mode & 0o777 == 0o750
    write_text(fresh, "")
    reference = tmp_path / "reference"
    reference.touch()
    assert fresh.stat().st_mode == reference.stat().st_mode
