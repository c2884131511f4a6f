"""Reference of a figure in `sparse`: layers until a message reaches each of 48 tokens, by sparsity pattern."""

from explore.draws import Numbers
from smalltorch.efficient.sparse import global_mask, hops, window_mask

TOKENS = 48


def numbers(state: dict) -> Numbers:
    mask = window_mask(TOKENS, state["window"], state["gap"]) | global_mask(TOKENS, state["everywhere"])
    heard = hops(mask, state["source"])
    met = heard.isfinite()
    return {
        "mask": mask.int().tolist(),
        "heard": [int(layer) if layer < TOKENS else -1 for layer in heard.tolist()],
        "keys": int(mask[TOKENS // 2].sum()),
        "pairs": float(mask.double().mean()),
        "by": int((heard <= state["layers"]).sum()),
        "last": int(heard[met].max()),
        "never": int((~met).sum()),
    }
