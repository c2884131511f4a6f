"""Prints how many calls of each callable came to what, and which of them came to no good end."""

import sys
from collections import Counter
from importlib.util import find_spec

import torch

from .judge import outcomes
from .public import is_there
from .table import ENTRIES

VERDICTS = ("agrees", "clear", "obscure", "wrong", "nan")


def row(name: str, verdicts: Counter) -> str:
    return f"| {name} | {' | '.join(str(verdicts[v] or '·') for v in VERDICTS)} |"


def main(names: list[str]) -> None:
    chosen = [e for e in ENTRIES if not names or any(name in e.name for name in names)]
    known = [e for e in chosen if is_there(e.name.partition(",")[0]) and all(map(find_spec, e.needs))]
    found = [outcome for entry in known for outcome in outcomes(entry)]
    for title, key in (("callable", "entry"), ("class", "kind")):
        print(f"| {title} | {' | '.join(VERDICTS)} |\n|{'---|' * (len(VERDICTS) + 1)}")
        for name in dict.fromkeys(getattr(o, key) for o in found):
            print(row(name, Counter(o.verdict for o in found if getattr(o, key) == name)))
        print(row("all", Counter(o.verdict for o in found)), end="\n\n")
    left_out = ", ".join(entry.name for entry in chosen if entry not in known)
    print(f"Not called, for the library or this machine lacks something: {left_out or 'none'}")
    if names:
        print(*(f"{o.entry}: {o}" for o in found if o.verdict in VERDICTS[2:]), sep="\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(sys.argv[1:])
