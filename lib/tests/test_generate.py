"""Generation with and without a cache, and as transformers does it; and the laws that tokens are drawn from."""

import numpy as np
import pytest
import torch
from tiny import TOKENS, machines, shaken, tiny_gpt

from smalltorch.engine.sample import generator, normal
from smalltorch.generate import generate, probabilities, sampler
from smalltorch.weights import same_weights


@pytest.mark.parametrize("name", list(machines()))
def test_generation_with_and_without_a_cache(name):
    model = machines()[name]
    prompt = torch.randint(20, (3, 4))
    slow, fast = generate(model, prompt, 8, cached=False), generate(model, prompt, 8)
    assert slow.tokens.shape == (3, 8) and slow.tokens.equal(fast.tokens)
    torch.testing.assert_close(slow.logits, fast.logits, rtol=1e-12, atol=1e-12)
    assert (slow.margin >= 0).all() and slow.margin.equal(slow.logits.sort(-1).values.diff(dim=-1)[..., -1])
    whole = model(torch.cat([prompt, slow.tokens], 1))
    assert whole[:, 3:-1].argmax(-1).equal(slow.tokens)


@torch.no_grad()
def test_generation_equals_transformers():
    theirs = shaken(tiny_gpt(2))
    prompt = TOKENS[:, :4]
    expected = theirs.generate(
        prompt,
        max_new_tokens=8,
        min_new_tokens=8,
        do_sample=False,
        pad_token_id=0,
        attention_mask=torch.ones_like(prompt),
    )
    model = same_weights(theirs)
    result = generate(model, prompt, 8)
    if 0 not in expected[:, 4:]:  # their end of text
        assert result.tokens.equal(expected[:, 4:])


def test_generation_stops():
    def model(tokens):
        return torch.nn.functional.one_hot((tokens + 1) % 5, 5).double()

    prompt = torch.tensor([[0], [2]])
    assert generate(model, prompt, 9, cached=False, stop=4).tokens.tolist() == [[1, 2, 3, 4], [3, 4, 0, 1]]
    assert generate(model, prompt, 2, cached=False, stop=4).tokens.tolist() == [[1, 2], [3, 4]]


def test_bad_input_is_named():
    model = machines()["GPT-2"]
    with pytest.raises(ValueError, match="prompt: expected at least one token per row"):
        generate(model, torch.zeros(2, 0, dtype=torch.long), 3)
    prompt = torch.zeros(2, 1, dtype=torch.long)
    with pytest.raises(ValueError, match="new: expected an integer of at least 1, got 0"):
        generate(model, prompt, 0)
    with pytest.raises(ValueError, match="prompt: expected tokens from 0 on, got -1"):
        generate(model, prompt - 1, 2)
    with pytest.raises(ValueError, match="tokens: expected tokens from 0 to 19, got 20"):
        generate(model, prompt + 20, 2)
    for stop in (20, -1):
        with pytest.raises(ValueError, match=f"stop: expected a token from 0 to 19, got {stop}"):
            generate(model, prompt, 2, stop=stop)
    with pytest.raises(ValueError, match="logits: expected a vocabulary of at least 2, got 1"):
        assert generate(lambda tokens: torch.zeros(2, tokens.shape[1], 1), prompt, 2, cached=False).margin


@pytest.mark.parametrize(
    "logits, message",
    [
        (torch.zeros(2, 20), r"model: expected shape \(2, n, vocabulary\), got \(2, 20\)"),
        (torch.zeros(1, 3, 20), r"model: expected shape \(2, n, vocabulary\), got \(1, 3, 20\)"),
        (torch.full((2, 3, 20), torch.nan), "model: expected logits that can be compared, got nan"),
        (None, "model: expected a tensor of shape"),
    ],
)
def test_a_model_that_gives_no_logits_is_refused(logits, message):
    with pytest.raises(ValueError, match=message):
        generate(lambda tokens: logits, torch.zeros(2, 1, dtype=torch.long), 1, cached=False)


def test_a_logit_may_be_minus_infinity():
    logits = torch.tensor([[[0.0, -torch.inf, 1.0]]])
    assert generate(lambda tokens: logits, torch.zeros(1, 1, dtype=torch.long), 2, cached=False).tokens.tolist() == [
        [2, 2]
    ]


# --- drawing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("top_k", [None, 1, 4, 50])
@pytest.mark.parametrize("top_p", [0.05, 0.6, 1.0])
def test_probabilities_are_those_of_transformers(temperature, top_k, top_p):
    from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

    logits = 3 * normal("logits to draw from", 20, 9)
    kept = TemperatureLogitsWarper(temperature)(None, logits)
    if top_k:
        kept = TopKLogitsWarper(top_k)(None, kept)
    expected = TopPLogitsWarper(top_p)(None, kept).softmax(-1)
    torch.testing.assert_close(probabilities(logits, temperature, top_k, top_p), expected, rtol=1e-12, atol=1e-15)


def test_of_equal_tokens_the_first_are_kept():
    p = probabilities(torch.zeros(100).double(), top_k=3)
    assert p.nonzero()[:, 0].tolist() == [0, 1, 2]
    assert probabilities(torch.zeros(100).double(), top_p=0.03).nonzero()[:, 0].tolist() == [0, 1, 2]


def test_extreme_logits_and_temperatures_leave_probabilities():
    logits = torch.tensor([1e308, -1e308, 0.0], dtype=torch.float64)
    for temperature in (1e-300, 1.0, 1e300):
        p = probabilities(logits, temperature)
        assert torch.isclose(p.sum(), torch.ones(()).double()) and (p >= 0).all()


def test_drawn_tokens_have_their_probabilities():
    logits = normal("logits to draw from", 1, 5)
    found = generate(lambda tokens: logits.expand(len(tokens), 1, 5), torch.zeros(20_000, 1, dtype=torch.long), 1,
                     cached=False, choose=sampler(generator("draws"), 0.7, top_k=4))  # fmt: skip
    p = probabilities(logits[0], 0.7, top_k=4)
    frequency = torch.bincount(found.tokens[:, 0], minlength=5) / 20_000
    assert ((frequency - p).abs() <= 4 * (p * (1 - p) / 20_000).sqrt()).all()


@pytest.mark.parametrize("u", [0.0, 1 - 2**-53])
def test_a_token_of_probability_zero_is_never_drawn(u):
    class Always(np.random.Generator):
        def random(self, shape):
            return np.full(shape, u)

    choose = sampler(Always(np.random.PCG64()), top_k=2)
    assert choose(torch.tensor([[0.0, 5.0, 4.0, 0.0]])).item() == (1 if u == 0 else 2)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"temperature": 0.0}, "temperature: expected a number above 0, got 0.0"),
        ({"temperature": -1.0}, "temperature: expected"),
        ({"top_k": 0}, "top_k: expected an integer of at least 1, got 0"),
        ({"top_p": 0.0}, "top_p: expected a number above 0 and at most 1, got 0.0"),
        ({"top_p": 1.5}, "top_p: expected a number above 0 and at most 1, got 1.5"),
        ({"logits": torch.tensor([0.0, torch.nan])}, "logits: expected finite entries"),
    ],
)
def test_laws_that_are_none_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        probabilities(**{"logits": torch.zeros(4), **changes})


def test_a_temperature_that_underflows_leaves_the_most_probable_token():
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        for T in (1e-46, 1e-310, 5e-324):
            p = probabilities(torch.tensor([1.0, 2.0, 3.0, 3.0], dtype=dtype), temperature=T)
            assert p.dtype == dtype and p.tolist() == [0, 0, 0.5, 0.5]


def test_the_least_float_bans_a_token():
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        banned = torch.tensor([1.0, torch.finfo(dtype).min, 1.0], dtype=dtype)
        assert probabilities(banned).tolist() == [0.5, 0, 0.5]
