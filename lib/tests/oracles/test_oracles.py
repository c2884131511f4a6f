"""Every public callable is in the table, its oracle can fail, and no bad input gets through in silence."""

import copy
import math
from importlib.util import find_spec

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from . import public
from .judge import Entry, called, compare, distorted, draw, expected, judge, outcomes
from .kinds import Bad, Real
from .table import ENTRIES, GROUPS

pytestmark = pytest.mark.usefixtures("unenforced")
BAD = ("obscure", "wrong", "nan")


def test_every_public_callable_is_in_the_table():
    entries = {entry.name.partition(",")[0] for entry in ENTRIES}
    found = set(public.callables())
    assert len(found) > 90
    assert sorted(found - entries) == [] and sorted(entries - found) == []


def test_entries_have_a_domain_and_names_of_their_own():
    names = [entry.name for entry in ENTRIES]
    assert sorted(set(names)) == sorted(names)
    assert [entry.name for entry in ENTRIES if entry.arguments and not entry.domain] == []


X = torch.tensor([[1.0, -2.0, 3.0]], dtype=torch.float64)
ONE_NAN = torch.tensor([[1.0, math.nan, 3.0]], dtype=torch.float64)


def fails(error):
    def call(X):
        raise error

    return call


@pytest.mark.parametrize(
    ("call", "kind", "value", "verdict"),
    [
        (lambda X: 2 * X, "valid", X, "agrees"),
        (lambda X: 2.001 * X, "valid", X, "wrong"),
        (lambda X: (2 * X)[0], "valid", X, "wrong"),
        (lambda X: 2 * X / (X > 0), "valid", X, "nan"),
        (lambda X: 2 * X, "nan", ONE_NAN, "agrees"),
        (lambda X: 2 * X.nan_to_num(), "nan", ONE_NAN, "wrong"),
        (lambda X: 2 * X * X.sum(), "nan", ONE_NAN, "nan"),
        (lambda X: 2 * X.float().double(), "extreme", 1e200 * X, "nan"),
        (lambda X: 2 * X, "extreme", 1.5e308 * X, "agrees"),
        (lambda X: 2 * X, "rank", X[0], "wrong"),
        (lambda X: 2 * X, "meta", X.to("meta"), "agrees"),
        (lambda X: 2 * X.sum(0), "meta", X.to("meta"), "wrong"),
        (fails(ValueError("X: expected finite entries, got nan")), "nan", ONE_NAN, "clear"),
        (fails(ValueError("X: expected finite entries, got nan")), "valid", X, "obscure"),
        (fails(ValueError("Y: expected finite entries, got nan")), "nan", ONE_NAN, "obscure"),
        (fails(ValueError("X: not finite")), "nan", ONE_NAN, "obscure"),
        (fails(ValueError("X: expected this,\ngot that")), "nan", ONE_NAN, "obscure"),
        (fails(TypeError("X: expected finite entries, got nan")), "nan", ONE_NAN, "obscure"),
        (fails(FileNotFoundError(2, "No such file", "table.csv")), "range", X, "clear"),
    ],
)
def test_what_is_said_of_an_outcome(call, kind, value, verdict):
    entry = Entry("double", call, lambda X: 2 * X, {"X": Real("n d")}, sizes={"n": 1, "d": 3})
    assert judge(entry, {"X": value}, draw(entry)[1], Bad(kind, "", value), "X").verdict == verdict


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_the_oracle_notices_what_is_a_little_wrong(entry):
    """A result that is scaled by 1.01, of the other sign or rolled is rejected: shape and finiteness do not suffice."""
    skip_without(entry)
    arguments, given = draw(entry, entry.dtypes[0])
    truth = expected(entry, arguments, given, Bad("valid", "", None))
    found, _ = called(entry, copy.deepcopy(arguments))
    assert compare(found, truth) == "agrees"
    verdicts = [compare(wrong, truth) for wrong in distorted(found)]
    assert verdicts and "agrees" not in verdicts


QUICK = [
    e
    for name in ("parts", "positions", "steps", "machines", "collapse", "spectral")
    for e in GROUPS[name]
    if not (e.needs or e.raw)
]


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(QUICK), st.integers(0, 10**6), st.integers(1, 4), st.sampled_from([(), (1,), (3, 2)]))
def test_the_oracle_agrees_whatever_is_drawn(entry, seed, n, batch):
    arguments, given = draw(entry, entry.dtypes[0], seed=seed, n=n, batch_axes=batch)
    outcome = judge(entry, arguments, given, Bad("size", "drawn", None), "")
    assert outcome.verdict not in BAD, outcome


def of_group(name):
    return pytest.mark.parametrize("entry", GROUPS[name], ids=lambda entry: entry.name)


def skip_without(entry):
    for package in entry.needs:
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed")


def assert_nothing_gets_through(entry):
    """The oracle's number, or an error that names the argument; nothing wrong in silence."""
    skip_without(entry)
    assert [str(outcome) for outcome in outcomes(entry) if outcome.verdict in BAD] == []


@of_group("parts")
def test_what_comes_of_parts(entry):
    assert_nothing_gets_through(entry)


@of_group("positions")
def test_what_comes_of_positions(entry):
    assert_nothing_gets_through(entry)


@of_group("steps")
def test_what_comes_of_steps(entry):
    assert_nothing_gets_through(entry)


@of_group("machines")
def test_what_comes_of_machines(entry):
    assert_nothing_gets_through(entry)


@of_group("collapse")
def test_what_comes_of_collapse(entry):
    assert_nothing_gets_through(entry)


@of_group("spectral")
def test_what_comes_of_spectral(entry):
    assert_nothing_gets_through(entry)


@of_group("measure")
def test_what_comes_of_measure(entry):
    assert_nothing_gets_through(entry)


@of_group("files")
def test_what_comes_of_files(entry):
    assert_nothing_gets_through(entry)


NAMED = {"parts", "positions", "steps", "machines", "collapse", "spectral", "measure", "files"}


@pytest.mark.parametrize("entry", [e for name in GROUPS.keys() - NAMED for e in GROUPS[name]], ids=lambda e: e.name)
def test_what_comes_of_all_others(entry):
    assert_nothing_gets_through(entry)
