import math
import os
import subprocess
import sys
import warnings
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import mpmath
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from smalltorch import spectral
from smalltorch.attention import causal_mask, softmax
from smalltorch.spectral import Enclosure, Estimate, _dense, attention_spectral_norm, spectral_norm, uniform_causal


def norm(A):
    return torch.linalg.matrix_norm(A.double(), ord=2)


def assert_encloses(A, rtol=1e-4):
    """Against LAPACK's largest singular value, whose own error is below 1e-13 relative at these sizes."""
    lower, upper = spectral_norm(A, rtol)
    expected = norm(A)
    assert (lower <= expected * (1 + 1e-13)).all() and (expected <= upper * (1 + 1e-13)).all()
    assert (upper <= (1 + rtol) * lower).all()


entries = st.one_of(st.just(0.0), st.floats(1e-15, 1), st.floats(1e-200, 1e-150), st.floats(1e-40, 1e-20))


@given(arrays("float64", array_shapes(min_dims=2, max_dims=3, max_side=6), elements=entries))
def test_encloses_singular_values_of_any_non_negative_matrix(A):
    assert_encloses(torch.from_numpy(A))


@given(st.integers(1, 40), st.sampled_from([0.1, 1.0, 10.0, 100.0]), st.booleans(), st.integers(0, 9))
def test_encloses_norms_of_attention_matrices(n, sharpness, causal, seed):
    torch.manual_seed(seed)
    S = sharpness * torch.randn(3, n, n, dtype=torch.float64)
    assert_encloses(softmax(S.masked_fill(~causal_mask(n), -math.inf) if causal else S))


@given(st.integers(1, 12), st.randoms(use_true_random=False))
def test_one_hot_rows(n, random):
    A = torch.eye(n, dtype=torch.float64)[[random.randrange(n) for _ in range(n)]]
    lower, upper = spectral_norm(A)
    assert lower <= A.sum(0).max().sqrt() * (1 + 1e-15) and A.sum(0).max().sqrt() * (1 - 1e-15) <= upper


@pytest.mark.parametrize("small", [0, 32])
def test_bounds_hold_where_the_norm_is_known(small, monkeypatch):
    monkeypatch.setattr(spectral, "SMALL", small)  # at 0 there are no powers of M
    known = {
        2.0: torch.tensor([[2.0]]),
        1.0: torch.eye(7),
        0.0: torch.zeros(3, 4),
        3.0: torch.ones(3, 3),
        5.0: torch.tensor([[3.0, 0, 0], [4.0, 0, 0]]),
        0.75: torch.block_diag(torch.full((3, 3), 0.25), torch.full((2, 2), 0.25), torch.zeros(1, 1)),
        1.5: torch.tensor([[0, 1.5, 0], [0, 0, 1.25], [0, 0, 0]]),
    }
    for expected, A in known.items():
        for rtol in (1e-4, 1e-9):
            lower, upper = spectral_norm(A, rtol)
            assert lower <= expected <= upper <= (1 + rtol) * lower, (expected, lower, upper)


@pytest.mark.parametrize("exponent", [1000, 500, -500, -1000, -1070])
def test_scale_does_not_matter(exponent):
    A = torch.tensor([[3.0, 0], [4, 0]], dtype=torch.float64) * math.ldexp(1.0, exponent)
    if exponent == -1070:  # the neighbour of a subnormal number is far away
        with pytest.warns(UserWarning, match="out of reach"):
            lower, upper = spectral_norm(A)
    else:
        lower, upper = spectral_norm(A)
        assert upper <= (1 + 1e-4) * lower
    assert lower <= math.ldexp(5.0, exponent) <= upper


def coupled_path(n):
    """A long chain: neighbouring singular values almost agree, so that power iteration is slow."""
    return torch.diag(torch.ones(n, dtype=torch.float64)) + torch.diag(torch.ones(n - 1, dtype=torch.float64), 1)


def test_slow_matrices_reach_rtol_through_the_fallback():
    A = coupled_path(60)
    expected = 2 * math.cos(math.pi / (2 * 60 + 1))
    lower, upper = spectral_norm(A, rtol=1e-9)
    assert lower <= expected <= upper <= (1 + 1e-9) * lower
    assert_encloses(torch.stack([A, torch.eye(60).double(), uniform_causal(60)]), rtol=1e-9)


def test_fallback_refuses_a_bound_that_is_too_small():
    """The certificate is Cholesky's, not the eigenvector's: a wrong vector widens the bound and never falsifies it."""
    A = coupled_path(60)[None]
    zero = torch.zeros(1, dtype=torch.float64)
    lower, upper = _dense(A, zero, 1e-9)
    assert lower <= norm(A) * (1 + 1e-13) and norm(A) <= upper * (1 + 1e-13) < math.inf
    with pytest.MonkeyPatch.context() as patch:
        wrong = torch.linalg.eigh(torch.eye(60, dtype=torch.float64)[None])
        patch.setattr(torch.linalg, "eigh", lambda M: wrong)
        assert _dense(A, zero, 1e-9)[1] == math.inf


def test_small_blocks_that_underflow_do_no_harm():
    """While the chain converges slowly, the component of the small block shrinks by 1e-20 a step, to zero."""
    A = torch.block_diag(coupled_path(60), torch.full((1, 1), 1e-10, dtype=torch.float64))
    assert_encloses(A, rtol=1e-9)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=60), st.lists(st.integers(0, 9), min_size=1, max_size=60))
def test_encloses_the_exact_norm_of_integer_matrices_of_rank_one(a, b):
    """||a b^T||^2 = |a|^2 |b|^2 is an integer, and fractions compare without rounding."""
    exact = sum(x * x for x in a) * sum(x * x for x in b)
    lower, upper = spectral_norm(torch.outer(torch.tensor(a).double(), torch.tensor(b).double()))
    assert Fraction(lower.item()) ** 2 <= exact <= Fraction(upper.item()) ** 2


def test_rtol_out_of_reach_warns_and_still_encloses():
    A = torch.rand(2, 50, 50, dtype=torch.float64)
    with pytest.warns(UserWarning, match="rtol=1e-16 is out of reach"):
        lower, upper = spectral_norm(A, rtol=1e-16)
    assert (lower <= norm(A)).all() and (norm(A) <= upper).all() and (upper < lower * (1 + 1e-12)).all()


def test_parts_of_a_batch_and_matrices_that_drop_out_keep_their_places():
    """More than fits one part; fast, slow and hopeless matrices in turn."""
    kinds = [uniform_causal(60), coupled_path(60), torch.eye(60).double(), torch.zeros(60, 60).double()]
    A = torch.stack([(1 + i) * kinds[i % 4] for i in range(90)]).reshape(3, 30, 60, 60)
    assert A.numel() > 2**18
    assert_encloses(A, rtol=1e-7)


@pytest.mark.parametrize("shape", [(1, 40), (40, 1), (40, 3), (3, 40), (200, 33)])
def test_matrices_that_are_not_square(shape):
    assert_encloses(torch.rand(5, *shape, dtype=torch.float64), rtol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_the_bounds_are_for_the_matrix_as_stored(dtype):
    A = torch.rand(3, 50, 50, dtype=torch.float64).to(dtype)
    assert_encloses(A, rtol=1e-10)
    assert_encloses(A.mT, rtol=1e-10)  # in another order in memory


@pytest.mark.parametrize("n", [1, 20, 40])
def test_widened_for_rounding(n):
    """Where both bounds are exact but for rounding, they still stand apart by what rounding could do."""
    lower, upper = spectral_norm(torch.ones(n, n))
    allowance = (2 * n + 16) * torch.finfo(torch.float64).eps
    assert n - lower >= 0.9 * n * allowance and upper - n >= 0.9 * n * allowance and upper - lower < 3 * n * allowance


def test_a_bound_beyond_the_greatest_number_is_infinite():
    with pytest.warns(UserWarning, match="out of reach"):
        lower, upper = spectral_norm(torch.full((2, 2), 1.5e308, dtype=torch.float64))
    assert lower < upper == math.inf


def test_slow_matrices_of_few_rows_cost_no_more_than_their_rows(monkeypatch):
    """The fallback takes the smaller one of A A^T and A^T A."""
    A = torch.full((3, 300), 1e-9, dtype=torch.float64)
    A[[0, 1, 2], [0, 1, 2]] = torch.tensor([1, 1 - 1e-9, 1 - 2e-9], dtype=torch.float64)
    shapes = []
    monkeypatch.setattr(spectral, "_dense", lambda A, *rest: shapes.append(A.shape) or _dense(A, *rest))
    assert_encloses(A, rtol=1e-10)
    assert shapes == [(1, 300, 3)]


def test_default_width():
    lower, upper = spectral_norm(uniform_causal(300))
    assert upper <= (1 + 1e-4) * lower


def test_batches_and_precision():
    A = torch.rand(2, 3, 5, 4)
    lower, upper = spectral_norm(A)
    assert lower.shape == upper.shape == (2, 3) and lower.dtype == upper.dtype == torch.float64
    single = spectral_norm(A[1, 2])
    assert single.lower.shape == () and single.lower == pytest.approx(lower[1, 2].item(), rel=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert spectral_norm(torch.zeros(0, 5, 5)).upper.shape == (0,)
        assert spectral_norm(torch.zeros(2, 0, 5, 5)).lower.shape == (2, 0)


def test_uniform_causal_is_attention_without_an_opinion():
    A = softmax(torch.zeros(5, 5, dtype=torch.float64).masked_fill(~causal_mask(5), -math.inf))
    torch.testing.assert_close(uniform_causal(5), A, rtol=1e-15, atol=0)
    lower, upper = spectral_norm(uniform_causal(1024))
    assert 1.74 < lower <= upper < 1.75
    assert_encloses(uniform_causal(300))


@pytest.mark.usefixtures("unenforced")
@pytest.mark.parametrize(
    "A, message",
    [
        (torch.tensor([[1.0, -0.5]]), "A: expected non-negative entries, got -0.5"),
        (torch.tensor([[1.0, math.nan]]), "A: expected finite entries, got nan"),
        (torch.tensor([[1.0, math.inf]]), "A: expected finite entries, got inf"),
        (torch.ones(3), "A: expected shape .* got .3,."),
        (torch.ones(3, 0), "A: expected no empty axis in .* got .3, 0."),
        (torch.ones(3, 3, dtype=torch.long), "A: expected floating-point entries, got torch.int64"),
        ([[1.0]], "A: expected a tensor"),
        (torch.ones(3, 3).to("meta"), "A: expected entries that can be read"),
    ],
)
def test_bad_input_is_named(A, message):
    with pytest.raises(ValueError, match=message):
        spectral_norm(A)


@pytest.mark.parametrize("rtol", [0.0, -1e-3, math.nan, math.inf])
def test_rtol_must_be_positive(rtol):
    with pytest.raises(ValueError, match="rtol: expected a positive number"):
        spectral_norm(torch.ones(2, 2), rtol)


# --- attention, without its matrix ------------------------------------------------------------------------------------


def attention_matrix(q, k, causal, scale=None):
    """The exact softmax of the numbers given, but for rounding in float64."""
    S = q.double() @ k.double().mT * (scale if scale is not None else q.shape[-1] ** -0.5)
    return softmax(S.masked_fill(~causal_mask(S.shape[-1]), -math.inf) if causal else S)


def assert_agrees(q, k, causal, scale=None, rtol=1e-3):
    found = attention_spectral_norm(q, k, causal=causal, scale=scale, rtol=rtol)
    assert isinstance(found, Enclosure) and found.lower.dtype == torch.float64
    expected = norm(attention_matrix(q, k, causal, scale))
    assert found.lower.shape == expected.shape
    assert (found.lower <= expected * (1 + 1e-12)).all() and (expected <= found.upper * (1 + 1e-12)).all()
    assert (found.upper <= (1 + rtol) * found.lower).all()


@given(st.integers(1, 40), st.integers(1, 9), st.sampled_from([0.1, 1, 3]), st.booleans(), st.booleans())
def test_matrix_free_agrees_with_the_matrix(n, d_h, sharpness, causal, double):
    q, k = sharpness * torch.randn(2, 3, n, d_h, dtype=torch.float64 if double else torch.float32)
    assert_agrees(q, k, causal)


@pytest.mark.parametrize("causal", [False, True])
def test_matrix_free_in_blocks_of_rows(causal):
    """Rows of a block, heads of a part: as many as fit, and here neither divides evenly."""
    q, k = torch.randn(2, 5, 1100, 8)
    assert_agrees(q, k, causal)
    assert_agrees(q[:1, :1037], k[:1, :1037], causal, rtol=1e-8)


def test_matrix_free_scale_and_broadcasting():
    q, k = torch.randn(2, 3, 20, 4), torch.randn(1, 20, 4)
    for scale in (0.0, 2.0, -1.0):
        assert_agrees(q, k, causal=True, scale=scale)
    uniform = attention_spectral_norm(q, k, causal=True, scale=0.0).lower
    torch.testing.assert_close(uniform, norm(uniform_causal(20)).expand(2, 3), rtol=1e-3, atol=0)
    assert attention_spectral_norm(q[:0], k, causal=False).upper.shape == (0, 3)


def test_matrix_free_is_vouched_for_in_float64(monkeypatch):
    """Whatever the fused kernel proposes: bad vectors cost steps, or leave the bounds wide, and falsify nothing."""
    q, k = torch.randn(2, 4, 30, 8)
    expected = norm(attention_matrix(q, k, causal=True))
    signs = torch.ones(30).double().index_fill(0, torch.arange(8), -1.0)
    for bad in (1.0, 0.0, math.nan, signs):
        monkeypatch.setattr(spectral, "_fused", lambda q, k, v, *_, bad=bad: (v.double().abs() * bad,) * 2)
        assert_agrees(q, k, causal=True)
    monkeypatch.setattr(spectral, "STEPS", 1)
    with pytest.warns(UserWarning, match="attention_spectral_norm: rtol=0.001 is out of reach"):
        lower, upper = attention_spectral_norm(q, k, causal=True)
    assert (lower <= expected).all() and (expected <= upper).all() and (upper < 2 * expected).all()


@pytest.mark.parametrize("causal", [False, True])
def test_fused_attention_proposes(causal, monkeypatch):
    """With its vector one step in float64 is enough."""
    q, k = 3 * torch.randn(2, 4, 30, 8)
    calls = []
    by_rows = spectral._by_rows
    monkeypatch.setattr(spectral, "_by_rows", lambda *arguments: calls.append(1) or by_rows(*arguments))
    assert_agrees(q, k, causal)
    assert len(calls) == 1


def test_matrix_free_where_float32_overflows():
    q, k = torch.randn(2, 4, 30, 8, dtype=torch.float64)
    assert_agrees(1e50 * q, 1e-50 * k, causal=True)


def test_matrix_free_allowance_grows_with_the_logits():
    """Logits of 1e10 have an absolute error near 1e-5 in float64, and the bounds are that much wider."""
    q, k = 1e5 * torch.ones(1, 4, 1), 1e5 * torch.ones(1, 4, 1)
    lower, upper = attention_spectral_norm(q, k, causal=False)
    assert 1e-6 < 1 - lower < 1e-4 and 1e-6 < upper - 1 < 1e-4


def test_matrix_free_allowance_survives_underflow():
    """Logits of 1e6 from k of 1e-164, whose length underflows to 0 in float64: the allowance does not."""
    q = torch.tensor([[1.0, -1.0]], dtype=torch.float64).expand(4, 2) * 1e150
    k = torch.full((4, 2), 1e-164, dtype=torch.float64)
    lower, upper = attention_spectral_norm(q, k, causal=False, scale=1e20)
    assert 1 - 1e-7 < lower < 1 - 1e-10 and 1 + 1e-7 > upper > 1 + 1e-10


@pytest.mark.parametrize(
    "powers", [(200, -200, 0), (-200, 200, 0), (300, -100, -200), (-320, 300, 20), (300, -308, 10)]
)
def test_sizes_that_cancel_are_no_obstacle(powers):
    q, k = torch.randn(2, 5, 3, dtype=torch.float64)
    a, b, c = (10.0**power for power in powers)
    assert_agrees(q * a, k * b, causal=True, scale=c, rtol=1e-9)


@pytest.mark.parametrize("d_h", [8, 5])
@pytest.mark.parametrize("causal", [False, True])
def test_order_in_memory_does_not_matter(d_h, causal):
    q, k = torch.randn(2, 2, 20, d_h)
    expected = attention_spectral_norm(q, k, causal=causal)
    for order in (
        lambda x: x.mT.contiguous().mT,
        lambda x: torch.stack([x, x], -1)[..., 0],
        lambda x: x.flip(0).flip(0),
    ):
        for pair in ((order(q), k), (q, order(k)), (order(q), order(k))):
            bounds = attention_spectral_norm(*pair, causal=causal)
            torch.testing.assert_close(tuple(bounds), tuple(expected), rtol=1e-12, atol=0)  # sums may round otherwise


sizes = st.one_of(st.floats(0, 10), st.integers(-308, 307).map(lambda e: 10.0**e), st.floats(0, 1e-307))


@settings(max_examples=100)
@given(st.lists(st.lists(sizes, min_size=3, max_size=3), min_size=1, max_size=4), st.booleans())
def test_bounds_hold_exactly_for_any_sizes(rows, zero):
    """upper^2 I - A^T A has no negative eigenvalue and lower^2 I - A^T A is not positive, in fractions."""
    rows = [*rows, [0.0] * 3] if zero else rows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # next to the ends of the floats the bounds may be wide
        lower, upper = (bound.item() for bound in spectral_norm(torch.tensor(rows, dtype=torch.float64)))
    A = [[Fraction(x) for x in row] for row in rows]
    M = [[sum(row[i] * row[j] for row in A) for j in range(3)] for i in range(3)]
    assert 0 <= lower <= upper and not signs(M, Fraction(lower)) == {1}
    assert upper == math.inf or -1 not in signs(M, Fraction(upper))


def signs(M, t):
    """Of the pivots of t^2 I - M: all are positive if it is positive, and none is negative if no eigenvalue is."""
    H = [[(t * t if i == j else 0) - M[i][j] for j in range(len(M))] for i in range(len(M))]
    found = set()
    while H:
        pivot = H[0][0]
        if pivot == 0 and any(H[0]):
            return {-1}
        found.add((pivot > 0) - (pivot < 0))
        rest = range(1, len(H))
        H = [[H[i][j] - (H[i][0] * H[0][j] / pivot if pivot else 0) for j in rest] for i in rest]
    return found


@settings(max_examples=40)
@given(
    st.lists(st.lists(st.floats(-1, 1), min_size=4, max_size=4), min_size=3, max_size=3),
    st.integers(-300, 300),
    st.integers(-300, 300),
    st.integers(-3, 1),
    st.booleans(),
)
def test_attention_is_enclosed_for_any_sizes(rows, a, b, c, causal):
    """Against 60 digits. The entries are made so that the logits are of the size 10^c."""
    a, b = (a, b) if abs(a + b) < 300 else (a, -a)
    x = torch.tensor(rows, dtype=torch.float64)
    q, k, scale = x[:, :2] * 10.0**a, x[:, 2:] * 10.0**b, 10.0 ** (c - a - b)
    lower, upper = attention_spectral_norm(q, k, causal=causal, scale=scale)
    with mpmath.workdps(60):
        S = mpmath.matrix(q.tolist()) * mpmath.matrix(k.tolist()).T * mpmath.mpf(scale)
        A = mpmath.matrix(3, 3)
        for i in range(3):
            row = [mpmath.exp(S[i, j]) if j <= i or not causal else mpmath.mpf(0) for j in range(3)]
            for j in range(3):
                A[i, j] = row[j] / sum(row)
        norm = max(mpmath.svd_r(A, compute_uv=False))
        assert lower.item() <= norm <= upper.item() <= (1 + 1e-3) * lower.item()


@contextmanager
def flushing():
    """Subnormal numbers count as 0, for Python as well."""
    if not torch.set_flush_denormal(True):
        pytest.skip("this machine cannot")
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_entries_that_are_flushed_are_said(dtype):
    least = torch.finfo(dtype).tiny
    A = torch.tensor([[least / 16, 0.0], [least, least]], dtype=torch.float64).to(dtype)
    assert A[0, 0] > 0
    with flushing(), pytest.warns(UserWarning, match="^spectral_norm: subnormal entries count as 0"):
        lower, upper = spectral_norm(A)
    assert lower <= 2**0.5 * least <= upper  # without them
    q = A / 16
    with flushing(), pytest.warns(UserWarning, match="attention_spectral_norm: subnormal entries count as 0"):
        found = attention_spectral_norm(q, q, causal=True)
    assert found[0] == pytest.approx(norm(uniform_causal(2)).item(), rel=0.01)


def test_bounds_hold_where_numbers_are_flushed():
    """Of matrices without subnormal entries, from the least normal number on."""
    for size in (2.0**-1022, 1e-300, 1e-160, 1.0):
        A = torch.tensor([[3.0, 0.0], [4.0, 0.0]], dtype=torch.float64) * size
        with flushing():
            lower, upper = spectral_norm(A)
        assert lower <= 5 * size <= upper
    q, k = torch.randn(2, 5, 3, dtype=torch.float64)
    expected = norm(attention_matrix(q, k, True))
    with flushing():
        lower, upper = attention_spectral_norm(1e-250 * q, 1e250 * k, causal=True)
    assert lower <= expected <= upper <= (1 + 1e-3) * lower


def test_matrix_free_where_gradients_are_off():
    q, k = torch.randn(2, 20, 5)
    expected = attention_spectral_norm(q, k, causal=True)
    with torch.inference_mode():
        assert attention_spectral_norm(q.clone(), k.clone(), causal=True) == expected
    found = attention_spectral_norm(q.requires_grad_(), k, causal=True)
    assert found == expected and not found.lower.requires_grad


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_matrix_free_below_float32_is_an_estimate(dtype):
    q, k = torch.randn(2, 4, 50, 16).to(dtype)
    found = attention_spectral_norm(q, k, causal=True)
    assert isinstance(found, Estimate) and found.value.shape == (4,)
    torch.testing.assert_close(found.value, norm(attention_matrix(q, k, True)), rtol=0.03, atol=0)


@pytest.mark.parametrize(
    ("dtype", "size", "scale"),
    [
        (torch.float16, 300.0, 100.0),
        (torch.float16, 6e4, 1e-9),
        (torch.bfloat16, 1e30, None),
        (torch.bfloat16, 1e38, 1e-76),
    ],
)
def test_an_estimate_is_a_number(dtype, size, scale):
    """Also where the kernel overflows, or cannot tell the logits apart."""
    q, k = (size * torch.randn(2, 3, 64, 16).clamp(-1, 1)).to(dtype)
    found = attention_spectral_norm(q, k, causal=True, scale=scale).value
    torch.testing.assert_close(found, norm(attention_matrix(q, k, True, scale)), rtol=0.03, atol=0)


@pytest.mark.processes
def test_matrix_free_memory_is_linear():
    """In a process of its own: the peak of 4096 tokens is far below one matrix of float32."""
    code = """
import resource, torch
from smalltorch.spectral import attention_spectral_norm
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
attention_spectral_norm(*torch.randn(2, 1, 64, 16), causal=True)
q, k = torch.randn(2, 1, 4096, 16)
before = peak()
attention_spectral_norm(q, k, causal=True, rtol=0.1)
print(peak() - before)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment())
    unit = 1 if sys.platform == "darwin" else 1024
    assert int(run.stdout) * unit < 0.75 * 4096**2 * 4


HUGE = torch.full((4, 2), 1e200, dtype=torch.float64)


def environment():
    folder = str(Path(spectral.__file__).parents[1])
    return os.environ | {"PYTHONPATH": folder, "OMP_NUM_THREADS": "1"}


@pytest.mark.usefixtures("unenforced")
@pytest.mark.parametrize(
    "q, k, options, message",
    [
        (torch.ones(4, 2), torch.ones(3, 2), {}, r"k: expected shape .* got .3, 2."),
        (torch.ones(4, 2), torch.ones(4, 3), {}, r"k: expected shape .* got .4, 3."),
        (torch.ones(0, 2), torch.ones(0, 2), {}, "q: expected no empty axis in .* got .0, 2."),
        (torch.ones(4, 0), torch.ones(4, 0), {}, "q: expected no empty axis in .* got .4, 0."),
        (torch.ones(4, 2), torch.ones(4, 2).double(), {}, "k: expected entries of .* as in q, got torch.float64"),
        (torch.ones(4, 2).int(), torch.ones(4, 2).int(), {}, "q: expected floating-point entries, got torch.int32"),
        (torch.ones(4, 2), torch.full((4, 2), math.nan), {}, "k: expected finite entries, got nan"),
        (torch.full((4, 2), math.inf), torch.ones(4, 2), {}, "q: expected finite entries, got inf"),
        (HUGE, HUGE, {}, "q, k, scale: expected logits that are finite in torch.float64, got the bound inf"),
        (torch.ones(4, 2), torch.ones(4, 2), {"scale": math.nan}, "scale: expected a finite number, got nan"),
        (torch.ones(4, 2), torch.ones(4, 2), {"causal": "no"}, "causal: expected a bool, got str"),
        (torch.ones(4, 2), torch.ones(4, 2), {"rtol": "small"}, "rtol: expected a positive number, got 'small'"),
        (torch.ones(4, 2), torch.ones(4, 2).to("meta"), {}, "k: expected entries of .* got torch.float32 on meta"),
        (torch.ones(4, 2).to("meta"), torch.ones(4, 2).to("meta"), {}, "q: expected entries that can be read"),
        (torch.ones(4, 2), torch.ones(4, 2), {"rtol": 0.0}, "rtol: expected a positive number, got 0.0"),
    ],
)
def test_matrix_free_bad_input_is_named(q, k, options, message):
    with pytest.raises(ValueError, match=message):
        attention_spectral_norm(q, k, **({"causal": True} | options))


def test_the_allowances_for_rounding_are_those_of_the_sums_that_they_allow_for(monkeypatch):
    """Too small an allowance is not seen in numbers that happen to be exact: what is added is looked at itself."""
    given, eps, A = [], 2.0**-52, torch.rand(1, 7, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    quotients = spectral._quotients

    def seen(v, Av, Mv, widen):
        given.append(widen)
        return quotients(v, Av, Mv, widen)

    monkeypatch.setattr(spectral, "_quotients", seen)
    spectral._iterate(A, A.sum(-2, keepdim=True), [4], 1.0)
    lower, upper = spectral._dense(A, torch.ones(1, dtype=torch.float64), 1e-3)
    assert given == 2 * [1 + (7 + 5 + 16) * eps]  # two products of 7 and 5 terms, a norm, and some single operations
    assert upper.equal(lower * (1 + 1e-3 / 2) * (1 + (5 * (5 + 2) + 7 + 16) * eps))  # Cholesky's, by Higham
