"""What SmolLM2 loses when part of its cache is evicted, merged or rounded after it has read.

    python -m smalltorch.experiments.eviction --workers 1     # the whole table, some two minutes of one core

SmolLM2 reads passages of the book's essay, 96 tokens each; then its cache is changed once, in all layers, and it goes
on from what is left. The table, `eviction.csv`, has a line for each way, number of entries that a head keeps, and
passage. Its last columns:

    fewest, most, mean   entries that a head keeps of the 96, over all heads
    goes on              loss of 31 of the 32 tokens that follow in the essay, in nats
    copy                 loss when tokens 16 to 47 of the passage come again, from the eighth of them on: before that
                         nobody can know that it is a copy

The ways: `whole` keeps all; `recent`, `sinks and recent`, `heavy hitters`, `by lot` and `merged` are policies, of which
the last three keep the latest half of their budget in any case; `one budget` lets the heads share theirs. The others
keep all entries and change keys or values: rounded to so many bits, or keys to the nearest matrix of rank 32.

Chapter `kv-cache` states its contrasts.
"""

import math
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from smalltorch import data
from smalltorch.attention import MultiHead
from smalltorch.cache import Entries, continued, kept_bias, merged, quantised
from smalltorch.efficient.sparse import top_mask
from smalltorch.engine.sample import generator
from smalltorch.experiments import runner
from smalltorch.experiments.runner import Case, Experiment
from smalltorch.experiments.table import Row
from smalltorch.files import in_one_line
from smalltorch.models import observe
from smalltorch.shapes import check_choice, check_integers
from smalltorch.weights import load, tokens_of

PASSAGES, READ, WRITTEN = 9, 96, 32  # of the essay; tokens that are read, and those that follow
COPIED, AGAIN = 16, 8  # where the copy begins in the passage; from where on it can be recognised
BUDGETS, SINKS, RANK = (12, 48), 4, 32
POLICIES = ("recent", "sinks and recent", "heavy hitters", "by lot", "merged")
ROUNDED = {  # part of the cache, bits, and the axis along which numbers have one scale
    "keys in 4 bits by channel": ("K", 4, -2),
    "keys in 2 bits by channel": ("K", 2, -2),
    "keys in 2 bits by token": ("K", 2, -1),
    "values in 4 bits by token": ("V", 4, -1),
}
LOW_RANK = f"keys of rank {RANK}"
WAYS = ("whole", *POLICIES, "one budget", *ROUNDED, LOW_RANK)
COLUMNS = ("way", "keys", "passage", "fewest", "most", "mean", "goes on", "copy")
KEYS = COLUMNS[:3]

Scores = Float[Tensor, "layer passage head entry"]


@cache
def _read(passages: int) -> tuple[Any, Int[Tensor, "passage n"], Tensor, Tensor, Scores]:
    """The model and the passages; keys and values after reading, and what the tokens read have paid to each entry.

    Of that, all queries and all heads that share the entry are added.
    """
    model, tokenizer = load("smollm2")
    ids = torch.tensor(tokens_of(tokenizer, data.text("essay"))[: passages * (READ + WRITTEN)]).view(passages, -1)
    entries: list[list[Tensor]] = []
    with observe(model, MultiHead) as calls:
        model.states(ids[:, :READ], cache=entries)  # type: ignore[operator]
    K, V = (torch.stack([part[i] for part in entries]) for i in (0, 1))
    A = torch.stack([call.output[1] for call in calls])  # layer passage head query entry
    return model, ids, K, V, A.unflatten(2, (K.shape[2], -1)).sum((3, 4))


def _kept(way: str, keys: int, scores: Scores) -> Bool[Tensor, "layer passage head entry"]:
    """True for the entries that stay."""
    place = torch.arange(READ).expand(scores.shape)
    if way == "recent":
        return place >= READ - keys
    if way == "sinks and recent":
        return (place < SINKS) | (place >= READ - keys + SINKS)
    latest = place >= READ - keys // 2
    if way == "one budget":  # the largest scores of a passage, wherever they stand
        by_passage = scores.masked_fill(latest, -math.inf).transpose(0, 1)
        count = (keys - keys // 2) * scores[:, 0, :, 0].numel()
        return latest | top_mask(by_passage.flatten(1), count).view(by_passage.shape).transpose(0, 1)
    if way == "by lot":  # the same for a passage, however many are read
        drawn = generator(f"entries by lot {keys}").random((len(scores), PASSAGES, *scores.shape[2:]))
        scores = torch.from_numpy(drawn)[:, : scores.shape[1]]
    return latest | top_mask(scores.masked_fill(latest, -math.inf), keys - keys // 2)


def _truncated(K: Float[Tensor, "*batch n d_h"]) -> Float[Tensor, "*batch n d_h"]:
    """The nearest matrix of rank 32."""
    U, sizes, W = torch.linalg.svd(K, full_matrices=False)
    return (U[..., :RANK] * sizes[..., None, :RANK]) @ W[..., :RANK, :]


def _left(way: str, keys: int, K: Tensor, V: Tensor, scores: Scores) -> tuple[Entries, Tensor]:
    """Keys, values and biases after a way, and which entries stay."""
    everything = torch.ones(scores.shape, dtype=torch.bool)
    if way in ROUNDED:
        part, bits, dim = ROUNDED[way]
        K, V = (quantised(X, bits, dim) if name == part else X for name, X in (("K", K), ("V", V)))
    elif way == LOW_RANK:
        K = _truncated(K)
    elif way == "merged":
        keep = _kept("heavy hitters", keys, scores)
        return merged(K, V, keep), keep
    elif way != "whole":
        keep = _kept(way, keys, scores)
        return (K, V, kept_bias(keep)), keep
    return (K, V, kept_bias(everything)), everything


def _losses(model: Any, left: Entries, new: Int[Tensor, "passage n"], first: int) -> list[float]:
    """The mean loss of each passage's new tokens after token `first`."""
    states = continued(model, new[:, :-1], list(zip(*left, strict=True)), past=READ)[:, first:]
    return [F.cross_entropy(X @ model.E.T, row[first + 1 :]).item() for X, row in zip(states, new, strict=True)]


@torch.no_grad()
def rows(way: str, keys: int, *, passages: int) -> Iterator[Row]:
    """The table's lines for one way.

    Raises:
        ValueError: for an unknown way; for more entries than were read, or too few for the sinks; for no passage, or
            more than nine.
    """
    check_choice(WAYS, way=way)
    check_integers(SINKS, keys=keys)
    check_integers(1, passages=passages)
    if keys > READ or passages > PASSAGES:
        raise ValueError(f"keys, passages: expected at most {READ} and {PASSAGES}, got {keys} and {passages}")
    model, ids, *found = _read(passages)
    left, keep = _left(way, keys, *found)
    counts = keep.sum(-1).transpose(0, 1).flatten(1)  # passage head
    on = _losses(model, left, ids[:, READ:], 0)
    copy = _losses(model, left, ids[:, COPIED : COPIED + WRITTEN], AGAIN)
    for k, count in enumerate(counts):
        stay = int(count.min()), int(count.max()), f"{count.double().mean():g}"
        yield way, keys, k, *stay, f"{on[k]:.5f}", f"{copy[k]:.5f}"


def experiment(arguments: Sequence[str] | None = None) -> Experiment:
    """The experiment that a command asks for; the table has all of it."""
    options = runner.parser(__doc__.splitlines()[0]).parse_args(arguments)
    budgets = {way: BUDGETS for way in POLICIES} | {"one budget": BUDGETS[-1:]}
    cases: list[Case] = [
        {"way": way, "keys": keys, "passages": PASSAGES} for way in WAYS for keys in budgets.get(way, (READ,))
    ]
    drawn = "entries by lot, by the number of entries; the text: the book's essay"
    return Experiment(__spec__.name, COLUMNS, KEYS, cases, drawn, tolerance=5e-3, options=options)


if __name__ == "__main__":
    with in_one_line():
        runner.run(experiment())
