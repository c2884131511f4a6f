"""What is given to make reaches the shell as it was written, or not at all."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
NAMES = ("NB", "AGAIN", "NAME", "PART", "JOBS", "PORT", "LABELS", "NODE", "PAGES", "FAULTS", "DEEP", "BASE", "OF")
ODD = (";", "&", "|", "<", ">", "$$", "`", '"', "'", "*", "?", "!", "(", "[", "{", "\\")


def make(target, *given):
    """What make would do, and says."""
    outside = {
        name: value for name, value in os.environ.items() if not name.startswith("MAKE")
    }  # of one that runs this
    done = subprocess.run(["make", "-n", target, *given], cwd=ROOT, env=outside, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_the_shell_would_read_is_refused(name, tmp_path):
    for odd in (f"a; touch {tmp_path}/x", f"$(shell touch {tmp_path}/x)", f"`touch {tmp_path}/x`"):
        status, done, said = make("notebooks", f"{name}={odd}")
        assert (status, done) == (2, "")
        assert f"{name}: expected names, of letters, digits and - _ . / :, got '{odd}'" in said
    assert not list(tmp_path.iterdir())


def test_every_sign_that_the_shell_reads_is_refused_in_a_name_and_a_folder():
    for odd in ODD:
        for name in ("NB", "VENV"):
            status, done, said = make("notebooks", f"{name}=a{odd}b")
            assert (status, done) == (2, "") and f"{name}: expected " in said


def test_names_and_folders_stay_as_they_are():
    status, done, _ = make("notebooks", "NB=causal norm-bounds", "VENV=/elsewhere/mü+1/.venv", "BASE=HEAD~1^")
    command = "/elsewhere/mü+1/.venv/bin/python book/_tools/outcomes.py notebooks -n 2 causal norm-bounds"
    assert status == 0 and done.splitlines()[-1] == command


@pytest.mark.parametrize(
    ("target", "name"), [("test-web", "T"), ("test-web", "SHOTS"), ("html", "PYTHON"), ("html", "TORCH_INDEX")]
)
def test_what_is_no_name_is_quoted(target, name):
    for given, quoted in (('a|b (c) `d` "e"', "'a|b (c) `d` \"e\"'"), ("it's", "'it'\\''s'"), ("a$", "'a$'")):
        status, done, _ = make(target, f"{name}={given}")
        assert status == 0 and f"{name}={quoted} " in done
