"""Monte Carlo arithmetic: what rounding moves, and what it does not."""

import pytest
import torch

from smalltorch.engine.rounding import MARGIN, UNIT, largest_on_the_way, noise, refuse_lower_precision

X = torch.tensor([[3.0, 4.0], [0.1, 0.7]], dtype=torch.float64)


def test_a_sum_of_like_terms_is_known_to_the_last_digits():
    change = noise(lambda x: x.square().sum(-1), X)
    assert (change > 0).all() and (change <= 8 * UNIT * X.square().sum(-1)).all()


def test_cancellation_shows():
    """The difference is of the size of 1, the terms of 10¹⁰: six of sixteen digits are left."""
    change = noise(lambda x: (x + 1e10) - 1e10, X)
    assert (change > 1e-7).all() and (change < 1e-4).all()


def test_constants_are_rounded_too():
    change = noise(lambda x: (0 * x + 1e10) + 1 - 1e10, 0 * X)
    assert (change > 1e-7).all()


def test_inputs_are_rounded():
    """They were rounded when they came to be: a difference of two of them is known to that only."""
    assert (noise(lambda x: x[:, 0] - x[:, 1], 1e10 + X) > 1e-7).all()


def test_all_runs_count():
    assert (noise(torch.exp, X) > noise(torch.exp, X, enough=0.0)).any()


def test_gradients_views_and_what_is_written_in_place():
    def side(x):
        with torch.enable_grad():
            z = x.clone().requires_grad_(True)
            (slope,) = torch.autograd.grad(z.pow(3).sum(), z)
        slope[:, 0] = slope[:, 1]
        return slope.mT[0]

    change = noise(side, X)
    assert (change > 0).all() and (change < 1e-13).all()
    rows = torch.func.vmap(torch.func.jacrev(lambda s: s.softmax(-1)))
    assert (MARGIN * noise(rows, X) < 1e-12).all()


def test_whole_numbers_stay():
    index = torch.tensor([0, 1])
    assert noise(lambda p: p[0][p[1]].sum(-1), (X, index)).shape == (2,)


def test_what_single_precision_holds_exactly_is_not_moved():
    """Else a difference of 10⁻⁶ would pass as rounding wherever torch.eye(2).double() occurs."""
    assert (noise(lambda x: x @ torch.eye(2).double(), X) <= 8 * UNIT * X.abs().sum()).all()


def test_the_largest_number_on_the_way():
    assert largest_on_the_way(lambda x: (x + 1e6) - 1e6, X) == pytest.approx(1e6, rel=1e-5)
    assert largest_on_the_way(lambda x: x.masked_fill(x > 1, -torch.inf).exp().sum(-1), X) == 4


@pytest.mark.parametrize("bad", [lambda x: x.float(), lambda x: x * torch.tensor(0.1), lambda x: x.half().double()])
def test_single_precision_on_the_way_is_refused(bad):
    with pytest.raises(ValueError, match=r"lhs must be computed in float64, got float(32|16) from"):
        refuse_lower_precision(bad, X, "lhs")
    refuse_lower_precision(lambda x: x @ torch.eye(2).double() + torch.ones(2), X, "lhs")
