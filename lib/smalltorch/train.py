"""Small trainings: losses, and one loop that trains all seeds at once.

    >>> from smalltorch.models import TinyLM
    >>> from smalltorch.source import markov
    >>> source = markov("a source")
    >>> model = TinyLM(source.vocabulary, positions=16)
    >>> run = train(model, next_token_loss, source.batches(16), name="first run", seeds=2, steps=40)
    >>> run.evaluate(next_token_loss, source.sample(generator("test"), 512, 16)) - source.rate      # for each seed
    tensor([0.4805, 0.4758], dtype=torch.float64)

All in float64; initial weights and data come from NumPy's generator by name and seed, so a run can be repeated to the
digits printed whatever the number of threads. All seeds are trained at once, as one batched computation.

Source: Kingma and Ba, "Adam" (2015).
"""

import copy
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.func import functional_call, vmap

from smalltorch.engine.sample import generator
from smalltorch.source import Batch

Report = Callable[[int, Tensor], None]  # report(step, losses of the seeds)
Loss = Callable[..., Tensor]  # loss(predict, *batch): one number; predict is the model with one seed's weights


def initial(model: nn.Module, rng: np.random.Generator) -> dict[str, Tensor]:
    """Initial parameters by name, in float64, whatever the model was built with.

    Weights W are N(0, 1/d_in); the readout W_U is ten times smaller, so that the first predictions are nearly uniform;
    embeddings E, P are N(0, 1). Vectors (gains and biases) stay as built.
    """
    parameters = {}
    for name, built in model.named_parameters():
        short = name.rpartition(".")[2]
        if built.ndim < 2:
            parameters[name] = built.detach().double().clone()
            continue
        std = (0.1 if short == "W_U" else 1.0) * (len(built) ** -0.5 if short.startswith("W_") else 1.0)
        parameters[name] = torch.from_numpy(std * rng.standard_normal(built.shape))
    return parameters


# --- losses -----------------------------------------------------------------------------------------------------------


def cross_entropy(logits: Float[Tensor, "*batch vocabulary"], targets: Int[Tensor, "*batch"]) -> Float[Tensor, ""]:
    """The mean of -log softmax(logits)[target], in nats."""
    return F.cross_entropy(logits.flatten(0, -2), targets.flatten())


def next_token_loss(predict: Callable[[Tensor], Tensor], tokens: Int[Tensor, "batch n"]) -> Float[Tensor, ""]:
    """Every token but the first, from those before it."""
    return cross_entropy(predict(tokens[:, :-1]), tokens[:, 1:])


def masked_loss(
    predict: Callable[[Tensor], Tensor], tokens: Int[Tensor, "batch n"], hidden: Tensor, mask_token: int
) -> Float[Tensor, ""]:
    """The tokens where `hidden` is True, from the others; the model sees `mask_token` in their place.

    The mask token itself is not among the predictions: its logit is left out.
    """
    logits = predict(torch.where(hidden, mask_token, tokens))[..., :mask_token]
    surprise = F.cross_entropy(logits.flatten(0, -2), tokens.flatten(), reduction="none").view(tokens.shape)
    return (surprise * hidden).sum() / hidden.sum()


# --- the loop ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Run:
    """A trained model: parameters and losses, with an axis for the seeds in front."""

    model: nn.Module
    parameters: Mapping[str, Tensor]
    losses: Float[Tensor, "seed step"]

    @torch.no_grad()
    def __call__(self, *inputs: Tensor) -> Tensor:
        """The model's outputs for each seed, on the same inputs."""
        return vmap(lambda parameters: functional_call(self.model, parameters, inputs))(self.parameters)

    @torch.no_grad()
    def evaluate(self, loss: Loss, *batch: Tensor) -> Float[Tensor, " seed"]:
        """The loss of each seed, on the same batch."""
        return vmap(lambda parameters: loss(partial(_call, self.model, parameters), *batch))(self.parameters)

    def at(self, seed: int) -> nn.Module:
        """The model of one seed, frozen."""
        model = copy.deepcopy(self.model).double()
        model.load_state_dict({name: stacked[seed] for name, stacked in self.parameters.items()}, strict=False)
        return model.eval().requires_grad_(False)


def train(
    model: nn.Module,
    loss: Loss,
    batch: Batch,
    *,
    name: str,
    seeds: int = 5,
    steps: int = 300,
    rate: float = 3e-3,
    start: Callable[[nn.Module, np.random.Generator], Mapping[str, Tensor]] = initial,
    report: Report | None = None,
) -> Run:
    """Adam on `seeds` copies of a model at once, each with its own initial weights and its own data.

    The rate falls linearly to 0. At a constant rate the rounding of one machine grows within a few hundred steps to
    differences that show; as the rate falls they die out, and two machines end with the same digits.

    Args:
        model: what is trained; only its shapes, and its vectors' initial values, count.
        loss: `loss(predict, *batch)`, one number.
        batch: `batch(rng)` draws one batch, a tensor or a tuple of tensors of always the same shapes.
        name: of the run: seed k draws its initial weights from `generator(f"{name}, weights {k}")` and its data from
            `generator(f"{name}, data {k}")`.
        rate: of the first step.
        start: draws the initial parameters of one seed, by name.
        report: `report(step, losses of the seeds)`, called before every step; `every(100)` prints a line now and then.

    Raises:
        ValueError: for fewer than one seed or step, or a loss that is not one number.
    """
    if seeds < 1 or steps < 1:
        raise ValueError(f"seeds, steps: expected at least 1 of each, got {seeds} and {steps}")
    drawn = [start(model, generator(f"{name}, weights {k}")) for k in range(seeds)]
    parameters = {key: torch.stack([p[key] for p in drawn]).requires_grad_() for key in drawn[0]}
    data = [generator(f"{name}, data {k}") for k in range(seeds)]
    optimiser = torch.optim.Adam(list(parameters.values()), lr=rate)
    each = vmap(lambda parameters, *batch: loss(partial(_call, model, parameters), *batch))
    history = []
    for step in range(steps):
        optimiser.param_groups[0]["lr"] = rate * (1 - step / steps)
        batches = [b if isinstance(b, tuple) else (b,) for b in map(batch, data)]
        losses = each(parameters, *map(torch.stack, zip(*batches, strict=True)))
        if losses.ndim != 1:
            raise ValueError(f"loss: expected one number per batch, got shape {tuple(losses.shape[1:])}")
        history.append(losses.detach())
        if report is not None:
            report(step, history[-1])
        optimiser.zero_grad()
        losses.sum().backward()  # seeds share no parameter: each one's gradient is its own
        optimiser.step()
    return Run(model, {key: p.detach() for key, p in parameters.items()}, torch.stack(history, 1))


def _call(model: nn.Module, parameters: Mapping[str, Tensor], *inputs: Tensor) -> Tensor:
    return functional_call(model, dict(parameters), inputs)


def every(steps: int) -> Report:
    """A report: one line on stderr every so many steps."""

    def report(step: int, losses: Tensor) -> None:
        if step % steps == 0:
            print(f"step {step}: loss {losses.mean():.3f}", file=sys.stderr)

    return report
