"""Sparse masks: against FlexAttention's own, fused attention, and networkx's distances."""

import math

import networkx
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from smalltorch.attention import attention, causal_mask
from smalltorch.efficient.sparse import expander_mask, global_mask, hops, random_mask, top_mask, window_mask
from smalltorch.position import graph_distances


def rng():
    return np.random.default_rng(3)


def draw(*shape):
    return torch.from_numpy(rng().standard_normal(shape))


FORMULAS = {
    "window": (window_mask(40, 3), lambda b, h, i, j: (i - j).abs() <= 3),
    "dilated": (window_mask(40, 3, gap=4), lambda b, h, i, j: ((i - j).abs() <= 12) & ((i - j) % 4 == 0)),
    "Longformer": (
        window_mask(40, 3) | global_mask(40, 2),
        lambda b, h, i, j: ((i - j).abs() <= 3) | (i < 2) | (j < 2),
    ),
    "sinks": (
        (window_mask(40, 3) | global_mask(40, 2)) & causal_mask(40),
        lambda b, h, i, j: (i >= j) & ((i - j <= 3) | (j < 2)),
    ),
}


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("mask, formula", FORMULAS.values(), ids=FORMULAS)
def test_masks_equal_flex_attention(mask, formula):
    Q, K, V = draw(3, 1, 2, 40, 8)
    blocks = create_block_mask(formula, None, None, 40, 40, device="cpu")
    ours, A = attention(Q, K, V, mask)
    torch.testing.assert_close(ours, flex_attention(Q, K, V, block_mask=blocks))
    torch.testing.assert_close(ours, F.scaled_dot_product_attention(Q, K, V, attn_mask=mask))
    assert ((A > 0) == mask).all()


def test_pairs_of_a_window():
    for n, w in ((10, 2), (30, 7), (5, 4), (6, 0)):
        assert window_mask(n, w).sum() == n * (2 * w + 1) - w * (w + 1)
    assert (window_mask(30, 2, gap=5) == window_mask(30, 10) & window_mask(30, 29, gap=5)).all()


def test_each_token_draws_its_own_others():
    mask = random_mask(50, 4, rng())
    assert (mask.sum(1) == 5).all() and mask.diagonal().all() and (mask != mask.T).any()
    assert random_mask(5, 4, rng()).all()
    assert (random_mask(400, 40, rng()).sum(0).double().std() - 6).abs() < 1  # the root of 400 · 0.1 · 0.9


@pytest.mark.parametrize("degree", [2, 4, 8])
def test_expanders_are_regular_and_near_the_least_second_eigenvalue(degree):
    mask = expander_mask(300, degree, rng())
    assert (mask == mask.T).all() and mask.diagonal().all() and (mask.sum(0) == degree + 1).all()
    values = torch.linalg.eigvalsh(mask.double() - torch.eye(300))
    assert abs(float(values[-1]) - degree) < 1e-9
    if degree > 2:  # Friedman 2008: random regular graphs are near Ramanujan
        assert max(-float(values[0]), float(values[-2])) < 1.1 * 2 * math.sqrt(degree - 1)


def test_top_mask():
    S = draw(2, 3, 7, 9)
    kept = top_mask(S, 4)
    assert (kept.sum(-1) == 4).all()
    assert (S.masked_fill(~kept, math.inf).amin(-1) > S.masked_fill(kept, -math.inf).amax(-1)).all()
    equals = torch.zeros(1, 5)
    assert top_mask(equals, 2).tolist() == [[True, True, False, False, False]]
    assert top_mask(equals, 9).all()
    causal = draw(6, 6).masked_fill(~causal_mask(6), -math.inf)
    assert top_mask(causal, 3).sum(1).tolist() == [1, 2, 3, 3, 3, 3]


def test_hops_are_distances():
    mask = expander_mask(60, 4, rng())
    ours = torch.stack([hops(mask, source) for source in range(60)])
    assert (ours == graph_distances(mask.double().fill_diagonal_(0))).all()
    directed = random_mask(60, 2, rng())
    # a message goes from j to i
    graph = networkx.from_numpy_array(directed.T.int().numpy(), create_using=networkx.DiGraph)
    theirs = networkx.single_source_shortest_path_length(graph, 7)
    assert hops(directed, 7).tolist() == [theirs.get(i, math.inf) for i in range(60)]


def test_hops_with_and_without_a_mask_on_what_lies_ahead():
    sinks = (window_mask(50, 3) | global_mask(50, 1)) & causal_mask(50)
    assert (hops(sinks, 10)[:10] == math.inf).all()
    assert (hops(sinks, 10) == hops(window_mask(50, 3) & causal_mask(50), 10)).all()  # a first token hears of nobody
    assert hops(window_mask(9, 2), 4).tolist() == [2, 2, 1, 1, 0, 1, 1, 2, 2]
    assert hops(window_mask(6, 2) & ~torch.eye(6, dtype=torch.bool), 0)[0] == 0


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: window_mask(4, -1), "w: expected an integer of at least 0"),
        (lambda: window_mask(4, 1, gap=0), "gap: expected an integer of at least 1"),
        (lambda: global_mask(4, 5), "g: expected at most n = 4 tokens, got 5"),
        (lambda: random_mask(4, 4, rng()), "r: expected fewer than n = 4 others, got 4"),
        (lambda: expander_mask(40, 3, rng()), "degree: expected an even number from 2 to 12, got 3"),
        (lambda: expander_mask(15, 4, rng()), "n: expected an integer of at least 16"),
        (lambda: top_mask(torch.full((2, 2), math.nan), 1), "S: expected no NaN"),
        (lambda: hops(causal_mask(3), 3), "source: expected one of 3 tokens, got 3"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        call()
