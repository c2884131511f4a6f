import math
import re

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from smalltorch.attention import MultiHead, affine, attention, causal_mask, rope, softmax

inf, nan = math.inf, math.nan


def randn(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def scores(min_dims=1, bound=500):
    shape = array_shapes(min_dims=min_dims, max_dims=3, max_side=6)
    return arrays("float64", shape, elements=st.floats(-bound, bound)).map(torch.from_numpy)


# --- softmax ----------------------------------------------------------------------------------------------------------


@given(scores())
def test_softmax_rows_are_distributions(S):
    A = softmax(S)
    assert (A >= 0).all()
    torch.testing.assert_close(A.sum(-1), torch.ones(S.shape[:-1], dtype=S.dtype), rtol=0, atol=1e-14)


@given(scores(), st.floats(-1000, 1000))
def test_softmax_is_shift_invariant(S, c):
    torch.testing.assert_close(softmax(S + c), softmax(S), rtol=1e-12, atol=1e-12)  # rounding of S + c: |c| 2^-53


@given(scores(min_dims=2), st.sampled_from([0, -1]))
def test_softmax_equals_torch(S, dim):
    torch.testing.assert_close(softmax(S, dim), torch.softmax(S, dim), rtol=1e-14, atol=0)


def test_softmax_neither_overflows_nor_underflows():
    S = torch.tensor([1e308, -1e308, 1e308], dtype=torch.float64)
    assert softmax(S).tolist() == [0.5, 0, 0.5]
    assert softmax(torch.full((3,), -1e300, dtype=torch.float64)).sum() == pytest.approx(1)


@pytest.mark.parametrize("row", [[nan, 0.0, 1.0], [inf, 0.0, 1.0], [nan, -inf, -inf], [-inf, 0.0, 1.0]])
def test_softmax_treats_nan_and_infinity_as_torch_does(row):
    S = torch.tensor(row)
    torch.testing.assert_close(softmax(S), torch.softmax(S, -1), equal_nan=True)


def test_softmax_of_a_fully_masked_row_is_zero_with_zero_gradient():
    S = torch.tensor([[-inf, -inf], [0.0, 0.0]], requires_grad=True)
    A = softmax(S)
    A[:, 0].sum().backward()
    assert A.tolist() == [[0, 0], [0.5, 0.5]]
    assert S.grad.tolist() == [[0, 0], [0.25, -0.25]]


def test_softmax_derivatives():
    S = randn(2, 4).requires_grad_()
    assert torch.autograd.gradcheck(softmax, S)
    assert torch.autograd.gradgradcheck(softmax, S)


# --- one head ---------------------------------------------------------------------------------------------------------


def random_mask(*shape):
    """Every query sees something: torch's function gives NaN or zeros otherwise, depending on its version."""
    mask = torch.rand(*shape) < 0.5
    mask[..., 0] = True
    return mask


@pytest.mark.parametrize("mask", [None, causal_mask(5), random_mask(5, 5), random_mask(2, 1, 1, 5)])
@pytest.mark.parametrize("scale", [None, 0.3])
def test_attention_equals_torch(mask, scale):
    Q, K, V = randn(2, 3, 5, 4), randn(2, 3, 5, 4), randn(2, 3, 5, 6)
    Y, A = attention(Q, K, V, mask, scale)
    expected = F.scaled_dot_product_attention(Q, K, V, attn_mask=mask, scale=scale)
    torch.testing.assert_close(Y, expected, rtol=1e-13, atol=1e-13)
    torch.testing.assert_close(A @ V, Y, rtol=0, atol=0)


def test_causal_mask_lets_token_i_see_up_to_i():
    assert causal_mask(3).tolist() == [[True, False, False], [True, True, False], [True, True, True]]
    A = attention(randn(4, 2), randn(4, 2), randn(4, 2), causal_mask(4))[1]
    assert (A.triu(1) == 0).all() and (A.tril() > 0).sum() == 10


@given(st.integers(1, 6), st.integers(1, 6), st.randoms(use_true_random=False))
def test_attention_is_equivariant_under_permutations(n, m, random):
    Q, K, V = randn(n, 3), randn(m, 3), randn(m, 2)
    queries, keys = random.sample(range(n), n), random.sample(range(m), m)
    Y, A = attention(Q, K, V)
    Y_permuted, A_permuted = attention(Q[queries], K[keys], V[keys])
    torch.testing.assert_close(Y_permuted, Y[queries], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(A_permuted, A[queries][:, keys], rtol=1e-12, atol=1e-12)


@given(st.integers(1, 6), st.integers(1, 6))
def test_outputs_lie_in_the_box_of_the_values(n, m):
    V = randn(m, 3)
    Y, _ = attention(5 * randn(n, 2), randn(m, 2), V)
    assert (Y <= V.amax(0) + 1e-12).all() and (Y >= V.amin(0) - 1e-12).all()


def test_query_that_sees_nothing_gets_zeros():
    mask = torch.tensor([[True, True], [False, False]])
    Y, A = attention(randn(2, 3), randn(2, 3), randn(2, 3), mask)
    assert (Y[1] == 0).all() and (A[1] == 0).all() and A[0].sum() == pytest.approx(1)


def test_nan_spreads_as_in_torch():
    Q, K, V = randn(3, 2), randn(3, 2), randn(3, 2)
    Q[0, 0], V[2, 1] = nan, nan
    Y = attention(Q, K, V)[0]
    torch.testing.assert_close(Y, F.scaled_dot_product_attention(Q, K, V), equal_nan=True)
    assert Y[0].isnan().all() and Y[1].isnan().tolist() == [False, True]


def test_empty_batch():
    Y, A = attention(randn(0, 3, 2), randn(0, 5, 2), randn(0, 5, 4), torch.ones(3, 5, dtype=torch.bool))
    assert Y.shape == (0, 3, 4) and A.shape == (0, 3, 5)
    assert MultiHead(4, 2).double()(randn(0, 3, 4))[0].shape == (0, 3, 4)


@pytest.mark.usefixtures("unenforced")
@pytest.mark.parametrize(
    "arguments, message",
    [
        ((randn(2, 3), randn(5, 4), randn(5, 4)), "K: expected shape (..., key, d_h=3), got (5, 4)"),
        ((randn(2, 3), randn(5, 3), randn(4, 3)), "V: expected shape (..., key=5, d_v), got (4, 3)"),
        ((randn(3), randn(5, 3), randn(5, 3)), "Q: expected shape (..., query, d_h), got (3,)"),
        (
            (randn(2, 3), randn(5, 3), randn(5, 3), causal_mask(5)),
            "mask: expected shape (..., query=2 or 1, key=5 or 1)",
        ),
        ((randn(2, 3), randn(2, 3), randn(2, 3), torch.zeros(2, 2)), "mask: expected a boolean tensor"),
        ((None, randn(2, 3), randn(2, 3)), "Q: expected a tensor of shape (..., query, d_h), got NoneType"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        attention(*arguments)


# --- rotary positions -------------------------------------------------------------------------------------------------


@given(st.integers(1, 8), st.integers(1, 4))
def test_rope_is_a_rotation_that_fixes_position_0(n, half):
    X = randn(n, 2 * half)
    Y = rope(X)
    torch.testing.assert_close(Y.norm(dim=-1), X.norm(dim=-1), rtol=1e-13, atol=0)
    torch.testing.assert_close(Y[0], X[0], rtol=0, atol=0)


def test_rope_makes_dot_products_depend_on_the_distance_only():
    q, k = rope(randn(8).expand(6, 8)), rope(randn(8).expand(6, 8))
    S = q @ k.T
    for offset in range(-5, 6):
        diagonal = S.diagonal(offset)
        torch.testing.assert_close(diagonal, diagonal[0].expand_as(diagonal), rtol=0, atol=1e-13)


def test_rope_angles():
    x = torch.tensor([[1.0, 0, 0, 0], [1, 0, 0, 0]], dtype=torch.float64)  # pairs (0, 2) and (1, 3)
    torch.testing.assert_close(rope(x, base=100.0)[1], torch.tensor([math.cos(1), 0, math.sin(1), 0]).double())
    y = torch.tensor([[0.0, 1, 0, 0], [0, 1, 0, 0]], dtype=torch.float64)
    torch.testing.assert_close(rope(y, base=100.0)[1], torch.tensor([0, math.cos(0.1), 0, math.sin(0.1)]).double())
    with pytest.raises(ValueError, match="X: expected an even head width"):
        rope(randn(2, 3))


# --- many heads -------------------------------------------------------------------------------------------------------


def with_weights_of(theirs: torch.nn.MultiheadAttention, ours: MultiHead) -> MultiHead:
    """Copy torch's weights, which are transposed and stacked, and random biases (torch starts from zeros)."""
    with torch.no_grad():
        theirs.in_proj_bias.normal_()
        theirs.out_proj.bias.normal_()
        for letter, W, b in zip("QKV", theirs.in_proj_weight.chunk(3), theirs.in_proj_bias.chunk(3), strict=True):
            getattr(ours, f"W_{letter}").copy_(W.T)
            getattr(ours, f"b_{letter}").copy_(b)
        ours.W_O.copy_(theirs.out_proj.weight.T)
        ours.b_O.copy_(theirs.out_proj.bias)
    return ours


@pytest.mark.parametrize("mask", [None, random_mask(4, 6)])
def test_multi_head_equals_torch_with_and_without_memory(mask):
    theirs = torch.nn.MultiheadAttention(8, 2, batch_first=True).double()
    ours = with_weights_of(theirs, MultiHead(8, 2, bias=True).double())
    X, memory = randn(3, 4, 8), randn(3, 6, 8)
    hidden = None if mask is None else ~mask  # torch's mask says who may not attend
    expected = theirs(X, memory, memory, attn_mask=hidden, average_attn_weights=False)
    for mine, their in zip(ours(X, memory, mask), expected, strict=True):
        torch.testing.assert_close(mine, their, rtol=1e-12, atol=1e-12)
    for mine, their in zip(ours(X), theirs(X, X, X, average_attn_weights=False), strict=True):
        torch.testing.assert_close(mine, their, rtol=1e-12, atol=1e-12)


def test_shared_key_and_value_heads_equal_torch():
    model = MultiHead(12, 6, kv_heads=2).double()
    X = randn(2, 5, 12)
    Q, K, V = ((X @ W).unflatten(-1, (-1, 2)).transpose(1, 2) for W in (model.W_Q, model.W_K, model.W_V))
    H = F.scaled_dot_product_attention(Q, K, V, enable_gqa=True)
    torch.testing.assert_close(model(X)[0], H.transpose(1, 2).flatten(2) @ model.W_O, rtol=1e-12, atol=1e-12)


def test_projections_are_what_forward_uses():
    model = MultiHead(12, 6, kv_heads=2, bias=True, rope_base=100.0).double()
    X = randn(2, 5, 12)
    Y, A = model(X, mask=causal_mask(5))
    Q, K, V = model.project(X)
    H, A_again = attention(Q, K, V, causal_mask(5))
    torch.testing.assert_close(A_again, A, rtol=0, atol=0)
    torch.testing.assert_close(affine(H.transpose(1, 2).flatten(2), model.W_O, model.b_O), Y, rtol=0, atol=0)


def test_multi_head_without_positions_is_permutation_equivariant():
    model, X, order = MultiHead(6, 3).double(), randn(5, 6), torch.randperm(5)
    torch.testing.assert_close(model(X[order])[0], model(X)[0][order], rtol=1e-12, atol=1e-12)


@pytest.mark.usefixtures("unenforced")
def test_multi_head_names_bad_arguments():
    with pytest.raises(ValueError, match="heads: expected a divisor of d = 8, got 3"):
        MultiHead(8, 3)
    with pytest.raises(ValueError, match="kv_heads: expected a divisor of heads = 4, got 3"):
        MultiHead(8, 4, kv_heads=3)
    with pytest.raises(ValueError, match=re.escape("X: expected shape (..., n, 8), got (2, 7)")):
        MultiHead(8, 2)(torch.zeros(2, 7))
    with pytest.raises(ValueError, match=re.escape("memory: expected shape (..., m, 8), got (2, 7)")):
        MultiHead(8, 2)(torch.zeros(2, 8), torch.zeros(2, 7))
