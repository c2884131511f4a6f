import math
import re

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from smalltorch.attention import MultiHead, attention, causal_mask, softmax, weight
from smalltorch.position import alibi_bias, t5_bias, yarn

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


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_softmax_of_half_types_sums_in_float32(dtype):
    S = torch.randn(3, 5000).to(dtype)
    A, expected = softmax(S), torch.softmax(S.double(), -1)
    assert A.dtype == dtype
    torch.testing.assert_close(A.double(), expected, rtol=torch.finfo(dtype).eps, atol=2**-25)
    assert (A.double().sum(-1) - 1).abs().max() < 1e-3
    assert (softmax(S.expand(3, 5000) * 0).double() - 1 / 5000).abs().max() < 1e-6  # 5000 ones overflow no float16 sum


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


@given(st.lists(st.sampled_from([1, 2, 3, 4]), max_size=4))
def test_a_mask_hides_what_it_says_or_is_refused(shape):
    Q, mask = randn(4, 2, 3, 5), random_mask(*shape) if shape else torch.tensor(True)
    S = Q @ Q.mT / 5**0.5
    if len(shape) in (2, 4) and all(size in (1, whole) for size, whole in zip(shape[::-1], (3, 3, 2, 4), strict=False)):
        expected = S.masked_fill(~mask.expand_as(S), -inf).softmax(-1)
        torch.testing.assert_close(attention(Q, Q, Q, mask)[1], expected, rtol=1e-13, atol=1e-15)
    else:
        with pytest.raises(ValueError, match=r"^mask: expected shape \(3, 3\) or \(4, 2, 3, 3\), or 1 .*, got"):
            attention(Q, Q, Q, mask)


@pytest.mark.parametrize("dtype, big", [(torch.float64, 1e160), (torch.float32, 1e20)])
def test_scores_that_overflow_are_refused(dtype, big):
    """Also where the overflow is towards -inf: a row of nothing else would pass for one that is masked."""
    q, k = torch.full((1, 2), big, dtype=dtype), torch.ones(1, 2, dtype=dtype)
    for K in (big * k, -big * k):
        with pytest.raises(
            ValueError, match=f"^Q, K, scale: expected sizes whose products {dtype} can hold, got up to"
        ):
            attention(q, K, k)
        with pytest.raises(ValueError, match="^Q, K, scale: expected sizes"):
            torch.func.vmap(lambda K: attention(q, K, k)[0])(torch.stack([k, K]))
    with pytest.raises(ValueError, match="^Q, K, scale: expected sizes"):
        attention(q, k, k, scale=big)
    Y, A = attention(q, torch.cat([k, 2 * k]) / big, torch.cat([k, 3 * k]), scale=1.0)  # large and small: scores 2, 4
    torch.testing.assert_close(A, torch.tensor([[2.0, 4.0]], dtype=dtype).softmax(-1))
    torch.testing.assert_close(attention(big * k, k, big * k)[0], big * k)


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
        ((randn(2, 3), randn(3, 5), randn(5, 3)), "K: expected shape (..., key, d_h=3), got (3, 5); try K.mT"),
        ((randn(2, 3), randn(5, 3), randn(4, 3)), "V: expected shape (..., key=5, d_v), got (4, 3)"),
        ((randn(3), randn(5, 3), randn(5, 3)), "Q: expected shape (..., query, d_h), got (3,)"),
        (
            (randn(2, 3), randn(5, 3), randn(5, 3), causal_mask(5)),
            "mask: expected shape (2, 5), or 1 in place of a size, got (5, 5)",
        ),
        ((randn(2, 3), randn(2, 3), randn(2, 3), torch.zeros(2, 2)), "mask: expected a boolean tensor"),
        ((None, randn(2, 3), randn(2, 3)), "Q: expected a tensor of shape (..., query, d_h), got NoneType"),
        ((randn(2, 3).long(), randn(2, 3), randn(2, 3)), "Q: expected floating-point entries, got torch.int64"),
        ((randn(2, 3), randn(2, 3), randn(2, 3).float()), "V: expected entries of torch.float64 on cpu, as in Q, got"),
        ((randn(2, 3), randn(0, 3), randn(0, 3)), "K: expected no empty axis in (..., key, d_h), got (0, 3)"),
        ((randn(2, 3), randn(2, 3), randn(2, 3), None, nan), "scale: expected a finite number, got nan"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        attention(*arguments)


@pytest.mark.usefixtures("unenforced")
def test_bad_input_of_the_parts_is_named():
    for S, dim, message in (
        (torch.ones(2, 3).int(), -1, "S: expected floating-point entries, got torch.int32"),
        (randn(2, 3), 2, "dim: expected an axis of S that is not empty, got 2 for shape (2, 3)"),
        (randn(2, 3), -3, "dim: expected an integer of at least -2, got -3"),
        (randn(2, 0), -1, "dim: expected an axis of S that is not empty, got -1 for shape (2, 0)"),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
            softmax(S, dim)
    assert softmax(randn(0, 3)).shape == (0, 3)
    for make in (lambda n: causal_mask(n), lambda n: weight(n, 3)):
        with pytest.raises(ValueError, match="^(n|d_in): expected an integer of at least 1, got 0"):
            make(0)


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
    torch.testing.assert_close(H.transpose(1, 2).flatten(2) @ model.W_O + model.b_O, Y, rtol=0, atol=0)


def test_a_score_bias_is_added_as_torch_adds_it():
    model, X = MultiHead(16, 4, kv_heads=2, rope_base=100.0).double(), randn(2, 5, 16)
    Q, K, V = model.project(X)
    for bias in (alibi_bias(5, 4), t5_bias(randn(32, 4), 5), randn(5, 5)):
        model.score_bias = {5: bias}.get
        added = bias.masked_fill(~causal_mask(5), -inf)
        H = F.scaled_dot_product_attention(Q, K, V, attn_mask=added.expand(2, 4, 5, 5))
        found = model(X, mask=causal_mask(5))[0]
        torch.testing.assert_close(found, H.transpose(1, 2).flatten(2) @ model.W_O, rtol=1e-12, atol=1e-12)


def test_a_module_that_biases_scores_is_trained():
    class Learned(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.nn.Parameter(torch.zeros(32, 2))

        def forward(self, n):
            return t5_bias(self.table, n)

    model = MultiHead(8, 2)
    model.score_bias = Learned()
    model(torch.randn(5, 8))[0].sum().backward()
    assert "score_bias.table" in dict(model.named_parameters()) and model.score_bias.table.grad.norm() > 0


def test_other_positions_go_along_with_a_cache():
    model, X = MultiHead(12, 2, rope_base=100.0).double(), randn(7, 12)
    model.theta, model.attention_factor = yarn(6, 100.0, 4.0, trained=3)
    model.score_bias = lambda n: alibi_bias(n, 2)
    cache = []
    parts = [model(X[:4], mask=causal_mask(4), cache=cache)[0], *(model(x[None], cache=cache)[0] for x in X[4:])]
    torch.testing.assert_close(torch.cat(parts), model(X, mask=causal_mask(7))[0], rtol=1e-12, atol=1e-12)


@pytest.mark.usefixtures("unenforced")
def test_other_positions_that_do_not_fit_are_named():
    X = torch.randn(5, 8)
    for message, attributes, memory in (
        ("theta: expected shape (2), got (3,)", dict(theta=torch.ones(3)), None),
        ("attention_factor: expected a finite number of at least 0, got nan", dict(attention_factor=nan), None),
        ("score_bias: expected shape (..., 5, 5), got (5, 4)", dict(score_bias=lambda n: torch.zeros(n, n - 1)), None),
        (
            "memory: expected none beside a score_bias, got one; try score_bias = None",
            dict(score_bias=lambda n: torch.zeros(n, n)),
            X,
        ),
    ):
        model = MultiHead(8, 2, rope_base=10.0)
        vars(model).update(attributes)
        with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
            model(X, memory)


def test_multi_head_without_positions_is_permutation_equivariant():
    model, X, order = MultiHead(6, 3).double(), randn(5, 6), torch.randperm(5)
    torch.testing.assert_close(model(X[order])[0], model(X)[0][order], rtol=1e-12, atol=1e-12)


@pytest.mark.usefixtures("unenforced")
def test_multi_head_names_bad_arguments():
    with pytest.raises(ValueError, match="^heads: expected a divisor of d = 8, got 7; try 4$"):
        MultiHead(8, 7)
    with pytest.raises(ValueError, match="^heads: expected a divisor of d = 8, got 9; try 8$"):
        MultiHead(8, 9)
    with pytest.raises(ValueError, match="^kv_heads: expected a divisor of heads = 4, got 3; try 2$"):
        MultiHead(8, 4, kv_heads=3)
    for message, options in (
        ("d: expected an integer of at least 1, got 0", dict(d=0)),
        ("heads: expected an integer of at least 1, got -1", dict(heads=-1)),
        ("kv_heads: expected an integer of at least 1, got 0", dict(kv_heads=0)),
        ("rope_base: expected a finite number of at least 1, got -10.0", dict(rope_base=-10.0)),
        ("heads: expected an even width d / heads to turn in pairs, got 8 / 8; try 4", dict(heads=8, rope_base=10.0)),
        (
            "heads: expected an even width d / heads to turn in pairs, got 9 / 3; try an even d",
            dict(d=9, heads=3, rope_base=2.0),
        ),
    ):
        with pytest.raises(ValueError, match=f"^{message}"):
            MultiHead(**dict(d=8, heads=2) | options)
    model, X = MultiHead(8, 2), torch.zeros(2, 8)
    for message, arguments in (
        ("X: expected shape (..., n, d=8), got (2, 7)", (torch.zeros(2, 7),)),
        ("X: expected entries of torch.float32 on cpu, as in W_Q, got torch.float64 on cpu", (X.double(),)),
        ("memory: expected shape (..., m, d=8), got (2, 7)", (X, torch.zeros(2, 7))),
        ("X: expected sizes whose products torch.float32 can hold, got up to 1e+20", (X + 1e20,)),
        (
            "X, memory: expected sizes whose products torch.float32 can hold, got up to 1e+10 and 1e+30",
            (X + 1e10, X + 1e30),
        ),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
            model(*arguments)


# --- the cache of one attention ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("unenforced")
def test_a_cache_that_does_not_fit_is_refused():
    model, X = MultiHead(8, 4, kv_heads=2, rope_base=10.0), torch.randn(3, 5, 8)
    cache = []
    model(X, cache=cache)
    K, V = cache
    for bad, message in (
        ([K[:2], V[:2]], "cache: expected shape (3, 2, 5, 2), got (2, 2, 5, 2)"),
        ([K, V[:, :, :4]], "cache: expected shape (3, 2, 5, 2), got (3, 2, 4, 2)"),
        ([K[:, :1], V[:, :1]], "cache: expected shape (3, 2, 5, 2), got (3, 1, 5, 2)"),
        ([K[..., :1], V[..., :1]], "cache: expected shape (3, 2, 5, 2), got (3, 2, 5, 1)"),
        ([K.double(), V], "cache: expected entries of torch.float32 on cpu, as in X, got torch.float64 on cpu"),
        ([K], "cache: expected [] or keys and values, got ['Tensor']"),
        ([K, None], "cache: expected [] or keys and values, got ['Tensor', 'NoneType']"),
        (
            [[K, V]] * 3,
            "cache: expected [] or keys and values, got ['list', 'list', 'list']; try cache[0], of the first",
        ),
        ((K, V), "cache: expected a list, got tuple"),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
            model(X, cache=bad)
    with pytest.raises(ValueError, match="^X, cache: expected sizes whose products"):
        model(X, cache=[K + 1e38, V])


def test_an_interrupted_call_leaves_the_cache_of_an_attention_as_it_was():
    model, X = MultiHead(8, 2), torch.randn(3, 5, 8)
    cache = []
    model(X[:, :3], cache=cache)
    held = list(cache)
    with pytest.raises(ValueError, match="mask: expected"):
        model(X[:, 3:], mask=torch.ones(2, 7, dtype=torch.bool), cache=cache)
    assert len(cache) == 2 and all(new is old for new, old in zip(cache, held, strict=True))


def test_a_padding_mask_cannot_pass_for_one_of_queries_and_keys():
    """With as many rows in the batch as tokens two axes could be either: only a causal mask is taken as it stands."""
    layer, X = MultiHead(8, 2), torch.randn(4, 4, 8)
    padding = torch.tensor([[1, 1, 1, 0], [1, 1, 1, 1], [1, 1, 0, 0], [1, 1, 1, 1]]).bool()
    with pytest.raises(ValueError, match=r"^mask: expected all axes .*mask\[None, None\] .* mask\[:, None, None, :\]"):
        layer(X, mask=padding)
    with pytest.raises(ValueError, match=r"^mask: expected all axes .*mask\[None\] .* mask\[:, None, :\]"):
        attention(X, X, X, padding)
    with pytest.raises(ValueError, match="^mask: expected all axes"):  # causal, but not to itself
        layer(X, mask=causal_mask(4).tril(-1))
    with pytest.raises(ValueError, match="^mask: expected all axes"):  # also of fewer queries than keys
        attention(X[:3, :3], X[:3], X[:3], padding[:3])
    A = layer(X, mask=causal_mask(4))[1]
    assert torch.equal(A, layer(X, mask=causal_mask(4)[None, None])[1])
    assert layer(X[:3], mask=padding)[1].shape == (3, 2, 4, 4)  # no such batch: (query, key)
    assert torch.equal(
        attention(X[:2, 2:], X[:2], X[:2], causal_mask(4)[2:])[1], attention(X, X, X, causal_mask(4))[1][:2, 2:]
    )
    assert MultiHead(8, 4)(X[0], mask=padding)[1].shape == (4, 4, 4)  # the first axis is of heads, there is no batch


def test_scores_beyond_a_half_type_are_refused_and_within_it_computed_in_float32():
    big = torch.full((1, 64), 300.0).half()
    with pytest.raises(ValueError, match="^Q, K, scale: expected sizes whose products torch.float16 can hold"):
        attention(big, big, big)
    Q = torch.randn(5, 64).half()
    H, A = attention(Q, Q, Q)
    wide_H, wide_A = attention(Q.float(), Q.float(), Q.float())
    assert torch.equal(H, wide_H.half()) and torch.equal(A, wide_A.half())
