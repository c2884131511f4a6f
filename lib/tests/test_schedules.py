"""Schedules of the learning rate: as torch and transformers have them."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.optim import lr_scheduler

from smalltorch.schedules import (
    cosine_decay,
    exponential_decay,
    inverse_root,
    linear_decay,
    noam,
    triangle,
    warm_up,
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
