"""Random features and FNet's mixing: against quadrature, sums written out, transformers and the papers' formulas."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers.models.fnet.modeling_fnet import FNetBasicFourierTransform, FNetConfig

from smalltorch.efficient.kernels import (
    fourier_mix,
    kernel_attention,
    orthogonal_rows,
    positive_features,
    trigonometric_features,
)
from smalltorch.engine.sample import generator, normal

NODES, WEIGHTS = (torch.from_numpy(a) for a in np.polynomial.hermite_e.hermegauss(60))
WEIGHTS = WEIGHTS / WEIGHTS.sum()  # means over a normal variable, exact for polynomials


def mean_product(features, q, k):
    """The mean of the product of one feature of q and of k over normal w in one dimension."""
    return sum(
        float(weight * (features(q, w) * features(k, w)).sum())
        for w, weight in zip(NODES[:, None, None], WEIGHTS, strict=True)
    )


@pytest.mark.parametrize("features", [positive_features, trigonometric_features])
@pytest.mark.parametrize("q, k", [(0.7, -0.4), (1.1, 0.9), (0.0, 2.0)])
def test_products_have_the_mean_of_the_softmax_kernel(features, q, k):
    q, k = (torch.tensor([[x]], dtype=torch.float64) for x in (q, k))
    assert mean_product(features, q, k) == pytest.approx(float((q * k).exp()), rel=1e-9)


@given(st.floats(-1.2, 1.2), st.floats(-1.2, 1.2))
def test_second_moments_are_the_formulas(q, k):
    def second(features):
        return sum(
            float(weight) * float((features(x, w) * features(y, w)).sum()) ** 2
            for w, weight in zip(NODES[:, None, None], WEIGHTS, strict=True)
        )

    x, y = (torch.tensor([[v]], dtype=torch.float64) for v in (q, k))
    square = math.exp(2 * q * k)
    assert second(positive_features) / square == pytest.approx(math.exp((q + k) ** 2), rel=1e-9)
    assert second(trigonometric_features) / square == pytest.approx(1 + 2 * math.sinh((q - k) ** 2 / 2) ** 2, rel=1e-9)


def test_features_are_divided_by_the_root_of_their_number():
    X, W = normal("x", 3, 4), normal("w", 5, 4)
    one_by_one = sum(positive_features(X, w[None]) @ positive_features(X, w[None]).T for w in W) / 5
    both = positive_features(X, W)
    torch.testing.assert_close(both @ both.T, one_by_one)


def test_rows_of_a_block_are_orthogonal_and_as_long_as_normal_ones():
    W = orthogonal_rows(7, 3, generator("rows"))
    assert W.shape == (7, 3)
    for block in (W[:3], W[3:6]):
        assert float((block @ block.T).tril(-1).abs().max()) < 1e-12
    assert float((W[:3] @ W[3:6].T).abs().max()) > 1e-3
    many = orthogonal_rows(30_000, 3, generator("many rows"))
    assert float(many.square().sum(1).mean()) == pytest.approx(3, abs=0.08)
    assert float(many.square().sum(1).var()) == pytest.approx(6, abs=0.4)
    assert float(many.mean(0).abs().max()) < 0.03  # of both signs alike


def written_out(Q, K, V, W, causal):
    """Algorithm 1 of the paper, query by query, without its stabiliser."""
    rows = []
    for i, q in enumerate(Q):
        weights = []
        for k in K[: i + 1] if causal else K:
            terms = [torch.exp(w @ q - q @ q / 2) * torch.exp(w @ k - k @ k / 2) for w in W]
            weights.append(sum(terms) / len(W))
        a = torch.stack(weights)
        rows.append((a / a.sum()) @ V[: len(a)])
    return torch.stack(rows)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_the_sum_written_out(causal):
    Q, K, V, W = normal("q", 6, 3), normal("k", 6, 3), normal("v", 6, 2), normal("w", 8, 3)
    torch.testing.assert_close(kernel_attention(Q, K, V, W, causal), written_out(Q, K, V, W, causal))
    together = kernel_attention(torch.stack([Q, 2 * Q]), K.expand(2, 6, 3), V.expand(2, 6, 2), W, causal)
    torch.testing.assert_close(together[1], written_out(2 * Q, K, V, W, causal))


def test_with_many_features_and_short_vectors_it_is_attention():
    Q, K, V = 0.3 * normal("q", 6, 3), 0.3 * normal("k", 6, 3), normal("v", 6, 2)
    exact = (Q @ K.T).softmax(-1) @ V
    found = kernel_attention(Q, K, V, orthogonal_rows(30_000, 3, generator("rows")))
    assert float((found - exact).abs().max()) < 0.02


def test_long_vectors_do_not_overflow():
    Q, K, V, W = 20 * normal("q", 6, 3), 20 * normal("k", 6, 3), normal("v", 6, 2), normal("w", 8, 3)
    assert bool(kernel_attention(Q, K, V, W).isfinite().all())
    with pytest.raises(ValueError, match="^Q, K, W: expected features large for a query and a key at once"):
        kernel_attention(torch.tensor([[1e3]]).double(), torch.tensor([[-1e3]]).double(), torch.ones(1, 1).double(),
                         torch.tensor([[1.0], [-1.0]]).double())  # fmt: skip


def test_a_causal_query_for_each_key():
    Q, K = normal("q", 3, 2), normal("k", 4, 2)
    with pytest.raises(ValueError, match="K: expected as many keys as queries, 3, got 4"):
        kernel_attention(Q, K, K, normal("w", 5, 2), causal=True)


@pytest.mark.parametrize("n, d", [(1, 1), (4, 6), (5, 3)])
def test_mixing_is_transformers_and_the_sum_of_cosines(n, d):
    X = normal("states", 2, n, d)
    theirs = FNetBasicFourierTransform(FNetConfig(hidden_size=d, use_tpu_fourier_optimizations=False))
    torch.testing.assert_close(fourier_mix(X), theirs(X)[0])
    tokens, features = (torch.arange(size, dtype=torch.float64) for size in (n, d))
    tokens, features = torch.outer(tokens, tokens) / n, torch.outer(features, features) / d
    cosines = (2 * math.pi * (tokens[:, :, None, None] + features)).cos()  # s j t c
    torch.testing.assert_close(fourier_mix(X), torch.einsum("sjtc,bjc->bst", cosines, X))
