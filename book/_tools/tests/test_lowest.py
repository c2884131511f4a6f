"""The lowest versions that the library allows are those that it asks for."""

import lowest

ASKED = ["torch>=2.6", "numpy >= 1.26", "matplotlib>=3.8", "sympy>=1.13.1"]


def test_the_lower_bounds_become_pins():
    assert lowest.lower_bounds(ASKED) == ["torch==2.6", "numpy==1.26", "sympy==1.13.1"]
