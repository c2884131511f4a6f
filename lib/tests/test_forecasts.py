"""The long run on forecasts: the series, the two forecasters, and the stored table."""

import pytest
import torch

from smalltorch.engine.sample import generator
from smalltorch.experiments import forecasts
from smalltorch.experiments.forecasts import (
    BATCH,
    EITHER,
    FROM,
    LENGTH,
    NAMES,
    PHI,
    _drawn,
    _Forecaster,
    _linear,
    _loss,
)
from smalltorch.experiments.table import stored
from smalltorch.train import train

MANY = {process: _drawn(process, generator(process), 20_000).double() for process in NAMES}


def test_series_have_the_errors_and_variances_of_their_processes():
    one, either = MANY.values()
    e = one[:, 2:] - PHI[0] * one[:, 1:-1] - PHI[1] * one[:, :-2]
    assert e.square().mean() == pytest.approx(1, abs=0.02) and one[:, -1].var() == pytest.approx(13.3, abs=0.5)
    products = either[:, 1:] * either[:, :-1]
    signs = products.mean(1).sign()
    assert signs.mean().abs() < 0.05  # either one as often
    e = either[:, 1:] - EITHER * signs[:, None] * either[:, :-1]
    assert e.square().mean() == pytest.approx(1, abs=0.05) and either[:, -1].var() == pytest.approx(5.26, abs=0.2)


def test_linear_regression_comes_to_the_floor_of_linear_forecasts():
    one, either = MANY.values()
    assert _linear(one[:10_000], one[10_000:]) == pytest.approx(1, abs=0.02)
    assert _linear(either[:10_000], either[10_000:]) == pytest.approx(1 + EITHER**2, abs=0.04)


@torch.no_grad()
def test_forecasts_look_back_and_all_but_the_first_count():
    torch.manual_seed(0)
    model, x = _Forecaster().double(), MANY["one series"][:3]
    for W in model.parameters():
        W.copy_(torch.randn_like(W))
    said, later = model(x[:, :-1]), torch.cat([x[:, :20], x[:, 20:] + 1], 1)
    assert model(later[:, :-1])[:, :20].allclose(said[:, :20]) and not model(later[:, :-1]).allclose(said)
    wanted = [float(said[k, t - 1] - x[k, t]) ** 2 for k in range(3) for t in range(FROM, LENGTH)]
    assert _loss(model, x) == pytest.approx(sum(wanted) / len(wanted))


def test_regression_sees_what_the_transformer_was_trained_on():
    seen = []

    def batch(rng):
        seen.append(_drawn("either sign", rng, BATCH))
        return seen[-1]

    train(_Forecaster(), _loss, batch, name="x", seeds=2, steps=2)
    for seed in (0, 1):
        rng = generator(f"x, data {seed}")
        assert all(_drawn("either sign", rng, BATCH).equal(part) for part in seen[seed::2])


def test_the_stored_table_is_whole():
    _, lines = stored("forecasts")
    assert tuple(lines[0]) == forecasts.COLUMNS
    found = [(line["process"], int(line["seed"])) for line in lines]
    assert found == [(process, seed) for process in NAMES for seed in range(forecasts.SEEDS)]
    assert all(0.9 < float(line["linear"]) < float(line["variance"]) < 15 for line in lines)
    assert all(1 < float(line["error"]) < 3 for line in lines)


def test_bad_arguments_are_named():
    for process, seeds, steps, name in (
        ("two", 1, 1, "process"),
        ("one series", 0, 1, "seeds"),
        ("either sign", 1, 0, "steps"),
    ):
        with pytest.raises(ValueError, match=name):
            list(forecasts.rows(process, seeds=seeds, steps=steps))
