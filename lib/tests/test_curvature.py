"""Curvature: Lanczos against dense eigenvalues."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from smalltorch.curvature import largest_eigenvalue
from smalltorch.engine.sample import normal


def symmetric(name, models, size):
    H = normal(name, models, size, size)
    return H + H.mT


def product_with(H):
    return lambda V: (H @ V[..., None])[..., 0]


@given(models=st.integers(1, 3), size=st.integers(1, 7), seed=st.integers(0, 999))
def test_all_steps_give_the_largest_eigenvalue(models, size, seed):
    H = symmetric(f"lanczos {seed}", models, size)
    found = largest_eigenvalue(product_with(H), normal(f"lanczos start {seed}", models, size), steps=size)
    torch.testing.assert_close(found, torch.linalg.eigvalsh(H)[:, -1], rtol=1e-8, atol=1e-8)


@given(steps=st.integers(1, 30), seed=st.integers(0, 999))
def test_never_above_the_largest_and_never_falling(steps, seed):
    H, v = symmetric(f"below {seed}", 2, 12), normal(f"below start {seed}", 2, 12)
    some, more = (largest_eigenvalue(product_with(H), v, steps=k) for k in (steps, steps + 1))
    top = torch.linalg.eigvalsh(H)[:, -1]
    assert (some <= more + 1e-9).all() and (more <= top + 1e-9).all()


def test_one_step_is_the_rayleigh_quotient():
    H, v = symmetric("rayleigh", 2, 5), normal("rayleigh start", 2, 5)
    quotient = torch.einsum("mi,mij,mj->m", v, H, v) / v.square().sum(1)
    torch.testing.assert_close(largest_eigenvalue(product_with(H), v, steps=1), quotient)


def test_an_invariant_span_invents_no_eigenvalue():
    """All eigenvalues are negative, and the start is an eigenvector: no 0 may appear in the place of what is lost."""
    H = torch.diag(torch.tensor([-1.0, -2.0, -3.0]).double())[None]
    start = torch.tensor([[0.0, 1.0, 0.0]]).double()
    assert largest_eigenvalue(product_with(H), start, steps=3).item() == pytest.approx(-2)
    assert largest_eigenvalue(product_with(H), torch.ones(1, 3).double(), steps=9).item() == pytest.approx(-1)


def test_a_wide_spread_of_eigenvalues_costs_no_digits():
    H = torch.diag(torch.logspace(-6, 3, 60, dtype=torch.float64))[None]
    found = largest_eigenvalue(product_with(H), normal("spread", 1, 60), steps=60)
    assert found.item() == pytest.approx(1000, rel=1e-10)


def test_bad_arguments_are_named():
    H = torch.eye(3).double()[None]
    with pytest.raises(ValueError, match="start: expected vectors other than 0"):
        largest_eigenvalue(product_with(H), torch.zeros(1, 3).double())
    with pytest.raises(ValueError, match="steps"):
        largest_eigenvalue(product_with(H), torch.ones(1, 3).double(), steps=0)
    with pytest.raises(ValueError, match="product: expected finite"):
        largest_eigenvalue(lambda V: V * torch.nan, torch.ones(1, 3).double())
    with pytest.raises(ValueError, match="product"):
        largest_eigenvalue(lambda V: V[:, 1:], torch.ones(1, 3).double())
