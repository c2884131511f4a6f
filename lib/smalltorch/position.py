"""Positional encodings: absolute tables, rotations (RoPE), relative biases, and encodings of grids, trees and graphs.

A learned table needs no function: it is a matrix with one row for each position. Angles and tables are computed in
float64, for at position 1000 a float32 angle is already off by 1e-4. Position p counts from 0; an offset is j - i, the
position of the key less that of the query. What acts on logits is written for as many keys as queries; a causal mask
hides the offsets above 0 as ever.

Each function names its source.
"""

import bisect
import itertools
import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from smalltorch.shapes import (
    anywhere,
    at_least_float32,
    check_finite,
    check_floats,
    check_integers,
    check_numbers,
    check_range,
    check_type,
    computed_wide,
)

# --- sinusoids --------------------------------------------------------------------------------------------------------


def _ladder(d: int, base: float) -> Tensor:
    """base^(-2i/d) for each pair of columns; where d is odd, the last pair is cut."""
    return base ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)


def _places(n: int, start: int = 0) -> Tensor:
    return torch.arange(start, start + n, dtype=torch.float64)


def _waves(angle: Tensor, d: int) -> Tensor:
    """sin in column 2i, cos in column 2i + 1."""
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :d]


def sinusoids(n: int, d: int, start: int = 0) -> Float[Tensor, "n d"]:
    """The position codes of 2017: sin and cos of p / 10000^(2i/d), in columns 2i and 2i + 1; float64.

    The first row has position `start`, the others follow.

        >>> sinusoids(2, 4)
        tensor([[0.0000, 1.0000, 0.0000, 1.0000],
                [0.8415, 0.5403, 0.0100, 1.0000]], dtype=torch.float64)

    Chapter `sinusoids`. Source: Vaswani et al., "Attention Is All You Need" (2017), section 3.5.
    """
    n, d = check_integers(1, n=n, d=d)
    start = check_integers(0, start=start)
    return _waves(torch.outer(_places(n, start), _ladder(d, 10_000.0)), d)


def tape(n: int, d: int) -> Float[Tensor, "n d"]:
    """tAPE, time absolute position encoding: sin and cos of (d/n) p / 10000^(2i/d), for a series of n steps; float64.

    So the fastest pair turns by d over the whole series, however long it is.

        >>> tape(4, 2)[:, 0]
        tensor([0.0000, 0.4794, 0.8415, 0.9975], dtype=torch.float64)

    Chapter `relative`. Source: Foumani et al., "Improving Position Encoding of Transformers for Multivariate Time
    Series Classification" (2023), and its code.
    """
    n, d = check_integers(1, n=n, d=d)
    return _waves(torch.outer(_places(n), _ladder(d, 10_000.0) * (d / n)), d)


# --- rotations --------------------------------------------------------------------------------------------------------


def frequencies(d_h: int, base: float = 10_000.0) -> Float[Tensor, " pairs"]:
    """theta_i = base^(-2i/d_h), by which angle each of the d_h / 2 pairs turns from one position to the next; float64.

        >>> frequencies(4)
        tensor([1.0000, 0.0100], dtype=torch.float64)

    Chapter `rotary`. Source: Su et al., "RoFormer" (2021).

    Raises:
        ValueError: for an odd d_h, or a base below 1.
    """
    d_h = check_integers(2, d_h=d_h)
    base = check_numbers(1, base=base)
    if d_h % 2:
        raise ValueError(f"d_h: expected an even head width to turn in pairs, got {d_h}")
    return _ladder(d_h, base)


@computed_wide
def rotate(X: Float[Tensor, "*batch n d_h"], angle: Float[Tensor, "n pairs"]) -> Float[Tensor, "*batch n d_h"]:
    """Turn the pair (x_i, x_{i + d_h/2}) of row p by angle[p, i].

    The angles are positions times frequencies: `torch.outer(p, theta)`. Their cos and sin are computed as precisely as
    they are given, and then rounded to the precision of X.

        >>> rotate(torch.tensor([[1.0, 0.0]]).double(), torch.tensor([[torch.pi / 3]]).double())
        tensor([[0.5000, 0.8660]], dtype=torch.float64)

    Chapter `rotary`. Source: Su et al., "RoFormer" (2021), with the pairs of LLaMA in transformers.

    Raises:
        ValueError: for an odd d_h, angles that are not one for each row and pair, or on another device.
    """
    n, pairs = _pairs(X)
    check_floats(angle=(angle, f"{n} {pairs}"))
    if angle.device != X.device:
        raise ValueError(f"angle: expected entries on {X.device}, as in X, got some on {angle.device}")
    return _turned(X, angle)


def _pairs(X: Tensor) -> tuple[int, int]:
    sizes = check_floats(X=(X, "... n d_h"))
    if sizes["d_h"] % 2:
        raise ValueError(f"X: expected an even head width to turn in pairs, got shape {tuple(X.shape)}")
    return sizes["n"], sizes["d_h"] // 2


def _turned(X: Tensor, angle: Tensor) -> Tensor:
    cos, sin = angle.cos().to(X), angle.sin().to(X)
    x, y = X.chunk(2, dim=-1)
    return torch.cat([x * cos - y * sin, x * sin + y * cos], dim=-1)


@computed_wide
def rope(X: Float[Tensor, "*batch n d_h"], base: float = 10_000.0, start: int = 0) -> Float[Tensor, "*batch n d_h"]:
    """Rotary positions: at position p, turn the pair (x_i, x_{i + d_h/2}) by the angle p * base^(-2i/d_h).

    The first row has position `start`, the others follow.

    Queries and keys turned so have dot products that depend on positions only through their difference. The pairs are
    those of LLaMA in transformers; the paper pairs neighbours (x_{2i}, x_{2i+1}), a permutation of the coordinates.
    Other frequencies are for `rotate`.

        >>> rope(torch.tensor([[1.0, 0.0], [1.0, 0.0]]).double())       # the second row: cos 1 and sin 1
        tensor([[1.0000, 0.0000],
                [0.5403, 0.8415]], dtype=torch.float64)

    Chapter `rotary`. Source: Su et al., "RoFormer" (2021).

    Raises:
        ValueError: for an odd d_h, a base below 1, or a start below 0.
    """
    n, pairs = _pairs(X)
    base = check_numbers(1, base=base)
    start = check_integers(0, start=start)
    return _turned(X, torch.outer(_places(n, start), _ladder(2 * pairs, base)).to(X.device))


# --- rotations for longer texts ---------------------------------------------------------------------------------------
# Each gives the frequencies, and the factor that both turned queries and turned keys are multiplied by.


def linear_scaling(d_h: int, base: float, factor: float) -> tuple[Float[Tensor, " pairs"], float]:
    """Position interpolation: theta_i / factor, so that `factor` times the trained length has the trained angles.

    The attention factor is 1.

        >>> linear_scaling(4, 10_000.0, factor=2.0)
        (tensor([0.5000, 0.0050], dtype=torch.float64), 1.0)

    Chapter `extrapolation`. Source: Chen et al., "Extending Context Window of Large Language Models via Positional
    Interpolation" (2023).
    """
    factor = check_numbers(1, factor=factor)
    return frequencies(d_h, base) / factor, 1.0


def dynamic_ntk(d_h: int, base: float, factor: float, trained: int, n: int) -> tuple[Float[Tensor, " pairs"], float]:
    """Dynamic NTK: theta_i / g^(i / (d_h/2 - 1)) with g = s n / trained - (s - 1), for n tokens, more than `trained`.

    It is another base, base g^(d_h / (d_h - 2)). The fastest pair turns as before; the slowest, with s = factor = 1,
    turns over n tokens as far as it did over the trained ones. Up to the trained length nothing changes. The attention
    factor is 1.

        >>> dynamic_ntk(4, 10_000.0, factor=1.0, trained=100, n=200)
        (tensor([1.0000, 0.0050], dtype=torch.float64), 1.0)

    Chapter `extrapolation`. Source: the forum posts of bloc97 and emozilla (2023), as transformers computes it.

    Raises:
        ValueError: for fewer than two pairs, since one alone is fastest and slowest.
    """
    d_h = check_integers(4, d_h=d_h)
    trained, n = check_integers(1, trained=trained, n=n)
    factor = check_numbers(1, factor=factor)
    growth = factor * max(n, trained) / trained - (factor - 1)
    theta = frequencies(d_h, base)
    return theta / growth ** torch.linspace(0, 1, len(theta), dtype=torch.float64), 1.0


def yarn(
    d_h: int, base: float, factor: float, trained: int, fast: float = 32.0, slow: float = 1.0
) -> tuple[Float[Tensor, " pairs"], float]:
    """YaRN: pairs that turn more than `fast` times in the trained length stay, those below `slow` are slowed down.

    Between them the frequency goes from theta_i to theta_i / factor linearly in the index i, rounded outwards. The
    attention factor is 0.1 ln(factor) + 1. So it is also where all pairs turn more than `fast` times, or all fewer than
    `slow`: there the code of transformers does the opposite.

        >>> theta, attention_factor = yarn(8, 10_000.0, factor=4.0, trained=4096)
        >>> theta / frequencies(8), round(attention_factor, 3)
        (tensor([1.0000, 1.0000, 0.6250, 0.2500], dtype=torch.float64), 1.139)

    Chapter `extrapolation`. Source: Peng et al., "YaRN: Efficient Context Window Extension of Large Language Models"
    (2023); the ramp is that of its code and of the checkpoints, as transformers computes it.

    Raises:
        ValueError: for a base of 1, where all pairs turn alike, or unless fast > slow > 0.
    """
    trained = check_integers(1, trained=trained)
    factor = check_numbers(1, factor=factor)
    fast, slow = check_numbers(0, fast=fast, slow=slow)
    if not 0 < slow < fast:
        raise ValueError(f"slow, fast: expected 0 < slow < fast, got {slow} and {fast}")
    theta = frequencies(d_h, base)
    if base == 1:
        raise ValueError("base: expected a number above 1, got 1")

    def index(turns: float) -> float:
        """Where theta_i turns so many times in the trained length."""
        return d_h * math.log(trained / (turns * 2 * math.pi)) / (2 * math.log(base))

    first, last = max(math.floor(index(fast)), 0), min(math.ceil(index(slow)), d_h - 1)
    ramp = ((torch.arange(d_h // 2, dtype=torch.float64) - first) / ((last - first) or 0.001)).clamp(0, 1)
    turns = theta * trained / (2 * math.pi)
    ramp = ramp.masked_fill(turns > fast, 0).masked_fill(turns < slow, 1)  # where all are so, the ramp is upside down
    return _slowed(theta, factor, ramp), 0.1 * math.log(factor) + 1


def llama3(
    d_h: int, base: float, factor: float, trained: int, low: float = 1.0, high: float = 4.0
) -> tuple[Float[Tensor, " pairs"], float]:
    """Llama 3.1: pairs that turn more than `high` times in the trained length stay, those below `low` are slowed down.

    Between them the frequency goes from theta_i to theta_i / factor linearly in the number of turns, which is
    theta_i trained / (2 pi). The attention factor is 1.

        >>> llama3(8, 10_000.0, factor=8.0, trained=1024)[0] / frequencies(8)
        tensor([1.0000, 1.0000, 0.3087, 0.1250], dtype=torch.float64)

    Chapter `extrapolation`. Source: the code of Llama 3.1 (2024), as transformers computes it.

    Raises:
        ValueError: unless high > low.
    """
    trained = check_integers(1, trained=trained)
    factor = check_numbers(1, factor=factor)
    low, high = check_numbers(0, low=low, high=high)
    if low >= high:
        raise ValueError(f"low, high: expected low < high, got {low} and {high}")
    theta = frequencies(d_h, base)
    turns = theta * trained / (2 * math.pi)
    return _slowed(theta, factor, ((high - turns) / (high - low)).clamp(0, 1)), 1.0


def _slowed(theta: Tensor, factor: float, share: Tensor) -> Tensor:
    """From theta, where the share is 0, to theta / factor, where it is 1."""
    return theta * (1 - share) + theta / factor * share


@computed_wide
def longrope(
    d_h: int, base: float, stretch: Float[Tensor, " pairs"], factor: float, trained: int
) -> tuple[Float[Tensor, " pairs"], float]:
    """LongRoPE: theta_i / stretch_i, each pair by its own number, which a search has found for this length.

    The attention factor is sqrt(1 + ln(factor) / ln(trained)), for a text of `factor` times the trained length.

        >>> longrope(4, 10_000.0, torch.tensor([1.0, 4.0]).double(), factor=4.0, trained=4096)
        (tensor([1.0000, 0.0025], dtype=torch.float64), 1.0801234497346435)

    Chapter `extrapolation`. Source: Ding et al., "LongRoPE" (2024), as transformers computes it.

    Raises:
        ValueError: unless there is a positive number for each pair.
    """
    trained = check_integers(2, trained=trained)
    factor = check_numbers(1, factor=factor)
    theta = frequencies(d_h, base)
    check_floats(stretch=(stretch, f"{d_h // 2}"))
    check_finite(stretch=stretch)
    if anywhere(stretch <= 0):
        raise ValueError(f"stretch: expected positive entries, got {stretch.min().item()}")
    return theta.to(stretch) / stretch, math.sqrt(1 + math.log(factor) / math.log(trained))


# --- kernels on logits ------------------------------------------------------------------------------------------------


def offsets(n: int) -> Int[Tensor, "n n"]:
    """j - i, in row i and column j.

        >>> offsets(3)
        tensor([[ 0,  1,  2],
                [-1,  0,  1],
                [-2, -1,  0]])

    Chapter `relative`.
    """
    n = check_integers(1, n=n)
    return torch.arange(n) - torch.arange(n)[:, None]


def _clipped(n: int, table: Tensor) -> Tensor:
    """The row of a table that belongs to each offset, those beyond its ends included."""
    k, even = divmod(len(table) - 1, 2)
    if even:
        raise ValueError(f"table: expected a row for each offset from -k to k, got {len(table)} rows")
    return (offsets(n).clamp(-k, k) + k).to(table.device)


@computed_wide
def shaw_logits(Q: Float[Tensor, "*batch n d_h"], table: Float[Tensor, "offset d_h"]) -> Float[Tensor, "*batch n n"]:
    """q_i · a_{clip(j - i)}: what relative keys add to q_i · k_j, before both are divided by sqrt(d_h).

    Row k + o of the table is the vector of offset o, from -k to k; offsets beyond share those at the ends.

        >>> shaw_logits(torch.ones(4, 1), torch.tensor([[-1.0], [0.0], [1.0]]))
        tensor([[ 0.,  1.,  1.,  1.],
                [-1.,  0.,  1.,  1.],
                [-1., -1.,  0.,  1.],
                [-1., -1., -1.,  0.]])

    Chapter `relative`. Source: Shaw et al., "Self-Attention with Relative Position Representations" (2018), section 3.

    Raises:
        ValueError: if the table has another width than Q, or an even number of rows.
    """
    n = check_floats(Q=(Q, "... n d_h"), table=(table, "offset d_h"))["n"]
    S = check_range(Q @ table.mT, Q=Q, table=table)
    return S.gather(-1, _clipped(n, table).expand(*S.shape[:-1], n))


@computed_wide
def shaw_values(A: Float[Tensor, "*batch n n"], table: Float[Tensor, "offset d_v"]) -> Float[Tensor, "*batch n d_v"]:
    """sum_j A_ij a_{clip(j - i)}: what relative values add to A V. The table is as in `shaw_logits`.

        >>> shaw_values(torch.eye(3), torch.tensor([[-1.0], [5.0], [1.0]])).mT          # each token reads itself
        tensor([[5., 5., 5.]])

    Chapter `relative`. Source: Shaw et al., "Self-Attention with Relative Position Representations" (2018), section 3.

    Raises:
        ValueError: if A is not square, or the table has an even number of rows or an entry that is not finite.
    """
    n = check_floats(A=(A, "... n n"), table=(table, "offset d_v"))["n"]
    check_finite(table=table)  # a row that no pair reads is multiplied by 0
    mass = A.new_zeros(*A.shape[:-1], len(table)).scatter_add(-1, _clipped(n, table).expand(A.shape), A)
    return check_range(mass @ table, A=A, table=table)


def t5_buckets(n: int, buckets: int = 32, furthest: int = 128, causal: bool = False) -> Int[Tensor, "n n"]:
    """The bucket of each pair of positions: one for each small distance, then ever wider ones, the last without end.

    Of b buckets on one side, distances below e = b // 2 have their own; bucket e + m begins where the distance is at
    least e (furthest / e)^(m / (b - e)). Keys after the query have the upper half of all buckets; with `causal` there
    are none, and all buckets are for keys before it.

        >>> t5_buckets(6, buckets=4, furthest=8, causal=True)
        tensor([[0, 0, 0, 0, 0, 0],
                [1, 0, 0, 0, 0, 0],
                [2, 1, 0, 0, 0, 0],
                [2, 2, 1, 0, 0, 0],
                [3, 2, 2, 1, 0, 0],
                [3, 3, 2, 2, 1, 0]])

    Chapter `relative`. Source: Raffel et al., "Exploring the Limits of Transfer Learning with a Unified Text-to-Text
    Transformer" (2020), section 2.1, and its code.

    Raises:
        ValueError: for an odd number of buckets, fewer than two on a side, or `furthest` among the small distances.
    """
    check_type(bool, causal=causal)
    buckets = check_integers(2 if causal else 4, buckets=buckets)
    if buckets % 2:
        raise ValueError(f"buckets: expected an even number, got {buckets}")
    side = buckets if causal else buckets // 2
    small = side // 2
    furthest = check_integers(small + 1, furthest=furthest)
    rest = side - small

    def start(m: int) -> int:
        """In whole numbers, for a root that is one may come out a little above."""
        return bisect.bisect_left(range(furthest), small**rest * furthest**m, key=lambda x: x**rest * small**m)

    starts = torch.tensor([*range(1, small + 1), *map(start, range(1, rest))])
    offset = offsets(n)
    distance = (-offset).clamp(min=0) if causal else offset.abs()
    bucket = torch.bucketize(distance, starts, right=True)
    return bucket if causal else bucket + side * (offset > 0)


def t5_bias(
    table: Float[Tensor, "bucket head"], n: int, furthest: int = 128, causal: bool = False
) -> Float[Tensor, "head n n"]:
    """T5's bias on the logits: the learned number of the head and of the bucket that `t5_buckets` gives.

    T5 does not divide its logits by sqrt(d_h).

        >>> t5_bias(torch.tensor([[0.0], [-1.0], [-2.0], [-3.0]]), 3, causal=True)
        tensor([[[ 0.,  0.,  0.],
                 [-1.,  0.,  0.],
                 [-2., -1.,  0.]]])

    Chapter `relative`. Source: Raffel et al., "Exploring the Limits of Transfer Learning with a Unified Text-to-Text
    Transformer" (2020), section 2.1.

    Raises:
        ValueError: if the rows of the table are no number of buckets.
    """
    rows = check_floats(table=(table, "bucket head"))["bucket"]
    check_type(bool, causal=causal)
    if rows % 2 or rows < (2 if causal else 4):
        raise ValueError(f"table: expected an even number of buckets, two on each side at least, got {rows} rows")
    return table[t5_buckets(n, rows, furthest, causal).to(table.device)].permute(2, 0, 1)


def alibi_slopes(heads: int) -> Float[Tensor, " head"]:
    """m_h = 2^(-8h/H) for h = 1 … H, where H is a power of two; float64.

    For other H: the slopes for the power of two P below it, and then every second one of those for 2 P.

        >>> alibi_slopes(3)
        tensor([0.0625, 0.0039, 0.2500], dtype=torch.float64)

    Chapter `relative`. Source: Press, Smith and Lewis, "Train Short, Test Long" (2022), section 3, and its code.
    """
    heads = check_integers(1, heads=heads)
    P = 2 ** (int(heads).bit_length() - 1)
    exponent = [*range(2, 2 * P + 1, 2), *range(1, 2 * (heads - P), 2)]  # in steps of 8 / (2 P)
    return 2.0 ** (-4 / P * torch.tensor(exponent, dtype=torch.float64))


def alibi_bias(n: int, heads: int) -> Float[Tensor, "head n n"]:
    """-m_h |j - i|, with the slopes of `alibi_slopes`: added to logits that are divided by sqrt(d_h); float64.

    The paper's models are causal. For keys after the query the bias is mirrored here.

        >>> alibi_bias(3, heads=8)[0]
        tensor([[ 0.0000, -0.5000, -1.0000],
                [-0.5000,  0.0000, -0.5000],
                [-1.0000, -0.5000,  0.0000]], dtype=torch.float64)

    Chapter `relative`. Source: Press, Smith and Lewis, "Train Short, Test Long" (2022), section 3.
    """
    return alibi_slopes(heads)[:, None, None] * -offsets(n).abs()


@computed_wide
def tupe_logits(
    P: Float[Tensor, "n d"], U_Q: Float[Tensor, "*#head d d_h"], U_K: Float[Tensor, "*#head d d_h"]
) -> Float[Tensor, "... n n"]:
    """TUPE's untied term, (p_i U_Q) · (p_j U_K) / sqrt(2 d_h): positions meet positions, by matrices of their own.

    It is added to (x_i W_Q) · (x_j W_K) / sqrt(2 d_h), where the inputs x have no positions in them.

        >>> tupe_logits(torch.eye(2), torch.eye(2), torch.eye(2))
        tensor([[0.5000, 0.0000],
                [0.0000, 0.5000]])

    Chapter `relative`. Source: Ke, He and Liu, "Rethinking Positional Encoding in Language Pre-training" (2021).
    """
    sizes = check_floats(P=(P, "n d"), U_Q=(U_Q, "... d d_h"), U_K=(U_K, "... d d_h"))
    scale = (2 * sizes["d_h"]) ** -0.25  # for each of the two
    return check_range((scale * P @ U_Q) @ (scale * P @ U_K).mT, P=P, U_Q=U_Q, U_K=U_K)


@computed_wide
def erpe(A: Float[Tensor, "*#head n n"], w: Float[Tensor, "*#head offset"]) -> Float[Tensor, "... n n"]:
    """eRPE, efficient relative position encoding: A_ij + w_{i - j}, a learned number added after the softmax.

    Entry n - 1 + o of w belongs to i - j = o, from -(n - 1) to n - 1. The rows no longer sum to 1.

        >>> erpe(torch.eye(2), torch.tensor([0.1, 0.2, 0.3]))
        tensor([[1.2000, 0.1000],
                [0.3000, 1.2000]])

    Chapter `relative`. Source: Foumani et al., "Improving Position Encoding of Transformers for Multivariate Time
    Series Classification" (2023), and its code.

    Raises:
        ValueError: unless w has 2 n - 1 entries for each head.
    """
    n = check_floats(A=(A, "... n n"))["n"]
    check_floats(A=(A, "... n n"), w=(w, f"... {2 * n - 1}"))
    return A + w[..., n - 1 - offsets(n)]


# --- codes of structures ----------------------------------------------------------------------------------------------


def axial(rows: Float[Tensor, "height d_row"], columns: Float[Tensor, "width d_column"]) -> Float[Tensor, "cells d"]:
    """[rows_r, columns_c] for the cell in row r and column c of a grid, row by row: one table for each axis.

    With `sinusoids` for both it is a code like DETR's; with learned tables, Reformer's. A block and the place inside of
    it are a row and a column, too.

        >>> axial(torch.tensor([[1.0], [2.0]]), torch.tensor([[5.0], [6.0], [7.0]])).mT
        tensor([[1., 1., 1., 2., 2., 2.],
                [5., 6., 7., 5., 6., 7.]])

    Chapter `structured`. Source: Kitaev, Kaiser and Levskaya, "Reformer" (2020), as transformers computes it; Carion et
    al., "End-to-End Object Detection with Transformers" (2020).
    """
    sizes = check_floats(rows=(rows, "height d_row"), columns=(columns, "width d_column"))
    return torch.cat([rows.repeat_interleave(sizes["width"], 0), columns.repeat(sizes["height"], 1)], dim=1)


def tree_codes(paths: Sequence[Sequence[int]], branches: int, depth: int) -> Float[Tensor, "node width"]:
    """A node's path from the root as a stack of one-hot choices, the last one first: `depth` of them; float64.

    The root is zero. To go to child c is the same affine map everywhere: shift by `branches` entries and put e_c in
    front; to go to the parent is to shift back.

        >>> tree_codes([[], [1], [1, 0]], branches=2, depth=2)
        tensor([[0., 0., 0., 0.],
                [0., 1., 0., 0.],
                [1., 0., 0., 1.]], dtype=torch.float64)

    Chapter `structured`. Source: Shiv and Quirk, "Novel Positional Encodings to Enable Tree-Based Transformers" (2019),
    without its learned decay.

    Raises:
        ValueError: for a path that is longer than `depth`, or a choice that is no child.
    """
    branches, depth = check_integers(1, branches=branches, depth=depth)
    check_type(Sequence, paths=paths)
    codes = torch.zeros(len(paths), depth, branches, dtype=torch.float64)
    for node, path in enumerate(paths):
        check_type(Sequence, paths=path)
        if len(path) > depth:
            raise ValueError(f"paths: expected at most {depth} choices, got {len(path)} for node {node}")
        for level, choice in enumerate(reversed(path)):
            choice = check_integers(0, paths=choice)
            if choice >= branches:
                raise ValueError(f"paths: expected choices from 0 to {branches - 1}, got {choice} for node {node}")
            codes[node, level, choice] = 1
    return codes.flatten(1)


def _graph(G: Tensor) -> Tensor:
    """The adjacency matrix, once it is known to be one, in float32 at least."""
    check_floats(G=(G, "node node"))
    check_finite(G=G)
    if anywhere(G != G.mT) or anywhere(G < 0):
        raise ValueError(f"G: expected a symmetric matrix of weights from 0 on, got one of shape {tuple(G.shape)}")
    lonely = (G == 0).all(1)
    if anywhere(lonely):
        raise ValueError(f"G: expected an edge at each node, got none at node {lonely.nonzero()[0].item()}")
    return at_least_float32(G)


@computed_wide
def laplacian_eigenvectors(
    G: Float[Tensor, "node node"],
) -> tuple[Float[Tensor, " node"], Float[Tensor, "node node"]]:
    """Eigenvalues, from 0 on, and eigenvectors of I - D^(-1/2) G D^(-1/2), in columns; D has the degrees.

    The code of a node is its row in the columns after the first. A column is one of two, since its negative serves as
    well; where an eigenvalue repeats, any rotation of its columns does.

        >>> laplacian_eigenvectors(torch.ones(3, 3).double() - torch.eye(3).double())[0].round(decimals=12).abs()
        tensor([0.0000, 1.5000, 1.5000], dtype=torch.float64)

    Chapter `structured`. Source: Dwivedi and Bresson, "A Generalization of Transformer Networks to Graphs" (2021).

    Raises:
        ValueError: unless G is symmetric, from 0 on, and has an edge at each node.
    """
    root = _graph(G).sum(1).sqrt()
    values, U = torch.linalg.eigh(torch.eye(len(G)).to(root) - G.to(root) / root / root[:, None])
    return values.to(G.dtype), U.to(G.dtype)


@computed_wide
def random_walk_codes(G: Float[Tensor, "node node"], steps: int) -> Float[Tensor, "node steps"]:
    """The chance that a random walk is back at its node after 1, 2, …, `steps` steps: the diagonal of (G D^-1)^k.

        >>> random_walk_codes(torch.tensor([[0.0, 1.0], [1.0, 0.0]]), 3)
        tensor([[0., 1., 0.],
                [0., 1., 0.]])

    Chapter `structured`. Source: Dwivedi et al., "Graph Neural Networks with Learnable Structural and Positional
    Representations" (2022).

    Raises:
        ValueError: unless G is symmetric, from 0 on, and has an edge at each node.
    """
    weights = _graph(G)
    steps = check_integers(1, steps=steps)
    walk = weights / weights.sum(0)
    powers = itertools.accumulate([walk] * steps, torch.matmul)
    return torch.stack([power.diagonal() for power in powers], dim=1).to(G.dtype)


def graph_distances(G: Float[Tensor, "node node"]) -> Float[Tensor, "node node"]:
    """The number of edges on a shortest path between two nodes; infinite where there is no path.

        >>> graph_distances(torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]))
        tensor([[0., 1., 2.],
                [1., 0., 1.],
                [2., 1., 0.]])

    Chapter `structured`. Source: Ying et al., "Do Transformers Really Perform Badly for Graph Representation?" (2021),
    whose bias on the logits is a learned number for each distance.

    Raises:
        ValueError: unless G is symmetric, from 0 on, and has an edge at each node.
    """
    edges = (_graph(G) > 0).float()
    reached = torch.eye(len(G), device=G.device)
    distance = torch.full_like(G, math.inf).fill_diagonal_(0)
    for step in range(1, len(G)):
        reached = (reached @ edges).clamp(max=1)
        distance = torch.where((reached > 0) & distance.isinf(), step, distance)
    return distance


@computed_wide
def spe_factors(
    n: int, frequency: Float[Tensor, " sine"], gain: Float[Tensor, " sine"], phase: Float[Tensor, " sine"]
) -> tuple[Float[Tensor, "n feature"], Float[Tensor, "n feature"]]:
    """Factors U_Q and U_K of sineSPE's kernel: (U_Q U_K^T)_ij = sum_s gain_s^2 cos(2 pi frequency_s (i - j) + phase_s).

    It is the covariance of the random features U_Q Z / sqrt(R) and U_K Z / sqrt(R), where Z has R columns of normal
    numbers: so the kernel is there on average, and no matrix of n × n is needed.

        >>> U_Q, U_K = spe_factors(3, *torch.tensor([[0.25], [2.0], [0.0]]).double())
        >>> (U_Q @ U_K.mT).round(decimals=12) + 0.0
        tensor([[ 4.,  0., -4.],
                [ 0.,  4.,  0.],
                [-4.,  0.,  4.]], dtype=torch.float64)

    Chapter `structured`. Source: Liutkus et al., "Relative Positional Encoding for Transformers with Linear Complexity"
    (2021), and its code.

    Raises:
        ValueError: for frequencies outside of 0 to 1/2, which are turns from one position to the next.
    """
    n = check_integers(1, n=n)
    check_floats(frequency=(frequency, "sine"), gain=(gain, "sine"), phase=(phase, "sine"))
    check_finite(frequency=frequency)
    if anywhere((frequency < 0) | (frequency > 0.5)):
        raise ValueError(f"frequency: expected entries from 0 to 1/2, got {frequency.tolist()}")
    angle = torch.outer(_places(n).to(frequency.device), 2 * math.pi * frequency.double())
    factors = (torch.cat([gain * wave for wave in (a.cos(), a.sin())], dim=1) for a in (angle + phase, angle))
    U_Q, U_K = (U.to(gain.dtype) for U in factors)
    return U_Q, U_K
