"""Reference of a figure in `scaling`: the variance of a dot product, and its effect on the softmax."""

import torch

from explore.draws import Numbers, normals
from smalltorch import attention


def numbers(state: dict) -> Numbers:
    rho, d_h = state["rho"], state["width"]
    drawn = normals(state["seed"], 16 + 16, 1025)  # the first of each vector is what its features share
    Q, K = ((1 - rho) ** 0.5 * drawn[:, 1:] + rho**0.5 * drawn[:, :1]).split(16)
    power = 0.5 if state["divide"] else 0
    S = {wide: Q[:, :wide] @ K[:, :wide].mT / wide**power for wide in (2**e for e in range(11))}
    p = attention.attention(Q[:1, :d_h], K[:, :d_h], K[:, :1], scale=None if state["divide"] else 1.0)[1][0]
    covariance = (1 - rho) * torch.eye(d_h, dtype=torch.float64) + rho
    return {
        "logits": torch.stack([products[0] for products in S.values()], 1).tolist(),
        "weights": p.tolist(),
        "largest": float(p.max()),
        "read": float(torch.special.entr(p).sum().exp()),
        "measured": float(S[d_h].std()),
        "expected": float(covariance.square().sum().sqrt()) / d_h**power,
    }
