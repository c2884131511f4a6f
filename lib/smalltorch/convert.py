"""The weights of an independent implementation in the blocks of this library.

Source of the names: `torch.nn.Transformer` and Hugging Face's GPT-2, OpenAI-GPT, Llama and BERT. Nothing is imported
from there: a model is known by its class name, its configuration and its tensors.
"""

from torch import Tensor, nn

from smalltorch import models
from smalltorch.block import Decoder, Encoder
from smalltorch.transformer import GPT, EncoderDecoder

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


def same_weights(theirs: nn.Module) -> GPT | Decoder | Encoder | EncoderDecoder:
    """Our model with the weights of `theirs`, frozen, in the same dtype.

    Args:
        theirs: a `GPT2LMHeadModel`, `OpenAIGPTLMHeadModel`, `LlamaForCausalLM` or `BertModel` of Hugging Face; or a
            `torch.nn.Transformer` (Post-LN, ReLU), which has no embeddings, so ours has a vocabulary of one zero row.

    Raises:
        ValueError: for another model, or one with parts that the blocks here lack.
    """
    kind = type(theirs).__name__
    dtype = next(theirs.parameters()).dtype
    tensors = {name: t.detach().clone() for name, t in theirs.state_dict().items()}
    if kind in ("GPT2LMHeadModel", "OpenAIGPTLMHeadModel"):
        return models._assemble(GPT, *_gpt(theirs.config, tensors, kind == "GPT2LMHeadModel"), dtype)
    if kind == "LlamaForCausalLM":
        return models._decoder(theirs.config.to_dict(), tensors, dtype)
    if kind == "BertModel":
        return models._encoder(theirs.config.to_dict(), tensors, dtype)
    if kind == "Transformer":
        return models._assemble(EncoderDecoder, *_transformer(theirs, tensors), dtype)
    raise ValueError(f"theirs: expected a model of a known class, got {kind}")


def _gpt(config, tensors: dict[str, Tensor], is_2: bool) -> tuple[dict, dict[str, Tensor]]:
    models._check_supported("activation", config.activation_function if is_2 else config.afn,
                            "gelu_new" if is_2 else "gelu")  # both names mean the tanh formula
    models._check_supported("n_inner", getattr(config, "n_inner", None), None)
    names = ("wte", "wpe") if is_2 else ("tokens_embed", "positions_embed")
    E, P = (tensors.pop(f"transformer.{name}.weight") for name in names)
    tensors.pop("lm_head.weight")  # tied: E once more
    state = {"E": E, "P": P}
    if is_2:
        state |= {f"norm.{ours}": tensors.pop(f"transformer.ln_f.{name}")
                  for ours, name in (("gamma", "weight"), ("beta", "bias"))}
    for layer in range(config.n_layer):
        block = f"transformer.h.{layer}."
        for kind, letter in (("weight", "W"), ("bias", "b")):
            parts = tensors.pop(f"{block}attn.c_attn.{kind}").chunk(3, dim=-1)
            state |= {f"blocks.{layer}.attention.{letter}_{which}": part
                      for which, part in zip("QKV", parts, strict=True)}
        state |= {f"blocks.{layer}.{ours}": tensors.pop(block + name) for ours, name in GPT_BLOCK}
    models._check_nothing_left(tensors)
    shape = dict(vocabulary=len(E), d=E.shape[1], layers=config.n_layer, heads=config.n_head, positions=len(P),
                 norm="pre" if is_2 else "post", eps=config.layer_norm_epsilon)
    return shape, state


def _transformer(theirs: nn.Transformer, tensors: dict[str, Tensor]) -> tuple[dict, dict[str, Tensor]]:
    layer = theirs.encoder.layers[0]
    models._check_supported("norm_first", layer.norm_first, False)
    models._check_supported("activation", layer.activation.__name__, "relu")
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
                state |= {f"{block}{ours}.W_O": tensors.pop(f"{from_}{name}.out_proj.weight").T,
                          f"{block}{ours}.b_O": tensors.pop(f"{from_}{name}.out_proj.bias")}
            for k in (1, 2):
                state |= {f"{block}ffn.W_{k}": tensors.pop(f"{from_}linear{k}.weight").T,
                          f"{block}ffn.b_{k}": tensors.pop(f"{from_}linear{k}.bias")}
            for k in range(1, norms + 1):
                state |= {f"{block}norm_{k}.gamma": tensors.pop(f"{from_}norm{k}.weight"),
                          f"{block}norm_{k}.beta": tensors.pop(f"{from_}norm{k}.bias")}
    models._check_nothing_left(tensors)
    shape = dict(vocabulary=1, d=theirs.d_model, layers=len(theirs.encoder.layers), heads=theirs.nhead,
                 d_ff=layer.linear1.out_features)
    return shape, state
