"""What a record is, apart from what writes it."""

import subprocess
import sys
from dataclasses import replace

import pytest

from smalltorch.engine.schema import Evidence, Record, anchor, unsaid


def test_anchor():
    assert anchor("S0-2.1-eq1") == "claim-s0-2-1-eq1" and anchor("C73 (b)") == "claim-c73-b"


@pytest.mark.processes
def test_the_schema_needs_the_standard_library_only():
    blocked = "import sys; sys.modules['torch'] = sys.modules['numpy'] = sys.modules['sympy'] = None; "
    subprocess.run([sys.executable, "-c", blocked + "import smalltorch.engine.schema"], check=True)


DERIVED = Evidence("derived", "derived for all n: it", 3, ("x = y",), ("y = 1",), "all n", ("expand",), "y = 1")
RECORD = Record("C1", "norms", "true", "It is.", "y is 1", (DERIVED,))


@pytest.mark.parametrize(
    "change",
    [{"kind": "fact"}, {"shows": ("x = 2*y",)}, {"given": ()}, {"given": ("y = 1", "x = 1")}, {"scope": "n = 6"}],
)
def test_what_is_shown_changes_and_the_words_do_not(change):
    new = replace(RECORD, evidence=(replace(DERIVED, **change),))
    assert unsaid([RECORD], [new]) == ["C1"]
    for words in ({"verdict": "imprecise"}, {"statement": "It is not."}, {"assumptions": "y is 2"}):
        assert unsaid([RECORD], [replace(new, **words)]) == []


def test_what_does_not_concern_the_words_may_change():
    other = Evidence("verified", "verified, it: tightness 1.00", 4, ("it",))
    old = replace(RECORD, evidence=(DERIVED, other))
    same = replace(DERIVED, text="derived: it", cell=5, by=("cancel",), instance="y = 1, x = 1")
    assert unsaid([old], [replace(old, evidence=(same,))]) == []
    assert unsaid([RECORD], [replace(RECORD, evidence=(other, DERIVED))]) == []
    assert unsaid([], [RECORD]) == unsaid([RECORD], []) == []
    assert unsaid([replace(RECORD, evidence=(replace(DERIVED, shows=()),))], [RECORD]) == []  # of before it was said
    assert unsaid([old], [replace(RECORD, evidence=(other,))]) == ["C1"]
