"""The runner on a small book: what is noticed, what is not, and what must not pass for noticed."""

import mutate
import pytest
from mutate import Fault

FILES = {
    "lib/thing.py": "def double(x):\n    return 2 * x\n\n\ndef triple(x):\n    return 3 * x\n",
    "lib/tests/test_thing.py": """\
import subprocess
import sys

import thing


def test_double():
    assert thing.double(3) == 6


def test_triple():
    assert thing.triple(0) == 0


def test_elsewhere():
    subprocess.run([sys.executable, "-c", "import thing; assert thing.double(3) == 6"], check=True)


def test_fails():
    assert False
""",
    "book/_tools/list.txt": "one\ntwo\n",
    "book/_tools/tests/test_list.py": """\
from pathlib import Path


def test_list():
    root = Path(__file__).resolve().parents[3]
    assert (root / "book/_tools/list.txt").read_text() == (root / "list.txt").read_text()
""",
    "list.txt": "one\ntwo\n",
}
THING, LIST = "lib/tests/test_thing.py", "book/_tools/tests/test_list.py"
NOTICED = """\
[[fault]]
old = 'return 2'
new = 'return 4'
test = "lib/tests/test_thing.py::test_double"
"""


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A book with a module, a list, their tests, and one fault."""
    for name, text in (FILES | {f"{mutate.FAULTS}/lib/thing.py.toml": NOTICED}).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(mutate, "PRELOAD", {"lib": ["pytest"], "book": ["pytest"]})
    return tmp_path


def add(root, old, new, test):
    with (root / mutate.FAULTS / "lib/thing.py.toml").open("a", encoding="utf-8") as file:
        file.write(f"\n[[fault]]\nold = '{old}'\nnew = '{new}'\ntest = '{test}'\n")


@pytest.mark.processes
def test_a_fault_is_of_the_file_whose_name_its_own_has(root):
    (fault,) = mutate.read(root)
    assert fault == Fault("lib/thing.py", "return 2", "return 4", f"{THING}::test_double")
    assert str(fault) == f"lib/thing.py: return 2 → return 4   [{THING}::test_double]"
    assert all(fault.is_of([name]) for name in ("lib", "thing", "thing.py")) and not fault.is_of(["book", "thin"])


@pytest.mark.processes
@pytest.mark.parametrize(
    ("target", "old", "new", "test", "verdict"),
    [
        ("lib/thing.py", "2 * x", "x * 3", f"{THING}::test_double", "noticed"),
        ("lib/thing.py", "2 * x", "x * 3", f"{THING}::test_elsewhere", "noticed"),  # in a process of the test's own
        ("book/_tools/list.txt", "two", "three", LIST, "noticed"),
        ("lib/thing.py", "3 * x", "4 * x", f"{THING}::test_triple", "NOT NOTICED"),
        ("lib/thing.py", "5 * x", "4 * x", f"{THING}::test_double", "NOT APPLIED, the text stands there 0 times"),
        ("lib/thing.py", "* x", "/ x", f"{THING}::test_double", "NOT APPLIED, the text stands there 2 times"),
        ("list.txt", "two", "three", LIST, "NOT APPLIED, it lies outside of lib and book"),
        ("lib/nothing.py", "2 * x", "x", f"{THING}::test_double", "NOT APPLIED, there is no such file"),
        ("lib/thing.py", "2 * x", "x * 3", f"{THING}::test_single", "TESTS DID NOT RUN (status 4)"),
        ("lib/thing.py", "2 * x", "2 * x)", f"{THING}::test_double", "TESTS DID NOT RUN (status 4)"),
    ],
)
def test_what_becomes_of_a_fault(root, target, old, new, test, verdict):
    found, output = mutate.examine(Fault(target, old, new, test), root)
    assert found == verdict, output
    assert bool(output) == verdict.startswith("TESTS")
    assert all((root / name).read_text(encoding="utf-8") == text for name, text in FILES.items())


@pytest.mark.processes
def test_a_fault_that_hangs_its_test_is_noticed(root, monkeypatch):
    monkeypatch.setattr(mutate, "SECONDS", 1)
    hang = Fault("lib/thing.py", "    return 2 * x", "    while True: pass", f"{THING}::test_double")
    assert mutate.examine(hang, root) == ("noticed", "")


@pytest.mark.processes
def test_all_noticed_is_success(root, capsys):
    assert mutate.main([], root) == 0
    noticed, count = capsys.readouterr().out.splitlines()
    assert noticed.startswith("noticed: lib/thing.py: return 2 → return 4") and count == "1 passed, 0 failed"


@pytest.mark.processes
def test_a_fault_that_nothing_notices_is_a_failure(root, capsys):
    add(root, "3 * x", "4 * x", f"{THING}::test_triple")
    assert mutate.main(["thing"], root) == 1
    said = capsys.readouterr().out
    assert "\nNOT NOTICED: lib/thing.py: 3 * x → 4 * x" in said and "1 passed, 1 failed" in said


@pytest.mark.processes
def test_a_test_that_always_fails_notices_nothing(root, capsys):
    add(root, "3 * x", "4 * x", f"{THING}::test_fails")
    assert mutate.main(["lib"], root) == 1
    said = capsys.readouterr().out
    assert "WITHOUT A FAULT the tests do not pass (status 1)" in said and "2 passed, 1 failed" in said


@pytest.mark.processes
def test_an_unknown_name_is_refused(root, capsys):
    for arguments in (["nothing"], ["--but", "thing", "nothing"]):
        with pytest.raises(SystemExit):
            mutate.main(arguments, root)
        assert "faults, got 'nothing'" in capsys.readouterr().err


# --- the faults of this book ------------------------------------------------------------------------------------------


def test_every_fault_applies_and_its_test_exists():
    faults = mutate.read()
    assert faults and [f"{reason}: {fault}" for fault in faults if (reason := mutate.not_applied(fault))] == []
    assert [fault.test for fault in faults if not exists(*fault.test.split("::"))] == []


def exists(path, function=""):
    file = mutate.ROOT / path
    return file.is_file() and (not function or f"\ndef {function}(" in file.read_text(encoding="utf-8"))


def test_no_fault_stands_twice():
    faults = mutate.read()
    assert sorted(set(faults)) == sorted(faults)
