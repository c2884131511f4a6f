"""How a call is written: which of its arguments are numbers typed by hand, and not computed.

A value does not say where it comes from, but the call that passes it does, where its source can be read: in a file, or
in a cell of a notebook.
"""

import ast
import linecache
from collections.abc import Iterator, Sequence
from itertools import islice
from types import FrameType

FRAMES = 8  # between a function and who calls it: those of decorators


def typed_by_hand(frame: FrameType | None, lists: Sequence[str]) -> Iterator[tuple[str, int]]:
    """In a call with lists of tuples as keyword arguments, those whose tuples have numbers only after their first part.

    Args:
        frame: the one that makes the call, or that of a decorator.
        lists: the names of the arguments.

    Yields:
        The name of the argument, and where in the list the tuple stands.
    """
    for text in map(_written, islice(_outwards(frame), FRAMES)):
        if not any(f"{name}=" in text for name in lists):
            continue
        call = ast.parse(f"({text})", mode="eval").body
        for keyword in call.keywords if isinstance(call, ast.Call) else ():
            if keyword.arg in lists and isinstance(keyword.value, ast.List):
                for k, entry in enumerate(keyword.value.elts):
                    if isinstance(entry, ast.Tuple) and all(map(_is_number, entry.elts[1:])):
                        yield str(keyword.arg), k
        return


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame:
        yield frame
        frame = frame.f_back


def _written(frame: FrameType) -> str:
    """The call that a frame is making, as it is written; nothing where its source cannot be read."""
    first, last, begin, end = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None))
    if first is None or last is None:
        return ""
    lines = [line.encode() for line in linecache.getlines(frame.f_code.co_filename, frame.f_globals)[first - 1 : last]]
    if lines:
        lines[-1] = lines[-1][:end]
        lines[0] = lines[0][begin:]
    return b"".join(lines).decode()


def _is_number(node: ast.expr) -> bool:
    return isinstance(node.operand if isinstance(node, ast.UnaryOp) else node, ast.Constant)
