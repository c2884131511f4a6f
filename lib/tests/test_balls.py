"""Ball arithmetic: what it encloses lies within, on every path of every rule; and what it cannot enclose it says."""

import math

import mpmath
import numpy as np
import pytest
import torch
from torch.func import jacrev, vmap

from smalltorch.attention import attention, causal_mask
from smalltorch.engine.balls import APART, AROUND, Astray, Unknown, enclosed
from smalltorch.engine.rounding import UNIT
from smalltorch.engine.sample import generator, normal
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
    "a branch": lambda x: 2 * x if x.amax() > 0 else x,
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
    "complex": lambda x: torch.view_as_complex(x.reshape(1, 4, 4, 2)).abs(),
    "a norm of order 1/2": lambda x: x.norm(p=0.5, dim=-1),
    "written elsewhere": lambda x: torch.add(x, x, out=torch.empty_like(x)),
    "a norm of order 1.1": lambda x: x.norm(p=1.1, dim=-1),
    "torch's attention": lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None]),
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


# -- every rule against arithmetic of 60 digits, at points within the ball of the input -------------------------------


def each(f):
    """A function of one number, for an array of mpmath's."""
    return np.frompyfunc(f, 1, 1)


def rows(f):
    """A function of a row, for an array of one row."""
    return lambda x: np.array([f(list(x[0]))], dtype=object)


def mp_softmax(x):
    weights = [mpmath.exp(v - max(x)) for v in x]
    return [w / sum(weights) for w in weights]


def mp_norm(order):
    return lambda x: sum(abs(v) ** order for v in x) ** (mpmath.mpf(1) / order)


def mp_variance(correction):
    return lambda x: sum((v - sum(x) / len(x)) ** 2 for v in x) / (len(x) - correction)


def as_float(x):
    return mpmath.mpf(float(x))


WEIGHTS = torch.linspace(-1.5, 2.25, 6, dtype=torch.float64)
with mpmath.workdps(60):
    third, tenth = mpmath.mpf(1) / 3, mpmath.mpf(1) / 10
RULES = {
    "x + 0.1": (lambda x: x + 0.1, lambda x: x + tenth),
    "0.1 − x": (lambda x: 0.1 - x, lambda x: tenth - x),
    "x − 0.1 x'": (lambda x: torch.sub(x, x.flip(-1), alpha=0.1), lambda x: x - tenth * x[:, ::-1]),
    "0.1 x": (lambda x: 0.1 * x, lambda x: tenth * x),
    "large constants": (lambda x: x * 1e23 + 8589934592.1, lambda x: x * 10**23 + 8589934592 + tenth),
    "filled with 2⁵³ + 1": (
        lambda x: x.masked_fill(torch.arange(6) == 2, 9007199254740993.0),
        rows(lambda x: [*x[:2], mpmath.mpf(2) ** 53 + 1, *x[3:]]),
    ),
    "a constant of float32": (lambda x: x * torch.tensor(100.1).double(), lambda x: x * 1001 / 10),
    "a whole number": (lambda x: x + torch.tensor(2**53 + 1), lambda x: x + 2**53 + 1),
    "x x'": (lambda x: x * x.flip(-1), lambda x: x * x[:, ::-1]),
    "x/3": (lambda x: x / 3, lambda x: x / 3),
    "x/x'": (lambda x: x / x.flip(-1), lambda x: x / x[:, ::-1]),
    "1/x": (lambda x: x.reciprocal(), lambda x: 1 / x),
    "|−x|": (lambda x: (-x).abs(), abs),
    "ReLU": (torch.relu, each(lambda v: max(v, 0))),
    "clamp": (lambda x: x.clamp(-0.1, 0.1), each(lambda v: min(max(v, -tenth), tenth))),
    "clamp by a tensor": (lambda x: x.clamp(min=0 * x + 0.1), each(lambda v: max(v, tenth))),
    "clamp_min": (lambda x: x.clamp(min=0.1), each(lambda v: max(v, tenth))),
    "clamp_max": (lambda x: x.clamp(max=0.1), each(lambda v: min(v, tenth))),
    "hardtanh": (lambda x: F.hardtanh(x, -0.1, 0.1), each(lambda v: min(max(v, -tenth), tenth))),
    "maximum": (lambda x: torch.maximum(x, 0 * x + 0.1), each(lambda v: max(v, tenth))),
    "x³": (lambda x: x**3, lambda x: x**3),
    "x²": (torch.square, lambda x: x**2),
    "x⁻²": (lambda x: x**-2, lambda x: x**-2),
    "x⁷": (lambda x: x**7, lambda x: x**7),
    "|x|^(1/3)": (lambda x: x.abs() ** (1 / 3), each(lambda v: abs(v) ** third)),
    "|x|^−0.1": (lambda x: x.abs() ** -0.1, each(lambda v: abs(v) ** -tenth)),
    "|x|^x": (lambda x: x.abs() ** x, each(lambda v: abs(v) ** v)),
    "1.1^x": (lambda x: 1.1**x, each(lambda v: (1 + tenth) ** v)),
    "exp": (torch.exp, each(mpmath.exp)),
    "expm1": (torch.expm1, each(mpmath.expm1)),
    "log": (lambda x: x.abs().log(), each(lambda v: mpmath.log(abs(v)))),
    "log1p": (lambda x: x.abs().log1p(), each(lambda v: mpmath.log1p(abs(v)))),
    "log2": (lambda x: x.abs().log2(), each(lambda v: mpmath.log(abs(v), 2))),
    "log10": (lambda x: x.abs().log10(), each(lambda v: mpmath.log(abs(v), 10))),
    "sqrt": (lambda x: x.abs().sqrt(), each(lambda v: mpmath.sqrt(abs(v)))),
    "rsqrt": (lambda x: x.abs().rsqrt(), each(lambda v: 1 / mpmath.sqrt(abs(v)))),
    "tanh": (torch.tanh, each(mpmath.tanh)),
    "sigmoid": (torch.sigmoid, each(lambda v: 1 / (1 + mpmath.exp(-v)))),
    "erf": (torch.erf, each(mpmath.erf)),
    "atan": (torch.atan, each(mpmath.atan)),
    "asinh": (torch.asinh, each(mpmath.asinh)),
    "sinh": (torch.sinh, each(mpmath.sinh)),
    "cosh": (torch.cosh, each(mpmath.cosh)),
    "sin": (torch.sin, each(mpmath.sin)),
    "cos": (torch.cos, each(mpmath.cos)),
    "GELU": (F.gelu, each(lambda v: v * mpmath.ncdf(v) if abs(v) < 1e6 else max(v, 0))),
    "SiLU": (F.silu, each(lambda v: v / (1 + mpmath.exp(-v)))),
    "sum": (lambda x: x.sum(-1), rows(sum)),
    "cumsum": (lambda x: x.cumsum(-1), lambda x: np.cumsum(x, 1)),
    "mean": (lambda x: x.mean(-1), rows(lambda x: sum(x) / len(x))),
    "prod": (lambda x: x.prod(-1), rows(mpmath.fprod)),
    "variance": (lambda x: x.var(-1), rows(mp_variance(1))),
    "variance, a third less": (lambda x: x.var(-1, correction=1 / 3), rows(mp_variance(third))),
    "deviation": (lambda x: x.std(-1, correction=0), rows(lambda x: mpmath.sqrt(mp_variance(0)(x)))),
    "norm": (lambda x: x.norm(dim=-1), rows(mp_norm(2))),
    "sum of sizes": (lambda x: x.norm(p=1, dim=-1), rows(mp_norm(1))),
    "norm of order 3": (lambda x: x.norm(p=3, dim=-1), rows(mp_norm(3))),
    "norm of order 1.5": (lambda x: x.norm(p=1.5, dim=-1), rows(mp_norm(mpmath.mpf(1.5)))),
    "largest size": (lambda x: x.norm(p=math.inf, dim=-1), rows(lambda x: max(map(abs, x)))),
    "amax": (lambda x: x.amax(-1), rows(max)),
    "max": (lambda x: x.max(-1).values, rows(max)),
    "sort": (lambda x: x.sort(-1).values, rows(sorted)),
    "median": (lambda x: x.median(-1).values, rows(lambda x: sorted(x)[2])),
    "aminmax": (lambda x: x.aminmax(dim=-1).max - x.amin(-1), rows(lambda x: max(x) - min(x))),
    "softmax": (lambda x: x.softmax(-1), rows(mp_softmax)),
    "log-softmax": (lambda x: x.log_softmax(-1), rows(lambda x: [mpmath.log(p) for p in mp_softmax(x)])),
    "log-sum-exp": (
        lambda x: x.logsumexp(-1), rows(lambda x: max(x) + mpmath.log(sum(mpmath.exp(v - max(x)) for v in x)))
    ),
    "a matrix and a vector": (lambda x: x @ WEIGHTS, lambda x: (x * each(as_float)(WEIGHTS.numpy())).sum(1)),
    "a vector and a vector": (lambda x: (x[0] @ x[0])[None], lambda x: (x * x).sum(1)),
    "a matrix and a matrix": (lambda x: (x.reshape(1, 2, 3) @ x.reshape(1, 3, 2)).flatten(1),
                              lambda x: (x.reshape(2, 3) @ x.reshape(3, 2)).reshape(1, 4)),
    "an affine map": (lambda x: torch.addmm(x[:, :1], x, x.mT), lambda x: x[:, :1] + x @ x.T),
    "a singular value": (lambda x: torch.linalg.svdvals(x[:, None]).flatten(1), rows(lambda x: [mp_norm(2)(x)])),
    "an eigenvalue": (
        lambda x: torch.linalg.eigvalsh(x[..., None] * x[:, None])[:, -1], rows(lambda x: sum(v * v for v in x))
    ),
    "padded": (lambda x: F.pad(x, (0, 1), value=0.1), lambda x: np.append(x, [[tenth]], 1)),
    "filled": (lambda x: x.masked_fill(torch.arange(6) == 2, 0.1), rows(lambda x: [*x[:2], tenth, *x[3:]])),
    "whole numbers among others": (
        lambda x: torch.where(torch.arange(6) == 2, torch.tensor(-(2**53) - 1), x),
        rows(lambda x: [*x[:2], -mpmath.mpf(2) ** 53 - 1, *x[3:]]),
    ),
    "a slope": (lambda x: jacrev(lambda y: torch.relu(y).square().sum())(x), each(lambda v: 2 * max(v, 0))),
    "a slope of softmax": (
        lambda x: jacrev(lambda y: y.softmax(-1)[0, 0])(x),
        rows(lambda x: [mp_softmax(x)[0] * ((k == 0) - p) for k, p in enumerate(mp_softmax(x))]),
    ),
    "linspace": (lambda x: 0 * x + torch.linspace(-1, 1, 6).double()[2], lambda x: 0 * x - 2 * tenth),
    "written": (lambda x: x.clone().mul_(0.1).add_(0.1).clamp_(max=0.1), each(lambda v: min(tenth * v + tenth, tenth))),
}  # fmt: skip
SIZES = {
    "ordinary": normal("ordinary", 1, 6),
    "small": 1e-3 * normal("small", 1, 6),
    "near 1": 1 + 1e-9 * normal("near 1", 1, 6),
    "large": 300 * normal("large", 1, 6),
    "huge": 1e160 * normal("huge", 1, 6),
    "largest": 1e307 * normal("largest", 1, 6),
    "tiny": 1e-200 * normal("tiny", 1, 6),
    "denormal": 1e-310 * normal("denormal", 1, 6),
    "of all sizes": normal("of all sizes", 1, 6) * 10 ** torch.tensor([[0, 100, -100, 9, -9, -320]]).double(),
    "with zeros": torch.tensor([[0.0, -0.0, 1.0, -2.5, 0.1, 3.0]], dtype=torch.float64),
    "nothing but zeros": torch.tensor([[0.0, -0.0, 0.0, 0.0, -0.0, 0.0]], dtype=torch.float64),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("side", "exact"), RULES.values(), ids=RULES)
def test_exact_arithmetic_lies_within_every_rule(side, exact, size):
    """There may be no bound, and no more than that, where numbers overflow, underflow or divide by 0."""
    x = SIZES[size]
    try:
        ball = enclosed(side, x)
    except (Astray, torch.linalg.LinAlgError):
        assert size != "ordinary"
        return
    if size == "ordinary":
        assert (ball.radius < 1e-6 * (1 + ball.centre.abs())).all() or ball.centre.abs().max() > 1e15
    bounded = [math.isfinite(r) for r in ball.radius.flatten().tolist()]
    with mpmath.workdps(60):
        away = AROUND * mpmath.mpf(UNIT) * as_float(x.abs().max())
        for k in range(5):
            moves = generator(f"point {k}").choice([-1, 0, 0.5, 1], 6) if k else np.zeros(6)
            point = np.array([[as_float(v) + away * as_float(move) for v, move in zip(x[0], moves, strict=True)]])
            try:
                values = np.ravel(exact(point)).tolist()
            except (ZeroDivisionError, ValueError, OverflowError):
                assert not all(bounded)
                continue
            for value, centre, radius, known in zip(
                values, ball.centre.flatten().tolist(), ball.radius.flatten().tolist(), bounded, strict=True
            ):
                assert not known or abs(value - as_float(centre)) <= APART * as_float(radius)


# -- what decides, and is not exact -----------------------------------------------------------------------------------


def thirds(x):
    """Two numbers that are equal but for rounding."""
    return 0.1 * x[:, 0] + 0.2 * x[:, 0], 0.3 * x[:, 0]


SMALL, LARGE = torch.tensor([3 * [1e-217]], dtype=torch.float64), torch.tensor([3 * [1e200]], dtype=torch.float64)
DECIDED = {
    "a product that overflows": (LARGE, lambda x: x[:, 0] * x[:, 1] > 1.0),
    "a sum that overflows": (1e108 * LARGE, lambda x: x[:, 0] + x[:, 1] > 1.0),
    "what is infinite by overflow": (LARGE, lambda x: torch.isinf(x[:, 0] * x[:, 1])),
    "the inverse of infinity": (LARGE, lambda x: 1 / (x[:, 0] * x[:, 1]) == 0),
    "exp that underflows": (LARGE, lambda x: torch.exp(-x[:, 0]) == 0),
    "a product that underflows": (SMALL, lambda x: x.prod(-1) == 0),
    "a cube that underflows": (SMALL, lambda x: x[:, 0] ** 3 == 0),
    "a norm that underflows": (SMALL, lambda x: x.norm(dim=-1) == 0),
    "a variance that underflows": (SMALL, lambda x: (x * torch.arange(3)).var(-1) == 0),
    "a determinant that underflows": (SMALL, lambda x: torch.linalg.det(torch.diag_embed(x)) == 0),
    "nan_to_num": (LARGE, lambda x: (x[:, 0] * x[:, 1]).nan_to_num(0, 0, 0)),
    "the place of the largest": (X[0], lambda x: torch.stack(thirds(x), -1).argmax(-1)),
    "the place in an order": (X[0], lambda x: torch.stack(thirds(x), -1).sort(-1).indices),
    "how many differ": (X[0], lambda x: torch.stack(thirds(x)).unique()),
    "the bits": (X[0], lambda x: thirds(x)[0].view(torch.int64).clone().view(torch.float64)),
    "floor": (X[0], lambda x: (0.1 * x / x * 30).floor()),
    "a whole quotient": (X[0], lambda x: torch.div(x / x, 0.1, rounding_mode="floor")),
    "whether all are 0": (X[0], lambda x: (thirds(x)[0] - thirds(x)[1]).any(-1, keepdim=True)),
    "a remainder": (X[0], lambda x: torch.remainder(x / x, 0.1)),
    "a number that Python reads": (X[0], lambda x: x if float(thirds(x)[0][0]) > float(thirds(x)[1][0]) else 2 * x),
    "whether they are one": (X[0], lambda x: x * (float(thirds(x)[0][0]) == float(thirds(x)[1][0]))),
    "random numbers": (X[0], torch.rand_like),
    "complex numbers": (X[0], lambda x: torch.complex(*thirds(x)).real > thirds(x)[1]),
    "an estimate without a bound": (X[0], lambda x: torch.lgamma(x) * (1 / (x - x))),
    "whole numbers that overflow": (X[0], lambda x: x * torch.arange(1, 30).prod()),
    "whole numbers to the power": (X[0], lambda x: x * (torch.tensor(3) ** torch.tensor([50]))),
    "small whole numbers": (X[0], lambda x: x * torch.tensor([100], dtype=torch.int8).mul_(2)),
    "whole numbers made small": (X[0], lambda x: x * torch.tensor([2**40]).to(torch.int32)),
    "whole numbers shifted": (X[0], lambda x: x * (torch.tensor([1]) << 63)),
    "another layout": (X[0], lambda x: x.to_sparse().to_dense()),
}


@pytest.mark.parametrize(("x", "side"), DECIDED.values(), ids=DECIDED)
def test_what_decides_by_what_is_not_exact(x, side):
    """A comparison, a place, a whole number that overflow, underflow or rounding may turn is no step to certainty."""
    with pytest.raises(Astray):
        enclosed(lambda x: side(x).double() * 1.0, x)


def test_what_is_exact_may_decide():
    masked = X.masked_fill(X < 0, -math.inf)
    for side in (
        lambda x: (masked == -math.inf).double(),
        lambda x: (0 * x == 0).double(),
        lambda x: x.sort(-1).values,
        lambda x: (x * torch.arange(8)) ** (torch.tensor(2) ** torch.tensor(1)),
        lambda x: (9 + x).floor(),
        lambda x: x * float(torch.tensor(2.0).double()),
        lambda x: (x - 0.0).where(x.any(-1, keepdim=True), 0),
    ):
        assert enclosed(side, X).radius.isfinite().all()
