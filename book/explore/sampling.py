"""Reference of a figure in `overview`: the probabilities from which the next token is sampled."""

import numpy as np

from explore.draws import Numbers, uniforms, vector
from smalltorch.generate import probabilities

NAMED, DRAWS = 12, 10


def numbers(state: dict) -> Numbers:
    values, counts = zip(*state["stored"]["logits"], strict=True)
    logits = vector(values).repeat_interleave(vector(counts).long())
    p = probabilities(logits, state["temperature"], state["top_k"], state["top_p"])
    u = uniforms(state["seed"], DRAWS)
    return {
        "p": p[:NAMED].tolist(),
        "others": float(p[NAMED:].sum()),
        "kept": int((p > 0).sum()),
        "drawn": np.searchsorted(p.cumsum(0).numpy(), u, side="right").tolist(),
    }
