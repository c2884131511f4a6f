"""The source against enumeration, and the windows of the text."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from smalltorch.engine.sample import generator
from smalltorch.source import TEXT, Markov, characters, markov, windows

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
        (torch.ones(1, 1), "P: expected at least two axes, all of one size > 1"),
        (torch.full((2, 2), 0.4), "P: expected sums of 1 over the last axis, got 0.8"),
        (torch.eye(2), "P: expected positive entries, got 0.0"),
        (torch.full((2, 2), math.nan), "P: expected finite entries"),
        (torch.ones(2, 2).int(), "P: expected floating-point entries, got torch.int32"),
        (torch.ones(2, 2, device="meta"), "P: expected entries that can be read"),
        (None, "P: expected a tensor"),
    ],
)
@pytest.mark.usefixtures("unenforced")
def test_bad_tables_are_refused(P, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        Markov(P)


@pytest.mark.usefixtures("unenforced")
def test_bad_arguments_are_named():
    source, rng = markov("any", 4, 2), generator("any")
    for call, message in (
        (lambda: markov(3), "name: expected a str, got int"),
        (lambda: markov("a", vocabulary=0), "vocabulary: expected an integer of at least 2, got 0"),
        (lambda: markov("a", order=0), "order: expected an integer of at least 1, got 0"),
        (lambda: markov("a", order=30), "vocabulary, order: expected at most 8192 contexts, got 4 to the 30"),
        (lambda: markov("a", sharpness=math.nan), "sharpness: expected a finite number of at least 0, got nan"),
        (
            lambda: markov("a", sharpness=1e4),
            "sharpness: expected probabilities above 0, got 10000.0, which makes some",
        ),
        (lambda: source.block(-1), "m: expected an integer of at least 0, got -1"),
        (lambda: source.block(50), "m: expected at most 13 tokens of 4, got 50"),
        (lambda: source.entropy(-1), "before: expected an integer of at least 0, got -1"),
        (lambda: source.entropy(7, 7), "before, behind: expected at most 13 tokens of 4, got 7 and 7"),
        (lambda: source.next(3), "before: expected at most 2, the order, got 3"),
        (lambda: source.sample(0, 2, 3), "rng: expected a Generator, got int"),
        (lambda: source.sample(rng, 0, 3), "sequences: expected an integer of at least 1, got 0"),
        (lambda: source.sample(rng, 2, -1), "n: expected an integer of at least 1, got -1"),
        (lambda: source.batches(0), "n: expected an integer of at least 1, got 0"),
        (lambda: source.batches(3, 0), "size: expected an integer of at least 1, got 0"),
        (lambda: characters(""), "text: expected at least one character, got none"),
        (lambda: characters(3), "text: expected a str, got int"),
        (lambda: windows(torch.arange(5), 2, 0), "size: expected an integer of at least 1, got 0"),
        (lambda: windows(torch.arange(5), 0), "n: expected an integer of at least 1, got 0"),
        (lambda: windows(torch.arange(5) - 1, 2), "tokens: expected tokens from 0 on, got -1"),
        (lambda: windows(torch.ones(5), 2), "tokens: expected integers of torch.int64, got torch.float32"),
    ):
        with pytest.raises(ValueError, match=f"^{message}"):
            call()


@pytest.mark.parametrize("bad", [-1, 4])
def test_surprise_of_tokens_that_the_source_lacks_is_refused(bad):
    tokens = torch.tensor([[0, 3, 1], [2, bad, 0]])
    with pytest.raises(ValueError, match=f"^tokens: expected tokens from 0 to 3, got {bad}"):
        markov("any", 4, 1).surprise(tokens)


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


def test_every_window_of_a_text_is_drawn_the_first_and_the_last_too():
    drawn = windows(torch.arange(14), 12, size=200)(generator("all windows"))
    assert {tuple(window.tolist()) for window in drawn} == {tuple(range(start, start + 12)) for start in range(3)}
