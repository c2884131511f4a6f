import math
import re

import mpmath
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch.func import jacrev, vmap

from smalltorch.norm import LayerNorm, RMSNorm, layer_norm, rms_norm


def randn(*shape):
    return torch.randn(*shape, dtype=torch.float64)


@pytest.mark.parametrize("eps", [1e-5, 1e-12, 0.1])
def test_layer_norm_equals_torch(eps):
    ours, theirs = LayerNorm(7, eps).double(), torch.nn.LayerNorm(7, eps).double()
    with torch.no_grad():
        theirs.weight.copy_(ours.gamma.normal_())
        theirs.bias.copy_(ours.beta.normal_())
    X = 3 * randn(2, 5, 7) + 2
    torch.testing.assert_close(ours(X), theirs(X), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("eps", [1e-5, 1e-12, 0.1])
def test_rms_norm_equals_torch(eps):
    ours, theirs = RMSNorm(7, eps).double(), torch.nn.RMSNorm(7, eps).double()
    with torch.no_grad():
        theirs.weight.copy_(ours.gamma.normal_())
    X = 3 * randn(2, 5, 7) + 2
    torch.testing.assert_close(ours(X), theirs(X), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("kind", [LayerNorm, RMSNorm])
def test_a_fresh_norm_equals_torchs_fresh_one(kind):
    X = 3 * randn(2, 5, 7) + 2
    theirs = {LayerNorm: torch.nn.LayerNorm, RMSNorm: torch.nn.RMSNorm}[kind](7, 1e-5).double()
    assert torch.allclose(kind(7, 1e-5).double()(X), theirs(X), rtol=1e-12, atol=1e-12)


def test_two_conventions_by_hand():
    X = torch.tensor([1.0, 3.0], dtype=torch.float64)  # mu = 2, sigma = 1
    torch.testing.assert_close(layer_norm(X, eps=3.0), torch.tensor([-0.5, 0.5]).double())
    torch.testing.assert_close(layer_norm(X, eps=3.0, convention="outside"), torch.tensor([-0.25, 0.25]).double())


@given(st.floats(1e-3, 1e3), st.integers(2, 20), st.sampled_from(["inside", "outside"]), st.floats(1e-12, 1))
def test_layer_norm_centres_and_stays_in_the_ball(size, d, convention, eps):
    Y = layer_norm(size * randn(4, d), eps=eps, convention=convention)
    assert (Y.mean(-1).abs() < 1e-12).all()
    assert (Y.norm(dim=-1) < math.sqrt(d) * (1 + 1e-12)).all()


@given(st.floats(1e-3, 1e3), st.floats(-1e3, 1e3))
def test_layer_norm_forgets_scale_and_shift(a, b):
    X = randn(3, 6)
    torch.testing.assert_close(layer_norm(a * X + b, eps=0.0), layer_norm(X, eps=0.0), rtol=1e-8, atol=1e-8)


@given(st.floats(1e-3, 1e3), st.integers(1, 20))
def test_rms_norm_forgets_scale(a, d):
    X = randn(3, d)
    Y = rms_norm(a * X, eps=0.0)
    torch.testing.assert_close(Y, rms_norm(X, eps=0.0), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(Y.square().mean(-1), torch.ones_like(Y[:, 0]), rtol=1e-12, atol=0)


def test_conventions_part_where_sigma_is_small():
    direction = torch.tensor([1.0, -1.0], dtype=torch.float64)
    slope = {c: layer_norm(1e-12 * direction, eps=1e-4, convention=c)[0].item() / 1e-12 for c in ("inside", "outside")}
    assert slope["inside"] == pytest.approx(1e2) and slope["outside"] == pytest.approx(1e4)
    constant = torch.ones(3, dtype=torch.float64)
    assert (layer_norm(constant) == 0).all() and (layer_norm(constant, convention="outside") == 0).all()
    for convention in ("inside", "outside"):
        with pytest.raises(
            ValueError, match="^X: expected rows that are not constant, .* got one that is; try eps=1e-5"
        ):
            layer_norm(torch.stack([direction, 0.1 + 0 * direction]), eps=0.0, convention=convention)
    with pytest.raises(ValueError, match="^X: expected rows that are not zero, for eps = 0.0, got one that is; try"):
        rms_norm(torch.stack([direction, 0 * direction]), eps=0.0)


@pytest.mark.parametrize("convention", ["inside", "outside"])
def test_derivatives(convention):
    X = randn(3, 5).requires_grad_()
    assert torch.autograd.gradcheck(lambda X: layer_norm(X, convention=convention), X)
    assert torch.autograd.gradgradcheck(lambda X: layer_norm(X, convention=convention), X)
    assert torch.autograd.gradcheck(rms_norm, X)
    assert torch.autograd.gradgradcheck(rms_norm, X)


# --- rows of extreme size ---------------------------------------------------------------------------------------------

NORMS = {
    "inside": lambda X, eps: layer_norm(X, eps=eps),
    "outside": lambda X, eps: layer_norm(X, eps=eps, convention="outside"),
    "RMS": lambda X, eps: rms_norm(X, eps=eps),
}


def by_mpmath(name, row, eps):
    """The formula in 60 digits."""
    with mpmath.workdps(60):
        x, eps = [mpmath.mpf(entry) for entry in row], mpmath.mpf(eps)
        mean = 0 if name == "RMS" else sum(x) / len(x)
        centred = [entry - mean for entry in x]
        variance = sum(entry**2 for entry in centred) / len(x)
        root = mpmath.sqrt(variance) + eps if name == "outside" else mpmath.sqrt(variance + eps)
        return [float(entry / root) for entry in centred]


exponents = st.integers(-300, 300).map(lambda power: 10.0**power)


@example("inside", [1.0, 1e121, 1e-130], 1e241)  # a row so small beside eps that the last digits are lost
@given(st.sampled_from(list(NORMS)), st.lists(exponents, min_size=3, max_size=3), st.just(0.0) | exponents)
def test_rows_of_any_size_are_normalised_by_the_formula(name, sizes, eps):
    """Each row has its own size; beside it, eps may be anything from far smaller to far larger.

    Errors are measured by the row's largest entry: in another, entry and mean may nearly cancel. What is below 2^-874
    may be lost.
    """
    X = randn(3, 4) * torch.tensor(sizes, dtype=torch.float64)[:, None]
    expected = torch.tensor([by_mpmath(name, row, eps) for row in X.tolist()], dtype=torch.float64)
    error = (NORMS[name](X, eps) - expected).abs().amax(-1)
    assert (error <= 1e-12 * expected.abs().amax(-1) + 2.0**-874).all()


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("dtype, sizes", [(torch.float64, (1e160, 1e-160, 1.0)), (torch.float32, (1e20, 1e-20, 1.0))])
def test_the_size_of_a_row_changes_no_bit(name, dtype, sizes):
    """Sizes that are powers of two; the gradient of a row 2^k times as large is 2^-k times that of the row."""
    X, weights = randn(4, 6).to(dtype).requires_grad_(), randn(4, 6).to(dtype)
    expected = NORMS[name](X, 0.0)
    (slope,) = torch.autograd.grad((weights * expected).sum(), X)
    size = 2.0 ** torch.tensor(sizes, dtype=torch.float64).log2().round()[:, None, None].to(dtype)
    Y = NORMS[name](size * X, 0.0)
    assert Y.equal(expected.expand_as(Y))
    for one in size.flatten():
        scaled = (one * X).detach().requires_grad_()
        (found,) = torch.autograd.grad((weights * NORMS[name](scaled, 0.0)).sum(), scaled)
        assert (one * found).equal(slope)


@pytest.mark.parametrize("name", NORMS)
def test_ordinary_rows_are_computed_as_the_formula_is_written(name):
    X = randn(50, 8) * 10.0 ** torch.arange(-25, 25)[:, None].double()
    centred = X if name == "RMS" else X - X.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    root = variance.sqrt() + 1e-5 if name == "outside" else (variance + 1e-5).sqrt()
    assert NORMS[name](X, 1e-5).equal(centred / root)


@pytest.mark.parametrize("name", NORMS)
def test_extreme_rows_inside_vmap(name):
    """One sample is of ordinary size, the other is not; one by one they are the same."""
    X = torch.stack([randn(5), 2.0**600 * randn(5)])
    each = vmap(jacrev(lambda x: NORMS[name](x, 1e-5)))(X)
    for slopes, x in zip(each, X, strict=True):
        torch.testing.assert_close(slopes, torch.autograd.functional.jacobian(lambda x: NORMS[name](x, 1e-5), x))


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_types_are_computed_in_float32(name, dtype):
    X = (torch.tensor([1.0, 300, 6e4, 1e-4])[:, None] * torch.randn(4, 64).clamp(-1, 1)).to(dtype)
    Y = NORMS[name](X, 1e-5)
    assert Y.dtype == dtype
    torch.testing.assert_close(Y.double(), NORMS[name](X.double(), 1e-5), rtol=torch.finfo(dtype).eps, atol=1e-7)
    gamma, beta = torch.randn(2, 64).to(dtype)
    Y = layer_norm(X, gamma, beta)
    expected = layer_norm(X.double(), gamma.double(), beta.double())
    torch.testing.assert_close(Y.double(), expected, rtol=torch.finfo(dtype).eps, atol=1e-6)


def test_nan_stays_in_its_row_and_empty_batches_work():
    X = randn(2, 4)
    X[0, 1] = math.nan
    for norm in (LayerNorm(4).double(), RMSNorm(4).double()):
        assert norm(X).isnan().all(-1).tolist() == [True, False]
        assert norm(randn(0, 4)).shape == (0, 4)


@pytest.mark.usefixtures("unenforced")
def test_bad_input_is_named():
    with pytest.raises(ValueError, match=re.escape("gamma: expected shape (d=4), got (3,)")):
        layer_norm(randn(2, 4), randn(3))
    with pytest.raises(ValueError, match=re.escape("beta: expected shape (d=4), got (1, 4)")):
        layer_norm(randn(2, 4), randn(4), randn(1, 4))
    with pytest.raises(ValueError, match="X: expected a tensor"):
        rms_norm([1.0, 2.0])
    with pytest.raises(ValueError, match="X: expected floating-point entries, got torch.int64"):
        rms_norm(torch.ones(2, 3).long())
    with pytest.raises(ValueError, match="gamma: expected entries of torch.float64 on cpu, as in X, got torch.float32"):
        rms_norm(randn(2, 4), torch.ones(4))
    for kind in (LayerNorm, RMSNorm):
        with pytest.raises(ValueError, match=re.escape("X: expected shape (..., d=3), got (2, 4)")):
            kind(3)(torch.zeros(2, 4))
        with pytest.raises(ValueError, match="d: expected an integer of at least 1, got 0"):
            kind(0)
    for make in (LayerNorm, lambda d, eps: layer_norm(randn(2, d), eps=eps)):
        for eps in (-1e-5, math.nan, math.inf):
            with pytest.raises(ValueError, match=f"eps: expected a finite number of at least 0, got {eps}"):
                make(4, eps=eps)
    for make in (LayerNorm, lambda d, **options: layer_norm(randn(2, d), **options)):
        with pytest.raises(ValueError, match="convention: expected 'inside' or 'outside', got 'within'"):
            make(4, convention="within")
    with pytest.raises(ValueError, match="eps: expected a finite number of at least 0, got -1.0"):
        RMSNorm(4, eps=-1.0)
