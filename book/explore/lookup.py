"""Reference of a figure in `attention`: the worked example, one query among keys and its output among values."""

from explore.draws import Numbers, vector
from smalltorch import attention


def numbers(state: dict) -> Numbers:
    Q, K, V = vector([state["query"]]), vector(state["keys"]), vector(state["values"])
    scale = 2**-0.5 if state["divide"] else 1.0
    output, weights = attention.attention(Q, K, V, scale=scale)[:2]
    return {
        "scores": (scale * Q @ K.mT)[0].tolist(),
        "weights": weights[0].tolist(),
        "output": output[0].tolist(),
    }
