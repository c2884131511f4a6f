"""Text generation, one token per step: greedy or sampled, with or without a KV cache.

Chapters `overview`, for drawing, and `generation`, for the cache of keys and values.

Source: Fan, Lewis and Dauphin, "Hierarchical Neural Story Generation" (2018) for top-k; Holtzman et al., "The Curious
Case of Neural Text Degeneration" (2020) for top-p.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from smalltorch.attention import softmax
from smalltorch.shapes import (
    check_finite,
    check_floats,
    check_integers,
    check_numbers,
    check_tokens,
    check_type,
    computed_wide,
)

Choose = Callable[[Tensor], Tensor]  # logits (batch, vocabulary) -> one token for each row (batch,)


# --- which token comes next -------------------------------------------------------------------------------------------


@computed_wide
def probabilities(
    logits: Float[Tensor, "*batch vocabulary"],
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
) -> Float[Tensor, "*batch vocabulary"]:
    """softmax(logits / temperature), of which first `top_k` and then `top_p` keep the head; the rest gets 0.

    A token is banned by a logit far below the others, such as `torch.finfo(logits.dtype).min`: none may be -inf.

        >>> probabilities(torch.tensor([2.0, 1.0, 0.0]).double(), top_k=2)
        tensor([0.7311, 0.2689, 0.0000], dtype=torch.float64)

    Args:
        temperature: below 1 sharpens, above 1 flattens.
        top_k: keep so many of the most probable tokens; all unless given. Of equal ones the first are kept.
        top_p: of those, keep the fewest whose probabilities sum to `top_p` at least, the most probable ones.

    Raises:
        ValueError: for logits that are not finite; a temperature of 0 or below; `top_k` below 1; `top_p` that is not
            above 0 and at most 1.
    """
    check_floats(logits=(logits, "... vocabulary"))
    check_finite(logits=logits)
    temperature, top_p = check_numbers(0, temperature=temperature, top_p=top_p)
    if temperature == 0:
        raise ValueError(f"temperature: expected a number above 0, got {temperature}")
    if not 0 < top_p <= 1:
        raise ValueError(f"top_p: expected a number above 0 and at most 1, got {top_p}")
    ordered, order = logits.sort(dim=-1, descending=True, stable=True)
    ordered = ordered - ordered[..., :1]
    if temperature < torch.finfo(ordered.dtype).tiny:  # it would be 0 in their type
        ordered = ordered.double()
    ordered = softmax(ordered / temperature).to(logits.dtype)
    if top_k is not None:
        top_k = check_integers(1, top_k=top_k)
        ordered[..., top_k:] = 0
    if top_p < 1:
        before = ordered.cumsum(-1) - ordered  # what the more probable tokens have together
        ordered = ordered.masked_fill(before >= top_p * ordered.sum(-1, keepdim=True), 0)
    p = torch.zeros_like(ordered).scatter(-1, order, ordered)
    return p / p.sum(-1, keepdim=True)


def sampler(rng: np.random.Generator, temperature: float = 1.0, top_k: int | None = None, top_p: float = 1.0) -> Choose:
    """Draws tokens from `probabilities(logits, temperature, top_k, top_p)`: to be given to `generate` as `choose`."""
    check_type(np.random.Generator, rng=rng)

    def choose(logits: Float[Tensor, "batch vocabulary"]) -> Int[Tensor, " batch"]:
        p = probabilities(logits.double(), temperature, top_k, top_p).cumsum(-1)
        u = torch.from_numpy(rng.random((len(p), 1)))
        return (p <= u * p[:, -1:]).sum(-1)

    return choose


def most_probable(logits: Float[Tensor, "*batch vocabulary"]) -> Int[Tensor, "*batch"]:
    """The token with the largest logit, in each row; of equal ones the first."""
    check_floats(logits=(logits, "... vocabulary"))
    return logits.argmax(-1)


# --- one token after another ------------------------------------------------------------------------------------------


class Generated(NamedTuple):
    """What was generated, and the logits that each new token was chosen from."""

    tokens: Int[Tensor, "batch new"]
    logits: Float[Tensor, "batch new vocabulary"]

    @property
    def margin(self) -> Float[Tensor, "batch new"]:
        """By how much the largest logit leads the second: rounding errors below half of it cannot change a token.

        Raises:
            ValueError: if there is no second, in a vocabulary of one token.
        """
        vocabulary = check_floats(logits=(self.logits, "... vocabulary"))["vocabulary"]
        if vocabulary < 2:
            raise ValueError(f"logits: expected a vocabulary of at least 2, got {vocabulary}")
        top = self.logits.topk(2, dim=-1).values
        return top[..., 0] - top[..., 1]


@torch.no_grad()
def generate(
    model: Callable[..., Tensor],
    prompt: Int[Tensor, "batch n"],
    new: int,
    cached: bool = True,
    stop: int | None = None,
    choose: Choose = most_probable,
) -> Generated:
    """At most `new` tokens after the prompt, each the most probable one, unless `choose` takes another.

        >>> def count(tokens):       # to a model that can count modulo 5, the next number is certain
        ...     return torch.eye(5)[(tokens + 1) % 5]
        >>> generate(count, torch.tensor([[0], [2]]), new=3, cached=False).tokens
        tensor([[1, 2, 3],
                [3, 4, 0]])

    Args:
        model: `model(tokens)` gives the logits of the next token at every position (batch, n, vocabulary). With
            `cached`, `model(tokens, cache=cache)` does, for tokens that continue those of the calls before.
        prompt: at least one token.
        cached: keep keys and values, and give the model only what it has not seen; else give it the whole text anew.
        stop: a token; once every row has produced it, generation ends.
        choose: the next tokens from their logits, such as `sampler(rng, temperature=0.7)`.

    Raises:
        ValueError: for an empty prompt, or tokens below 0; `new` below 1; a `stop` that the model does not have; a
            model that gives other shapes, or NaN.
    """
    check_tokens(prompt=(prompt, "batch n", None))
    new = check_integers(1, new=new)
    check_type(bool, cached=cached)
    text = unseen = prompt
    cache: list[Any] = []  # what the model makes of it
    logits: list[Tensor] = []
    for _ in range(new):
        found = model(unseen, cache=cache) if cached else model(text)
        vocabulary = check_floats(model=(found, f"{len(text)} n vocabulary"))["vocabulary"]
        if isinstance(stop, bool) or (stop is not None and stop not in range(vocabulary)):
            raise ValueError(f"stop: expected a token from 0 to {vocabulary - 1}, got {stop!r}")
        logits.append(found[:, -1])
        if logits[-1].isnan().any():
            raise ValueError("model: expected logits that can be compared, got nan")
        unseen = choose(logits[-1])[:, None]
        text = torch.cat([text, unseen], dim=1)
        if stop is not None and (text[:, prompt.shape[1] :] == stop).any(1).all():
            break
    return Generated(text[:, prompt.shape[1] :], torch.stack(logits, 1))
