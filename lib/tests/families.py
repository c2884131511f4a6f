"""Tiny random models of the families that `transformers` has, with sizes by the names that configurations give them."""

import tomllib
from pathlib import Path

import pytest
import torch

transformers = pytest.importorskip("transformers")

WORDS = ["<pad>", "<unk>", *"abcdefgh"]

SIZES = dict(
    **dict(vocab_size=64, pad_token_id=0, bos_token_id=0, eos_token_id=0, max_position_embeddings=64, n_positions=64),
    **dict(max_seq_len=64, hidden_size=32, d_model=32, n_embd=32, emb_dim=32, dim=32, word_embed_proj_dim=32),
    **dict(embedding_size=16, intermediate_size=48, d_ff=48, ffn_dim=48, hidden_dim=48, n_inner=48, d_inner=48),
    **dict(encoder_ffn_dim=48, decoder_ffn_dim=48, num_hidden_layers=2, num_layers=2, n_layer=2, n_layers=2),
    **dict(encoder_layers=2, decoder_layers=2, num_attention_heads=4, num_heads=4, n_head=4, n_heads=4),
    **dict(encoder_attention_heads=4, decoder_attention_heads=4, head_dim=8, d_kv=8, d_head=8, v_head_dim=8),
    **dict(num_key_value_heads=2, sliding_window=4, rotary_dim=4, q_lora_rank=16, kv_lora_rank=16),
    **dict(qk_rope_head_dim=4, qk_nope_head_dim=4, num_local_experts=4, num_experts=4, n_routed_experts=4),
    **dict(num_experts_per_tok=2, moe_intermediate_size=16, shared_expert_intermediate_size=16, n_group=1),
    **dict(topk_group=1, state_size=8, mamba_d_state=8, mamba_n_heads=4, mamba_d_head=16, mamba_chunk_size=8),
)

LATENT = dict(num_key_value_heads=4)  # keys and values of all heads come from one vector
LINEAR = dict(layer_types=["linear_attention", "full_attention"])
OPTIONS = {
    "bailing_hybrid": LINEAR,
    "bamba": dict(attn_layer_indices=[1], mamba_n_groups=1),
    "big_bird": dict(block_size=2, num_random_blocks=1),
    "deberta-v2": dict(relative_attention=True, pos_att_type="c2p|p2c"),
    "dots1": dict(n_shared_experts=1),
    "esmc": LATENT,
    "falcon_h1": dict(mamba_d_ssm=64, mamba_n_groups=1),
    "funnel": dict(block_sizes=[1, 1], num_decoder_layers=1, d_model=32, n_head=4),
    "gemma4_text": dict(vocab_size_per_layer_input=64, hidden_size_per_layer_input=8),
    "gpt_neo": dict(attention_types=[[["global", "local"], 1]], window_size=4),
    "granitemoehybrid": dict(layers_block_type=["mamba", "attention"], mamba_n_groups=1),
    "jamba": dict(attn_layer_period=2, attn_layer_offset=1, num_experts=2),
    "kimi_linear": LINEAR,
    "lfm2_moe": dict(layer_types=["conv", "full_attention"]),
    "lfm3": dict(layer_types=["conv", "full_attention"]),
    "longformer": dict(attention_window=4),
    "luke": dict(entity_vocab_size=8, entity_emb_size=16),
    "mamba2": dict(num_heads=8, n_groups=1, chunk_size=8),
    "qwen3_5_moe_text": LINEAR,
    "qwen3_5_text": LINEAR,
    "qwen3_next": LINEAR | dict(linear_num_value_heads=4, linear_num_key_heads=4, linear_key_head_dim=8),
    "recurrent_gemma": dict(num_hidden_layers=3),
    "reformer": dict(is_decoder=True, axial_pos_embds=False, attn_layers=["local", "lsh"], num_buckets=2)
    | dict(local_attn_chunk_length=4, lsh_attn_chunk_length=4),
    "roberta": dict(pad_token_id=1),
    "squeezebert": dict(embedding_size=32),
    "xmod": dict(languages=["en_XX"], default_language="en_XX"),
    "zamba2": dict(layers_block_type=["mamba", "hybrid"]),
    "zaya": dict(num_experts_per_tok=1),
}


def auto(name):
    """One of the lists of classes that `transformers` has, by model type."""
    return getattr(transformers.models.auto.modeling_auto, f"{name}_MAPPING_NAMES")


def reads_text(kind):
    return any(kind in auto(f"MODEL_FOR_{task}") for task in ("CAUSAL_LM", "MASKED_LM", "TEXT_ENCODING"))


def build(kind, model=None, **options):
    """A model of this type with its usual head, or of another class for it, far from uniform attention."""
    tasks = ("MODEL_FOR_CAUSAL_LM", "MODEL_FOR_MASKED_LM", "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM", "MODEL")
    model = model or next(auto(task)[kind] for task in tasks if kind in auto(task))
    model = getattr(transformers, model if isinstance(model, str) else model[0])
    config = transformers.CONFIG_MAPPING[kind]
    said = {name for parent in config.__mro__ for name in getattr(parent, "__annotations__", {})}
    twice = {name for name, own in config.attribute_map.items() if own in SIZES}
    sizes = {
        name: size for name, size in SIZES.items() if name in said | set(config.attribute_map) and name not in twice
    }
    latent = LATENT if "kv_lora_rank" in said else {}
    config = config(**sizes | latent | OPTIONS.get(kind, {}) | options)
    with torch.device("meta"):
        size = sum(p.numel() for p in model._from_config(config).parameters())
    assert size < 10**7, f"{kind}: {size} numbers are no tiny model"
    torch.manual_seed(0)
    return model._from_config(config, attn_implementation="eager").eval()


def save(model, folder):
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(tokenizer_object=words, unk_token="<unk>", pad_token="<pad>").save_pretrained(
        folder
    )
    model.save_pretrained(folder)
    return folder


FAMILIES = tomllib.loads((Path(__file__).parent / "families.toml").read_text(encoding="utf-8"))
