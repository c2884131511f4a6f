"""Every split equals the model in one piece, in real processes; the formulas are held against what was counted."""

import copy
from fractions import Fraction
from functools import cache

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.utils import parameters_to_vector

from smalltorch.attention import MultiHead, causal_mask
from smalltorch.block import FFN, PostLN, PreLN
from smalltorch.norm import LayerNorm
from smalltorch.parallel.demonstrations import demonstrate, handed_over
from smalltorch.parallel.launch import launch
from smalltorch.parallel.splits import RingHeads, SplitHeads, ring_attention, run_pipeline
from smalltorch.parallel.volume import bubble, earliest, gpipe, one_f_one_b, ring_sent, share

RATE, STEPS, PARTS = 0.01, 4, 5
BOTH = pytest.mark.parametrize("processes", [2, 4])
CLOSE = dict(rtol=1e-11, atol=1e-12)


@cache
def given():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 3)).double()
    block = PreLN(MultiHead(20, 5, bias=True), FFN(20, 27), LayerNorm(20), LayerNorm(20)).double()
    layers = [PostLN(MultiHead(12, 3, bias=True), FFN(12, 10), LayerNorm(12), LayerNorm(12)).double() for _ in range(6)]
    for parameter in [p for module in (block, *layers) for p in module.parameters() if p.ndim == 1]:
        parameter.data += 0.3 * torch.randn_like(parameter)
    X, Y, Z, text = (torch.randn(*size).double() for size in ((11, 5), (11, 3), (13, 20), (7, 12)))
    distilled = torch.randn(11, 3, 12).double(), torch.randn(11, 3, 12).double(), RATE
    A, c = torch.tensor([1.0, 2.0, 3.0, 4.0]).double()[:, None, None], torch.randn(4, 1).double()
    return model, X, Y, block, Z, layers, text, distilled, A, c


@cache
def found(processes):
    *rest, A, c = given()
    return launch(demonstrate, processes, *rest, RATE, STEPS, (0.0, 0.0), PARTS, (A, c, 0.1, (1, 3), 400))


def alone(model=None, X=None, Y=None):
    model, X, Y = copy.deepcopy(model or given()[0]), *(given()[1:3] if X is None else (X, Y))
    adam = torch.optim.Adam(model.parameters(), lr=RATE)
    for _ in range(STEPS):
        adam.zero_grad()
        F.mse_loss(model(X), Y).backward()
        adam.step()
    return parameters_to_vector(model.parameters()).detach()


@pytest.mark.processes
@BOTH
@pytest.mark.parametrize("way", ["data", "zero", "fsdp"])
def test_one_large_batch(processes, way):
    for worker in found(processes):
        torch.testing.assert_close(worker[way]["right"], alone(), **CLOSE)
        assert (worker["data"]["wrong"] - alone()).abs().max() > 1e-3


@pytest.mark.processes
@BOTH
def test_one_large_batch_of_texts(processes):
    states, targets, _ = given()[7]
    wanted = alone(given()[5][0], states, targets)
    for worker in found(processes):
        # b_K has no gradient but rounding, which Adam divides by 1e-8
        torch.testing.assert_close(worker["data, a layer"]["right"], wanted, rtol=0, atol=1e-9)
        assert (worker["data, a layer"]["wrong"] - wanted).abs().max() > 1e-3


@pytest.mark.processes
@BOTH
def test_shards(processes):
    n = len(alone())
    assert all(worker["zero"]["states"] == 2 * -(-n // processes) for worker in found(processes))
    held = [sum(worker["fsdp"]["held"][k] for worker in found(processes)) for k in range(3)]
    assert held == [n, n, 2 * n]
    for worker in found(processes):
        assert worker["fsdp"]["calls"] == {kind: STEPS * count for kind, count in worker["fsdp"]["theirs"].items()}


@pytest.mark.processes
@BOTH
def test_the_ring(processes):
    x = parameters_to_vector(given()[0].parameters()).detach()
    for rank, worker in enumerate(found(processes)):
        torch.testing.assert_close(worker["ring"]["right"], processes * (processes + 1) / 2 * x, **CLOSE)
        assert worker["ring"]["sent"] == ring_sent(len(x), processes, rank)
        assert worker["ring"]["calls"] == 2 * (processes - 1)
        assert worker["data"]["bytes"] == {"all-reduce": 8 * STEPS * len(x)}


@pytest.mark.processes
@BOTH
def test_heads_and_hidden_features(processes):
    block, Z = copy.deepcopy(given()[3]), given()[4].clone().requires_grad_()
    out = block(Z, causal_mask(13))
    out.square().mean().backward()
    joined = {
        name: [worker["tensor"]["weights"][name] for worker in found(processes)] for name, _ in block.named_parameters()
    }
    for name, p in block.named_parameters():
        short = name.rpartition(".")[2]
        if short in ("W_Q", "W_K", "W_V", "W_1", "b_Q", "b_K", "b_V", "b_1"):
            torch.testing.assert_close(torch.cat(joined[name], -1), p.grad, **CLOSE)
        elif short in ("W_O", "W_2"):
            torch.testing.assert_close(torch.cat(joined[name], 0), p.grad, **CLOSE)
        else:
            torch.testing.assert_close(joined[name][-1], p.grad, **CLOSE)
    for worker in found(processes):
        torch.testing.assert_close(worker["tensor"]["right"], out.detach(), **CLOSE)
        torch.testing.assert_close(worker["tensor"]["input"], Z.grad, **CLOSE)
        torch.testing.assert_close(worker["dtensor"]["right"], block.ffn(Z).detach(), **CLOSE)
        torch.testing.assert_close(worker["tensor"]["ffn"], block.ffn(Z).detach(), **CLOSE)
        assert (worker["tensor"]["wrong"] - block.ffn(Z)).abs().max() > 1e-2
        assert (
            worker["tensor"]["calls"] == {"all-reduce": 4} and worker["dtensor"]["calls"] == worker["dtensor"]["theirs"]
        )


@pytest.mark.processes
@BOTH
def test_tokens(processes):
    block, Z = given()[3:5]
    rows = [
        torch.cat([worker["sequence"][name] for worker in found(processes)], -2)
        for name in ("right", "merged", "wrong")
    ]
    torch.testing.assert_close(rows[0], block(Z, causal_mask(13)).detach(), **CLOSE)
    plain = F.scaled_dot_product_attention(*block.attention.project(Z)).detach()
    torch.testing.assert_close(rows[1], plain, **CLOSE)
    assert (rows[2] - plain).abs().max() > 1e-2


@pytest.mark.processes
@BOTH
def test_layers(processes):
    layers, text = given()[5:7]
    stack = torch.nn.Sequential(*copy.deepcopy(layers))
    out = torch.cat([stack(text[share(7, PARTS, k)]) for k in range(PARTS)])
    (out.square().sum() / text.numel()).backward()
    whole = torch.nn.Sequential(*layers)(text).detach()
    tokens = torch.cat([worker["layers by tokens"]["right"] for worker in found(processes)])
    torch.testing.assert_close(tokens, whole, **CLOSE)
    for rank, worker in enumerate(found(processes)):
        torch.testing.assert_close(worker["layers by heads"]["right"], whole, **CLOSE)
        for name, kept in (("GPipe", PARTS), ("1F1B", min(PARTS, processes - rank))):
            run, first = worker["pipeline"][name], share(6, processes, rank).start
            assert run["most"] == kept
            for key, gradient in run["gradients"].items():
                layer, _, rest = key.partition(".")
                wanted = stack.get_parameter(f"{first + int(layer)}.{rest}")
                assert gradient.ndim == 1
                torch.testing.assert_close(gradient, handed_over(wanted), **CLOSE)
            assert len(run["gradients"]) == len(list(stack[share(6, processes, rank)].parameters()))
            assert bool(run["losses"]) == (rank == processes - 1)
            times = [t for step in run["done"] for t in step[2:]]
            assert times == sorted(times)


@pytest.mark.processes
@BOTH
def test_federated_averaging_ends_at_its_fixed_point(processes):
    A, c = (x[:processes].flatten() for x in given()[8:])
    for steps, end in found(processes)[0]["federated"].items():
        pull = 1 - (1 - 0.1 * A) ** steps
        assert float(end) == pytest.approx(float((pull * c).sum() / pull.sum()), rel=1e-9)


@pytest.mark.processes
@BOTH
def test_what_is_counted(processes):
    padded = sum(processes * -(-p.shape[0] // processes) * p[0].numel() for p in given()[0].parameters())
    for worker in found(processes):
        assert worker["fsdp"]["bytes"] == {"all-gather": 2 * 8 * STEPS * padded, "reduce-scatter": 8 * STEPS * padded}
        assert worker["layers by heads"]["bytes"] == {"all-reduce": 2 * 6 * 8 * 7 * 12}
    sent = sum(worker["layers by tokens"]["bytes"] for worker in found(processes))
    assert sent == 2 * 6 * 8 * 7 * 12 * (processes - 1)


def test_shares_are_even_and_complete():
    for n in range(9):
        for processes in range(1, 6):
            parts = [share(n, processes, rank) for rank in range(processes)]
            assert [k for part in parts for k in range(n)[part]] == list(range(n))
            sizes = [part.stop - part.start for part in parts]
            assert sizes == sorted(sizes, reverse=True) and sizes[0] - sizes[-1] <= 1
    assert sum(ring_sent(11, 3, rank) for rank in range(3)) == 2 * 2 * 11
    with pytest.raises(ValueError, match="rank"):
        share(3, 2, 2)


@pytest.mark.parametrize("schedule", [gpipe, one_f_one_b])
def test_the_bubble_of_a_schedule(schedule):
    for stages in range(1, 6):
        for parts in range(1, 9):
            times = earliest([schedule(stages, s, parts) for s in range(stages)], 1, 2)
            total = max(row[-1][1] for row in times)
            for row in times:
                assert 1 - Fraction(sum(end - begin for begin, end in row), total) == bubble(stages, parts)


@pytest.fixture
def group_of_one():
    """All collectives of one process, which is this one."""
    dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    yield
    dist.destroy_process_group()


def test_what_is_split_among_one_is_the_whole(group_of_one):
    """Told nothing, all look at all tokens, and a step lasts as long as it takes."""
    heads, X = MultiHead(12, 3, bias=True).double(), torch.randn(7, 12).double()
    right, A = heads(X)
    torch.testing.assert_close(SplitHeads(heads, slice(0, 3))(X), (right, A), **CLOSE)
    torch.testing.assert_close(RingHeads(heads, 7, False)(X)[0], right, **CLOSE)
    Q, K, V = torch.randn(3, 2, 7, 4).double()
    torch.testing.assert_close(ring_attention(Q, K, V, 7), F.scaled_dot_product_attention(Q, K, V), **CLOSE)
    stage = torch.nn.Linear(12, 12).double()
    done, most, losses = run_pipeline(stage, gpipe(1, 0, 2), [X[:4], X[4:]], lambda y, part: y.square().sum())
    whole = stage(X).square().sum()
    torch.testing.assert_close(sum(losses), whole, **CLOSE)
    torch.testing.assert_close(stage.weight.grad, torch.autograd.grad(whole, stage.weight)[0], **CLOSE)
    assert most == 2 and len(done) == 4 and done[-1].ended - done[0].begun < 5


def test_ranks_and_stages_begin_at_0():
    with pytest.raises(ValueError, match="^rank: expected one of 3, from 0 on, got 3$"):
        ring_sent(11, 3, 3)
    for schedule in (gpipe, one_f_one_b):
        with pytest.raises(ValueError, match="^stage: expected one of 2, from 0 on, got 2$"):
            schedule(2, 2, 4)


def test_an_order_that_cannot_be_is_refused():
    with pytest.raises(ValueError, match="waits for ever"):
        earliest([[("B", 0), ("F", 0)]], 1, 1)


def test_what_is_seen_of_a_matrix():
    p = torch.nn.Parameter(torch.zeros(2, 3).double())
    with pytest.raises(ValueError, match="with a gradient"):
        handed_over(p)
    p.grad = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]).double()
    assert handed_over(p).tolist() == [1.0, 3.5]
