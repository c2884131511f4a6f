"""The source against enumeration, the model against the blocks it is made of, and trainings that repeat themselves."""

import itertools
import json
import math
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from smalltorch.block import PostLN, PreLN
from smalltorch.sample import generator
from smalltorch.train import (
    TEXT,
    Layer,
    Markov,
    TinyLM,
    characters,
    cross_entropy,
    every,
    initial,
    markov,
    masked_loss,
    next_token_loss,
    train,
    windows,
)

# --- the source ----------------------------------------------------------------------------------------------------

sources = st.builds(
    markov, st.text("abc", min_size=1, max_size=3), st.integers(2, 4), st.integers(1, 3), st.floats(0, 3)
)


def probability(source, row):
    """Of a row of tokens, by the definition: stationary for the first k, then the table."""
    k = source.order
    p = source.stationary[tuple(row[:k])] if len(row) >= k else source.block(len(row))[tuple(row)]
    for t in range(k, len(row)):
        p = p * source.P[tuple(row[t - k : t + 1])]
    return float(p)


@given(sources)
def test_the_stationary_distribution_is_left_as_it_is(source):
    k = source.order
    stepped = (source.stationary[..., None] * source.P).sum(0)  # the oldest token is forgotten
    torch.testing.assert_close(stepped, source.stationary, rtol=0, atol=1e-13)
    assert float(source.stationary.sum()) == pytest.approx(1, abs=1e-13) and source.stationary.ndim == k
    assert (source.stationary > 0).all()


@settings(max_examples=15)
@given(sources, st.integers(0, 3), st.integers(0, 2))
def test_entropies_equal_enumeration(source, before, behind):
    n = before + 1 + behind
    if source.vocabulary**n > 1100:
        n, before, behind = 3, 1, 1
    rows = list(itertools.product(range(source.vocabulary), repeat=n))
    p = {row: probability(source, row) for row in rows}
    assert sum(p.values()) == pytest.approx(1, abs=1e-12)
    context = {}
    for row in rows:
        key = row[:before] + row[before + 1 :]
        context[key] = context.get(key, 0) + p[row]
    expected = -sum(p[row] * math.log(p[row] / context[row[:before] + row[before + 1 :]]) for row in rows)
    assert source.entropy(before, behind) == pytest.approx(expected, abs=1e-12)


@given(sources)
def test_more_context_never_raises_entropy_and_the_order_suffices(source):
    k = source.order
    entropies = [math.log(source.vocabulary), *(source.entropy(b) for b in range(k + 2))]
    assert all(a >= b - 1e-12 for a, b in itertools.pairwise(entropies))
    assert source.entropy(k + 1) == pytest.approx(source.rate, abs=1e-12)
    assert source.entropy(k, k) <= source.rate + 1e-12
    assert source.entropy(1, 0) == pytest.approx(source.entropy(0, 1), abs=1e-12)


def test_two_states_by_hand():
    a, b = 0.1, 0.3
    source = Markov(torch.tensor([[1 - a, a], [b, 1 - b]], dtype=torch.float64))
    torch.testing.assert_close(source.stationary, torch.tensor([b, a], dtype=torch.float64) / (a + b))

    def h(p):
        return -p * math.log(p) - (1 - p) * math.log(1 - p)

    assert source.rate == pytest.approx((b * h(a) + a * h(b)) / (a + b))
    assert source.entropy(0) == pytest.approx(h(a / (a + b)))


def test_samples_have_the_source_s_frequencies():
    source = markov("frequencies", 3, 2)
    tokens = source.sample(generator("many"), 20_000, 5)
    for t in (0, 2):  # from the first token on: stretches are stationary
        counts = torch.zeros(3, 3, 3, dtype=torch.float64)
        counts.index_put_(tuple(tokens[:, t : t + 3].T), torch.tensor(1.0, dtype=torch.float64), accumulate=True)
        assert (counts / 20_000 - source.block(3)).abs().max() < 0.012  # four standard deviations of a count
    assert tokens.equal(source.sample(generator("many"), 20_000, 5))


@given(sources, st.integers(1, 5))
def test_surprise_is_minus_log_probability(source, n):
    tokens = source.sample(generator("rows"), 3, n)
    for row, surprise in zip(tokens.tolist(), source.surprise(tokens), strict=True):
        assert float(surprise.sum()) == pytest.approx(-math.log(probability(source, row)), abs=1e-10)


@pytest.mark.parametrize(
    "P, message",
    [
        (torch.full((3,), 1 / 3), "P: expected at least two axes"),
        (torch.full((2, 3), 1 / 3), "P: expected at least two axes, all of one size"),
        (torch.full((2, 2), 0.4), "sum to 1"),
        (torch.eye(2), "P: expected positive entries"),
        (torch.full((2, 2), math.nan), "P: expected finite entries"),
    ],
)
def test_bad_tables_are_refused(P, message):
    with pytest.raises(ValueError, match=message):
        Markov(P)


# --- the text ------------------------------------------------------------------------------------------------------


def test_text_and_windows():
    tokens, alphabet = characters(TEXT)
    assert "".join(alphabet[i] for i in tokens) == TEXT and len(alphabet) == int(tokens.max()) + 1 < 32
    draw = windows(tokens, 12, size=7)
    batch = draw(generator("windows"))
    assert batch.shape == (7, 12)
    assert all("".join(alphabet[i] for i in row) in TEXT for row in batch)
    assert batch.equal(draw(generator("windows")))
    with pytest.raises(ValueError, match="tokens: expected at least n = 12, got 5"):
        windows(tokens[:5], 12)


# --- the model -----------------------------------------------------------------------------------------------------

TOKENS = torch.tensor([[0, 3, 1, 2, 2, 1], [3, 3, 0, 1, 0, 2]])


def drawn(model, name="model"):
    """The model in float64 with its initial weights."""
    model.double().load_state_dict(initial(model, generator(name)))
    return model


@pytest.mark.parametrize("norm, Block", [("pre", PreLN), ("post", PostLN)])
def test_a_full_layer_is_the_block_of_that_name(norm, Block):
    layer = drawn(Layer(8, 2, 12, norm, residual=True, mlp=True))
    block = Block(layer.attention, layer.ffn, layer.norm_1, layer.norm_2)
    X = torch.randn(2, 5, 8, dtype=torch.float64)
    torch.testing.assert_close(layer(X), block(X), rtol=0, atol=0)


def test_parts_can_be_left_out():
    X = torch.randn(2, 5, 8, dtype=torch.float64)
    bare = drawn(Layer(8, 2, 12, None, residual=False, mlp=False))
    torch.testing.assert_close(bare(X), bare.attention(X)[0], rtol=0, atol=0)
    skip = drawn(Layer(8, 2, 12, None, residual=True, mlp=False))
    torch.testing.assert_close(skip(X), X + skip.attention(X)[0], rtol=0, atol=0)
    mlp = drawn(Layer(8, 2, 12, None, residual=False, mlp=True))
    torch.testing.assert_close(mlp(X), mlp.ffn(mlp.attention(X)[0]), rtol=0, atol=0)
    post = drawn(Layer(8, 2, 12, "post", residual=False, mlp=True))
    torch.testing.assert_close(post(X), post.norm_2(post.ffn(post.norm_1(post.attention(X)[0]))), rtol=0, atol=0)
    pre = drawn(Layer(8, 2, 12, "pre", residual=False, mlp=True))
    torch.testing.assert_close(pre(X), pre.ffn(pre.norm_2(pre.attention(pre.norm_1(X))[0])), rtol=0, atol=0)


@pytest.mark.parametrize("norm", ["pre", "post", None])
@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("mlp", [True, False])
def test_the_first_loss_is_nearly_log_vocabulary(norm, residual, mlp):
    model = drawn(TinyLM(6, 10, norm=norm, residual=residual, mlp=mlp))
    tokens = markov("first loss", 6).sample(generator("tokens"), 64, 10)
    assert next_token_loss(model, tokens).item() == pytest.approx(math.log(6), abs=0.1)


def test_causal_or_not():
    changed = TOKENS.clone()
    changed[:, 4:] = (changed[:, 4:] + 1) % 4
    for causal in (True, False):
        model = drawn(TinyLM(4, 6, causal=causal))
        same = (model(TOKENS)[:, :4] - model(changed)[:, :4]).abs().max() < 1e-12
        assert same == causal
    with pytest.raises(ValueError, match="tokens: expected at most 6 a row, got 7"):
        model(torch.zeros(1, 7, dtype=torch.long))


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
from smalltorch.train import TinyLM, markov, next_token_loss, train
source = markov("short run", 4)
run = train(TinyLM(4, 8), next_token_loss, source.batches(8, 16), name="short", seeds=3, steps=12)
print(json.dumps([run.losses.tolist(), source.rate]))
"""


def test_the_same_numbers_with_two_threads_and_other_instructions():
    other = dict(OMP_NUM_THREADS="2", ATEN_CPU_CAPABILITY="default", MKL_CBWR="COMPATIBLE", ONEDNN_MAX_CPU_ISA="SSE41")
    path = os.pathsep.join(sys.path)
    printed = subprocess.run([sys.executable, "-c", SCRIPT], env={**os.environ, **other, "PYTHONPATH": path},
                             capture_output=True, text=True, check=True).stdout
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
    with pytest.raises(ValueError, match="loss: expected one number a batch, got shape"):
        train(TinyLM(4, 8), lambda predict, tokens: predict(tokens), lambda rng: TOKENS, name="bad", steps=1)


def test_batches_may_be_tuples():
    def loss(predict, tokens, hidden):
        return masked_loss(predict, tokens, hidden, mask_token=4)

    def batch(rng: np.random.Generator):
        return TOKENS, torch.from_numpy(rng.random((2, 6)) < 0.5) | (torch.arange(6) == 0)

    run = train(TinyLM(5, 6, causal=False), loss, batch, name="masked", seeds=2, steps=5)
    assert run.losses.shape == (2, 5) and run.losses.isfinite().all()
