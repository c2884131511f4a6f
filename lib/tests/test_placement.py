"""The long run on the place of LayerNorm: that it compares what it says, and that its stored table is whole."""

import itertools
import math
import sys

import pytest
import torch

from smalltorch.attention import MultiHead
from smalltorch.engine.sample import generator
from smalltorch.experiments import placement, runner
from smalltorch.experiments.table import stored
from smalltorch.models import observe
from smalltorch.source import markov
from smalltorch.train import initial

N_ALL = math.sqrt(placement.N)


def test_both_placements_start_from_the_same_weights_and_data():
    pre, post = (placement.trained(2, place, 0.0, seeds=2, steps=1) for place in placement.PLACES)
    assert set(pre.parameters) - set(post.parameters) == {"norm.gamma", "norm.beta"}  # the norm before the readout
    assert set(post.parameters) < set(pre.parameters)
    for name, parameter in post.parameters.items():
        assert parameter.equal(pre.parameters[name]), name
    for seed in range(2):  # rate 0: as initialised
        drawn = initial(pre.model, generator(f"placement, 2 layers, weights {seed}"))
        assert all(parameter[seed].equal(drawn[name]) for name, parameter in pre.parameters.items())
    assert not pre.parameters["W_U"][0].equal(pre.parameters["W_U"][1])
    kinds = {type(layer.norm_1).__name__ for run in (pre, post) for layer in run.model.layers}
    assert kinds == {"LayerNorm"} and [run.model.layers[0].place for run in (pre, post)] == ["pre", "post"]


def test_rows_by_hand():
    run = placement.trained(2, "post", 1e-2, seeds=2, steps=3)
    lines = list(placement.rows(2, "post", 1e-2, seeds=2, steps=3))
    assert [(line[3], line[5]) for line in lines] == [(0, 1), (0, 2), (1, 1), (1, 2)]
    assert all(line[:3] == (2, 1e-2, "post") for line in lines)
    tokens, source = placement.HELD_OUT, markov("placement", 4, 2)
    for seed in range(2):
        model = run.at(seed)
        with observe(model, MultiHead) as calls:
            logp = model(tokens[:, :-1]).log_softmax(-1)
        loss = -logp.gather(2, tokens[:, 1:, None]).mean()
        for line, call in zip(lines[2 * seed :][:2], calls, strict=True):
            norm = torch.linalg.svdvals(call.output[1])[..., 0]  # sequence, head
            assert float(line[4]) == pytest.approx(float(loss - source.surprise(tokens)[:, 1:].mean()), abs=1e-6)
            assert float(line[6]) == pytest.approx(float(norm.mean()), rel=2e-4)
            assert float(line[7]) == pytest.approx(float(norm.max(1).values.mean()), rel=2e-4)


def test_the_stored_table_is_whole():
    head, lines = stored("placement")
    assert [line.split(":")[0] for line in head] == ["command", "seeds", "versions", "hardware"]
    assert tuple(lines[0]) == placement.COLUMNS
    keys = [tuple(line[key] for key in ("layers", "rate", "norm", "seed", "layer")) for line in lines]
    seeds = {int(line["seed"]) for line in lines}
    assert len(seeds) >= 5 and {6, 12} <= {int(line["layers"]) for line in lines}
    assert set(keys) == {
        (str(layers), rate, place, str(seed), str(layer))
        for layers, rate, place, seed in itertools.product(
            (2, 6, 12), ("0.0", "0.001", "0.003"), placement.PLACES, range(len(seeds))
        )
        for layer in range(1, layers + 1)
    } and len(keys) == len(set(keys))
    for line in lines:
        assert 1 - 1e-3 <= float(line["mean"]) <= float(line["largest"]) <= N_ALL and float(line["excess"]) > 0


def test_the_stored_table_starts_as_the_script_does():
    """The untrained models need no training: their lines must come out again."""
    _, lines = stored("placement")
    for place in placement.PLACES:
        for made, line in zip(
            placement.rows(6, place, 0.0, seeds=2, steps=1),
            [line for line in lines if line["layers"] == "6" and line["rate"] == "0.0" and line["norm"] == place],
            strict=False,
        ):
            for value, column in zip(made, placement.COLUMNS, strict=True):
                assert line[column] == str(value) or float(line[column]) == pytest.approx(float(value), abs=1e-3)


def test_the_script_writes_a_table(tmp_path, monkeypatch, capsys):
    out = tmp_path / "table.csv"
    options = ["--layers", "1", "--rates", "1e-3", "--seeds", "2", "--steps", "2", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", ["placement.py", *options])
    runner.run(placement.experiment())
    text = out.read_text(encoding="utf-8").splitlines()
    assert text[0].startswith("# command: python -m smalltorch.experiments.placement --layers 1")
    assert text[7] == ",".join(placement.COLUMNS) and len(text) == 8 + 2 * 2 * 2  # rates, placements, seeds
    assert "4 of 4 done" in capsys.readouterr().err
