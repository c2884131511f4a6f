"""Optimisers: against torch's, transformers' and other implementations, and against what their papers write."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers.optimization import Adafactor

from smalltorch.optim import adafactor_steps, adam_mini_steps, adam_steps, lion_steps, sm3_bounds


def gradients(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_adafactor_takes_transformers_steps():
    G = gradients(6, 4, 3)
    weight = torch.nn.Parameter(torch.zeros(4, 3, dtype=torch.float64))
    theirs = Adafactor([weight], lr=1.0, scale_parameter=False, relative_step=False, clip_threshold=1e9)
    for g, step in zip(G, adafactor_steps(G), strict=True):
        before = weight.detach().clone()
        weight.grad = g.clone()
        theirs.step()
        torch.testing.assert_close(before - weight.detach(), step)


def test_adafactor_is_exact_for_squares_of_rank_one():
    G = torch.outer(gradients(4).abs() + 0.1, gradients(3).abs() + 0.1)[None]
    torch.testing.assert_close(adafactor_steps(G), torch.ones_like(G))


def test_adafactor_makes_no_step_without_a_gradient():
    G = gradients(2, 3, 3)
    G[:, 1] = 0
    assert (adafactor_steps(G)[:, 1] == 0).all()


def test_adafactor_where_neither_row_nor_column_has_a_gradient_in_32_bits():
    G = torch.zeros(2, 2, 2)
    G[:, 0, 0] = 1
    torch.testing.assert_close(adafactor_steps(G), G)


def test_sm3_has_never_less_than_the_sum():
    G = gradients(8, 4, 3)
    bounds, sums = sm3_bounds(G), G.square().cumsum(0)
    assert (bounds >= sums * (1 - 1e-12)).all()
    assert (bounds[-1] <= torch.minimum(sums[-1].amax(1)[:, None] * 8, sums[-1].amax(0) * 8)).all()
    torch.testing.assert_close(bounds[0], sums[0])


def test_sm3_as_written():
    G = gradients(5, 3, 2)
    covers = [[(i, j) for j in range(2)] for i in range(3)] + [[(i, j) for i in range(3)] for j in range(2)]
    mu = [0.0] * len(covers)
    for g, bound in zip(G.tolist(), sm3_bounds(G).tolist(), strict=True):
        mu_next = [0.0] * len(covers)
        for i in range(3):
            for j in range(2):
                nu = min(mu[r] for r, cover in enumerate(covers) if (i, j) in cover) + g[i][j] ** 2
                assert nu == pytest.approx(bound[i][j])
                for r, cover in enumerate(covers):
                    if (i, j) in cover:
                        mu_next[r] = max(mu_next[r], nu)
        mu = mu_next


def test_lion_as_written():
    G = gradients(40, 3)
    momentum = [0.0] * 3
    for gradient, step in zip(G.tolist(), lion_steps(G).tolist(), strict=True):
        for k in range(3):
            interpolated = momentum[k] * 0.9 + gradient[k] * (1 - 0.9)
            assert step[k] == (interpolated > 0) - (interpolated < 0)
            momentum[k] = momentum[k] * 0.99 + gradient[k] * (1 - 0.99)


def test_adam_mini_is_adam_for_blocks_of_one():
    G = gradients(7, 5)
    torch.testing.assert_close(adam_mini_steps(G[:, :, None])[..., 0], adam_steps(G))


def test_adam_mini_as_written():
    G = gradients(6, 2, 3)
    for block in range(2):
        m, v = [0.0] * 3, 0.0
        for t, (g, step) in enumerate(zip(G[:, block].tolist(), adam_mini_steps(G)[:, block].tolist(), strict=True), 1):
            m = [(1 - 0.9) * g[k] + 0.9 * m[k] for k in range(3)]
            v = (1 - 0.999) * sum(x * x for x in g) / 3 + 0.999 * v
            for k in range(3):
                assert step[k] == pytest.approx(m[k] / (1 - 0.9**t) / ((v / (1 - 0.999**t)) ** 0.5 + 1e-8))


@pytest.mark.parametrize("betas", [(0.9, 0.999), (0.0, 0.99), (0.95, 0.0)])
@pytest.mark.parametrize("optimiser", [torch.optim.Adam, torch.optim.AdamW])
def test_adam_takes_torchs_steps(betas, optimiser):
    G = torch.randn(12, 6, dtype=torch.float64)
    parameter = torch.nn.Parameter(torch.zeros(6, dtype=torch.float64))
    theirs = optimiser([parameter], lr=1.0, betas=betas, eps=1e-3, weight_decay=0.0)
    for g, step in zip(G, adam_steps(G, *betas, eps=1e-3), strict=True):
        before = parameter.detach().clone()
        parameter.grad = g.clone()
        theirs.step()
        torch.testing.assert_close(before - parameter.detach(), step)


def test_adam_that_is_told_nothing_has_torchs_constants():
    defaults = torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))]).defaults
    G = torch.randn(5, 4, dtype=torch.float64)
    torch.testing.assert_close(adam_steps(G), adam_steps(G, *defaults["betas"], defaults["eps"]), rtol=0, atol=0)


@given(st.floats(-100, 100).filter(lambda g: abs(g) > 0.01), st.integers(1, 30))
def test_constant_gradients_give_steps_of_one(g, t):
    found = adam_steps(torch.full((t, 2), g, dtype=torch.float64), eps=1e-14)
    torch.testing.assert_close(found, torch.full_like(found, math.copysign(1, g)))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"beta_1": 1.0}, "beta_1: expected a number below 1, got 1.0"),
        ({"beta_2": 1.5}, "beta_2: expected a number below 1, got 1.5"),
        ({"beta_2": -0.1}, "beta_2: expected a finite number of at least 0"),
        ({"eps": 0}, "eps: expected a number above 0, got 0"),
    ],
)
def test_adam_refuses_what_has_no_mean(wrong, message):
    with pytest.raises(ValueError, match=message):
        adam_steps(torch.ones(2, 3), **wrong)


def test_adam_wants_a_gradient():
    with pytest.raises(ValueError, match="G: expected no empty axis"):
        adam_steps(torch.ones(0, 3))


def test_a_gradient_that_is_not_a_number_is_not_hidden_by_its_sign():
    for bad in (torch.nan, torch.inf):
        with pytest.raises(ValueError, match="^G: expected finite entries"):
            lion_steps(torch.tensor([[1.0], [bad], [1.0]]))
