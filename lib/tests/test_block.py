import math
import re

import pytest
import torch
import torch.nn.functional as F
from test_attention import with_weights_of

from smalltorch.attention import MultiHead, causal_mask
from smalltorch.block import FFN, PostLN, PreLN, SwiGLU
from smalltorch.models import Decoder, Encoder, attention_matrices, observe, queries_and_keys
from smalltorch.norm import LayerNorm, RMSNorm


def randn(*shape):
    return torch.randn(*shape, dtype=torch.float64)


@pytest.mark.parametrize("activation", [F.gelu, F.relu])
@pytest.mark.parametrize("kind", [PreLN, PostLN])
def test_block_equals_torch(kind, activation):
    theirs = torch.nn.TransformerEncoderLayer(
        8, 2, dim_feedforward=12, dropout=0.0, activation=activation, batch_first=True, norm_first=kind is PreLN
    ).double()
    ours = kind(MultiHead(8, 2, bias=True), FFN(8, 12, activation), LayerNorm(8), LayerNorm(8)).double()
    with_weights_of(theirs.self_attn, ours.attention)
    with torch.no_grad():
        for W, b, layer in (("W_1", "b_1", theirs.linear1), ("W_2", "b_2", theirs.linear2)):
            getattr(ours.ffn, W).copy_(layer.weight.T)
            getattr(ours.ffn, b).copy_(layer.bias)
        for mine, their in ((ours.norm_1, theirs.norm1), (ours.norm_2, theirs.norm2)):
            their.weight.copy_(mine.gamma.normal_())
            their.bias.copy_(mine.beta.normal_())
    X = randn(3, 5, 8)
    torch.testing.assert_close(ours(X), theirs(X), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(ours(X, causal_mask(5)), theirs(X, src_mask=~causal_mask(5)), rtol=1e-12, atol=1e-12)


def test_swiglu_by_its_formula():
    model, X = SwiGLU(4, 6).double(), randn(3, 4)
    gate = X @ model.W_gate
    expected = (gate / (1 + torch.exp(-gate)) * (X @ model.W_up)) @ model.W_down
    torch.testing.assert_close(model(X), expected, rtol=1e-13, atol=1e-13)


@pytest.fixture
def decoder():
    return Decoder(vocabulary=20, d=12, layers=3, heads=6, d_ff=16, kv_heads=2).double()


@pytest.fixture
def encoder():
    return Encoder(vocabulary=20, d=12, layers=3, heads=6, d_ff=16, positions=8).double()


def test_decoder_does_not_look_ahead(decoder):
    tokens = torch.randint(20, (2, 7))
    changed = tokens.clone()
    changed[:, 4:] = (changed[:, 4:] + 1) % 20
    torch.testing.assert_close(decoder(tokens)[:, :4], decoder(changed)[:, :4], rtol=0, atol=1e-12)
    assert (decoder(tokens)[:, 4:] - decoder(changed)[:, 4:]).abs().amax() > 1e-3


def test_decoder_reads_out_with_its_embedding_or_its_own_matrix(decoder):
    tokens = torch.randint(20, (2, 7))
    torch.testing.assert_close(decoder(tokens), decoder.states(tokens) @ decoder.E.T, rtol=0, atol=0)
    untied = Decoder(vocabulary=20, d=12, layers=1, heads=2, d_ff=16, tied=False).double()
    torch.testing.assert_close(untied(tokens), untied.states(tokens) @ untied.W_U, rtol=0, atol=0)


def test_masks_hide_padding(decoder, encoder):
    tokens = torch.randint(20, (1, 5))
    padded = torch.cat([tokens, torch.zeros(1, 2, dtype=torch.long)], dim=1)
    visible = (torch.arange(7) < 5)[None, None, None]
    torch.testing.assert_close(encoder(padded, mask=visible)[:, :5], encoder(tokens), rtol=0, atol=1e-12)
    left_padded = torch.cat([torch.zeros(1, 2, dtype=torch.long), tokens], dim=1)  # rotary positions are relative
    visible = (torch.arange(7) >= 2)[None, None, None]
    torch.testing.assert_close(decoder(left_padded, visible)[:, 2:], decoder(tokens), rtol=0, atol=1e-12)


def test_encoder_sees_segments_and_positions(encoder):
    tokens = torch.full((1, 4), 3)
    X = encoder(tokens)
    assert (X[0, 0] - X[0, 1]).abs().amax() > 1e-3
    torch.testing.assert_close(encoder(tokens, torch.zeros_like(tokens)), X, rtol=0, atol=0)
    assert (encoder(tokens, torch.ones_like(tokens)) - X).abs().amax() > 1e-3


def test_observe_sees_every_call_and_leaves_no_trace(decoder):
    tokens = torch.randint(20, (2, 7))
    with observe(decoder, PreLN) as calls:
        decoder(tokens)
    assert [call.module for call in calls] == list(decoder.blocks)
    torch.testing.assert_close(calls[0].inputs[0], decoder.E[tokens], rtol=0, atol=0)
    for before, after in zip(calls, calls[1:], strict=False):
        torch.testing.assert_close(before.output, after.inputs[0], rtol=0, atol=0)
    torch.testing.assert_close(decoder.norm(calls[-1].output), decoder.states(tokens), rtol=0, atol=0)
    with pytest.raises(RuntimeError), observe(decoder, RMSNorm):
        raise RuntimeError
    decoder(tokens)
    assert len(calls) == 3
    assert not any(module._forward_hooks for module in decoder.modules())


def test_observe_gives_inputs_and_outputs_of_norms(encoder):
    with observe(encoder, LayerNorm) as calls:
        encoder(torch.randint(20, (2, 7)))
    assert len(calls) == 1 + 2 * 3
    for norm, (X,), Y in calls:
        torch.testing.assert_close(norm(X), Y, rtol=0, atol=0)


def test_attention_matrices_come_from_queries_and_keys(decoder, encoder):
    tokens = torch.randint(20, (2, 7))
    for model, mask in ((decoder, causal_mask(7)), (encoder, torch.ones(7, 7, dtype=torch.bool))):
        A = attention_matrices(model, tokens)
        Q, K = queries_and_keys(model, tokens)
        assert A.shape == (3, 2, 6, 7, 7) and Q.shape == K.shape == (3, 2, 6, 7, 2)
        S = (Q @ K.mT / math.sqrt(2)).masked_fill(~mask, -math.inf)
        torch.testing.assert_close(A, S.softmax(-1), rtol=1e-12, atol=1e-12)


def test_masked_padding_leaves_the_text_alone(decoder, encoder):
    tokens, real = torch.randint(20, (2, 7)), torch.arange(7)[None] < 4
    for model in (decoder, encoder):
        A = attention_matrices(model, tokens, mask=real)
        torch.testing.assert_close(A[..., :4, :4], attention_matrices(model, tokens[:, :4]), rtol=1e-12, atol=1e-12)
        assert not A[..., 4:].any() and A[..., 4:, :4].any(-1).all()


def test_empty_batches_and_nan(decoder, encoder):
    none = torch.zeros(0, 5, dtype=torch.long)
    assert decoder(none).shape == (0, 5, 20) and encoder(none).shape == (0, 5, 12)
    X = randn(2, 3, 12)
    X[0, 2, 1] = math.nan
    for block in (decoder.blocks[0], encoder.blocks[0]):
        assert block(X).isnan().flatten(1).all(1).tolist() == [True, False]
    assert decoder.blocks[0](X, causal_mask(3)).isnan().any(-1).tolist() == [[True, True, True], [False] * 3]


@pytest.mark.usefixtures("unenforced")
def test_bad_input_is_named(decoder, encoder):
    tokens = torch.zeros(2, 5, dtype=torch.long)
    with pytest.raises(ValueError, match=re.escape("tokens: expected shape (batch, n), got (5,)")):
        decoder(tokens[0])
    with pytest.raises(ValueError, match="tokens: expected a tensor"):
        encoder([1, 2, 3])
    with pytest.raises(ValueError, match=re.escape("mask: expected shape (..., n=5 or 1, n=5 or 1), got (2, 4)")):
        decoder(tokens, torch.ones(2, 4, dtype=torch.bool))
    with pytest.raises(ValueError, match="mask: expected a boolean tensor"):
        decoder(tokens, torch.ones(5, 5))
    with pytest.raises(ValueError, match="tokens: expected at most 8 a row, got 9"):
        encoder(torch.zeros(1, 9, dtype=torch.long))
    with pytest.raises(ValueError, match=re.escape("segments: expected shape (batch=2, n=5), got (2, 4)")):
        encoder(tokens, torch.zeros(2, 4, dtype=torch.long))
    for module in (FFN(4, 6), SwiGLU(4, 6)):
        with pytest.raises(ValueError, match=re.escape("X: expected shape (..., n, 4), got (2, 3)")):
            module(torch.zeros(2, 3))
