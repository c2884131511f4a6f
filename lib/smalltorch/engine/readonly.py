"""Containers that can be read, and refuse to be changed: what a proof shows must stay what was proved."""

from typing import Any, NoReturn

from smalltorch.engine.refusal import StepError


def _refused(self: Any, *args: Any, **more: Any) -> NoReturn:
    raise StepError("what is proved is read and not changed; begin a new Derivation")


class ReadOnlyDict(dict[Any, Any]):
    """A dict without the methods that change it."""

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refused


class ReadOnlyList(list[Any]):
    """A list without the methods that change it."""

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refused
    append = clear = extend = insert = pop = remove = reverse = sort = _refused
