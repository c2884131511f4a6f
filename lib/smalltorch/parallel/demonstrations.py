"""The runs of chapter `parallelism`: every kind of parallelism, in one launch.

Each function runs in all workers and gives what the chapter compares with the model in one piece. One of each pair of
results is of a split that is wrong on purpose.
"""

import copy
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.debug import CommDebugMode
from torch.nn.utils import parameters_to_vector

from smalltorch.attention import attention, causal_mask
from smalltorch.block import PostLN, PreLN
from smalltorch.parallel import counting, splits
from smalltorch.parallel.counting import Moved
from smalltorch.parallel.volume import gpipe, one_f_one_b, share


def demonstrate(
    model: nn.Module,
    X: Tensor,
    Y: Tensor,
    block: PreLN,
    Z: Tensor,
    layers: list[PostLN],
    text: Tensor,
    distilled: tuple[Tensor, Tensor, float],
    rate: float,
    steps: int,
    seconds: tuple[float, float],
    parts: int,
    federated: tuple[Tensor, Tensor, float, tuple[int, ...], int],
) -> dict[str, Any]:
    """All demonstrations of the chapter, by their names."""
    torch.manual_seed(0)
    return {
        "data": data_parallel(model, X, Y, rate, steps),
        "data, a layer": data_parallel(layers[0], *distilled, steps),
        "zero": zero(model, X, Y, rate, steps),
        "fsdp": fsdp(model, X, Y, rate, steps),
        "ring": ring(parameters_to_vector(model.parameters()).detach()),
        "tensor": tensor_parallel(block, Z),
        "dtensor": dtensor(block, Z),
        "sequence": sequence_parallel(block, Z),
        "layers by heads": by_heads(layers, text),
        "layers by tokens": by_tokens(layers, text),
        "pipeline": pipeline(layers, text, parts, seconds),
        "federated": federated_averaging(*federated),
    }  # fmt: skip


def handed_over(parameter: nn.Parameter) -> Tensor:
    """A gradient that is small enough to be handed over: of a vector itself, of a matrix times a fixed vector."""
    gradient = parameter.grad
    if gradient is None:
        raise ValueError("parameter: expected one with a gradient, got one without")
    return gradient if gradient.ndim < 2 else gradient @ torch.linspace(1, 2, gradient.shape[-1], dtype=gradient.dtype)


def _own(n: int) -> slice:
    return share(n, dist.get_world_size(), dist.get_rank())


def _trained(model: nn.Module, X: Tensor, Y: Tensor, rate: float, steps: int, weight: float) -> Tensor:
    model = copy.deepcopy(model).requires_grad_()
    adam, own = torch.optim.Adam(model.parameters(), lr=rate), _own(len(X))
    for _ in range(steps):
        adam.zero_grad()
        F.mse_loss(model(X[own]), Y[own]).backward()
        splits.average_gradients(model.parameters(), weight)
        adam.step()
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def data_parallel(model: nn.Module, X: Tensor, Y: Tensor, rate: float, steps: int) -> dict[str, Any]:
    """Parameters after some steps of Adam: gradients weighted by shares of the batch, and, wrongly, all alike."""
    own, processes = _own(len(X)), dist.get_world_size()
    with Moved() as moved:
        right = _trained(model, X, Y, rate, steps, (own.stop - own.start) / len(X))
    return {"right": right, "wrong": _trained(model, X, Y, rate, steps, 1 / processes), "bytes": dict(moved.bytes)}


def zero(model: nn.Module, X: Tensor, Y: Tensor, rate: float, steps: int) -> dict[str, Any]:
    """The same with Adam's states in shards; and how many numbers of Adam's a worker holds."""
    model, own = copy.deepcopy(model), _own(len(X))
    adam = splits.ShardedAdam(model.parameters(), rate, (own.stop - own.start) / len(X))
    with Moved() as moved:
        for _ in range(steps):
            model.zero_grad()
            F.mse_loss(model(X[own]), Y[own]).backward()
            adam.step()
    states = sum(x.numel() for x in adam.adam.state[adam.shard].values() if x.ndim)
    return {"right": parameters_to_vector(model.parameters()).detach(), "states": states, "bytes": dict(moved.bytes)}


def fsdp(model: nn.Module, X: Tensor, Y: Tensor, rate: float, steps: int) -> dict[str, Any]:
    """The same by PyTorch's own `fully_shard`, layer by layer: it averages alike, so the loss is weighted before."""
    model, own, processes = copy.deepcopy(model), _own(len(X)), dist.get_world_size()
    mesh = init_device_mesh("cpu", (processes,))
    for layer in model.children():
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh, reshard_after_forward=True)
    fully_shard(model, mesh=mesh)
    parameters: list[Any] = list(model.parameters())
    adam = torch.optim.Adam(model.parameters(), lr=rate, foreach=False)
    held = sum(p.to_local().numel() for p in parameters)
    weight, moved = processes * (own.stop - own.start) / len(X), Moved()
    with moved:
        for _ in range(steps):
            adam.zero_grad()
            (weight * F.mse_loss(model(X[own]), Y[own])).backward()
            adam.step()
    with CommDebugMode() as debug:  # PyTorch's own count, of one step
        F.mse_loss(model(X[own]), Y[own]).backward()
    slices = sum(p.grad.to_local().numel() for p in parameters)
    states = sum(x.to_local().numel() for p in parameters for x in adam.state[p].values() if x.ndim)
    theirs = {counting.SPOKEN[str(op)]: count for op, count in debug.get_comm_counts().items()}
    whole = torch.cat([p.full_tensor().detach().flatten() for p in parameters])
    return {"right": whole, "held": (held, slices, states), "calls": dict(moved.calls), "bytes": dict(moved.bytes),
            "theirs": theirs}  # fmt: skip


def ring(x: Tensor) -> dict[str, Any]:
    """A vector times rank + 1, summed by messages; and what this worker sent."""
    with Moved() as moved:
        total = splits.ring_all_reduce((dist.get_rank() + 1) * x)
    return {"right": total, "sent": moved.bytes["send"] // x.element_size(), "calls": moved.calls["send"]}


def _gradients(run: Any, Z: Tensor, names: dict[str, nn.Parameter]) -> tuple[Any, Any, dict[str, Any]]:
    Z = Z.clone().requires_grad_()
    out = run(Z)
    out.square().mean().backward()
    return out.detach(), Z.grad, {name: p.grad for name, p in names.items()}


def tensor_parallel(block: PreLN, Z: Tensor) -> dict[str, Any]:
    """Output, gradient of the input and of the matrices of a split block; and, wrongly, b_2 added by every worker."""
    split = splits.tensor_split(copy.deepcopy(block))
    mask = causal_mask(Z.shape[-2])
    with Moved() as moved:
        out, of_input, of_weights = _gradients(lambda Z: split(Z, mask), Z, dict(split.named_parameters()))
    ffn: Any = split.ffn
    with torch.no_grad():
        part = ffn.activation(Z @ ffn.W_1 + ffn.b_1) @ ffn.W_2
        wrong = splits.summed(part + ffn.b_2)
        right = ffn(Z)
    held = sum(p.numel() for name, p in split.named_parameters() if "W_" in name)
    return {"right": out, "input": of_input, "weights": of_weights, "ffn": right, "wrong": wrong, "held": held,
            "calls": dict(moved.calls), "bytes": dict(moved.bytes)}  # fmt: skip


def dtensor(block: PreLN, Z: Tensor) -> dict[str, Any]:
    """The FFN with the layout of its matrices told to PyTorch's DTensor, which finds the sums by itself."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    ffn: Any = copy.deepcopy(block.ffn)
    for name, parameter in list(ffn.named_parameters()):
        axis = {"W_1": 1, "b_1": 0, "W_2": 0}.get(name)
        place = Replicate() if axis is None else Shard(axis)
        setattr(ffn, name, nn.Parameter(distribute_tensor(parameter.detach(), mesh, [place])))
    Z = distribute_tensor(Z, mesh, [Replicate()])
    moved, debug = Moved(), CommDebugMode()
    with debug, moved, torch.no_grad():
        out = (ffn.activation(Z @ ffn.W_1 + ffn.b_1) @ ffn.W_2 + ffn.b_2).full_tensor()
    return {"right": out, "calls": sum(moved.calls.values()), "theirs": debug.get_total_counts()}


def sequence_parallel(block: PreLN, Z: Tensor) -> dict[str, Any]:
    """A causal block whose tokens are split; and, wrongly, the softmaxes of the parts averaged."""
    n, own, processes = len(Z), _own(len(Z)), dist.get_world_size()
    heads: Any = splits.RingHeads(block.attention, n, causal=True)
    with torch.no_grad(), Moved() as moved:
        right = PreLN(heads, block.ffn, block.norm_1, block.norm_2)(Z[own])
    with torch.no_grad():
        Q, K, V = block.attention.project(Z)
        merged = splits.ring_attention(Q[:, own], K[:, own], V[:, own], n)
        each = [attention(Q[:, own], K[:, s], V[:, s])[0] for k in range(processes) for s in [share(n, processes, k)]]
    return {"right": right, "merged": merged, "wrong": torch.stack(each).mean(0), "bytes": moved.bytes["send"]}


def by_heads(layers: list[PostLN], text: Tensor) -> dict[str, Any]:
    """Trained layers with heads and hidden features split."""
    with torch.no_grad(), Moved() as moved:
        for layer in layers:
            text = splits.tensor_split(layer)(text)
    return {"right": text, "bytes": dict(moved.bytes)}


def by_tokens(layers: list[PostLN], text: Tensor) -> dict[str, Any]:
    """Trained layers with the tokens split."""
    n, own = len(text), text[_own(len(text))]
    with torch.no_grad(), Moved() as moved:
        for layer in layers:
            heads: Any = splits.RingHeads(layer.attention, n, False)
            own = PostLN(heads, layer.ffn, layer.norm_1, layer.norm_2)(own)
    return {"right": own, "bytes": moved.bytes["send"]}


def pipeline(layers: list[PostLN], text: Tensor, parts: int, seconds: tuple[float, float]) -> dict[str, Any]:
    """Trained layers in stages, on parts of a batch, by both schedules; the last one's gradients are kept."""
    rank, processes = dist.get_rank(), dist.get_world_size()
    batch = [text[share(len(text), parts, k)] for k in range(parts)]
    found: dict[str, Any] = {}
    for name, schedule in (("GPipe", gpipe), ("1F1B", one_f_one_b)):
        stage = nn.Sequential(*copy.deepcopy(layers[_own(len(layers))])).requires_grad_()
        dist.barrier()
        with Moved() as moved:
            done, most, losses = splits.run_pipeline(
                stage, schedule(processes, rank, parts), batch, lambda y, part: y.square().sum() / text.numel(), seconds
            )
        gradients = {name: handed_over(p) for name, p in stage.named_parameters()}
        found[name] = {
            "done": done,
            "most": most,
            "losses": losses,
            "gradients": gradients,
            "bytes": moved.bytes["send"],
        }
    return found


def federated_averaging(A: Tensor, c: Tensor, rate: float, counts: tuple[int, ...], rounds: int) -> dict[int, Tensor]:
    """Where rounds of federated averaging end, for several numbers of local steps on ½ (w − c)ᵀ A (w − c)."""
    own, ends = dist.get_rank() % len(A), {}
    for steps in counts:

        def local(w: Tensor, steps: int = steps) -> Tensor:
            for _ in range(steps):
                w = w - rate * A[own] @ (w - c[own])
            return w

        w = torch.zeros_like(c[0])
        for _ in range(rounds):
            w = splits.federated_round(w, local, 1 / dist.get_world_size())
        ends[steps] = w
    return ends
