"""The environment: killed at any moment it is whole after the next `make`, and nobody else's is touched.

Python and its environments are real, pip is a stub.
"""

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

import install
from kill_at_step import killed

TOOLS = Path(install.__file__).parent
PIP = """\
import os, signal, sys, time
from pathlib import Path

folder = Path(__file__).parents[1]
number = len(list(folder.glob("call-*")))
call = folder / f"call-{number}"
call.write_text("begun")
if os.environ.get("KILL") == str(number):
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(0.2)
if os.environ.get("FAIL") == str(number):
    sys.exit("no such host")
if "torch" in sys.argv[-1]:
    (folder / "torch.py").write_text(os.environ.get("TORCH", ""))
if "-e" in sys.argv:
    (folder / "library.pth").write_text(str(Path("lib").resolve()))
call.write_text("done " + " ".join(sys.argv[1:]))
"""
PYTHON = """\
#!/bin/sh
# A Python; the environments that it makes have a stub of pip.
case "$*" in
    "-m venv "*)
        "{python}" -m venv --without-pip "$3" && [ "$KILL" = venv ] && kill -9 $PPID
        cp -r "{pip}" "$3"/lib/python*/site-packages/ ;;
    *install.py)
        exec "{python}" -c "import runpy, sys; sys.executable = '$0'; runpy.run_path('$1', run_name='__main__')" ;;
    *)
        exec "{python}" "$@" ;;
esac
"""


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout with nothing but the lists and an empty library; its folder is the current one."""
    root = tmp_path / "a checkout"
    for name in ("requirements.lock", "lib/pyproject.toml", "lib/weights.txt", "lib/smalltorch/__init__.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    (root / "requirements.txt").write_text("numpy==2.0\ntorch==2.1 ; True\n", encoding="utf-8")
    (tmp_path / "pip").mkdir()
    (tmp_path / "pip/__main__.py").write_text(PIP, encoding="utf-8")
    (tmp_path / "pip/__init__.py").touch()
    python = tmp_path / "python"
    python.write_text(PYTHON.format(python=sys.executable, pip=tmp_path / "pip"), encoding="utf-8")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    for name in os.environ:
        if name.startswith("PIP_") or name.lower().endswith("_proxy") or name == "TORCH_INDEX":
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_NO_INDEX", "1")  # should a real pip come to run
    monkeypatch.setenv("PYTHONPATH", str(TOOLS))
    monkeypatch.setenv("PYTHON", str(python))
    monkeypatch.setenv("VENV", ".venv")
    monkeypatch.chdir(root)
    return root


def calls(venv):
    return [path.read_text() for path in sorted(venv.glob("lib/python*/site-packages/call-*"))]


def assert_whole(venv):
    assert install.ask(venv) == "ready" and not (venv / "unfinished").exists()
    done = calls(venv)
    assert len(done) == 5 and all(call.startswith("done ") for call in done)


def make(**environment):
    """What `make` does before every target; the exit status, and what it says."""
    done = subprocess.run(
        ["sh", TOOLS / "install.sh"],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("stride", [3, pytest.param(1, marks=pytest.mark.deep)])
def test_killed_at_any_of_its_steps_it_is_whole_the_next_time(checkout, stride):
    for step in count(0, stride):
        died = killed(install.main, step)
        install.main()
        assert_whole(checkout / ".venv")
        if not died:
            break
        shutil.rmtree(".venv")
    assert step >= 10


@pytest.mark.parametrize("moment", ["venv", "1", "4"])
def test_killed_while_another_program_works_for_it_it_is_whole_the_next_time(checkout, monkeypatch, capfd, moment):
    monkeypatch.setenv("KILL", moment)
    assert killed(install.main, 1000)
    monkeypatch.delenv("KILL")
    install.main()
    assert_whole(checkout / ".venv")
    said = capfd.readouterr()
    assert "was interrupted; it is made anew" in said.out
    assert moment == "venv" or "another make works there; waiting" in said.err  # pip outlived who had started it


def test_what_is_whole_is_left_alone_and_what_is_listed_anew_is_installed(checkout):
    install.main()
    assert make() == (0, "")
    assert len(calls(checkout / ".venv")) == 5
    os.utime(".venv/ready", (0, 0))  # older than the lists
    assert make()[0] == 0
    assert len(calls(checkout / ".venv")) == 10


@pytest.mark.parametrize("name", ["requirements.txt", "requirements.lock", "lib/pyproject.toml", "lib/weights.txt"])
def test_each_list_that_is_newer_is_installed_anew(checkout, name):
    install.main()
    assert install.ask(checkout / ".venv") == "ready"
    later = Path(".venv/ready").stat().st_mtime + 1
    os.utime(name, (later, later))
    assert install.ask(checkout / ".venv") == "outdated"


def test_where_pip_fails_what_was_there_stays(checkout, monkeypatch, capsys):
    install.main()
    os.utime(".venv/ready", (0, 0))  # older than the lists
    monkeypatch.setenv("FAIL", "6")
    with pytest.raises(SystemExit, match="The reason is at the end of .venv/install.log"):
        install.main()
    assert Path(".venv/install.log").read_text().endswith("no such host\n")
    monkeypatch.delenv("FAIL")
    install.main()
    assert install.ask(Path(".venv")) == "ready" and len(calls(Path(".venv"))) == 12
    assert "anew" not in capsys.readouterr().out


@pytest.mark.parametrize("other", ["missing", "/bin/false"])
def test_a_python_that_is_gone_is_replaced(checkout, other):
    install.main()
    link = Path(".venv/bin/python")
    link.unlink()
    link.symlink_to(other)
    assert "its Python is gone" in make()[1]
    assert_whole(checkout / ".venv")


@pytest.mark.parametrize("moment", ["python -m venv", "2", "4", "torch", "interrupted"])
def test_where_another_cannot_be_made_the_old_one_stays(checkout, monkeypatch, moment):
    """Its Python may come back, and its packages are some gigabytes."""
    install.main()
    before = {
        path: path.read_bytes() for path in Path(".venv").rglob("*") if path.is_file() and path.name != "install.log"
    }
    python = Path(".venv/bin/python")
    python.rename(".venv/bin/kept")
    broken = dict.fromkeys(Path(".venv").rglob("*"))
    if moment == "python -m venv":
        monkeypatch.setattr(sys, "executable", "/bin/false")
    elif moment == "torch":
        monkeypatch.setenv("TORCH", "raise ImportError('libtorch.so is damaged')")
    elif moment == "interrupted":
        monkeypatch.setattr(install, "install", lambda *given: exec("raise KeyboardInterrupt"))
    monkeypatch.setenv("FAIL", moment)
    with pytest.raises(KeyboardInterrupt if moment == "interrupted" else SystemExit) as end:
        install.main()
    assert moment != "torch" or str(end.value).endswith("does not work: ImportError: libtorch.so is damaged")
    assert dict.fromkeys(Path(".venv").rglob("*")) == broken
    Path(".venv/bin/kept").rename(python)
    assert {path: path.read_bytes() for path in before} == before and install.ask(Path(".venv")) == "ready"


@pytest.mark.parametrize("stride", [5, pytest.param(1, marks=pytest.mark.deep)])
@pytest.mark.parametrize("fails", ["", "1"])
def test_killed_while_another_is_made_the_old_one_or_the_new_one_is_whole(checkout, monkeypatch, stride, fails):
    """Never half of one; also where the other cannot be made the next time."""
    install.main()
    Path(".venv/bin/python").unlink()
    shutil.copytree(".venv", "kept", symlinks=True)
    old = {path.relative_to("kept"): path.is_file() and path.read_bytes() for path in Path("kept").rglob("*")}
    log = Path("install.log")

    def make(number):
        monkeypatch.setenv("FAIL", number)
        with suppress(SystemExit):
            install.main()

    for step in count(0, stride):
        died = killed(lambda: make(fails), step)
        make("0")  # the first call of pip: nothing can be made anew
        if install.ask(Path(".venv")) != "ready":
            there = {path.relative_to(".venv"): path for path in Path(".venv").rglob("*")}
            assert {name: path.is_file() and path.read_bytes() for name, path in there.items()} | {log: 0} == old | {
                log: 0
            }
        make("")
        assert_whole(checkout / ".venv")
        assert not Path(".venv/before").exists() and not Path(".venv/gone").exists()
        if not died:
            break
        shutil.rmtree(".venv")
        shutil.copytree("kept", ".venv", symlinks=True)
    assert step >= 10


def test_an_environment_of_another_user_is_refused_and_stays_as_it_is(checkout, monkeypatch, capsys):
    """Whom it belongs to could not go on with what root, or a colleague, has made in it."""
    install.main()
    Path(".venv/bin/python").unlink()  # as where it is one that this user cannot start
    before = sorted(Path(".venv").rglob("*"))
    other = os.geteuid() + 54321
    monkeypatch.setattr(os, "geteuid", lambda: other)
    with pytest.raises(SystemExit) as end:
        install.main()
    owner = Path(".venv").owner()
    assert str(end.value) == (
        f".venv: this environment is of {owner}, and you are user {other}; "
        f"run make as {owner}, or name another (VENV=…)"
    )
    assert sorted(Path(".venv").rglob("*")) == before


def test_a_python_that_does_not_see_the_packages_is_replaced(checkout):
    """As after an upgrade from 3.11 to 3.12, when `python3` is another one."""
    install.main()
    packages = next(Path(".venv/lib").iterdir())
    packages.rename(packages.with_name("python3.0"))
    assert install.ask(Path(".venv")) == "broken"


ELSEWHERE = "{}: this environment was made for {}; remove it, or name another (VENV=…)\n"


def test_an_environment_that_was_copied_is_refused(checkout, monkeypatch):
    """Its programs and the library would be the first one's."""
    install.main()
    copy = checkout.with_name("copy")
    shutil.copytree(checkout, copy, symlinks=True)
    monkeypatch.chdir(copy)
    assert make() == (1, ELSEWHERE.format(".venv", checkout / ".venv"))
    assert len(calls(copy / ".venv")) == 5


def test_an_environment_that_belongs_to_another_checkout_is_refused(checkout, monkeypatch):
    install.main()
    other = checkout.with_name("other")
    shutil.copytree(checkout, other, ignore=shutil.ignore_patterns(".venv"))
    monkeypatch.chdir(other)
    monkeypatch.setenv("VENV", str(checkout / ".venv"))
    assert make() == (1, ELSEWHERE.format(checkout / ".venv", checkout))
    assert len(calls(checkout / ".venv")) == 5


def test_a_folder_that_make_has_not_made_is_refused_and_stays_as_it_is(checkout, monkeypatch):
    for name in (".", "work", "env"):
        path = Path(name)
        path.mkdir(exist_ok=True)
        (path / "mine").touch()
        if name == "env":
            subprocess.run([sys.executable, "-m", "venv", path], check=True)
        before = sorted(path.rglob("*"))
        status, said = make(VENV=name)
        assert status == 1 and "that it has made, and not this one" in said and said.count("\n") == 1
        assert sorted(path.rglob("*")) == before


def test_what_redirects_pip_is_named_in_the_log_but_not_where_to(checkout, monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", "https://me:secret@index.invalid")
    monkeypatch.setenv("https_proxy", "https://proxy.invalid")
    install.main()
    log = Path(".venv/install.log").read_text()
    assert log.splitlines()[0].endswith(": PIP_INDEX_URL PIP_NO_INDEX https_proxy") and "secret" not in log


def test_torch_alone_comes_from_its_index_and_the_rest_by_hash(checkout, monkeypatch):
    monkeypatch.setenv("TORCH_INDEX", "https://torch.invalid")
    install.main()
    first, *others = [call.partition(" install ")[2] for call in calls(checkout / ".venv")]
    assert first == "--no-deps --index-url https://torch.invalid torch==2.1"
    assert others[:2] == ["--require-hashes -r requirements.lock", "torch==2.1"]
    assert others[2:] == ["--no-deps --no-build-isolation -e lib", "--no-deps --require-hashes -r lib/weights.txt"]
    assert not any("torch.invalid" in other for other in others)


@pytest.mark.parametrize("name", ["requirements.lock", "book/claims.csv", "notebooks/one/a.ipynb", "_config.yml"])
def test_a_file_with_conflict_markers_is_named_in_one_line(checkout, name):
    path = checkout / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("a\n" + "<" * 7 + " HEAD\nb\n")
    assert make() == (1, f"Git's conflict markers stand in {name}; settle the merge first\n")


def test_without_a_list_nothing_is_begun(checkout):
    install.main()
    Path("requirements.lock").unlink()
    assert make() == (1, "requirements.lock: No such file or directory\n")
    assert len(calls(checkout / ".venv")) == 5


def test_an_unfit_python_is_refused(checkout):
    status, said = make(PYTHON=os.devnull)
    assert status == 1 and said.startswith("Python 3.11, 3.12 or 3.13 is needed (found: none)")
