"""Reference of a figure in `cubic-law` and `skips-and-mlps`: rank collapse of tokens on a circle, in logarithms."""

import math

import torch

from explore.draws import Numbers, vector
from smalltorch import collapse


def numbers(state: dict) -> Numbers:
    w, v, depth, floor = 1, 2, 20, math.log(1e-30)
    C, n, start, turn = w * v / 4, state["n"], state["start"], math.radians(state["turn"])
    angle = 2 * math.pi / n * torch.arange(n, dtype=torch.float64)
    polygon = torch.stack([(angle + 0.5).cos(), (angle + 0.5).sin()], 1)
    W_QK = w * torch.eye(2, dtype=torch.float64)[None]
    cos, sin = v * math.cos(turn), v * math.sin(turn)
    W_VO = vector([[[cos, sin], [-sin, cos]]])
    states, logs = [collapse.split(start / collapse.spread(polygon) * polygon)], [math.log(start)]
    while len(states) <= depth and logs[-1] >= floor:
        after = collapse.attend(states[-1], W_QK, W_VO)
        after = collapse.add(states[-1], after) if state["skip"] else after
        states.append(after._replace(mean=0 * after.mean))  # 0 by symmetry; its rounding would grow threefold a layer
        logs.append(float(states[-1].log_scale + collapse.spread(states[-1].direction).log()))
    kept = [log for log in logs if log >= floor]

    upper, lower = [], []
    if state["skip"]:
        held = next((L for L, log in enumerate(kept) if 3 * C * math.exp(2 * log) > 1), len(kept) - 1)
        lower = [start / math.sqrt(1 + 4 * L * C * start**2) for L in range(held + 1)]
    else:
        upper = [math.log(start)]
        while len(upper) <= depth and upper[-1] >= floor:
            upper.append(upper[-1] + math.log(v * math.tanh(w * math.exp(2 * upper[-1]) / 4)))
    return {
        "tokens": [collapse.join(X).tolist() for X in states[: len(kept)]],
        "digits": [log / math.log(10) for log in kept],
        "upper": [log / math.log(10) for log in upper if log >= floor],
        "lower": lower,
    }
