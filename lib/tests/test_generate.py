"""Generation with and without a cache, and as transformers does it."""

import pytest
import torch
from tiny import TOKENS, machines, shaken, tiny_gpt

from smalltorch.generate import generate
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
