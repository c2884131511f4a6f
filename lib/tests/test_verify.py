"""Numeric checks: those that must fail and do, with the input named; how tight; what the attacks find."""

import math

import pytest
import torch

from smalltorch.engine import ledger
from smalltorch.engine.sample import normal
from smalltorch.engine.verify import Extremes, VerificationError, at_most, computed, equal, fails, measured


def free(z):
    return z


def l1(x):
    return x.abs().sum(-1)


def l2(x):
    return x.norm(dim=-1)


def zero(x):
    return torch.zeros(len(x), dtype=x.dtype)


def one(x):
    return torch.ones(len(x), dtype=x.dtype)


def vectors(name, lhs, rhs, **options):
    return at_most(name, lhs, rhs, domain=free, **{"shapes": [(3,), (8,)]} | options)


SIGNS = Extremes(lambda codes: 2.0 * codes.double() - 1, length=8, choices=2)


# -- at_most -----------------------------------------------------------------------------------------------------------


def test_a_true_statement():
    check = vectors("‖x‖₂ ≤ ‖x‖₁", l2, l1)
    assert "holds on" in check.text and "attacks included" in check.text and check.evidence.kind == "verified"
    assert 0.99 < check.value <= 1 + 1e-12 and check.at.ndim == 1


def test_the_number_of_inputs_is_counted():
    assert "holds on 464 inputs" in vectors("‖x‖₂ ≤ ‖x‖₁", l2, l1).text  # 2 · (7 · 32 + 8)


@pytest.mark.parametrize("factor", [2.0, 1 + 1e-9])
def test_a_false_statement_names_its_input(factor):
    with pytest.raises(VerificationError, match=r"broken by a factor .* at .*\n  left .*, right .*\n  input tensor"):
        vectors("c ‖x‖₂ ≤ ‖x‖₁", lambda x: factor * l2(x), l1, shapes=[(1,)])


def test_a_small_violation_after_equality_is_noticed():
    """The first inputs attain 1; later ones exceed it by less than a tie, but by more than the allowance."""

    def lhs(x):
        return 1 + 1e-9 * (l2(x) > 20).double()

    with pytest.raises(VerificationError):
        vectors("1 ≤ 1", lhs, one)


def test_a_violation_after_inputs_of_ratio_minus_infinity():
    def rhs(x):
        return (l2(x) > 5).double()

    def lhs(x):
        return torch.where(l2(x) > 5, 2.0, -1.0).double()

    with pytest.raises(VerificationError):
        vectors("2 ≤ 1 far out", lhs, rhs)


def test_the_allowance_is_for_rounding():
    with pytest.raises(VerificationError):
        vectors("1 ≤ 1", lambda x: one(x) * (1 + 1e-11), one)
    vectors("1 ≤ 1", lambda x: one(x) * (1 + 1e-11), one, allowance=1e-10)
    for allowance in (-1.0, 0.5, math.nan):
        with pytest.raises(ValueError, match="allowance must lie"):
            vectors("1 ≤ 1", one, one, allowance=allowance)


def test_a_negative_right_side_is_refused():
    with pytest.raises(ValueError, match="rhs must not be negative"):
        vectors("1 ≤ −1", one, lambda x: -one(x))
    with pytest.raises(ValueError, match="rhs must not be negative"):
        vectors("−2 ≤ −1", lambda x: -2 * one(x), lambda x: -one(x))


def test_a_right_side_of_zero():
    with pytest.raises(VerificationError):
        vectors("1 ≤ 0", one, zero)
    assert vectors("−1 ≤ 0", lambda x: -one(x), zero).value == -math.inf


def test_zero_over_zero_says_nothing_about_tightness():
    """‖x‖ ≤ 1000 ‖x‖ is loose, though x = 0 gives equality."""
    check = vectors("‖x‖ ≤ 1000 ‖x‖", l2, lambda x: 1000 * l2(x), shapes=[(1,)])
    assert check.value == pytest.approx(1e-3) and "tightness 0.00100" in check.text


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_nan_and_infinity(bad):
    def spoilt(x):
        return torch.where(l2(x) > 20, bad, 1.0).double()

    for sides in ((spoilt, one), (one, spoilt)):
        with pytest.raises(ValueError, match="must be finite"):
            vectors("spoilt", *sides)


def test_nan_met_by_the_attack_only():
    """All random inputs are below 0.9; the attack climbs beyond."""

    def domain(z):
        return 0.5 + 0.4 * torch.tanh(z) if not z.requires_grad else 0.5 + 0.5 * torch.sigmoid(z)

    def lhs(x):
        return torch.where(x[:, 0] > 0.95, torch.nan, x[:, 0])

    with pytest.raises(ValueError, match="must be finite"):
        at_most("spoilt far out", lhs, one, domain=domain, shapes=[(1,)])


def test_shapes_of_the_sides():
    for sides in ((lambda x: x, l2), (l2, lambda x: l2(x).mean()), (lambda x: l2(x).mean()[None],) * 2):
        with pytest.raises(ValueError, match="one number for each of 32 inputs"):
            vectors("shapes", *sides)


@pytest.mark.parametrize("shapes", [[], [(0,)], [(3,), (2, 0)]], ids=str)
def test_no_inputs(shapes):
    for check in (at_most, equal, fails):
        with pytest.raises(ValueError, match="shapes must name"):
            check("nothing", l2, l1, domain=free, shapes=shapes)


# -- the attacks -------------------------------------------------------------------------------------------------------


def test_the_gradient_attack_climbs():
    """A bump that no random input is near: the attack finds its top, from the slope."""

    def bump(x):
        return 1 / (1 + ((x - 7) ** 2).sum(-1))

    check = vectors("a bump", bump, lambda x: 1.0001 * one(x), shapes=[(3,)])
    assert check.value > 0.9 and "gradient attack" in check.text
    with pytest.raises(VerificationError, match="gradient attack"):
        vectors("half a bump", bump, lambda x: 0.5 * one(x), shapes=[(3,)])


def test_the_gradient_attack_climbs_out_of_the_negative():
    check = vectors("a hill below 0", lambda x: 1 - ((x - 7) ** 2).sum(-1), lambda x: 1.0001 * one(x), shapes=[(3,)])
    assert check.value > 0.9


def test_an_attack_that_cannot_move_says_so():
    def steps(x):
        return (l2(x) > 100).double()

    assert "not attacked" in vectors("steps", steps, lambda x: 2 * one(x)).text
    detached = vectors("detached", lambda x: l2(x.detach()), lambda x: l1(x.detach()))
    assert "not attacked" in detached.text
    searched = vectors("steps", steps, lambda x: 2 * one(x), shapes=[(8,)], extremes=lambda _: SIGNS)
    assert "structured search included" in searched.text


def test_structured_search_beats_random():
    """The corner of a cube in 40 dimensions that agrees with a given one everywhere."""
    target = normal("target", 40).sign()

    def agreement(x):
        return 0.5 + (x * target).sum(-1) / 80

    corners = Extremes(lambda codes: 2.0 * codes.double() - 1, length=40, choices=2)
    options = {"domain": lambda z: torch.tanh(z).sign(), "shapes": [(40,)]}
    random_only = at_most("agreement ≤ 1", agreement, one, **options)
    found = at_most("agreement ≤ 1", agreement, one, **options, extremes=lambda _: corners)
    assert random_only.value < 0.9 and found.value == 1 and "structured search, 40" in found.text
    assert torch.equal(found.at, target)


def test_structured_search_is_exhaustive_where_it_can_be():
    """A needle: one code in 256 is good, and its neighbours do not tell."""
    needle = torch.tensor([1, 0, 1, 1, 0, 0, 1, 0])

    def lhs(x):
        return ((x > 0).long() == needle).all(-1).double()

    with pytest.raises(VerificationError, match="structured search"):
        vectors("no needle", lhs, lambda x: 0.5 * one(x), shapes=[(8,)], extremes=lambda _: SIGNS)


def test_structured_search_ends_on_negative_values():
    check = vectors("−2 ≤ 1", lambda x: -2 * one(x), one, shapes=[(8,)], extremes=lambda _: SIGNS)
    assert check.value == -2


def test_inputs_are_held_to_the_hypothesis():
    """Corners are not probability vectors: a violation there is none of the statement."""

    def peak(x):
        return x.amax(-1)

    def distributions(x):
        return (x >= 0).all(-1) & ((x.sum(-1) - 1).abs() < 1e-9)

    options = {"domain": lambda z: z.softmax(-1), "shapes": [(8,)], "hypothesis": distributions}
    assert at_most("p ≤ 1", peak, one, **options).value <= 1 + 1e-12
    for check in (at_most, fails):
        with pytest.raises(ValueError, match="hypothesis: violated by an input of the structured search"):
            check("p ≤ 1", peak, one, **options, extremes=lambda _: SIGNS)
    with pytest.raises(ValueError, match="hypothesis: violated by an input of the normal input"):
        at_most("p ≤ 1", peak, one, **options | {"domain": free})


def test_the_same_result_every_time():
    first, second = (vectors("‖x‖₂ ≤ ‖x‖₁", l2, l1) for _ in range(2))
    assert first.text == second.text and first.value == second.value and torch.equal(first.at, second.at)


# -- fails -------------------------------------------------------------------------------------------------------------


def test_fails_demands_a_violation():
    check = fails("‖x‖₁ ≤ ‖x‖₂", l1, l2, domain=free, shapes=[(4,)])
    assert check.evidence.kind == "counterexample" and check.value == pytest.approx(2, abs=1e-3)
    assert float(l1(check.at)) > float(l2(check.at))
    with pytest.raises(VerificationError, match="no counterexample among 232 inputs"):
        fails("‖x‖₂ ≤ ‖x‖₁", l2, l1, domain=free, shapes=[(4,)])


def test_rounding_is_no_violation():
    with pytest.raises(VerificationError, match="no counterexample"):
        fails("1 ≤ 1", lambda x: one(x) * (1 + 1e-6), one, domain=free, shapes=[(2,)])
    for by in (1.0, 0.5):
        with pytest.raises(ValueError, match="by must be greater than 1"):
            fails("‖x‖₂ ≤ ‖x‖₁", l2, l1, domain=free, shapes=[(4,)], by=by)


# -- equal -------------------------------------------------------------------------------------------------------------


def test_equal():
    check = equal("‖x‖² = x·x", lambda x: l2(x) ** 2, lambda x: (x * x).sum(-1), domain=free, shapes=[(3,)])
    assert check.text == "holds on 224 inputs; largest error below a tenth of the rounding allowance 1e-12"
    equal("a matrix an input", lambda x: x.mT.mT, free, domain=free, shapes=[(2, 3)])


@pytest.mark.parametrize("error", [1e-3, 1e-10])
def test_unequal(error):
    with pytest.raises(VerificationError, match=r"the sides differ by .*, at .*\n  input tensor"):
        equal("x = x + ε", lambda x: x + error, free, domain=free, shapes=[(3,)])
    with pytest.raises(VerificationError):
        last = error * torch.eye(3, dtype=torch.float64)[2]
        equal("only in the last entry", lambda x: x + last, free, domain=free, shapes=[(3,)])


def test_equal_refuses_what_it_cannot_compare():
    for lhs, rhs in ((l2, free), (lambda x: l2(x).mean()[None],) * 2, (lambda x: x[:, :0],) * 2):
        with pytest.raises(ValueError, match="one shape"):
            equal("shapes", lhs, rhs, domain=free, shapes=[(3,)])
    with pytest.raises(ValueError, match="must be finite"):
        equal("NaN", lambda x: x / 0, free, domain=free, shapes=[(3,)])
    with pytest.raises(ValueError, match="allowance"):
        equal("anything", zero, one, domain=free, shapes=[(3,)], allowance=2.0)


# -- measured and computed ---------------------------------------------------------------------------------------------


def test_measured():
    check = measured("growth", [2.0, 2.1, 1.9, 2.0], above=1.5)
    assert check.text == "2.00 ± 0.082 over 4 seeds" and check.evidence.kind == "measured"
    measured("growth", [2.0, 2.1, 1.9], below=3, over="sentences")


@pytest.mark.parametrize("bounds", [{"above": 2.0}, {"above": 1.95}, {"below": 2.05}, {"above": 3}, {"below": 1}])
def test_measured_too_near_or_beyond(bounds):
    with pytest.raises(VerificationError, match="by two standard errors"):
        measured("growth", [2.0, 2.1, 1.9, 2.0], **bounds)


def test_measured_needs_values_and_a_bound():
    for values in ([2.0], [], torch.ones(2, 2)):
        with pytest.raises(ValueError, match="at least two numbers"):
            measured("growth", values, above=0)
    with pytest.raises(ValueError, match="must be finite"):
        measured("growth", [1.0, math.nan], above=0)
    with pytest.raises(ValueError, match="nothing that could fail"):
        measured("growth", [1.0, 2.0])


def test_computed():
    check = computed("facts", [("√4", 4**0.5, 2), ("e⁰", math.exp(0), 1)])
    assert "√4 = 2\n" in check.text and "e⁰ = 1" in check.text
    assert check.evidence.text == "computed, facts: 2 of 2 facts"


@pytest.mark.parametrize(
    "row",
    [
        ("off", 2.1, 2),
        ("tiny, and off", 1e-12, 2e-12),
        ("not zero", 1e-6, 0),
        ("NaN", math.nan, 2),
        ("infinite", math.inf, 2),
    ],
    ids=str,
)
def test_computed_names_the_first_wrong_row(row):
    with pytest.raises(VerificationError, match=row[0]):
        computed("facts", [("right", 1, 1), row])


def test_computed_needs_facts():
    with pytest.raises(ValueError, match="at least one fact"):
        computed("facts", [])
    for expected in (math.inf, math.nan):
        with pytest.raises(ValueError, match="must be finite"):
            computed("facts", [("boundless", 3, expected)])


def test_failed_checks_leave_no_evidence(monkeypatch):
    monkeypatch.setattr(ledger, "_executed", [])
    for failing in (
        lambda: vectors("no", l1, l2),
        lambda: fails("no", l2, l1, domain=free, shapes=[(3,)]),
        lambda: equal("no", l1, l2, domain=free, shapes=[(3,)]),
        lambda: measured("no", [1, 2], above=9),
        lambda: computed("no", [("no", 1, 2)]),
    ):
        with pytest.raises(VerificationError):
            failing()
    assert ledger._executed == []
    vectors("yes", l2, l1)
    assert [e.kind for e in ledger._executed] == ["verified"]
