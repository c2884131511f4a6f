"""The long run on recall: the texts, the four ways of mixing, and the stored table."""

import math

import pytest
import torch
from torch.func import functional_call

from smalltorch.engine.sample import generator
from smalltorch.experiments import recall
from smalltorch.experiments.recall import NAMES, PAIRS, WAYS, WIDTH, _Recall, _texts
from smalltorch.experiments.table import stored
from smalltorch.train import initial

TOKENS, VALUES = _texts(generator("some pairs"), 200)


def answers(way, tokens):
    model = _Recall(way)
    return functional_call(model, initial(model, generator("recall")), (tokens,))


def test_a_text_asks_for_the_value_of_one_of_its_names():
    names, values = TOKENS[:, :PAIRS, 0], TOKENS[:, :PAIRS, 1] - NAMES
    assert (
        all(len(set(row)) == PAIRS for row in names.tolist())
        and int(names.min()) == 0
        and int(names.max()) == NAMES - 1
    )
    assert int(values.min()) == 0 and int(values.max()) == NAMES - 1
    assert (TOKENS[:, -1, 1] == 2 * NAMES).all()
    asked = names == TOKENS[:, -1:, 0]
    assert (asked.sum(1) == 1).all() and values[asked].equal(VALUES)


@pytest.mark.parametrize("way", WAYS)
def test_only_the_transform_looks_at_the_order_of_the_pairs(way):
    other = torch.cat([TOKENS[:, :PAIRS].flip(1), TOKENS[:, PAIRS:]], 1)
    assert answers(way, TOKENS).allclose(answers(way, other), atol=1e-9) == (way != "Fourier transform")


@torch.no_grad()
def test_ways_differ_and_features_come_near_the_softmax():
    found = {way: answers(way, TOKENS) for way in WAYS}
    assert all(not found[a].allclose(found[b]) for k, a in enumerate(WAYS) for b in WAYS[:k])
    Y, head = torch.randn(9, WIDTH, generator=torch.Generator().manual_seed(0)).double() / 4, _Recall("features")
    weights = initial(head, generator("recall"))
    mixed = []
    for way in WAYS[:2]:
        model = _Recall(way)
        model.double().load_state_dict(weights)
        mixed.append(model.mixed(Y, 1))
    assert 1e-6 < float((mixed[0] - mixed[1]).norm() / mixed[0].norm()) < 0.2


@torch.no_grad()
def test_the_transform_keeps_lengths_at_most():
    Y = torch.randn(5, 9, WIDTH, generator=torch.Generator().manual_seed(0)).double()
    mixed = _Recall("Fourier transform").mixed(Y, 0)
    assert (mixed.square().sum((1, 2)) <= Y.square().sum((1, 2)) + 1e-9).all()


def test_the_stored_table_is_whole():
    _, lines = stored("recall")
    assert tuple(lines[0]) == recall.COLUMNS
    assert [(line["way"], int(line["seed"])) for line in lines] == [
        (way, seed) for way in WAYS for seed in range(recall.SEEDS)
    ]
    assert all(0 < float(line["loss"]) < math.log(NAMES) + 0.1 for line in lines)


def test_bad_arguments_are_named():
    for way, seeds, steps, name in (("mean", 1, 1, "way"), ("softmax", 0, 1, "seeds"), ("softmax", 1, 0, "steps")):
        with pytest.raises(ValueError, match=name):
            list(recall.rows(way, seeds=seeds, steps=steps))
