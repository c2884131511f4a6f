"""Hold the numbers of the figures that move against the library.

    explorables.py STATES.json

`web/explorables.mjs` writes the file: the states it moved each figure through, and what the page's script computed for
them. Here the same numbers come from smalltorch and torch, in float64.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import torch

import exploreext
from smalltorch import attention, collapse
from smalltorch.norm import layer_norm
from smalltorch.spectral import uniform_causal

ROOT = Path(__file__).resolve().parents[2]
RTOL, ATOL = 1e-9, 1e-12

Numbers = dict[str, float | list]


def vector(values: list) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def normals(seed: int, *shape: int) -> torch.Tensor:
    """The numbers that `normals(seed)` of numbers.js gives one after the other (mulberry32, Box and Muller)."""
    count = 2 * math.prod(shape)
    a = (np.arange(1, count + 1, dtype=np.uint64) * 0x6D2B79F5 + seed).astype(np.uint32)
    t = (a ^ (a >> np.uint32(15))) * (a | np.uint32(1))
    t ^= t + (t ^ (t >> np.uint32(7))) * (t | np.uint32(61))
    uniform = ((t ^ (t >> np.uint32(14))) / 2**32).reshape(*shape, 2)
    return torch.from_numpy(np.sqrt(-2 * np.log(1 - uniform[..., 0])) * np.cos(2 * np.pi * uniform[..., 1]))


def softmax(state: dict) -> Numbers:
    """Chapter `softmax`: the Jacobian of softmax and its norm."""
    p = attention.softmax(vector(state["scores"][: state["n"]]) / state["temperature"])
    jacobian = torch.func.jacrev(attention.softmax)(p.log())
    spread = max(p * (1 - p))
    return {
        "p": p.tolist(),
        "norm": float(torch.linalg.matrix_norm(jacobian, 2)),
        "lower": float(state["n"] / (state["n"] - 1) * spread),
        "upper": float(min(max(p), 2 * spread)),
    }


def spectral_norm(A: torch.Tensor) -> float:
    return float(torch.linalg.matrix_norm(A, 2))


def random_attention(seed: int, draws: int, n: int, span: float, causal: bool) -> list[torch.Tensor]:
    """Attention of random queries and keys, scaled so that the largest span of a row of logits is `span`."""
    mask = attention.causal_mask(n) if causal else torch.ones(n, n, dtype=torch.bool)
    found = []
    for tokens in normals(seed, draws, n, 2, 4):
        Q, K = tokens.unbind(1)
        S = Q @ K.mT
        spans = S.masked_fill(~mask, -math.inf).amax(-1) - S.masked_fill(~mask, math.inf).amin(-1)
        found.append(attention.attention(Q, K, K, mask, scale=float(span / spans.max()))[1])
    return found


def favouring(lengths: torch.Tensor, t: float, causal: bool) -> torch.Tensor:
    """Row i gives weight t to its first lengths[i] tokens, 1 to the others."""
    weights = torch.ones(len(lengths), len(lengths), dtype=torch.float64)
    weights[torch.arange(len(lengths)) < lengths[:, None]] = t
    weights = weights.tril() if causal else weights
    return weights / weights.sum(-1, keepdim=True)


def worst_causal(n: int, t: float) -> tuple[float, torch.Tensor]:
    """Norm and prefixes of the best of three climbs, with all means of all prefixes; chapter `logit-span`."""
    rows, found = torch.arange(1, n + 1, dtype=torch.float64), []
    for power in (0.4, 0.6, 2):
        x = rows**-power
        for _ in range(100):
            P = x.cumsum(0)
            means = (P[:, None] + (t - 1) * P) / (rows[:, None] + (t - 1) * rows)
            largest = means.masked_fill(rows > rows[:, None], 0).amax(-1)
            lengths = ((x > largest[:, None]) & (rows < rows[:, None])).sum(-1).clamp(min=1)
            A = favouring(lengths, t, causal=True)
            x = A.mT @ (A @ x)
        found.append((spectral_norm(A), lengths))
    return max(found, key=lambda climb: climb[0])


def span(state: dict) -> Numbers:
    """Chapter `logit-span`: the worst attention of a span, and random ones."""
    n, Delta, causal = state["n"], state["Delta"], state["causal"]
    if causal:
        worst, lengths = worst_causal(n, math.exp(Delta))
    else:
        rows = torch.stack([favouring(torch.tensor([k] * n), math.exp(Delta), causal)[0] for k in range(1, n + 1)])
        lengths = (rows.norm(dim=-1).argmax() + 1).expand(n)
        worst = spectral_norm(favouring(lengths, math.exp(Delta), causal))
    random = random_attention(state["seed"], 3, n, Delta, causal)
    return {
        "random": [spectral_norm(A) for A in random],
        "worst": worst,
        "favoured": lengths.tolist(),
        "cosh": math.cosh(Delta / 2),
        "hardy": 1 + math.exp(Delta / 2),
        "notes": math.sqrt(n / (1 + (n - 1) * math.exp(-Delta))),
    }


def large_norm(A: torch.Tensor) -> float:
    """By the power method where a decomposition takes too long; there the first singular value stands apart."""
    if len(A) <= 256:
        return spectral_norm(A)
    v = torch.ones(len(A), dtype=torch.float64)
    for _ in range(100):
        v = A.mT @ (A @ v)
        v /= v.norm()
    return float((A @ v).norm())


@cache
def uniform_norm(n: int) -> float:
    return large_norm(uniform_causal(n))


def cesaro(state: dict) -> Numbers:
    """Chapter `causal`: Hardy's inequality with a rate, and a sink forces the norm."""
    n, share = state["n"], state["share"]
    A = (1 - share) * (torch.eye(n, dtype=torch.float64) if state["own"] else uniform_causal(n))
    A[:, 0] += share
    H, s = float((1 / torch.arange(1, n + 1, dtype=torch.float64)).sum()), float(A[1:, 0].mean())
    return {
        "uniform": [uniform_norm(2**e) for e in range(1, n.bit_length())],
        "lower": math.sqrt(4 * H / (H + 4)),
        "upper": math.sqrt(4 - 8 / ((H + 1) ** 2 + 1)),
        "s": s,
        "norm": large_norm(A),
        "floor": (s * math.sqrt(n) + math.sqrt(n * s**2 + 4 * (1 - s))) / 2,
    }


def product(state: dict) -> Numbers:
    """Chapter `products`: products of attention matrices, and what they forget."""
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


def circle(state: dict) -> Numbers:
    """Chapters `cubic-law` and `skips-and-mlps`: collapse from a circle, in logarithms, mean and residual apart."""
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


def sphere(state: dict) -> Numbers:
    """Chapter `layer-norm`: where it sends a vector, and the sharp bound on its length behind gain and shift."""
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


def width(state: dict) -> Numbers:
    """Chapter `scaling`: the variance of a dot product, and what the softmax makes of it."""
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


REFERENCES: dict[str, Callable[[dict], Numbers]] = {
    "softmax": softmax,
    "width": width,
    "sphere": sphere,
    "span": span,
    "cesaro": cesaro,
    "product": product,
    "circle": circle,
}


def distance(page, library) -> float:
    """The largest distance between two nested lists, as a multiple of what is allowed; inf if they differ in form."""
    if isinstance(library, list):
        if not isinstance(page, list) or len(page) != len(library):
            return math.inf
        return max(map(distance, page, library), default=0.0)
    if not isinstance(page, (int, float)) or math.isnan(page) or math.isnan(library):
        return math.inf
    return abs(page - library) / (ATOL + RTOL * abs(library))


def problems(states: list[dict], names: list[str]) -> list[str]:
    """What differs, one line each; `names` are the figures that there must be."""
    found = [f"{name}: no states" for name in names if not any(entry["name"] == name for entry in states)]
    found += [f"{name}: no reference in explorables.py" for name in names if name not in REFERENCES]
    for entry in states:
        if entry["name"] not in REFERENCES:
            continue
        library = REFERENCES[entry["name"]](entry["state"])
        if library.keys() != entry["result"].keys():
            found.append(f"{entry['name']}: the page computes {sorted(entry['result'])}, the library {sorted(library)}")
        found += [
            f"{entry['name']}: {key} is {entry['result'][key]}, by the library {value}, at {entry['state']}"
            for key, value in library.items()
            if key in entry["result"] and distance(entry["result"][key], value) > 1
        ]
    return found


def main() -> None:
    states = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    found = problems(states, [one.name for one in exploreext.read(ROOT)])
    print("\n".join(found[:20]) or f"{len(states)} states: the pages' numbers are the library's")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
