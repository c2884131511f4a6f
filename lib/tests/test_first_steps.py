"""The long run on the first steps of training: that it compares what it says, and that its stored table is whole."""

import itertools

import pytest
import torch
from torch.func import functional_call

from smalltorch.experiments import first_steps
from smalltorch.experiments.first_steps import _Course, _rate_at, _shared
from smalltorch.experiments.table import stored
from smalltorch.train import next_token_loss


def test_all_placements_start_from_the_same_weights():
    post, pre, b2t, deep = (_Course(2, place, range(2)).parameters for place in first_steps.PLACES)
    assert set(pre) - set(post) == {"norm.gamma", "norm.beta"} and set(post) == set(b2t) == set(deep)
    beta = first_steps.deepnorm_scales(2).beta
    for name, weights in post.items():
        assert weights.equal(pre[name]) and weights.equal(b2t[name]), name
        smaller = name.endswith(("W_V", "W_O", "W_1", "W_2"))
        assert torch.allclose(deep[name], beta * weights if smaller else weights), name
    assert not post["W_U"][0].equal(post["W_U"][1])


def test_the_rate_rises_and_falls():
    rates = [_rate_at(step, 1.0, 4, 20) for step in range(21)]
    assert rates[:6] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0, 15 / 16]) and rates[20] == 0
    assert [_rate_at(step, 1.0, 0, 20) for step in (0, 10, 20)] == [1, 0.5, 0]


def test_the_gradient_is_that_of_the_states():
    """Against hooks on the blocks of one seed's model."""
    course = _Course(3, "b2t", range(2))
    for seed, found in enumerate(course.gradients()):
        weights = {name: W[seed].detach() for name, W in course.parameters.items()}
        inputs = []
        hooks = [
            block.register_forward_pre_hook(lambda module, given, to=inputs: to.append(given[0].requires_grad_()))
            for block in course.model.blocks
        ]
        loss = next_token_loss(lambda read, w=weights: functional_call(course.model, w, (read,)), first_steps.HELD_OUT)
        for hook in hooks:
            hook.remove()
        lengths = torch.stack([g.norm() for g in torch.autograd.grad(loss, inputs)])
        torch.testing.assert_close(found.detach(), lengths)


def test_sharpness_is_that_of_the_dense_hessian():
    """Of two seeds at once, against the largest eigenvalue of the Hessian with respect to the last block's vectors and
    the readout, which it cannot lie below; and along any direction the Hessian bends less."""
    course = _Course(1, "post", range(2))
    found = course.sharpness(steps=40)
    tokens = first_steps.HELD_OUT[: len(first_steps.HELD_OUT) // 2]
    names = [name for name in course.parameters if name.endswith(("W_U", "gamma", "beta"))]
    for seed in range(2):
        weights = {name: W[seed].detach() for name, W in course.parameters.items()}

        def loss(flat, weights=weights):
            parts = flat.split([weights[name].numel() for name in names])
            some = {name: part.view_as(weights[name]) for name, part in zip(names, parts, strict=True)}
            return next_token_loss(lambda read: functional_call(course.model, weights | some, (read,)), tokens)

        dense = torch.autograd.functional.hessian(loss, torch.cat([weights[name].flatten() for name in names]))
        within = torch.linalg.eigvalsh(dense)[-1].item()
        assert within - 1e-9 <= found[seed].item() < 30 * within
    assert (course.sharpness(steps=20) <= found + 1e-9).all() and torch.allclose(
        course.sharpness(steps=20), found, rtol=0.02
    )


def test_ten_products_are_enough_for_the_sharpness():
    course = _Course(6, "deepnorm", range(1))
    torch.testing.assert_close(course.sharpness(), course.sharpness(steps=20), rtol=0.02, atol=0)


def test_what_tokens_have_in_common():
    """All of tokens that are equal, nothing of tokens that cancel, and a half of two at right angles; per seed."""
    one, other = torch.eye(2).double()
    X = torch.stack([torch.stack(pair) for pair in ((one, one), (one, -one), (one, other))])[:, None]
    torch.testing.assert_close(_shared(X), torch.tensor([1, 0, 0.5]).double())
    both = torch.stack([torch.stack([one, one]), torch.stack([-one, -one])])[None]  # two sequences that differ
    torch.testing.assert_close(_shared(both), torch.ones(1).double())
    assert _shared(0 * X).equal(torch.zeros(3).double())


def test_the_stored_table_is_whole():
    head, lines = stored("first_steps")
    assert [line.split(":")[0] for line in head] == ["command", "seeds", "versions", "hardware"]
    assert tuple(lines[0]) == first_steps.COLUMNS
    keys = [tuple(line[key] for key in first_steps.KEYS) for line in lines]
    seeds = range(len({line["seed"] for line in lines}))
    assert len(seeds) >= 6 and len(keys) == len(set(keys))
    ways = {(0.0, 0): (6, 12, 18), **first_steps.WAYS}
    assert set(keys) == {
        (str(layers), place, str(rate), str(warmup), str(seed), str(moment))
        for (rate, warmup), depths in ways.items()
        for layers, place, seed in itertools.product(depths, first_steps.PLACES, seeds)
        for moment in ((1, 10, first_steps.STEPS) if rate else (0,))
    }
    for line in lines:
        assert 0 < float(line["excess"]) < 1 and 0 <= float(line["alike"]) <= 1 + 1e-9
        assert 0 <= float(line["moved"]) <= 2 + 1e-9 and (float(line["sharp"]) > 0) == (line["moment"] != "1")


def test_the_stored_table_starts_as_the_script_does():
    """The untrained models need no training: their lines must come out again."""
    _, lines = stored("first_steps")
    for place in ("post", "deepnorm"):
        old = [line for line in lines if line["layers"] == "6" and line["rate"] == "0.0" and line["place"] == place]
        for made, line in zip(first_steps.rows(6, place, 0.0, 0, seeds=2), old, strict=False):
            for value, column in zip(made, first_steps.COLUMNS, strict=True):
                assert line[column] == str(value) or float(line[column]) == pytest.approx(float(value), abs=1e-3)


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="warmup: expected fewer than the 4 steps"):
        list(first_steps.rows(1, "post", 1e-3, 4, seeds=1, steps=4))
    with pytest.raises(ValueError, match="place"):
        list(first_steps.rows(1, "sandwich", 1e-3, 0, seeds=1))
