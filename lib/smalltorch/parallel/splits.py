"""Data, sharded, tensor, sequence and pipeline parallelism: one step or layer, split over several workers.

All functions speak to the default group of `torch.distributed`, so they run where `launch` has started them, in all
workers alike. Source: Rajbhandari et al., "ZeRO" (2020); Shoeybi et al., "Megatron-LM" (2019); Liu et al., "Ring
Attention" (2023); Huang et al., "GPipe" (2019); McMahan et al., "Communication-Efficient Learning of Deep Networks from
Decentralized Data" (2017).
"""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from smalltorch.attention import MultiHead, attention
from smalltorch.block import FFN, PostLN, PreLN
from smalltorch.parallel.volume import Step, share

# --- the batch is split -----------------------------------------------------------------------------------------------


def average_gradients(parameters: Iterable[nn.Parameter], weight: float) -> None:
    """Replace each gradient by the sum over the workers of weight times gradient. Chapter `parallelism`.

    With a loss that is a mean over examples, `weight` is a worker's share of them.
    """
    for parameter in parameters:
        parameter.grad = weight * (torch.zeros_like(parameter) if parameter.grad is None else parameter.grad)
        dist.all_reduce(parameter.grad)


def ring_all_reduce(x: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
    """The sum over the workers, by messages to the next one only.

    The vector is cut into P parts. In P − 1 rounds each worker passes on a part, to which the next adds its own; then
    each has one part of the sum, and in P − 1 more rounds these go round. Chapter `parallelism`.
    """
    rank, processes = dist.get_rank(), dist.get_world_size()
    parts = [x[share(len(x), processes, k)].clone() for k in range(processes)]
    for turn in range(2 * (processes - 1)):
        out, into = (rank - turn) % processes, (rank - turn - 1) % processes
        come = torch.empty_like(parts[into])
        _pass_on([parts[out]], [come])
        parts[into] = parts[into] + come if turn < processes - 1 else come
    return torch.cat(parts)


def _pass_on(out: Sequence[Tensor], into: Sequence[Tensor]) -> None:
    """Send tensors to the next worker of the ring, and receive as many from the one before."""
    rank, processes = dist.get_rank(), dist.get_world_size()
    if processes == 1:
        return
    works = [dist.isend(x.contiguous(), (rank + 1) % processes, tag=tag) for tag, x in enumerate(out)]
    works += [dist.irecv(x, (rank - 1) % processes, tag=tag) for tag, x in enumerate(into)]
    for work in works:
        if work:  # None for whom is not in the group
            work.wait()


class ShardedAdam:
    """Adam whose states lie in shards, one for each worker (ZeRO, stages 1 and 2). Chapter `parallelism`.

    All parameters are one vector, filled up to a multiple of P. Its gradient is summed so that each worker gets its
    shard; each worker updates its shard, with running means of that size; and the shards are gathered.

    Args:
        parameters: of the model, the same on all workers.
        rate: the step size.
        weight: of this worker's gradient in the sum.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], rate: float, weight: float):
        self.parameters, self.weight = list(parameters), weight
        self.n, processes = sum(p.numel() for p in self.parameters), dist.get_world_size()
        self.size = -(-self.n // processes)
        whole = self._filled(parameters_to_vector(self.parameters).detach())
        self.shard = nn.Parameter(whole.view(processes, self.size)[dist.get_rank()].clone())
        self.adam = torch.optim.Adam([self.shard], lr=rate)

    def _filled(self, x: Tensor) -> Tensor:
        return torch.cat([x, x.new_zeros(dist.get_world_size() * self.size - self.n)])

    def step(self) -> None:
        """Sum the gradients, update this worker's shard, and gather all of them."""
        gradient = self._filled(
            self.weight * torch.cat([p.grad.flatten() for p in self.parameters if p.grad is not None])
        )
        self.shard.grad = torch.empty_like(self.shard)
        dist.reduce_scatter_tensor(self.shard.grad, gradient)
        self.adam.step()
        whole = torch.empty_like(gradient)
        dist.all_gather_into_tensor(whole, self.shard.detach())
        vector_to_parameters(whole[: self.n], self.parameters)


def federated_round(w: Tensor, local: Callable[[Tensor], Tensor], weight: float) -> Tensor:
    """One round of federated averaging: each worker trains from w by itself, and the results are averaged.

    Chapter `parallelism`.
    """
    average = weight * local(w)
    dist.all_reduce(average)
    return average


# --- a layer is split -------------------------------------------------------------------------------------------------


class _Copied(torch.autograd.Function):
    """The identity, whose gradient is summed over the workers: each of them has read what came in."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        total = gradients[0].clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total)
        return total


class _Summed(torch.autograd.Function):
    """The sum over the workers, whose gradient is the same for each term."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        total = x.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return gradients[0]


def copied(x: Tensor) -> Tensor:
    """x, whose gradient is summed over the workers. Chapter `parallelism`."""
    out: Tensor = _Copied.apply(x)  # type: ignore[no-untyped-call]
    return out


def summed(x: Tensor) -> Tensor:
    """The sum of x over the workers, whose gradient is that of each term. Chapter `parallelism`."""
    out: Tensor = _Summed.apply(x)  # type: ignore[no-untyped-call]
    return out


class SplitFFN(nn.Module):
    """A share of the hidden features: columns of W_1, rows of W_2. The results are summed, then b_2 is added once.

    Chapter `parallelism`.
    """

    def __init__(self, whole: FFN, own: slice):
        super().__init__()
        self.W_1, self.b_1 = nn.Parameter(whole.W_1.detach()[:, own]), nn.Parameter(whole.b_1.detach()[own])
        self.W_2, self.b_2 = nn.Parameter(whole.W_2.detach()[own]), nn.Parameter(whole.b_2.detach())
        self.activation = whole.activation

    def forward(self, X: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n d"]:
        return summed(self.activation(copied(X) @ self.W_1 + self.b_1) @ self.W_2) + self.b_2


def _projected(X: Tensor, heads_of: nn.Module, d_h: int) -> list[Tensor]:
    """Q, K and V by heads."""
    heads = []
    for letter in "QKV":
        W, b = getattr(heads_of, f"W_{letter}"), getattr(heads_of, f"b_{letter}")
        heads.append((X @ W if b is None else X @ W + b).unflatten(-1, (-1, d_h)).transpose(-3, -2))
    return heads


class SplitHeads(nn.Module):
    """A share of the heads, with their columns of W_Q, W_K, W_V and rows of W_O. The results are summed.

    For heads that have keys and values of their own and no rotary positions. Chapter `parallelism`.

    Raises:
        ValueError: for other heads.
    """

    def __init__(self, whole: MultiHead, own: slice):
        super().__init__()
        if whole.kv_heads != whole.heads or whole.theta is not None or whole.score_bias is not None:
            raise ValueError("whole: expected heads with own keys, without rotary positions or biases, got others")
        self.d_h, columns = whole.d_h, slice(own.start * whole.d_h, own.stop * whole.d_h)
        for letter in "QKV":
            W, b = getattr(whole, f"W_{letter}"), getattr(whole, f"b_{letter}")
            setattr(self, f"W_{letter}", nn.Parameter(W.detach()[:, columns]))
            setattr(self, f"b_{letter}", None if b is None else nn.Parameter(b.detach()[columns]))
        self.W_O = nn.Parameter(whole.W_O.detach()[columns])
        self.b_O = None if whole.b_O is None else nn.Parameter(whole.b_O.detach())

    def forward(
        self, X: Float[Tensor, "*batch n d"], mask: Tensor | None = None, cache: None = None
    ) -> tuple[Float[Tensor, "*batch n d"], Float[Tensor, "*batch head n n"]]:
        """The output of all heads, and the attention matrices of these."""
        Q, K, V = _projected(copied(X), self, self.d_h)
        read, A = attention(Q, K, V, mask)
        output = summed(read.transpose(-3, -2).flatten(-2) @ self.W_O)
        return output if self.b_O is None else output + self.b_O, A


def tensor_split(block: PreLN | PostLN) -> PreLN | PostLN:
    """This worker's share of a block: some of its heads and hidden features; the norms are everybody's.

    Chapter `parallelism`.
    """
    rank, processes = dist.get_rank(), dist.get_world_size()
    ffn: Any = block.ffn
    heads, features = (share(n, processes, rank) for n in (block.attention.heads, ffn.W_1.shape[1]))
    own: Any = SplitHeads(block.attention, heads)
    return type(block)(own, SplitFFN(ffn, features), block.norm_1, block.norm_2)


# --- the text is split ------------------------------------------------------------------------------------------------


def ring_attention(
    Q: Float[Tensor, "head own d_h"],
    K: Float[Tensor, "head own d_h"],
    V: Float[Tensor, "head own d_v"],
    n: int,
    causal: bool = False,
) -> Float[Tensor, "head own d_v"]:
    """What this worker's tokens read from all n, while keys and values go round. Chapter `parallelism`.

    Worker r has the tokens `share(n, P, r)`. As in `smalltorch.efficient.online.chunked_attention` each query carries
    its largest score m, the sum of the exp(s_j − m), and the sum of the exp(s_j − m) v_j.
    """
    rank, processes = dist.get_rank(), dist.get_world_size()
    own = share(n, processes, rank)
    queries = torch.arange(own.start, own.stop)[:, None]
    m, total, read = Q.new_full((), -math.inf), Q.new_zeros(()), Q.new_zeros(())
    for turn in range(processes):
        held = share(n, processes, (rank - turn) % processes)
        S = Q @ K.mT / math.sqrt(Q.shape[-1])
        if causal:
            S = S.masked_fill(torch.arange(held.start, held.stop) > queries, -math.inf)
        higher = torch.maximum(m, S.amax(-1, keepdim=True))
        shrink, E = torch.exp(m - higher), torch.exp(S - higher)
        total, read, m = shrink * total + E.sum(-1, keepdim=True), shrink * read + E @ V, higher
        if turn < processes - 1:
            coming = share(n, processes, (rank - turn - 1) % processes)
            into = [X.new_empty(*X.shape[:-2], coming.stop - coming.start, X.shape[-1]) for X in (K, V)]
            _pass_on([K, V], into)
            K, V = into
    return read / total


class RingHeads(nn.Module):
    """The heads of a layer, for a share of n tokens; the others' keys and values come round. Chapter `parallelism`."""

    def __init__(self, whole: MultiHead, n: int, causal: bool):
        super().__init__()
        self.whole, self.n, self.causal = whole, n, causal

    def forward(self, X: Float[Tensor, "own d"], mask: None = None, cache: None = None) -> tuple[Tensor, None]:
        """The output for the worker's tokens; there is no matrix."""
        Q, K, V = _projected(X, self.whole, self.whole.d_h)
        read = ring_attention(Q, K, V, self.n, self.causal)
        output = read.transpose(-3, -2).flatten(-2) @ self.whole.W_O
        return output if self.whole.b_O is None else output + self.whole.b_O, None


# --- the stack is split -----------------------------------------------------------------------------------------------


class Done(NamedTuple):
    """A step of a pipeline, with the seconds when it began and ended on a clock that all workers share."""

    kind: str
    part: int
    begun: float
    ended: float


def run_pipeline(
    stage: Callable[[Tensor], Tensor],
    order: Sequence[Step],
    parts: Sequence[Tensor],
    loss: Callable[[Tensor, int], Tensor],
    seconds: tuple[float, float] = (0.0, 0.0),
) -> tuple[list[Done], int, list[Tensor]]:
    """One step of training on a stage of a pipeline: what was done when, the most parts kept at a time, the losses.

    The gradients of the stage's parameters are left in them, summed over the parts. Chapter `parallelism`.

    Args:
        stage: the layers of this worker, from states to states of the same shape.
        order: of its steps, by `gpipe` or `one_f_one_b`.
        parts: of the batch; other stages than the first look at their shapes only.
        loss: of the last stage's output, and of the part's number.
        seconds: how long a step forward and one backward last at least, where a worker stands for a slower device.
    """
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    kept: dict[int, tuple[Tensor, Tensor]] = {}
    done, losses, sent, most = [], [], [], 0

    def send(x: Tensor, to: int, tag: int) -> None:
        x = x.detach().contiguous()
        sent.append((dist.isend(x, to, tag=tag), x))  # a message is kept until it has gone

    for kind, part in order:
        if kind == "F":
            x = parts[part].detach().clone()
            if rank:
                dist.recv(x, rank - 1, tag=2 * part)
            begun = time.monotonic()
            y = stage(x.requires_grad_())
            if rank == last:
                y = loss(y, part)
                losses.append(y.detach())
            kept[part] = x, y
            most = max(most, len(kept))
        else:
            x, y = kept.pop(part)
            gradient = torch.ones_like(y)
            if rank < last:
                dist.recv(gradient, rank + 1, tag=2 * part + 1)
            begun = time.monotonic()
            y.backward(gradient)
        time.sleep(max(0.0, begun + seconds[kind == "B"] - time.monotonic()))
        done.append(Done(kind, part, begun, time.monotonic()))
        if kind == "F" and rank < last:
            send(y, rank + 1, 2 * part)
        if kind == "B" and rank and x.grad is not None:
            send(x.grad, rank - 1, 2 * part + 1)
    for work, _ in sent:
        if work:
            work.wait()
    return done, most, losses
