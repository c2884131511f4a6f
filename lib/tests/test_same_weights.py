"""What theirs says is computed as by theirs, or refused: each field of a configuration, each option of torch's."""

import dataclasses
import inspect
import re

import pytest
import torch
from tiny import TOKENS, shaken, tiny_bert, tiny_gpt, tiny_llama, tiny_transformer
from torch import nn

from smalltorch.position import sinusoids, yarn
from smalltorch.weights import same_weights

transformers = pytest.importorskip("transformers")
transformers.utils.logging.set_verbosity_error()

# By class: how a tiny model is built, and the fields for whose other values it is refused.
COMMON = "chunk_size_feed_forward is_encoder_decoder"
MODELS = {
    "GPT2Config": (
        lambda **options: tiny_gpt(2, attn_implementation="eager", **options),
        f"{COMMON} activation_function add_cross_attention reorder_and_upcast_attn scale_attn_weights "
        "scale_attn_by_inverse_layer_idx tie_word_embeddings",
    ),
    "OpenAIGPTConfig": (lambda **options: tiny_gpt(1, **options), f"{COMMON} afn tie_word_embeddings"),
    "LlamaConfig": (tiny_llama, f"{COMMON} hidden_act attention_bias mlp_bias head_dim pretraining_tp"),
    "BertConfig": (tiny_bert, f"{COMMON} hidden_act is_decoder add_cross_attention"),
}
FIELDS = [(name, field.name) for name in MODELS for field in dataclasses.fields(getattr(transformers, name))]

# Other values, where one more, the opposite or twice as much is none that the class takes.
OTHER = {
    "activation_function": "gelu",
    "afn": "relu",
    "architectures": ["Other"],
    "bos_token_id": 7,
    "classifier_dropout": 0.5,
    "dtype": "float16",
    "eos_token_id": 7,
    "head_dim": 8,
    "hidden_act": "relu",
    "hidden_size": 48,
    "id2label": {0: "one", 1: "two", 2: "three"},
    "label2id": {"one": 7},
    "n_embd": 48,
    "n_head": 3,
    "n_inner": 7,
    "num_attention_heads": 12,
    "num_key_value_heads": 3,
    "pad_token_id": 7,
    "problem_type": "regression",
    "rope_parameters": {"rope_type": "default", "rope_theta": 7.0},
    "summary_activation": "tanh",
    "summary_type": "first",
    "transformers_version": "4.0.0",
}
ALONG = {"label2id": {"id2label": {7: "one"}}, "BertConfig.add_cross_attention": {"is_decoder": True}}  # has to change


def other(field, value):
    """Another value of the field."""
    if field in OTHER:
        return OTHER[field]
    assert isinstance(value, bool | int | float), f"OTHER has no value of the field {field}"
    return not value if isinstance(value, bool) else value + 1 if isinstance(value, int) else 2 * value + 0.1


@torch.no_grad()
def assert_same(theirs):
    ours = same_weights(shaken(theirs))
    theirs.config.return_dict = True  # how the output is packed; some of their classes cannot do it otherwise
    expected = theirs(TOKENS)[0]
    torch.testing.assert_close(ours(TOKENS), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.usefixtures("float64_llama")
@pytest.mark.parametrize(("name", "field"), FIELDS)
def test_a_field_is_computed_with_or_refused(name, field):
    build, refused = MODELS[name]
    value = getattr(build().config, field)
    theirs = build(**{field: other(field, value)}, **ALONG.get(field, {}), **ALONG.get(f"{name}.{field}", {}))
    assert getattr(theirs.config, field) != value
    if field not in refused.split():
        assert_same(theirs)
    else:
        with pytest.raises(ValueError, match="^theirs: expected a model with .* = .*, got .*$"):
            same_weights(theirs)


# --- what the fields do not show --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "options", "message"),
    [
        (tiny_llama, dict(is_causal=False), "is_causal = None, got False"),  # unknown to the class, read elsewhere
        (
            tiny_llama,
            dict(rope_parameters={"rope_type": "linear", "rope_theta": 1e4, "factor": 2.0}),
            "rope_parameters",
        ),
        (
            tiny_llama,
            dict(rope_parameters={"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}),
            "rope_parameters = {'rope_type': 'default', 'rope_theta': 10000.0}, got",
        ),
        (
            tiny_bert,
            dict(position_embedding_type="relative_key"),
            "position_embedding_type = 'absolute', got 'relative",
        ),
        (tiny_bert, dict(quantization_config={"quant_method": "other"}), "quantization_config = None, got"),
    ],
)
def test_what_no_field_declares_is_refused(build, options, message):
    with pytest.raises(ValueError, match=f"^theirs: expected a model with {re.escape(message)}"):
        same_weights(build(**options))


@pytest.mark.usefixtures("float64_llama")
def test_what_hub_configurations_leave_over_is_harmless():
    assert_same(tiny_gpt(2, n_ctx=16, task_specific_params={"text-generation": {"max_length": 50}}))
    assert_same(tiny_gpt(1, n_ctx=16, n_special=0, predict_special_tokens=True))
    assert_same(tiny_bert(gradient_checkpointing=False, position_embedding_type="absolute"))
    assert_same(tiny_llama(rope_scaling=None, torch_dtype="float16"))


@torch.no_grad()
def test_other_frequencies_turn_a_llama_as_theirs_do():
    base, settings = 1000.0, dict(factor=4.0, original_max_position_embeddings=64)
    plain = shaken(tiny_llama(rope_parameters=dict(rope_type="default", rope_theta=base))).float()
    scaled = tiny_llama(rope_parameters=dict(rope_type="yarn", rope_theta=base, **settings)).eval()
    scaled.load_state_dict(plain.state_dict())
    ours = same_weights(plain)
    for block in ours.blocks:
        block.attention.theta, block.attention.attention_factor = yarn(block.attention.d_h, base, 4.0, trained=64)
    torch.testing.assert_close(ours(TOKENS), scaled(TOKENS)[0], rtol=1e-3, atol=1e-3)


def put(path, value):
    """A change of a model: `put("encoder.norm", None)` sets model.encoder.norm."""
    parent, _, name = path.rpartition(".")
    return lambda model: setattr(model.get_submodule(parent), name, value)


def of_another_class(model):
    model.__class__ = type(type(model).__name__, (type(model),), {})


@pytest.mark.parametrize(
    ("build", "change", "message"),
    [
        (lambda: nn.Linear(2, 2), lambda model: None, "expected a model of a known class, got Linear"),
        (tiny_bert, of_another_class, "expected a model of a known class, got BertModel"),
        (tiny_transformer, of_another_class, "expected a model of a known class, got Transformer"),
        (tiny_bert, lambda model: model.embeddings.double(), "expected parameters of one floating-point type, got {"),
        (tiny_bert, lambda model: model.to("meta"), "expected parameters with values, got some on the device meta"),
        (tiny_llama, put("model.layers.1.mlp", nn.Identity()), "with a tensor model.layers.1.mlp.gate_proj.weight"),
        (
            tiny_llama,
            put("model.more", nn.Linear(2, 2)),
            "known parts only, got also model.more.bias, model.more.weight",
        ),
        (tiny_llama, put("model.norm.variance_epsilon", 0.1), "with eps = [0.001], got [0.001, 0.1]"),
        (lambda: tiny_gpt(2), put("transformer.h.1.ln_2.eps", 0.1), "with eps = [1e-05], got [1e-05, 0.1]"),
        (lambda: tiny_gpt(1), put("lm_head", nn.Linear(24, 50, bias=False)), "tied embeddings = True, got False"),
    ],
)
def test_a_model_that_was_changed_is_refused(build, change, message):
    model = build()
    change(model)
    with pytest.raises(ValueError, match=f"^theirs: .*{re.escape(message)}"):
        same_weights(model)


@pytest.mark.usefixtures("float64_llama")
def test_a_head_that_was_tied_may_be_another():
    theirs = tiny_llama(tie_word_embeddings=True)
    theirs.lm_head = nn.Linear(24, 50, bias=False)
    assert_same(theirs)


# --- torch's own ------------------------------------------------------------------------------------------------------

OPTIONS = {
    "d_model": 48,
    "nhead": 3,
    "dim_feedforward": 7,
    "dropout": 0.5,
    "activation": "gelu",
    "layer_norm_eps": 0.1,
    "batch_first": False,
    "norm_first": True,
    "bias": False,
    "device": "cpu",
    "dtype": torch.float64,
}


@pytest.mark.parametrize("option", list(inspect.signature(nn.TransformerEncoderLayer).parameters))
@torch.no_grad()
def test_an_option_is_computed_with_or_refused(option):
    theirs = shaken(tiny_transformer(**{option: OPTIONS[option]}))
    if option in ("activation", "layer_norm_eps", "norm_first", "bias"):
        with pytest.raises(ValueError, match="^theirs: expected a model with .*, got .*$"):
            same_weights(theirs)
        return
    ours, d = same_weights(theirs), theirs.d_model
    ours.E.data = torch.randn(50, d, dtype=torch.float64)
    source, target = TOKENS, TOKENS[:, :7].flip(1)
    X, Y = (ours.E[tokens] + sinusoids(tokens.shape[1], d) for tokens in (source, target))
    mask = nn.Transformer.generate_square_subsequent_mask(7, dtype=torch.float64)
    if theirs.batch_first:
        expected = theirs(X, Y, tgt_mask=mask)
    else:
        expected = theirs(X.transpose(0, 1), Y.transpose(0, 1), tgt_mask=mask).transpose(0, 1)
    torch.testing.assert_close(ours(source, target), expected @ ours.E.T / d**0.5, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("encoder", nn.Identity()), "type(encoder) = <class 'torch.nn.modules.transformer.TransformerEncoder'>"),
        (put("encoder.norm", nn.LayerNorm(24, elementwise_affine=False)), "encoder.norm = None, got LayerNorm((24,)"),
        (put("decoder.norm", nn.Identity()), "decoder.norm = None, got Identity()"),
        (put("encoder.layers", nn.ModuleList()), "len(encoder.layers) = 1, got 0"),
        (put("decoder.layers", nn.ModuleList()), "len(decoder.layers) = 2, got 0"),
        (lambda model: of_another_class(model.encoder.layers[1]), "type(encoder.layers[1]) = <class"),
        (put("encoder.layers.1.norm_first", True), "encoder.layers[1].norm_first = False, got True"),
        (put("decoder.layers.1.activation", torch.tanh), "decoder.layers[1].activation = <function relu"),
        (put("decoder.layers.0.multihead_attn.num_heads", 3), "num_heads = 6, got 3"),
        (put("encoder.layers.0.self_attn.add_zero_attn", True), "add_zero_attn = False, got True"),
        (put("decoder.layers.1.norm3.eps", 0.1), "eps = [1e-05], got [1e-05, 0.1]"),
        (put("decoder.layers.1.norm3", nn.LayerNorm(24, bias=False)), "a tensor decoder.layers.1.norm3.bias, got none"),
    ],
)
def test_a_transformer_that_was_changed_is_refused(change, message):
    model = tiny_transformer()
    change(model)
    with pytest.raises(ValueError, match=f"^theirs: expected a model with {re.escape(message)}"):
        same_weights(model)


def test_its_usual_last_norms_and_blocks_of_several_widths_are_refused():
    with pytest.raises(ValueError, match=r"^theirs: expected a model with encoder.norm = None, got LayerNorm\(\(24,\)"):
        same_weights(nn.Transformer(24, 6, 1, 1, 20))
    model = tiny_transformer()
    model.encoder.layers[1].linear1, model.encoder.layers[1].linear2 = nn.Linear(24, 7), nn.Linear(7, 24)
    with pytest.raises(
        ValueError, match=r"^theirs: expected the same shapes in all blocks, got .*encoder.1.ffn.W_1.*$"
    ):
        same_weights(model)
