"""What is refused, module by module, where a module's own tests do not come to it.

`make test-lib` fails when a guard (`raise`) of the library is reached by no test: those that say one thing each stand
here in a table.
"""

import math
import pickle

import pytest
import torch
from sympy import (
    Derivative,
    Eq,
    Expr,
    Function,
    I,
    IndexedBase,
    Integer,
    Integral,
    Max,
    Mul,
    Piecewise,
    Poly,
    Subs,
    Sum,
    Symbol,
    Tuple,
    Wild,
    exp,
    floor,
    log,
    sin,
    symbols,
)

from smalltorch.attention import MultiHead
from smalltorch.cache import kept_bias, merged
from smalltorch.circuits import head_values, heads_set
from smalltorch.efficient.cost import kept_bytes, layer_weights, peak_bytes
from smalltorch.efficient.kernels import kernel_attention
from smalltorch.efficient.sparse import hops
from smalltorch.engine import context, domain, kernel
from smalltorch.engine.balls import Astray, enclosed
from smalltorch.engine.derive import Cases, Derivation, StepError, for_all
from smalltorch.engine.differentiate import differentiate
from smalltorch.engine.interval import Unknown, enclose
from smalltorch.engine.rounding import refuse_lower_precision
from smalltorch.engine.spot_check import vanishes
from smalltorch.engine.verify import fails
from smalltorch.experiments import runner
from smalltorch.experiments.table import store
from smalltorch.figures import svg_export
from smalltorch.parallel.counting import Moved
from smalltorch.parallel.launch import WorkerError, launch
from smalltorch.parallel.splits import SplitHeads
from smalltorch.superpose import coherence, polynomial_code, welch_bound, winners

ONES, EYE = torch.ones(3, 3).double(), torch.eye(3).double()
INFINITE = torch.full((3, 3), math.inf).double()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kept_bias(ONES), "keep: expected a boolean tensor, True for what stays, got torch.float64"),
        (lambda: merged(ONES, ONES, ONES[0]), "keep: expected a boolean tensor with an entry that stays in each row"),
        (lambda: merged(ONES, ONES, ONES[0] < 0), "keep: expected a boolean tensor with an entry that stays"),
        (lambda: head_values([]), "calls: expected one at least, got none"),
        (
            lambda: heads_set(MultiHead(4, 2), torch.ones(1, 1, 2, 3), torch.ones(1, 1, 2, 3, 2)).__enter__(),
            r"where: expected booleans of shape \(layer, batch, head, n\) with layers and heads \[1, 2\], got",
        ),
        (lambda: layer_weights(d=10, heads=3, d_ff=4), "heads: expected a divisor of d = 10, got 3"),
        (lambda: layer_weights(d=12, heads=3, d_ff=4, kv_heads=2), "kv_heads: expected a divisor of heads = 3, got 2"),
        (lambda: peak_bytes(3), "call: expected a function without arguments, got int"),
        (lambda: kept_bytes(ONES), "call: expected a function without arguments, got Tensor"),
        (lambda: kernel_attention(INFINITE, ONES, ONES, ONES), "Q: expected finite entries, got NaN or infinite ones"),
        (lambda: kernel_attention(ONES, ONES, ONES, INFINITE), "W: expected finite entries, got NaN or infinite ones"),
        (lambda: hops(ONES, 0), "mask: expected a boolean tensor, True where a token sees another, got torch.float64"),
        (
            lambda: fails("it", abs, abs, domain=None, shapes=(), against=3),
            "against must be ids of claims, with spaces between",
        ),
        (
            lambda: refuse_lower_precision(lambda X: X.to_sparse() * X.to_sparse(), ONES, "the left side"),
            "the left side must be computed with dense tensors: ",
        ),
        (
            lambda: store(None, "", "", "", ("a", "b"), [(1, 2), (3,)], {}),
            "lines: expected 2 entries in each, .* got 1",
        ),
        (lambda: runner.used_by("sys"), "module: expected one with a file, got sys"),
        (lambda: runner.used_by("nowhere_at_all"), "module: expected one with a file, got nowhere_at_all"),
        (lambda: launch(ONES.sum, 2, limit=0), "limit: expected more than 0 seconds, got 0"),
        (lambda: launch(lambda: 1, 2), "work: expected a function that can be imported by its name, got <function"),
        (
            lambda: SplitHeads(MultiHead(8, 4, kv_heads=2), slice(0, 2)),
            "whole: expected heads with own keys, without rotary positions or biases, got others",
        ),
        (lambda: welch_bound(3, 4), "d: expected at most m, 3, got 4"),
        (lambda: coherence(ONES[:1]), "W: expected two rows at least, and none of zeros"),
        (lambda: coherence(0 * ONES), "W: expected two rows at least, and none of zeros"),
        (lambda: polynomial_code(3, 4), "k: expected at most p, 3, got 4"),
        (lambda: winners(ONES, 4), "k: expected at most the 3 units, got 4"),
    ],
)
def test_what_makes_no_sense_is_refused(call, message, unenforced):
    with pytest.raises(ValueError, match=f"^{message}"):
        call()


n, m = symbols("n m", integer=True, positive=True)
i, j = symbols("i j", integer=True)
r, t = symbols("r t", real=True)
z, f = Symbol("z"), Function("f")
x, whole = IndexedBase("x", real=True), IndexedBase("y", integer=True)
NOUGHT = sin(1) - Mul(1, sin(1), evaluate=False)  # 0, which an interval does not know


def chain(start, *given):
    return Derivation("test", scope="a test", given=given).start(start)


class Odd:
    def _sympy_(self):
        raise ArithmeticError("what SymPy did not expect")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: chain(Derivative(t**2, (t, n))), "how often must be a number"),
        (lambda: chain(Integral(t * r, (t, 0, 1), (r, 0, 1))), "must have one range"),
        (lambda: chain(Integral(t, t)), "must have one range"),
        (lambda: chain(Integral(exp(t), (t, 0, 1))), r"exp\(t\) is not a polynomial in t; no other integral is known"),
        (lambda: chain(Subs(x[i], x[i], 1)), r"x\[i\] is no symbol, and takes no value"),
        (lambda: chain(t, t <= 0).context._case(Piecewise((1, t > 0))), "no case of .* is met"),
        (lambda: chain(t).conclusion, "nothing was derived"),
        (lambda: chain(Odd()), "undecided, ArithmeticError: what SymPy did not expect"),
        (
            lambda: differentiate(whole[whole[1]], whole[1], lambda e: True),
            r"an index of y\[y\[1\]\] depends on y\[1\]",
        ),
        (lambda: chain(Eq(t, 1)), "expected an expression, got "),
        (lambda: chain(Wild("w")), "w_ is a Wild; expected a plain symbol"),
        (lambda: chain(Expr.__new__(Sum, x[i], Tuple(i))), "the sum over i has no range"),
        (lambda: domain.check(Derivative(f(t), t), chain(t).context), r"was not resolved"),
        (lambda: chain(x[t]), r"the indices of x\[t\] must be integers"),
        (lambda: chain(floor(z)), r"floor\(z\) is defined for reals only, and z is not seen to be real"),
        (lambda: chain(r**2).ge(0, because="no", by=Cases(t)), "a case is a relation that may hold or not, got t"),
        (lambda: chain(r**2).ge(0, because="no", by=Cases(Eq(z, 0))), "a case is a relation between real numbers, and"),
        (
            lambda: kernel.chained(
                [chain(r).lt(r + 1, because="1 > 0").fact, chain(t).lt(t + 1, because="1 > 0").fact]
            ),
            "a chain needs facts under the same hypotheses, each beginning where the one before ends",
        ),
        (
            lambda: chain(r).lt(r + 1, because="1 > 0").qed().at({Integer(2): r}),
            "values are put in for symbols and base",
        ),
    ],
)
def test_what_the_engine_cannot_carry_is_refused(call, message, unenforced):
    with pytest.raises(StepError, match=message):
        call()


def test_what_is_no_integral_is_not_believed(monkeypatch):
    """The antiderivative is differentiated, whoever has found it."""
    monkeypatch.setattr(context, "Poly", lambda given, t: Poly(given + t, t))
    with pytest.raises(StepError, match=r"t\*\*3/3 .* is not an antiderivative of t\*\*2"):
        chain(Integral(t**2, (t, 0, 1)))


def test_points_of_a_spot_check_meet_what_is_assumed_of_all_indices():
    assert vanishes(Max(x[1], 0) - x[1]).startswith("it is not 0 at x[1] = -")
    assert vanishes(Max(x[1], 0) - x[1], [for_all(i, x[i] >= 0)]) == ""


def test_a_hypothesis_for_all_names_integers():
    with pytest.raises(ValueError, match="for_all: expected an integer symbol i, or "):
        for_all(t, Eq(x[i], 1))
    with pytest.raises(ValueError, match="for_all: n has a range, and must be declared integer and nothing more"):
        for_all((n, 1, 5), Eq(x[n], 1))


@pytest.mark.parametrize(
    ("expr", "at", "message"),
    [
        (f(t), 2, "f has no enclosure"),
        (1 / t, NOUGHT, "a division by what may be 0"),
        (log(t), NOUGHT, "or the logarithm of it"),
        (log(-1 + I * t), NOUGHT, "the logarithm jumps here"),
    ],
)
def test_where_a_function_has_no_value_nothing_is_enclosed(expr, at, message):
    with pytest.raises(Unknown, match=message):
        enclose(expr, {t: Integer(at) if isinstance(at, int) else at})


def test_formulas_that_have_no_line_are_left_to_matplotlib():
    """Scripts of scripts, and scripts of nothing."""
    assert [svg_export._parsed(formula) for formula in ("$x_{a_b}$", "$x_$", r"$\sqrt$")] == [None] * 3


@pytest.mark.parametrize(
    "side",
    [
        lambda X: X.float().double(),
        lambda X: X.sum(-1, dtype=torch.float32).double(),
        lambda X: X.cumprod(-1, dtype=torch.float32).double(),  # which has no rule
    ],
)
def test_no_ball_encloses_what_is_rounded_to_other_numbers(side):
    with pytest.raises(Astray, match="gives other numbers than float64"):
        enclosed(side, ONES)


def test_communication_of_another_kind_is_refused():
    class Operation:
        _overloadpacket = "c10d.alltoall_"

        def __call__(self, *given):
            return given

    with pytest.raises(
        ValueError, match="collective: expected one of all-reduce|c10d.allreduce_.*, got c10d.alltoall_"
    ):
        Moved().__torch_dispatch__(Operation(), ())


def test_an_error_of_a_worker_travels_between_processes():
    error = pickle.loads(pickle.dumps(WorkerError("worker 0 of 2 was stopped")))
    assert str(error) == "worker 0 of 2 was stopped" and error.log == ""
