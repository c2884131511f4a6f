"""Reference of a figure in `products`: products of attention matrices, their norms, and how alike their rows become."""

import math

import torch

from explore.draws import Numbers, random_attention, spectral_norm


def numbers(state: dict) -> Numbers:
    n, L, Delta, causal = 16, state["L"], state["Delta"], state["causal"]
    layers = random_attention(state["seed"], L, n, Delta, causal)
    products = [layers[0]]
    for A in layers[1:]:
        products.append(A @ products[-1])
    P = products[-1]
    off_first = (n - 1) * torch.sigmoid(torch.tensor(Delta, dtype=torch.float64)) ** torch.arange(L + 1)
    return {
        "ofNorms": torch.tensor([spectral_norm(A) for A in layers], dtype=torch.float64).cumprod(0).tolist(),
        "ofProduct": [spectral_norm(P) for P in products],
        "P": P.tolist(),
        "lower": (n * (1 - off_first[1:])).clamp(min=1).sqrt().tolist() if causal else [1] * L,
        "left": float(P[:, 1:].sum(-1).max() if causal else (P.amax(0) - P.amin(0)).max()),
        "promised": float(off_first[-1]) if causal else (1 - math.exp(-Delta)) ** L,
    }
