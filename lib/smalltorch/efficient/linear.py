"""Linear attention in its parallel, recurrent and chunked forms, and with the delta rule.

    >>> K = torch.eye(2).double()
    >>> V = torch.tensor([[3.0], [5.0]]).double()
    >>> alpha = torch.full((2, 2), 0.5).double()
    >>> parallel(K + 1, K, V, alpha)                # the second query sees half of the first value
    tensor([[ 6.0000],
            [11.5000]], dtype=torch.float64)

The state S is d_k x d_v, and a query reads q S. Each step multiplies row c of S by the gate alpha[t, c], and adds the
key times the value:

    S_t = diag(alpha_t) S_{t-1} + k_t v_t^T,      o_t = q_t S_t.

With gates of 1 this is linear attention; with one constant for all steps a head of RetNet; with one gate for all rows,
computed from the token, Mamba-2's form; with one for each row gated linear attention.

Source: Katharopoulos et al., "Transformers are RNNs" (2020); Yang et al., "Gated Linear Attention Transformers with
Hardware-Efficient Training" (2023), for the gates and the form in chunks.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from smalltorch.shapes import anywhere, check_floats, check_integers, check_range, computed_wide


@computed_wide
def elu_plus_one(X: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Features from 0 on, entry by entry: x + 1 for x > 0, and e^x for the others, to the precision of the type.

    e^x is 0 only where it is below the least positive number: for x < -745, in float32 -104.

        >>> elu_plus_one(torch.tensor([0.0, 2.0]).double())
        tensor([1., 3.], dtype=torch.float64)

    Chapter `linear`. Source: Katharopoulos et al., "Transformers are RNNs" (2020), section 3.2.1.

    Raises:
        ValueError: if the entries are no floating-point numbers.
    """
    check_floats(X=(X, "..."))
    return torch.where(X > 0, X + 1, X.clamp(max=0).exp())


@computed_wide
def parallel(
    Q: Float[Tensor, "*batch n d_k"],
    K: Float[Tensor, "*batch n d_k"],
    V: Float[Tensor, "*batch n d_v"],
    alpha: Float[Tensor, "*batch n d_k"],
) -> Float[Tensor, "*batch n d_v"]:
    """All outputs at once, from pairs of tokens: o_t is the sum over s <= t of the weight of s times v_s, with

        weight = sum over c of q_t[c] k_s[c] alpha_{s+1}[c] ... alpha_t[c].

    Its time and memory grow with n^2. Chapter `linear`.

    Raises:
        ValueError: for tensors that do not fit, gates that are not above 0 and at most 1, or products that overflow.
    """
    _check(Q, K, V, alpha)
    kept = _kept(alpha.log().cumsum(-2))
    weights = torch.einsum("...tc,...sc,...tsc->...ts", Q, K, kept)
    return check_range(weights @ V, Q=Q, K=K, V=V)


@computed_wide
def recurrent(
    Q: Float[Tensor, "*batch n d_k"],
    K: Float[Tensor, "*batch n d_k"],
    V: Float[Tensor, "*batch n d_v"],
    alpha: Float[Tensor, "*batch n d_k"],
) -> tuple[Float[Tensor, "*batch n d_v"], Float[Tensor, "*batch d_k d_v"]]:
    """The same outputs one token after the other, and the state after the last. Chapter `linear`.

    Raises:
        ValueError: as `parallel`.
    """
    _check(Q, K, V, alpha)
    S, outputs = _empty(K, V), []
    for t in range(K.shape[-2]):
        S = alpha[..., t, :, None] * S + K[..., t, :, None] * V[..., t, None, :]
        outputs.append(_read(Q, S, t))
    return check_range(torch.stack(outputs, -2), Q=Q, K=K, V=V), S


@computed_wide
def chunked(
    Q: Float[Tensor, "*batch n d_k"],
    K: Float[Tensor, "*batch n d_k"],
    V: Float[Tensor, "*batch n d_v"],
    alpha: Float[Tensor, "*batch n d_k"],
    size: int,
) -> Float[Tensor, "*batch n d_v"]:
    """The same outputs chunk by chunk: in parallel within a chunk, by the state from one to the next.

    The last chunk may be shorter. Chapter `linear`.

    Raises:
        ValueError: as `parallel`; for chunks of less than one token.
    """
    _check(Q, K, V, alpha)
    size = check_integers(1, size=size)
    S, outputs = _empty(K, V), []
    for q, k, v, gate in zip(*(M.split(size, -2) for M in (Q, K, V, alpha)), strict=True):
        logs = gate.log().cumsum(-2)
        within = torch.einsum("...tc,...sc,...tsc->...ts", q, k, _kept(logs)) @ v
        outputs.append(within + (q * logs.exp()) @ S)
        S = logs[..., -1, :, None].exp() * S + (k * (logs[..., -1:, :] - logs).exp()).mT @ v
    return check_range(torch.cat(outputs, -2), Q=Q, K=K, V=V)


@computed_wide
def delta_rule(
    Q: Float[Tensor, "*batch n d_k"],
    K: Float[Tensor, "*batch n d_k"],
    V: Float[Tensor, "*batch n d_v"],
    beta: Float[Tensor, "*batch n"],
) -> tuple[Float[Tensor, "*batch n d_v"], Float[Tensor, "*batch d_k d_v"]]:
    """A memory that corrects what its key reads: S_t = S_{t-1} + beta_t k_t (v_t - k_t S_{t-1})^T, o_t = q_t S_t.

    With a key of length 1 and beta = 1 the key reads its value exactly afterwards.

        >>> k = torch.tensor([[0.6, 0.8]]).double()
        >>> delta_rule(k, k, torch.tensor([[7.0]]).double(), torch.ones(1).double())[0]
        tensor([[7.0000]], dtype=torch.float64)

    Chapter `linear`. Source: Schlag et al., "Linear Transformers Are Secretly Fast Weight Programmers" (2021),
    section 4.2, on keys as they are given.

    Raises:
        ValueError: for tensors that do not fit, or products that overflow.
    """
    check_floats(Q=(Q, "... n d_k"), K=(K, "... n d_k"), V=(V, "... n d_v"), beta=(beta, "... n"))
    S, outputs = _empty(K, V), []
    for t in range(K.shape[-2]):
        k = K[..., t, :, None]
        wrong = V[..., t, None, :] - k.mT @ S
        S = S + beta[..., t, None, None] * k * wrong
        outputs.append(_read(Q, S, t))
    return check_range(torch.stack(outputs, -2), Q=Q, K=K, V=V, beta=beta), S


def _check(Q: Tensor, K: Tensor, V: Tensor, alpha: Tensor) -> None:
    check_floats(Q=(Q, "... n d_k"), K=(K, "... n d_k"), V=(V, "... n d_v"), alpha=(alpha, "... n d_k"))
    if anywhere(~((alpha > 0) & (alpha <= 1))):
        raise ValueError("alpha: expected gates above 0 and at most 1, got others")


def _kept(logs: Float[Tensor, "*batch n d_k"]) -> Float[Tensor, "*batch n n d_k"]:
    """What is left at t of what was written at s: the product of the gates after s, and 0 for what is to come."""
    n = logs.shape[-2]
    later = torch.ones(n, n, dtype=torch.bool, device=logs.device).triu(1)[..., None]
    return (logs[..., :, None, :] - logs[..., None, :, :]).masked_fill(later, -torch.inf).exp()


def _empty(K: Tensor, V: Tensor) -> Tensor:
    return K.new_zeros(K.shape[-1], V.shape[-1])


def _read(Q: Tensor, S: Tensor, t: int) -> Tensor:
    return (Q[..., t, None, :] @ S)[..., 0, :]
