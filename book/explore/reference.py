"""Compare the numbers of an interactive figure's script with those of its Python reference.

    python -m explore.reference NAME STATES.json

The browser's check writes the file: the states it moved the figure through, and what the page's script computed for
them. The module NAME computes the same numbers with smalltorch and torch, in float64.
"""

import json
import math
import sys
from importlib import import_module
from pathlib import Path

RTOL, ATOL = 1e-9, 1e-12


def distance(page, library) -> float:
    """The largest distance between two nested lists, as a multiple of what is allowed; inf if they differ in form."""
    if isinstance(library, list):
        if not isinstance(page, list) or len(page) != len(library):
            return math.inf
        return max(map(distance, page, library), default=0.0)
    if not isinstance(page, (int, float)) or math.isnan(page) or math.isnan(library):
        return math.inf
    return abs(page - library) / (ATOL + RTOL * abs(library))


def problems(name: str, states: list[dict]) -> list[str]:
    """What differs, one line each."""
    numbers = import_module(f"explore.{name}").numbers
    found = [] if states else [f"{name}: no states"]
    for entry in states:
        library, page = numbers(entry["state"]), entry["result"]
        if library.keys() != page.keys():
            found.append(f"{name}: the page computes {sorted(page)}, the library {sorted(library)}")
        found += [
            f"{name}: {key} is {page[key]}, by the library {value}, at {entry['state']}"
            for key, value in library.items()
            if key in page and distance(page[key], value) > 1
        ]
    return found


def main() -> None:
    name, file = sys.argv[1:]
    states = json.loads(Path(file).read_text(encoding="utf-8"))
    found = problems(name, states)
    print("\n".join(found[:20]) or f"{len(states)} states: the page's numbers are the library's")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
