import math
import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

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
    assert layer_norm(constant, eps=0.0).isnan().all()


@pytest.mark.parametrize("convention", ["inside", "outside"])
def test_derivatives(convention):
    X = randn(3, 5).requires_grad_()
    assert torch.autograd.gradcheck(lambda X: layer_norm(X, convention=convention), X)
    assert torch.autograd.gradcheck(rms_norm, X)


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
    with pytest.raises(ValueError, match=re.escape("gamma: expected shape (d=4), got (3,)")):
        RMSNorm(3)(torch.zeros(2, 4))
    with pytest.raises(ValueError, match="X: expected a tensor"):
        rms_norm([1.0, 2.0])
    with pytest.raises(ValueError, match='convention: expected "inside" or "outside", got \'within\''):
        layer_norm(randn(2, 4), convention="within")
