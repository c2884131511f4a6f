import math
import re

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from test_attention import with_weights_of

from smalltorch.attention import MultiHead, causal_mask
from smalltorch.block import B2T, FFN, CrossPostLN, DeepNorm, PostLN, PreLN, SwiGLU, deepnorm_scales
from smalltorch.norm import LayerNorm


def randn(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def beside_torch(kind, *more, activation=F.relu, norm_first=False):
    """A block of the library, and torch's with the same weights."""
    theirs = torch.nn.TransformerEncoderLayer(
        8, 2, dim_feedforward=12, dropout=0.0, activation=activation, batch_first=True, norm_first=norm_first
    ).double()
    ours = kind(MultiHead(8, 2, bias=True), FFN(8, 12, activation), LayerNorm(8), LayerNorm(8), *more).double()
    with_weights_of(theirs.self_attn, ours.attention)
    with torch.no_grad():
        for W, b, layer in (("W_1", "b_1", theirs.linear1), ("W_2", "b_2", theirs.linear2)):
            getattr(ours.ffn, W).copy_(layer.weight.T)
            getattr(ours.ffn, b).copy_(layer.bias)
        for mine, their in ((ours.norm_1, theirs.norm1), (ours.norm_2, theirs.norm2)):
            their.weight.copy_(mine.gamma.normal_())
            their.bias.copy_(mine.beta.normal_())
    return ours, theirs


@pytest.mark.parametrize("activation", [F.gelu, F.relu])
@pytest.mark.parametrize("kind", [PreLN, PostLN])
def test_block_equals_torch(kind, activation):
    (ours, theirs), X = beside_torch(kind, activation=activation, norm_first=kind is PreLN), randn(3, 5, 8)
    torch.testing.assert_close(ours(X), theirs(X), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(ours(X, causal_mask(5)), theirs(X, src_mask=~causal_mask(5)), rtol=1e-12, atol=1e-12)


def test_swiglu_by_its_formula():
    model, X = SwiGLU(4, 6).double(), randn(3, 4)
    gate = X @ model.W_gate
    expected = (gate / (1 + torch.exp(-gate)) * (X @ model.W_up)) @ model.W_down
    torch.testing.assert_close(model(X), expected, rtol=1e-13, atol=1e-13)


@pytest.mark.usefixtures("unenforced")
def test_bad_input_is_named():
    for kind in (FFN, SwiGLU):
        for X, message in (
            (torch.zeros(2, 3), "X: expected shape (..., n, d=4), got (2, 3)"),
            (torch.zeros(2, 4).int(), "X: expected floating-point entries, got torch.int32"),
            (torch.full((2, 4), 3e38), "X: expected sizes whose products torch.float32 can hold, got up to 3e+38"),
        ):
            with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
                kind(4, 6)(X)
        for sizes, name in (((0, 6), "d"), ((4, 0), "d_ff")):
            with pytest.raises(ValueError, match=f"^{name}: expected an integer of at least 1, got 0"):
                kind(*sizes)


@pytest.mark.usefixtures("unenforced")
def test_a_block_that_reads_a_memory_needs_one():
    block, X = CrossPostLN(4, 2, 6), torch.randn(3, 5, 4)
    seen = torch.ones(3, 1, 1, 7, dtype=torch.bool)
    assert block(X, torch.randn(3, 7, 4), causal_mask(5), seen).shape == (3, 5, 4)
    for memory, mask, message in (
        (None, None, "memory: expected a tensor of shape (..., m, d=4), got NoneType"),
        (torch.randn(3, 7, 5), None, "memory: expected shape (..., m, d=4), got (3, 7, 5)"),
        (torch.randn(3, 7, 4), seen[:, 0, 0], "memory_mask: expected shape (5, 7) or (3, 2, 5, 7), or 1 in place of a"),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
            block(X, memory, None, mask)


def fairseq_b2t(theirs, X, mask=None):
    """The authors' order of 2023, with torch's parts: the layer's input is added before the last norm."""
    bottom = X
    X = theirs.norm1(X + theirs.self_attn(X, X, X, attn_mask=mask, need_weights=False)[0])
    X = X + theirs.linear2(theirs.activation(theirs.linear1(X)))
    return theirs.norm2(bottom + X)


def torchscale_deepnorm(theirs, X, alpha, mask=None):
    """The authors' `residual_connection(x, residual) = residual * alpha + x`, with torch's parts."""
    X = theirs.norm1(X * alpha + theirs.self_attn(X, X, X, attn_mask=mask, need_weights=False)[0])
    return theirs.norm2(X * alpha + theirs.linear2(theirs.activation(theirs.linear1(X))))


def test_b2t_equals_its_authors_order():
    (ours, theirs), X = beside_torch(B2T), randn(3, 5, 8)
    torch.testing.assert_close(ours(X), fairseq_b2t(theirs, X), rtol=1e-12, atol=1e-12)
    masked = fairseq_b2t(theirs, X, ~causal_mask(5))
    torch.testing.assert_close(ours(X, causal_mask(5)), masked, rtol=1e-12, atol=1e-12)


def test_deepnorm_equals_its_authors_order():
    (ours, theirs), X = beside_torch(DeepNorm, 1.7), randn(3, 5, 8)
    torch.testing.assert_close(ours(X), torchscale_deepnorm(theirs, X, 1.7), rtol=1e-12, atol=1e-12)
    masked = torchscale_deepnorm(theirs, X, 1.7, ~causal_mask(5))
    torch.testing.assert_close(ours(X, causal_mask(5)), masked, rtol=1e-12, atol=1e-12)


def test_deepnorm_of_alpha_1_is_post_ln():
    parts, X = (MultiHead(8, 2), FFN(8, 12), LayerNorm(8), LayerNorm(8)), randn(3, 5, 8)
    ours, post = DeepNorm(*parts, 1.0).double(), PostLN(*parts).double()
    torch.testing.assert_close(ours(X), post(X), rtol=0, atol=0)


@given(st.integers(1, 10**6))
def test_deepnorm_scales_by_their_definition(layers):
    alpha, beta = deepnorm_scales(layers)
    assert math.isclose(alpha**4, 2 * layers) and math.isclose(beta**-4, 8 * layers)
    assert math.isclose(alpha * beta, 0.5**0.5)  # whatever the depth


@pytest.mark.usefixtures("unenforced")
def test_bad_scales_are_named():
    parts = MultiHead(8, 2), FFN(8, 12), LayerNorm(8), LayerNorm(8)
    for alpha in (-1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="^alpha: expected a finite number of at least 0"):
            DeepNorm(*parts, alpha)
    with pytest.raises(ValueError, match="^layers: expected an integer of at least 1, got 0"):
        deepnorm_scales(0)
