"""Circuits: the induction head built by hand, scores, interventions, and Cover's count."""

import itertools
import math

import pytest
import torch

from smalltorch.attention import MultiHead
from smalltorch.circuits import dichotomies, head_values, heads_set, induction_lm, looking_back
from smalltorch.engine.sample import normal
from smalltorch.models import Decoder, observe


def sharp(n, v, delta):
    # the least numbers that the theorem asks for
    return math.log(4 * n) / (1 - math.cos(2 * math.pi / n)), 2 * math.log(4 * n), 2 * math.log(v / delta)


@pytest.mark.parametrize("copies", [1, 2, 3])
@pytest.mark.parametrize(("n", "v"), [(3, 2), (5, 3), (6, 4)])
def test_the_built_head_goes_on_as_the_text_did(n, v, copies):
    model = induction_lm(v, n, *sharp(n, v, 0.1), copies=copies)
    seen = 0
    for text in itertools.product(range(1, v), repeat=n - 1):
        after = {text[j + 1] for j in range(n - 2) if text[j] == text[-1]}
        if len(after) == 1:
            seen += 1
            p = model(torch.tensor([(0, *text)]))[0, -1].softmax(-1)
            assert p[after.pop()] > 0.9
    assert seen


def test_the_first_layer_looks_one_token_back():
    model = induction_lm(3, 9, c=200.0, beta=1.0, g=1.0)
    with observe(model, MultiHead) as calls:
        model(torch.tensor([[0, 1, 2, 1, 1, 2, 0, 2, 1]]))
    assert looking_back(calls[0].output[1], 1, 8) > 0.99


def test_scores_of_the_first_layer_are_the_cosines():
    n, c = 5, 3.0
    model = induction_lm(2, n, c, 1.0, 1.0)
    with observe(model, MultiHead) as calls:
        model(torch.zeros(1, n, dtype=torch.long))
    i, j = torch.arange(n).double()[:, None], torch.arange(n).double()
    S = (c * torch.cos(2 * math.pi * (i - 1 - j) / n)).masked_fill(j > i, -math.inf)
    torch.testing.assert_close(calls[0].output[1][0, 0], S.softmax(-1))


def test_the_second_layer_and_the_logits_are_sharp_as_asked():
    beta, g = 2.0, 3.0
    model = induction_lm(4, 4, 1e4, beta, g)
    logits = model(torch.tensor([[0, 1, 2, 1]]))[0, -1]
    own = math.exp(beta) / (math.exp(beta) + 3)
    other = (1 - own) / 3
    torch.testing.assert_close(logits, g * torch.tensor([other, 2 * other, own, 0.0]).double())


def test_looking_back_is_a_mean_over_the_last_rows():
    A = normal("attention", 2, 6, 6)
    torch.testing.assert_close(looking_back(A, 2, 3), (A[:, 3, 1] + A[:, 4, 2] + A[:, 5, 3]) / 3)
    torch.testing.assert_close(looking_back(A, 0, 6), A.diagonal(dim1=1, dim2=2).mean(-1))
    with pytest.raises(ValueError, match="rows: expected at most n - distance = 4"):
        looking_back(A, 2, 5)


def decoder():
    torch.manual_seed(0)
    return Decoder(vocabulary=11, d=16, layers=3, heads=4, d_ff=8, kv_heads=2).double().requires_grad_(False)


def test_heads_are_set_where_asked_and_nowhere_else():
    model, tokens = decoder(), torch.arange(10).view(2, 5)
    plain = model(tokens)
    with observe(model, MultiHead) as calls:
        model(tokens)
    H = head_values(calls)
    where = torch.zeros(3, 2, 4, 5, dtype=torch.bool)
    where[1, 0, 2, 3] = True
    with heads_set(model, where, torch.zeros_like(H)), observe(model, MultiHead) as changed:
        without = model(tokens)
    torch.testing.assert_close(without[1], plain[1])
    torch.testing.assert_close(without[0, :3], plain[0, :3])
    assert (without[0, 3:] - plain[0, 3:]).abs().amax(-1).min() > 1e-6
    rows = model.blocks[1].attention.W_O[8:12]
    torch.testing.assert_close(calls[1].output[0][0, 3] - changed[1].output[0][0, 3], H[1, 0, 2, 3] @ rows)
    torch.testing.assert_close(model(tokens), plain)


def test_heads_of_another_run_give_its_attention_layer():
    model, tokens, others = decoder(), torch.arange(5)[None], torch.arange(5, 10)[None]
    with observe(model, MultiHead) as calls:
        model(others)
    everywhere = torch.ones(3, 1, 4, 5, dtype=torch.bool)
    with heads_set(model, everywhere, head_values(calls)), observe(model, MultiHead) as changed:
        model(tokens)
    for before, after in zip(calls, changed, strict=True):
        torch.testing.assert_close(after.output[0], before.output[0])


def test_what_heads_write_is_the_output_of_attention():
    model = decoder()
    with observe(model, MultiHead) as calls:
        model(torch.arange(5)[None])
    for H, call in zip(head_values(calls), calls, strict=True):
        torch.testing.assert_close(H.transpose(-3, -2).flatten(-2) @ call.module.W_O, call.output[0])


def test_the_model_is_as_before_after_an_error():
    model, where = decoder(), torch.ones(3, 1, 4, 5, dtype=torch.bool)
    before = model(torch.arange(4)[None])
    with (
        pytest.raises(ValueError, match="where: expected"),
        heads_set(model, where, torch.zeros(3, 1, 4, 1, 4).double()),
    ):
        model(torch.arange(4)[None])
    torch.testing.assert_close(model(torch.arange(4)[None]), before)


@pytest.mark.parametrize(("N", "d"), [(1, 3), (3, 3), (5, 2), (6, 3)])
def test_covers_count_is_that_of_sign_patterns(N, d):
    points = normal(f"{N} points", N, d)
    if N <= d:
        assert dichotomies(N, d) == 2**N
        return
    # each cell of directions has a vertex: a direction orthogonal to d - 1 points, moved to either side of each
    signs = set()
    for chosen in itertools.combinations(range(N), d - 1):
        normal_to = torch.linalg.svd(points[list(chosen)]).Vh[-1]
        for turned in (normal_to, -normal_to):
            at = torch.sign(points @ turned)
            for sides in itertools.product((-1.0, 1.0), repeat=d - 1):
                at[list(chosen)] = torch.tensor(sides).double()
                signs.add(tuple(at.tolist()))
    assert len(signs) == dichotomies(N, d)


def test_equal_heads_share_what_one_would_write():
    text = torch.tensor([[0, 1, 2, 3, 1]])
    one, three = (induction_lm(4, 5, 3.0, 2.0, 1.5, copies=copies)(text) for copies in (1, 3))
    torch.testing.assert_close(one, three)


def test_what_is_not_chosen_may_be_anything():
    model, where = decoder(), torch.zeros(3, 1, 4, 5, dtype=torch.bool)
    where[0, :, 1] = True
    values = torch.full((3, 1, 4, 5, 4), math.nan).double()
    values[0, :, 1] = 0
    with heads_set(model, where, values):
        assert model(torch.arange(5)[None]).isfinite().all()
