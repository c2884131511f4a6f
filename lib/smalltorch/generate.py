"""Greedy generation, one token per step, with or without a cache of keys and values: chapter `generation`."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from smalltorch.shapes import check_floats, check_integers, check_tokens


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
        if self.logits.shape[-1] < 2:
            raise ValueError(f"logits: expected a vocabulary of at least 2, got {self.logits.shape[-1]}")
        top = self.logits.topk(2, dim=-1).values
        return top[..., 0] - top[..., 1]


@torch.no_grad()
def generate(
    model: Callable[..., Tensor],
    prompt: Int[Tensor, "batch n"],
    new: int,
    cached: bool = True,
    stop: int | None = None,
) -> Generated:
    """At most `new` tokens after the prompt, each the most probable one.

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

    Raises:
        ValueError: for an empty prompt, or tokens below 0; `new` below 1; a `stop` that the model does not have; a
            model that gives other shapes, or NaN.
    """
    check_tokens(prompt=(prompt, "batch n", None))
    check_integers(1, new=new)
    text = unseen = prompt
    cache: list[Any] = []  # what the model makes of it
    logits: list[Tensor] = []
    for _ in range(new):
        found = model(unseen, cache=cache) if cached else model(text)
        vocabulary = check_floats(model=(found, f"{len(text)} n vocabulary"))["vocabulary"]
        if stop is not None and stop not in range(vocabulary):
            raise ValueError(f"stop: expected a token from 0 to {vocabulary - 1}, got {stop!r}")
        logits.append(found[:, -1])
        if logits[-1].isnan().any():
            raise ValueError("model: expected logits that can be compared, got nan")
        unseen = logits[-1].argmax(-1, keepdim=True)
        text = torch.cat([text, unseen], dim=1)
        if stop is not None and (text[:, prompt.shape[1] :] == stop).any(1).all():
            break
    return Generated(text[:, prompt.shape[1] :], torch.stack(logits, 1))
