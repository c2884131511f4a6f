"""What SmolLM2 loses when frequency pairs of its rotary positions stop, turn faster or are taken away.

    python -m smalltorch.experiments.stopped_pairs --workers 1     # the whole table, some two minutes of one core

A pair stops when its frequency is set to 0: its contents are still compared, and the distance is not. It is taken away
when the queries have 0 there. A text is read in one piece, and all heads of all layers are changed alike.

The table, `stopped_pairs.csv`, has a line for each way, kind of text, number of the text and bin of 256 predictions:
`from` is the position of the first one, and `loss` their mean loss in nats. The texts are eight passages of 64 tokens
from the book's unrelated sentences (`passages`), and the first 512 tokens of the sentences (`longer`) and of the essay.

Chapter `rotary` states its contrasts.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from smalltorch import data
from smalltorch.experiments import runner
from smalltorch.experiments.runner import Case, Experiment
from smalltorch.experiments.table import Row
from smalltorch.files import in_one_line
from smalltorch.shapes import check_choice, check_integers
from smalltorch.weights import load, tokens_of

TEXTS = {"passages": (8, 64), "essay": (1, 512), "longer": (1, 512)}  # how many, and their tokens
BEGIN, STRIDE, BIN = 110, 220, 256  # of the passages: the first token, and the way to the next one's


class Way(NamedTuple):
    """Some pairs, counted from the fastest; their speed, over that which the model has; whether they are taken away."""

    pairs: range
    speed: float = 0.0
    away: bool = False


WAYS = {
    "as it is": Way(range(0)),
    "8 fastest stop": Way(range(8)),
    "8 fastest at 1.5": Way(range(8), 1.5),
    "8 next stop": Way(range(8, 16)),
    "12 slowest stop": Way(range(20, 32)),
    "12 slowest away": Way(range(20, 32), 1.0, away=True),
    "12 fastest away": Way(range(12), 1.0, away=True),
    "20 slower stop": Way(range(12, 32)),
    "20 slower at 1.5": Way(range(12, 32), 1.5),
}
OF_TEXTS = ("as it is", "20 slower stop", "20 slower at 1.5", "12 slowest stop")  # those that read whole texts
COLUMNS = ("way", "text", "number", "from", "loss")
KEYS = COLUMNS[:4]


@cache
def _model() -> tuple[Any, Any]:
    return load("smollm2")


@contextmanager
def _changed(model: Any, way: Way) -> Iterator[None]:
    """While the `with` lasts, some pairs of the model's heads are changed."""
    heads = [block.attention for block in model.blocks]
    before = [(head.theta, head.W_Q.data) for head in heads]
    try:
        for head in heads:
            head.theta = head.theta.clone()
            head.theta[list(way.pairs)] *= way.speed
            if way.away:
                W = head.W_Q.data.unflatten(1, (head.heads, head.d_h)).clone()
                W[:, :, [*way.pairs, *(pair + head.d_h // 2 for pair in way.pairs)]] = 0
                head.W_Q.data = W.flatten(1)
        yield
    finally:
        for head, (theta, W) in zip(heads, before, strict=True):
            head.theta, head.W_Q.data = theta, W


def _tokens_in(text: str, count: int, tokenizer: object) -> Int[Tensor, "count n"]:
    """The first texts of a kind."""
    n = TEXTS[text][1]
    if text != "passages":
        return torch.tensor([tokens_of(tokenizer, data.text(text))[:n]])
    many = torch.tensor(tokens_of(tokenizer, data.text("longer")))
    return torch.stack([many[BEGIN + k * STRIDE :][:n] for k in range(count)])


@torch.no_grad()
def rows(way: str, text: str, *, count: int) -> Iterator[Row]:
    """The table's lines for one way and the first texts of a kind.

    Raises:
        ValueError: for an unknown way or text, or no text, or more than there are.
    """
    check_choice(tuple(WAYS), way=way)
    check_choice(tuple(TEXTS), text=text)
    check_integers(1, count=count)
    if count > TEXTS[text][0]:
        raise ValueError(f"count: expected at most {TEXTS[text][0]}, got {count}")
    model, tokenizer = _model()
    tokens = _tokens_in(text, count, tokenizer)
    with _changed(model, WAYS[way]):
        logits = model(tokens)[:, :-1]
    losses = -logits.log_softmax(-1).gather(2, tokens[:, 1:, None])[..., 0]
    for number, values in enumerate(losses):
        for k, part in enumerate(values.split(BIN)):
            yield way, text, number, k * BIN, f"{part.mean():.5f}"


def experiment(arguments: Sequence[str] | None = None) -> Experiment:
    """The experiment that a command asks for; the table has all of it."""
    options = runner.parser(__doc__.splitlines()[0]).parse_args(arguments)
    cases: list[Case] = [
        {"way": way, "text": text, "count": count}
        for text, (count, _) in TEXTS.items()
        for way in (WAYS if text == "passages" else OF_TEXTS)
        if text != "passages" or not way.startswith("20")
    ]
    return Experiment(
        __spec__.name, COLUMNS, KEYS, cases, "none; the texts: the book's own", tolerance=5e-3, options=options
    )


if __name__ == "__main__":
    with in_one_line():
        runner.run(experiment())
