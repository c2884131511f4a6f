"""Four ways of mixing tokens, trained to recall: softmax attention, random features, a Fourier transform, a mean.

    python -m smalltorch.experiments.recall     # the whole table, half a minute of one core

Small encoders read eight pairs of a name and a value, each pair in one token, and then one of the names; they answer
with its value. Who guesses pays log 16. All have two Pre-LN blocks of width 16 and differ in what mixes the tokens; the
features are 32 positive ones with orthogonal rows that stay as drawn, and the Fourier transform and the mean have no
queries, keys and values. The table, `recall.csv`, has for each way and seed the loss on 1,000 held-out texts, in nats.

Chapter `kernels` states its contrasts.
"""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from smalltorch.attention import attention
from smalltorch.block import FFN
from smalltorch.efficient.kernels import fourier_mix, kernel_attention, orthogonal_rows
from smalltorch.engine.sample import generator
from smalltorch.experiments import runner
from smalltorch.experiments.runner import Case, Experiment
from smalltorch.experiments.table import Row
from smalltorch.files import in_one_line
from smalltorch.norm import LayerNorm
from smalltorch.shapes import check_choice, check_integers
from smalltorch.train import cross_entropy, train

PAIRS, NAMES, WIDTH, ROWS = 8, 16, 16, 32  # to be recalled; names, and values, to draw from; features
SEEDS, STEPS, RATE, BATCH = 5, 300, 1e-2, 32
WAYS = ("softmax", "features", "Fourier transform", "mean of all tokens")
COLUMNS = ("way", "seed", "loss")
DRAWN = orthogonal_rows(ROWS, WIDTH, generator("rows for recall"))


class _Recall(nn.Module):
    """Two Pre-LN blocks around a way of mixing; the last token asks."""

    def __init__(self, way: str):
        super().__init__()
        self.way = way
        self.E, self.W_U = nn.Parameter(torch.zeros(2 * NAMES + 1, WIDTH)), nn.Parameter(torch.zeros(WIDTH, NAMES))
        names = ("W_Q", "W_K", "W_V", "W_O") if way in ("softmax", "features") else ()
        heads = [{name: nn.Parameter(torch.zeros(WIDTH, WIDTH)) for name in names} for _ in range(2 if names else 0)]
        self.heads = nn.ModuleList(map(nn.ParameterDict, heads))
        self.norms = nn.ModuleList(LayerNorm(WIDTH) for _ in range(4))
        self.ffn = nn.ModuleList(FFN(WIDTH, 4 * WIDTH) for _ in range(2))

    def mixed(self, Y: Float[Tensor, "*batch n d"], block: int) -> Float[Tensor, "*batch n_or_one d"]:
        if self.way == "Fourier transform":
            return fourier_mix(Y) / math.sqrt(Y.shape[-2] * WIDTH)
        if self.way == "mean of all tokens":
            return Y.mean(-2, keepdim=True)
        W_Q, W_K, W_V, W_O = (self.heads[block][name] for name in ("W_Q", "W_K", "W_V", "W_O"))  # type: ignore[index]
        if self.way == "softmax":
            return attention(Y @ W_Q, Y @ W_K, Y @ W_V)[0] @ W_O
        return kernel_attention(Y @ W_Q / WIDTH**0.25, Y @ W_K / WIDTH**0.25, Y @ W_V, DRAWN) @ W_O

    def forward(self, tokens: Int[Tensor, "*batch n two"]) -> Float[Tensor, "*batch value"]:
        X = self.E[tokens].sum(-2)  # a name and a value in each token
        for block in range(2):
            X = X + self.mixed(self.norms[2 * block](X), block)
            X = X + self.ffn[block](self.norms[2 * block + 1](X))
        return X[..., -1, :] @ self.W_U


def _texts(rng: np.random.Generator, size: int) -> tuple[Int[Tensor, "size n two"], Int[Tensor, " size"]]:
    """Eight pairs and the name that is asked for, beside which stands a token of its own; and the value."""
    names = rng.permuted(np.tile(np.arange(NAMES), (size, 1)), axis=1)[:, :PAIRS]
    values = rng.integers(0, NAMES, (size, PAIRS))
    asked = np.arange(size), rng.integers(0, PAIRS, size)
    last = np.stack([names[asked], np.full(size, 2 * NAMES)], -1)[:, None]
    pairs = np.stack([names, NAMES + values], -1)
    return torch.from_numpy(np.concatenate([pairs, last], 1)), torch.from_numpy(values[asked])


def _loss(predict: Callable[[Tensor], Tensor], tokens: Tensor, value: Tensor) -> Tensor:
    return cross_entropy(predict(tokens), value)


def rows(way: str, *, seeds: int, steps: int = STEPS) -> Iterator[Row]:
    """The table's lines for one way.

    Raises:
        ValueError: for an unknown way, or fewer than one seed or step.
    """
    check_choice(WAYS, way=way)
    check_integers(1, seeds=seeds, steps=steps)
    run = train(_Recall(way), _loss, lambda rng: _texts(rng, BATCH), name=f"recall, {way}", seeds=seeds, steps=steps,
                rate=RATE)  # fmt: skip
    for seed, loss in enumerate(run.evaluate(_loss, *_texts(generator("pairs to be recalled"), 1000)).tolist()):
        yield way, seed, f"{loss:.6g}"


def experiment(arguments: Sequence[str] | None = None) -> Experiment:
    """The experiment that a command asks for; the table has all of it."""
    options = runner.parser(__doc__.splitlines()[0]).parse_args(arguments)
    cases: list[Case] = [{"way": way, "seeds": SEEDS} for way in WAYS]
    seeds = f"0 to {SEEDS - 1}; steps: {STEPS}"
    return Experiment(__spec__.name, COLUMNS, COLUMNS[:2], cases, seeds, tolerance=5e-2, options=options)


if __name__ == "__main__":
    with in_one_line():
        runner.run(experiment())
