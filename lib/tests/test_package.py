"""The package as a whole: its commands start, its summary is complete, an old name goes on to work."""

import importlib
import pkgutil
import runpy
import sys

import jaxtyping
import pytest

import smalltorch
from smalltorch import engine

COMMANDS = (
    "measure",
    "experiments.placement",
    "experiments.depth_without_skips",
    "experiments.first_steps",
    "experiments.position_codes",
    "experiments.past_length",
)
MODULES = [module.name for module in pkgutil.walk_packages(smalltorch.__path__, "smalltorch.")]


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
            assert module.name in (*named, "derive"), module.name  # which leads on to engine.derive


@pytest.mark.parametrize("name", MODULES)
def test_annotations_are_enforced_in_every_module(name):
    """By jaxtyping's own loader; `test_shapes` sees it at work."""
    assert type(importlib.import_module(name).__spec__.loader).__module__.startswith(jaxtyping.__name__)


def test_derivations_are_found_where_they_stood_before():
    before, now = importlib.import_module("smalltorch.derive"), importlib.import_module("smalltorch.engine.derive")
    assert before.Derivation is now.Derivation and before.Induction is now.Induction
