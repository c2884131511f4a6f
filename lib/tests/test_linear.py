"""Linear attention: three forms against each other, and against what transformers computes."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from smalltorch.efficient.linear import chunked, delta_rule, elu_plus_one, parallel, recurrent
from smalltorch.engine.sample import normal


def drawn(name, n, d_k=3, d_v=2, batch=(2,)):
    Q, K, V = (normal(f"{name} {M}", *batch, n, d) for M, d in zip("QKV", (d_k, d_k, d_v), strict=True))
    return Q, K, V, torch.sigmoid(normal(f"{name} gates", *batch, n, d_k))


@given(n=st.integers(1, 9), size=st.integers(1, 10), seed=st.integers(0, 99))
def test_three_forms_are_one(n, size, seed):
    inputs = drawn(f"forms {seed}", n)
    one_by_one, _ = recurrent(*inputs)
    torch.testing.assert_close(parallel(*inputs), one_by_one, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(chunked(*inputs, size), one_by_one, rtol=1e-10, atol=1e-10)


def test_gates_of_one_are_masked_products():
    Q, K, V, alpha = drawn("no gates", 5)
    torch.testing.assert_close(recurrent(Q, K, V, torch.ones_like(alpha))[0], (Q @ K.mT).tril() @ V)


def test_the_state_is_what_is_left():
    Q, K, V, alpha = drawn("what is left", 4, batch=())
    S = sum(torch.outer(K[s] * alpha[s + 1 :].prod(0), V[s]) for s in range(4))
    torch.testing.assert_close(recurrent(Q, K, V, alpha)[1], S)


def test_a_normalised_layer_as_in_the_paper():
    """Katharopoulos et al. (2020), equations 16 to 20, written out: a column of ones is the normaliser."""
    Q, K, V, alpha = drawn("normalised", 6, batch=())
    Q, K = elu_plus_one(Q), elu_plus_one(K)
    s, z, outputs = torch.zeros(3, 2).double(), torch.zeros(3).double(), []
    for i in range(6):
        s = s + torch.outer(K[i], V[i])
        z = z + K[i]
        outputs.append(Q[i] @ s / (Q[i] @ z))
    read = parallel(Q, K, torch.cat([V, torch.ones(6, 1).double()], 1), torch.ones_like(alpha))
    torch.testing.assert_close(read[:, :-1] / read[:, -1:], torch.stack(outputs))


def test_elu_plus_one():
    x = torch.tensor([-2.0, 0.0, 1.5]).double()
    torch.testing.assert_close(elu_plus_one(x), torch.tensor([math.exp(-2), 1.0, 2.5]).double())


def test_retention_as_in_the_paper():
    """Sun et al. (2023), the parallel form: (Q K^T ⊙ D) V with D = γ^(n-m) for n ≥ m."""
    Q, K, V, alpha = drawn("retention", 7, batch=())
    gamma, place = 1 - 2**-5, torch.arange(7)
    D = (gamma ** (place[:, None] - place).clamp(min=0).double()).tril()
    torch.testing.assert_close(chunked(Q, K, V, torch.full_like(alpha, gamma), 3), (Q @ K.mT * D) @ V)


def test_mamba_2_by_the_sums_of_transformers():
    """Dao and Gu (2024): the matrix L of a scalar gate is exp(segsum(log a)), and the output (L ⊙ C B^T) X."""
    module = pytest.importorskip("transformers.models.mamba2.modeling_mamba2")
    Q, K, V, alpha = drawn("mamba", 6)
    gate = alpha[..., :1]
    mixed = torch.exp(module.segment_sum(gate[..., 0].log())) * (Q @ K.mT)
    torch.testing.assert_close(recurrent(Q, K, V, gate.expand_as(alpha))[0], mixed @ V)


def test_delta_rule_equals_transformers():
    """Qwen3-Next's recurrence, without its decay: it divides the queries by √d_k, and computes in float32."""
    module = pytest.importorskip("transformers.models.qwen3_next.modeling_qwen3_next")
    Q, K, V, _ = drawn("delta", 6, batch=(2, 4))
    beta = torch.sigmoid(normal("delta strengths", 2, 4, 6))
    K = K / K.norm(dim=-1, keepdim=True)
    told = [M.transpose(1, 2) for M in (Q, K, V, torch.zeros_like(beta), beta)]
    theirs, state = module.torch_recurrent_gated_delta_rule(*told, None, True)
    ours, S = delta_rule(Q, K, V, beta)
    torch.testing.assert_close(ours / 3**0.5, theirs.transpose(1, 2).double(), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(S, state.double(), rtol=1e-4, atol=1e-5)


def test_the_last_pair_is_read_exactly():
    Q, K, V, _ = drawn("last pair", 5)
    K = K / K.norm(dim=-1, keepdim=True)
    torch.testing.assert_close(delta_rule(K, K, V, torch.ones(2, 5).double())[0], V)


@pytest.mark.parametrize("gate", [0.0, 1.5, -0.5, math.nan])
def test_gates_are_refused(gate):
    Q, K, V, alpha = drawn("refused", 3)
    alpha[0, 1, 2] = gate
    for form in (parallel, recurrent, lambda *inputs: chunked(*inputs, 2)):
        with pytest.raises(ValueError, match="alpha"):
            form(Q, K, V, alpha)


def test_features_of_negative_numbers_are_exponentials_to_the_last_digit():
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        X = torch.linspace(-30 if dtype != torch.float16 else -8, 0, 50, dtype=dtype)
        exact = X.double().exp()
        assert ((elu_plus_one(X).double() / exact - 1).abs() <= 2 * torch.finfo(dtype).eps).all()
    assert elu_plus_one(torch.tensor([-torch.inf, -1e4])).tolist() == [0, 0]
