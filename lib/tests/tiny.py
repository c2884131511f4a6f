"""Tiny random models, of this library and of others, that several test files compare."""

import pytest
import torch

from smalltorch.engine.sample import generator
from smalltorch.models import GPT, Decoder, EncoderDecoder
from smalltorch.train import initial

TOKENS = torch.randint(50, (2, 9), generator=torch.Generator().manual_seed(0))


def shaken(model):
    """Float64 and random weights everywhere, norms and biases too."""
    with torch.no_grad():
        for parameter in model.double().eval().parameters():
            parameter.normal_(std=0.3)
    return model


def drawn(model, name="model"):
    """The model in float64 with its initial weights."""
    model.double().load_state_dict(initial(model, generator(name)))
    return model


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


def tiny_gpt(version, **options):
    transformers = pytest.importorskip("transformers")
    name = {1: "OpenAIGPT", 2: "GPT2"}[version]
    config = getattr(transformers, f"{name}Config")
    model = getattr(transformers, f"{name}LMHeadModel")
    sizes = dict(vocab_size=50, n_positions=16, n_embd=24, n_layer=3, n_head=6)
    extra = dict(bos_token_id=0, eos_token_id=0) if version == 2 else {}
    return model(config(**sizes | dict(attn_pdrop=0.0) | extra | options))


def tiny_llama(**options):
    transformers = pytest.importorskip("transformers")
    sizes = dict(vocab_size=50, hidden_size=24, intermediate_size=20, num_hidden_layers=3, num_attention_heads=6)
    options = dict(num_key_value_heads=2, rms_norm_eps=1e-3, attn_implementation="eager") | sizes | options
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**options))


def tiny_bert(**options):
    transformers = pytest.importorskip("transformers")
    sizes = dict(vocab_size=50, hidden_size=24, intermediate_size=20, num_hidden_layers=3, num_attention_heads=6)
    options = dict(max_position_embeddings=16, layer_norm_eps=1e-3, attn_implementation="eager") | sizes | options
    return transformers.BertModel(transformers.BertConfig(**options))


def tiny_transformer(layers=2, **options):
    """torch.nn.Transformer without the norms that it adds behind both stacks, which the paper does not have."""
    T = torch.nn
    setting = dict(d_model=24, nhead=6, dim_feedforward=20, dropout=0.0, batch_first=True) | options
    encoder = T.TransformerEncoder(T.TransformerEncoderLayer(**setting), layers, enable_nested_tensor=False)
    decoder = T.TransformerDecoder(T.TransformerDecoderLayer(**setting), layers)
    names = ("d_model", "nhead", "batch_first")
    return T.Transformer(custom_encoder=encoder, custom_decoder=decoder, **{name: setting[name] for name in names})
