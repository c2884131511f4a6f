"""A small causal Transformer and linear regression forecast series whose best possible error is known.

    python -m smalltorch.experiments.forecasts --workers 1     # the whole table, half a minute of one core

Two processes: one autoregressive series for all, x_t = 1.6 x_(t-1) - 0.81 x_(t-2) + e_t, or a series of a sign of its
own, x_t = ±0.9 x_(t-1) + e_t, with e_t of variance 1; both are stationary. Two Pre-LN layers of width 16 read 31 values
and forecast each next one from the eighth on; linear regression has the eight values before, of the same series that
the Transformer was trained on. Each seed is tested on 2,000 series of its own. The table, `forecasts.csv`, has for each
process and seed the mean squared errors of both, and the variance of what they forecast.

Chapter `signals` states its contrasts.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from smalltorch.attention import causal_mask
from smalltorch.engine.sample import generator
from smalltorch.experiments import runner
from smalltorch.experiments.runner import Case, Experiment
from smalltorch.experiments.table import Row
from smalltorch.files import in_one_line
from smalltorch.models import AblationLayer
from smalltorch.norm import LayerNorm
from smalltorch.shapes import check_choice, check_integers
from smalltorch.train import train

PHI, EITHER = (1.6, -0.81), 0.9  # the factors of the values before
LENGTH, FROM, WIDTH = 32, 8, 16  # values of a series, and the first one that is to be forecast; of the states
SCALE = 3.0  # about the deviation of the series
SEEDS, BATCH, TESTED, RATE = 5, 16, 2000, 6e-3
STEPS = {"one series": 400, "either sign": 300}
NAMES = {"one series": "signals, series", "either sign": "signals, series of either sign"}
COLUMNS = ("process", "seed", "error", "linear", "variance")

Series = Float[Tensor, "size n"]


def _response(length: int, *phi: float) -> Float[Tensor, "length length"]:
    """Row t: the weights of e_0, ..., e_t in x_t."""
    H = torch.eye(length, dtype=torch.float64)
    for t in range(1, length):
        for k, factor in enumerate(phi[:t], 1):
            H[t] += factor * H[t - k]
    return H


# The values before the last ones, in which a series forgets that it began with 0, are left out.
_H, _H_EITHER = _response(LENGTH + 200, *PHI), _response(LENGTH + 100, EITHER)


def _drawn(process: str, rng: np.random.Generator, size: int) -> Series:
    H = _H if process == "one series" else _H_EITHER
    e = torch.from_numpy(rng.standard_normal((size, len(H))))
    if process == "one series":
        return (e @ H.T)[:, -LENGTH:].float()
    turns = torch.from_numpy(rng.choice([-1.0, 1.0], (size, 1))) ** torch.arange(len(H))
    return (turns * ((turns * e) @ H.T))[:, -LENGTH:].float()


class _Forecaster(nn.Module):
    """Numbers in, forecasts of the next ones out: two layers of the book's Transformer, with learnt places."""

    def __init__(self) -> None:
        super().__init__()
        self.W_in, self.P = nn.Parameter(torch.zeros(1, WIDTH)), nn.Parameter(torch.zeros(LENGTH - 1, WIDTH))
        self.layers = nn.ModuleList(AblationLayer(WIDTH, 2, 4 * WIDTH, "pre", True, True) for _ in range(2))
        self.norm, self.w_out = LayerNorm(WIDTH), nn.Parameter(torch.zeros(WIDTH))
        self.skip = nn.Parameter(torch.zeros(()))

    def forward(self, x: Series) -> Series:
        X = x[..., None] * self.W_in + self.P
        for layer in self.layers:
            X = layer(X, causal_mask(x.shape[1]))
        return self.skip * x + self.norm(X) @ self.w_out * SCALE


def _loss(predict: Callable[[Tensor], Tensor], x: Series) -> Float[Tensor, ""]:
    return (predict(x[:, :-1])[:, FROM - 1 :] - x[:, FROM:]).square().mean()


def _linear(known: Series, new: Float[Tensor, "tested n"]) -> Float[Tensor, ""]:
    """The error on new series of least squares from the values before, fitted to the known ones."""
    D, T = (x.double().unfold(1, FROM + 1, 1).flatten(0, 1) for x in (known, new))
    weights = torch.linalg.lstsq(D[:, :-1], D[:, -1:]).solution
    return (T[:, :-1] @ weights - T[:, -1:]).square().mean()


def rows(process: str, *, seeds: int, steps: int) -> Iterator[Row]:
    """The table's lines for one process.

    Raises:
        ValueError: for an unknown process, or fewer than one seed or step.
    """
    check_choice(tuple(NAMES), process=process)
    check_integers(1, seeds=seeds, steps=steps)
    name, draw = NAMES[process], partial(_drawn, process)
    run = train(_Forecaster(), _loss, partial(draw, size=BATCH), name=name, seeds=seeds, steps=steps, rate=RATE)
    for seed in range(seeds):
        rng, new = generator(f"{name}, data {seed}"), draw(generator(f"{name} to forecast, seed {seed}"), TESTED)
        known = torch.cat([draw(rng, BATCH) for _ in range(steps)])  # what this seed was trained on
        found = _loss(run.at(seed), new), _linear(known, new), new[:, FROM:].double().var()
        yield process, seed, *(f"{float(value):.6g}" for value in found)


def experiment(arguments: Sequence[str] | None = None) -> Experiment:
    """The experiment that a command asks for; the table has all of it."""
    options = runner.parser(__doc__.splitlines()[0]).parse_args(arguments)
    cases: list[Case] = [{"process": process, "seeds": SEEDS, "steps": steps} for process, steps in STEPS.items()]
    seeds = f"0 to {SEEDS - 1}; steps: {', '.join(map(str, STEPS.values()))}"
    return Experiment(__spec__.name, COLUMNS, COLUMNS[:2], cases, seeds, tolerance=2e-2, options=options)


if __name__ == "__main__":
    with in_one_line():
        runner.run(experiment())
