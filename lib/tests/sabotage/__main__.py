"""Sabotage: one small fault at a time, and the test that owns it must fail.

    python lib/tests/sabotage engine          the faults of what lies in a folder engine/
    python lib/tests/sabotage --but engine    all others
    python lib/tests/sabotage                 all of them
    python lib/tests/sabotage norm            those of norm.py

A fault is put into a copy of lib/ and book/; nothing here is changed. It is noticed if a test fails: not if the tests
cannot run. Add one to `faults/`, in the file named as the one that it breaks; `mutate.py` says what belongs there.
"""

import sys

import mutate

if __name__ == "__main__":
    sys.exit(mutate.main())
