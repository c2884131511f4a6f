"""The long run on what stands in for the softmax: each stand-in by itself, and the stored table."""

import pytest
import torch

from smalltorch.efficient.kernels import kernel_attention
from smalltorch.engine.sample import normal
from smalltorch.experiments import stand_ins
from smalltorch.experiments.stand_ins import ALL, FEATURES, KEYS, LAST, SIZES, WAYS, _by_features, _error, _softmax_of
from smalltorch.experiments.table import stored

Q, K, V = (normal(f"{name} of two heads", 2, KEYS, stand_ins.D_H) / 3 for name in "QKV")
A = _softmax_of(Q[:, -LAST:], K)


def test_features_are_those_of_the_library():
    W = normal("rows of features", 64, stand_ins.D_H)
    read = _by_features(Q[:, -LAST:], K, W) @ V
    assert read.allclose(kernel_attention(Q, K, V, W, causal=True)[:, -LAST:], atol=1e-9)


def test_moved_keys_change_no_attention_and_are_opposite():
    moved = stand_ins._moved(Q, K)
    assert _softmax_of(Q[:, -LAST:], moved).allclose(A, atol=1e-12)
    assert moved.mean(1).allclose(-Q.mean(1), atol=1e-12)


def test_an_error_is_relative_and_of_the_median_head():
    assert _error(A, A, V) == 0 and _error(0 * A, A, V) == pytest.approx(1)
    three = torch.cat([A, A[:1]]), torch.cat([V, V[:1]])
    made = torch.cat([2 * A[:1], 1.5 * A[1:], 1.1 * A[:1]])
    assert _error(made, *three) == pytest.approx(0.5)


def test_who_sees_what():
    near = stand_ins._first_and_last(3)
    assert near.shape == (LAST, KEYS) and (near.sum(1) == 4).all()
    assert near[0].nonzero()[:, 0].tolist() == [0, 62, 63, 64]
    kept = stand_ins._only(A, near)
    assert kept.sum(-1).allclose(torch.ones(()).double()) and not kept[:, ~near].any()


def test_stand_ins_at_equal_cost():
    found = {(name, s): error for name, s, error in stand_ins._errors_at_equal_cost(Q, K, V, 6)}
    U, sizes, W = torch.linalg.svd(A)
    for s in SIZES:
        nearest = (U[..., :s] * sizes[:, None, :s]) @ W[:, :s]
        largest = torch.where(A >= A.topk(s).values[..., -1:], A, 0)
        assert found["best rank", s] == pytest.approx(_error(nearest, A, V))
        assert found["largest weights", s] == pytest.approx(_error(largest / largest.sum(-1, keepdim=True), A, V))
        near = stand_ins._only(A, stand_ins._first_and_last(s - 1))
        assert found["first and nearest", s] == pytest.approx(_error(near, A, V))
        G = normal(f"columns, {s} in 6", KEYS, s)
        assert found["random columns", s] == pytest.approx(_error(A @ G @ G.T / s, A, V))
    assert found["keys by lot", 4] > found["keys by lot", 32] > found["largest weights", 32]


def test_the_stored_table_is_whole():
    _, lines = stored("stand_ins")
    assert tuple(lines[0]) == stand_ins.COLUMNS
    found = [(int(line["passage"]), line["way"], int(line["size"])) for line in lines]
    kinds = ("largest weights", "best rank", "first and nearest", "keys by lot", "features", "random columns")
    first = {(p, way, m) for p in range(6) for way in WAYS for m in FEATURES} | {(p, "nearest", 16) for p in range(6)}
    assert len(found) == len(set(found)) and set(found) == first | {
        (p, way, s) for p in range(6, ALL) for way in kinds for s in SIZES
    }
    assert all(0 < float(line["error"]) < 30 for line in lines)


def test_a_passage_that_is_none_is_named():
    with pytest.raises(ValueError, match="passage"):
        list(stand_ins.rows(ALL))
