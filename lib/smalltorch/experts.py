"""Mixtures of experts: a router sends each token to a few of several networks.

    >>> S = torch.tensor([[2.0, 1.0, 0.0], [0.0, 3.0, 1.0]]).double()
    >>> gates(S, K=1)                               # the softmax of the logits, but for the best of each token 0
    tensor([[0.6652, 0.0000, 0.0000],
            [0.0000, 0.8438, 0.0000]], dtype=torch.float64)

Source: Shazeer et al., "Outrageously Large Neural Networks" (2017), for the layer; Fedus et al., "Switch Transformers"
(2022), for one expert a token, the balancing loss and the capacity; Jiang et al., "Mixtral of Experts" (2024), for
gates that sum to 1; Dai et al., "DeepSeekMoE" (2024), for shared experts; Wang et al., "Auxiliary-Loss-Free Load
Balancing" (2024), for the bias.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from smalltorch.attention import weight
from smalltorch.shapes import (
    check_finite,
    check_floats,
    check_integers,
    check_range,
    check_type,
    computed_wide,
)


@computed_wide
def gates(
    S: Float[Tensor, "*batch n E"], K: int, renormalise: bool = False, bias: Float[Tensor, " E"] | None = None
) -> Float[Tensor, "*batch n E"]:
    """softmax(S) where expert and token are a chosen pair, 0 elsewhere: the weights of the experts' outputs.

    Each token chooses the K experts with the largest S + bias, of equal ones the first; the bias decides who is chosen,
    and nothing else. With `renormalise=True` the K weights are divided by their sum. Chapter `experts`.

    Raises:
        ValueError: for logits that are not finite, or K that is not one of 1 to E.
    """
    check_floats(S=(S, "... n E"))
    check_finite(S=S)
    check_type(bool, renormalise=renormalise)
    if bias is not None:
        check_floats(S=(S, "... n E"), bias=(bias, "E"))
        check_finite(bias=bias)
    chosen = _best(S if bias is None else S + bias, K)
    if renormalise:
        return S.masked_fill(chosen == 0, -math.inf).softmax(-1)
    return S.softmax(-1) * chosen


def _best(ranked: Tensor, K: int) -> Tensor:
    """1 where the expert is one of the token's K best, 0 elsewhere. Of equals the first: topk promises nothing."""
    K = check_integers(1, K=K)
    if ranked.shape[-1] < K:
        raise ValueError(f"K: expected at most E = {ranked.shape[-1]}, got {K}")
    best = ranked.argsort(dim=-1, descending=True, stable=True)[..., :K]
    return torch.zeros_like(ranked).scatter(-1, best, 1.0)


def within_capacity(G: Float[Tensor, "*batch n E"], capacity: int) -> Float[Tensor, "*batch n E"]:
    """The gates, with 0 where an expert was chosen by `capacity` earlier tokens already: these pairs are dropped.

    Chapter `experts`.

    Raises:
        ValueError: for a capacity below 0.
    """
    check_floats(G=(G, "... n E"))
    capacity = check_integers(0, capacity=capacity)
    return G * ((G != 0).cumsum(-2) <= capacity)


class Balance(NamedTuple):
    """f: the share of the choices that each expert got; P: its mean probability; loss: E times the sum of f P."""

    f: Tensor
    P: Tensor
    loss: Tensor


@computed_wide
def balance(S: Float[Tensor, "n E"], K: int = 1) -> Balance:
    """What the Switch loss is made of: E sum_i f_i P_i, with f a constant for the gradient.

    f_i is the share of the nK choices that go to expert i, P_i the mean of softmax(S) over the tokens. Tokens choose as
    in `gates`: where all logits are equal, the first K experts get everything. Chapter `experts`.

    Raises:
        ValueError: as `gates`.
    """
    E = check_floats(S=(S, "n E"))["E"]
    check_finite(S=S)
    f = _best(S.detach(), K).mean(0) / K
    P = S.softmax(-1).mean(0)
    return Balance(f, P, E * (f * P).sum())


class Mixture(nn.Module):
    """sum over the chosen experts of gate times expert(x), plus the shared experts: an FFN's place is taken by many.

    The logits are X W_R. Only the chosen experts run: expert i sees the tokens that chose it, all at once.
    Chapter `experts`.

    Args:
        d: width of the tokens.
        experts: one network for each, from (n, d) to (n, d).
        K: how many each token chooses.
        renormalise: whether a token's K gates sum to 1 (Mixtral) or are probabilities over all experts (Switch).
        shared: networks that run for every token, with gate 1.

    Raises:
        ValueError: for no expert, or K that is not one of 1 to their number.
    """

    def __init__(
        self, d: int, experts: Iterable[nn.Module], K: int, renormalise: bool, shared: Iterable[nn.Module] = ()
    ):
        super().__init__()
        check_type(Iterable, experts=experts, shared=shared)
        experts, shared = list(experts), list(shared)
        for network in (*experts, *shared):
            check_type(nn.Module, experts=network)
        d, K = check_integers(1, d=d, K=K)
        check_type(bool, renormalise=renormalise)
        if not 1 <= K <= len(experts):
            raise ValueError(f"K: expected at most the number of experts, {len(experts)}, got {K}")
        self.W_R = weight(d, len(experts))
        self.experts, self.shared = nn.ModuleList(experts), nn.ModuleList(shared)
        self.K, self.renormalise = K, renormalise

    def forward(self, X: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n d"]:
        check_floats(W_R=(self.W_R, "d E"), X=(X, "... n d"))
        check_finite(X=X)
        tokens = X.reshape(-1, X.shape[-1])
        if len(tokens) == 0:
            return tokens.view(X.shape)
        G = gates(check_range(tokens @ self.W_R, X=X), self.K, self.renormalise)
        Y = torch.zeros_like(tokens)
        for i, expert in enumerate(self.experts):
            mine = G[:, i].nonzero()[:, 0]
            if len(mine):
                Y = Y.index_add(0, mine, G[mine, i, None] * expert(tokens[mine]))
        for network in self.shared:
            Y = Y + network(tokens)
        return check_range(Y.view(X.shape), X=X)


class Size(NamedTuple):
    """Weights that are there, and weights that one token uses; it takes two operations for each of these."""

    total: int
    used: int


def mixture_size(d: int, d_e: int, E: int, K: int, gated: bool, shared: int = 0) -> Size:
    """(E + shared) w + d E weights in all, (K + shared) w + d E for one token: w = 2 d d_e, or 3 d d_e if gated.

        >>> mixture_size(d=4, d_e=8, E=8, K=2, gated=False)
        Size(total=544, used=160)

    The products of a token with what it uses take 2 operations for each weight; the router's d E is used whole.
    Chapter `experts`.

    Raises:
        ValueError: for a size below 1, fewer than 0 shared experts, or K above E.
    """
    d, d_e, E, K = check_integers(1, d=d, d_e=d_e, E=E, K=K)
    shared = check_integers(0, shared=shared)
    check_type(bool, gated=gated)
    if K > E:
        raise ValueError(f"K: expected at most E = {E}, got {K}")
    w = (3 if gated else 2) * d * d_e
    return Size((E + shared) * w + d * E, (K + shared) * w + d * E)


def dropped_share(n: int, E: int, capacity: int) -> float:
    """(E / n) E max(X - capacity, 0), X binomial(n, 1/E): the mean share of n tokens that is dropped.

    Each token chooses one of E experts, all with the same probability and each by itself.

        >>> dropped_share(n=2, E=2, capacity=1)
        0.25

    Chapter `experts`.

    Raises:
        ValueError: for a size below 1, or a capacity below 0.
    """
    n, E = check_integers(1, n=n, E=E)
    capacity = check_integers(0, capacity=capacity)
    if E == 1:
        return max(n - capacity, 0) / n
    log_p, log_q = -math.log(E), math.log1p(-1 / E)
    logs = [
        math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) + k * log_p + (n - k) * log_q
        for k in range(capacity + 1, n + 1)
    ]
    return E / n * math.fsum((k - capacity) * math.exp(x) for k, x in enumerate(logs, capacity + 1))
