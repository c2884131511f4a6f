"""Low rank, Linformer and Latte, hashing, reversible layers: against theorems, papers' pseudo-code, Hugging Face."""

import math

import pytest
import torch
from torch import nn
from transformers import ReformerConfig
from transformers.models.reformer.modeling_reformer import LSHSelfAttention

from smalltorch.attention import attention, causal_mask
from smalltorch.efficient.hashing import chunk_mask, hash_buckets, shared_attention
from smalltorch.efficient.low_rank import best_rank, latte, linformer, rank_floors
from smalltorch.efficient.reversible import Reversible, run_reversible
from smalltorch.engine.sample import normal

# --- low rank ---------------------------------------------------------------------------------------------------------


def test_floors_are_attained_and_not_passed():
    A = normal("floors", 3, 6, 5)
    floors = rank_floors(A)
    for k in range(6):
        B = best_rank(A, k)
        assert torch.linalg.matrix_rank(B).max() <= k
        assert torch.allclose(torch.linalg.matrix_norm(A - B), floors[:, k], atol=1e-12)
        other = normal(f"left {k}", 3, 6, k) @ normal(f"right {k}", 3, k, 5)
        assert (torch.linalg.matrix_norm(A - other) > (1 - 1e-12) * floors[:, k]).all()


def test_floors_of_what_squares_cannot_hold():
    assert torch.allclose(
        rank_floors(1e200 * torch.eye(3).double()) / 1e200, torch.tensor([3, 2, 1, 0]).double().sqrt()
    )
    assert (rank_floors(torch.zeros(2, 3)) == 0).all()


def the_paper_linformer(Q, K, V, E, F):
    """Linformer, equation (7), row by row."""
    K_bar, V_bar = E @ K, F @ V
    heads = []
    for q in Q:
        score = torch.stack([torch.dot(q, row) for row in K_bar]) / math.sqrt(len(q))
        weight = score.exp() / score.exp().sum()
        heads.append(sum(w * row for w, row in zip(weight, V_bar, strict=True)))
    return torch.stack(heads)


def test_linformer_is_the_paper():
    Q, K, V = normal("Q", 4, 3), normal("K", 6, 3), normal("V", 6, 2)
    E, F = normal("E", 2, 6), normal("F", 2, 6)
    assert torch.allclose(linformer(Q, K, V, E, F), the_paper_linformer(Q, K, V, E, F))
    whole = torch.eye(6).double()
    assert torch.allclose(linformer(Q, K, V, whole, whole), attention(Q, K, V)[0])


def the_paper_latte(Q, K, V):
    """Causal Latte as its authors scan it: the carried sums are rescaled when a larger logit comes."""
    P, top = Q.softmax(-1), K.cummax(0).values
    csum, norm, before, outputs = (
        torch.zeros(K.shape[1], V.shape[1]).double(),
        torch.zeros(K.shape[1]).double(),
        K[0],
        [],
    )
    for t in range(len(K)):
        revert, add = torch.exp(-top[t] + before), torch.exp(K[t] - top[t])
        norm = norm * revert + add
        csum = torch.einsum("ld,l->ld", csum, revert) + torch.einsum("l,d->ld", add, V[t])
        outputs.append(torch.einsum("l,ld->d", P[t] / norm, csum))
        before = top[t]
    return torch.stack(outputs)


@pytest.mark.parametrize("size", [1, 1000])
def test_latte_is_the_paper(size):
    Q, K, V = normal("Q", 7, 3), size * normal("K", 7, 3), normal("V", 7, 2)
    assert torch.allclose(latte(Q, K, V, causal=True), the_paper_latte(Q, K, V))
    expected = sum(Q.softmax(-1)[:, [latent]] * (K[:, [latent]].softmax(0) * V).sum(0) for latent in range(3))
    assert torch.allclose(latte(Q, K, V), expected)


def test_latte_by_its_matrix():
    """The causal matrix row by row, and that the layer does not look ahead."""
    Q, K = normal("Q", 2, 6, 3), normal("K", 2, 6, 3)
    A = latte(Q, K, torch.eye(6).double().expand(2, 6, 6), causal=True)
    assert torch.allclose(A.sum(-1), torch.ones(2, 6).double()) and (A.triu(1) == 0).all()
    E = K.exp()[:, None] * causal_mask(6)[:, :, None]  # query key latent
    assert torch.allclose(A, (Q.softmax(-1)[:, :, None] * E / E.sum(2, keepdim=True)).sum(-1))


def test_latte_needs_as_many_queries():
    with pytest.raises(ValueError, match="Q: expected a query for each"):
        latte(normal("Q", 2, 3), normal("K", 4, 3), normal("V", 4, 2), causal=True)


# --- hashing ----------------------------------------------------------------------------------------------------------

CONFIG = dict(
    hidden_size=12,
    num_attention_heads=3,
    attention_head_size=4,
    num_buckets=6,
    num_hashes=1,
    hash_seed=5,
    is_decoder=False,
    attn_layers=["lsh"],
    lsh_attn_chunk_length=4,
    axial_pos_embds=False,
    lsh_attention_probs_dropout_prob=0.0,
    lsh_num_chunks_after=0,
)


def reformer(**options):
    torch.manual_seed(0)
    return LSHSelfAttention(ReformerConfig(**(CONFIG | options)), layer_idx=0).double().eval()


def split(X, W):
    return (X @ W.weight.T).unflatten(-1, (3, 4)).transpose(1, 2)


def test_buckets_are_reformers():
    theirs, X = reformer(), normal("states to hash", 2, 3, 8, 4)
    found = theirs._hash_vectors(X, 1, None)
    torch.manual_seed(5)
    R = torch.randn(3, 4, 1, 3, dtype=torch.float64)[:, :, 0]
    assert torch.equal(found, torch.stack([hash_buckets(X[:, h], R[h]) for h in range(3)], 1) + found * 0)
    assert torch.equal(hash_buckets(1e200 * X, R[0]), hash_buckets(X, R[0]))


@pytest.mark.parametrize("decoder", [False, True])
def test_shared_attention_is_reformers(decoder):
    theirs, X = reformer(lsh_attn_chunk_length=8, is_decoder=decoder), normal("states", 2, 8, 12)
    Q, V = split(X, theirs.query_key), split(X, theirs.value)
    ours, A = shared_attention(Q, V, causal_mask(8) if decoder else None)
    found = theirs(X, use_cache=False)
    assert torch.allclose(
        found.hidden_states, ours.transpose(1, 2).flatten(2), atol=1e-4
    )  # theirs adds 1e-6 to squares
    assert A[..., 0, 0].eq(1).all() if decoder else A.diagonal(dim1=-2, dim2=-1).eq(0).all()


def test_chunks_are_reformers():
    """Its sorted chunks of 4 with one chunk back; theirs wraps round from the first chunk to the last."""
    theirs, X = reformer(), normal("states", 2, 16, 12)
    Q, V = split(X, theirs.query_key), split(X, theirs.value)
    buckets = theirs._hash_vectors(Q, 1, None)
    found = theirs(X, use_cache=False, buckets=None).hidden_states.unflatten(-1, (3, 4)).transpose(1, 2)
    for h in range(3):
        local = buckets[:, h] - buckets[:, h].min()
        ours, _ = shared_attention(Q[:, h], V[:, h], chunk_mask(local, 4))
        later = local.argsort(dim=-1, stable=True).argsort(-1) >= 4
        assert torch.allclose(found[:, h][later], ours[later], atol=1e-4)


def test_own_score_is_the_largest():
    Q = normal("queries", 2, 9, 4)
    S = Q @ (Q / Q.norm(dim=-1, keepdim=True)).mT
    assert torch.allclose(S.amax(-1), Q.norm(dim=-1)) and (S.argmax(-1) == torch.arange(9)).all()


def test_who_may_read_nothing_gets_zeros():
    mask = torch.tensor([[False, False], [True, True]])
    output, A = shared_attention(normal("Q", 2, 3), normal("V", 2, 2), mask)
    assert (output[0] == 0).all() and torch.equal(A[1], torch.tensor([1.0, 0.0]).double())
    with pytest.raises(ValueError, match="Q: expected queries with a direction"):
        shared_attention(torch.zeros(2, 3), torch.zeros(2, 2))


# --- reversible layers ------------------------------------------------------------------------------------------------


def stack(depth):
    torch.manual_seed(1)
    return [Reversible(nn.Sequential(nn.Linear(4, 4), nn.Tanh()), nn.Linear(4, 4)).double() for _ in range(depth)]


def test_inverse():
    layer, X = stack(1)[0], normal("a pair of states", 2, 2, 3, 4)
    Y = layer(*X)
    assert torch.allclose(Y[0], X[0] + layer.F(X[1])) and torch.allclose(Y[1], X[1] + layer.G(Y[0]))
    for found, expected in zip(layer.inverse(*Y), X, strict=True):
        assert torch.allclose(found, expected, rtol=0, atol=1e-14)


def test_gradients_are_those_of_autograd():
    layers, X = stack(3), normal("a pair of states", 2, 2, 3, 4)

    def gradients(run):
        pair = [x.clone().requires_grad_() for x in X]
        Y_1, Y_2 = run(*pair)
        weights = [weight for layer in layers for weight in layer.parameters()]
        return torch.autograd.grad((Y_1 * Y_2.sin()).sum(), [*pair, *weights])

    def plainly(X_1, X_2):
        for layer in layers:
            X_1, X_2 = layer(X_1, X_2)
        return X_1, X_2

    for found, expected in zip(gradients(lambda *X: run_reversible(layers, *X)), gradients(plainly), strict=True):
        assert torch.allclose(found, expected)


def test_what_is_stored_does_not_grow():
    X = normal("a pair of states", 2, 2, 3, 4)
    counts = []
    for depth in (1, 5):
        saved = []
        with torch.autograd.graph.saved_tensors_hooks(lambda x, saved=saved: saved.append(x) or x, lambda x: x):
            run_reversible(stack(depth), X[0].clone().requires_grad_(), X[1])
        counts.append(sum(x.numel() for x in saved))
    assert counts == [X.numel(), X.numel()]


def test_layers_that_share_a_weight_are_refused():
    layer = stack(1)[0]
    with pytest.raises(ValueError, match="layers: expected layers with weights of their own"):
        run_reversible([layer, layer], torch.zeros(2, 4).double(), torch.zeros(2, 4).double())


def test_frozen_weights_stay_without_gradient():
    layers, X = stack(2), normal("a pair of states", 2, 2, 3, 4)
    layers[0].G.bias.requires_grad_(False)
    sum(run_reversible(layers, *X)).sum().backward()
    assert layers[0].G.bias.grad is None and layers[0].G.weight.grad.isfinite().all()


def test_dropout_that_is_on_is_refused():
    layer, X = Reversible(nn.Dropout(0.5), nn.Identity()), normal("a pair of states", 2, 2, 3, 4)
    with pytest.raises(ValueError, match="layers: expected layers that do the same"):
        run_reversible([layer], *X)
    run_reversible([layer.eval()], *X)


def test_what_overflows_when_it_is_mixed_is_refused():
    big, one = torch.full((1, 3), 1e200, dtype=torch.float64), torch.ones(3, 2).double()
    with pytest.raises(ValueError, match="^E, K: expected sizes"):
        linformer(one, 1e200 * one, one, big, big / big)
    with pytest.raises(ValueError, match="^F, V: expected sizes"):
        linformer(one, one, 1e200 * one, big / big, big)
