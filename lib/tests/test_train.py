"""Losses by their definition, and trainings that repeat themselves."""

import json
import math
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from tiny import drawn

from smalltorch.engine.sample import generator
from smalltorch.models import TinyLM
from smalltorch.source import markov
from smalltorch.train import cross_entropy, every, initial, masked_loss, next_token_loss, train

TOKENS = torch.tensor([[0, 3, 1, 2, 2, 1], [3, 3, 0, 1, 0, 2]])


# --- initial weights -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", ["pre", "post", None])
@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("mlp", [True, False])
def test_the_first_loss_is_nearly_log_vocabulary(norm, residual, mlp):
    model = drawn(TinyLM(6, 10, norm=norm, residual=residual, mlp=mlp))
    tokens = markov("first loss", 6).sample(generator("tokens"), 64, 10)
    assert next_token_loss(model, tokens).item() == pytest.approx(math.log(6), abs=0.1)


# --- losses --------------------------------------------------------------------------------------------------------


def test_losses_by_their_definition():
    model = drawn(TinyLM(5, 6, causal=False))
    logp = model(TOKENS).log_softmax(-1)
    expected = -sum(logp[i, t, TOKENS[i, t]] for i in range(2) for t in range(6)) / 12
    torch.testing.assert_close(cross_entropy(model(TOKENS), TOKENS), expected)
    logp = model(TOKENS[:, :-1]).log_softmax(-1)
    expected = -sum(logp[i, t, TOKENS[i, t + 1]] for i in range(2) for t in range(5)) / 10
    torch.testing.assert_close(next_token_loss(model, TOKENS), expected)
    hidden = torch.tensor([[True, False, False, True, False, False], [False] * 5 + [True]])
    seen = TOKENS.clone()
    seen[hidden] = 4
    logp = model(seen)[..., :4].log_softmax(-1)
    expected = -(logp[0, 0, TOKENS[0, 0]] + logp[0, 3, TOKENS[0, 3]] + logp[1, 5, TOKENS[1, 5]]) / 3
    torch.testing.assert_close(masked_loss(model, TOKENS, hidden, 4), expected)


# --- the loop ------------------------------------------------------------------------------------------------------


def short_run(**options):
    source = markov("short run", 4)
    options = dict(name="short", seeds=3, steps=12) | options
    return train(TinyLM(4, 8), next_token_loss, source.batches(8, 16), **options)


def test_seeds_trained_together_are_seeds_trained_alone():
    """By hand, one seed: the module, torch's autograd, torch's Adam."""
    run, source = short_run(), markov("short run", 4)
    for seed in range(3):
        model = drawn(TinyLM(4, 8), f"short, weights {seed}")
        optimiser, rng, losses = torch.optim.Adam(model.parameters(), lr=3e-3), generator(f"short, data {seed}"), []
        for step in range(12):
            optimiser.param_groups[0]["lr"] = 3e-3 * (1 - step / 12)
            loss = next_token_loss(model, source.sample(rng, 16, 8))
            losses.append(loss.item())
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        torch.testing.assert_close(run.losses[seed], torch.tensor(losses, dtype=torch.float64), rtol=1e-9, atol=0)
        torch.testing.assert_close(run.at(seed)(TOKENS), model(TOKENS), rtol=1e-7, atol=1e-9)
    assert run.losses[:, 0].unique().numel() == 3


def test_a_run_s_outputs_and_evaluation():
    run = short_run()
    assert run(TOKENS).shape == (3, 2, 6, 4)
    for seed in range(3):
        torch.testing.assert_close(run(TOKENS)[seed], run.at(seed)(TOKENS), rtol=1e-10, atol=1e-12)
        alone = next_token_loss(run.at(seed), TOKENS)
        torch.testing.assert_close(run.evaluate(next_token_loss, TOKENS)[seed], alone, rtol=1e-10, atol=1e-12)
    assert not any(p.requires_grad for p in run.at(0).parameters())


def test_a_run_repeats_itself():
    first, second, other = short_run(), short_run(), short_run(name="other")
    assert first.losses.equal(second.losses) and not first.losses.equal(other.losses)
    more = short_run(seeds=4)  # one more seed leaves the others what they were
    torch.testing.assert_close(more.losses[:3], first.losses, rtol=1e-9, atol=0)


def test_a_run_starts_where_it_is_told_to():
    def half(model, rng):
        return {name: W / 2 for name, W in initial(model, rng).items()}

    run, source = short_run(start=half, steps=1), markov("short run", 4)
    model = drawn(TinyLM(4, 8), "short, weights 0")
    model.load_state_dict({name: W / 2 for name, W in model.state_dict().items()})
    first = next_token_loss(model, source.sample(generator("short, data 0"), 16, 8))
    torch.testing.assert_close(run.losses[0, 0], first.detach(), rtol=1e-9, atol=0)


SCRIPT = """
import json, os, torch
torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
from smalltorch.models import TinyLM
from smalltorch.source import markov
from smalltorch.train import next_token_loss, train
source = markov("short run", 4)
run = train(TinyLM(4, 8), next_token_loss, source.batches(8, 16), name="short", seeds=3, steps=12)
print(json.dumps([run.losses.tolist(), source.rate]))
"""


def test_the_same_numbers_with_two_threads_and_other_instructions():
    other = dict(OMP_NUM_THREADS="2", ATEN_CPU_CAPABILITY="default", MKL_CBWR="COMPATIBLE", ONEDNN_MAX_CPU_ISA="SSE41")
    path = os.pathsep.join(sys.path)
    printed = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, **other, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    losses, rate = json.loads(printed)
    torch.testing.assert_close(torch.tensor(losses, dtype=torch.float64), short_run().losses, rtol=1e-9, atol=0)
    assert rate == pytest.approx(markov("short run", 4).rate, rel=1e-12)


def test_training_approaches_the_entropy_rate_and_never_passes_it():
    source = markov("learnable", 3, 1)
    run = train(TinyLM(3, 8, layers=1), next_token_loss, source.batches(8), name="learn", seeds=2, steps=120, rate=1e-2)
    test = source.sample(generator("test"), 4000, 8)
    excess = run.evaluate(next_token_loss, test) - source.surprise(test)[:, 1:].mean()
    assert (excess > 0).all() and (excess < 0.03).all()  # the source's own probabilities cannot be beaten
    assert float(source.surprise(test)[:, 1:].mean()) == pytest.approx(source.rate, abs=0.02)
    assert (run.losses[:, 0] - math.log(3)).abs().max() < 0.1


def test_reports_and_refusals(capsys):
    seen = []
    short_run(report=lambda step, losses: seen.append((step, losses.shape)), steps=3)
    assert seen == [(0, (3,)), (1, (3,)), (2, (3,))]
    short_run(report=every(2), steps=3)
    assert [line.split(":")[0] for line in capsys.readouterr().err.splitlines()] == ["step 0", "step 2"]
    with pytest.raises(ValueError, match="seeds, steps: expected at least 1 of each, got 0 and 12"):
        short_run(seeds=0)
    with pytest.raises(ValueError, match="loss: expected one number per batch, got shape"):
        train(TinyLM(4, 8), lambda predict, tokens: predict(tokens), lambda rng: TOKENS, name="bad", steps=1)


def test_batches_may_be_tuples():
    def loss(predict, tokens, hidden):
        return masked_loss(predict, tokens, hidden, mask_token=4)

    def batch(rng: np.random.Generator):
        return TOKENS, torch.from_numpy(rng.random((2, 6)) < 0.5) | (torch.arange(6) == 0)

    run = train(TinyLM(5, 6, causal=False), loss, batch, name="masked", seeds=2, steps=5)
    assert run.losses.shape == (2, 5) and run.losses.isfinite().all()
