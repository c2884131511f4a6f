"""Ball arithmetic: what it encloses lies within, on every path of every rule; and what it cannot enclose it says."""

import math

import mpmath
import pytest
import torch
from torch.func import jacrev, vmap

from smalltorch.attention import attention, causal_mask
from smalltorch.engine.balls import AROUND, Astray, Unknown, enclosed
from smalltorch.engine.rounding import UNIT
from smalltorch.engine.sample import normal
from smalltorch.norm import layer_norm, rms_norm

X = normal("balls", 1, 4, 8)
W = normal("weights", 8, 8)
F = torch.nn.functional


def written(x):
    y = x.clone()
    y[:, 0] = y[:, 1]
    return y.mul_(0.3).add_(1.0).sub_(x)


ENCLOSED = {
    "sums": lambda x: (x + 0.1) - 3 * x,
    "from a constant": lambda x: 2.5 - x,
    "a product": lambda x: x * x.flip(-1),
    "a quotient": lambda x: x / (x.flip(-1) + 9),
    "a reciprocal": lambda x: 1 / x,
    "a norm": lambda x: x.norm(dim=-1),
    "a sum of sizes": lambda x: x.norm(p=1, dim=-1),
    "softmax": lambda x: x.softmax(-1),
    "its logarithm": lambda x: x.log_softmax(-1),
    "log-sum-exp": lambda x: x.logsumexp(-1),
    "masked": lambda x: x.masked_fill(x < 0, -math.inf).softmax(-1),
    "LayerNorm": lambda x: layer_norm(x, eps=0.0),
    "RMSNorm": rms_norm,
    "attention": lambda x: attention(x, x, x, mask=causal_mask(4))[0],
    "an affine map": lambda x: F.linear(x, W, W[0]),
    "a matrix": lambda x: x @ W,
    "singular values": torch.linalg.svdvals,
    "eigenvalues": lambda x: torch.linalg.eigvalsh(x @ x.mT),
    "a variance": lambda x: (x + 3).var(-1),
    "a deviation": lambda x: x.std(-1, correction=0),
    "a mean": lambda x: x.mean((1, 2)),
    "a cube": lambda x: x**3,
    "a root": lambda x: x.abs() ** 0.5,
    "a power below 0": lambda x: x.abs() ** -1.5,
    "exp": torch.exp,
    "log": lambda x: x.abs().log(),
    "tanh": torch.tanh,
    "cosh": torch.cosh,
    "sin": torch.sin,
    "cos": torch.cos,
    "GELU": F.gelu,
    "SiLU": F.silu,
    "ReLU": lambda x: torch.relu(x + 0.1),
    "the larger": lambda x: torch.maximum(x, 0.3 - x),
    "the span": lambda x: x.amax(-1) - x.amin(-1),
    "cases": lambda x: torch.where(x > 0, x, 0.1 * x),
    "moved about": lambda x: torch.cat([x[:, [1, 0]], torch.stack([x[:, 0], 2 * x[:, 1]], 1)], 1),
    "padded": lambda x: F.pad(x, (0, 0, 0, 3), value=0.1),
    "written in place": written,
    "a Jacobian": lambda x: vmap(jacrev(lambda y: (3 * y).softmax(-1)))(x[:, 0]),
    "that of LayerNorm": lambda x: vmap(jacrev(layer_norm))(x[:, 0]),
    "a sign": torch.sign,
    "cancellation": lambda x: (x + 1e10) - 1e10,
    "a branch": lambda x: 2 * x if float(x.amax()) > 0 else x,
}


@pytest.mark.parametrize("side", ENCLOSED.values(), ids=ENCLOSED)
def test_what_inputs_nearby_give_lies_within(side):
    ball, change = enclosed(side, X), AROUND * UNIT * X.abs().max()
    for k in range(60):
        nudged = X + change * normal(f"nudge {k}", *X.shape).sign()
        assert ((side(nudged) - ball.centre).abs() <= 1.001 * ball.radius + 4 * UNIT * ball.centre.abs()).all()
    assert (ball.radius <= 1e-5 * (1 + ball.centre.abs())).all()


EXACT = {
    "exp": (torch.exp, mpmath.exp),
    "log": (lambda x: (9 + x).log(), lambda x: mpmath.log(9 + x)),
    "tanh": (torch.tanh, mpmath.tanh),
    "sqrt": (lambda x: (9 + x).sqrt(), lambda x: mpmath.sqrt(9 + x)),
    "a power": (lambda x: (9 + x) ** 2.5, lambda x: (9 + x) ** mpmath.mpf(2.5)),
    "a third": (lambda x: x / 3, lambda x: x / 3),
    "1 − cos": (lambda x: 1 - (1e-6 * x).cos(), lambda x: 1 - mpmath.cos(x / 10**6)),
    "to 10¹² and back": (lambda x: (x + 1e12) - 1e12, lambda x: x),
    "through 10¹²": (lambda x: (x + 1e12) ** 2 - 1e24 - 2e12 * x, lambda x: x**2),
}


@pytest.mark.parametrize(("side", "exact"), EXACT.values(), ids=EXACT)
def test_the_exact_value_lies_within(side, exact):
    ball = enclosed(side, X)
    with mpmath.workdps(60):
        values = zip(X.flatten().tolist(), ball.centre.flatten().tolist(), ball.radius.flatten().tolist(), strict=True)
        assert all(abs(exact(mpmath.mpf(x)) - centre) <= radius for x, centre, radius in values)


UNKNOWN = {
    "no rule": lambda x: torch.linalg.det(x @ x.mT),
    "rounded": lambda x: x.round(),
    "complex": lambda x: torch.view_as_complex(x.reshape(1, 4, 4, 2)).abs(),
    "a place": lambda x: x.max(-1).values,
    "a norm of order 1/2": lambda x: x.norm(p=0.5, dim=-1),
    "written elsewhere": lambda x: torch.add(x, x, out=torch.empty_like(x)),
    "an exponent that varies": lambda x: x.abs() ** x,
}
ASTRAY = {
    "whole": lambda x: x.long().double(),
    "single precision": lambda x: x.float().double(),
    "NumPy": lambda x: torch.from_numpy(x.numpy() * 2),
    "a list": lambda x: torch.tensor(x.tolist(), dtype=torch.float64),
    "read by Python": lambda x: x * float(x.max()),
    "a comparison that rounding decides": lambda x: (0.1 * x + 0.2 * x > 0.3 * x).double(),
}


@pytest.mark.parametrize("side", UNKNOWN.values(), ids=UNKNOWN)
def test_what_has_no_rule(side):
    with pytest.raises(Unknown) as refusal:
        enclosed(side, X)
    assert not isinstance(refusal.value, Astray)


@pytest.mark.parametrize("side", ASTRAY.values(), ids=ASTRAY)
def test_what_leaves_no_trace(side):
    with pytest.raises(Astray):
        enclosed(side, X)


@pytest.mark.parametrize(
    "side",
    [lambda x: 1 / (x - x), lambda x: (x - x - 1e-16).sqrt().nan_to_num(0), lambda x: (x - x).abs() ** -0.5],
    ids=["1/0", "a root below 0", "a power of 0"],
)
def test_what_may_be_anything_has_no_bound(side):
    try:
        assert enclosed(side, X).radius.isinf().all()
    except Unknown:
        pass


def test_short_constants_are_exact():
    def constant(c):
        return enclosed(lambda x: torch.full_like(x, c), X).radius.max()

    assert constant(0.25) == constant(3.0) == 0 < constant(0.1) <= UNIT
