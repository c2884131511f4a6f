"""The walk through the library: all that can be called by a name without an underscore."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from functools import cached_property, partial
from typing import Any

import smalltorch

# The engine and its aliases; drawings (`test_draw`), long runs and their tables (`test_long_runs`, `test_table`); what
# needs several processes (`test_launch`, `test_splits`).
ELSEWHERE = (
    *("engine", "derive", "figures.draw"),
    *(f"parallel.{name}" for name in ("counting", "demonstrations", "launch", "splits", "worker")),
    *("experiments.closure", "experiments.runner", "experiments.table"),
)


def modules() -> list[str]:
    """Names of the modules outside the engine, from `smalltorch` on."""
    names = (
        module.name.removeprefix("smalltorch.") for module in pkgutil.walk_packages(smalltorch.__path__, "smalltorch.")
    )
    return [name for name in names if not {name, name.partition(".")[0]} & {*ELSEWHERE}]


def callables() -> Iterator[str]:
    """Functions, classes, and what classes define besides being called; not what the commands of long runs ask for.

    A class that does nothing but hold its fields is none to test.
    """
    for name in modules():
        module = importlib.import_module(f"smalltorch.{name}")
        for key, value in vars(module).items():
            if key.startswith("_") or (name.startswith("experiments.") and key == "experiment"):
                continue
            if inspect.isclass(value) and value.__module__ == module.__name__:
                if not is_record(value):
                    yield f"{name}.{key}"
                yield from (f"{name}.{key}.{method}" for method in methods(value))
            elif inspect.isfunction(value) and value.__module__ == module.__name__ or isinstance(value, partial):
                yield f"{name}.{key}"


def is_record(kind: type) -> bool:
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


def methods(kind: type) -> list[str]:
    """What a class defines itself; its constructor and its call are the class's own entry."""
    members = {key: value for key, value in vars(kind).items() if not key.startswith("_") and key != "forward"}
    return [key for key, value in members.items() if has_code(value)]


def has_code(value: Any) -> bool:
    return isinstance(value, property | cached_property | staticmethod | classmethod) or inspect.isfunction(value)


def is_there(name: str) -> bool:
    """Whether the library has a callable of this name; an older one may lack it."""
    module = next((m for m in sorted(modules(), key=len, reverse=True) if name.startswith(f"{m}.")), None)
    if module is None:
        return False
    value = importlib.import_module(f"smalltorch.{module}")
    for part in name.removeprefix(f"{module}.").split("."):
        value = getattr(value, part, None)
    return value is not None
