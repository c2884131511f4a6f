"""A file is written whole or not at all, what was there stays until then, and what goes wrong is said in one line."""

import os
import resource
from itertools import count

import pytest

from kill_at_step import killed
from smalltorch.files import in_one_line, replacing, write_text


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


def test_a_file_is_on_the_disk_before_it_takes_the_place_of_another(tmp_path, monkeypatch):
    """Where the power fails, a name may be on the disk before what it names, unless this was asked for first."""
    path, done = tmp_path / "table.csv", []
    path.write_text("old")

    def fsync(descriptor, real=os.fsync):
        real(descriptor)
        done.append((os.fstat(descriptor).st_ino, os.fstat(descriptor).st_size, path.read_text()))

    monkeypatch.setattr(os, "fsync", fsync)
    write_text(path, "all of it")
    assert done == [(path.stat().st_ino, len("all of it"), "old")]


@pytest.mark.processes
def test_killed_at_any_of_its_steps_it_leaves_the_old_file_or_the_new_one(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("old")
    for step in count():
        died = killed(lambda: write_text(path, "new"), step)
        assert path.read_text() in ("old", "new")
        assert all(name == path.name or name.endswith(".unfinished") for name in os.listdir(tmp_path))
        if not died:
            break
    assert path.read_text() == "new" and step >= 3


def test_what_is_no_file_is_not_replaced(tmp_path):
    os.mkfifo(pipe := tmp_path / "pipe")  # a device would be at risk here
    for place in (pipe, tmp_path):
        with pytest.raises(OSError, match="expected a file, or nothing there yet"):
            write_text(place, "")
    assert pipe.is_fifo()


def test_a_file_needs_a_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match=f"there is no such folder: '{tmp_path}/nowhere'"):
        write_text(tmp_path / "nowhere/table.csv", "")


@pytest.mark.processes
def test_a_full_disk_is_said_in_one_line_and_the_old_file_stays(tmp_path, capfd):
    path = tmp_path / "table.csv"
    path.write_text("old")

    def write():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))  # Python then meets an error, as where a disk is full
        with pytest.raises(SystemExit, match=f"^{path}: File too large$"), in_one_line():
            write_text(path, "new" * 1000)

    assert not killed(write, 1000)
    assert path.read_text() == "old" and os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (FileNotFoundError(2, "No such file or directory", "lists.csv"), "lists.csv: No such file or directory"),
        (TimeoutError("a cell took too long"), "a cell took too long"),
    ],
)
def test_what_goes_wrong_with_a_file_is_said_in_one_line(error, line):
    with pytest.raises(SystemExit) as end, in_one_line():
        raise error
    assert end.value.code == line


def test_an_interruption_is_said_in_one_line(capsys):
    with pytest.raises(SystemExit) as end, in_one_line():
        raise KeyboardInterrupt
    assert end.value.code == 130 and capsys.readouterr().err == "interrupted\n"
