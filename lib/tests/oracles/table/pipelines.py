"""parallel.volume."""

import numpy as np

from smalltorch.parallel import volume

from ..judge import Entry, Outside
from ..kinds import Count, Other


def places(n, processes, rank):
    if rank >= processes:
        raise Outside("one of the workers")
    parts = np.array_split(np.arange(n), processes)
    start = sum(len(part) for part in parts[:rank])
    return start, start + len(parts[rank])


def sent(n, processes, rank):
    """Round by round."""
    sizes = [stop - start for start, stop in (places(n, processes, k) for k in range(processes))]
    if rank >= processes:
        raise Outside("one of the workers")
    return sum(sizes[(rank - turn) % processes] for turn in range(2 * (processes - 1)))


def forward_then_back(stages, stage, parts):
    if not 0 <= stage < stages or parts < 1:
        raise Outside("a stage, and a part")
    return [(kind, part) for kind in "FB" for part in range(parts)]


def alternating(stages, stage, parts):
    """Forward while there are parts, and fewer under way than stages to come; else back."""
    forward_then_back(stages, stage, parts)
    order, done, back = [], 0, 0
    while back < parts:
        if done < parts and done - back < stages - stage:
            order.append(("F", done))
            done += 1
        else:
            order.append(("B", back))
            back += 1
    return order


def all_forward(forward, backward):
    """Two stages and two parts, forward and then backward, by hand."""
    f, b = forward, backward
    last = [(f, 2 * f), (2 * f, 3 * f), (3 * f, 3 * f + b), (3 * f + b, 3 * f + 2 * b)]
    return [[(0, f), (f, 2 * f), (3 * f + b, 3 * f + 2 * b), (3 * f + 2 * b, 3 * f + 3 * b)], last]


STAGE = {"stages": Count(3), "stage": Count(1, least=0), "parts": Count(4)}
RANK = {"n": Count(7, least=0), "processes": Count(3), "rank": Count(1, least=0)}
ORDERS = Other("the steps of each stage", lambda given: [volume.gpipe(2, stage, 2) for stage in range(2)], types=False)

ENTRIES = [
    Entry(
        "parallel.volume.share",
        lambda n, processes, rank: (lambda own: (own.start, own.stop))(volume.share(n, processes, rank)),
        places,
        RANK,
    ),
    Entry("parallel.volume.ring_sent", lambda n, processes, rank: volume.ring_sent(n, processes, rank), sent, RANK),
    Entry(
        "parallel.volume.bubble",
        lambda stages, parts: float(volume.bubble(stages, parts)),
        lambda stages, parts: (stages - 1) / (parts + stages - 1),
        {"stages": Count(4), "parts": Count(8)},
    ),
    Entry("parallel.volume.gpipe", lambda **a: volume.gpipe(**a), forward_then_back, STAGE),
    Entry("parallel.volume.one_f_one_b", lambda **a: volume.one_f_one_b(**a), alternating, STAGE),
    Entry(
        "parallel.volume.earliest",
        lambda orders, forward, backward: volume.earliest(orders, forward, backward),
        lambda orders, forward, backward: all_forward(forward, backward),
        {"orders": ORDERS, "forward": Count(2), "backward": Count(3)},
    ),
]
