"""position."""

import numpy as np

from smalltorch import position

from .. import formulas as f
from ..judge import Entry
from ..kinds import Bad, Count, Flag, Nonnegative, Number, Other, Real, with_one


class Positive(Nonnegative):
    """Real numbers above 0."""

    def numbers(self, given):
        return np.exp(Real.numbers(self, given))

    def bad(self, x, given):
        yield from super().bad(x, given)
        yield Bad("range", "zero", with_one(x, 0.0), outside=True)


class Phase(Real):
    """Real numbers, not so large that adding to them is lost."""

    def bad(self, x, given):
        yield from (bad for bad in super().bad(x, given) if bad.kind not in ("extreme", "inf"))


class Turns(Real):
    """Numbers from 0 to 1/2."""

    def numbers(self, given):
        return given.rng.random(self.size(given)) / 2

    def bad(self, x, given):
        yield from super().bad(x, given)
        yield Bad("range", "more than a half", with_one(x, 0.75), outside=True)


class Graph(Nonnegative):
    """Symmetric weights of at least 0, with an edge at each node: around a ring, and some across."""

    def numbers(self, given):
        across = np.triu(super().numbers(given))
        ring = 0.5 * np.roll(np.eye(len(across)), 1, 0)
        return np.where(across > 1, across, 0) + np.where(across > 1, across, 0).T + ring + ring.T

    def bad(self, x, given):
        yield from super().bad(x, given)
        if len(x):
            lonely = x.clone()
            lonely[0] = lonely[:, 0] = 0
            yield Bad("range", "a node without an edge", lonely, outside=True)
            yield Bad("range", "one way only", x.triu(), outside=True)


def spectrum(G):
    """What does not depend on the signs of the vectors, nor on their rotation."""
    values, U = position.laplacian_eigenvectors(G)
    return values, U * values @ U.mT, U.mT @ U


def kernel(n, frequency, gain, phase):
    U_Q, U_K = position.spe_factors(n, frequency, gain, phase)
    return U_Q @ U_K.mT


ROTARY = {"d_h": Count(8, least=2), "base": Number(1000.0, above=0), "factor": Number(4.0, least=1)}
TRAINED = Count(64)
GRAPH = Graph("node node")
FIVE = {"node": 5}
BUCKETS = {"furthest": Count(16), "causal": Flag(True)}

ENTRIES = [
    Entry(
        "position.sinusoids",
        lambda n, d, start: position.sinusoids(n, d, start),
        f.sinusoids,
        {"n": Count("n", least=0), "d": Count("d", least=0), "start": Count(3, least=-10)},
    ),
    Entry(
        "position.tape",
        lambda n, d: position.tape(n, d),
        f.tape,
        {"n": Count("n"), "d": Count("d")},
    ),
    Entry(
        "position.frequencies",
        lambda d_h, base: position.frequencies(d_h, base),
        f.frequencies,
        {"d_h": Count("d_h"), "base": Number(100.0, above=0)},
        relation="d_h is even",
    ),
    Entry(
        "position.rotate",
        lambda X, angle: position.rotate(X, angle),
        f.rotated,
        {"X": Real("... n d_h"), "angle": Real("n pairs")},
        relation="d_h is twice the number of pairs",
        sizes={"pairs": 2},
    ),
    Entry(
        "position.rope",
        lambda X, base, start: position.rope(X, base, start),
        f.rope,
        {"X": Real("... n d_h"), "base": Number(100.0, above=0), "start": Count(3, least=-10)},
        relation="d_h is even",
    ),
    Entry(
        "position.linear_scaling",
        lambda d_h, base, factor: position.linear_scaling(d_h, base, factor),
        lambda d_h, base, factor: (f.frequencies(d_h, base) / factor, 1.0),
        ROTARY,
    ),
    Entry(
        "position.dynamic_ntk",
        lambda **given: position.dynamic_ntk(**given),
        f.dynamic_ntk,
        ROTARY | {"trained": TRAINED, "n": Count(200)},
    ),
    Entry(
        "position.yarn",
        lambda **given: position.yarn(**given),
        f.yarn,
        ROTARY | {"trained": TRAINED, "fast": Number(4.0, above=0), "slow": Number(0.5, above=0)},
        where=lambda **a: a["slow"] < a["fast"],
        relation="slow < fast, and a base above 1",
    ),
    Entry(
        "position.llama3",
        lambda **given: position.llama3(**given),
        f.llama3,
        ROTARY | {"trained": TRAINED, "low": Number(0.5, least=0), "high": Number(4.0, above=0)},
        where=lambda **a: a["low"] < a["high"],
        relation="low < high",
    ),
    Entry(
        "position.longrope",
        lambda **given: position.longrope(**given),
        f.longrope,
        ROTARY | {"stretch": Positive("pairs"), "trained": TRAINED},
        relation="stretch has d_h / 2 entries",
        sizes={"pairs": 4},
    ),
    Entry("position.offsets", lambda n: position.offsets(n), f.offsets, {"n": Count("n")}),
    Entry(
        "position.shaw_logits",
        lambda Q, table: position.shaw_logits(Q, table),
        f.shaw_logits,
        {"Q": Real("... n d_h"), "table": Real("offset d_h")},
        relation="an odd number of rows",
        sizes={"offset": 3},
    ),
    Entry(
        "position.shaw_values",
        lambda A, table: position.shaw_values(A, table),
        f.shaw_values,
        {"A": Real("... n n"), "table": Real("offset d_v")},
        relation="an odd number of rows",
        sizes={"offset": 3},
    ),
    Entry(
        "position.t5_buckets",
        lambda **given: position.t5_buckets(**given),
        f.t5_buckets,
        {"n": Count(40), "buckets": Count(8)} | BUCKETS,
    ),
    Entry(
        "position.t5_bias",
        lambda **given: position.t5_bias(**given),
        f.t5_bias,
        {"table": Real("bucket head"), "n": Count(10)} | BUCKETS,
        relation="an even number of buckets",
        sizes={"bucket": 6},
    ),
    Entry("position.alibi_slopes", lambda heads: position.alibi_slopes(heads), f.alibi_slopes, {"heads": Count(6)}),
    Entry(
        "position.alibi_bias",
        lambda n, heads: position.alibi_bias(n, heads),
        f.alibi_bias,
        {"n": Count("n"), "heads": Count(6)},
    ),
    Entry(
        "position.tupe_logits",
        lambda P, U_Q, U_K: position.tupe_logits(P, U_Q, U_K),
        f.tupe_logits,
        {"P": Real("n d"), "U_Q": Real("... d d_h"), "U_K": Real("... d d_h")},
    ),
    Entry(
        "position.erpe",
        lambda A, w: position.erpe(A, w),
        f.erpe,
        {"A": Real("... n n"), "w": Real("... offset")},
        relation="w has 2 n - 1 entries",
        sizes={"offset": 5},
    ),
    Entry(
        "position.axial",
        lambda rows, columns: position.axial(rows, columns),
        f.axial,
        {"rows": Real("height d"), "columns": Real("width d_v")},
        sizes={"height": 2, "width": 3},
    ),
    Entry(
        "position.tree_codes",
        lambda paths, branches, depth: position.tree_codes(paths, branches, depth),
        f.tree_codes,
        {
            "paths": Other(
                "paths from the root",
                lambda given: [[], [1], [1, 0], [2, 2]],
                ("size", "one too long", lambda paths: [*paths, [0, 0, 0]]),
                ("range", "no such child", lambda paths: [*paths, [3]]),
                ("negative", "", lambda paths: [*paths, [-1]]),
                ("type", "a word", lambda paths: [*paths, "root"]),
                ("type", "a number among them", lambda paths: [*paths, 1]),
            ),
            "branches": Count(3),
            "depth": Count(2),
        },
    ),
    Entry("position.laplacian_eigenvectors", spectrum, f.laplacian, {"G": GRAPH}, sizes=FIVE),
    Entry(
        "position.random_walk_codes",
        lambda G, steps: position.random_walk_codes(G, steps),
        f.random_walk_codes,
        {"G": GRAPH, "steps": Count(3)},
        sizes=FIVE,
    ),
    Entry(
        "position.graph_distances", lambda G: position.graph_distances(G), f.graph_distances, {"G": GRAPH}, sizes=FIVE
    ),
    Entry(
        "position.spe_factors",
        kernel,
        f.spe_kernel,
        {"n": Count("n"), "frequency": Turns("sine"), "gain": Real("sine"), "phase": Phase("sine")},
        sizes={"sine": 2},
    ),
]
