"""Training data for small models: a Markov source of known entropy, and windows of a short text.

    >>> from smalltorch.engine.sample import generator
    >>> source = markov("a source", order=2)
    >>> [round(source.entropy(before), 4) for before in range(4)]       # exact; after two tokens, the entropy rate
    [1.3411, 1.1874, 0.7385, 0.7385]
    >>> source.sample(generator("test"), sequences=2, n=8)
    tensor([[2, 2, 2, 2, 2, 2, 2, 2],
            [1, 0, 0, 0, 2, 1, 3, 3]])

Source: Cover and Thomas, "Elements of Information Theory", for entropy rates.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from smalltorch.engine.sample import normal
from smalltorch.shapes import check_finite, check_floats, check_integers, check_numbers, check_tokens, check_type

Batch = Callable[[np.random.Generator], Any]  # draws a tensor, or a tuple of tensors
CONTEXTS = 2**13  # at most: the stationary distribution takes a matrix of their square


# --- the source -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Markov:
    """A stationary source in which a token depends on the k before it: P[a_1, ..., a_k, b] = p(b | a_1 ... a_k).

    Entropies are in nats, exact up to rounding.

    Raises:
        ValueError: unless P has k + 1 axes of one size, at least 2, positive entries, and sums over its last axis that
            are 1.
    """

    P: Float[Tensor, "*context next"]

    def __post_init__(self) -> None:
        check_floats(P=(self.P, "..."))
        check_finite(P=self.P)
        if self.P.ndim < 2 or len(set(self.P.shape)) != 1 or len(self.P) < 2:
            raise ValueError(f"P: expected at least two axes, all of one size > 1, got shape {tuple(self.P.shape)}")
        if (self.P <= 0).any():
            raise ValueError(f"P: expected positive entries, got {self.P.min().item()}")
        sums = self.P.sum(-1)
        if (sums - 1).abs().max() > 1e-9:
            raise ValueError(
                f"P: expected sums of 1 over the last axis, got {sums.min().item()} to {sums.max().item()}"
            )
        if self.P.dtype != torch.float64:
            raise ValueError(f"P: expected entries of torch.float64, got {self.P.dtype}")

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
        m = self._check_count(m=m)
        if m <= self.order:
            return self.stationary.sum(tuple(range(m, self.order))) if m < self.order else self.stationary
        return self.block(m - 1)[..., None] * self.P

    def entropy(self, before: int, behind: int = 0) -> float:
        """H(token | `before` tokens before it, `behind` tokens after it).

        entropy(0): of a single token; entropy(1): of a token after one; entropy(k): the entropy rate, which no causal
        predictor can beat; entropy(k, k): what no predictor that sees both sides can beat.
        """
        before, behind = self._check_count(before=before, behind=behind)
        joint = self.block(before + 1 + behind)
        return _entropy(joint) - _entropy(joint.sum(before))

    def _check_count(self, **tokens: int) -> Any:
        """The table of their probabilities must fit in memory."""
        found = check_integers(0, **tokens)
        most = int(2 * math.log(CONTEXTS, self.vocabulary))
        if sum(tokens.values()) > most:
            got = " and ".join(map(str, tokens.values()))
            raise ValueError(f"{', '.join(tokens)}: expected at most {most} tokens of {self.vocabulary}, got {got}")
        return found

    @property
    def rate(self) -> float:
        """The entropy rate: H(token | all tokens before it)."""
        return self.entropy(self.order)

    def next(self, before: int) -> Float[Tensor, "..."]:
        """p(b | `before` tokens before it), for `before` up to k: axes for these tokens, then b."""
        before = check_integers(0, before=before)
        if before > self.order:
            raise ValueError(f"before: expected at most {self.order}, the order, got {before}")
        return self.block(before + 1) / self.block(before)[..., None] if before < self.order else self.P

    def sample(self, rng: np.random.Generator, sequences: int, n: int) -> Int[Tensor, "sequences n"]:
        """Independent stretches of the stationary source."""
        check_type(np.random.Generator, rng=rng)
        sequences, n = check_integers(1, sequences=sequences, n=n)
        u = torch.from_numpy(rng.random((sequences, n, 1)))
        tokens = torch.zeros(sequences, n, dtype=torch.long)
        next_after = [self.next(before) for before in range(self.order + 1)]
        for t in range(n):
            p = next_after[min(t, self.order)][tuple(tokens[:, max(0, t - self.order) : t].T)]
            tokens[:, t] = (p.cumsum(-1)[..., :-1] < u[:, t]).sum(-1)
        return tokens

    def surprise(self, tokens: Int[Tensor, "batch n"]) -> Float[Tensor, "batch n"]:
        """-log p(token | the tokens before it), of the source itself. Its mean after the first k tokens estimates the
        entropy rate, and its sum over a row is -log p(row)."""
        check_tokens(tokens=(tokens, "batch n", self.vocabulary))
        columns = []
        for t in range(tokens.shape[1]):
            before = min(t, self.order)
            columns.append(-self.next(before)[tuple(tokens[:, t - before : t + 1].T)].log())
        return torch.stack(columns, 1)

    def batches(self, n: int, size: int = 32) -> Batch:
        """Draws `size` fresh sequences of n tokens."""
        n, size = check_integers(1, n=n, size=size)
        return lambda rng: self.sample(rng, size, n)


def _entropy(p: Tensor) -> float:
    return float(-(p * p.log()).sum())


def markov(name: str, vocabulary: int = 4, order: int = 2, sharpness: float = 2.0) -> Markov:
    """A random source: the log-probabilities are `sharpness` times normal numbers from `generator(name)`.

    Raises:
        ValueError: for fewer than two tokens, an order below 1, or a table too large; if `sharpness` is so large that
            a probability is 0 in float64.
    """
    check_type(str, name=name)
    vocabulary = check_integers(2, vocabulary=vocabulary)
    order = check_integers(1, order=order)
    sharpness = check_numbers(0, sharpness=sharpness)
    if order * math.log(vocabulary) > math.log(CONTEXTS):
        raise ValueError(f"vocabulary, order: expected at most {CONTEXTS} contexts, got {vocabulary} to the {order}")
    P = (sharpness * normal(name, *[vocabulary] * (order + 1))).softmax(-1)
    if (P == 0).any():
        raise ValueError(f"sharpness: expected probabilities above 0, got {sharpness}, which makes some 0")
    return Markov(P)


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
    check_type(str, text=text)
    if not text:
        raise ValueError("text: expected at least one character, got none")
    alphabet = "".join(sorted(set(text)))
    return torch.tensor([alphabet.index(c) for c in text]), alphabet


def windows(tokens: Int[Tensor, " length"], n: int, size: int = 32) -> Batch:
    """Draws `size` stretches of n tokens of a text.

    Raises:
        ValueError: for a text shorter than n, or n or size below 1.
    """
    length = check_tokens(tokens=(tokens, "length", None))["length"]
    n, size = check_integers(1, n=n, size=size)
    if length < n:
        raise ValueError(f"tokens: expected at least n = {n}, got {length}")
    stretches = tokens.unfold(0, n, 1)
    return lambda rng: stretches[torch.from_numpy(rng.integers(len(stretches), size=size))]
