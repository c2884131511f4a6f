"""Reference of a figure in `layer-norm`: the image of a vector, and its sharp norm bound after gain and shift."""

import math

import torch

from explore.draws import Numbers, normals, vector
from smalltorch.norm import layer_norm


def numbers(state: dict) -> Numbers:
    X, share = 0.3 + 1.25 * normals(8, 10, 3), max(0, state["stage"] - 2)
    gamma = 1 + share * (vector([state["gain"], 1, 0.5]) - 1)
    beta = share * vector([state["shift"], 0, 0])
    centring = torch.eye(3, dtype=torch.float64) - 1 / 3
    reached = [X, X @ centring, layer_norm(X, eps=0), layer_norm(X, gamma, beta, eps=0)]
    last = max(0, math.ceil(state["stage"]) - 1)
    tokens = reached[3] if last == 2 else torch.lerp(reached[last], reached[last + 1], state["stage"] - last)
    bound = 3**0.5 * torch.linalg.matrix_norm(gamma.diag() @ centring, 2) + beta.norm()
    return {
        "tokens": tokens.tolist(),
        "before": reached[last].tolist(),
        "gamma": gamma.tolist(),
        "beta": beta.tolist(),
        "lengths": tokens.norm(dim=1).tolist(),
        "plain": float(3**0.5 * gamma.max()),
        "bound": float(bound),
    }
