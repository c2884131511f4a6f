"""Compression: as torch and GGUF have it, and what each function is made for."""

import itertools

import gguf
import pytest
import torch
import torch.nn.functional as F

from smalltorch.compress import distillation_loss, quantise, remove_weight, ternarise
from smalltorch.engine.sample import normal


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_quantised_rows_are_torchs(bits):
    X = normal("rows to quantise", 5, 33).float()
    most = 2 ** (bits - 1) - 1
    h = X.abs().amax(-1) / most
    theirs = torch.fake_quantize_per_channel_affine(X, h, torch.zeros(5, dtype=torch.int32), 0, -most, most)
    torch.testing.assert_close(quantise(X, bits), theirs)


def test_quantised_blocks_are_ggufs_but_for_its_half_scale():
    X = normal("blocks to quantise", 7, 32).float()
    kind = gguf.GGMLQuantizationType.Q8_0
    theirs = torch.from_numpy(gguf.dequantize(gguf.quantize(X.numpy(), kind), kind))
    assert (quantise(X, 8) - theirs).abs().max() < 127 * 2**-11 * (X.abs().max() / 127) + 1e-6


def test_what_is_quantised_stays_and_zeros_stay_zeros():
    X = quantise(normal("twice", 6, 16), 4)
    torch.testing.assert_close(quantise(X, 4), X)
    assert not quantise(torch.zeros(2, 4), 3).any()


def test_no_ternary_group_is_nearer():
    for x in normal("ternary", 20, 6):
        nearest = min(
            float((x - a * s).square().sum())
            for signs in itertools.product((-1, 0, 1), repeat=6)
            if any(signs)
            for s in [torch.tensor(signs).double()]
            for a in [x @ s / (s @ s)]
        )
        assert float((x - ternarise(x)).square().sum()) == pytest.approx(nearest)
    assert not ternarise(torch.zeros(3)).any()


def test_what_is_removed_is_made_up_for_by_least_squares():
    A, w = normal("data", 20, 5), normal("weights", 5)
    v = remove_weight(w, A.T @ A, 2)
    others = [0, 1, 3, 4]
    torch.testing.assert_close(v[others], torch.linalg.lstsq(A[:, others], (A @ w)[:, None]).solution[:, 0])
    assert v[2] == 0


@pytest.mark.parametrize(
    "G", [torch.tensor([[1.0, 2.0], [2.0, 1.0]]), torch.tensor([[1.0, 0.5], [0.0, 1.0]])], ids=["indefinite", "skew"]
)
def test_a_form_that_is_no_distance_is_refused(G):
    with pytest.raises(ValueError, match="G"):
        remove_weight(torch.ones(2), G, 0)
    with pytest.raises(ValueError, match="q"):
        remove_weight(torch.ones(2), torch.eye(2), 2)


@pytest.mark.parametrize("T", [0.5, 1.0, 4.0])
def test_distillation_is_torchs(T):
    student, teacher = normal("student", 7, 4), normal("teacher", 7, 4)
    theirs = F.kl_div((student / T).log_softmax(-1), (teacher / T).softmax(-1), reduction="batchmean") * T**2
    torch.testing.assert_close(distillation_loss(student, teacher, T), theirs)
    with pytest.raises(ValueError, match="T"):
        distillation_loss(student, teacher, 0.0)


def test_the_loss_of_hot_students_is_near_its_limit_and_never_negative():
    s, t = torch.tensor([[1.0, 2.0, 0.0]]).double(), torch.tensor([[2.0, 1.0, 0.5]]).double()
    limit = float(((s - s.mean()) - (t - t.mean())).square().mean() / 2)
    for T in (1e3, 1e5, 1e7, 1e8, 1e15, 1e100, 1e150):
        assert float(distillation_loss(s, t, T)) == pytest.approx(limit, rel=3 / T + 1e-9)
    for scale in (1e-3, 1e-9, 1e-100):  # students that are nearly their teachers
        noise = torch.tensor([[0.3, -1.0, 0.5]]).double()
        p = t.softmax(-1)
        variance = float((p * (noise - (p * noise).sum()).square()).sum())
        assert float(distillation_loss(t + scale * noise, t, 1.0)) == pytest.approx(
            scale**2 * variance / 2, rel=2 * scale + 1e-15 / scale, abs=1e-300
        )
    student = (t + 1e-6).requires_grad_()
    distillation_loss(student, t, 2.0).backward()
    assert student.grad.isfinite().all()
    for T in (0.0, 1e-200, 1e200):
        with pytest.raises(ValueError, match="^T, student: expected a temperature above 0"):
            distillation_loss(s, t, T)
    with pytest.raises(ValueError, match="^student, teacher, T: expected sizes whose products"):
        distillation_loss(1e200 * s, t, 1e-120)


def test_more_bits_than_float64_can_tell_apart_are_refused():
    X = torch.tensor([0.1, -0.7]).double()
    assert torch.allclose(quantise(X, 54), X, rtol=1e-15)
    with pytest.raises(ValueError, match="^bits: expected at most 54, got 2147483648$"):
        quantise(X, 2**31)
