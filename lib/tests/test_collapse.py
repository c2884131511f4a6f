"""Measures of collapse, propagation to many decades below one, and sums over paths."""

import math

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from smalltorch import collapse
from smalltorch.attention import attention, causal_mask, softmax
from smalltorch.engine.sample import generator, normal
from smalltorch.norm import layer_norm

sizes = st.tuples(st.integers(1, 6), st.integers(1, 5), st.integers(1, 3), st.integers(0, 10**6))


def network(n, d, heads, seed, layers=None):
    shape = (heads, d, d) if layers is None else (layers, heads, d, d)
    name = f"collapse {seed}"
    return normal(name, n, d), normal(name + "QK", *shape) / d, normal(name + "VO", *shape) / d**0.5


def dense(X, W_QK, W_VO):
    return (softmax(X[..., None, :, :] @ W_QK @ X[..., None, :, :].mT) @ X[..., None, :, :] @ W_VO).sum(-3)


# --- measures ---------------------------------------------------------------------------------------------------------


@given(sizes)
def test_the_residual_is_the_projection_off_the_constants(size):
    n, d, _, seed = size
    X = normal(f"X{seed}", 2, n, d)
    Pi = torch.eye(n, dtype=X.dtype) - 1 / n
    torch.testing.assert_close(collapse.residual(X), Pi @ X)
    other = X - X.mean(-2, keepdim=True) - 0.1 * normal(f"shift{seed}", 2, 1, d)
    assert (torch.linalg.matrix_norm(collapse.residual(X)) <= torch.linalg.matrix_norm(other) + 1e-12).all()


def test_measures_of_known_states():
    same, opposite = torch.ones(4, 3).double(), torch.tensor([[1.0, 2.0], [-1.0, -2.0]])
    assert collapse.relative_residual(same) == 0 and collapse.relative_residual(opposite) == 1
    assert collapse.mean_cosine(same) == pytest.approx(1) and collapse.mean_cosine(opposite) == pytest.approx(-1)
    assert collapse.stable_rank(same) == pytest.approx(1)
    assert collapse.stable_rank(torch.eye(5)) == pytest.approx(5)
    assert collapse.composite_norm(torch.tensor([[1.0, -2.0], [3.0, 0.0]])) == pytest.approx(math.sqrt(4 * 3))


@given(sizes)
def test_measures_against_their_definitions(size):
    n, d, _, seed = size
    X = normal(f"measures{seed}", n + 1, d)
    numpy = X.numpy()
    cosines = [
        numpy[i] @ numpy[j] / np.linalg.norm(numpy[i]) / np.linalg.norm(numpy[j])
        for i in range(n + 1)
        for j in range(n + 1)
        if i != j
    ]
    assert collapse.mean_cosine(X) == pytest.approx(np.mean(cosines), abs=1e-9)
    assert collapse.stable_rank(X) == pytest.approx((np.linalg.norm(numpy) / np.linalg.norm(numpy, 2)) ** 2)
    composite = math.sqrt(np.linalg.norm(numpy, 1) * np.linalg.norm(numpy, np.inf))
    assert collapse.composite_norm(X) == pytest.approx(composite)
    assert composite >= np.linalg.norm(numpy, 2) - 1e-12


@given(sizes)
def test_the_spread_is_the_largest_distance(size):
    n, d, _, seed = size
    X = normal(f"spread{seed}", 2, n, d)
    torch.testing.assert_close(collapse.spread(X), torch.cdist(X, X).amax((-2, -1)), rtol=1e-6, atol=1e-7)


def test_a_layer_is_attention_of_every_head():
    X, W_QK, W_VO = network(4, 3, 2, 4)
    mask = causal_mask(4)
    expected = sum(attention(X @ W_QK[h] * 3**0.5, X, X, mask=mask)[0] @ W_VO[h] for h in range(2))
    torch.testing.assert_close(collapse.layer(X, W_QK, W_VO, mask), expected)
    torch.testing.assert_close(collapse.layer(X, W_QK, W_VO), dense(X, W_QK, W_VO))


def test_the_relative_residual_of_a_split_state():
    state = collapse.split(normal("relative", 2, 4, 3))
    found = collapse.log_relative_residual(state)
    torch.testing.assert_close(found.exp(), collapse.relative_residual(collapse.join(state)))
    far = state._replace(log_scale=torch.full((2,), -5000.0).double())
    torch.testing.assert_close(collapse.log_relative_residual(far), -5000 - (2 * far.mean.norm(dim=-1)).log())
    with pytest.raises(ValueError, match="not all zero"):
        collapse.log_relative_residual(collapse.split(torch.zeros(3, 2)))


MEASURES = {  # and by how many powers of the scale they grow
    collapse.relative_residual: 0,
    collapse.mean_cosine: 0,
    collapse.stable_rank: 0,
    collapse.spread: 1,
    collapse.composite_norm: 1,
}
EXTREMES = [(torch.float64, k) for k in (-1000, -530, 530, 1000)] + [(torch.float32, k) for k in (-120, -67, 67, 120)]


@pytest.mark.parametrize("measure", MEASURES, ids=lambda f: f.__name__)
@pytest.mark.parametrize(("dtype", "power"), EXTREMES)
def test_measures_are_free_of_scale(measure, dtype, power):
    """Of a power of two nothing is rounded; 2^530 is 1e160, and its square no float."""
    X = normal("free of scale", 2, 4, 3).to(dtype)
    expected = measure(X) * 2.0 ** (power * MEASURES[measure])
    torch.testing.assert_close(
        measure(X * 2.0**power), expected, rtol=1e-14 if dtype == torch.float64 else 1e-6, atol=0
    )


@pytest.mark.parametrize(("dtype", "power"), EXTREMES)
def test_states_split_at_any_scale(dtype, power):
    X = normal("split at any scale", 2, 4, 3).to(dtype)
    expected, found = collapse.split(X), collapse.split(X * 2.0**power)
    assert torch.equal(found.mean, expected.mean * 2.0**power) and torch.equal(found.direction, expected.direction)
    torch.testing.assert_close(found.log_scale, expected.log_scale + power * math.log(2))
    relative = collapse.log_relative_residual(expected)
    torch.testing.assert_close(collapse.log_relative_residual(found), relative, rtol=0, atol=1e-5)
    far = collapse.Split(expected.mean * 2.0**power, expected.direction, expected.log_scale)
    torch.testing.assert_close(
        collapse.log_relative_residual(far).clamp(max=0), expected_far(far, power), rtol=1e-5, atol=1e-5
    )


def expected_far(state, power):
    """Where the mean outweighs the residual, or is nothing beside it."""
    mean = (state.mean / 2.0**power).norm(dim=-1).log() + math.log(2) * (1 + power)
    return (state.log_scale - mean).clamp(max=0)


def test_a_difference_may_be_small_beside_the_states():
    X = torch.tensor([[1.0, 1e-200], [1.0, 0.0]], dtype=torch.float64)
    for found, expected in (
        (collapse.spread(X), 1e-200),
        (collapse.relative_residual(X), 0.5e-200),
        (collapse.spread(X * 1e250), 1e50),
    ):
        assert float(found) == pytest.approx(expected, rel=1e-12, abs=0)
    big = torch.full((3, 2), 1.7e308, dtype=torch.float64)
    assert collapse.residual(big).abs().max() < 1e293 and collapse.relative_residual(big) < 1e-15


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_types_are_computed_in_float32(dtype):
    X = (300 * normal("halves", 2, 4, 3)).to(dtype)
    for measure in MEASURES:
        assert torch.equal(measure(X), measure(X.float()))
    assert collapse.residual(X).dtype == dtype and torch.equal(
        collapse.split(X).direction, collapse.split(X.float())[1]
    )
    W = (normal("halves W", 1, 3, 3) / 300).to(dtype)
    out = collapse.layer(X, W, W)
    assert out.dtype == dtype and torch.equal(out, collapse.layer(X.float(), W.float(), W.float()).to(dtype))


def test_the_composite_norm_is_no_norm():
    A, B = torch.tensor([[1.0, 1.0], [0.0, 0.0]]), torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    assert collapse.composite_norm(A + B) > collapse.composite_norm(A) + collapse.composite_norm(B)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: collapse.residual(torch.ones(3)), "X: expected shape"),
        (lambda: collapse.relative_residual(torch.zeros(2, 3)), "not all zero"),
        (lambda: collapse.stable_rank(torch.zeros(2, 3)), "not all zero"),
        (lambda: collapse.mean_cosine(torch.ones(1, 3)), "at least two tokens"),
        (lambda: collapse.mean_cosine(torch.tensor([[1.0], [0.0]])), "none of them zero"),
        (lambda: collapse.attend(collapse.split(torch.ones(2, 3)), torch.ones(1, 2, 2), torch.ones(1, 3, 3)), "W_QK"),
        (
            lambda: collapse.attend(collapse.split(torch.ones(2, 3) / 0), torch.ones(1, 3, 3), torch.ones(1, 3, 3)),
            "expected finite",
        ),
        (lambda: collapse.residual(torch.ones(2, 3).long()), "X: expected floating-point entries, got torch.int64"),
        (lambda: collapse.spread(torch.ones(0, 3)), "X: expected no empty axis"),
        (lambda: collapse.stable_rank(torch.tensor([[math.nan, 1.0]])), "X: expected finite entries, got nan"),
        (lambda: collapse.layer(torch.ones(2, 3), EYE, EYE.double()), "W_VO: expected entries of torch.float32"),
        (lambda: collapse.layer(1e30 * torch.ones(2, 3), EYE, EYE), "X, W_QK: expected sizes whose products"),
        (lambda: collapse.layer(torch.ones(2, 3), EYE, EYE, causal_mask(4)), "mask: expected shape"),
        (lambda: collapse.join(torch.ones(2, 3)), "state: expected a Split, got Tensor"),
        (
            lambda: collapse.join(STATE._replace(log_scale=torch.tensor(100.0))),
            "state.log_scale: expected numbers below 88",
        ),
        (lambda: collapse.join(STATE._replace(log_scale=torch.tensor(math.nan))), "log_scale: .* got nan"),
        (lambda: collapse.join(STATE._replace(mean=torch.ones(4))), "state.direction: expected shape"),
        (lambda: collapse.add(STATE, collapse.split(torch.eye(4)[:, :3])), "other.direction: expected shape"),
        (
            lambda: collapse.attend(STATE._replace(log_scale=torch.tensor(60.0)), EYE, EYE),
            "state, W_QK: expected sizes",
        ),
        (
            lambda: collapse.attend(STATE, EYE.expand(9, 3, 3), 3e38 * EYE.expand(9, 3, 3)),
            "state, W_VO: expected sizes",
        ),
        (lambda: collapse.normalise(STATE, -1.0), "eps: expected a finite number of at least 0, got -1.0"),
        (lambda: collapse.normalise(STATE._replace(mean=torch.ones(3)), 0.0), "state: expected tokens and a mean"),
        (lambda: collapse.mlp(STATE, EYE[0], torch.ones(3), EYE[0].long(), torch.ones(3)), "W_2: expected floating"),
        (lambda: collapse.with_skip(torch.ones(1, 1, 2, 2), torch.ones(1, 1, 3, 3).int()), "W: expected floating"),
        (lambda: collapse.all_paths(2, 0), "heads: expected an integer of at least 1, got 0"),
        (lambda: collapse.all_paths(100, 4), r"layers, heads: expected at most 2\^24 paths, got 4\^100"),
        (lambda: collapse.sample_paths(2, torch.tensor([0.5, 0.6]), 3, generator("x")), "sum 1"),
        (lambda: collapse.sample_paths(0, torch.ones(1), 3, generator("x")), "layers: expected an integer"),
        (lambda: collapse.sample_paths(2, torch.ones(1), 3, 7), "rng: expected a Generator, got int"),
        (lambda: collapse.path_terms(*_layers(2), torch.tensor([[0, 2]])), "heads from 0 to 1"),
        (lambda: collapse.path_terms(*_layers(2), torch.tensor([[0.0, 1.0]])), "paths: expected integers"),
    ],
)
def test_errors_name_the_argument(unenforced, call, message):
    with pytest.raises(ValueError, match=message):
        call()


EYE = torch.eye(3)[None]
STATE = collapse.split(torch.eye(3)[:2])


def _layers(layers):
    X, _, W = network(4, 3, 2, 7, layers)
    return X, normal("P", layers, 2, 4, 4).softmax(-1), W


# --- propagation ------------------------------------------------------------------------------------------------------


@given(sizes, st.floats(-3, 2))
def test_propagation_agrees_with_matrices_where_these_can_follow(size, decade):
    n, d, heads, seed = size
    X, W_QK, W_VO = network(n, d, heads, seed)
    X = X.mean(0) + 10**decade * X
    state = collapse.split(X)
    torch.testing.assert_close(collapse.join(state), X)
    out = collapse.attend(state, W_QK, W_VO)
    expected = dense(X, W_QK, W_VO)
    close = {"rtol": 1e-9, "atol": 1e-9 * float(X.abs().max())}
    torch.testing.assert_close(collapse.join(out), expected, **close)
    torch.testing.assert_close(collapse.join(collapse.add(state, out)), X + expected, **close)
    torch.testing.assert_close(collapse.join(collapse.normalise(state)), layer_norm(X), rtol=1e-7, atol=1e-7)
    W_1, W_2, b = normal("W_1", d, 4), normal("W_2", 4, d), normal("b", 4)
    torch.testing.assert_close(
        collapse.join(collapse.mlp(state, W_1, b, W_2, b[0].expand(d))), torch.relu(X @ W_1 + b) @ W_2 + b[0], **close
    )


def exact_residual(mean, R, scale, W_QK, W_VO, layers):
    """The residual after some layers, with 2000 digits."""
    with mpmath.workdps(2000):
        n, X = len(R), mpmath.matrix(R.tolist()) * mpmath.mpf(10) ** scale
        for i in range(n):
            X[i, :] += mpmath.matrix(mean.tolist()).T
        for _ in range(layers):
            S = X * mpmath.matrix(W_QK.tolist()) * X.T
            A = mpmath.matrix(n, n)
            for i in range(n):
                row = [mpmath.exp(S[i, j]) for j in range(n)]
                for j in range(n):
                    A[i, j] = row[j] / sum(row)
            X = A * X * mpmath.matrix(W_VO.tolist())
        for j in range(X.cols):
            middle = sum(X[:, j]) / n
            for i in range(n):
                X[i, j] -= middle
        length = mpmath.norm(X)
        direction = [[float(X[i, j] / length) for j in range(X.cols)] for i in range(n)]
        return torch.tensor(direction, dtype=torch.float64), float(mpmath.log(length))


@pytest.mark.parametrize(("scale", "layers"), [(0, 1), (-5, 1), (-30, 1), (-150, 1), (-4, 4)])
def test_the_residual_is_right_far_below_rounding(scale, layers):
    X, W_QK, W_VO = network(3, 2, 1, 5)
    R = collapse.residual(X)
    state = collapse.split(R)
    state = collapse.Split(X[0], state.direction, state.log_scale + scale * math.log(10))
    direction, log_scale = exact_residual(X[0], R, scale, W_QK[0], W_VO[0], layers)
    for _ in range(layers):
        state = collapse.attend(state, W_QK, W_VO)
    assert float(state.log_scale) == pytest.approx(log_scale, abs=1e-9)
    torch.testing.assert_close(state.direction, direction, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("size", [20, 60, 200, 400])
@pytest.mark.parametrize("scale", [-1, 0, 0.5])
def test_the_residual_is_right_where_all_attend_to_one(size, scale):
    """Then A and p are 1 to all digits, and their difference is in the others."""
    X, W_QK, W_VO = network(4, 3, 1, 11)
    R, mean = collapse.residual(X), size * X[0]
    state = collapse.Split(mean, collapse.split(R).direction, collapse.split(R).log_scale + scale * math.log(10))
    direction, log_scale = exact_residual(mean, R, scale, W_QK[0], W_VO[0], 1)
    out = collapse.attend(state, W_QK, W_VO)
    assert float(out.log_scale) == pytest.approx(log_scale, abs=1e-9) and log_scale < -5
    torch.testing.assert_close(out.direction, direction, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("power", [-530, 530])
def test_the_tokenwise_steps_at_any_scale(power):
    X = normal("any scale", 2, 4, 3)
    state = collapse.split(X * 2.0**power)
    out = collapse.join(collapse.normalise(state, eps=0.0))
    torch.testing.assert_close(out, layer_norm(X, eps=0.0))
    W, b = normal("any scale W", 3, 3), normal("any scale b", 3)
    out = collapse.mlp(state, W, b * 2.0**power, W / 2.0**power, b)
    torch.testing.assert_close(collapse.join(out), torch.relu(X @ W + b) @ W + b)
    assert not out.log_scale.isnan().any()


@pytest.mark.parametrize("step", ["normalise", "mlp"])
def test_the_tokenwise_steps_are_linear_far_below_rounding(step):
    X, W, b = normal("tokenwise", 4, 3), normal("tokenwise W", 3, 3), normal("tokenwise b", 3)
    steps = {
        "normalise": (collapse.normalise, layer_norm),
        "mlp": (lambda s: collapse.mlp(s, W, b, W, b), lambda X: torch.relu(X @ W + b) @ W + b),
    }
    propagate, plain = steps[step]
    state = collapse.split(collapse.residual(X))
    far = collapse.Split(X[0], state.direction, torch.tensor(-1000.0).double())
    out = propagate(far)
    J = torch.func.jacrev(lambda x: plain(x[None])[0])(X[0])
    expected = collapse.split(state.direction @ J.T)
    torch.testing.assert_close(out.direction, expected.direction)
    assert float(out.log_scale) == pytest.approx(-1000 + float(expected.log_scale))


def test_a_batch_of_states_goes_through_as_its_members_do():
    X, W_QK, W_VO = network(4, 3, 2, 9)
    R = collapse.residual(X)
    batch = collapse.split(X[0] + 10.0 ** -torch.arange(3.0).double()[:, None, None] * R)
    out = collapse.attend(batch, W_QK, W_VO)
    for k in range(3):
        alone = collapse.attend(collapse.Split(*(part[k] for part in batch)), W_QK, W_VO)
        for part, expected in zip(out, alone, strict=True):
            torch.testing.assert_close(part[k], expected)


def test_every_member_of_a_batch_may_have_weights_of_its_own():
    X, W_QK, W_VO = network(4, 3, 2, 9, layers=5)
    W_1, b = normal("batched W_1", 5, 3, 3), normal("batched b", 5, 3)
    batch = collapse.split(X + normal("batched shift", 5, 1, 3))
    out = collapse.mlp(collapse.attend(batch, W_QK, W_VO), W_1, b, W_1, b)
    for k in range(5):
        alone = collapse.attend(collapse.Split(*(part[k] for part in batch)), W_QK[k], W_VO[k])
        alone = collapse.mlp(alone, W_1[k], b[k], W_1[k], b[k])
        for part, expected in zip(out, alone, strict=True):
            torch.testing.assert_close(part[k], expected)


def test_identical_tokens_stay_identical():
    X, W_QK, W_VO = network(3, 2, 2, 1)
    state = collapse.split(X[:1].expand(3, -1))
    assert state.log_scale == -math.inf
    for step in (lambda s: collapse.attend(s, W_QK, W_VO), collapse.normalise, lambda s: collapse.add(s, s)):
        out = step(state)
        assert out.log_scale == -math.inf and torch.isfinite(out.mean).all() and not out.direction.any()


# --- paths ------------------------------------------------------------------------------------------------------------


@settings(max_examples=20)
@given(st.integers(1, 3), st.booleans())
def test_paths_sum_to_the_network(layers, skip):
    X, P, W = _layers(layers)
    out = X
    for P_layer, W_layer in zip(P, W, strict=True):
        out = (P_layer @ out @ W_layer).sum(0) + (out if skip else 0)
    if skip:
        P, W = collapse.with_skip(P, W)
    paths = collapse.all_paths(layers, P.shape[1])
    assert len(paths) == P.shape[1] ** layers == len(paths.unique(dim=0))
    torch.testing.assert_close(collapse.path_terms(X, P, W, paths).sum(0), out)
    several = collapse.path_terms(torch.stack([X, -2 * X]), P.expand(2, *P.shape), W, paths)
    torch.testing.assert_close(several.sum(1), torch.stack([out, -2 * out]))


def test_sampled_paths_estimate_without_bias():
    X, P, W = _layers(3)
    P, W = collapse.with_skip(P, W)
    probabilities = torch.tensor([0.5, 0.3, 0.2]).double()
    paths, weights = collapse.sample_paths(3, probabilities, 40_000, generator("paths"))
    terms = weights[:, None, None] * collapse.path_terms(X, P, W, paths)
    expected = collapse.path_terms(X, P, W, collapse.all_paths(3, 3)).sum(0)
    error = (terms.mean(0) - expected) / (terms.std(0) / len(terms) ** 0.5)
    assert error.abs().max() < 4.5
    every = collapse.all_paths(3, 3)
    assert float(probabilities[every].prod(-1).sum()) == pytest.approx(1)
