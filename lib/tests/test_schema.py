"""What a record is, apart from what writes it."""

import subprocess
import sys

from smalltorch.engine.schema import anchor


def test_anchor():
    assert anchor("S0-2.1-eq1") == "claim-s0-2-1-eq1" and anchor("C73 (b)") == "claim-c73-b"


def test_the_schema_needs_the_standard_library_only():
    blocked = "import sys; sys.modules['torch'] = sys.modules['numpy'] = sys.modules['sympy'] = None; "
    subprocess.run([sys.executable, "-c", blocked + "import smalltorch.engine.schema"], check=True)
