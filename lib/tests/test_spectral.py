import math
import warnings
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from smalltorch.attention import causal_mask, softmax
from smalltorch.spectral import _dense, spectral_norm, uniform_causal


def norm(A):
    return torch.linalg.matrix_norm(A.double(), ord=2)


def assert_encloses(A, rtol=1e-6):
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


@pytest.mark.parametrize("fallback", [False, True])
def test_bounds_hold_where_the_norm_is_known(fallback, monkeypatch):
    if fallback:
        monkeypatch.setattr("smalltorch.spectral.STEPS", 1)
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
        lower, upper = spectral_norm(A)
        assert lower <= expected <= upper <= (1 + 1e-6) * lower, (expected, lower, upper)


@pytest.mark.parametrize("exponent", [1000, 500, -500, -1000, -1070])
def test_scale_does_not_matter(exponent):
    A = torch.tensor([[3.0, 0], [4, 0]], dtype=torch.float64) * math.ldexp(1.0, exponent)
    lower, upper = spectral_norm(A)
    assert lower <= math.ldexp(5.0, exponent) <= upper
    assert upper <= (1 + 1e-6) * lower or exponent == -1070  # the neighbour of a subnormal number is far away


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
    zero, most = torch.zeros(1, dtype=torch.float64), torch.full((1,), torch.inf, dtype=torch.float64)
    lower, upper = _dense(A, 1e-9, zero, most)
    assert lower <= norm(A) * (1 + 1e-13) and norm(A) <= upper * (1 + 1e-13) < math.inf
    with pytest.MonkeyPatch.context() as patch:
        wrong = torch.linalg.eigh(torch.eye(60, dtype=torch.float64)[None])
        patch.setattr(torch.linalg, "eigh", lambda M: wrong)
        assert _dense(A, 1e-9, zero, most)[1] == math.inf


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
    _, upper = spectral_norm(uniform_causal(1024))
    assert 1.74 < upper < 1.75
    assert_encloses(uniform_causal(300))


@pytest.mark.usefixtures("unenforced")
@pytest.mark.parametrize(
    "A, message",
    [
        (torch.tensor([[1.0, -0.5]]), "A: expected non-negative entries, got -0.5"),
        (torch.tensor([[1.0, math.nan]]), "A: expected finite entries, got nan"),
        (torch.tensor([[1.0, math.inf]]), "A: expected finite entries, got inf"),
        (torch.ones(3), "A: expected shape .* got .3,."),
        (torch.ones(3, 0), "A: expected at least one row and one column"),
        (torch.ones(3, 3, dtype=torch.long), "A: expected floating-point entries, got torch.int64"),
        ([[1.0]], "A: expected a tensor"),
    ],
)
def test_bad_input_is_named(A, message):
    with pytest.raises(ValueError, match=message):
        spectral_norm(A)


@pytest.mark.parametrize("rtol", [0.0, -1e-3, math.nan])
def test_rtol_must_be_positive(rtol):
    with pytest.raises(ValueError, match="rtol: expected a positive number"):
        spectral_norm(torch.ones(2, 2), rtol)
