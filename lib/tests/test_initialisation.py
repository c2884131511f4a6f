"""First weights: as large as torch's, and what each scale is made for."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from smalltorch.initialisation import he_std, xavier_std

widths = st.integers(1, 50)


def test_first_weights_are_as_large_as_torchs():
    W = torch.empty(300, 500)  # torch has the outputs first
    generator = torch.Generator().manual_seed(0)
    torch.nn.init.xavier_normal_(W, generator=generator)
    assert W.std().item() == pytest.approx(xavier_std(500, 300), rel=0.01)
    torch.nn.init.xavier_uniform_(W, generator=generator)
    assert W.abs().max().item() == pytest.approx(math.sqrt(3) * xavier_std(500, 300), rel=1e-4)
    torch.nn.init.kaiming_normal_(W, nonlinearity="relu", generator=generator)
    assert W.std().item() == pytest.approx(he_std(500), rel=0.01)
    torch.nn.init.kaiming_uniform_(W, nonlinearity="relu", generator=generator)
    assert W.abs().max().item() == pytest.approx(math.sqrt(3) * he_std(500), rel=1e-4)


@given(widths, widths)
def test_xavier_lies_between_forward_and_backward(d_in, d_out):
    variance = xavier_std(d_in, d_out) ** 2
    assert 1 / variance == pytest.approx((d_in + d_out) / 2)
    assert 1 / max(d_in, d_out) * (1 - 1e-12) <= variance <= 1 / min(d_in, d_out) * (1 + 1e-12)
    assert he_std(d_in) ** 2 == pytest.approx(2 * xavier_std(d_in, d_in) ** 2)
