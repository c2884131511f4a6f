"""The communication volume of each kind of parallelism, and the idle time of a pipeline.

Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations" (2009); Huang et al.,
"GPipe" (2019); Narayanan et al., "PipeDream" (2019).
"""

from fractions import Fraction

from smalltorch.shapes import check_integers

Step = tuple[str, int]  # "F" or "B", forward or backward, and the number of the part of the batch


def share(n: int, processes: int, rank: int) -> slice:
    """The places of n things that worker `rank` has: neighbours, and as many as the others, or one more.

        >>> [share(7, 3, rank) for rank in range(3)]
        [slice(0, 3, None), slice(3, 5, None), slice(5, 7, None)]

    Chapter `parallelism`.

    Raises:
        ValueError: for a negative number, or a rank that there is not.
    """
    n, rank = check_integers(0, n=n, rank=rank)
    processes = check_integers(1, processes=processes)
    if rank >= processes:
        raise ValueError(f"rank: expected one of {processes}, from 0 on, got {rank}")
    size, more = divmod(n, processes)
    start = rank * size + min(rank, more)
    return slice(start, start + size + (rank < more))


def ring_sent(n: int, processes: int, rank: int) -> int:
    """How many of n numbers a worker sends in a ring all-reduce: all twice, but for two parts.

        >>> [ring_sent(7, 3, rank) for rank in range(3)], 2 * (3 - 1) * 7
        ([10, 9, 9], 28)

    2 n − c(r + 1) − c(r + 2) with parts of c(k) numbers; 2 (P − 1) n for all workers. Chapter `parallelism`.

    Raises:
        ValueError: as `share`.
    """
    n, rank = check_integers(0, n=n, rank=rank)
    processes = check_integers(1, processes=processes)
    if rank >= processes:
        raise ValueError(f"rank: expected one of {processes}, from 0 on, got {rank}")
    if processes == 1:
        return 0
    spared = [share(n, processes, (rank + k) % processes) for k in (1, 2)]
    return 2 * n - sum(part.stop - part.start for part in spared)


def bubble(stages: int, parts: int) -> Fraction:
    """The share of its time that each stage waits, where all steps of one kind take equally long: (P − 1)/(M + P − 1).

        >>> bubble(stages=4, parts=8)
        Fraction(3, 11)

    Chapter `parallelism`.

    Raises:
        ValueError: for no stage or no part.
    """
    stages, parts = check_integers(1, stages=stages, parts=parts)
    return Fraction(stages - 1, parts + stages - 1)


def gpipe(stages: int, stage: int, parts: int) -> list[Step]:
    """All parts forward, then all parts backward. Chapter `parallelism`.

    Raises:
        ValueError: for no part, or a stage that there is not.
    """
    _, _, parts = _pipeline(stages, stage, parts)
    return [("F", i) for i in range(parts)] + [("B", i) for i in range(parts)]


def one_f_one_b(stages: int, stage: int, parts: int) -> list[Step]:
    """1F1B: as soon as a stage has as many parts under way as stages from it to the last, one back for each forward.

        >>> one_f_one_b(2, 0, 3)
        [('F', 0), ('F', 1), ('B', 0), ('F', 2), ('B', 1), ('B', 2)]

    Chapter `parallelism`.

    Raises:
        ValueError: as `gpipe`.
    """
    stages, stage, parts = _pipeline(stages, stage, parts)
    ahead = min(parts, stages - stage)
    order = [("F", i) for i in range(ahead)]
    for i in range(parts):
        order.append(("B", i))
        if i + ahead < parts:
            order.append(("F", i + ahead))
    return order


def _pipeline(stages: int, stage: int, parts: int) -> tuple[int, int, int]:
    stages, parts = check_integers(1, stages=stages, parts=parts)
    stage = check_integers(0, stage=stage)
    if stage >= stages:
        raise ValueError(f"stage: expected one of {stages}, from 0 on, got {stage}")
    return stages, stage, parts


def earliest(orders: list[list[Step]], forward: int, backward: int) -> list[list[tuple[int, int]]]:
    """When each step of each stage begins and ends, if none waits longer than it must and messages take no time.

    A step waits for the one before it in its stage; forward for the same part in the stage before, backward for the
    same part in the stage after, and in the last stage for its own forward. Chapter `parallelism`.

    Raises:
        ValueError: for durations below 1, or orders in which a step waits for ever.
    """
    forward, backward = check_integers(1, forward=forward, backward=backward)
    last = len(orders) - 1
    ends: dict[tuple[str, int, int], int] = {}
    times: list[list[tuple[int, int]]] = [[] for _ in orders]
    while any(len(done) < len(order) for done, order in zip(times, orders, strict=True)):
        before = len(ends)
        for stage, order in enumerate(orders):
            if len(times[stage]) == len(order):
                continue
            kind, part = order[len(times[stage])]
            needed = {"F": ("F", part, stage - 1), "B": ("B", part, stage + 1)}[kind]
            if kind == "B" and stage == last:
                needed = ("F", part, stage)
            if needed not in ends and not (kind == "F" and stage == 0):
                continue
            begin = max(ends.get(needed, 0), times[stage][-1][1] if times[stage] else 0)
            end = begin + (forward if kind == "F" else backward)
            times[stage].append((begin, end))
            ends[kind, part, stage] = end
        if len(ends) == before:
            raise ValueError("orders: expected steps that can be done, got one that waits for ever")
    return times
