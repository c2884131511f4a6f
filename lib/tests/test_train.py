"""Losses by their definition, and trainings that repeat themselves."""

import json
import math
import os
import re
import subprocess
import sys
from functools import partial

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


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_losses_of_half_types_are_summed_in_float32(dtype):
    logits, targets = (4 * torch.randn(3, 9000, 5)).to(dtype), torch.randint(5, (3, 9000))  # a float16 ends at 65504
    expected = cross_entropy(logits.double(), targets)
    torch.testing.assert_close(cross_entropy(logits, targets).double(), expected, rtol=torch.finfo(dtype).eps, atol=0)
    tokens, hidden = targets % 4, torch.rand(3, 9000) < 0.9
    found = masked_loss(lambda tokens: logits, tokens, hidden, 4)
    expected = masked_loss(lambda tokens: logits.double(), tokens, hidden, 4)
    assert found.dtype == dtype
    torch.testing.assert_close(found.double(), expected, rtol=torch.finfo(dtype).eps, atol=0)


def test_a_loss_of_any_batch_axes():
    logits = torch.randn(2, 3, 5, 4, dtype=torch.float64)
    targets = torch.randint(4, (2, 3, 5))
    expected = -logits.log_softmax(-1).gather(-1, targets[..., None]).mean()
    torch.testing.assert_close(cross_entropy(logits, targets), expected)
    torch.testing.assert_close(cross_entropy(logits.mT.contiguous().mT, targets.mT.contiguous().mT), expected)
    torch.testing.assert_close(
        cross_entropy(logits[0, 0, 0], targets[0, 0, 0]), -logits[0, 0, 0].log_softmax(-1)[targets[0, 0, 0]]
    )


@pytest.mark.usefixtures("unenforced")
@pytest.mark.parametrize(
    "targets, message",
    [
        (TOKENS.T, "targets: expected shape (2, 6), got (6, 2)"),  # as many, in another order
        (TOKENS[:, :5], "targets: expected shape (2, 6), got (2, 5)"),
        (TOKENS - 1, "targets: expected tokens from 0 to 3, got -1"),
        (TOKENS - 100, "targets: expected tokens from 0 to 3, got -100"),  # torch leaves these out in silence
        (TOKENS + 1, "targets: expected tokens from 0 to 3, got 4"),
        (TOKENS.float(), "targets: expected integers of torch.int64, got torch.float32"),
    ],
)
def test_targets_that_do_not_fit_are_refused(targets, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        cross_entropy(torch.zeros(2, 6, 4), targets)


@pytest.mark.usefixtures("unenforced")
def test_losses_name_bad_arguments():
    model, hidden = TinyLM(5, 6).double(), torch.ones(2, 6, dtype=torch.bool)
    for call, message in (
        (lambda: cross_entropy(torch.zeros(0, 6, 4), TOKENS[:0]), "targets: expected at least one, got shape (0, 6)"),
        (lambda: cross_entropy(torch.zeros(2, 6, 4).int(), TOKENS), "logits: expected floating-point entries, got"),
        (lambda: next_token_loss(model, TOKENS[:, :1]), "tokens: expected a row at least, and 2 in every row, got"),
        (lambda: next_token_loss(model, TOKENS[0]), "tokens: expected shape (batch, n), got (6,)"),
        # the last token is none that the model reads, but one that it is to predict
        (
            lambda: next_token_loss(model, TOKENS.index_fill(1, torch.tensor(5), 5)),
            "tokens: expected tokens from 0 to 4",
        ),
        (lambda: masked_loss(model, TOKENS + 1, hidden, 4), "tokens: expected tokens from 0 to 3, got 4"),
        (lambda: masked_loss(model, TOKENS, hidden, -1), "mask_token: expected an integer of at least 1, got -1"),
        (
            lambda: masked_loss(lambda t: torch.zeros(2, 6, 3), TOKENS, hidden, 4),
            "mask_token: expected at most the voc",
        ),
        (lambda: masked_loss(model, TOKENS, hidden[:, 1:], 4), "hidden: expected shape (batch=2, n=6), got (2, 5)"),
        (
            lambda: masked_loss(model, TOKENS, hidden.int(), 4),
            "hidden: expected a boolean tensor beside the tokens, got",
        ),
        (lambda: masked_loss(model, TOKENS, ~hidden, 4), "hidden: expected True for one token at least, got False"),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
            call()


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


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda start: start.pop("E"), r"start: expected E: \(4, 16\) in torch.float64, got nothing"),
        (lambda start: start.update(W=torch.zeros(2)), r"start: expected W: nothing, got \(2,\) in torch.float32"),
        (lambda start: start.update(E=start["E"].T), r"start: expected E: \(4, 16\) in .*, got \(16, 4\) in"),
        (
            lambda start: start.update(E=start["E"].float()),
            "start: expected E: .* in torch.float64, got .* in torch.float32",
        ),
    ],
)
def test_a_start_that_is_not_the_model_s_is_refused(change, message):
    """One that lacks a matrix would leave the built one, one that has more would train nothing by it."""

    def start(model, rng):
        drawn = initial(model, rng)
        change(drawn)
        return drawn

    with pytest.raises(ValueError, match=f"^{message}"):
        short_run(start=start, steps=1)


@pytest.mark.parametrize("bad", [-1, 4])
def test_bad_tokens_are_refused_in_the_middle_of_a_training(bad):
    source, drawn = markov("short run", 4), iter(range(100))

    def batch(rng):
        tokens = source.sample(rng, 16, 8)
        if next(drawn) == 13:  # seed 1 in step 4: all seeds are computed as one
            tokens[5, 2] = bad
        return tokens

    steps = []
    with pytest.raises(ValueError, match=f"^tokens: expected tokens from 0 to 3, got {bad}"):
        train(
            TinyLM(4, 8),
            next_token_loss,
            batch,
            name="bad",
            seeds=3,
            steps=9,
            report=lambda step, _: steps.append(step),
        )
    assert steps == [0, 1, 2, 3]
    run = short_run(steps=1)
    for tokens in (TOKENS - 1, TOKENS + 1):
        with pytest.raises(ValueError, match="^tokens: expected tokens from 0 to 3"):
            run(tokens)


def test_hiding_nothing_for_one_seed_is_refused():
    hidden = iter([torch.ones(2, 6, dtype=torch.bool), torch.zeros(2, 6, dtype=torch.bool)])
    with pytest.raises(ValueError, match="^hidden: expected True for one token at least"):
        train(
            TinyLM(5, 6, causal=False),
            partial(masked_loss, mask_token=4),
            lambda rng: (TOKENS, next(hidden)),
            name="hidden",
            seeds=2,
            steps=1,
        )


@pytest.mark.usefixtures("unenforced")
def test_batches_and_models_that_cannot_be_trained_are_named():
    shapes = iter([TOKENS, TOKENS[:, :5]])
    with pytest.raises(ValueError, match="^batch: expected the same shapes for all seeds, got"):
        train(TinyLM(4, 8), next_token_loss, lambda rng: next(shapes), name="bad", seeds=2, steps=1)
    with pytest.raises(ValueError, match="^batch: expected a Tensor, got NoneType"):
        train(TinyLM(4, 8), next_token_loss, lambda rng: None, name="bad", steps=1)
    with pytest.raises(ValueError, match="^name: expected a str, got int"):
        short_run(name=3)
    with pytest.raises(ValueError, match="^model: expected a Module, got int"):
        train(3, next_token_loss, lambda rng: TOKENS, name="bad")
    with torch.device("meta"):
        model = TinyLM(4, 8)
    with pytest.raises(ValueError, match="^model: expected parameters that can be read, got E on meta"):
        initial(model, generator("any"))
    with pytest.raises(ValueError, match="^rng: expected a Generator, got int"):
        initial(TinyLM(4, 8), 3)


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


@pytest.mark.processes
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
    for options, message in (
        (dict(seeds=0), "seeds: expected an integer of at least 1, got 0"),
        (dict(steps=0), "steps: expected an integer of at least 1, got 0"),
        (dict(rate=-1e-3), "rate: expected a finite number of at least 0, got -0.001"),
        (dict(rate=math.nan), "rate: expected a finite number of at least 0, got nan"),
    ):
        with pytest.raises(ValueError, match=f"^{message}"):
            short_run(**options)
    with pytest.raises(ValueError, match="steps: expected an integer of at least 1, got 0"):
        every(0)
    for seed in (3, -1):
        with pytest.raises(ValueError, match="^seed: expected"):
            short_run(steps=1).at(seed)
    with pytest.raises(ValueError, match="loss: expected one number per batch, got shape"):
        train(TinyLM(4, 8), lambda predict, tokens: predict(tokens), lambda rng: TOKENS, name="bad", steps=1)


def test_batches_may_be_tuples():
    def loss(predict, tokens, hidden):
        return masked_loss(predict, tokens, hidden, mask_token=4)

    def batch(rng: np.random.Generator):
        return TOKENS, torch.from_numpy(rng.random((2, 6)) < 0.5) | (torch.arange(6) == 0)

    run = train(TinyLM(5, 6, causal=False), loss, batch, name="masked", seeds=2, steps=5)
    assert run.losses.shape == (2, 5) and run.losses.isfinite().all()
