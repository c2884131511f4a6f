"""The package as a whole: old names go on to work, its commands start, its summary is complete."""

import importlib
import pkgutil
import runpy
import sys

import jaxtyping
import pytest

import smalltorch
from smalltorch import engine

ALIASES = ("derive", "verify", "ledger")  # where modules of the engine stood before
COMMANDS = (
    "measure",
    "spectrum",
    "experiments.placement",
    "experiments.depth_without_skips",
    "experiments.first_steps",
    "experiments.reach",
    "experiments.past_length",
)
MODULES = [module.name for module in pkgutil.walk_packages(smalltorch.__path__, "smalltorch.")]


@pytest.mark.parametrize("name", ALIASES)
def test_a_module_of_the_engine_is_found_where_it_stood(name):
    before, now = (importlib.import_module(f"smalltorch.{place}") for place in (name, f"engine.{name}"))
    public = {key: value for key, value in vars(now).items() if not key.startswith("_")}
    assert any(getattr(value, "__module__", "") == now.__name__ for value in public.values())
    for key, value in public.items():
        assert getattr(before, key) is value, key


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_starts(name, monkeypatch, capsys):
    module = f"smalltorch.{name}"
    monkeypatch.delitem(sys.modules, module, raising=False)  # runpy warns of a module that is there before it is run
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    with pytest.raises(SystemExit) as end:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    assert end.value.code == 0 and capsys.readouterr().out.startswith("usage: ")


def test_the_summaries_name_every_module():
    for package in (smalltorch, engine):
        named = set(package.__doc__.split())
        for module in pkgutil.iter_modules(package.__path__):
            assert module.name in named or module.name in (*ALIASES, "spectrum"), module.name


@pytest.mark.parametrize("name", MODULES)
def test_annotations_are_enforced_in_every_module(name):
    """By jaxtyping's own loader; `test_shapes` sees it at work."""
    assert type(importlib.import_module(name).__spec__.loader).__module__.startswith(jaxtyping.__name__)
