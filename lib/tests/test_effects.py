"""Effects: thresholds that could have failed, and values that are replicates."""

import math

import pytest
import torch

from smalltorch.engine.check import VerificationError
from smalltorch.engine.effects import measured
from smalltorch.engine.statistics import group_means

VALUES = [2.0, 2.1, 1.9, 2.0, 2.0]
CLUSTERS = [0.1, 0.2, 0.15, 0.12, 2.2, 2.3, 2.1, 0.11]  # five networks of eight learn


def test_measured():
    check = measured("growth", VALUES, above=1.5)
    assert check.text == "2.00, 95 % interval 1.91 to 2.09, over 5 seeds; demanded: above 1.5"
    assert check.evidence.kind == "measured" and check.value == pytest.approx(2)
    between = measured("growth", [2.0, 2.1, 1.9, 2.2, 1.8], above=1, below=3, over="sentences")
    assert between.text.endswith("over 5 sentences; demanded: above 1 and below 3")


@pytest.mark.parametrize("bounds", [{"above": 2.0}, {"above": 1.92}, {"below": 2.08}, {"above": 3}, {"below": 1}])
def test_too_near_or_beyond(bounds):
    with pytest.raises(VerificationError, match="the interval is not"):
        measured("growth", VALUES, **bounds)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([1.0, 2.0], "at least 5 numbers"),
        ([0.1, 0.12, 0.11, 0.1], "at least 5 numbers"),
        ([], "at least 5 numbers"),
        (torch.ones(5, 2), "at least 5 numbers"),
        ([0.1] * 8, "must differ"),
        ([0.1, 0.1, 0.1, 0.1 + 1e-15, 0.1], "must differ"),
        ([0.1 + 1e-13 * k for k in range(5)], "must differ"),
        ([0.0] * 5, "must differ"),
        ([0.1, 0.1, 0.1, 0.1, 0.2], "must scatter"),
        ([1.0, 1.2, 1.1, 1.0, 1.2, 1.1], "got each of them 2 times"),
        ([1.0, 1.0, 1.2, 1.2, 1.1, 1.1], "got each of them 2 times"),
        ([2.0 + 1e-7 * k * k for k in range(5)], "copies of one value are no replicates"),
        ([2.0, 2.0, 2.0 + 1e-6, 2.0 - 1e-6, 2.0], "copies of one value are no replicates"),
        ([-3.0 - 4e-7 * k for k in range(6)], "copies of one value are no replicates"),
        ([1.0, 1.2, 1.1, 1.0 + 1e-7, 1.2 - 1e-7, 1.1 + 1e-7], "got each of them 2 times"),
        ([1.0, 1.2, 1.2 - 1e-7, 1.0 + 1e-7, 1.1, 1.1 + 1e-7], "got each of them 2 times"),
        ([0.1, 0.1, 0.1 + 1e-8, 0.2, 0.2 + 1e-8], "must scatter"),
        ([1.0, math.nan, 1, 2, 3], "must be finite"),
        (torch.tensor([1j, 2, 3, 4, 5]), "must be real"),
    ],
    ids=str,
)
def test_values_are_replicates(values, reason):
    with pytest.raises(ValueError, match=reason):
        measured("effect", values, above=0.01)


def test_values_that_happen_to_agree_may_pass():
    measured("a share of 270 heads", [11 / 270, 13 / 270, 12 / 270, 11 / 270, 12 / 270, 12 / 270], below=0.1)


@pytest.mark.parametrize("parts", ["heads", "layers", "tokens", "features", "layers and sentences", "", "Seeds"])
def test_parts_of_one_model_are_no_replicates(parts):
    with pytest.raises(ValueError, match="over must say what was drawn independently"):
        measured("effect", VALUES, above=1, over=parts)
    by_text = torch.tensor([[1.0, 3.0], [1.2, 3.1], [0.9, 2.8], [1.1, 3.2], [1.0, 2.9]])  # text, head
    measured("effect", group_means(by_text, range(5)), above=1, over="texts")


@pytest.mark.parametrize(
    ("bounds", "reason"),
    [
        ({}, "nothing that could fail"),
        ({"above": -math.inf}, "nothing that could fail"),
        ({"above": -1e9}, "within reach"),
        ({"above": -9e9, "scale": 1}, "within reach"),
        ({"below": 1000}, "within reach"),
        ({"below": 20.1}, "within reach"),
        ({"above": 0, "below": 1e6}, "within reach"),
        ({"above": math.inf, "below": 3}, "within reach"),
        ({"above": 0, "below": -math.inf}, "within reach"),
        ({"above": math.nan}, "within reach"),
        ({"above": 3, "below": 1}, "less than below"),
        ({"above": 0, "scale": math.inf}, "scale must be the size"),
        ({"above": -9e9, "scale": 9e9}, "with a larger one nothing could fail"),
        ({"above": -150, "scale": 200}, "with a larger one nothing could fail"),
        ({"above": -60, "below": 3, "scale": 50}, "within reach"),
        ({"above": 0, "scale": -1}, "scale must be the size"),
        ({"above": 0, "of": "mode"}, "of must be mean or median"),
    ],
    ids=str,
)
def test_a_threshold_must_be_able_to_fail(bounds, reason):
    with pytest.raises(ValueError, match=reason):
        measured("effect", [1.0, 2.0, 1.5, 1.2, 1.4], **bounds)


def test_a_threshold_may_be_ten_times_the_largest_value():
    assert "demanded: below 20" in measured("effect", [1.0, 2.0, 1.5, 1.2, 1.4], below=20).text


def test_no_effect_to_speak_of():
    """The nearer to nothing, the better the claim holds; what counts as something is the author's to say."""
    tiny = [1e-4, -2e-4, 3e-4, 1e-4, -1e-4]
    check = measured("cosine", tiny, above=-0.05, below=0.05, scale=1)
    assert check.text.endswith("demanded: above -0.05 and below 0.05, on a scale of 1")
    with pytest.raises(ValueError, match="scale=… says for which size of effect"):
        measured("cosine", tiny, above=-0.05, below=0.05)
    with pytest.raises(VerificationError, match="the interval is not above -0.05 and below 0.05"):
        measured("cosine", [0.1 * x for x in range(-2, 5)], above=-0.05, below=0.05, scale=1)


def test_values_that_are_small_beside_others_are_no_copies():
    measured("loss", [1e-9, 3e-9, 2e-9, 4e-9, 2.0, 2.0, 2.0, 2.0], below=2.5, of="median", over="networks")
    digits = [2.9999993, 2.9999962, 3.0000015, 2.9999990, 3.0000021, 3.0000018]  # nearer to each other than 1e-6
    measured("exponent", digits, above=2.999, below=3.001)
    measured("length", [200.0, 210.0, 190.0, 205.0, 195.0], below=1500, scale=1800)


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([0.0072 + 0.0077 * k for k in (-1, -0.5, 0, 0.5, 1)], "0.0072, 95 % interval -0.0004 to 0.0148,"),
        ([-0.0563 + 0.33 * k for k in (-1, -0.5, 0, 0.5, 1)], "-0.06, 95 % interval -0.38 to 0.27,"),
        ([0.0003 + 0.4 * k for k in (-1, -0.5, 0, 0.5, 1)], "0, 95 % interval -0.39 to 0.39,"),
        ([0.996 + 0.002 * k for k in (-1, -0.5, 0, 0.5, 1)], "0.996, 95 % interval 0.994 to 0.998,"),
        ([2e-5 + 3e-6 * k for k in (-1, -0.5, 0, 0.5, 1)], "2.00e-5, 95 % interval 1.71e-5 to 2.29e-5,"),
        ([2e-7 + 3e-5 * k for k in (-1, -0.5, 0, 0.5, 1)], "2e-7, 95 % interval -2.92e-5 to 2.96e-5,"),
        ([345678.0 + 4000 * k for k in (-1, -0.5, 0, 0.5, 1)], "346000, 95 % interval 342000 to 350000,"),
    ],
)
def test_digits_below_a_hundredth_of_the_interval_are_not_shown(values, shown):
    assert measured("effect", values, below=1e6 if values[0] > 1 else 1, scale=1).text.startswith(shown)


def test_the_median_of_two_clusters():
    check = measured("loss", CLUSTERS, below=2.5, of="median", over="networks")
    assert check.text.startswith("median 0.17, 95 % interval 0.10 to 2.30, over 8 networks")
    with pytest.raises(VerificationError, match="the interval is not below 0.5"):
        measured("loss", CLUSTERS, below=0.5, of="median", over="networks")
    with pytest.raises(ValueError, match="at least 6 numbers"):
        measured("loss", VALUES, above=1, of="median")


def test_the_sign_of_pairs():
    """All eight differences are positive: the coin gives that once in 128 times, either way."""
    assert "above 0" in measured("a less b", [5.0, 0.1, 0.1, 0.2, 7.0, 0.1, 0.3, 0.1], above=0, of="median").text
    with pytest.raises(VerificationError):
        measured("a less b", [5.0, 0.1, 0.1, 0.2, 7.0, 0.1, -0.3, -0.1], above=0, of="median")
