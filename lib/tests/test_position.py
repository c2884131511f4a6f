"""Position codes: as transformers, torch and networkx have them; what each is made for."""

import math
import re

import networkx
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from tiny import tiny_llama

from smalltorch.attention import attention, causal_mask
from smalltorch.position import (
    alibi_bias,
    alibi_slopes,
    axial,
    dynamic_ntk,
    erpe,
    frequencies,
    graph_distances,
    laplacian_eigenvectors,
    linear_scaling,
    llama3,
    longrope,
    offsets,
    random_walk_codes,
    rope,
    rotate,
    shaw_logits,
    shaw_values,
    sinusoids,
    spe_factors,
    t5_bias,
    t5_buckets,
    tape,
    tree_codes,
    tupe_logits,
    yarn,
)

nan = math.nan


def randn(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def doubles(values):
    return torch.tensor(values, dtype=torch.float64)


def close(ours, theirs, rtol=1e-12, atol=1e-12):
    torch.testing.assert_close(ours, theirs, rtol=rtol, atol=atol)


# --- sinusoids --------------------------------------------------------------------------------------------------------


def test_sinusoids_by_their_formula():
    P = sinusoids(5, 6, start=2)
    for p in range(5):
        for i in range(3):
            angle = (p + 2) / 10000 ** (2 * i / 6)
            assert P[p, 2 * i] == pytest.approx(math.sin(angle)) and P[p, 2 * i + 1] == pytest.approx(math.cos(angle))
    assert sinusoids(3, 5).shape == (3, 5)


def test_sinusoids_equal_transformers():
    distilbert = pytest.importorskip("transformers.models.distilbert.modeling_distilbert")
    theirs = distilbert.create_sinusoidal_embeddings(40, 12, torch.empty(40, 12))
    close(sinusoids(40, 12).float(), theirs, atol=1e-6)


@given(st.integers(1, 8), st.integers(0, 50), st.integers(0, 50))
def test_sinusoids_are_shifted_by_a_rotation_of_pairs(half, p, k):
    def swapped(P):  # cos before sin, and the pairs as `rotate` has them
        return torch.cat([P[:, 1::2], P[:, 0::2]], dim=1)

    here, there = (swapped(sinusoids(1, 2 * half, start)) for start in (p, p + k))
    close(rotate(here, k * frequencies(2 * half)[None]), there)


@given(st.integers(1, 12), st.integers(1, 6))
def test_tape_is_fitted_to_the_length_of_the_series(n, half):
    codes, d = tape(n, 2 * half), 2 * half
    for p in range(n):
        for i in range(half):
            angle = p * 10000 ** (-2 * i / d) * d / n
            close(codes[p, 2 * i : 2 * i + 2], doubles([math.sin(angle), math.cos(angle)]))
    close(tape(d, d), sinusoids(d, d))


@pytest.mark.usefixtures("unenforced")
def test_sizes_that_mean_nothing_are_refused():
    for code, arguments in ((sinusoids, dict(n=3, d=4, start=2)), (tape, dict(n=3, d=4))):
        for name in arguments:
            for bad in (-1, 2.0) if name == "start" else (-1, 2.0, 0):
                instead = rf"; try int\({name}\)" if bad == 2.0 else ""
                with pytest.raises(ValueError, match=rf"^{name}: expected .*, got {bad!r}{instead}$"):
                    code(**arguments | {name: bad})


# --- rotations --------------------------------------------------------------------------------------------------------


@given(st.integers(1, 8), st.integers(1, 4))
def test_rope_is_a_rotation_that_fixes_position_0(n, half):
    X = randn(n, 2 * half)
    Y = rope(X)
    close(Y.norm(dim=-1), X.norm(dim=-1), rtol=1e-13, atol=0)
    close(Y[0], X[0], rtol=0, atol=0)


@given(st.integers(1, 6), st.integers(0, 1000), st.integers(0, 1000))
def test_the_rotation_of_an_offset_is_that_of_two_positions(half, m, n):
    def R(p):
        return rotate(torch.eye(2 * half).double(), (p * frequencies(2 * half)).expand(2 * half, -1))

    close(R(m) @ R(n).T, R(m - n), atol=1e-11)
    close(R(m) @ R(m).T, torch.eye(2 * half).double())


def test_rope_makes_dot_products_depend_on_the_distance_only():
    q, k = rope(randn(8).expand(6, 8)), rope(randn(8).expand(6, 8))
    S = q @ k.T
    for offset in range(-5, 6):
        diagonal = S.diagonal(offset)
        close(diagonal, diagonal[0].expand_as(diagonal), rtol=0, atol=1e-13)


def test_rope_angles():
    x = torch.tensor([[1.0, 0, 0, 0], [1, 0, 0, 0]], dtype=torch.float64)  # pairs (0, 2) and (1, 3)
    torch.testing.assert_close(rope(x, base=100.0)[1], torch.tensor([math.cos(1), 0, math.sin(1), 0]).double())
    y = torch.tensor([[0.0, 1, 0, 0], [0, 1, 0, 0]], dtype=torch.float64)
    torch.testing.assert_close(rope(y, base=100.0)[1], torch.tensor([0, math.cos(0.1), 0, math.sin(0.1)]).double())
    with pytest.raises(ValueError, match="X: expected an even head width"):
        rope(randn(2, 3))


def test_rope_turns_by_positions_times_frequencies():
    X = randn(2, 5, 6)
    positions = torch.arange(3, 8).double()
    close(rope(X, base=50.0, start=3), rotate(X, torch.outer(positions, frequencies(6, 50.0))), rtol=0, atol=0)


def test_far_positions_are_turned_in_float64():
    X = torch.randn(1, 12)
    close(rope(X, start=10**6), rope(X.double(), start=10**6).float(), rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("unenforced")
def test_bad_rotations_are_named():
    for arguments, message in (
        (dict(base=0.0), "base: expected a finite number of at least 1, got 0.0"),
        (dict(base=nan), "base: expected a finite number of at least 1, got nan"),
        (dict(start=-1), "start: expected an integer of at least 0, got -1"),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
            rope(randn(2, 4), **arguments)
    for arguments, message in (
        ((randn(2, 3), randn(2, 1)), "X: expected an even head width to turn in pairs, got shape (2, 3)"),
        ((randn(2, 4), randn(2, 1)), "angle: expected shape (2, 2), got (2, 1)"),
        ((randn(2, 4), randn(3, 2)), "angle: expected shape (2, 2), got (3, 2)"),
        ((randn(2, 4), randn(2, 2).to("meta")), "angle: expected entries on cpu, as in X, got some on meta"),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
            rotate(*arguments)
    with pytest.raises(ValueError, match="^d_h: expected an even head width to turn in pairs, got 5"):
        frequencies(5)


# --- rotations for longer texts ---------------------------------------------------------------------------------------


def theirs_of(kind, d_h, base, trained, n=None, **settings):
    """What transformers computes from a configuration; for n tokens."""
    transformers = pytest.importorskip("transformers")
    rope_utils = pytest.importorskip("transformers.modeling_rope_utils")
    config = transformers.LlamaConfig(
        hidden_size=d_h,
        num_attention_heads=1,
        max_position_embeddings=trained,
        rope_parameters=dict(rope_type=kind, rope_theta=base, original_max_position_embeddings=trained) | settings,
    )
    theta, attention_factor = rope_utils.ROPE_INIT_FUNCTIONS[kind](config, "cpu", seq_len=n)
    return theta.double(), attention_factor


def same_rotations(ours, theirs):
    close(ours[0], theirs[0], rtol=1e-5, atol=0)  # theirs are in float32
    assert ours[1] == pytest.approx(theirs[1], rel=1e-12)


WIDTHS = st.sampled_from([4, 6, 8, 32, 64, 128])
BASES = st.sampled_from([100.0, 10_000.0, 500_000.0])
FACTORS = st.floats(1, 64)
LENGTHS = st.integers(16, 10_000)


@given(WIDTHS, BASES, FACTORS, LENGTHS)
def test_linear_scaling_equals_transformers(d_h, base, factor, trained):
    same_rotations(linear_scaling(d_h, base, factor), theirs_of("linear", d_h, base, trained, factor=factor))


@given(WIDTHS, BASES, FACTORS, LENGTHS, st.integers(1, 100_000))
def test_dynamic_ntk_equals_transformers(d_h, base, factor, trained, n):
    ours = dynamic_ntk(d_h, base, factor, trained, n)
    same_rotations(ours, theirs_of("dynamic", d_h, base, trained, n, factor=factor))


@given(WIDTHS, BASES, FACTORS, LENGTHS, st.sampled_from([(32.0, 1.0), (8.0, 0.5), (2.0, 1.0)]))
def test_yarn_equals_transformers(d_h, base, factor, trained, turns):
    fast, slow = turns
    theirs = theirs_of("yarn", d_h, base, trained, factor=factor, beta_fast=fast, beta_slow=slow)
    same_rotations(yarn(d_h, base, factor, trained, fast, slow), theirs)


@given(WIDTHS, BASES, FACTORS, LENGTHS, st.sampled_from([(1.0, 4.0), (0.5, 8.0), (2.0, 3.0)]))
def test_llama3_equals_transformers(d_h, base, factor, trained, turns):
    low, high = turns
    theirs = theirs_of("llama3", d_h, base, trained, factor=factor, low_freq_factor=low, high_freq_factor=high)
    same_rotations(llama3(d_h, base, factor, trained, low, high), theirs)


@given(WIDTHS, BASES, FACTORS, LENGTHS)
def test_longrope_equals_transformers(d_h, base, factor, trained):
    stretch = 1 + torch.rand(d_h // 2, dtype=torch.float64)
    factors = dict(short_factor=[1.0] * (d_h // 2), long_factor=stretch.tolist())
    theirs = theirs_of("longrope", d_h, base, trained, n=trained + 1, factor=factor, **factors)
    same_rotations(longrope(d_h, base, stretch, factor, trained), theirs)


def test_dynamic_ntk_keeps_the_fastest_pair_and_fits_the_slowest():
    theta, grown = frequencies(16), dynamic_ntk(16, 10_000.0, 1.0, trained=100, n=700)[0]
    assert grown[0] == theta[0] and grown[-1] * 700 == pytest.approx(theta[-1].item() * 100, rel=1e-12)
    close(grown, frequencies(16, 10_000.0 * 7 ** (16 / 14)))
    close(dynamic_ntk(16, 10_000.0, 8.0, trained=100, n=99)[0], theta, rtol=0, atol=0)


def test_scaled_rotations_equal_those_of_a_llama():
    """In the whole: positions times frequencies, the turn of the pairs, and the attention factor."""
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    settings = dict(rope_type="yarn", rope_theta=1000.0, factor=4.0, original_max_position_embeddings=64)
    config = tiny_llama(rope_parameters=settings).config
    d_h = config.hidden_size // config.num_attention_heads
    X = torch.randn(1, 1, 9, d_h)
    cos, sin = llama.LlamaRotaryEmbedding(config)(X, torch.arange(9)[None])
    theirs, _ = llama.apply_rotary_pos_emb(X, X, cos, sin)
    theta, attention_factor = yarn(d_h, 1000.0, 4.0, 64)
    close(attention_factor * rotate(X, torch.outer(torch.arange(9).double(), theta)), theirs, atol=1e-5)


@pytest.mark.usefixtures("unenforced")
def test_bad_scalings_are_named():
    for scaling, message in (
        (lambda: linear_scaling(8, 100.0, 0.5), "factor: expected a finite number of at least 1, got 0.5"),
        (lambda: dynamic_ntk(2, 100.0, 2.0, 10, 20), "d_h: expected an integer of at least 4, got 2"),
        (lambda: yarn(8, 1.0, 2.0, 10), "base: expected a number above 1, got 1"),
        (lambda: yarn(8, 100.0, 2.0, 10, 1.0, 1.0), "slow, fast: expected 0 < slow < fast, got 1.0 and 1.0"),
        (lambda: llama3(8, 100.0, 2.0, 10, 4.0, 4.0), "low, high: expected low < high, got 4.0 and 4.0"),
        (lambda: longrope(4, 100.0, torch.tensor([1.0, 0.0]), 2.0, 10), "stretch: expected positive entries, got 0.0"),
        (lambda: longrope(4, 100.0, torch.ones(3), 2.0, 10), "stretch: expected shape (2), got (3,)"),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
            scaling()


# --- kernels on logits ------------------------------------------------------------------------------------------------


@given(st.integers(1, 9), st.integers(0, 4))
def test_shaws_logits_equal_transformers(n, k):
    bert = pytest.importorskip("transformers.models.wav2vec2_bert.modeling_wav2vec2_bert")
    transformers = pytest.importorskip("transformers")
    config = transformers.Wav2Vec2BertConfig(
        hidden_size=8,
        num_attention_heads=2,
        position_embeddings_type="relative_key",
        left_max_position_embeddings=k,
        right_max_position_embeddings=k,
    )
    module = bert.Wav2Vec2BertSelfAttention(config).double()
    Q = randn(2, 2, n, 4)
    _, bias = bert._apply_relative_key_position_encoding(module, Q, Q)
    close(shaw_logits(Q, module.distance_embedding.weight) / math.sqrt(4), bias)


@given(st.integers(1, 9), st.integers(0, 4))
def test_shaws_values_are_those_of_each_offset(n, k):
    A, table = randn(2, n, n).softmax(-1), randn(2 * k + 1, 3)
    vectors = table[(offsets(n).clamp(-k, k) + k)]
    close(shaw_values(A, table), torch.einsum("bij,ijd->bid", A, vectors))


SIZES = [(32, 128), (64, 256), (8, 20), (16, 64), (4, 8), (32, 1000)]


@pytest.mark.parametrize(("buckets", "furthest"), SIZES)
@pytest.mark.parametrize("causal", [False, True])
def test_t5s_buckets_equal_transformers(buckets, furthest, causal):
    t5 = pytest.importorskip("transformers.models.t5.modeling_t5")
    theirs = t5.T5Attention._relative_position_bucket(offsets(1200), not causal, buckets, furthest)
    assert (t5_buckets(1200, buckets, furthest, causal) == theirs).all()


@given(st.integers(2, 20), st.integers(1, 200), st.booleans())
def test_buckets_grow_with_the_distance_and_none_is_empty(half, further, causal):
    buckets = 2 * half
    small = (buckets if causal else half) // 2
    row = t5_buckets(2 * (small + further), buckets, small + further, causal)[:, 0]  # distances 0, 1, …
    assert row[0] == 0 and (row.diff() >= 0).all() and row[-1] == (buckets if causal else half) - 1
    assert row[: small + 1].tolist() == list(range(small + 1))
    assert (row[small + further :] == row[-1]).all()


@pytest.mark.parametrize("causal", [False, True])
def test_t5s_bias_equals_transformers(causal):
    t5 = pytest.importorskip("transformers.models.t5.modeling_t5")
    transformers = pytest.importorskip("transformers")
    config = transformers.T5Config(d_model=8, d_kv=4, num_heads=2, is_decoder=causal)
    module = t5.T5Attention(config, has_relative_attention_bias=True, layer_idx=0)
    ours = t5_bias(module.relative_attention_bias.weight, 200, causal=causal)
    close(ours, module.compute_bias(200, 200)[0], rtol=0, atol=0)


@pytest.mark.parametrize("heads", range(1, 26))
def test_alibi_equals_bloom_and_mpt(heads):
    """Theirs differs from ours by a number for each query, which the softmax does not see."""
    n = 7
    bloom = pytest.importorskip("transformers.models.bloom.modeling_bloom")
    mpt = pytest.importorskip("transformers.models.mpt.modeling_mpt")
    ours = alibi_bias(n, heads)
    S, mask = randn(heads, n, n), causal_mask(n)
    A = (S + ours).masked_fill(~mask, -math.inf).softmax(-1)
    for theirs in (
        bloom.build_alibi_tensor(torch.ones(1, n), heads, torch.float64),
        mpt.build_mpt_alibi_tensor(heads, n).double(),
    ):
        close((S + theirs).masked_fill(~mask, -math.inf).softmax(-1), A, rtol=1e-6, atol=1e-7)


def test_alibis_slopes_as_published():
    close(alibi_slopes(8), doubles([2.0**-k for k in range(1, 9)]), rtol=0, atol=0)
    close(alibi_slopes(16)[:2], doubles([2**-0.5, 2**-1]))
    close(alibi_slopes(12), torch.cat([alibi_slopes(8), alibi_slopes(16)[::2][:4]]))


@given(st.integers(1, 60), st.integers(1, 6))
def test_alibi_falls_with_the_distance(heads, n):
    bias = alibi_bias(n, heads)
    assert len(bias) == heads and len(set(alibi_slopes(heads).tolist())) == heads and (bias <= 0).all()
    close(bias, bias.mT, rtol=0, atol=0)
    close(bias[:, 0, :], -alibi_slopes(heads)[:, None] * torch.arange(n))


def test_tupe_is_attention_of_content_beside_position():
    """Queries and keys side by side have twice the width, which is where sqrt(2 d_h) comes from."""
    X, P, V = randn(6, 8), randn(6, 8), randn(3, 6, 4)
    W_Q, W_K, U_Q, U_K = (randn(3, 8, 4) for _ in range(4))
    S = (X @ W_Q) @ (X @ W_K).mT / math.sqrt(2 * 4) + tupe_logits(P, U_Q, U_K)
    Q, K = (torch.cat([X @ W, P @ U], dim=-1) for W, U in ((W_Q, U_Q), (W_K, U_K)))
    close(S.softmax(-1) @ V, F.scaled_dot_product_attention(Q, K, V))


@given(st.integers(1, 8))
def test_what_erpe_adds_is_a_convolution(n):
    A, V, w = randn(n, n), randn(n), randn(2 * n - 1)
    added = erpe(A, w) @ V - A @ V
    close(added, torch.from_numpy(np.convolve(w, V))[n - 1 : 2 * n - 1], atol=1e-10)


def test_a_bias_of_the_offset_alone_moves_with_the_tokens():
    for bias in (t5_bias(randn(32, 2), 9), alibi_bias(9, 2), erpe(torch.zeros(9, 9).double(), randn(2, 17))):
        close(bias[:, 1:, 1:], bias[:, :-1, :-1], rtol=0, atol=0)


@pytest.mark.usefixtures("unenforced")
def test_bad_kernels_are_named():
    for kernel, message in (
        (lambda: shaw_logits(randn(3, 2), randn(4, 2)), "table: expected a row for each offset from -k to k, got 4"),
        (lambda: shaw_logits(randn(3, 2), randn(3, 4)), "table: expected shape (offset, d_h=2), got (3, 4)"),
        (lambda: shaw_values(randn(3, 2), randn(3, 4)), "A: expected shape (..., n, n), got (3, 2)"),
        (lambda: t5_buckets(3, 7), "buckets: expected an even number, got 7"),
        (lambda: t5_buckets(3, 2), "buckets: expected an integer of at least 4, got 2"),
        (lambda: t5_buckets(3, 32, 8), "furthest: expected an integer of at least 9, got 8"),
        (
            lambda: t5_bias(randn(3, 2), 3),
            "table: expected an even number of buckets, two on each side at least, got 3",
        ),
        (lambda: alibi_bias(3, 0), "heads: expected an integer of at least 1, got 0"),
        (lambda: tupe_logits(randn(3, 4), randn(4, 2), randn(4, 3)), "U_K: expected shape (..., d=4, d_h=2), got"),
        (lambda: erpe(randn(3, 3), randn(6)), "w: expected shape (..., 5), got (6,)"),
        (lambda: offsets(0), "n: expected an integer of at least 1, got 0"),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
            kernel()


# --- codes of structures ----------------------------------------------------------------------------------------------


def test_axial_codes_equal_reformers():
    reformer = pytest.importorskip("transformers.models.reformer.modeling_reformer")
    transformers = pytest.importorskip("transformers")
    config = transformers.ReformerConfig(
        hidden_size=7, axial_pos_shape=(3, 4), axial_pos_embds_dim=(2, 5), hidden_dropout_prob=0.0
    )
    module = reformer.AxialPositionEmbeddings(config).train()
    for weight in module.weights:
        torch.nn.init.normal_(weight)
    rows, columns = (weight.squeeze() for weight in module.weights)
    close(axial(rows, columns), module(torch.arange(12)[None])[0], rtol=0, atol=0)


PATHS = st.lists(st.integers(0, 2), max_size=4)


@given(PATHS, st.integers(0, 2))
def test_a_child_is_an_affine_map_of_its_parent(path, choice):
    parent, child = tree_codes([path, [*path, choice]], branches=3, depth=5)
    shift = torch.eye(15, dtype=torch.float64).roll(3, 1)
    shift[-3:] = 0  # what falls off the end of the stack
    assert (child == parent @ shift + torch.eye(15, dtype=torch.float64)[choice]).all()
    assert (parent == child @ shift.T).all()


@given(st.lists(PATHS, max_size=6, unique_by=tuple))
def test_no_two_nodes_of_a_tree_share_a_code(paths):
    codes = tree_codes(paths, branches=3, depth=4)
    assert len({tuple(code) for code in codes.tolist()}) == len(paths)
    assert codes.sum(1).tolist() == [len(path) for path in paths]


def adjacency(graph):
    return torch.from_numpy(networkx.to_numpy_array(graph))


GRAPHS = {
    "path": networkx.path_graph(6),
    "cycle": networkx.cycle_graph(7),
    "star": networkx.star_graph(5),
    "hypercube": networkx.convert_node_labels_to_integers(networkx.hypercube_graph(3)),
    "Petersen": networkx.petersen_graph(),
    "random": networkx.gnm_random_graph(9, 20, seed=1),
    "two parts": networkx.disjoint_union(networkx.cycle_graph(3), networkx.path_graph(4)),
}
of_graphs = pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS.keys())


@of_graphs
def test_laplacian_eigenvectors_satisfy_their_equation(graph):
    G = adjacency(graph)
    values, U = laplacian_eigenvectors(G)
    degree = doubles([d for _, d in graph.degree])
    L = torch.eye(len(G)) - torch.diag(degree**-0.5) @ G @ torch.diag(degree**-0.5)
    close(L @ U, U * values)
    close(U.mT @ U, torch.eye(len(G)).double())
    assert (values.diff() >= 0).all() and values[-1] <= 2 + 1e-12
    assert (values < 1e-9).sum() == networkx.number_connected_components(graph)
    close(L @ degree.sqrt(), torch.zeros(len(G)).double())


@pytest.mark.parametrize(
    ("graph", "spectrum"),
    [
        (networkx.cycle_graph(7), [1 - math.cos(2 * math.pi * k / 7) for k in range(7)]),
        (networkx.path_graph(6), [1 - math.cos(math.pi * k / 5) for k in range(6)]),
        (networkx.complete_graph(5), [0.0] + [1.25] * 4),
        (networkx.complete_bipartite_graph(2, 3), [0.0, 1.0, 1.0, 1.0, 2.0]),
    ],
)
def test_spectra_that_are_known(graph, spectrum):
    close(laplacian_eigenvectors(adjacency(graph))[0], doubles(sorted(spectrum)))


@of_graphs
def test_random_walk_codes_count_closed_walks(graph):
    G = adjacency(graph)
    P = G / G.sum(1, keepdim=True)
    codes = random_walk_codes(G, 5)
    for k in range(5):
        close(codes[:, k], torch.linalg.matrix_power(P, k + 1).diagonal())
    close(codes[:, 0], torch.zeros(len(G)).double())  # no node has an edge to itself


@of_graphs
def test_distances_equal_networkx(graph):
    theirs = torch.from_numpy(np.asarray(networkx.floyd_warshall_numpy(graph)))
    assert (graph_distances(adjacency(graph)) == theirs).all()


@given(st.permutations(range(9)))
def test_codes_of_graphs_follow_their_nodes(order):
    G = adjacency(GRAPHS["random"])
    moved = G[order][:, order]
    close(random_walk_codes(moved, 4), random_walk_codes(G, 4)[order])
    assert (graph_distances(moved) == graph_distances(G)[order][:, order]).all()
    close(laplacian_eigenvectors(moved)[0], laplacian_eigenvectors(G)[0])


def two_rings(size, bridge):
    """Two rings that share an edge, or that an edge joins: ten nodes and eleven edges either way."""
    rings = networkx.Graph([*networkx.cycle_graph(size).edges])
    if bridge:
        rings.add_edges_from([(size + i, size + (i + 1) % size) for i in range(size)])
        rings.add_edge(0, size)
    else:
        networkx.add_path(rings, [0, *range(size, 2 * size - 2), 1])
    return rings


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (networkx.cycle_graph(6), networkx.disjoint_union(networkx.cycle_graph(3), networkx.cycle_graph(3))),
        (two_rings(6, bridge=False), two_rings(5, bridge=True)),  # decalin and bicyclopentyl
    ],
)
def test_walks_separate_what_colour_refinement_does_not(one, other):
    for graph in (one, other):
        networkx.set_node_attributes(graph, "same", "colour")
    colours = [
        networkx.weisfeiler_lehman_graph_hash(graph, node_attr="colour", iterations=10) for graph in (one, other)
    ]
    assert colours[0] == colours[1]
    one, other = (random_walk_codes(adjacency(graph), 6).sum(0) for graph in (one, other))
    assert (one - other).abs().max() > 0.01


def test_spes_features_have_its_kernel_on_average():
    frequency, gain, phase = torch.rand(3).double() / 2, randn(3), randn(3)
    U_Q, U_K = spe_factors(6, frequency, gain, phase)
    lag = -offsets(6)[..., None]
    kernel = (gain**2 * torch.cos(2 * math.pi * frequency * lag + phase)).sum(-1)
    close(U_Q @ U_K.mT, kernel)
    Z = randn(6, 100_000)
    covariance = (U_Q @ Z) @ (U_K @ Z).mT / 100_000
    close(covariance, kernel, rtol=0, atol=0.05 * (gain**2).sum().item())


@pytest.mark.usefixtures("unenforced")
def test_bad_structures_are_named():
    ring = adjacency(networkx.cycle_graph(3))
    alone = torch.zeros(2, 2)
    for code, message in (
        (lambda: tree_codes([[0, 0]], 2, 1), "paths: expected at most 1 choices, got 2 for node 0"),
        (lambda: tree_codes([[], [2]], 2, 1), "paths: expected choices from 0 to 1, got 2 for node 1"),
        (lambda: laplacian_eigenvectors(ring.triu()), "G: expected a symmetric matrix of weights from 0 on"),
        (lambda: random_walk_codes(-ring, 2), "G: expected a symmetric matrix of weights from 0 on"),
        (lambda: graph_distances(alone), "G: expected an edge at each node, got none at node 0"),
        (lambda: laplacian_eigenvectors(ring * nan), "G: expected finite entries, got nan"),
        (lambda: axial(randn(2, 3), torch.ones(2, 3)), "columns: expected entries of torch.float64 on cpu, as in rows"),
        (lambda: spe_factors(3, *(randn(2).abs() + 1).expand(3, 2)), "frequency: expected entries from 0 to 1/2, got"),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
            code()


# --- in attention -----------------------------------------------------------------------------------------------------


def test_a_shift_of_all_positions_leaves_rotary_attention_alone():
    Q, K, V = (randn(2, 5, 8) for _ in range(3))
    for mask in (None, causal_mask(5)):
        near, far = (attention(rope(Q, start=p), rope(K, start=p), V, mask)[0] for p in (0, 1000))
        close(far, near, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("base", [1.001, 2.0, 1e4, 1e6])
@pytest.mark.parametrize("trained", [1, 4, 64, 4096, 10**13])
def test_yarn_keeps_its_sentence_for_every_base_and_length(base, trained):
    theta = frequencies(64, base)
    turns, share = theta * trained / (2 * math.pi), yarn(64, base, 4.0, trained)[0] / theta
    assert (share[turns > 32] == 1).all() and torch.allclose(share[turns < 1], torch.tensor(0.25).double())
    assert ((share >= 0.25 - 1e-12) & (share <= 1)).all()
