"""Who works in a folder of make's has it alone; what `make clean` removes, make has made."""

import os
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import output_folder

ROOT = Path(__file__).resolve().parents[3]


def test_two_that_work_in_a_folder_take_turns(tmp_path, capfd):
    order = []

    def second():
        with output_folder.taken(tmp_path / "out"):
            order.append("second")

    with ThreadPoolExecutor(1) as pool, output_folder.taken(tmp_path / "out"):
        waiting = pool.submit(second)
        while "another make works there" not in capfd.readouterr().err:
            assert not waiting.done()
            time.sleep(0.01)
        time.sleep(0.1)
        order.append("first")
    assert order == ["first", "second"]


def test_what_is_emptied_keeps_its_mark_and_what_links_lead_to(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/work.txt").touch()
    out = tmp_path / "out"
    with output_folder.taken(out):
        (out / "folder").mkdir()
        (out / "folder/file").touch()
        (out / "link").symlink_to(tmp_path / "mine")
        (out / "kept").touch()
        output_folder.empty(out, "kept")
    assert sorted(os.listdir(out)) == [output_folder.MARK, "kept"] and (tmp_path / "mine/work.txt").exists()


@pytest.fixture
def checkout(tmp_path):
    """A folder with the Makefile, and with files that nobody has made with it."""
    (tmp_path / "book/_tools").mkdir(parents=True)
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copy(ROOT / "book/_tools/install.sh", tmp_path / "book/_tools")
    for name in (".cache/mine", "_build/html/page.html", "notebooks/.a.ipynb-x.unfinished", "notebooks/a.ipynb"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def make(*arguments, folder):
    return subprocess.run(["make", *arguments], cwd=folder, capture_output=True, text=True)


def test_make_clean_removes_what_make_has_made_and_no_more(checkout):
    before = sorted(checkout.rglob("*"))
    refused = make("clean", folder=checkout)
    assert refused.returncode == 2 and refused.stderr.startswith("_build was not made by make")
    assert sorted(checkout.rglob("*")) == before
    (checkout / "_build" / output_folder.MARK).touch()
    assert make("clean", folder=checkout).returncode == 0
    assert not (checkout / "_build").exists() and (checkout / ".cache/mine").exists()
    assert os.listdir(checkout / "notebooks") == ["a.ipynb"]


def test_make_works_in_the_folder_of_the_book_only(checkout):
    refused = make("-f", "../Makefile", "clean", folder=checkout / "book")
    assert refused.returncode == 2 and "run make in the folder of the book" in refused.stderr


@pytest.mark.parametrize("venv", ["", "a b"])
def test_an_environment_without_a_name_or_with_a_space_in_it_is_refused(checkout, venv):
    refused = make(f"VENV={venv}", "lint", folder=checkout)
    assert refused.returncode == 2 and f"VENV: expected a path without spaces, got '{venv}'" in refused.stderr
