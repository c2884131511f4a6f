"""What the launcher says of workers, as it sees them: without a process."""

import os
import time
from pathlib import Path

import pytest

from smalltorch.parallel import launch as launcher
from smalltorch.parallel.launch import WorkerError


class Seen:
    """A worker as the launcher sees it: when it comes to grief, and what is said of it then."""

    ready, done, log = True, False, Path(os.devnull)

    def __init__(self, name, after=0.0, complaint=None, silent=0.0):
        self.name, self.due, self.later = name, time.monotonic() + after, complaint
        self.beaten = time.monotonic() - silent

    def look(self):
        pass

    def complaint(self):
        return self.later if time.monotonic() >= self.due else None


@pytest.mark.parametrize("first", [0, 1])
def test_who_is_found_dead_a_moment_later_is_the_one_that_the_others_suffered_from(first, unenforced):
    workers = [Seen("suffers", 0.0, (7.0, "failed")), Seen("dies", launcher.SETTLE / 3, (-2, "was ended"))]
    with pytest.raises(WorkerError, match=r"^dies was ended$"):
        launcher._watch(workers[:: 1 - 2 * first], 60.0)


def test_of_two_that_are_silent_the_longer_is_named(unenforced):
    workers = [Seen("short", silent=launcher.SILENT + 1), Seen("long", silent=launcher.SILENT + 2)]
    with pytest.raises(WorkerError, match="^long has given no sign of life"):
        launcher._watch(workers, 60.0)


def test_who_has_not_met_the_others_in_time_is_named(unenforced, monkeypatch):
    monkeypatch.setattr(launcher, "START", 0.0)
    late = Seen("late")
    late.ready = False
    with pytest.raises(WorkerError, match=r"^late has not met the others within 0 s$"):
        launcher._watch([Seen("there"), late], 60.0)


def test_time_is_over_for_who_is_not_done(unenforced):
    done = Seen("done")
    done.done = True
    with pytest.raises(WorkerError, match=r"^busy is not done within 0.05 s$"):
        launcher._watch([done, Seen("busy")], 0.05)
