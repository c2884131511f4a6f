"""For the tests: what is left of a function's work when its process is killed at one of its steps, without warning.

A step is what Python tells its audit hooks before it happens and changes something: a file is opened for writing,
made, renamed or removed, or a program is started.
"""

import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Collection

STEPS = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod", "subprocess.Popen")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def killed(work: Callable[[], object], step: int, steps: Collection[str] = STEPS) -> bool:
    """Do the work in a process of its own, which dies before its step of this number, from 0; whether it did.

    `steps` names the kinds of steps that are counted.

    Raises:
        AssertionError: if it ended otherwise than by this, or by having done its work.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads, which this process may have
        process = os.fork()
    if process == 0:
        left = step

        def die(event: str, arguments: tuple) -> None:
            nonlocal left
            if event in steps and (event != "open" or (isinstance(arguments[2], int) and arguments[2] & WRITING)):
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                left -= 1

        status = 1
        try:
            sys.addaudithook(die)
            work()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    status = os.waitpid(process, 0)[1]
    ended = os.waitstatus_to_exitcode(status)
    assert ended in (0, -signal.SIGKILL), f"the work ended with status {ended}"
    return ended != 0
