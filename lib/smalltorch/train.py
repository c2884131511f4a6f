"""Small trainings: one source of known entropy, one short text, one tiny language model, one loop.

    source = markov("a source")                          # entropies are exact
    model = TinyLM(source.vocabulary, positions=16)
    run = train(model, next_token_loss, source.batches(16), name="first run", seeds=5, steps=300)
    run.evaluate(next_token_loss, source.sample(generator("test"), 512, 16)) - source.rate      # one excess a seed

All in float64; initial weights and data come from NumPy's generator by name and seed, so a run can be repeated to the
digits printed whatever the number of threads. All seeds are trained at once, as one batched computation.

Source: Cover and Thomas, "Elements of Information Theory", for entropy rates; Kingma and Ba, "Adam" (2015).
"""

import copy
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.func import functional_call, vmap

from smalltorch.attention import MultiHead, causal_mask
from smalltorch.block import FFN
from smalltorch.norm import LayerNorm
from smalltorch.sample import generator, normal
from smalltorch.shapes import check_finite, check_shapes

Batch = Callable[[np.random.Generator], Any]  # draws a tensor, or a tuple of tensors
Loss = Callable[..., Tensor]  # loss(predict, *batch): one number; predict is the model with one seed's weights

# --- the source -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Markov:
    """A stationary source in which a token depends on the k before it: P[a_1, ..., a_k, b] = p(b | a_1 ... a_k).

    Entropies are in nats, exact up to rounding.

    Raises:
        ValueError: unless P has k + 1 axes of one size, positive entries, and sums over its last axis that are 1.
    """

    P: Float[Tensor, "*context next"]

    def __post_init__(self):
        check_finite(P=self.P)
        if self.P.ndim < 2 or len(set(self.P.shape)) != 1:
            raise ValueError(f"P: expected at least two axes, all of one size, got shape {tuple(self.P.shape)}")
        if (self.P <= 0).any() or (self.P.sum(-1) - 1).abs().max() > 1e-9:
            raise ValueError("P: expected positive entries that sum to 1 over the last axis")

    @property
    def vocabulary(self) -> int:
        return self.P.shape[-1]

    @property
    def order(self) -> int:
        """How many tokens back the source looks."""
        return self.P.ndim - 1

    @cached_property
    def stationary(self) -> Float[Tensor, "*context"]:
        """The probability of k consecutive tokens: the one distribution that a step of the source leaves as it is."""
        V, k = self.vocabulary, self.order
        states = V**k
        T = self.P.new_zeros(states, states)  # from a_1 ... a_k to a_2 ... a_k b
        here = torch.arange(states)
        for b in range(V):
            T[here, here * V % states + b] = self.P.reshape(states, V)[:, b]
        equations = T.T - torch.eye(states, dtype=T.dtype)
        equations[-1] = 1  # one equation follows from the others; in its place, the sum is 1
        right = T.new_zeros(states)
        right[-1] = 1
        return torch.linalg.solve(equations, right).reshape((V,) * k)

    def block(self, m: int) -> Float[Tensor, "..."]:
        """The probability of m consecutive tokens, an axis for each."""
        if m <= self.order:
            return self.stationary.sum(tuple(range(m, self.order))) if m < self.order else self.stationary
        return self.block(m - 1)[..., None] * self.P

    def entropy(self, before: int, behind: int = 0) -> float:
        """H(token | `before` tokens before it, `behind` tokens behind it).

        entropy(0): of a single token; entropy(1): of a token behind one; entropy(k): the entropy rate, which no causal
        predictor can beat; entropy(k, k): what no predictor that sees both sides can beat.
        """
        joint = self.block(before + 1 + behind)
        return _entropy(joint) - _entropy(joint.sum(before))

    @property
    def rate(self) -> float:
        """The entropy rate: H(token | all tokens before it)."""
        return self.entropy(self.order)

    def next(self, before: int) -> Float[Tensor, "..."]:
        """p(b | `before` tokens before it), for `before` up to k: axes for these tokens, then b."""
        return self.block(before + 1) / self.block(before)[..., None] if before < self.order else self.P

    def sample(self, rng: np.random.Generator, sequences: int, n: int) -> Int[Tensor, "sequences n"]:
        """Independent stretches of the stationary source."""
        u = torch.from_numpy(rng.random((sequences, n, 1)))
        tokens = torch.zeros(sequences, n, dtype=torch.long)
        for t in range(n):
            p = self.next(min(t, self.order))[tuple(tokens[:, max(0, t - self.order) : t].T)]
            tokens[:, t] = (p.cumsum(-1)[..., :-1] < u[:, t]).sum(-1)
        return tokens

    def surprise(self, tokens: Int[Tensor, "batch n"]) -> Float[Tensor, "batch n"]:
        """-log p(token | the tokens before it), of the source itself. Its mean behind the first k tokens estimates the
        entropy rate, and its sum over a row is -log p(row)."""
        check_shapes(tokens=(tokens, "batch n"))
        columns = []
        for t in range(tokens.shape[1]):
            before = min(t, self.order)
            columns.append(-self.next(before)[tuple(tokens[:, t - before : t + 1].T)].log())
        return torch.stack(columns, 1)

    def batches(self, n: int, size: int = 32) -> Batch:
        """Draws `size` fresh sequences of n tokens."""
        return lambda rng: self.sample(rng, size, n)


def _entropy(p: Tensor) -> float:
    return float(-(p * p.log()).sum())


def markov(name: str, vocabulary: int = 4, order: int = 2, sharpness: float = 2.0) -> Markov:
    """A random source: the log-probabilities are `sharpness` times normal numbers from `generator(name)`."""
    return Markov((sharpness * normal(name, *[vocabulary] * (order + 1))).softmax(-1))


# --- the text ---------------------------------------------------------------------------------------------------------

TEXT = """\
the harbour wakes before the town. first the gulls, then the bakers, then the men who mend the nets. the water is grey
and then it is green. a bell rings on the far side of the bay, and the ferry answers. by seven the market is full: fish
in wet baskets, bread in brown paper, apples from the hills. nobody hurries. the old woman who sells the apples knows
every child by name, and every child knows which of her baskets holds the sweet ones. at noon the square is empty again
and the water is blue. in the evening the men come back with their nets, the bakers sleep, and the gulls have the
harbour to themselves.
""".replace("\n", " ")


def characters(text: str) -> tuple[Int[Tensor, " n"], str]:
    """A text as token numbers, and its alphabet: token i is the character alphabet[i]."""
    alphabet = "".join(sorted(set(text)))
    return torch.tensor([alphabet.index(c) for c in text]), alphabet


def windows(tokens: Int[Tensor, " length"], n: int, size: int = 32) -> Batch:
    """Draws `size` stretches of n tokens of a text.

    Raises:
        ValueError: for a text shorter than n.
    """
    length = check_shapes(tokens=(tokens, "length"))["length"]
    if length < n:
        raise ValueError(f"tokens: expected at least n = {n}, got {length}")
    stretches = tokens.unfold(0, n, 1)
    return lambda rng: stretches[torch.from_numpy(rng.integers(len(stretches), size=size))]


# --- the model --------------------------------------------------------------------------------------------------------


class Layer(nn.Module):
    """Attention, then an FFN; each with its norm before it ("pre"), behind the sum ("post"), or none.

    Without `residual` nothing is added to a sub-layer's output; without `mlp` there is no FFN. With both it is `PreLN`
    or `PostLN` of `block`.
    """

    def __init__(self, d: int, heads: int, d_ff: int, norm: Literal["pre", "post"] | None, residual: bool, mlp: bool):
        super().__init__()
        self.place, self.residual = norm, residual
        self.attention = MultiHead(d, heads)
        self.ffn = FFN(d, d_ff) if mlp else None
        self.norm_1 = nn.Identity() if norm is None else LayerNorm(d)
        self.norm_2 = nn.Identity() if norm is None or not mlp else LayerNorm(d)

    def forward(self, X: Float[Tensor, "*batch n d"], mask: Tensor | None = None) -> Float[Tensor, "*batch n d"]:
        X = self._sublayer(X, lambda Y: self.attention(Y, mask=mask)[0], self.norm_1)
        return X if self.ffn is None else self._sublayer(X, self.ffn, self.norm_2)

    def _sublayer(self, X: Tensor, f: Callable[[Tensor], Tensor], norm: nn.Module) -> Tensor:
        Y = f(norm(X) if self.place == "pre" else X)
        Y = X + Y if self.residual else Y
        return norm(Y) if self.place == "post" else Y


class TinyLM(nn.Module):
    """The language model of the small trainings: E[tokens] + P[:n], layers, a last norm if "pre", and X W_U.

    Args:
        vocabulary: number of tokens; a masked language model counts its mask token.
        positions: the longest sequence.
        norm: "pre", "post" or None.
        residual, mlp: leave them out with False.
        causal: False for a model that sees both sides.

    Raises:
        ValueError: for more tokens than positions.
    """

    def __init__(
        self,
        vocabulary: int,
        positions: int,
        d: int = 16,
        layers: int = 2,
        heads: int = 2,
        d_ff: int | None = None,
        norm: Literal["pre", "post"] | None = "pre",
        residual: bool = True,
        mlp: bool = True,
        causal: bool = True,
    ):
        super().__init__()
        self.causal = causal
        self.E, self.P = nn.Parameter(torch.zeros(vocabulary, d)), nn.Parameter(torch.zeros(positions, d))
        self.layers = nn.ModuleList(Layer(d, heads, d_ff or 4 * d, norm, residual, mlp) for _ in range(layers))
        self.norm = LayerNorm(d) if norm == "pre" else nn.Identity()
        self.W_U = nn.Parameter(torch.zeros(d, vocabulary))

    def states(self, tokens: Int[Tensor, "batch n"]) -> Float[Tensor, "batch n d"]:
        """The states that the logits are read from."""
        n = check_shapes(tokens=(tokens, "batch n"))["n"]
        if n > len(self.P):
            raise ValueError(f"tokens: expected at most {len(self.P)} a row, got {n}")
        X = self.E[tokens] + self.P[:n]
        for layer in self.layers:
            X = layer(X, causal_mask(n) if self.causal else None)
        return self.norm(X)

    def forward(self, tokens: Int[Tensor, "batch n"]) -> Float[Tensor, "batch n vocabulary"]:
        return self.states(tokens) @ self.W_U


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


def cross_entropy(
    logits: Float[Tensor, "*batch vocabulary"], targets: Int[Tensor, "*batch"]
) -> Float[Tensor, ""]:
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
    report: Callable[[int, Tensor], None] | None = None,
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
            raise ValueError(f"loss: expected one number a batch, got shape {tuple(losses.shape[1:])}")
        history.append(losses.detach())
        if report is not None:
            report(step, history[-1])
        optimiser.zero_grad()
        losses.sum().backward()  # seeds share no parameter: each one's gradient is its own
        optimiser.step()
    return Run(model, {key: p.detach() for key, p in parameters.items()}, torch.stack(history, 1))


def _call(model: nn.Module, parameters: Mapping[str, Tensor], *inputs: Tensor) -> Tensor:
    return functional_call(model, dict(parameters), inputs)


def every(steps: int) -> Callable[[int, Tensor], None]:
    """A report: one line on stderr every so many steps."""

    def report(step: int, losses: Tensor) -> None:
        if step % steps == 0:
            print(f"step {step}: loss {losses.mean():.3f}", file=sys.stderr)

    return report
