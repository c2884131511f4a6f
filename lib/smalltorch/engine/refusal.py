"""How the engine refuses: one kind of error, and a limit in time for what it asks of SymPy."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class StepError(AssertionError):
    """A step that is wrong, or that its certificate does not prove."""


class _OutOfTime(BaseException):
    """Not an Exception: SymPy catches those broadly."""


def _stop(number: int, frame: FrameType | None) -> None:
    raise _OutOfTime


@contextmanager
def bounded(seconds: float) -> Iterator[None]:
    """Run a block for at most `seconds` (in the main thread); running out of time is a StepError."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGALRM, _stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)  # repeated, should a handler in SymPy swallow the first
    try:
        yield
    except _OutOfTime:
        raise StepError(f"undecided after {seconds} s") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
