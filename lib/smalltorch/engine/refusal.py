"""The engine's exception, and a time limit for its calls to SymPy."""

import signal
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from traceback import walk_stack
from types import FrameType


class StepError(AssertionError):
    """A step that is wrong, or that its certificate does not prove."""


class _OutOfTime(BaseException):
    """Not an Exception: SymPy catches those broadly."""


def _stop(number: int, frame: FrameType | None) -> None:
    # What is raised while a weak reference is cleared is printed and lost, so this waits for the next signal.
    if not any(at.f_code.co_filename == weakref.__file__ for at, _ in walk_stack(frame)):
        raise _OutOfTime


@contextmanager
def bounded(seconds: float) -> Iterator[None]:
    """Run a block for at most `seconds` of processor time (in the main thread); running out of it is a StepError."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGPROF, _stop)
    signal.setitimer(signal.ITIMER_PROF, seconds, 0.1)  # repeated, for what `_stop` or a handler in SymPy lets pass
    try:
        yield
    except _OutOfTime:
        raise StepError(f"undecided after {seconds} s") from None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)
