"""Training of small models: losses, and a loop that trains all seeds at once.

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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.func import functional_call, vmap

from smalltorch.engine.sample import generator
from smalltorch.shapes import (
    anywhere,
    at_least_float32,
    check_floats,
    check_integers,
    check_numbers,
    check_shapes,
    check_tokens,
    check_type,
)
from smalltorch.source import Batch

Report = Callable[[int, Tensor], None]  # report(step, losses of the seeds)
Loss = Callable[..., Tensor]  # loss(predict, *batch): one number; predict is the model with one seed's weights


def initial(model: nn.Module, rng: np.random.Generator) -> dict[str, Tensor]:
    """Initial parameters by name, in float64, whatever the model was built with.

    Weights W are N(0, 1/d_in); the readout W_U is ten times smaller, so that the first predictions are nearly uniform;
    embeddings E, P are N(0, 1). Vectors (gains and biases) stay as built.
    """
    check_type(nn.Module, model=model)
    check_type(np.random.Generator, rng=rng)
    parameters = {}
    for name, built in model.named_parameters():
        if built.is_meta:
            raise ValueError(f"model: expected parameters that can be read, got {name} on meta")
        short = name.rpartition(".")[2]
        if built.ndim < 2:
            parameters[name] = built.detach().double().clone()
            continue
        std = (0.1 if short == "W_U" else 1.0) * (len(built) ** -0.5 if short.startswith("W_") else 1.0)
        parameters[name] = torch.from_numpy(std * rng.standard_normal(built.shape))
    return parameters


# --- losses -----------------------------------------------------------------------------------------------------------


def cross_entropy(logits: Float[Tensor, "*batch vocabulary"], targets: Int[Tensor, "*batch"]) -> Float[Tensor, ""]:
    """The mean of -log softmax(logits)[target], in nats.

    Raises:
        ValueError: if the targets are no tokens of the vocabulary, one for each row of logits, or if there are none.
    """
    vocabulary = check_floats(logits=(logits, "... vocabulary"))["vocabulary"]
    check_tokens(targets=(targets, " ".join(map(str, logits.shape[:-1])), vocabulary))
    if targets.device != logits.device:
        raise ValueError(f"targets: expected a tensor on {logits.device}, as the logits, got one on {targets.device}")
    if targets.numel() == 0:
        raise ValueError(f"targets: expected at least one, got shape {tuple(targets.shape)}")
    wide = at_least_float32(logits)
    return F.cross_entropy(wide.reshape(-1, vocabulary), targets.reshape(-1)).to(logits.dtype)


def next_token_loss(predict: Callable[[Tensor], Tensor], tokens: Int[Tensor, "batch n"]) -> Float[Tensor, ""]:
    """Every token but the first, from those before it.

    Raises:
        ValueError: for fewer than two tokens per row, or one that is not in the vocabulary.
    """
    if check_shapes(tokens=(tokens, "batch n"))["n"] < 2 or len(tokens) == 0:
        raise ValueError(f"tokens: expected a row at least, and 2 in every row, got shape {tuple(tokens.shape)}")
    logits = predict(tokens[:, :-1])
    check_tokens(tokens=(tokens, "batch n", logits.shape[-1]))
    return cross_entropy(logits, tokens[:, 1:])


def masked_loss(
    predict: Callable[[Tensor], Tensor], tokens: Int[Tensor, "batch n"], hidden: Tensor, mask_token: int
) -> Float[Tensor, ""]:
    """The tokens where `hidden` is True, from the others; the model sees `mask_token` in their place.

    The mask token is the last of the vocabulary, and not among the predictions: its logit is left out.

    Raises:
        ValueError: if a token is not below the mask token, or none is hidden.
    """
    mask_token = check_integers(1, mask_token=mask_token)
    check_tokens(tokens=(tokens, "batch n", mask_token))
    check_shapes(tokens=(tokens, "batch n"), hidden=(hidden, "batch n"))
    if hidden.dtype != torch.bool or hidden.device != tokens.device:
        raise ValueError(f"hidden: expected a boolean tensor beside the tokens, got {hidden.dtype} on {hidden.device}")
    if anywhere(~hidden.any()):
        raise ValueError("hidden: expected True for one token at least, got False throughout")
    logits = predict(torch.where(hidden, mask_token, tokens))
    if logits.shape[-1] < mask_token:
        raise ValueError(f"mask_token: expected at most the vocabulary, {logits.shape[-1]}, got {mask_token}")
    wide = at_least_float32(logits[..., :mask_token])
    surprise = F.cross_entropy(wide.flatten(0, -2), tokens.flatten(), reduction="none").view(tokens.shape)
    return ((surprise * hidden).sum() / hidden.sum()).to(logits.dtype)


# --- the loop ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Run:
    """A trained model: parameters and losses, with an axis for the seeds in front."""

    model: nn.Module
    parameters: Mapping[str, Tensor]
    losses: Float[Tensor, "seed step"]

    def __post_init__(self) -> None:
        expected = {name for name, _ in self.model.named_parameters()}
        if expected != set(self.parameters):
            odd = sorted(expected ^ set(self.parameters))
            raise ValueError(f"parameters: expected those of the model, got others or fewer: {', '.join(odd[:3])}")

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
        seed = check_integers(0, seed=seed)
        if seed >= len(self.losses):
            raise ValueError(f"seed: expected one of {len(self.losses)} seeds, from 0 on, got {seed}")
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
        ValueError: for fewer than one seed or step, a rate below 0, parameters that are not those of the model, batches
            that differ in shape, or a loss that is not one number.
    """
    check_type(nn.Module, model=model)
    check_type(str, name=name)
    seeds, steps = check_integers(1, seeds=seeds, steps=steps)
    rate = check_numbers(0, rate=rate)
    drawn = [_checked(start(model, generator(f"{name}, weights {k}")), model) for k in range(seeds)]
    parameters = {key: torch.stack([p[key] for p in drawn]).requires_grad_() for key in drawn[0]}
    data = [generator(f"{name}, data {k}") for k in range(seeds)]
    optimiser = torch.optim.Adam(list(parameters.values()), lr=rate)
    each = vmap(lambda parameters, *batch: loss(partial(_call, model, parameters), *batch))
    history = []
    for step in range(steps):
        optimiser.param_groups[0]["lr"] = rate * (1 - step / steps)
        losses = each(parameters, *_stacked([b if isinstance(b, tuple) else (b,) for b in map(batch, data)]))
        if losses.ndim != 1:
            raise ValueError(f"loss: expected one number per batch, got shape {tuple(losses.shape[1:])}")
        history.append(losses.detach())
        if report is not None:
            report(step, history[-1])
        optimiser.zero_grad()
        losses.sum().backward()  # seeds share no parameter: each one's gradient is its own
        optimiser.step()
    return Run(model, {key: p.detach() for key, p in parameters.items()}, torch.stack(history, 1))


def _checked(start: Mapping[str, Tensor], model: nn.Module) -> Mapping[str, Tensor]:
    """Initial parameters: those of the model, all of them and no others, in float64."""
    expected = {name: f"{tuple(built.shape)} in torch.float64" for name, built in model.named_parameters()}
    got = {name: f"{tuple(drawn.shape)} in {drawn.dtype}" for name, drawn in start.items()}
    for name in expected | got:
        if expected.get(name) != got.get(name):
            raise ValueError(f"start: expected {name}: {expected.get(name, 'nothing')}, got {got.get(name, 'nothing')}")
    return start


def _stacked(batches: Sequence[tuple[Tensor, ...]]) -> list[Tensor]:
    """The parts of a batch, with an axis for the seeds in front."""
    for parts in batches:
        for part in parts:
            check_type(Tensor, batch=part)
    shapes = [[tuple(part.shape) for part in parts] for parts in batches]
    if any(other != shapes[0] for other in shapes):
        raise ValueError(f"batch: expected the same shapes for all seeds, got {shapes}")
    return [torch.stack(parts) for parts in zip(*batches, strict=True)]


def _call(model: nn.Module, parameters: Mapping[str, Tensor], *inputs: Tensor) -> Tensor:
    return functional_call(model, dict(parameters), inputs)


def every(steps: int) -> Report:
    """A report: one line on stderr every so many steps."""
    steps = check_integers(1, steps=steps)

    def report(step: int, losses: Tensor) -> None:
        if step % steps == 0:
            print(f"step {step}: loss {losses.mean():.3f}", file=sys.stderr)

    return report
