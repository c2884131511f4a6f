"""Reference of a figure in `extrapolation`: attention of a RoPE head beyond its trained length, with each remedy."""

import math

import torch

from explore.draws import Numbers
from smalltorch.position import dynamic_ntk, frequencies, linear_scaling, rotate, yarn

D_H, BASE, TRAINED = 32, 10_000.0, 512


def numbers(state: dict) -> Numbers:
    times, aim = float(state["times"]), state["aim"]
    own = frequencies(D_H, BASE)
    theta = [
        own,
        linear_scaling(D_H, BASE, times)[0],
        dynamic_ntk(D_H, BASE, 1.0, TRAINED, int(times) * TRAINED)[0],
        yarn(D_H, BASE, times, TRAINED)[0],
    ][state["remedy"]]
    scores, before = _scores(theta, aim), _scores(own, aim)
    met, now = own * (TRAINED - 1), theta * (TRAINED - 1) * times
    return {
        "scores": scores.tolist(),
        "own": before.tolist(),
        "lead": float(1 - scores[aim + 1]),
        "before": float(1 - before[aim - 1]),
        "trained": (met / (2 * math.pi)).tolist(),
        "turns": (now / (2 * math.pi)).tolist(),
        "unmet": int(((now > met * (1 + 1e-9)) & (met < 2 * math.pi)).sum()),
    }


def _scores(theta: torch.Tensor, aim: int) -> torch.Tensor:
    """At the distances 0 to 60, of a query and a key whose pairs have one length and meet at the distance `aim`."""
    q = torch.tensor([1.0] * len(theta) + [0.0] * len(theta), dtype=torch.float64) / len(theta) ** 0.5
    k = rotate(q[None], aim * theta[None])
    distances = torch.arange(61, dtype=torch.float64)
    return rotate(k.expand(61, -1).clone(), -torch.outer(distances, theta)) @ q
