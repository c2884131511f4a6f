"""The cache: against the model's own pass, fused attention, and what an entry that stands for several must give."""

import math

import pytest
import torch
import torch.nn.functional as F

from smalltorch.cache import attend, cache_bytes, continued, kept_bias, merged, quantised
from smalltorch.engine.sample import normal
from smalltorch.models import Decoder


@pytest.fixture(scope="module")
def model():
    made = Decoder(vocabulary=20, d=24, layers=2, heads=6, d_ff=20, kv_heads=2).double().requires_grad_(False)
    for name, parameter in made.named_parameters():
        parameter.data = 0.3 * normal(f"a model with a cache {name}", *parameter.shape)
    return made


TOKENS = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6], [2, 7, 1, 8, 2, 8, 1, 8]])


def cached(model):
    cache = []
    model.states(TOKENS[:, :5], cache=cache)
    return cache


def test_the_whole_cache_continues_as_one_pass_does(model):
    entries = [(K, V, torch.zeros(K.shape[:-1]).double()) for K, V in cached(model)]
    found = continued(model, TOKENS[:, 5:], entries, past=5)
    torch.testing.assert_close(found, model.states(TOKENS)[:, 5:])


def test_what_is_evicted_is_hidden_by_a_mask(model):
    keep = torch.tensor([True, False, True, False, True])
    bias = kept_bias(keep).double().expand(2, 2, 5)
    found = continued(model, TOKENS[:, 5:], [(K, V, bias) for K, V in cached(model)], past=5)
    mask = torch.ones(8, 8, dtype=torch.bool)
    mask[5:, :5] = keep
    torch.testing.assert_close(found, model.states(TOKENS, mask=mask[None, None])[:, 5:])


def test_attend_equals_fused_attention():
    Q, K, V, bias = normal("q", 2, 3, 4), normal("k", 2, 5, 4), normal("v", 2, 5, 3), normal("b", 2, 5)
    theirs = F.scaled_dot_product_attention(Q, K, V, attn_mask=bias[:, None].expand(-1, 3, -1))
    torch.testing.assert_close(attend(Q, K, V, bias), theirs)


def test_merged_entries_with_one_key_give_what_they_gave():
    K, V, Q = normal("keys", 2, 4).repeat(3, 1), normal("values", 6, 3), normal("queries", 5, 4)
    whole = attend(Q, K, V, torch.zeros(6).double())
    torch.testing.assert_close(attend(Q, *merged(K, V, torch.arange(6) < 2)), whole)
    means, _, bias = merged(torch.tensor([[0.0], [1.0], [9.0]]), torch.zeros(3, 1), torch.tensor([True, False, True]))
    assert means.flatten().tolist() == [0.5, 1.0, 9.0] and bias.exp().tolist() == pytest.approx([2, 0, 1])


def test_quantised_is_off_by_half_a_step():
    X = normal("to be rounded", 3, 50, 4)
    for dim in (-1, -2):
        for bits in (1, 3, 8):
            step = (X.amax(dim, keepdim=True) - X.amin(dim, keepdim=True)) / (2**bits - 1)
            error = (quantised(X, bits, dim) - X).abs() / step
            assert error.max() <= 0.5 + 1e-9 and error.max() > 0.4 * (bits > 1)
    columns = quantised(X, 2, -2)
    assert all(len(columns[0, :, column].unique()) <= 4 for column in range(4))
    assert torch.equal(quantised(torch.ones(3, 2), 4, -1), torch.ones(3, 2))


def test_bytes():
    assert cache_bytes(2048, 32, 2 * 32 * 128) == 2**30
    assert cache_bytes(10, 2, 6, bits=4) == 60


@pytest.mark.parametrize(
    "wrong",
    [
        lambda model: continued(model, TOKENS, [], past=0),
        lambda model: merged(torch.ones(3, 2), torch.ones(3, 2), torch.zeros(3, dtype=torch.bool)),
        lambda model: quantised(torch.ones(3, 2), 17, -1),
        lambda model: quantised(torch.tensor([[math.nan]]), 4, -1),
        lambda model: cache_bytes(-1, 2, 3),
    ],
)
def test_what_does_not_fit_is_refused(model, wrong):
    with pytest.raises(ValueError):
        wrong(model)


def test_sums_that_overflow_are_refused_and_what_is_evicted_is_not_read():
    big = torch.full((2, 1), 1e200, dtype=torch.float64)
    with pytest.raises(ValueError, match="^Q, K, bias: expected sizes whose products torch.float64 can hold"):
        attend(big, big, torch.ones(2, 1).double(), torch.zeros(2).double())
    low = torch.tensor([-1.5e308, 0.0], dtype=torch.float64)
    with pytest.raises(ValueError, match="^Q, K, bias: expected sizes"):  # -inf would say: evicted
        attend(
            torch.tensor([[1.5e308]], dtype=torch.float64), -torch.ones(2, 1).double(), torch.ones(2, 1).double(), low
        )
    gone = torch.full((2,), -torch.inf).double()
    assert attend(torch.ones(2, 1).double(), big / big, big, gone).tolist() == [[0], [0]]


def test_a_span_that_is_no_float_is_refused():
    with pytest.raises(ValueError, match="^X: expected sizes"):
        quantised(torch.tensor([[-1.7e308, 1.7e308]], dtype=torch.float64), 4, -1)
