"""Contrasts stated before the data: nothing else is measured, nothing twice, nothing left out."""

import math

import pytest

from smalltorch.engine.contrasts import Contrasts
from smalltorch.engine.verify import VerificationError

VALUES = [2.0, 2.1, 1.9, 2.0, 2.0]


def stated():
    return Contrasts("texts", {"growth": {"above": 1.5}, "share": {"above": 1, "below": 3}})


def test_the_table():
    contrasts = stated()
    check = contrasts.measured("growth", VALUES)
    assert check.text.endswith("over 5 texts; demanded: above 1.5") and check.evidence.kind == "measured"
    contrasts.measured("share", VALUES)
    assert contrasts.table().rows == [
        ["growth", "2.00", "1.91 to 2.09", "above 1.5"],
        ["share", "2.00", "1.91 to 2.09", "above 1 and below 3"],
    ]


def test_the_thresholds_are_those_that_were_stated():
    with pytest.raises(VerificationError, match="the interval is not above 1.5"):
        stated().measured("growth", [x - 1 for x in VALUES])


def test_what_was_not_stated_is_not_measured():
    with pytest.raises(ValueError, match="'length' was not stated; there are: growth, share"):
        stated().measured("length", VALUES)


def test_nothing_is_measured_twice():
    contrasts = stated()
    contrasts.measured("growth", VALUES)
    with pytest.raises(ValueError, match="'growth' has been measured"):
        contrasts.measured("growth", VALUES)


def test_what_failed_is_not_tried_again():
    contrasts = stated()
    with pytest.raises(VerificationError):
        contrasts.measured("growth", [x - 1 for x in VALUES])
    with pytest.raises(ValueError, match="'growth' has been measured"):
        contrasts.measured("growth", VALUES)


def test_replicates_are_stated():
    with pytest.raises(ValueError, match="over must be one of"):
        Contrasts("heads", {"growth": {"above": 1.5}})


def test_a_contrast_of_medians_and_scales():
    contrasts = Contrasts("seeds", {"gap": {"above": -0.05, "below": 0.05, "scale": 1, "of": "median"}})
    assert "median 0.000" in contrasts.measured("gap", [1e-4, 2e-4, 3e-4, 1e-4, 4e-4, 5e-4]).text
    assert contrasts.table().rows[0][1].startswith("median 0.000")


def test_none_is_left_out():
    contrasts = stated()
    contrasts.measured("growth", VALUES)
    with pytest.raises(AssertionError, match="stated, but not measured: share"):
        contrasts.table()


@pytest.mark.parametrize("bounds", [{}, {"over": 1.0}, {"above": math.inf}, {"below": math.nan}], ids=str)
def test_a_contrast_needs_a_threshold(bounds):
    with pytest.raises(ValueError, match="'growth' must state above, below or both"):
        Contrasts("texts", {"growth": bounds})
    with pytest.raises(ValueError, match="at least one contrast"):
        Contrasts("texts", {})


def test_thresholds_stay_as_they_were_stated():
    bounds = {"growth": {"above": 3.0}}
    contrasts = Contrasts("seeds", bounds)
    bounds["growth"]["above"] = contrasts.thresholds["growth"]["above"] = 1.0
    contrasts.found["growth"] = None
    with pytest.raises(VerificationError, match="not above 3"):
        contrasts.measured("growth", VALUES)
    assert contrasts.missing == ["growth"] and contrasts.thresholds == {"growth": {"above": 3.0}}


@pytest.mark.parametrize("bound", [sum(VALUES) / 7, 2.01 - 0.2, 1.23456, -0.00312345, 1e-3 / 3])
@pytest.mark.parametrize("word", ["above", "below"])
def test_thresholds_are_round_numbers(bound, word):
    with pytest.raises(ValueError, match="must state round numbers, of 4 digits at most"):
        Contrasts("seeds", {"growth": {word: bound}})


@pytest.mark.parametrize("thresholds", [None, 3, [("growth", 1)], {"growth": 1.5}, {"growth": None}])
def test_thresholds_are_a_table(thresholds, unenforced):
    with pytest.raises(ValueError, match="thresholds must map each contrast to its thresholds"):
        Contrasts("seeds", thresholds)


def test_what_did_not_come_out_is_owned_up_to():
    contrasts = Contrasts("seeds", {"growth": {"above": 3.0}, "share": {"above": 1.5}})
    check = contrasts.missed("growth", VALUES)
    assert check.text == "2.00, 95 % interval 1.91 to 2.09, over 5 seeds; demanded, and not seen: above 3"
    assert check.evidence.shows == ("growth: not above 3",) and contrasts.missing == ["share"]
    with pytest.raises(VerificationError, match="the interval is above 1.5, as was stated"):
        contrasts.missed("share", VALUES)
    for again in (contrasts.missed, contrasts.measured):
        with pytest.raises(ValueError, match="'growth' has been measured"):
            again("growth", VALUES)


def test_the_table_says_what_was_not_seen():
    contrasts = Contrasts("seeds", {"growth": {"above": 3.0}})
    contrasts.missed("growth", VALUES)
    assert contrasts.table().rows == [["growth", "2.00", "1.91 to 2.09", "not seen: above 3"]]
