"""Notes which guards and which defaults of the library the tests reach; `outcomes.py` holds it against what there is.

A guard is a statement `raise`. A default is used where a call leaves its argument out. Both are said to whoever listens
to `sys.audit`: nothing else is done, so that nothing is slower.
"""

import inspect
import math
import sys
from functools import partial, wraps
from importlib.abc import MetaPathFinder
from pathlib import Path

import jaxtyping

from guards import EVENT, guards, is_public

ROOT = Path(__file__).resolve().parents[2]


def install() -> None:
    """Before the library is imported, and after jaxtyping's hook, whose loader goes on to load it."""
    finder = sys.meta_path[0]
    sys.meta_path.insert(0, Noting(finder))
    jaxtyping.jaxtyped = partial(noting, jaxtyping.jaxtyped)


class Noting(MetaPathFinder):
    """Lets jaxtyping's loader read modules whose `raise` is marked."""

    def __init__(self, finder):
        self.find = finder.find_spec

    def find_spec(self, name, path=None, target=None):
        spec = self.find(name, path, target)
        if spec is not None:
            loader = spec.loader
            read, run = loader.get_data, loader.exec_module
            loader.get_data = lambda file: marked(read(file), file)
            loader.path_stats = no_cache  # bytecode that was kept may lack the marks
            loader.exec_module = partial(execute, run)
        return spec


def no_cache(path):
    raise OSError


def execute(run, module):
    module.__reached__ = partial(sys.audit, EVENT)
    run(module)


def marked(source: bytes, file: str) -> bytes:
    """The source with a mark at every `raise`, and no line more."""
    text = source.decode()
    lines = text.splitlines(keepends=True)
    path = Path(file).relative_to(ROOT).as_posix()
    for guard in sorted(guards(text, path), key=lambda guard: (guard.line, guard.column), reverse=True):
        line = lines[guard.line - 1].encode()
        before, after = line[: guard.column].decode(), line[guard.column + len("raise") :].decode()
        call = f"__reached__({guard.name!r})"
        lines[guard.line - 1] = before + (f"{call}; raise{after}" if guard.bare else f"raise {call} or{after}")
    return "".join(lines).encode()


def noting(jaxtyped, fn=None, **settings):
    """`jaxtyping.jaxtyped`, whose functions say which of their defaults a call uses."""
    if fn is None:
        return lambda fn: noting(jaxtyped, fn, **settings)
    checked = jaxtyped(fn, **settings)
    if not inspect.isfunction(fn) or not is_public(fn.__qualname__):
        return checked
    parameters = list(inspect.signature(fn).parameters.values())
    path = Path(fn.__code__.co_filename).relative_to(ROOT).as_posix()
    optional = [
        (math.inf if p.kind is p.KEYWORD_ONLY else place, p.name, f"{path} {fn.__qualname__}({p.name})")
        for place, p in enumerate(parameters)
        if p.default is not p.empty
    ]
    if not optional:
        return checked
    enough = math.inf if any(p.kind is p.VAR_POSITIONAL for p in parameters) else len(parameters)

    @wraps(checked)
    def call(*arguments, **named):
        if len(arguments) + len(named) < enough:
            for place, name, what in optional:
                if len(arguments) <= place and name not in named:
                    sys.audit(EVENT, what)
        return checked(*arguments, **named)

    return call
