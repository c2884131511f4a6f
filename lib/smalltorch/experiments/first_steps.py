"""The first steps of training, for four placements of the norm: what changes before a stack fails to learn?

    python -m smalltorch.experiments.first_steps                    # the whole table, about 15 minutes on one core
    python -m smalltorch.experiments.first_steps --layers 6 --rates 1e-2 --seeds 2 --out again.csv

Post-LN, Pre-LN, B2T and DeepNorm learn the same source with the same optimiser, from the same initial weights (but
DeepNorm's are smaller, as it must be) and on the same data, seed by seed. The source is a Markov chain of order 2: what
lies between its entropy rate and what a chain of order 1 can reach is won by attention only. The optimiser is Adam; the
rate rises linearly for `warmup` steps, or begins with its full value, and then falls linearly to 0.

The table, `first_steps.csv`, has a line for each depth, placement, rate, warm-up, seed and moment (the number of steps
taken). Its columns, all on the same 32 held-out sequences of 16 tokens:

    excess    loss above the source's own, in nats
    gradient  log10 of the gradient's length at the input of the first block, over that at the input of the last
    moved     how far the normalised last states have moved since the start: root mean square over tokens and features
    common    share of the square of that movement which all tokens of a sequence have in common
    alike     share of the squared length of the last states that all tokens of a sequence have in common
    sharp     the Hessian's largest eigenvalue, by ten steps of Lanczos on the first half of the sequences
              (not taken after one step, where the column has 0)

`STATED` has the contrasts of the chapter, with their thresholds, as they stood before the table was made; models of
other seeds (101 to 103) had been looked at.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.func import functional_call, vmap

from smalltorch.attention import MultiHead, causal_mask
from smalltorch.block import B2T, FFN, DeepNorm, PostLN, PreLN, deepnorm_scales
from smalltorch.curvature import largest_eigenvalue
from smalltorch.engine.sample import generator
from smalltorch.experiments import runner
from smalltorch.experiments.runner import Experiment
from smalltorch.experiments.table import Row
from smalltorch.files import in_one_line
from smalltorch.norm import LayerNorm
from smalltorch.shapes import check_choice, check_integers, check_numbers
from smalltorch.source import markov
from smalltorch.train import initial, next_token_loss

SOURCE = markov("first steps", vocabulary=4, order=2)
N, BATCH, WIDTH, HEADS, STEPS = 16, 16, 16, 4, 150
HELD_OUT = SOURCE.sample(generator("first steps, held out"), 32, N + 1)
WARMUP = 50
PLACES = ("post", "pre", "b2t", "deepnorm")
WAYS = {  # rate and warm-up, and the depths that are trained so
    (1e-3, 0): (6,),
    (3e-3, 0): (6, 12, 18),
    (1e-2, 0): (6,),
    (1e-2, WARMUP): (6,),
    (3e-3, WARMUP): (18,),
}
STATED = {  # of six seeds; rate 0.003 and no warm-up unless said otherwise
    "before training, 18 layers, Post-LN: log10 of the gradient, first block over last": {"above": -0.7},
    "after ten steps, 18 layers, Post-LN: the same": {"below": -1},
    "after ten steps, 18 layers, Pre-LN: the same": {"above": -0.5},
    "after ten steps, 18 layers, DeepNorm: the same": {"above": -0.5},
    "before training, 18 layers, Post-LN: share that tokens have in common": {"above": 0.95},
    "before training, 18 layers, DeepNorm: the same": {"below": 0.5},
    "before training, 6 layers, Post-LN: the same": {"below": 0.9},
    "rate 0.01, after ten steps, 6 layers, Post-LN: the same": {"above": 0.95},
    "rate 0.01, after ten steps, 6 layers, Pre-LN: the same": {"below": 0.8},
    "rate 0.01, after ten steps, 6 layers, B2T: the same": {"below": 0.8},
    "first step, 6 layers: Post-LN moves, over Pre-LN": {"above": 1.3},
    "first step, 6 layers: B2T moves, over Post-LN": {"below": 0.8},
    "first step, 18 layers, DeepNorm moves": {"below": 0.4},
    "first step, 18 layers, DeepNorm moves, over 6 layers": {"above": 0.7, "below": 1.6},
    "rate 0.01, first step, 6 layers, Pre-LN moves": {"above": 0.7},
    "rate 0.01 with warm-up, first step, 6 layers, Post-LN moves": {"below": 0.3},
    "before training, 12 layers: log10 of sharpness, Post-LN over Pre-LN": {"above": 0.2},
    "before training, 12 layers: log10 of sharpness, DeepNorm over Pre-LN": {"below": 0},
    "after ten steps, 12 layers, Post-LN: log10 of sharpness, over that before": {"below": 0},
    "after ten steps, 12 layers: log10 of sharpness, Post-LN over Pre-LN": {"above": -0.3, "below": 0.4},
    "at the end, 18 layers, Post-LN: excess": {"above": 0.33},
    "with warm-up, at the end, 18 layers, Post-LN: excess": {"above": 0.3},
    "at the end, 18 layers, Pre-LN: excess": {"below": 0.3},
    "at the end, 18 layers, DeepNorm: excess": {"below": 0.3},
    "with warm-up, at the end, 18 layers, B2T: excess": {"below": 0.3},
    "rate 0.01, at the end, 6 layers: excess with warm-up less without, Post-LN": {"below": 0},
    "rate 0.01, at the end, 6 layers, Pre-LN: excess": {"below": 0.25},
    "at the end, 6 layers: excess, Post-LN less Pre-LN": {"above": -0.06, "below": 0.06},
    "at the end, 12 layers: excess, B2T less Post-LN": {"below": 0},
    "at the end, 18 layers: excess, B2T less Pre-LN": {"below": 0.1},
}
COLUMNS = (
    "layers",
    "place",
    "rate",
    "warmup",
    "seed",
    "moment",
    "excess",
    "gradient",
    "moved",
    "common",
    "alike",
    "sharp",
)
KEYS = COLUMNS[:6]


class _Stack(nn.Module):
    """E[tokens] + P[:n], causal blocks of one placement, a last norm under Pre-LN, and X W_U."""

    def __init__(self, layers: int, place: str):
        super().__init__()
        check_choice(PLACES, place=place)
        self.E, self.P = nn.Parameter(torch.zeros(SOURCE.vocabulary, WIDTH)), nn.Parameter(torch.zeros(N, WIDTH))
        self.blocks = nn.ModuleList(_block(layers, place) for _ in range(layers))
        self.norm = LayerNorm(WIDTH) if place == "pre" else nn.Identity()
        self.W_U = nn.Parameter(torch.zeros(WIDTH, SOURCE.vocabulary))

    def between(self, tokens: Int[Tensor, "batch n"], shift: Tensor | None = None) -> list[Float[Tensor, "batch n d"]]:
        """The states at the input of each block, and after the last norm."""
        X = self.E[tokens] + self.P[: tokens.shape[1]]
        found, mask = [], causal_mask(tokens.shape[1])
        for k, block in enumerate(self.blocks):
            X = X if shift is None else X + shift[k]
            found.append(X)
            X = block(X, mask)
        return [*found, self.norm(X)]

    def forward(
        self, tokens: Int[Tensor, "batch n"], shift: Tensor | None = None
    ) -> Float[Tensor, "batch n vocabulary"]:
        return self.between(tokens, shift)[-1] @ self.W_U


def _block(layers: int, place: str) -> nn.Module:
    parts = MultiHead(WIDTH, HEADS), FFN(WIDTH, 4 * WIDTH), LayerNorm(WIDTH), LayerNorm(WIDTH)
    if place == "deepnorm":
        return DeepNorm(*parts, deepnorm_scales(layers).alpha)
    return {"post": PostLN, "pre": PreLN, "b2t": B2T}[place](*parts)


def _start(layers: int, place: str, rng: np.random.Generator) -> Mapping[str, Tensor]:
    """The usual initial weights; DeepNorm's W_V, W_O, W_1 and W_2 times its beta."""
    drawn = initial(_Stack(layers, place), rng)
    if place != "deepnorm":
        return drawn
    beta = deepnorm_scales(layers).beta
    return {name: W * beta if name.endswith(("W_V", "W_O", "W_1", "W_2")) else W for name, W in drawn.items()}


def _rate_at(step: int, rate: float, warmup: int, steps: int = STEPS) -> float:
    """Linearly up for `warmup` steps, the first of which is not 0, and then linearly down to 0."""
    return rate * min((step + 1) / (warmup + 1), (steps - step) / (steps - warmup))


class _Course:
    """All seeds of one case, on their way."""

    def __init__(self, layers: int, place: str, seeds: Sequence[int]):
        name = f"first steps, {layers} layers"
        self.model = _Stack(layers, place)
        drawn = [_start(layers, place, generator(f"{name}, weights {seed}")) for seed in seeds]
        self.parameters = {key: torch.stack([p[key] for p in drawn]).requires_grad_() for key in drawn[0]}
        self.data = [generator(f"{name}, data {seed}") for seed in seeds]
        self.seeds = seeds
        self.first = self.last_states()

    def losses(self, tokens: Int[Tensor, "seed batch n"], shift: Tensor | None = None) -> Float[Tensor, " seed"]:
        def one(parameters: dict[str, Tensor], tokens: Tensor, *shift: Tensor) -> Tensor:
            return next_token_loss(lambda read: functional_call(self.model, parameters, (read, *shift)), tokens)

        return vmap(one)(self.parameters, tokens, *(() if shift is None else (shift,)))

    def everywhere(self, tokens: Int[Tensor, "batch n"]) -> Int[Tensor, "seed batch n"]:
        return tokens.expand(len(self.seeds), *tokens.shape)

    @torch.no_grad()
    def last_states(self) -> Float[Tensor, "seed batch n d"]:
        def one(parameters: dict[str, Tensor]) -> Tensor:
            named = {f"stack.{key}": W for key, W in parameters.items()}
            return functional_call(_Last(self.model), named, (HELD_OUT[:, :-1],))

        return vmap(one)(self.parameters)

    def gradients(self) -> Float[Tensor, "seed block"]:
        """Lengths of the loss's gradient at the input of each block."""
        held = self.everywhere(HELD_OUT)
        shape = len(self.seeds), len(self.model.blocks), len(HELD_OUT), N, WIDTH
        shift = torch.zeros(shape, dtype=torch.float64, requires_grad=True)
        [found] = torch.autograd.grad(self.losses(held, shift).sum(), shift)
        return found.flatten(2).norm(dim=2)

    def sharpness(self, steps: int = 10) -> Float[Tensor, " seed"]:
        weights = list(self.parameters.values())
        losses = self.losses(self.everywhere(HELD_OUT[: len(HELD_OUT) // 2]))
        gradient = _flat(torch.autograd.grad(losses.sum(), weights, create_graph=True))

        def product(V: Tensor) -> Tensor:
            return _flat(torch.autograd.grad(gradient, weights, V, retain_graph=True))

        size = sum(W[0].numel() for W in weights)
        v = torch.from_numpy(generator("first steps, Lanczos").standard_normal(size)).expand(len(self.seeds), size)
        return largest_eigenvalue(product, v, steps)

    def measured(self, sharp: bool = True) -> Float[Tensor, "quantity seed"]:
        with torch.no_grad():
            excess = self.losses(self.everywhere(HELD_OUT)) - SOURCE.surprise(HELD_OUT)[:, 1:].mean()
        lengths, X = self.gradients(), self.last_states()
        moved = (X - self.first).square().mean((1, 2, 3)).sqrt()
        sharpness = self.sharpness() if sharp else torch.zeros_like(excess)
        ratio = (lengths[:, 0] / lengths[:, -1]).log10()
        return torch.stack([excess, ratio, moved, _shared(X - self.first), _shared(X), sharpness])

    def optimiser(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(list(self.parameters.values()))

    def step(self, optimiser: torch.optim.Optimizer, rate: float) -> None:
        """One step of the optimiser on fresh data; seeds share no parameter."""
        optimiser.param_groups[0]["lr"] = rate
        optimiser.zero_grad()
        self.losses(torch.stack([SOURCE.sample(rng, BATCH, N + 1) for rng in self.data])).sum().backward()
        optimiser.step()


def _shared(X: Float[Tensor, "seed batch n d"]) -> Float[Tensor, " seed"]:
    """The share of the squared length that the tokens of a sequence have in common; 0 of nothing."""
    whole = X.square().sum((1, 2, 3))
    return X.shape[2] * X.mean(2).square().sum((1, 2)) / whole.masked_fill(whole == 0, 1)


def _flat(parts: Sequence[Tensor]) -> Float[Tensor, "seed p"]:
    return torch.cat([part.flatten(1) for part in parts], 1)


class _Last(nn.Module):
    def __init__(self, stack: _Stack):
        super().__init__()
        self.stack = stack

    def forward(self, tokens: Tensor) -> Tensor:
        return self.stack.between(tokens)[-1]


def rows(layers: int, place: str, rate: float, warmup: int, *, seeds: int, steps: int = STEPS) -> Iterator[Row]:
    """The table's lines for one case; rate 0: as initialised.

    Raises:
        ValueError: for fewer than one layer, seed or step, an unknown placement, a negative rate, or a warm-up that is
            not shorter than the training.
    """
    check_integers(1, layers=layers, seeds=seeds, steps=steps)
    check_choice(PLACES, place=place)
    check_numbers(0, rate=rate)
    check_integers(0, warmup=warmup)
    if warmup >= steps:
        raise ValueError(f"warmup: expected fewer than the {steps} steps, got {warmup}")
    course = _Course(layers, place, range(seeds))
    optimiser = course.optimiser()
    moments = sorted({min(moment, steps) for moment in (1, 10, steps)}) if rate else [0]
    for step in range(max(moments) + 1):
        if step in moments:
            for seed, values in enumerate(course.measured(sharp=step != 1).T.tolist()):
                yield layers, place, rate, warmup, seed, step, *(f"{value:.5g}" for value in values)
        if step < max(moments):
            course.step(optimiser, _rate_at(step, rate, warmup, steps))


def experiment(arguments: Sequence[str] | None = None) -> Experiment:
    """The experiment that a command asks for; the table has all of it."""
    parser = runner.parser(__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, nargs="+", default=None)
    parser.add_argument("--rates", type=float, nargs="+", default=None)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--steps", type=int, default=STEPS)
    options = parser.parse_args(arguments)
    ways = {(rate, 0): (6, 12, 18) for rate in options.rates} if options.rates else WAYS
    cases = [
        {
            "layers": layers,
            "place": place,
            "rate": rate,
            "warmup": warmup,
            "seeds": options.seeds,
            "steps": options.steps,
        }
        for (rate, warmup), depths in {(0.0, 0): (6, 12, 18), **ways}.items()
        for layers in options.layers or depths
        for place in PLACES
    ]
    seeds = f"0 to {options.seeds - 1}; steps: {options.steps}; rate 0: as initialised"
    return Experiment(__spec__.name, COLUMNS, KEYS, cases, seeds, tolerance=5e-2, options=options)


if __name__ == "__main__":
    with in_one_line():
        runner.run(experiment())
