"""Numeric checks: those that must fail and do, with the input named; how tight; what the attacks find."""

import math
import re

import pytest
import torch

from smalltorch.engine import ledger, search
from smalltorch.engine.sample import normal
from smalltorch.engine.verify import (
    Checks,
    Extremes,
    VerificationError,
    at_most,
    computed,
    equal,
    fact,
    fails,
    measured,
)


def free(z):
    return z


def l1(x):
    return x.abs().sum(-1)


def l2(x):
    return x.norm(dim=-1)


def zero(x):
    return 0 * x.reshape(len(x), -1)[:, 0]


def one(x):
    return 1 + zero(x)


def vectors(name, lhs, rhs, **options):
    return at_most(name, lhs, rhs, domain=free, **{"shapes": [(3,), (8,)]} | options)


SIGNS = Extremes(lambda codes: 2.0 * codes.double() - 1, length=8, choices=2)


# -- at_most -----------------------------------------------------------------------------------------------------------


def test_a_true_statement():
    check = vectors("‖x‖₂ ≤ ‖x‖₁", l2, l1)
    assert (
        check.text.startswith("holds, tightness")
        and "attacks included" in check.text
        and check.evidence.kind == "verified"
    )
    assert 0.99 < check.value <= 1 + 1e-12 and check.at.ndim == 1


def test_the_number_of_inputs_is_counted():
    assert "; 464 inputs" in vectors("‖x‖₂ ≤ ‖x‖₁", l2, l1).text  # 2 · (7 · 32 + 8)


@pytest.mark.parametrize("factor", [2.0, 1 + 1e-9])
def test_a_false_statement_names_its_input(factor):
    with pytest.raises(VerificationError, match=r"broken at .*\n  left .*, right .*\n  input tensor"):
        vectors("c ‖x‖₂ ≤ ‖x‖₁", lambda x: factor * l2(x), l1, shapes=[(1,)])


def test_a_small_violation_after_equality_is_noticed():
    """The first inputs attain 1; later ones exceed it by less than a tie, but by more than the allowance."""

    def lhs(x):
        return 1 + 1e-9 * (l2(x) > 20).double()

    with pytest.raises(VerificationError) as broken:
        vectors("1 ≤ 1", lhs, one)
    assert "allowance" not in str(broken.value)


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
    with pytest.raises(VerificationError, match="by more than rounding explains and less than the allowance of 1e-10"):
        vectors("1 ≤ 1", lambda x: one(x) * (1 + 1e-11), one, allowance=1e-10)
    vectors("1 ≤ 1", lambda x: one(x) * (1 + 1e-11), one, allowance=1e-10, because="slack on purpose")
    for allowance in (-1.0, 0.5, math.nan):
        with pytest.raises(ValueError, match="allowance must lie"):
            vectors("1 ≤ 1", one, one, allowance=allowance)


def test_the_sides_may_have_any_sign():
    with pytest.raises(VerificationError, match="broken"):
        vectors("1 ≤ −1", one, lambda x: -one(x))
    check = vectors("−2 ≤ −1", lambda x: -2 * one(x), lambda x: -one(x))
    assert check.value == 1 and "least gap 1.00" in check.text
    low = vectors("x₁ − |x| ≤ x₁", lambda x: x[:, 0] - l2(x), lambda x: x[:, 0])
    assert "least gap" in low.text and 0 <= low.value < 1e-3


@pytest.mark.parametrize("nothing", [0.0, -0.0])
def test_a_right_side_of_zero(nothing):
    with pytest.raises(VerificationError, match="left 1.00, right 0"):
        vectors("1 ≤ 0", one, lambda x: nothing * one(x))
    assert vectors("−1 ≤ 0", lambda x: -one(x), lambda x: nothing * one(x)).value == 1
    sometimes = vectors("−1 ≤ 0 or 2", lambda x: -one(x), lambda x: torch.where(x[:, 0] > 0, 2 * one(x), nothing))
    assert sometimes.value == -0.5 and "tightness -0.500" in sometimes.text


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


def test_a_chaotic_climb_prints_no_digits():
    """Where it ends hangs on the last digit of where it began."""

    def rough(x):
        return -0.04 * (1 + 1e-9 - (1e13 * x[:, 0]).sin().abs()).log()

    climbed = at_most("a rough hill", rough, one, domain=free, shapes=[(1,)])
    assert "gradient attack" in climbed.text and not re.search(r"tightness 0\.\d\d\d", climbed.text)
    smooth = at_most("smooth ≤ 1", lambda x: 0.9 * x[:, 0].sin().abs(), one, domain=free, shapes=[(1,)])
    assert "tightness 0.900" in smooth.text


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


def test_rounding_does_not_choose_among_counterexamples():
    """Where all inputs break a statement by the same ratio, up to rounding, the first one is shown."""

    def rounded(noise):
        return lambda x: 2 * l2(x) * (1 + noise * 1e-13 * torch.sin(1e3 * x[:, 0]))

    shown = {fails("2 ‖x‖₂ ≤ ‖x‖₂", rounded(noise), l2, domain=free, shapes=[(4,)]).text for noise in (-1, 0, 1)}
    assert len(shown) == 1


def test_a_violation_must_be_large_enough():
    with pytest.raises(VerificationError, match="no counterexample"):
        fails("1 ≤ 1", lambda x: one(x) * (1 + 1e-6), one, domain=free, shapes=[(2,)])
    for by in (1.0, 0.5, 1 + 1e-15, math.inf, math.nan):
        with pytest.raises(ValueError, match=r"by must be at least 1 \+ 1e-9"):
            fails("‖x‖₂ ≤ ‖x‖₁", l2, l1, domain=free, shapes=[(4,)], by=by)


# -- equal -------------------------------------------------------------------------------------------------------------


def test_equal():
    check = equal("‖x‖² = x·x", lambda x: l2(x) ** 2, lambda x: (x * x).sum(-1), domain=free, shapes=[(3,)])
    assert check.text == "holds, entry by entry; 224 inputs; rounding allowance 1e-12"
    equal("a matrix an input", lambda x: x.mT.contiguous().mT, free, domain=free, shapes=[(2, 3)])


@pytest.mark.parametrize("error", [1e-3, 1e-10])
def test_unequal(error):
    with pytest.raises(VerificationError, match=r"the sides differ: left .*, right .*, at .*\n  input tensor"):
        equal("x = x + ε", lambda x: x + error, free, domain=free, shapes=[(3,)])
    with pytest.raises(VerificationError):
        last = error * torch.eye(3, dtype=torch.float64)[2]
        equal("only in the last entry", lambda x: x + last, free, domain=free, shapes=[(3,)])


def test_equal_refuses_what_it_cannot_compare():
    for lhs, rhs in (
        (l2, free),
        (lambda x: l2(x).mean()[None], lambda x: l1(x).mean()[None]),
        (lambda x: x[:, :0], lambda x: 2 * x[:, :0]),
    ):
        with pytest.raises(ValueError, match="one shape"):
            equal("shapes", lhs, rhs, domain=free, shapes=[(3,)])
    with pytest.raises(ValueError, match="must be finite"):
        equal("NaN", lambda x: x / 0, free, domain=free, shapes=[(3,)])
    with pytest.raises(ValueError, match="allowance"):
        equal("anything", zero, one, domain=free, shapes=[(3,)], allowance=2.0)


# -- measured and computed ---------------------------------------------------------------------------------------------


def test_computed():
    check = computed("facts", [("√4", 4**0.5, 2), ("e⁰", math.exp(0), 1), ("π", math.pi, 3.14159265359)])
    assert repr(check) == "facts: agree to 1e-9\n  √4 = 2\n  e⁰ = 1\n  π = 3.142"
    assert check.evidence.text == "computed, facts: 3 of 3 facts agree to 1e-9"


def test_computed_prints_what_was_computed():
    check = computed("facts", [("π", 3.1409, math.pi)], tolerance=1e-3, because="by throwing needles")
    assert check.text == "agree to 0.001 (by throwing needles)\n  π = 3.141"
    large = computed("facts", [("a count", torch.tensor(1234567), 1234567), ("none", torch.tensor(0), 0)])
    assert "a count = 1234567\n  none = 0" in large.text


def test_whole_numbers_must_be_the_same():
    for value in (10**9 + 1, torch.tensor(10**9 + 1)):
        with pytest.raises(VerificationError, match="a count is 1000000001, not 1000000000"):
            computed("facts", [("a count", value, 10**9)])


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


# -- the families of false and empty statements that must not pass ----------------------------------------------------


PLANE = {"domain": free, "shapes": [(2,)]}
TURN = torch.tensor([[math.cos(1), -math.sin(1)], [math.sin(1), math.cos(1)]], dtype=torch.float64)


@pytest.mark.parametrize(
    ("lhs", "rhs"),
    [
        (lambda x: l2(x @ TURN) - l2(x), zero),
        (lambda x: (x + 1e4).var(-1, correction=0), lambda x: ((x + 1e4) ** 2).mean(-1) - (x + 1e4).mean(-1) ** 2),
        (lambda x: (math.pi * (10 * x[:, 0]).round()).sin(), zero),
        (lambda x: x.softmax(-1).sum(-1) - 1, zero),
        (lambda x: x[:, 0].exp() * (-x[:, 0]).exp() - 1, zero),
        (lambda x: (1 + 1e8 * one(x)) - 1e8 * one(x) - 1 + (x[:, 0] + 1e8 - 1e8 - x[:, 0]), zero),
    ],
    ids=["a rotation", "two variances", "sines of multiples of π", "a sum of weights", "exp", "cancellation"],
)
def test_rounding_does_not_refute(lhs, rhs):
    """Each is an identity: what is left of it is rounding."""
    with pytest.raises(VerificationError, match="no counterexample"):
        fails("an identity", lhs, rhs, domain=lambda z: z.clamp(-20, 20), shapes=[(2,)])
    try:
        at_most("an identity", lhs, rhs, domain=lambda z: z.clamp(-20, 20), shapes=[(2,)])
    except ValueError as refusal:
        assert "undecided" in str(refusal) or "nothing could fail" in str(refusal)


def test_what_rounding_hides_is_not_accepted_either():
    with pytest.raises(ValueError, match="undecided at"):
        at_most("x₁ ≤ 0, through 10¹⁶", lambda x: x[:, 0] + 1e16 - 1e16, lambda x: 0.5 * one(x), **PLANE)


def test_a_true_statement_is_not_refuted():
    assert at_most("−1 ≤ 0", lambda x: -one(x), lambda x: -0.0 * one(x), **PLANE).value == 1
    at_most("a variance", *(lambda x: x.var(-1, correction=0), lambda x: (x**2).mean(-1)), **PLANE)
    for lhs, rhs in ((-1, -0.0), (-2, -1), (-1, 0), (0, 1)):
        with pytest.raises(VerificationError, match="no counterexample"):
            fails("−1 ≤ 0", lambda x, c=lhs: c * one(x), lambda x, c=rhs: c * one(x), **PLANE)


@pytest.mark.parametrize("scale", [1e-13, 1e-30, 1e-200, 1e13])
def test_equal_is_relative(scale):
    with pytest.raises(VerificationError, match="the sides differ"):
        equal("r = 2r", free, lambda x: 2 * x, domain=lambda z: scale * torch.tanh(z), shapes=[(3,)])
    with pytest.raises(VerificationError, match="the sides differ"):
        off = torch.tensor([0.0, 1e-9, 0.0], dtype=torch.float64)  # of the middle entry only
        equal("r = r(1 + ε)", free, lambda x: x + off * x, domain=lambda z: scale * z, shapes=[(3,)])
    equal("r = r", lambda x: x / 3 + 2 * x / 3, free, domain=lambda z: scale * torch.tanh(z), shapes=[(3,)])


def test_equal_grants_what_cancels():
    """Entries that are differences of larger terms are equal up to the rounding of these."""
    equal("a sum of 0 and x", lambda x: torch.stack([x[:, 0] + x[:, 1] - x[:, 0] - x[:, 1], x[:, 0]], 1),
          lambda x: torch.stack([zero(x), x[:, 0]], 1), **PLANE)  # fmt: skip
    with pytest.raises(ValueError, match="nothing could fail: on .* of 224 inputs"):
        equal("0 = 0", lambda x: x[:, 0] + x[:, 1] - x[:, 0] - x[:, 1], zero, **PLANE)
    with pytest.raises(ValueError, match="nothing could fail"):
        equal("x = 2x, through 10¹⁶", lambda x: 2 * x.tanh() + 1e16 - 1e16, lambda x: x.tanh() + 1e16 - 1e16, **PLANE)


@pytest.mark.parametrize(
    "side",
    [
        lambda x: (1 + 1e-9) * one(x).float(),
        lambda x: (1.0004 * one(x)).half(),
        lambda x: torch.full((len(x),), 2**24 + 1),
        lambda x: (1 + 1e-9 * one(x)).float().double(),
        lambda x: one(x) * torch.tensor(1.1),
        lambda x: x[:, 0] > 0,
        lambda x: one(x).to(torch.complex128),
        lambda x: (x.bfloat16() @ x.bfloat16().mT).double().diagonal(),
    ],
)
def test_sides_are_float64(side):
    for sides in ((side, lambda x: 2e9 * one(x)), (lambda x: -one(x), side)):
        with pytest.raises(ValueError, match=r"must be (computed in )?float64, got"):
            at_most("a side", *sides, **PLANE)
        with pytest.raises(ValueError, match=r"must be (computed in )?float64, got"):
            fails("a side", *sides, **PLANE)
    with pytest.raises(ValueError, match=r"must be (computed in )?float64, got"):
        equal("a side", side, lambda x: side(x), **PLANE)


def test_what_float32_holds_exactly_may_pass():
    equal("x = x 1", free, lambda x: x @ torch.eye(2).double() * torch.ones(1), **PLANE)


@pytest.mark.parametrize(
    "hypothesis",
    [
        lambda x: x[:0] > 0,
        lambda x: x * math.nan,
        lambda x: (x > 0).any(),
        lambda x: x.abs() + 1,
        lambda x: True,
        lambda x: torch.ones(len(x)),
        lambda x: torch.ones(len(x), dtype=torch.bool),
        lambda x: (x > 0)[:, :1],
        lambda x: (x > -1e8).all(-1).double(),
        lambda x: None,
    ],
)
def test_a_hypothesis_that_says_nothing(hypothesis):
    for check in (at_most, fails):
        with pytest.raises(ValueError, match="hypothesis must"):
            check("p ≤ 10⁹ for positive p", l2, lambda x: 1e9 * one(x), hypothesis=hypothesis, **PLANE)


@pytest.mark.parametrize("domain", [lambda z: 0 * z, lambda z: torch.ones_like(z), lambda z: (z[:, :1] * 0, 0 * z)])
def test_one_input_is_no_check(domain):
    def ones(x):
        return one(x[0] if isinstance(x, tuple) else x)

    for check in (at_most, equal):
        with pytest.raises(ValueError, match="domain gives one input only"):
            check("sin x = x", ones, lambda x: ones(x), domain=domain, shapes=[(3,)])


def test_zero_below_zero_is_no_check():
    for left, right in (
        (zero, zero),
        (lambda x: 0 * l2(x), lambda x: -0.0 * l1(x)),
        (lambda x: x[:, 0] - x[:, 0], zero),
    ):
        with pytest.raises(ValueError, match="nothing could fail"):
            at_most("‖A‖ ≤ √n", left, right, **PLANE)
        with pytest.raises(ValueError, match="nothing could fail"):
            equal("‖A‖ = √n", left, right, **PLANE)


@pytest.mark.parametrize("allowance", [0.01, 1e-3, 1.1e-6, -1e-12, math.nan, math.inf])
def test_a_wide_allowance_needs_its_reason(allowance):
    for check in (at_most, equal):
        with pytest.raises(ValueError, match="allowance must lie"):
            check("1.009 ≤ 1", lambda x: 1.009 * one(x), one, allowance=allowance, **PLANE)
    with pytest.raises(ValueError, match="allowance must lie"):
        vectors("1.5 ≤ 1", one, one, allowance=0.5, because="nobody looks")
    said = vectors("1 ≤ 1", lambda x: 1.0001 * one(x), one, allowance=1e-3, because="to first order")
    assert said.text.endswith("allowance 0.001 (to first order)")


@pytest.mark.parametrize(
    "row", [("2 + 2", 4, 5), ("π", 3, math.pi), ("2 + 2", 4.0, 4.1), ("e", 2.718, math.e)], ids=str
)
@pytest.mark.parametrize("tolerance", [0.3, math.inf, math.nan, 1e-3])
def test_computed_is_not_near_enough(row, tolerance):
    with pytest.raises(ValueError, match="tolerance must lie"):
        computed("Arithmetic", [row], tolerance=tolerance)
    with pytest.raises(VerificationError, match=r"is .*, not "):
        computed("Arithmetic", [row])


@pytest.mark.parametrize("small", [1.4e-11, -1e-30, torch.softmax(torch.tensor([40.0, 0.0]).double(), 0)[1], 5e-324])
def test_zero_needs_its_scale(small):
    for zero_ in (0, 0.0):
        with pytest.raises(VerificationError, match="0 up to rounding needs its scale"):
            computed("Weights", [("a weight", small, zero_)])
    with pytest.raises(VerificationError, match="is 0.0100, not 0"):
        computed("Weights", [("a weight", 0.01, 0, 1.0)])
    assert "a difference = 0 within 1e-9" in computed("Weights", [("a difference", 1e-17, 0, 1.0)]).text


def test_a_counterexample_shows_that_it_is_one():
    check = fails("1.0011 ≤ 1", lambda x: 1.0011 * one(x), one, **PLANE)
    assert check.evidence.text == "counterexample, 1.0011 ≤ 1: 1.001 > 1.000, by 0.0011; normal input, 2"
    near = fails("c ≤ 1", lambda x: (1 + 1e-7) * one(x), one, by=1 + 1e-8, **PLANE)
    assert near.text.startswith("fails: left 1.0000001, right 1.0000000")


# -- dropped hypotheses ------------------------------------------------------------------------------------------------


def test_a_hypothesis_is_dropped_in_the_same_call():
    def signed(z):
        return z - z.mean(-1, keepdim=True) + 1 / z.shape[-1]

    def softmax(z):
        return z.softmax(-1)

    setting = {"lhs": l2, "rhs": one, "domain": softmax, "shapes": [(3,)]}
    check = at_most("‖p‖ ≤ 1", **setting, without={"signs": signed, "sum 1": (free, [(1,)])})
    assert list(check.without) == ["signs", "sum 1"] and check.without["signs"].evidence.kind == "counterexample"
    assert "\n  without signs: fails: left" in repr(check) and "\n  without sum 1: fails: left" in repr(check)
    with pytest.raises(VerificationError, match="‖p‖ ≤ 1, without anything: no counterexample"):
        at_most("‖p‖ ≤ 1", **setting, without={"anything": softmax})


def test_what_is_not_dropped_holds_at_the_counterexample():
    def one_each(x):
        return (x.sum(-1) - 1).abs() < 1e-9

    def non_negative(x):
        return (x >= 0).all(-1)

    def signed(z):
        return z - z.mean(-1, keepdim=True) + 1 / z.shape[-1]

    both = {"sum 1": one_each, "signs": non_negative}
    setting = {"lhs": l2, "rhs": one, "domain": lambda z: z.softmax(-1), "shapes": [(3,)], "hypothesis": both}
    check = at_most("‖p‖ ≤ 1", **setting, without={"signs": signed, "sum 1": torch.abs})
    assert not non_negative(check.without["signs"].at[None]) and one_each(check.without["signs"].at[None])
    with pytest.raises(ValueError, match="hypothesis 'sum 1': violated by an input of the normal input"):
        at_most("‖p‖ ≤ 1", **setting, without={"signs": free})
    with pytest.raises(ValueError, match="without must name hypotheses, among sum 1, signs, got length"):
        at_most("‖p‖ ≤ 1", **setting, without={"length": free})
    with pytest.raises(ValueError, match="hypothesis 'sum 1': violated"):
        at_most("‖p‖ ≤ 1", **setting | {"domain": torch.abs})
    bounded = setting | {
        "hypothesis": {"small": lambda x: l2(x) < 1e6},
        "domain": torch.tanh,
        "rhs": lambda x: 2 * one(x),
    }
    with pytest.raises(VerificationError, match="without small: the counterexample satisfies it"):
        at_most("‖p‖ ≤ 2", **bounded, without={"small": free})


def test_a_claim_is_refuted_where_it_speaks():
    refuted = {"lhs": l1, "rhs": l2, "domain": free, "shapes": [(4,)], "against": "C1"}
    with pytest.raises(ValueError, match="hypothesis must be given against C1"):
        fails("‖x‖₁ ≤ ‖x‖₂", **refuted)
    assert fails("‖x‖₁ ≤ ‖x‖₂", **refuted, hypothesis=None).evidence.text.endswith(", with no hypothesis")
    tested = fails("‖x‖₁ ≤ ‖x‖₂", **refuted, hypothesis=lambda x: l2(x) < 1e6)
    assert tested.evidence.about == ("C1",) and "no hypothesis" not in tested.evidence.text
    with pytest.raises(ValueError, match="hypothesis: violated"):
        fails("‖x‖₁ ≤ ‖x‖₂", **refuted, hypothesis=lambda x: l1(x) < 1)


def test_a_side_does_not_write_into_its_input():
    def writes(x):
        return x[:, 0].clone() + 0 * x.detach().sub_(1)[:, 0]

    for check in (at_most, equal, fails):
        with pytest.raises(ValueError, match="lhs must not write into its input"):
            check("x ≤ x", writes, lambda x: x[:, 0] + 0, **PLANE)


def test_a_slope_that_does_not_exist_is_named():
    with pytest.raises(ValueError, match="lhs and rhs must have a slope"):
        at_most("⌊x⌋ ≤ 10⁹", lambda x: x[:, 0] // 0.1, lambda x: 1e9 * one(x), **PLANE)


def test_failed_checks_leave_no_evidence(monkeypatch):
    monkeypatch.setattr(ledger, "_executed", [])
    for failing in (
        lambda: vectors("no", l1, l2),
        lambda: fails("no", l2, l1, domain=free, shapes=[(3,)]),
        lambda: equal("no", l1, l2, domain=free, shapes=[(3,)]),
        lambda: measured("no", [1, 2, 3, 4, 5], above=9),
        lambda: computed("no", [("no", 1, 2)]),
    ):
        with pytest.raises(VerificationError):
            failing()
    assert ledger._executed == []
    vectors("yes", l2, l1)
    assert [e.kind for e in ledger._executed] == ["verified"]


# -- what honest mistakes give ----------------------------------------------------------------------------------------


def never(what, *sides, **options):
    """The error of each check that is given this."""
    for check in (at_most, fails, equal):
        with pytest.raises(ValueError) as refusal:
            check("a mistake", *sides, **PLANE | options)
        assert re.search(what, str(refusal.value)), refusal.value


@pytest.mark.parametrize(
    "side",
    [lambda x: 3.0, lambda x: None, lambda x: x.nrom(), lambda x: missing, lambda x: x[:, 9], lambda: 1,  # noqa: F821
     lambda x: x @ torch.ones(9, 9).double(), lambda x: l2(x).numpy(force=True), lambda x: {}["a"]],
)  # fmt: skip
def test_a_side_that_is_none(side):
    never("^lhs (must be|cannot be computed)", side, one)
    never("^rhs (must be|cannot be computed)", one, side)


@pytest.mark.parametrize(
    "domain",
    [lambda z: None, lambda z: z[0], lambda z: [z], lambda z: (z, z[:3]), lambda z: z.mean(), lambda z: y],  # noqa: F821
)
def test_a_domain_that_is_none(domain):
    never("^domain (must|cannot)", l2, l1, domain=domain)


@pytest.mark.parametrize("domain", [torch.Tensor.float, lambda z: z.half(), lambda z: z.float().softmax(-1).double()])
def test_inputs_are_float64(domain):
    never("^domain must (give|be computed in) float64", l2, lambda x: 2 * l1(x), domain=domain)


@pytest.mark.parametrize("shapes", [[], [(-1,)], [(2, -3), (2,)]], ids=str)
def test_shapes_that_are_none(shapes):
    never("^shapes must name at least one shape", l2, l1, shapes=shapes)


def test_what_does_not_look_at_its_input_is_a_fact():
    for left, right in ((1.0, 2.0), (1.0, 1.0)):
        sides = [lambda x, c=c: torch.full_like(x[:, 0], c) for c in (left, right)]
        for check in (at_most, equal):
            with pytest.raises(ValueError, match="neither side is computed from its input"):
                check("1 and 2", *sides, **PLANE)
    vectors("0 x ≤ 1", zero, lambda x: torch.ones_like(x[:, 0]))


def test_nothing_is_compared_with_itself():
    for check in (at_most, equal):
        with pytest.raises(ValueError, match="got one and the same tensor"):
            check("x = x", lambda x: x[:, 0], lambda x: x[:, 0], **PLANE)
    with pytest.raises(ValueError, match="got one function"):
        equal("f = f", l2, l2, **PLANE)


def test_a_hypothesis_that_all_numbers_meet():
    for hypothesis in (lambda x: x.isfinite().all(-1), lambda x: (x == x).all(-1), lambda x: x.square().sum(-1) >= 0):
        with pytest.raises(ValueError, match="hypothesis must be able to fail"):
            vectors("p ≤ 2", lambda x: x.softmax(-1).amax(-1), lambda x: 2 * one(x), hypothesis=hypothesis)
    one_sign = {"domain": lambda z: z.abs() + 1, "hypothesis": lambda x: (x > 0).all(-1) | (x < 0).all(-1)}
    at_most("‖x‖₂ ≤ ‖x‖₁", l2, l1, shapes=[(3,)], **one_sign)


@pytest.mark.parametrize("scale", [1e-13, 1e-20, 1e-100])
def test_a_scale_is_one_that_occurs(scale):
    setting = {"domain": lambda z: scale * z.tanh(), "shapes": [(3,)]}
    with pytest.raises(ValueError, match="scale must be a size that occurs, got 1"):
        equal("r = 0", free, lambda x: 0 * x, scale=1, **setting)
    with pytest.raises(ValueError, match="scale must be a size that occurs, got 1e\\+09"):
        equal("x = x + 1", lambda x: x + 1, lambda x: 1 * x, scale=1e9, allowance=1e-6, **PLANE)
    with pytest.raises(ValueError, match="nothing could fail"):
        equal("r = 2r, next to 100", *(lambda x, k=k: k * x[:, 1:] for k in (1, 2)), scale=1,
              domain=lambda z: torch.cat([100 + z[:, :1], scale * z[:, 1:].tanh()], 1), shapes=[(3,)])  # fmt: skip
    for other in (-1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="scale must be a size, got"):
            equal("x = x", free, lambda x: 1 * x, scale=other, **PLANE)
    equal("0 = 0", lambda x: x - x, lambda x: torch.zeros_like(x), scale=1, **PLANE)


def test_beyond_rounding_where_no_rule_is_known():
    def volume(x):
        return torch.linalg.det(x[:, :, None] * x[:, None] + torch.eye(2).double())

    check = fails("a determinant", lambda x: (1 + 2e-6) * volume(x), volume, by=1 + 1e-6, **PLANE)
    assert check.text.endswith("beyond rounding") and check.evidence.text.endswith("beyond rounding")
    with pytest.raises(VerificationError, match="rounding may explain it"):
        fails("a determinant", lambda x: (1 + 2e-9) * volume(x), volume, by=1 + 1e-9, **PLANE)
    assert "beyond" not in fails("‖x‖₁ ≤ ‖x‖₂", l1, l2, **PLANE).text


@pytest.mark.parametrize(
    ("lhs", "reason"),
    [
        (lambda x: torch.from_numpy(x.numpy(force=True)[:, 0] + 1e8 - 1e8) - x[:, 0], "numpy leaves PyTorch"),
        (
            lambda x: torch.tensor([v + 1e8 - 1e8 for v in x[:, 0].tolist()], dtype=torch.float64) - x[:, 0],
            "tolist leaves",
        ),
        (lambda x: (0.1 * x[:, 0] + 0.2 * x[:, 0] > 0.3 * x[:, 0]).double(), "rounding decides a comparison"),
        (
            lambda x: x[:, 0] - torch.stack([0 * v + (float(v.detach()) + 1e8 - 1e8) for v in x[:, 0]]),
            "a number that Python has",
        ),
    ],
    ids=["NumPy", "lists", "a comparison", "Python"],
)
def test_what_cannot_be_followed_refutes_nothing(lhs, reason, monkeypatch):
    monkeypatch.setattr(search, "STEPS", 1)
    with pytest.raises(VerificationError, match=reason):
        fails("an identity", lhs, zero, **PLANE)


def test_an_extreme_counterexample_needs_the_hypothesis():
    setting = {"domain": lambda z: z.softmax(-1), "shapes": [(8,)], "extremes": lambda _: SIGNS}
    with pytest.raises(ValueError, match="hypothesis must be given: the counterexample is an extreme input"):
        fails("Σp² ≤ 1 for weights p", lambda x: x.square().sum(-1), one, **setting)
    with pytest.raises(ValueError, match="extremes must give Extremes"):
        fails("Σp² ≤ 1 for weights p", lambda x: x.square().sum(-1), one, **setting | {"extremes": lambda _: None})


@pytest.mark.parametrize(
    "rows",
    [[("a list", [1], 1)], [("two", torch.ones(2), 1)], [("text", "three", 3)],
     [("complex", 1 + 2j, 1)], [("nothing", None, 0)], [("scale", 0.1, 0, math.nan)], [("scale", 0.1, 0, 1e9)]],
)  # fmt: skip
def test_rows_that_are_none(rows):
    for check in (computed, fact):
        with pytest.raises(ValueError, match="^rows"):
            check("mistakes", rows, **({"tolerance": 1e-6} if rows == [("scale", 0.1, 0, 1e9)] else {}))


def test_what_is_expected_is_not_what_is_computed():
    value = torch.tensor(2.5)
    for thing in (value, math.pi):
        with pytest.raises(ValueError, match="must be computed, got the very object"):
            computed("itself", [("v", thing, thing)])
    large = computed("a power", [("2⁶⁰", 2.0**60 + 300, 2**60)])
    assert "2⁶⁰ = 1.153e+18" in large.text
    with pytest.raises(VerificationError, match="is 100000000000000001, not 100000000000000000"):
        computed("whole", [("n", 10**17 + 1, 10**17)])


@pytest.mark.usefixtures("unenforced")
def test_what_is_of_another_type():
    never("^shapes must name", l2, l1, shapes=None)
    never("^shapes must name", l2, l1, shapes=[3])
    never("^shapes must name", l2, l1, shapes=[(2.5,)])
    never("^domain cannot be computed", l2, l1, domain=None)
    never("^lhs cannot be computed", "‖x‖", l1)
    for rows in (3, "abc", [("π", 3)], [(1, 2, 3)]):
        with pytest.raises(ValueError, match="^rows must hold"):
            computed("mistakes", rows)
    for values in (None, "texts", {1: 2}, ["a", "b", "c", "d", "e"]):
        with pytest.raises(ValueError, match="^values must be a list"):
            measured("mistakes", values, above=0)
    for what in ("above", "below", "scale"):
        with pytest.raises(ValueError, match=f"{what} must be one real number"):
            measured("mistakes", [1.0, 2.0, 3.0, 4.0, 6.0], **{"above": 0, what: "big"})
    for over in (None, 3, ["seeds"]):
        with pytest.raises(ValueError, match="over must say"):
            measured("mistakes", [1.0, 2.0, 3.0, 4.0, 6.0], above=0, over=over)
    with pytest.raises(ValueError, match="without must map"):
        vectors("‖x‖₂ ≤ ‖x‖₁", l2, l1, without=["signs"])


def test_a_violation_is_measured_by_the_size_of_the_right_side():
    def broken(by):
        return fails(
            "−x ≤ −1.0005 x",
            lambda x: -x[:, 0],
            lambda x: -1.0005 * x[:, 0],
            domain=lambda z: 1 + z.abs(),
            shapes=[(1,)],
            by=by,
        )

    assert broken(1.0004).value > 0
    with pytest.raises(VerificationError, match="no counterexample"):
        broken(1.0006)


def test_checks_are_a_line_each_that_opens_the_rest():
    def softmax(z):
        return z.softmax(-1)

    check = at_most("‖p‖ < 1 & more", l2, one, domain=softmax, shapes=[(3,)], without={"sum 1": free})
    facts = computed(
        "two facts", [("one", l1(torch.ones(1, 1).double()), 1), ("two", l1(torch.ones(1, 2).double()), 2)]
    )
    shown = Checks(check, facts)
    assert repr(shown) == f"{check!r}\n{facts!r}"
    first, dropped, last = shown._repr_markdown_().split("\n\n")
    assert first.startswith('<details class="check holds"><summary>✓ <b>‖p‖ &lt; 1 &amp; more</b>: holds, tightness')
    assert first.index("</summary>") < first.index("232 inputs, attacks included")
    assert dropped.startswith('<details class="check fails"><summary>✗ <b>without sum 1</b>: fails: left')
    assert last == (
        '<details class="check holds"><summary>✓ <b>two facts</b>: agree to 1e-9</summary>'
        "<pre>  one = 1\n  two = 2</pre></details>"
    )


def test_no_check_is_refused():
    with pytest.raises(ValueError, match="checks: expected at least one"):
        Checks()


# -- what an allowance may not hide ------------------------------------------------------------------------------------


@pytest.mark.parametrize("excess", [1e-13, 5e-14, 1e-10, 9e-7])
def test_what_is_certainly_broken_is_not_within_the_allowance(excess):
    with pytest.raises(VerificationError, match="by more than rounding explains and less than the allowance"):
        at_most(
            "1 + x² is at most 1 + x²",
            lambda x: 1 + x * x + excess * (1 + x * x),
            lambda x: 1 + x * x,
            domain=torch.tanh,
            shapes=[()],
            allowance=1e-12 if excess < 1e-12 else 1e-6,
        )


def test_what_rounding_breaks_is_within_the_allowance():
    rows = at_most(
        "a row of a softmax sums to 1 at most",
        lambda S: S.softmax(-1).sum(-1),
        lambda S: one(S),
        domain=lambda S: S,
        shapes=[(7,), (300,)],
    )
    at_most("(x + 1000) − 1000 ≤ x", lambda x: (x + 1e3) - 1e3, lambda x: 1.0 * x, domain=torch.sigmoid, shapes=[()])
    assert "inputs, of 2 sizes, 7 to 300, " in rows.evidence.text and rows.evidence.text.endswith("; allowance 1e-12")


def test_evidence_says_what_would_weaken_it():
    setting = {"domain": lambda z: z.exp(), "shapes": [()]}
    wide = at_most("x ≤ 0.96 x", lambda x: x, lambda x: 0.96 * x, allowance=0.05, because="a mean of draws", **setting)
    assert wide.evidence.shows == ("x ≤ 0.96 x, up to 0.05 (a mean of draws)",)
    assert "of size 1" in wide.evidence.text and wide.evidence.text.endswith("allowance 0.05 (a mean of draws)")
    same = equal("x = x", lambda x: x, lambda x: 2 * x - x, scale=0.5, **setting).evidence
    assert same.text.endswith(", of size 1, not attacked; allowance 1e-12, on a scale of 0.500")
    loose = equal("x = 1.01 x", lambda x: x, lambda x: 1.01 * x, allowance=0.05, because="a mean of draws", **setting)
    assert loose.evidence.shows == ("x = 1.01 x, up to 0.05 (a mean of draws)",)
    broken = fails("2x ≤ x", lambda x: 2 * x, lambda x: x, domain=lambda z: 1 + 0 * z, shapes=[(), ()][:1]).evidence
    assert "2.00 > 1.00, by 1.0; " in broken.text and "input, " in broken.text


@pytest.mark.parametrize("because", ["rounding", "sums", " float32 ", None, 3])
def test_a_reason_is_given_in_words(because, unenforced):
    with pytest.raises(ValueError, match="because must say in words why"):
        computed("c", [("1", 1.0, 1.01)], tolerance=0.02, because=because)
