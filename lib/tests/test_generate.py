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
    with pytest.raises(ValueError, match="new: expected at least 1, got 0"):
        generate(model, torch.zeros(2, 1, dtype=torch.long), 0)
