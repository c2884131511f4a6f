"""The copies of the reader's editions that JupyterLab opens, and the wheel that a release attaches."""

import json
import os
import re
import sys
import zipfile
from pathlib import Path

import pytest

import lab
import library_wheel
import setup_cell


@pytest.fixture
def html(tmp_path):
    folder = tmp_path / "_build/html"
    (folder / "notebooks/part").mkdir(parents=True)
    write(folder, "[a page](../other/page.html#there), [out](https://a.invalid/b.html)")
    return folder


def write(html, text):
    cell = {"cell_type": "markdown", "source": [text]}
    edition = {"cells": [cell], "metadata": {"kernelspec": {"name": "python3"}}}
    (html / "notebooks/part/why.ipynb").write_text(json.dumps(edition))


def test_a_copy_leads_to_the_built_pages_and_names_the_books_kernel(html):
    assert lab.copy_all(html, html.parent / "lab") == []
    copy = json.loads((html.parent / "lab/part/why.ipynb").read_text())
    link = "../../html/notebooks/other/page.html"
    assert copy["cells"][0]["source"] == [f"[a page]({link}#there), [out](https://a.invalid/b.html)"]
    assert (html.parent / "lab/part" / link).resolve() == html / "notebooks/other/page.html"
    assert copy["metadata"]["kernelspec"]["name"] == "deep-dive"


def test_what_a_reader_has_changed_stays(html):
    folder, copy = html.parent / "lab", html.parent / "lab/part/why.ipynb"
    lab.copy_all(html, folder)
    write(html, "a new edition")
    assert lab.copy_all(html, folder) == [] and "a new edition" in copy.read_text()
    copy.write_text("mine")
    write(html, "another")
    assert lab.copy_all(html, folder) == [copy] and copy.read_text() == "mine"
    (folder / ".made.json").unlink()  # what is not known to be as it was made stays too
    assert lab.copy_all(html, folder) == [copy] and copy.read_text() == "mine"
    copy.unlink()
    assert lab.copy_all(html, folder) == [] and "another" in copy.read_text()


def test_the_kernel_is_this_python_and_nothing_phones_home(html, monkeypatch):
    started = []
    monkeypatch.setattr(sys, "argv", ["lab.py", str(html), "env/bin/jupyter", "--no-browser"])
    monkeypatch.setattr(lab.os, "execv", lambda program, words: started.append((program, words)))
    monkeypatch.chdir(html)
    monkeypatch.setenv("JUPYTER_PATH", "")
    lab.main()
    spec = json.loads((html.parent / "lab/.jupyter/kernels/deep-dive/kernel.json").read_text())
    assert spec["argv"][0] == sys.executable and lab.os.environ["JUPYTER_PATH"] == str(html.parent / "lab/.jupyter")
    ((program, words),) = started
    assert program == str(html / "env/bin/jupyter") and words[1] == "lab" and words[-1] == "--no-browser"
    assert "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate" in words
    settings = json.loads((Path(lab.__file__).parent / "lab-settings.json").read_text())
    assert settings["@jupyterlab/apputils-extension:notification"] == {"fetchNews": "false", "checkForUpdates": False}


def test_the_wheel_has_the_library_with_its_tables_and_no_tests(tmp_path):
    library_wheel.make(tmp_path / "a release")
    name = f"smalltorch-{setup_cell.VERSION}-py3-none-any.whl"
    assert sorted(path.name for path in (tmp_path / "a release").iterdir()) == [name, "weights.txt"]
    names = zipfile.ZipFile(tmp_path / "a release" / name).namelist()
    packed = {name for name in names if name.startswith("smalltorch/")}
    library = library_wheel.ROOT / "lib"
    there = {
        path.relative_to(library)
        for path in (library / "smalltorch").rglob("*")
        if path.suffix in (".py", ".csv", ".txt")
    }
    read = {os.path.normpath(f"smalltorch/book/{name}") for name in library_wheel.READ}
    assert packed - {"smalltorch/py.typed"} == set(map(str, there)) | read
    assert {path.name for path in (library_wheel.ROOT / "book/data").glob("*.txt")} == {
        Path(name).name for name in read if "/data/" in name
    }


def test_what_a_chapter_reads_of_the_book_is_in_the_wheel():
    chapters = "".join(path.read_text(encoding="utf-8") for path in library_wheel.ROOT.glob("notebooks/*/*.ipynb"))
    named = set(re.findall(r'data\.path\(\\"([^"\\]+)', chapters))
    named |= {f"data/{text}.txt" for text in re.findall(r'data\.text\(\\"(\w+)', chapters)}
    assert named and named <= set(library_wheel.READ)


def test_what_the_library_reads_of_the_book_is_packed():
    modules = (library_wheel.ROOT / "lib/smalltorch").rglob("*.py")
    named = {name for path in modules for name in re.findall(r'data\.path\("([^"]+)"\)', path.read_text("utf-8"))}
    assert named and named <= {*library_wheel.READ}
