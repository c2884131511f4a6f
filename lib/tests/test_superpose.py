"""Superposition: frames that meet Welch's bound, the code, winners, and the autoencoder."""

import itertools
import math

import pytest
import torch

from smalltorch.engine.sample import normal
from smalltorch.superpose import SparseAutoencoder, coherence, polynomial_code, welch_bound, winners


@pytest.mark.parametrize("m", [3, 5, 8])
def test_no_directions_lie_below_welchs_bound_and_a_simplex_meets_it(m):
    simplex = torch.eye(m).double() - 1 / m
    rows = torch.linalg.svd(simplex).U[:, : m - 1]
    assert float(coherence(rows)) == pytest.approx(welch_bound(m, m - 1)) == pytest.approx(1 / (m - 1))
    assert all(coherence(normal(f"directions {draw}", m, m - 1)) >= welch_bound(m, m - 1) for draw in range(20))


def test_orthonormal_directions_need_no_interference():
    assert welch_bound(4, 4) == 0
    assert coherence(torch.eye(4)) == 0


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_coherence_is_that_of_the_directions(scale):
    W = scale * torch.tensor([[1.0, 0.0], [-3.0, 4.0]], dtype=torch.float64)
    assert float(coherence(W)) == pytest.approx(0.6)


@pytest.mark.parametrize(("p", "k"), [(2, 2), (3, 2), (5, 3)])
def test_words_of_the_code_agree_where_their_polynomials_do(p, k):
    words = polynomial_code(p, k)
    assert words.shape == (p**k, p**2)
    torch.testing.assert_close(words.norm(dim=1), torch.ones(p**k).double())
    graphs = [
        [sum(c * x**power for power, c in enumerate(polynomial)) % p for x in range(p)]
        for polynomial in itertools.product(range(p), repeat=k)
    ]
    for i, j in itertools.combinations(range(len(words)), 2):
        agree = sum(u == v for u, v in zip(graphs[i], graphs[j], strict=True))
        assert float(words[i] @ words[j]) == pytest.approx(agree / p)
    assert float(coherence(words)) == pytest.approx((k - 1) / p)


@pytest.mark.parametrize("p", [4, 9, 15])
def test_a_code_needs_a_prime(p):
    with pytest.raises(ValueError, match="p: expected a prime, got"):
        polynomial_code(p, 2)


def test_as_many_win_as_are_asked_for():
    X = normal("rivals", 7, 9)
    kept = winners(X, 3)
    assert ((kept != 0).sum(1) == 3).all()
    assert all(kept[row].sum() == pytest.approx(float(X[row].sort().values[-3:].sum())) for row in range(7))
    torch.testing.assert_close(winners(X, 9), X)


def test_ties_win_together():
    assert winners(torch.tensor([1.0, 2.0, 1.0, 0.0]), 2).tolist() == [1, 2, 1, 0]


def test_the_autoencoder_is_its_formula_and_counts_lengths():
    model = SparseAutoencoder(d=3, m=5).double()
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(normal(name, *p.shape))
        h = normal("states to take apart", 4, 3)
        back, parts = model(h)
        z = torch.clamp((h - model.b) @ model.W_E + model.c, min=0)
        torch.testing.assert_close(back, model.b + z @ model.W_D)
        before = parts.clone()
        model.W_D.mul_(2), model.W_E.div_(2), model.c.div_(2)
        torch.testing.assert_close(model(h)[1], before)
        assert math.isclose(float(parts.sum()), float((z * model.W_D.norm(dim=1) / 2).sum()))
