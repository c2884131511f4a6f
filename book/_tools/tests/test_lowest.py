"""The lowest versions: an installation that was killed is begun anew."""

import os
import signal
import subprocess

import pytest

import lowest
from killed import killed

ASKED = ["torch>=2.6", "numpy >= 1.26", "matplotlib>=3.8", "sympy>=1.13.1"]


def test_the_lower_bounds_become_pins():
    assert lowest.lower_bounds(ASKED) == ["torch==2.6", "numpy==1.26", "sympy==1.13.1"]


@pytest.mark.parametrize("moment", [0, 1])
def test_an_installation_that_was_killed_is_begun_anew(tmp_path, monkeypatch, moment):
    target, calls = tmp_path / "torch==2.6", []

    def pip(command, check):
        folder = target.with_name(os.path.basename(command[command.index("--target") + 1]))
        folder.mkdir(exist_ok=True)
        (folder / f"{len(calls)}-{dies}").touch()
        if len(calls) == dies:
            os.kill(os.getpid(), signal.SIGKILL)
        calls.append(command)

    monkeypatch.setattr(subprocess, "run", pip)
    dies = moment
    assert killed(lambda: lowest.install(target, "torch==2.6", ["numpy==1.26"]), 1000)
    assert not target.exists()
    dies = 2
    lowest.install(target, "torch==2.6", ["numpy==1.26"])
    assert sorted(os.listdir(target)) == ["0-2", "1-2"]
