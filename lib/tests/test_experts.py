"""Mixtures of experts, against transformers' Mixtral and Switch blocks."""

import itertools

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import MixtralConfig, SwitchTransformersConfig
from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock, load_balancing_loss_func
from transformers.models.switch_transformers import modeling_switch_transformers as switch

from smalltorch.block import FFN, SwiGLU
from smalltorch.engine.sample import normal
from smalltorch.experts import Mixture, balance, dropped_share, gates, mixture_size, within_capacity

D, D_E, E = 6, 5, 4


def of_mixtral(K):
    """Mixtral's block, and ours with its weights."""
    config = MixtralConfig(
        hidden_size=D, intermediate_size=D_E, num_local_experts=E, num_experts_per_tok=K, router_jitter_noise=0.0
    )
    theirs = MixtralSparseMoeBlock(config).eval()
    for name, parameter in theirs.named_parameters():
        parameter.data = normal(f"mixtral {name}", *parameter.shape).to(parameter.dtype)
    ours = Mixture(D, [SwiGLU(D, D_E) for _ in range(E)], K, renormalise=True)
    ours.W_R.data = theirs.gate.weight.data.T
    for i, expert in enumerate(ours.experts):
        gate, up = theirs.experts.gate_up_proj.data[i].chunk(2)
        expert.W_gate.data, expert.W_up.data = gate.T, up.T
        expert.W_down.data = theirs.experts.down_proj.data[i].T
    return theirs, ours


@pytest.mark.parametrize("K", [1, 2, 4])
@torch.no_grad()
def test_mixture_equals_mixtral(K):
    theirs, ours = of_mixtral(K)
    X = normal("tokens of a mixture", 2, 7, D).float()
    torch.testing.assert_close(ours(X), theirs(X.clone()), rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_mixture_and_capacity_equal_switch():
    config = SwitchTransformersConfig(
        d_model=D, d_ff=D_E, num_experts=E, expert_capacity=2, router_jitter_noise=0.0, dropout_rate=0.0
    )
    theirs = switch.SwitchTransformersSparseMLP(config).eval()
    for name, parameter in theirs.named_parameters():
        parameter.data = normal(f"switch {name}", *parameter.shape).to(parameter.dtype)
    ours = Mixture(D, [FFN(D, D_E, torch.relu) for _ in range(E)], 1, renormalise=False)
    ours.W_R.data = theirs.router.classifier.weight.data.T
    for i, expert in enumerate(ours.experts):
        their_expert = theirs.experts[f"expert_{i}"]
        expert.W_1.data, expert.W_2.data = their_expert.wi.weight.data.T, their_expert.wo.weight.data.T
    X = normal("tokens of a switch", 2, 9, D).float()
    chosen, probability, _ = theirs.router(X)
    G = within_capacity(gates(X @ ours.W_R, 1), 2)
    torch.testing.assert_close(G, chosen * probability, rtol=1e-4, atol=1e-5)
    assert 0 < int((G.sum(-1) == 0).sum()) < 18  # some are dropped
    config.expert_capacity = theirs.router.expert_capacity = 18
    torch.testing.assert_close(ours(X), theirs(X), rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_balance_equals_transformers():
    S = normal("logits to be balanced", 12, E)
    theirs = switch.load_balancing_loss_func(S.softmax(-1)[None], S.argmax(-1)[None])
    torch.testing.assert_close(balance(S).loss, theirs.double())
    of_two = load_balancing_loss_func((S.float(),), E, 2)  # its shares sum to K
    torch.testing.assert_close(2 * balance(S, K=2).loss.float(), of_two)


def test_shares_of_the_load_are_constants():
    S = normal("logits with a gradient", 5, E).requires_grad_()
    f, _, loss = balance(S)
    loss.backward()
    p = S.detach().softmax(-1)
    torch.testing.assert_close(S.grad, E / 5 * p * (f - (p * f).sum(-1, keepdim=True)))


def test_gates():
    S = normal("logits of gates", 9, E)
    best = S.topk(2, dim=-1)
    torch.testing.assert_close(gates(S, 2, renormalise=True).sum(-1), torch.ones(9).double())
    torch.testing.assert_close(gates(S, 2).gather(1, best.indices), S.softmax(-1).gather(1, best.indices))
    biased = gates(S, 1, bias=torch.tensor([0.0, 0.0, 99.0, 0.0]).double())
    torch.testing.assert_close(biased[:, 2], S.softmax(-1)[:, 2])  # it decides who is chosen, and not the weight
    assert (biased[:, [0, 1, 3]] == 0).all()


def test_a_bias_does_not_enter_gates_that_sum_to_1():
    S = normal("logits of biased gates", 9, E)
    biased = gates(S, 2, renormalise=True, bias=torch.tensor([9.0, 0.0, 0.0, 12.0]).double())
    torch.testing.assert_close(biased[:, [0, 3]], S[:, [0, 3]].softmax(-1))


def test_an_expert_whose_gate_is_rounded_to_0_was_chosen():
    f, _, loss = balance(torch.tensor([[0.0, -200.0, -300.0]]), K=2)
    torch.testing.assert_close(f, torch.tensor([0.5, 0.5, 0.0]))
    assert loss == 1.5


def test_shared_experts_run_for_every_token():
    shared = FFN(D, D_E)
    without = Mixture(D, [FFN(D, D_E) for _ in range(E)], 1, renormalise=True)
    X = normal("tokens with a shared expert", 3, D).float()
    both = Mixture(D, without.experts, 1, renormalise=True, shared=[shared])
    both.W_R.data = without.W_R.data
    torch.testing.assert_close(both(X), without(X) + shared(X))


@pytest.mark.parametrize("gated, shared", [(False, 0), (True, 0), (False, 1), (True, 1)])
@torch.no_grad()
def test_size_is_what_is_there_and_what_is_counted(gated, shared):
    def network():
        return SwiGLU(D, D_E) if gated else FFN(D, D_E)

    model = Mixture(D, [network() for _ in range(E)], 2, True, [network() for _ in range(shared)])
    size = mixture_size(D, D_E, E, 2, gated, shared)
    assert size.total == sum(p.numel() for p in model.parameters() if p.ndim == 2)
    with FlopCounterMode(display=False) as counter:
        model(normal("tokens to be counted", 11, D).float())
    assert counter.get_total_flops() == 2 * 11 * size.used


@pytest.mark.parametrize("n, experts, capacity", [(1, 2, 0), (4, 2, 2), (5, 3, 2), (6, 2, 9), (3, 1, 2)])
def test_dropped_share_over_all_choices(n, experts, capacity):
    dropped = [
        sum(max(choices.count(i) - capacity, 0) for i in range(experts)) / n
        for choices in itertools.product(range(experts), repeat=n)
    ]
    assert dropped_share(n, experts, capacity) == pytest.approx(sum(dropped) / len(dropped), abs=1e-12)


def test_bad_input_is_named():
    S = normal("bad logits", 3, E)
    with pytest.raises(ValueError, match="K: expected at most"):
        gates(S, 5)
    with pytest.raises(ValueError, match="K: expected at most"):
        balance(S, 5)
    with pytest.raises(ValueError, match="S"):
        balance(S / 0)
    with pytest.raises(ValueError, match="K: expected at most"):
        mixture_size(2, 2, 2, 3, gated=True)
    with pytest.raises(ValueError, match="K: expected at most"):
        Mixture(2, [FFN(2, 2)], 2, renormalise=True)
    with pytest.raises(ValueError, match="S"):
        gates(S / 0, 1)


def test_of_equal_experts_the_first_are_chosen():
    for E in (4, 8, 16, 64):
        assert gates(torch.zeros(3, E).double(), 2).nonzero()[:, 1].tolist() == [0, 1] * 3
        assert balance(torch.zeros(9, E).double()).f.tolist() == [1.0] + [0.0] * (E - 1)
    S = torch.tensor([[0.0, 1.0, 0.0, 1.0, 1.0]]).double()
    assert gates(S, 2).nonzero()[:, 1].tolist() == [1, 3]
