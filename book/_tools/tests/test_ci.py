"""`.ci/run`: what it runs, with commands in the place of make and the browser that only say how they were called."""

import os
import re
import shutil
import subprocess

import pytest

from affected import ROOT, TABLES

MAKE = """#!/bin/sh
case "$*" in
    *affected*pages) echo a.html b.html ;;
    *affected*notebooks) echo softmax ;;
    *affected*) ;;
    *) echo "ran $*" ;;
esac
"""


@pytest.fixture
def checkout(tmp_path):
    """A repository with two commits, of which the second changes a page, and the first is the last whole run."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci/run")
    (tmp_path / "bin").mkdir()
    for name in ("make", "node", "npm", "chromium"):
        (tmp_path / "bin" / name).write_text(MAKE)
        (tmp_path / "bin" / name).chmod(0o755)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    (tmp_path / ".ci/whole").write_text(git(tmp_path, "rev-parse", "HEAD"))
    (tmp_path / "page.md").write_text("new")
    git(tmp_path, "add", "page.md")
    git(tmp_path, "commit", "-qm", "second")
    return tmp_path


def git(folder, *arguments):
    who = [word for key in ("name=n", "email=e@example.org") for word in ("-c", f"user.{key}")]
    return subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def stages(checkout, **variables):
    path = {"PATH": f"{checkout / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    clean = {name: value for name, value in os.environ.items() if name not in ("BASE", "CHROME")}
    made = subprocess.run(
        [checkout / ".ci/run"], env={**clean, **path, **variables}, check=True, capture_output=True, text=True
    )
    return [line.removeprefix("ran ") for line in made.stdout.splitlines() if line.startswith("ran ")]


def test_what_has_changed_since_the_last_whole_run_decides(checkout):
    found = stages(checkout)
    assert found == ["test", "book", "test-tools", "test-lab", "test-web PAGES=a.html b.html", "elsewhere NB=softmax"]


@pytest.mark.parametrize("whole, base", [("0" * 40, ""), (None, "none")])
def test_all_is_run_where_that_is_not_known_or_not_wanted(checkout, whole, base):
    if whole:
        (checkout / ".ci/whole").write_text(whole)
    everything = [
        "test",
        "book",
        "html NODE=none HTML=.cache/no-node/html",
        "test-tools",
        "test-lab",
        "test-web",
        "without-library NB=attention norm-bounds",
        "elsewhere",
        "test-paper",
        "deep",
        "sabotage",
    ]
    assert stages(checkout, BASE=base) == everything
    assert stages(checkout, BASE=base, LATE="0") == everything[:-4]  # and no more is left out for want of time


def test_other_bounds_of_versions_are_tried(checkout):
    (checkout / "lib").mkdir()
    (checkout / "lib/pyproject.toml").write_text("")
    git(checkout, "add", "lib")
    git(checkout, "commit", "-qm", "third")
    assert stages(checkout)[-1] == "lowest"


def test_what_a_change_reaches_is_known_or_nothing_is_run(checkout):
    """A stage must not be left out because the question what it needs had no answer."""
    (checkout / "bin/make").write_text('#!/bin/sh\ncase "$*" in *affected*deep) exit 1 ;; *) echo ran $* ;; esac\n')
    with pytest.raises(subprocess.CalledProcessError):
        stages(checkout)


def test_the_last_whole_run_is_named_by_a_commit():
    first, *others = (ROOT / ".ci/whole").read_text().splitlines()
    assert re.fullmatch(r"[0-9a-f]{40}", first)
    assert all(re.fullmatch(r"[0-9a-f]{40}( [a-z_]+)+", line) and {*line.split()[1:]} <= {*TABLES} for line in others)


def test_a_later_run_of_one_kind_is_named_beside_the_last_whole_run(checkout):
    head = git(checkout, "rev-parse", "HEAD").strip()
    (checkout / ".ci/whole").write_text(f"{'0' * 40}\n{head} pages notebooks\n")
    (checkout / "bin/make").write_text(
        '#!/bin/sh\ncase "$*" in *affected*) echo "$*" >&2 ;; *) echo "ran $*" ;; esac\n'
    )
    git(checkout, "commit", "-qam", "another make")
    made = subprocess.run(
        [checkout / ".ci/run"],
        env={**os.environ, "PATH": f"{checkout / 'bin'}{os.pathsep}{os.environ['PATH']}", "BASE": ""},
        check=True,
        capture_output=True,
        text=True,
    )
    asked = [line.rpartition("affected ")[2] for line in made.stderr.splitlines() if "OF=" in line]
    assert asked == [f"BASE={head} OF=pages", f"BASE={head} OF=notebooks"]
    assert "ran sabotage" in made.stdout.splitlines() and "ran elsewhere" not in made.stdout
