"""Attribution: shares, gradients along a path, relevance and rollout, each against another way to get it."""

import itertools
import math

import pytest
import torch

from smalltorch.attribute import integrated_gradients, relevance, rollout, shapley
from smalltorch.engine.sample import normal


@pytest.mark.parametrize("m", [1, 2, 4])
def test_shares_are_means_over_all_orders(m):
    v = normal("a game", 3, 2**m)
    orders = list(itertools.permutations(range(m)))
    expected = torch.zeros(3, m).double()
    for order in orders:
        inside = 0
        for i in order:
            expected[:, i] += (v[:, inside + 2**i] - v[:, inside]) / len(orders)
            inside += 2**i
    torch.testing.assert_close(shapley(v), expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(shapley(v).sum(-1), v[:, -1] - v[:, 0])


@pytest.mark.parametrize("count", [1, 3, 6])
def test_a_game_has_a_power_of_two_values(count):
    with pytest.raises(ValueError, match="values: expected 2\\^m"):
        shapley(torch.zeros(count))


@pytest.mark.parametrize("steps", [2, 3, 8])
def test_gradients_of_a_polynomial_are_integrated_exactly(steps):
    x, b = normal("where", 3), normal("from where", 3)
    found = integrated_gradients(lambda z: (z[:, 0] * z[:, 1] * z[:, 2]) + z[:, 0] ** 3, x, b, steps)
    t = torch.linspace(0, 1, 20001).double()[:, None]
    z = b + t * (x - b)
    slopes = torch.stack([z[:, 1] * z[:, 2] + 3 * z[:, 0] ** 2, z[:, 0] * z[:, 2], z[:, 0] * z[:, 1]], 1)
    torch.testing.assert_close(found, (x - b) * torch.trapezoid(slopes, t.flatten(), dim=0), rtol=1e-7, atol=1e-7)
    assert math.isclose(float(found.sum()), float(x.prod() + x[0] ** 3 - b.prod() - b[0] ** 3), rel_tol=1e-12)


def test_gradients_are_taken_where_none_are_recorded():
    with torch.no_grad():
        found = integrated_gradients(lambda z: z.square().sum((-2, -1)), torch.ones(2, 3), torch.zeros(2, 3))
    torch.testing.assert_close(found, torch.ones(2, 3))


def test_relevance_is_shared_by_what_made_the_sums_and_none_is_lost():
    x, W, R = normal("inputs", 5, 4), normal("weights", 4, 3), normal("relevance", 5, 3)
    found = relevance(x, W, R)
    parts = x[:, :, None] * W
    torch.testing.assert_close(found, (parts / parts.sum(1, keepdim=True) * R[:, None]).sum(-1))
    torch.testing.assert_close(found.sum(-1), R.sum(-1))


def test_relevance_of_a_network_without_biases_is_gradient_times_input():
    x, W, U = normal("inputs", 4).requires_grad_(), normal("first", 4, 6), normal("second", 6, 1)
    hidden = torch.relu(x @ W)
    y = hidden @ U
    (slope,) = torch.autograd.grad(y.sum(), x)
    back = relevance(x.detach(), W, relevance(hidden.detach(), U, y.detach()))
    torch.testing.assert_close(back, (slope * x).detach())


def test_nothing_is_shared_by_a_sum_of_zero():
    with pytest.raises(ValueError, match="x, W: expected sums"):
        relevance(torch.tensor([1.0, -1.0]), torch.ones(2, 1), torch.ones(1))


def test_rollout_is_the_sum_over_all_paths():
    A = normal("attention", 3, 4, 4).softmax(-1)
    expected = torch.zeros(4, 4).double()
    for taken in itertools.product((0, 1), repeat=3):
        path = torch.eye(4).double()
        for layer, goes in zip(A, taken, strict=True):
            path = layer @ path if goes else path
        expected += path / 8
    torch.testing.assert_close(rollout(A), expected)
    torch.testing.assert_close(rollout(A).sum(-1), torch.ones(4).double())


def test_rollout_keeps_a_skip_of_one_half_where_rows_do_not_sum_to_one():
    A = torch.tensor([[[0.0, 0.0], [3.0, 1.0]]])  # a row with nobody to look at, and one of sum 4
    torch.testing.assert_close(rollout(A), torch.tensor([[0.5, 0.0], [1.5, 1.0]]))
