"""First weights, Adam and schedules: as torch has them; what each is made for."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.optim import lr_scheduler

from smalltorch.optimise import (
    adam_steps,
    cosine_decay,
    exponential_decay,
    he_std,
    inverse_root,
    linear_decay,
    noam,
    triangle,
    warm_up,
    xavier_std,
)

widths = st.integers(1, 50)
steps = st.integers(1, 60)


def rates(scheduler, count=25, **options):
    """The rates of torch's scheduler, for steps 1, 2, …"""
    optimiser = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0, momentum=0.9)
    schedule, found = scheduler(optimiser, **options), []
    for _ in range(count):
        found.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        schedule.step()
    return found


# --- first weights ----------------------------------------------------------------------------------------------------


def test_first_weights_are_as_large_as_torchs():
    W = torch.empty(300, 500)  # torch has the outputs first
    generator = torch.Generator().manual_seed(0)
    torch.nn.init.xavier_normal_(W, generator=generator)
    assert W.std().item() == pytest.approx(xavier_std(500, 300), rel=0.01)
    torch.nn.init.xavier_uniform_(W, generator=generator)
    assert W.abs().max().item() == pytest.approx(math.sqrt(3) * xavier_std(500, 300), rel=1e-4)
    torch.nn.init.kaiming_normal_(W, nonlinearity="relu", generator=generator)
    assert W.std().item() == pytest.approx(he_std(500), rel=0.01)
    torch.nn.init.kaiming_uniform_(W, nonlinearity="relu", generator=generator)
    assert W.abs().max().item() == pytest.approx(math.sqrt(3) * he_std(500), rel=1e-4)


@given(widths, widths)
def test_xavier_lies_between_forward_and_backward(d_in, d_out):
    variance = xavier_std(d_in, d_out) ** 2
    assert 1 / variance == pytest.approx((d_in + d_out) / 2)
    assert 1 / max(d_in, d_out) * (1 - 1e-12) <= variance <= 1 / min(d_in, d_out) * (1 + 1e-12)
    assert he_std(d_in) ** 2 == pytest.approx(2 * xavier_std(d_in, d_in) ** 2)


# --- Adam -------------------------------------------------------------------------------------------------------------


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


# --- schedules --------------------------------------------------------------------------------------------------------


def test_schedules_are_torchs():
    count = range(1, 26)
    assert [warm_up(t, 10) for t in count] == pytest.approx(
        rates(lr_scheduler.LinearLR, start_factor=0.1, total_iters=9)
    )
    assert [linear_decay(t, 20) for t in count] == pytest.approx(
        rates(lr_scheduler.LinearLR, start_factor=1.0, end_factor=0.0, total_iters=20)
    )
    assert [cosine_decay(t, 24) for t in count] == pytest.approx(rates(lr_scheduler.CosineAnnealingLR, T_max=24))
    assert [exponential_decay(t, 5) for t in count] == pytest.approx(rates(lr_scheduler.ExponentialLR, gamma=0.5**0.2))
    assert [triangle(t, 4) for t in count] == pytest.approx(
        rates(lr_scheduler.CyclicLR, base_lr=0.0, max_lr=1.0, step_size_up=4)
    )


def test_the_inverse_root_is_that_of_transformers():
    from transformers import get_inverse_sqrt_schedule

    theirs = rates(get_inverse_sqrt_schedule, num_warmup_steps=8)[1:]  # counted from 0
    assert [inverse_root(t, 8) for t in range(1, 25)] == pytest.approx(theirs)


@given(steps, widths, steps)
def test_noam_is_highest_where_its_warm_up_ends(step, d, warmup):
    peak = 1 / math.sqrt(d * warmup)
    assert noam(warmup, d, warmup) == pytest.approx(peak)
    assert noam(step, d, warmup) == pytest.approx(peak * inverse_root(step, warmup))
    assert inverse_root(step, warmup) < 1 or step == warmup


@given(steps, steps)
def test_a_schedule_is_a_factor(step, length):
    for schedule in (warm_up, linear_decay, cosine_decay, exponential_decay, inverse_root, triangle):
        assert 0 <= schedule(step, length) <= 1
        with pytest.raises(ValueError, match="step: expected an integer of at least 1"):
            schedule(0, length)
