"""Reference of a figure in `rotary`: the score of a query and a key as a function of their relative position."""

import math

import torch

from explore.draws import Numbers
from smalltorch.position import frequencies, rotate


def numbers(state: dict) -> Numbers:
    m, furthest = state["pairs"], 200
    theta = frequencies(2 * m, float(state["base"]))
    offsets = torch.arange(-furthest, 1, dtype=torch.float64)
    q = torch.tensor([1.0] * m + [0.0] * m, dtype=torch.float64) / m**0.5
    k = rotate(q[None], -state["aim"] * theta[None])
    scores = rotate(k.expand(furthest + 1, -1).clone(), torch.outer(offsets, theta)) @ q
    seen = rotate(k, state["offset"] * theta[None])[0] * m**0.5
    return {
        "hands": torch.stack([seen[:m], seen[m:]], 1).tolist(),
        "scores": scores.tolist(),
        "score": float(scores[furthest + state["offset"]]),
        "slowest": float(theta[-1]),
        "elsewhere": float(scores[offsets != state["aim"]].max()),
        "whole": int((theta * furthest >= 2 * math.pi).sum()),
    }
