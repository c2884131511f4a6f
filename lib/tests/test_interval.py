"""Intervals: the value at an exact argument lies within, whatever mpmath makes of the last place."""

import mpmath
import pytest
import sympy as sp
from sympy import Rational

from smalltorch.engine.interval import Unknown, enclose
from smalltorch.engine.sample import generator

t = sp.Symbol("t")
FUNCTIONS = {
    "exp": (sp.exp, mpmath.exp),
    "log": (lambda x: sp.log(abs(x)), lambda x: mpmath.log(abs(x))),
    "sin": (sp.sin, mpmath.sin),
    "cos": (sp.cos, mpmath.cos),
    "tan": (sp.tan, mpmath.tan),
    "cot": (sp.cot, mpmath.cot),
    "sec": (sp.sec, mpmath.sec),
    "csc": (sp.csc, mpmath.csc),
    "sinh": (sp.sinh, mpmath.sinh),
    "cosh": (sp.cosh, mpmath.cosh),
    "tanh": (sp.tanh, mpmath.tanh),
    "coth": (sp.coth, mpmath.coth),
    "sech": (sp.sech, mpmath.sech),
    "csch": (sp.csch, mpmath.csch),
    "asinh": (sp.asinh, mpmath.asinh),
    "atan": (sp.atan, mpmath.atan),
    "sqrt": (lambda x: sp.sqrt(abs(x)), lambda x: mpmath.sqrt(abs(x))),
    "a power": (lambda x: abs(x) ** Rational(-22, 7), lambda x: abs(x) ** (-mpmath.mpf(22) / 7)),
    "a whole power": (lambda x: x**-7, lambda x: x**-7),
    "gamma": (sp.gamma, mpmath.gamma),
    "factorial": (lambda x: sp.factorial(abs(x)), lambda x: mpmath.factorial(abs(x))),
    "a complex exponential": (lambda x: sp.exp(sp.I * x), lambda x: mpmath.exp(1j * x)),
    "a complex logarithm": (lambda x: sp.log(sp.I + x), lambda x: mpmath.log(x + 1j)),
    "a complex sine": (lambda x: sp.sin(sp.I + x), lambda x: mpmath.sin(x + 1j)),
    "a logarithm below 0": (lambda x: sp.log(-abs(x)), lambda x: mpmath.log(-abs(x))),
}


@pytest.mark.parametrize(("function", "exact"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_the_value_at_an_exact_argument_lies_within(function, exact):
    """Of dyadic arguments, which an interval of width 0 holds; the small ones lay outside mpmath's exp and atan."""
    random, expr = generator("dyadic arguments"), function(t)
    for _ in range(200):
        top, places = int(random.integers(1, 2**24)), int(random.integers(18, 50))
        x = Rational(int(random.choice([-1, 1])) * top, 2**places)
        found = enclose(expr, {t: x}, 64)
        with mpmath.workprec(400):
            value = exact(mpmath.mpf(int(x.p)) / int(x.q))
            parts = [(found.real, value.real), (found.imag, value.imag)]
            for interval, part in parts:
                low, high = mpmath.mpf(interval.a._mpi_[0]), mpmath.mpf(interval.b._mpi_[1])
                assert low <= part <= high and high - low <= 2.0**-40 * (1 + abs(value) ** 2), x


@pytest.mark.parametrize("function", [sp.gamma, sp.factorial, sp.atan, sp.asinh])
def test_of_a_complex_number_it_is_not_enclosed(function):
    with pytest.raises(Unknown):
        enclose(function(t), {t: 1 + sp.I})
