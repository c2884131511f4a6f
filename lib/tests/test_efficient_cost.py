import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import BertConfig, GPT2Config, LlamaConfig, OpenAIGPTConfig

from smalltorch import weights
from smalltorch.attention import MultiHead
from smalltorch.block import FFN, PreLN, SwiGLU
from smalltorch.efficient.cost import (
    PUBLISHED,
    crossover,
    kept_bytes,
    kept_floats,
    layer_flops,
    layer_weights,
    peak_bytes,
)
from smalltorch.norm import RMSNorm


def counted(run):
    with FlopCounterMode(display=False) as counter:
        run()
    return counter.get_total_flops()


@pytest.mark.parametrize("kv_heads, gated", [(4, False), (2, True), (1, True)])
def test_a_layer_costs_what_the_counter_counts(kv_heads, gated):
    ffn = SwiGLU(16, 40) if gated else FFN(16, 40)
    layer = PreLN(MultiHead(16, 4, kv_heads), ffn, RMSNorm(16), RMSNorm(16))
    P = layer_weights(16, 4, 40, kv_heads, gated)
    assert P == sum(p.numel() for p in layer.parameters() if p.ndim == 2)
    for n in (3, 11):
        assert counted(lambda n=n: layer(torch.ones(n, 16))) == layer_flops(n, 16, P)


def test_a_causal_layer_costs_the_pairs_that_are_left():
    pairs = sum(1 for i in range(7) for j in range(7) if j <= i)
    assert layer_flops(7, 16, 100, causal=True) - 2 * 7 * 100 == 4 * pairs * 16


def test_at_the_crossover_the_terms_are_equal():
    assert crossover(8, 768) == 48
    assert layer_flops(48, 8, 768) == 2 * (2 * 48 * 768)


@pytest.mark.parametrize("heads, d_ff", [(2, 20), (4, 64)])
def test_what_is_kept_is_what_torchs_own_layer_keeps(heads, d_ff):
    """What grows with the square, by differences of lengths, for the other parts of torch's layer differ."""
    d = 16
    layer = torch.nn.TransformerEncoderLayer(d, heads, d_ff, dropout=0.0, norm_first=True, batch_first=True)

    def second_difference(of):
        return of(30) - 2 * of(20) + of(10)

    def measured(n):
        X = torch.ones(1, n, d, requires_grad=True)
        attention = lambda: layer.self_attn(X, X, X, need_weights=True)  # noqa: E731
        return kept_bytes(attention, layer.parameters()) // 4

    assert second_difference(lambda n: kept_floats(n, d, heads, d_ff)) == 200 * heads
    assert second_difference(measured) % (200 * heads) == 0 < second_difference(measured)
    assert kept_floats(10, d, heads, d_ff, stored=False) == 10 * (8 * d + 2 * d_ff + 4 + heads)


def test_what_is_kept_is_counted_once_and_without_the_weights():
    X, W = torch.ones(5, 4, requires_grad=True), torch.ones(4, 3, requires_grad=True)
    assert kept_bytes(lambda: X @ W) == 4 * (20 + 12)
    assert kept_bytes(lambda: X @ W, besides=[W]) == 4 * 20
    assert kept_bytes(lambda: (X * X).sum()) == 4 * 20
    assert kept_bytes(lambda: X + 1) == 0
    assert kept_bytes(lambda: X[:2] * X[:2]) == 4 * 20  # a view keeps its whole storage


def test_bytes_alive_are_those_of_the_fullest_moment():
    X = torch.ones(100, 10)
    assert peak_bytes(lambda: X.T) == 0
    assert peak_bytes(lambda: X + 1) == 4000
    assert peak_bytes(lambda: [(X + i).sum() for i in range(5)]) == 4000 + 4 + 4 * 4
    assert peak_bytes(lambda: [X + i for i in range(5)]) == 5 * 4000
    assert peak_bytes(lambda: X.add_(0)) == 0
    assert peak_bytes(lambda: [(X + 1).shape, X[:1] + 1]) == 4000


def test_a_plain_attention_has_two_matrices_alive():
    Q = torch.ones(3, 50, 4)
    assert peak_bytes(lambda: (Q @ Q.mT).softmax(-1) @ Q) == 4 * 2 * 3 * 50**2


def test_published_sizes_are_those_of_the_configurations():
    for name, config in {"BERT": BertConfig(), "LLaMA 7B": LlamaConfig()}.items():
        shape = PUBLISHED[name]
        assert shape.n == config.max_position_embeddings
        assert (shape.layers, shape.d, shape.heads) == (
            config.num_hidden_layers,
            config.hidden_size,
            config.num_attention_heads,
        )
        assert shape.d_ff == config.intermediate_size
    for name, config in {"GPT-1": OpenAIGPTConfig(), "GPT-2": GPT2Config()}.items():
        shape = PUBLISHED[name]
        assert (shape.n, shape.layers, shape.d, shape.heads) == (
            config.n_positions,
            config.n_layer,
            config.n_embd,
            config.n_head,
        )
        assert shape.d_ff == 4 * config.n_embd


def test_published_sizes_of_llama_3_1_are_those_of_its_makers_list():
    """Their list of models gives these, and the FFN's width by a rule: two thirds of 4 d, times 1.2, rounded up."""
    d, factor, multiple = 16384, 1.2, 4096
    d_ff = -(-int(factor * int(2 * 4 * d / 3)) // multiple) * multiple
    assert PUBLISHED["Llama 3.1 405B"][1:7] == (2**17, 126, d, 128, 8, d_ff)


def test_published_sizes_of_the_models_here_are_those_of_their_files():
    import gguf

    with weights._weight_file(*weights.SMOLLM2) as file:
        field = {name: f.contents() for name, f in gguf.GGUFReader(file).fields.items() if name.startswith("llama.")}
    assert PUBLISHED["SmolLM2"][1:7] == tuple(
        field[f"llama.{key}"]
        for key in (
            "context_length",
            "block_count",
            "embedding_length",
            "attention.head_count",
            "attention.head_count_kv",
            "feed_forward_length",
        )
    )
