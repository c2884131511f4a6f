"""efficient.linear."""

import numpy as np

from smalltorch.efficient import linear

from .. import formulas as f
from ..judge import Entry, Outside
from ..kinds import Bad, Count, Real, with_one


class Gates(Real):
    """Numbers above 0 and at most 1."""

    def numbers(self, given):
        return np.exp(-(super().numbers(given) ** 2))

    def bad(self, x, given):
        yield from super().bad(x, given)
        yield Bad("range", "zero", with_one(x, 0.0), outside=True)
        yield Bad("range", "above one", with_one(x, 1.5), outside=True)


def states(K, V):
    """After how many tokens, the state before them, and their key and value as matrices."""
    batch = np.broadcast_shapes(K.shape[:-2], V.shape[:-2])
    return np.zeros((*batch, K.shape[-1], V.shape[-1]), dtype=np.result_type(K, V))


def gated(Q, K, V, alpha, **_):
    f.real(Q, K, V, alpha)
    if not np.all((alpha > 0) & (alpha <= 1)):
        raise Outside("gates are above 0 and at most 1")
    S, outputs = states(K, V), []
    for t in range(K.shape[-2]):
        S = alpha[..., t, :, None] * S + K[..., t, :, None] * V[..., t, None, :]
        outputs.append((Q[..., t, None, :] @ S)[..., 0, :])
    return np.stack(outputs, -2), S


def delta(Q, K, V, beta):
    f.real(Q, K, V, beta)
    S, outputs = states(K, V), []
    for t in range(K.shape[-2]):
        k = K[..., t, :, None]
        S = S + beta[..., t, None, None] * (k * (V[..., t, None, :] - f.T(k) @ S))
        outputs.append((Q[..., t, None, :] @ S)[..., 0, :])
    return np.stack(outputs, -2), S


ARGUMENTS = {"Q": Real("... n d_k"), "K": Real("... n d_k"), "V": Real("... n d_v"), "alpha": Gates("... n d_k")}
ENTRIES = [
    Entry(
        "efficient.linear.elu_plus_one",
        lambda X: linear.elu_plus_one(X),
        lambda X: np.where(X > 0, X + 1, f.exp(np.where(X > 0, 0 * X, X))),
        {"X": Real("...")},
    ),
    Entry("efficient.linear.parallel", lambda **a: linear.parallel(**a), lambda **a: gated(**a)[0], ARGUMENTS),
    Entry("efficient.linear.recurrent", lambda **a: linear.recurrent(**a), gated, ARGUMENTS),
    Entry(
        "efficient.linear.chunked",
        lambda **a: linear.chunked(**a),
        lambda **a: gated(**a)[0],
        {**ARGUMENTS, "size": Count(2)},
    ),
    Entry(
        "efficient.linear.delta_rule",
        lambda **a: linear.delta_rule(**a),
        delta,
        {**{name: ARGUMENTS[name] for name in "QKV"}, "beta": Real("... n")},
    ),
]
