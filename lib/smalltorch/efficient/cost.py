"""The cost of a layer: floating-point operations and bytes, by formula and as counted while a function runs.

A product of an a x b and a b x c matrix counts as 2abc operations, a multiplication and an addition for each triple.
Everything else (softmax, norms, activations) is left out, as `torch.utils.flop_counter` leaves it out.
"""

import weakref
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from smalltorch.shapes import check_integers, check_type


class Shape(NamedTuple):
    """The sizes of a published model: `n` is the number of tokens that it was made for, d_ff the width of its FFN."""

    year: int
    n: int
    layers: int
    d: int
    heads: int
    kv_heads: int
    d_ff: int
    gated: bool


# By their publications and configurations, as chapter `quadratic` cites them.
PUBLISHED = {
    "GPT-1": Shape(2018, 512, 12, 768, 12, 12, 3072, gated=False),
    "BERT": Shape(2018, 512, 12, 768, 12, 12, 3072, gated=False),
    "GPT-2": Shape(2019, 1024, 12, 768, 12, 12, 3072, gated=False),
    "MiniLM": Shape(2020, 512, 6, 384, 12, 12, 1536, gated=False),
    "LLaMA 7B": Shape(2023, 2048, 32, 4096, 32, 32, 11008, gated=True),
    "Llama 3.1 405B": Shape(2024, 131072, 126, 16384, 128, 8, 53248, gated=True),
    "SmolLM2": Shape(2025, 8192, 30, 576, 9, 3, 1536, gated=True),
}

# --- by formula -------------------------------------------------------------------------------------------------------


def layer_weights(d: int, heads: int, d_ff: int, kv_heads: int | None = None, gated: bool = False) -> int:
    """P = 2 d^2 + 2 d d_kv + g d d_ff: the entries of a layer's matrices. Chapter `quadratic`.

    W_Q and W_O are d x d, W_K and W_V are d x d_kv with d_kv = d kv_heads / heads, and the FFN has g = 2 matrices,
    or 3 if it is gated (SwiGLU). Biases and norms are not counted: no product of matrices is in them.

        >>> layer_weights(d=768, heads=12, d_ff=3072) == 12 * 768**2
        True

    Raises:
        ValueError: for a size below 1; if heads does not divide d, or kv_heads does not divide heads.
    """
    kv_heads = heads if kv_heads is None else kv_heads
    d, heads, d_ff, kv_heads = check_integers(1, d=d, heads=heads, d_ff=d_ff, kv_heads=kv_heads)
    check_type(bool, gated=gated)
    if d % heads:
        raise ValueError(f"heads: expected a divisor of d = {d}, got {heads}")
    if heads % kv_heads:
        raise ValueError(f"kv_heads: expected a divisor of heads = {heads}, got {kv_heads}")
    return 2 * d**2 + 2 * d * (d // heads * kv_heads) + (3 if gated else 2) * d * d_ff


def layer_flops(n: int, d: int, weights: int, causal: bool = False) -> int:
    """2 n P + 4 n^2 d: operations in the products of a layer that n tokens pass through. Chapter `quadratic`.

    P are its weights (`layer_weights`). With `causal=True` only the n (n + 1) / 2 pairs count that the mask leaves.

        >>> layer_flops(n=6, d=8, weights=768)
        10368

    Raises:
        ValueError: for a size below 1.
    """
    n, d, weights = check_integers(1, n=n, d=d, weights=weights)
    check_type(bool, causal=causal)
    return 2 * n * weights + (2 * n * (n + 1) * d if causal else 4 * n**2 * d)


def crossover(d: int, weights: int) -> float:
    """n* = P / (2d): the number of tokens at which the two terms of `layer_flops` are equal. Chapter `quadratic`.

        >>> crossover(d=768, weights=12 * 768**2) == 6 * 768
        True

    Raises:
        ValueError: for a size below 1.
    """
    d, weights = check_integers(1, d=d, weights=weights)
    return weights / (2 * d)


def kept_floats(n: int, d: int, heads: int, d_ff: int, stored: bool = True) -> int:
    """n (8d + 2 d_ff + 4) + H n^2: numbers that a layer keeps for its backward pass. Chapter `quadratic`.

    Of a Pre-LN layer with two matrices in the FFN: its input, what each norm gives with two numbers for each token,
    Q, K, V, what the heads read, the states between the sub-layers, the FFN before and after its activation; and the
    attention matrices. With `stored=False` attention keeps one number for each query and head in place of these: H n.

        >>> kept_floats(n=6, d=8, heads=2, d_ff=32)
        864

    Raises:
        ValueError: for a size below 1.
    """
    n, d, heads, d_ff = check_integers(1, n=n, d=d, heads=heads, d_ff=d_ff)
    check_type(bool, stored=stored)
    return n * (8 * d + 2 * d_ff + 4) + heads * n * (n if stored else 1)


# --- as counted -------------------------------------------------------------------------------------------------------


def peak_bytes(call: Callable[[], Any]) -> int:
    """The most bytes that tensors created by `call()` occupy at one time. Chapter `quadratic`.

    Storages are counted, so views are free; a storage counts from the operation that returns it until nothing refers to
    it. What an operation allocates and frees by itself is not seen.

        >>> X = torch.ones(10, 10)
        >>> peak_bytes(lambda: (X + 1).sum())
        404

    Raises:
        ValueError: if `call` cannot be called.
    """
    _check_callable(call)
    with _Live() as live:
        call()
    return live.peak


def kept_bytes(call: Callable[[], Any], besides: Iterable[Tensor] = ()) -> int:
    """The bytes that `call()` keeps for its backward pass, each storage once. Chapter `quadratic`.

        >>> X = torch.ones(10, 10, requires_grad=True)
        >>> kept_bytes(lambda: X.exp())
        400

    Args:
        call: what is run.
        besides: tensors that are not counted, such as the weights, which are there anyway.

    Raises:
        ValueError: if `call` cannot be called, or `besides` holds anything but tensors.
    """
    _check_callable(call)
    check_type(Iterable, besides=besides)
    besides = list(besides)
    for tensor in besides:
        check_type(Tensor, besides=tensor)
    there = {tensor.untyped_storage().data_ptr() for tensor in besides}
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in there:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        result = call()
    total = sum(kept.values())
    del result  # until here the graph holds what was kept, so no two of them share an address
    return total


class _Live(TorchDispatchMode):
    """Counts the storages that operations return, until they are freed."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else its first use imports the compiler, which takes seconds and has no part in this

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now = self.peak = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        known = {id(x.untyped_storage()) for x in _tensors((args, kwargs))}
        found = func(*args, **(kwargs or {}))
        for tensor in _tensors(found):
            storage = tensor.untyped_storage()
            if id(storage) not in known:
                known.add(id(storage))
                self.now += storage.nbytes()
                weakref.finalize(storage, self._freed, storage.nbytes())
        self.peak = max(self.peak, self.now)
        return found

    def _freed(self, size: int) -> None:
        self.now -= size


def _tensors(value: Any) -> list[Tensor]:
    return [leaf for leaf in torch.utils._pytree.tree_leaves(value) if isinstance(leaf, Tensor)]


def _check_callable(call: object) -> None:
    if not callable(call):
        raise ValueError(f"call: expected a function without arguments, got {type(call).__name__}")
