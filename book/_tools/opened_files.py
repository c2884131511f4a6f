"""A plugin of pytest for its workers: reports say what the tests of a file open in the checkout, and what they start.

And which guards and defaults of the library they reach, of which `lib/tests/reached.py` tells. It imports nothing of
the library, which the tests import with their annotations enforced.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import guards
import kernel_server

_running: list[str] = []  # the file that is collected or run
_notes: dict[str, set[str]] = defaultdict(set)


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        sys.addaudithook(note)


def note(event: str, arguments: tuple) -> None:
    if not _running:
        return
    if event == guards.EVENT:
        _notes[_running[-1]].add(f"reach {arguments[0]}")  # as outcomes.REACH
    elif event in kernel_server.WATCHED and (line := kernel_server.opened(event, arguments)):
        _notes[_running[-1]].add(line)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    with running(collector.nodeid):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    with running(item.nodeid):
        return (yield)


@contextmanager
def running(test: str) -> Iterator[None]:
    _running.append(test.partition("::")[0])
    yield
    _running.pop()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    report.notes = sorted(_notes.pop(item.nodeid.partition("::")[0], ()))
    return report
