"""Reference of a figure in `extrapolation`: SmolLM2's loss by position beyond its trained length, with each remedy.

python -m explore.past      # writes what the figure has stored, from the library's table
"""

import json
from pathlib import Path

import torch

from explore.draws import Numbers
from smalltorch.experiments import past_length
from smalltorch.experiments.table import stored

REMEDIES = ("none", "interpolation", "base", "yarn", "window", "window+first")
BEGINS = {"shifted": past_length.BINS // 3}  # its first bin
WINDOWS = [(text, window) for text in past_length.TEXTS for window in (0, 1)]
TRAINED, FAR = 16, 20  # bins: 8,192 tokens, and 10,240


def losses() -> dict[str, list[list[float]]]:
    """For each remedy, and the control, a row of losses for each window of the books."""
    table = {tuple(row[key] for key in past_length.KEYS): float(row["loss"]) for row in stored("past_length")[1]}
    size = past_length.TOKENS // past_length.BINS
    return {
        remedy: [
            [table[text, str(window), remedy, str(k * size)] for k in range(BEGINS.get(remedy, 0), past_length.BINS)]
            for text, window in WINDOWS
        ]
        for remedy in (*REMEDIES, "shifted")
    }


def numbers(state: dict) -> Numbers:
    found = {remedy: torch.tensor(rows, dtype=torch.float64) for remedy, rows in losses().items()}
    chosen = slice(None) if state["window"] == 0 else slice(state["window"] - 1, state["window"])
    mean = {remedy: rows[chosen].mean(0) for remedy, rows in found.items()}
    control = torch.cat([mean["none"][:TRAINED], mean["shifted"][TRAINED - BEGINS["shifted"] :]])
    loss = mean[REMEDIES[state["remedy"]]]
    more = loss - control
    return {
        "control": control.tolist(),
        "loss": loss.tolist(),
        "more": more.tolist(),
        "within": float(more[:TRAINED].mean()),
        "next": float(more[TRAINED:FAR].mean()),
        "far": float(more[FAR:].mean()),
    }


if __name__ == "__main__":
    Path(__file__).with_suffix(".json").write_text(json.dumps(losses(), separators=(",", ":")) + "\n", encoding="utf-8")
