"""The machines against torch.nn and transformers on the same weights, and generation with and without a cache."""

import math
import re

import pytest
import torch
from test_weights import TOKENS, float64_llama, tiny_bert, tiny_llama  # noqa: F401  (a fixture)

from smalltorch.attention import MultiHead, causal_mask
from smalltorch.block import CrossPostLN, PostLN, PreLN
from smalltorch.engine.sample import generator
from smalltorch.generate import generate
from smalltorch.models import GPT, Decoder, EncoderDecoder, initialise_gpt2, observe, sinusoids
from smalltorch.weights import same_weights

transformers = pytest.importorskip("transformers")


def shaken(model):
    """Float64 and random weights everywhere, norms and biases too."""
    with torch.no_grad():
        for parameter in model.double().eval().parameters():
            parameter.normal_(std=0.3)
    return model


def tiny_gpt(version, **options):
    name = {1: "OpenAIGPT", 2: "GPT2"}[version]
    config = getattr(transformers, f"{name}Config")
    model = getattr(transformers, f"{name}LMHeadModel")
    options = dict(vocab_size=50, n_positions=16, n_embd=24, n_layer=3, n_head=6, attn_pdrop=0.0) | options
    extra = dict(bos_token_id=0, eos_token_id=0) if version == 2 else {}
    return model(config(**options, **extra))


def tiny_transformer(layers=2):
    """torch.nn.Transformer without the norms that it adds behind both stacks, which the paper does not have."""
    T = torch.nn
    setting = dict(d_model=24, nhead=6, dim_feedforward=20, dropout=0.0, batch_first=True)
    encoder = T.TransformerEncoder(T.TransformerEncoderLayer(**setting), layers, enable_nested_tensor=False)
    decoder = T.TransformerDecoder(T.TransformerDecoderLayer(**setting), layers)
    return T.Transformer(24, 6, custom_encoder=encoder, custom_decoder=decoder, batch_first=True)


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


def test_parts_that_the_blocks_lack_are_refused():
    with pytest.raises(ValueError, match="activation = 'gelu_new', got 'relu'"):
        same_weights(tiny_gpt(2, activation_function="relu"))
    with pytest.raises(ValueError, match="n_inner = None, got 7"):
        same_weights(tiny_gpt(2, n_inner=7))
    with pytest.raises(ValueError, match="got also decoder.norm.bias"):
        same_weights(torch.nn.Transformer(24, 6, 1, 1, 20))
    with pytest.raises(ValueError, match="norm_first = False, got True"):
        same_weights(torch.nn.Transformer(24, 6, 1, 1, 20, norm_first=True))
    with pytest.raises(ValueError, match="theirs: expected a model of a known class, got Linear"):
        same_weights(torch.nn.Linear(2, 2))


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


def machines():
    torch.manual_seed(1)
    one = GPT(20, 12, 3, 6, 16, "post").double()
    two = GPT(20, 12, 3, 6, 16, "pre").double()
    llama = Decoder(vocabulary=20, d=12, layers=3, heads=6, d_ff=16, kv_heads=2).double()
    full = EncoderDecoder(20, 12, 2, 3, 16).double()
    memory = full.encode(torch.randint(20, (1, 5)))
    return {
        "GPT-1": one,
        "GPT-2": two,
        "LLaMA": llama,
        "decoder of 2017": lambda tokens, **k: full.decode(tokens, memory.expand(len(tokens), -1, -1), **k),
    }


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


def test_a_grouped_cache_holds_shared_heads_once():
    cache = []
    machines()["LLaMA"](torch.randint(20, (2, 5)), cache=cache)
    assert [tuple(K.shape) for K, _ in cache] == [(2, 2, 5, 2)] * 3


def test_generation_stops():
    def model(tokens):
        return torch.nn.functional.one_hot((tokens + 1) % 5, 5).double()

    prompt = torch.tensor([[0], [2]])
    assert generate(model, prompt, 9, cached=False, stop=4).tokens.tolist() == [[1, 2, 3, 4], [3, 4, 0, 1]]
    assert generate(model, prompt, 2, cached=False, stop=4).tokens.tolist() == [[1, 2], [3, 4]]


def test_an_encoder_has_no_exact_cache():
    """Without the mask the states of old tokens change when a token comes: a cache would be stale."""
    block = PostLN(MultiHead(12, 3), torch.nn.Identity(), torch.nn.Identity(), torch.nn.Identity()).double()
    X = torch.randn(1, 5, 12, dtype=torch.float64)
    assert (block(block(X))[:, 4] - block(torch.cat([block(X[:, :4]), block(X)[:, 4:]], 1))[:, 4]).abs().max() > 1e-3


# --- parts ---------------------------------------------------------------------------------------------------------


def test_sinusoids_by_their_formula():
    P = sinusoids(5, 6, start=2)
    for p in range(5):
        for i in range(3):
            angle = (p + 2) / 10000 ** (2 * i / 6)
            assert P[p, 2 * i] == pytest.approx(math.sin(angle)) and P[p, 2 * i + 1] == pytest.approx(math.cos(angle))
    assert sinusoids(3, 5).shape == (3, 5)


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


def test_empty_batches():
    none = torch.zeros(0, 5, dtype=torch.long)
    assert EncoderDecoder(20, 12, 1, 3, 16)(none, none).shape == (0, 5, 20)
    assert GPT(20, 12, 1, 3, 16, "pre")(none).shape == (0, 5, 20)


@pytest.mark.usefixtures("unenforced")
def test_bad_input_is_named():
    model = GPT(20, 12, 1, 3, 8, "pre")
    with pytest.raises(ValueError, match="tokens: expected at most 8 a row, got 9"):
        model(torch.zeros(1, 9, dtype=torch.long))
    cache = []
    model(torch.zeros(1, 6, dtype=torch.long), cache=cache)
    with pytest.raises(ValueError, match="tokens: expected at most 8 a row, got 9"):
        model(torch.zeros(1, 3, dtype=torch.long), cache=cache)
    with pytest.raises(ValueError, match=re.escape("tokens: expected shape (batch, n), got (3,)")):
        model(torch.zeros(3, dtype=torch.long))
    with pytest.raises(ValueError, match="prompt: expected at least one token a row"):
        generate(model, torch.zeros(2, 0, dtype=torch.long), 3)
    with pytest.raises(ValueError, match="new: expected at least 1, got 0"):
        generate(model, torch.zeros(2, 1, dtype=torch.long), 0)
    llama, tokens = machines()["LLaMA"], torch.zeros(1, 4, dtype=torch.long)
    with pytest.raises(ValueError, match="mask: expected none beside a cache, got one"):
        llama(tokens, causal_mask(4), [])
