"""Statistics of a few values, against printed tables and by hand."""

import math

import pytest
import torch

from smalltorch.engine.statistics import group_means, mean_interval, median_interval, student_quantile


@pytest.mark.parametrize(
    ("freedom", "level", "quantile"),
    [
        (1, 0.95, 12.706),
        (2, 0.95, 4.303),
        (3, 0.95, 3.182),
        (4, 0.95, 2.776),
        (5, 0.95, 2.571),
        (9, 0.95, 2.262),
        (9, 0.99, 3.250),
        (30, 0.95, 2.042),
        (120, 0.95, 1.980),
        (1000, 0.95, 1.962),
    ],
)
def test_quantiles_are_those_of_the_tables(freedom, level, quantile):
    assert student_quantile(freedom, level) == pytest.approx(quantile, abs=6e-4)


@pytest.mark.parametrize(("freedom", "level"), [(0, 0.95), (4, 0.0), (4, 1.0), (4, math.nan)])
def test_quantiles_of_nothing(freedom, level):
    with pytest.raises(ValueError, match="freedom must be"):
        student_quantile(freedom, level)


def test_the_interval_by_hand():
    low, high = mean_interval(torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0], dtype=torch.float64))
    assert (low, high) == pytest.approx((3 - 2.7764 * (2.5 / 5) ** 0.5, 3 + 2.7764 * (2.5 / 5) ** 0.5), abs=1e-3)


def test_the_interval_covers_as_often_as_it_says():
    draws = torch.randn(2000, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    covered = sum(low <= 0 <= high for low, high in map(mean_interval, draws))
    assert 0.935 < covered / 2000 < 0.965


@pytest.mark.parametrize(("n", "k"), [(6, 1), (8, 1), (9, 2), (12, 3), (20, 6), (100, 40)])
def test_the_median_lies_between_the_kth_values(n, k):
    """k as in printed tables of the sign test."""
    values = torch.arange(1.0, n + 1)[torch.arange(n).roll(3)]
    assert median_interval(values) == (k, n + 1 - k)


def test_few_values_bound_no_median():
    with pytest.raises(ValueError, match="values must be more for an interval of the median"):
        median_interval(torch.arange(5.0))


def test_the_median_is_covered_as_often_as_it_says():
    """Whatever the distribution; here two clusters."""
    draws = torch.randn(2000, 12, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    draws = draws + 10 * draws.sign()
    covered = sum(low <= 0 <= high for low, high in map(median_interval, draws))
    assert 0.95 <= covered / 2000 < 0.98


def test_groups_are_the_replicates():
    values = torch.tensor([1.0, 3.0, 10.0, 20.0, 5.0])
    assert group_means(values, ["a", "a", "b", "b", "a"]).tolist() == [3.0, 15.0]
    with pytest.raises(ValueError, match="one group for each of 5 values, got 2"):
        group_means(values, ["a", "b"])
