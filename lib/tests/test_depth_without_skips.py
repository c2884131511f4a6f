"""The long run on depth without skip connections: that it compares what it says, and that its stored table is whole."""

import sys

import pytest
import torch

from smalltorch.attention import MultiHead
from smalltorch.experiments import depth_without_skips as run
from smalltorch.experiments import runner
from smalltorch.experiments.table import stored
from smalltorch.models import observe
from smalltorch.source import markov


def test_variants_start_from_the_same_weights():
    drawn = {variant: run.trained(2, variant, seeds=2, steps=1).parameters for variant in run.VARIANTS}
    for names, same in ((("bare", "skip"), None), (("mlp", "full"), None), (("bare", "self"), ("W_Q", "W_K"))):
        a, b = (drawn[name] for name in names)
        assert set(a) == set(b)
        for key, parameter in a.items():
            # one step of the first rate apart, at most, each
            close = bool((parameter - b[key]).abs().max() <= 2 * run.RATE * 1.01)
            assert close != (same is not None and key.endswith(same)), (names, key)
    assert any("ffn" in key for key in drawn["full"]) and not any("ffn" in key for key in drawn["bare"])


def test_self_attends_to_itself():
    model = run.model(1, "self").double()
    tokens = run.HELD_OUT[:8]
    weight = {}
    for variant in ("bare", "self"):
        model.load_state_dict(dict(run.start(variant)(model, run.generator("a test"))))
        with torch.no_grad(), observe(model, MultiHead) as calls:
            model(tokens)
        weight[variant] = float(calls[0].output[1][..., run.LATE, :].diagonal(run.N // 2, -2, -1).mean())
    assert weight["self"] > 0.5 > 2 * weight["bare"]


def test_excess_by_hand():
    trained = run.trained(1, "bare", seeds=2, steps=2)
    source, tokens = markov("depth without skips", 4, 1), run.HELD_OUT
    for seed, above in enumerate(run.excess(trained)):
        with torch.no_grad():
            logp = trained.at(seed)(tokens).log_softmax(-1)
        total = 0.0
        for last in range(4):  # by the last token: the mean prediction's cross-entropy less the source's entropy
            here = tokens[:, 8:] == last
            p = source.P[last]
            total += float((p * (p.log() - logp[:, 8:][here])).sum())
        assert float(above) == pytest.approx(total / tokens[:, 8:].numel(), rel=1e-9)


def test_residual_at_start_by_hand():
    _, lines = stored("depth_without_skips")
    for variant in ("mlp", "self"):
        model = run.model(2, variant).double()
        name = "depth without skips, 2 layers, weights 1"
        model.load_state_dict(dict(run.start(variant)(model, run.generator(name))))
        with torch.no_grad():
            X = model.states(run.HELD_OUT)[:, 8:].numpy()
        R = X - X.mean(1, keepdims=True)
        expected = ((R**2).sum((1, 2)) / (X**2).sum((1, 2))) ** 0.5
        assert run.residual_at_start(2, variant, 1) == pytest.approx(expected.mean(), rel=1e-9)
        kept = [line for line in lines if (line["layers"], line["variant"], line["seed"]) == ("2", variant, "1")]
        assert float(kept[0]["residual"]) == pytest.approx(expected.mean(), abs=1e-4)


def test_the_stored_table_is_whole():
    head, lines = stored("depth_without_skips")
    assert [line.split(":")[0] for line in head] == ["command", "seeds", "versions", "hardware"]
    assert tuple(lines[0]) == run.COLUMNS
    keys = [(int(line["layers"]), line["variant"], int(line["steps"]), int(line["seed"])) for line in lines]
    seeds = {key[-1] for key in keys}
    assert len(seeds) >= 5 and seeds == set(range(len(seeds)))
    assert set(keys) == {(*case, seed) for case in run.CASES for seed in seeds} and len(keys) == len(set(keys))
    unigram = run.SOURCE.entropy(0) - run.SOURCE.entropy(1)
    for line in lines:
        assert 0 < float(line["residual"]) < 1 and 0 < float(line["excess"]) < unigram + 0.02


def test_the_second_table_is_whole():
    head, lines = stored("depth_without_skips_again")
    assert "--layers 4 --steps 400 --seeds 20" in head[0]
    keys = [(line["layers"], line["variant"], line["steps"], int(line["seed"])) for line in lines]
    assert keys == [("4", variant, "400", seed) for variant in run.VARIANTS for seed in range(20)]


def test_the_script_writes_a_table(tmp_path, monkeypatch, capsys):
    out = tmp_path / "table.csv"
    monkeypatch.setattr(sys, "argv", ["x.py", "--layers", "1", "--seeds", "2", "--steps", "2", "--out", str(out)])
    runner.run(run.experiment())
    text = out.read_text(encoding="utf-8").splitlines()
    assert text[0].startswith("# command: python -m smalltorch.experiments.depth_without_skips --layers 1")
    assert text[7] == ",".join(run.COLUMNS) and len(text) == 8 + len(run.VARIANTS) * 2
    assert "5 of 5 done" in capsys.readouterr().err
