"""What MiniLM's training is worth when few sentences have a label: the nearest of two means, against random weights.

    python -m smalltorch.experiments.few_labels --workers 1     # the whole table, half a minute of one core

Sentences of two of the book's texts, the essay and the unrelated sentences, are cut to their first 12 tokens. One or
five of each text have a label, and each of the rest goes to the text whose labelled sentences have the nearer mean.
A sentence is the mean of its tokens' last states, of length 1: of MiniLM as it is trained, or as before any
training, without gains and biases and with all other weights random; or, as a control, it is its number of tokens.
Each of twenty draws has its own labelled sentences and its own random weights. The table, `few_labels.csv`, has for
each draw, kind of vectors, number of labelled sentences and text how many sentences were left, and the share of them
that went to their text.

Chapter `labels` states its contrasts.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from smalltorch import data
from smalltorch.engine.sample import generator
from smalltorch.experiments import runner
from smalltorch.experiments.runner import Case, Experiment
from smalltorch.experiments.table import Row
from smalltorch.files import in_one_line
from smalltorch.shapes import check_integers
from smalltorch.weights import load

TEXTS, LENGTH = ("essay", "longer"), 12  # tokens of a sentence, besides the marks around it
EXAMPLES, DRAWS = (1, 5), 20  # labelled sentences of each text, and how often they are drawn
WAYS = ("trained", "untrained", "lengths")
COLUMNS = ("draw", "vectors", "examples", "text", "left", "share")
KEYS = COLUMNS[:4]


def _sentences(tokenizer: Any) -> list[list[list[int]]]:
    """The tokens of each text's sentences, with their two marks; those that are too short are left out."""
    texts = (data.text(name).replace("\n", " ").replace("?", ".").split(".") for name in TEXTS)
    ids = [[tokenizer.encode(sentence.strip()).ids for sentence in text] for text in texts]
    return [[sentence for sentence in text if len(sentence) >= LENGTH + 2] for text in ids]


@torch.no_grad()
def _vectors(model: torch.nn.Module, tokens: Int[Tensor, "sentence n"]) -> Float[Tensor, "sentence d"]:
    X = model(tokens).mean(1)
    return (X / X.norm(dim=1, keepdim=True)).double()


@torch.no_grad()
def _forget(model: torch.nn.Module, draw: int) -> None:
    """Make a model one before any training: no gain, no bias, and all other weights random."""
    torch.manual_seed(draw)
    for name, parameter in model.named_parameters():
        plain = torch.full(parameter.shape, float(name.endswith("gamma")))
        parameter.copy_(0.02 * torch.randn(parameter.shape) if parameter.ndim == 2 else plain)


@cache
def _trained() -> tuple[Float[Tensor, "sentence d"], list[list[list[int]]], Int[Tensor, "sentence n"]]:
    """The vectors of the trained model, its sentences, and these cut to one length."""
    model, tokenizer = load("minilm")
    sentences = _sentences(tokenizer)
    tokens = torch.tensor([ids[: LENGTH + 1] + ids[-1:] for ids in sum(sentences, [])])
    return _vectors(model, tokens), sentences, tokens


def _shares(X: Sequence[Float[Tensor, "_ d"]], k: int, draw: int) -> Iterator[tuple[int, float]]:
    """Of each text: how many vectors are left where k have a label, and the share that is nearest to its own mean."""
    rng = generator(f"labels, equal lengths, {k} sentences, draw {draw}")
    orders = [torch.from_numpy(rng.permutation(len(text))) for text in X]
    means = torch.stack([text[order[:k]].mean(0) for text, order in zip(X, orders, strict=True)])
    for number, (text, order) in enumerate(zip(X, orders, strict=True)):
        nearest = torch.cdist(text[order[k:]], means).argmin(1)
        yield len(nearest), float((nearest == number).double().mean())


def rows(draw: int) -> Iterator[Row]:
    """The table's lines for one draw.

    Raises:
        ValueError: for a draw below 0.
    """
    check_integers(0, draw=draw)
    trained, sentences, tokens = _trained()
    model, _ = load("minilm")
    _forget(model, draw)
    lengths = torch.tensor([[len(ids)] for ids in sum(sentences, [])], dtype=torch.float64)
    for way, X in zip(WAYS, (trained, _vectors(model, tokens), lengths), strict=True):
        for k in EXAMPLES:
            for text, found in zip(TEXTS, _shares(X.split([len(ids) for ids in sentences]), k, draw), strict=True):
                yield draw, way, k, text, found[0], f"{found[1]:.6f}"


def experiment(arguments: Sequence[str] | None = None) -> Experiment:
    """The experiment that a command asks for; the table has all of it."""
    options = runner.parser(__doc__.splitlines()[0]).parse_args(arguments)
    cases: list[Case] = [{"draw": draw} for draw in range(DRAWS)]
    seeds = f"draws 0 to {DRAWS - 1}"
    return Experiment(__spec__.name, COLUMNS, KEYS, cases, seeds, tolerance=3e-2, options=options)


if __name__ == "__main__":
    with in_one_line():
        runner.run(experiment())
