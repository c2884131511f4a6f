"""Reference of a figure in `logit-span`: attention matrices of a given logit range, the worst one and random ones."""

import math

import torch

from explore.draws import Numbers, random_attention, spectral_norm


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


def numbers(state: dict) -> Numbers:
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
