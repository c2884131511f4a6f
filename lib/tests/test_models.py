"""The models: as torch.nn and transformers have them on the same weights; what depends on what; what happens inside."""

import math
import re
from functools import partial

import pytest
import torch
from tiny import TOKENS, drawn, machines, shaken, tiny_bert, tiny_gpt, tiny_llama, tiny_transformer
from torch.overrides import TorchFunctionMode

from smalltorch.attention import MultiHead, causal_mask
from smalltorch.block import CrossPostLN, PostLN, PreLN
from smalltorch.engine.sample import generator
from smalltorch.models import (
    GPT,
    AblationLayer,
    Decoder,
    Encoder,
    EncoderDecoder,
    TinyLM,
    attention_matrices,
    initialise_gpt2,
    observe,
    queries_and_keys,
)
from smalltorch.norm import LayerNorm, RMSNorm
from smalltorch.position import sinusoids
from smalltorch.weights import same_weights


@pytest.fixture
def decoder():
    return Decoder(vocabulary=20, d=12, layers=3, heads=6, d_ff=16, kv_heads=2).double()


@pytest.fixture
def encoder():
    return Encoder(vocabulary=20, d=12, layers=3, heads=6, d_ff=16, positions=8).double()


# --- the same outputs as the independent implementations -----------------------------------------------------------


@pytest.mark.usefixtures("float64_llama")
@pytest.mark.parametrize(
    "build", [lambda: tiny_gpt(1), lambda: tiny_gpt(2), tiny_llama], ids=["GPT-1", "GPT-2", "LLaMA"]
)
@torch.no_grad()
def test_decoders_equal_transformers(build):
    theirs = shaken(build())
    ours = same_weights(theirs)
    torch.testing.assert_close(ours(TOKENS), theirs(TOKENS).logits, rtol=1e-12, atol=1e-12)
    assert ours(TOKENS).std() > 0.1  # the comparison is not one of zeros


@torch.no_grad()
def test_encoder_equals_transformers():
    theirs = shaken(tiny_bert())
    torch.testing.assert_close(same_weights(theirs)(TOKENS), theirs(TOKENS).last_hidden_state, rtol=1e-12, atol=1e-12)


@torch.no_grad()
def test_encoder_decoder_equals_torch():
    theirs = shaken(tiny_transformer())
    ours = same_weights(theirs)
    ours.E.data = torch.randn(50, 24, dtype=torch.float64)
    source, target = TOKENS, TOKENS[:, :7].flip(1)
    X, Y = (ours.E[t] + sinusoids(t.shape[1], 24) for t in (source, target))
    mask = torch.nn.Transformer.generate_square_subsequent_mask(7, dtype=torch.float64)
    expected = theirs(X, Y, tgt_mask=mask) @ ours.E.T / math.sqrt(24)
    torch.testing.assert_close(ours(source, target), expected, rtol=1e-12, atol=1e-12)
    visible = torch.arange(9) < torch.tensor([[9], [6]])  # the second source is padded
    hidden = ~visible
    expected = theirs(X, Y, tgt_mask=mask.isinf(), src_key_padding_mask=hidden, memory_key_padding_mask=hidden)
    memory = ours.encode(source, visible[:, None, None])
    result = ours.decode(target, memory, visible[:, None, None])
    torch.testing.assert_close(result, expected @ ours.E.T / math.sqrt(24), rtol=1e-12, atol=1e-12)


def test_gpt_2_has_a_last_norm_and_gpt_1_has_none():
    one, two = (GPT(20, 8, 2, 2, 16, norm) for norm in ("post", "pre"))
    assert isinstance(two.norm, torch.nn.Module) and list(two.norm.parameters()) and not list(one.norm.parameters())
    assert all(isinstance(b, PostLN) for b in one.blocks) and all(isinstance(b, PreLN) for b in two.blocks)


# --- initialisation ------------------------------------------------------------------------------------------------


def test_gpt_2_initialisation_has_the_spread_of_transformers():
    layers = 8
    theirs = tiny_gpt(2, n_layer=layers, n_embd=96, vocab_size=500)
    ours = initialise_gpt2(GPT(500, 96, layers, 6, 16, "pre"), generator("gpt-2"))
    converted = same_weights(theirs)
    for (name, mine), their in zip(ours.named_parameters(), converted.parameters(), strict=True):
        if mine.ndim == 1:
            torch.testing.assert_close(mine.detach(), their, rtol=0, atol=0)
        else:
            assert mine.std().item() == pytest.approx(their.std().item(), rel=0.1), name
    W = ours.blocks[3].ffn
    assert (W.W_2.std() / W.W_1.std()).item() == pytest.approx((2 * layers) ** -0.5, rel=0.03)
    residual = [b.attention.W_O.detach() for b in ours.blocks]
    assert float(torch.stack(residual).std()) == pytest.approx(0.02 / 4, rel=0.03)


def test_initialisation_is_named():
    draw = [initialise_gpt2(GPT(20, 8, 2, 2, 16, "pre"), generator(name)) for name in ("a", "a", "b")]
    first, same, other = (model.blocks[1].ffn.W_2 for model in draw)
    assert first.equal(same) and not first.equal(other)


# --- what depends on what ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(machines()))
def test_no_output_depends_on_later_tokens(name):
    model = machines()[name]
    tokens = torch.randint(20, (2, 8))
    changed = tokens.clone()
    changed[:, 5:] = (changed[:, 5:] + 1) % 20
    torch.testing.assert_close(model(tokens)[:, :5], model(changed)[:, :5], rtol=0, atol=1e-12)
    assert (model(tokens) - model(changed))[:, 5:].abs().amax() > 1e-3


@pytest.mark.parametrize("name", list(machines()))
@torch.no_grad()
def test_a_cache_changes_nothing(name):
    model = machines()[name]
    tokens = torch.randint(20, (2, 9))
    full = model(tokens)
    for cuts in ((4, 5), (1,) * 9, (9,), (3, 1, 5)):
        cache, parts = [], []
        for part in tokens.split(cuts, dim=1):
            parts.append(model(part, cache=cache))
        torch.testing.assert_close(torch.cat(parts, 1), full, rtol=1e-12, atol=1e-12)
        assert all(K.shape[-2] == V.shape[-2] == 9 for K, V in cache)


class Interrupting(TorchFunctionMode):
    """Ctrl-C after so many calls of torch; None: they are counted."""

    def __init__(self, patience=None):
        self.patience, self.calls = patience, 0

    def __torch_function__(self, f, types, args=(), kwargs=None):
        if self.calls == self.patience:
            raise KeyboardInterrupt
        self.calls += 1
        return f(*args, **(kwargs or {}))


@pytest.mark.usefixtures("unenforced")
@pytest.mark.parametrize("name", list(machines()))
@torch.no_grad()
def test_an_interrupted_call_does_not_poison_the_cache(name):
    """Interrupted here and there, and in the readout, a call is repeated, and answers as if nothing had happened."""
    model = machines()[name]
    tokens = torch.randint(20, (2, 9))
    full, cache = model(tokens), []
    for part, expected in zip(tokens.split(3, 1), full.split(3, 1), strict=True):
        with Interrupting() as mode:
            model(part, cache=[list(pair) for pair in cache])
        for patience in (*range(0, mode.calls, 9), mode.calls - 1):
            with pytest.raises(KeyboardInterrupt), Interrupting(patience):
                model(part, cache=cache)
        torch.testing.assert_close(model(part, cache=cache), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.usefixtures("unenforced")
@pytest.mark.parametrize("name", list(machines()))
@torch.no_grad()
def test_a_cache_that_does_not_fit_is_refused_and_stays(name):
    model = machines()[name]
    tokens, cache = torch.randint(20, (2, 5)), []
    model(tokens, cache=cache)
    K, V = cache[1]
    layers = len(cache)
    wrong = {
        f"cache: expected \\[\\] or a part for each of {layers} layers, got {layers - 1} parts; try \\[\\]": cache[:-1],
        "cache: expected the same tokens in all layers, got \\[4, 5\\] of them; try \\[\\]": [
            cache[0],
            [K[:, :, :4], V[:, :, :4]],
            *cache[2:],
        ],
        "cache: expected shape .*, got ": [[part[:1] for part in pair] for pair in cache],
        r"cache: expected shape \(2, .*\), got ": [cache[0], [K[..., :1], V[..., :1]], *cache[2:]],
        "cache: expected entries of torch.float64": [[part.float() for part in pair] for pair in cache],
        "cache: expected a list, got tuple": tuple(cache),
    }
    for message, bad in wrong.items():
        before = [list(pair) for pair in bad]
        with pytest.raises(ValueError, match=f"^{message}"):
            model(tokens, cache=bad)
        assert [[id(part) for part in pair] for pair in bad] == [[id(part) for part in pair] for pair in before]
    with pytest.raises(ValueError, match="cache: expected a list, got Tensor"):
        model(tokens, cache=[K] * layers)


def test_a_grouped_cache_holds_shared_heads_once():
    cache = []
    machines()["LLaMA"](torch.randint(20, (2, 5)), cache=cache)
    assert [tuple(K.shape) for K, _ in cache] == [(2, 2, 5, 2)] * 3


def test_an_encoder_has_no_exact_cache():
    """Without the mask the states of old tokens change when a token comes: a cache would be stale."""
    block = PostLN(MultiHead(12, 3), torch.nn.Identity(), torch.nn.Identity(), torch.nn.Identity()).double()
    X = torch.randn(1, 5, 12, dtype=torch.float64)
    assert (block(block(X))[:, 4] - block(torch.cat([block(X[:, :4]), block(X)[:, 4:]], 1))[:, 4]).abs().max() > 1e-3


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


# --- small ones ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm, Block", [("pre", PreLN), ("post", PostLN)])
def test_a_full_layer_is_the_block_of_that_name(norm, Block):
    layer = drawn(AblationLayer(8, 2, 12, norm, residual=True, mlp=True))
    block = Block(layer.attention, layer.ffn, layer.norm_1, layer.norm_2)
    X = torch.randn(2, 5, 8, dtype=torch.float64)
    torch.testing.assert_close(layer(X), block(X), rtol=0, atol=0)


def test_parts_can_be_left_out():
    X = torch.randn(2, 5, 8, dtype=torch.float64)
    bare = drawn(AblationLayer(8, 2, 12, None, residual=False, mlp=False))
    torch.testing.assert_close(bare(X), bare.attention(X)[0], rtol=0, atol=0)
    skip = drawn(AblationLayer(8, 2, 12, None, residual=True, mlp=False))
    torch.testing.assert_close(skip(X), X + skip.attention(X)[0], rtol=0, atol=0)
    mlp = drawn(AblationLayer(8, 2, 12, None, residual=False, mlp=True))
    torch.testing.assert_close(mlp(X), mlp.ffn(mlp.attention(X)[0]), rtol=0, atol=0)
    post = drawn(AblationLayer(8, 2, 12, "post", residual=False, mlp=True))
    torch.testing.assert_close(post(X), post.norm_2(post.ffn(post.norm_1(post.attention(X)[0]))), rtol=0, atol=0)
    pre = drawn(AblationLayer(8, 2, 12, "pre", residual=False, mlp=True))
    torch.testing.assert_close(pre(X), pre.ffn(pre.norm_2(pre.attention(pre.norm_1(X))[0])), rtol=0, atol=0)


def test_causal_or_not():
    tokens = torch.tensor([[0, 3, 1, 2, 2, 1], [3, 3, 0, 1, 0, 2]])
    changed = tokens.clone()
    changed[:, 4:] = (changed[:, 4:] + 1) % 4
    for causal in (True, False):
        model = drawn(TinyLM(4, 6, causal=causal))
        same = (model(tokens)[:, :4] - model(changed)[:, :4]).abs().max() < 1e-12
        assert same == causal
    with pytest.raises(ValueError, match=re.escape("tokens: expected at most 6 per row, got 7; try tokens[:, -6:]")):
        model(torch.zeros(1, 7, dtype=torch.long))


# --- what happens inside -------------------------------------------------------------------------------------------


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
        A = attention_matrices(model, tokens, mask=real[:, None, None])
        torch.testing.assert_close(A[..., :4, :4], attention_matrices(model, tokens[:, :4]), rtol=1e-12, atol=1e-12)
        assert not A[..., 4:].any() and A[..., 4:, :4].any(-1).all()


# --- parts ---------------------------------------------------------------------------------------------------------


def test_every_decoder_block_reads_the_same_memory():
    full = EncoderDecoder(20, 12, 4, 3, 16).double()
    source, target = torch.randint(20, (2, 5)), torch.randint(20, (2, 3))
    with observe(full, CrossPostLN) as calls:
        full(source, target)
    memory = full.encode(source)
    assert len(calls) == 4
    for call in calls:
        torch.testing.assert_close(call.inputs[1], memory, rtol=0, atol=1e-13)


def test_defaults_are_the_base_model_of_2017():
    with torch.device("meta"):
        ours, theirs = EncoderDecoder(37000), torch.nn.Transformer()
    assert len(ours.encoder) == len(ours.decoder) == 6 and ours.encoder[0].attention.heads == 8
    count = sum(p.numel() for p in ours.parameters()) - ours.E.numel()
    last_norms = 2 * 2 * 512
    assert count == sum(p.numel() for p in theirs.parameters()) - last_norms


def test_empty_batches_and_nan(decoder, encoder):
    none = torch.zeros(0, 5, dtype=torch.long)
    assert decoder(none).shape == (0, 5, 20) and encoder(none).shape == (0, 5, 12)
    X = torch.randn(2, 3, 12, dtype=torch.float64)
    X[0, 2, 1] = math.nan
    for block in (decoder.blocks[0], encoder.blocks[0]):
        assert block(X).isnan().flatten(1).all(1).tolist() == [True, False]
    assert decoder.blocks[0](X, causal_mask(3)).isnan().any(-1).tolist() == [[True, True, True], [False] * 3]


def test_empty_batches():
    none = torch.zeros(0, 5, dtype=torch.long)
    assert EncoderDecoder(20, 12, 1, 3, 16)(none, none).shape == (0, 5, 20)
    assert GPT(20, 12, 1, 3, 16, "pre")(none).shape == (0, 5, 20)


@pytest.mark.usefixtures("unenforced")
def test_bad_input_is_named(decoder, encoder):
    tokens = torch.zeros(2, 5, dtype=torch.long)
    with pytest.raises(ValueError, match=re.escape("tokens: expected shape (batch, n), got (5,)")):
        decoder(tokens[0])
    with pytest.raises(ValueError, match="tokens: expected a tensor"):
        encoder([1, 2, 3])
    with pytest.raises(ValueError, match="mask: expected a boolean tensor"):
        decoder(tokens, torch.ones(5, 5))
    with pytest.raises(ValueError, match="mask: expected none beside a cache, got one; try cache=None"):
        decoder(tokens, causal_mask(5)[None, None], [])
    with pytest.raises(ValueError, match=re.escape("tokens: expected at most 8 per row, got 9; try tokens[:, :8]")):
        encoder(torch.zeros(1, 9, dtype=torch.long))
    with pytest.raises(ValueError, match=re.escape("segments: expected shape (2, 5), got (2, 4)")):
        encoder(tokens, torch.zeros(2, 4, dtype=torch.long))
    model = GPT(20, 12, 1, 3, 8, "pre")
    too_many = re.escape("tokens: expected at most 8 per row, got 9; try tokens[:, -8:]")
    with pytest.raises(ValueError, match=f"^{too_many}$"):
        model(torch.zeros(1, 9, dtype=torch.long))
    cache = []
    model(torch.zeros(1, 6, dtype=torch.long), cache=cache)
    with pytest.raises(ValueError, match=f"^{too_many} with a new cache$"):
        model(torch.zeros(1, 3, dtype=torch.long), cache=cache)
    with pytest.raises(ValueError, match=re.escape("tokens: expected shape (batch, n), got (3,)")):
        model(torch.zeros(3, dtype=torch.long))


# --- input that means nothing --------------------------------------------------------------------------------------

ENTRANCES = {  # what takes tokens: name of the argument, call, vocabulary
    "decoder": ("tokens", lambda: Decoder(9, 8, 1, 2, 6), 9),
    "encoder": ("tokens", lambda: Encoder(9, 8, 1, 2, 6), 9),
    "segments": ("segments", lambda: lambda t: Encoder(9, 8, 1, 2, 6)(torch.zeros(2, 5).long(), t), 2),
    "GPT": ("tokens", lambda: GPT(9, 8, 1, 2, 16, "pre"), 9),
    "TinyLM": ("tokens", lambda: TinyLM(9, 16), 9),
    "embed": ("tokens", lambda: EncoderDecoder(9, 8, 1, 2, 6).embed, 9),
    "encode": ("source", lambda: EncoderDecoder(9, 8, 1, 2, 6).encode, 9),
    "decode": ("target", lambda: lambda t: EncoderDecoder(9, 8, 1, 2, 6).decode(t, torch.zeros(2, 3, 8)), 9),
    "attention matrices": ("tokens", lambda: partial(attention_matrices, Encoder(9, 8, 1, 2, 6)), 9),
    "queries and keys": ("tokens", lambda: partial(queries_and_keys, Decoder(9, 8, 1, 2, 6)), 9),
}


@pytest.mark.usefixtures("unenforced")
@pytest.mark.parametrize("where", ENTRANCES)
def test_tokens_that_are_none_are_refused(where):
    name, build, vocabulary = ENTRANCES[where]
    good, run = torch.zeros(2, 5, dtype=torch.long), build()
    run(good + vocabulary - 1)
    for bad, message in (
        (good - 1, f"expected tokens from 0 to {vocabulary - 1}, got -1"),
        (
            good.index_fill(1, torch.tensor(3), vocabulary),
            f"expected tokens from 0 to {vocabulary - 1}, got {vocabulary}",
        ),
        (good.float(), "expected integers of torch.int64, got torch.float32"),
        (good.byte(), "expected integers of torch.int64, got torch.uint8"),
        (good.to("meta"), "expected entries that can be read, got a tensor on meta"),
    ):
        with pytest.raises(ValueError, match=f"^{name}: {message}"):
            run(bad)
    if where != "segments":
        with pytest.raises(ValueError, match=f"^{name}: expected at least one token per row, got shape"):
            run(good[:, :0])


@pytest.mark.usefixtures("unenforced")
@pytest.mark.parametrize("batch", [2, 5])  # 5: as many texts as tokens
def test_a_padding_mask_of_two_axes_is_refused(batch):
    tokens, visible = torch.randint(9, (batch, 5)), torch.arange(5).expand(batch, 5) < 4
    full = EncoderDecoder(9, 8, 1, 2, 6)
    runs = {
        "mask": [Decoder(9, 8, 1, 2, 6), lambda t, m: Encoder(9, 8, 1, 2, 6)(t, None, m), full.encode],
        "memory_mask": [lambda t, m: full.decode(t, full.encode(t), m)],
    }
    for name, takes_it in runs.items():
        for run in takes_it:
            run(tokens, visible[:, None, None, :])
            message = (
                rf"{name}: expected shape \({batch}, 2, 5, 5\), or 1 in place of a size, got \({batch}, 5\); a padding"
            )
            with pytest.raises(ValueError, match=f"^{message}"):
                run(tokens, visible)
            with pytest.raises(ValueError, match=f"^{name}: expected shape"):
                run(tokens[:1], visible[:, None, None, :])  # it would enlarge the batch


@pytest.mark.usefixtures("unenforced")
def test_a_memory_is_needed_and_of_the_same_batch():
    model, target = EncoderDecoder(9, 8, 1, 2, 6), torch.zeros(2, 5, dtype=torch.long)
    for memory, message in (
        (None, "memory: expected a tensor of shape (2, m, d=8), got NoneType"),
        (torch.zeros(3, 4, 8), "memory: expected shape (2, m, d=8), got (3, 4, 8)"),
        (torch.zeros(2, 4, 8).double(), "memory: expected entries of torch.float32 on cpu, as in E, got torch.float64"),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
            model.decode(target, memory)
    with pytest.raises(ValueError, match=re.escape("target: expected shape (batch=3, n), got (2, 5)")):
        model(target[:1].expand(3, 5), target)


BUILDERS = {
    Decoder: dict(vocabulary=9, d=8, layers=1, heads=2, d_ff=6, kv_heads=1, rope_base=10.0, eps=1e-6),
    Encoder: dict(vocabulary=9, d=8, layers=1, heads=2, d_ff=6, positions=5, segments=2, eps=1e-6),
    GPT: dict(vocabulary=9, d=8, layers=1, heads=2, positions=5, norm="pre", d_ff=6, eps=1e-6),
    EncoderDecoder: dict(vocabulary=9, d=8, layers=1, heads=2, d_ff=6),
    TinyLM: dict(vocabulary=9, positions=5, d=8, layers=1, heads=2, d_ff=6, norm=None),
    AblationLayer: dict(d=8, heads=2, d_ff=6, norm="post", residual=True, mlp=True),
    CrossPostLN: dict(d=8, heads=2, d_ff=6, eps=1e-6),
}


@pytest.mark.usefixtures("unenforced")
@pytest.mark.parametrize("build", BUILDERS)
def test_sizes_that_mean_nothing_are_refused(build):
    good = BUILDERS[build]
    build(**good)
    for name, value in good.items():
        if isinstance(value, bool):
            continue
        wrong = {str: ("Pre",), float: (-1e-6, math.nan), int: (-1, 2.0), type(None): ("Pre",)}[type(value)]
        for bad in (*wrong, 0) if isinstance(value, int) else wrong:
            instead = rf"; try int\({name}\)" if bad == 2.0 else ""
            with pytest.raises(ValueError, match=rf"^{name}: expected .*, got {bad!r}{instead}$"):
                build(**good | {name: bad})


def test_widths_unless_given():
    assert GPT(9, 8, 1, 2, 5, "pre").blocks[0].ffn.W_1.shape == TinyLM(9, 5, d=8).layers[0].ffn.W_1.shape == (8, 32)


@pytest.mark.usefixtures("unenforced")
def test_what_looks_inside_names_bad_arguments():
    tokens, rng = torch.zeros(1, 3, dtype=torch.long), generator("any")
    model = GPT(9, 8, 1, 2, 5, "pre")
    for look in (attention_matrices, queries_and_keys):
        with pytest.raises(ValueError, match=r"^model: expected a Decoder or Encoder, got GPT; try observe\(model, "):
            look(model, tokens)
    with pytest.raises(ValueError, match="^model: expected a Module, got int"), observe(3, PreLN):
        pass
    with pytest.raises(ValueError, match="^kind: expected a type or tuple, got str; try the"), observe(model, "PreLN"):
        pass
    for arguments, message in (
        ((TinyLM(9, 5), rng), "model: expected a GPT, got TinyLM"),
        ((model, 3), r"rng: expected a Generator, got int; try np.random.default_rng\(0\)"),
        ((model, rng, -0.1), "std: expected a finite number of at least 0, got -0.1"),
    ):
        with pytest.raises(ValueError, match=f"^{message}"):
            initialise_gpt2(*arguments)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@torch.no_grad()
def test_models_of_half_types_stay_near_float64(dtype):
    tokens = torch.randint(20, (2, 7))
    for name, model in machines().items():
        if isinstance(model, torch.nn.Module):
            expected = model(tokens)
            found = model.to(dtype)(tokens)
            assert found.dtype == dtype
            assert (found.double() - expected).abs().max() < 60 * torch.finfo(dtype).eps * expected.abs().max(), name
