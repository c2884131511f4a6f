"""Reference of a figure in `softmax`: the Jacobian of softmax and its norm."""

import torch

from explore.draws import Numbers, vector
from smalltorch import attention


def numbers(state: dict) -> Numbers:
    p = attention.softmax(vector(state["scores"][: state["n"]]) / state["temperature"])
    jacobian = torch.func.jacrev(attention.softmax)(p.log())
    spread = max(p * (1 - p))
    return {
        "p": p.tolist(),
        "norm": float(torch.linalg.matrix_norm(jacobian, 2)),
        "lower": float(state["n"] / (state["n"] - 1) * spread),
        "upper": float(min(max(p), 2 * spread)),
    }
