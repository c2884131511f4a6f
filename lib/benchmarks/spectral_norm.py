"""Benchmark of the enclosure of spectral norms: prints timings, and asserts nothing.

    python lib/benchmarks/spectral_norm.py

Same matrices, same run, best of several times. "One by one" is spectral_norm in a loop over heads; "faster" compares
the enclosure with the better of svdvals and matrix_norm. The steps are those of plain power iteration. The output of
one run is stored in spectral_norm.txt beside this file.
"""

import importlib.util
import os
import platform
import resource
import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor

from smalltorch import data, weights
from smalltorch.attention import causal_mask
from smalltorch.models import attention_matrices
from smalltorch.spectral import attention_spectral_norm, spectral_norm

RTOL = 1e-4
SIZES_CPU = [(16, 8), (16, 64), (32, 64), (64, 64), (128, 32), (256, 16), (512, 8), (1024, 4)]  # n, matrices
SIZES_GPU = [(16, 1024), (64, 1024), (256, 256), (512, 128), (1024, 64), (2048, 32), (4096, 16)]
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
CLOCK = time.perf_counter if DEVICE == "cuda" else time.process_time  # CPU time is not disturbed by other programs


def best(*functions: Callable[[], object]) -> list[float]:
    """The shortest time of each, in ms: they take turns, at least five times, for a second or so."""
    times: list[list[float]] = [[] for _ in functions]
    start = time.perf_counter()
    while len(times[0]) < 5 or time.perf_counter() - start < 1.5:
        for f, taken in zip(functions, times, strict=True):
            synchronize()
            begun = CLOCK()
            f()
            synchronize()
            taken.append(1e3 * (CLOCK() - begun))
    return [min(taken) for taken in times]


def synchronize() -> None:
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def random_heads(n: int, count: int) -> Tensor:
    """Causal attention of normal queries and keys: logits of variance 1."""
    q, k = torch.randn(2, count, n, 64)
    return (q @ k.mT / 8).masked_fill(~causal_mask(n), -torch.inf).softmax(-1)


def trained_heads() -> Callable[[int, int], Tensor] | None:
    """Heads of SmolLM2 on the first n tokens of the book's essay, drawn at random; None where it is not installed."""
    if not importlib.util.find_spec(weights.SMOLLM2[0]):
        return None
    model, tokenizer = weights.load("smollm2")
    ids = tokenizer.encode(data.text("essay")).ids

    def heads(n: int, count: int) -> Tensor:
        with torch.no_grad():
            A = attention_matrices(model, torch.tensor([ids[:n]])).flatten(0, 2)
        return A[torch.randperm(len(A))[:count]].clone()

    return heads


def steps_needed(A: Tensor) -> Tensor:
    """Steps of plain power iteration, from the column sums, until the bounds are within RTOL; at most 1000."""
    A = A.double()
    v = A.sum(-2, keepdim=True)
    steps = torch.full((len(A),), 1000)
    for step in range(1, 1001):
        v = v / v.amax(-1, keepdim=True) + 1e-200
        Av = v @ A.mT
        Mv = Av @ A
        closed = (Mv / v).amax((-2, -1)).sqrt() <= (1 + RTOL) * Av.norm(dim=(-2, -1)) / v.norm(dim=(-2, -1))
        steps[closed.cpu() & (steps > step)] = step
        if (steps <= step).all():
            break
        v = Mv
    return steps


def dense(name: str, heads: Callable[[int, int], Tensor], dtype: torch.dtype) -> None:
    print(f"\n{name}, {str(dtype).removeprefix('torch.')}, rtol {RTOL:g}. Times in ms.")
    print("    n  matrices  enclosure  one by one   svdvals  matrix_norm   faster   steps: median, most (which)")
    for n, count in SIZES_CPU if DEVICE == "cpu" else SIZES_GPU:
        A = heads(n, count).to(DEVICE, dtype)
        ours, one_by_one, svdvals, matrix_norm = best(
            lambda A=A: spectral_norm(A, RTOL),
            lambda A=A: [spectral_norm(head, RTOL) for head in A],
            lambda A=A: torch.linalg.svdvals(A),
            lambda A=A: torch.linalg.matrix_norm(A, ord=2),
        )
        steps = steps_needed(A)
        print(f"{n:5d} {len(A):9d} {ours:10.3f} {one_by_one:11.2f} {svdvals:9.2f} {matrix_norm:12.2f} "
              f"{min(svdvals, matrix_norm) / ours:7.1f}x   {steps.median():3d}, {steps.max():4d} ({steps.argmax()})",
              flush=True)  # fmt: skip


def bandwidth() -> None:
    """One step of the iteration reads A twice; a copy reads it once and writes it once."""
    print("\nMemory bandwidth of one step of the iteration, float64, against that of a copy. GB/s.")
    for n, count in SIZES_GPU[2:]:
        A = torch.rand(count, n, n, dtype=torch.float64, device=DEVICE)
        v = torch.rand(count, 1, n, dtype=torch.float64, device=DEVICE)
        moved = 2 * A.numel() * A.element_size() / 1e6
        step, copy = best(lambda A=A, v=v: v @ A.mT @ A, A.clone)
        print(f"{n:5d} {count:9d}   step {moved / step:7.0f}   copy {moved / copy:7.0f}", flush=True)


def matrix_free(dtype: torch.dtype) -> None:
    sizes = [(1024, 1), (2048, 1), (4096, 1)] if DEVICE == "cpu" else [(4096, 8), (16384, 8), (131072, 8)]
    print(f"\nWithout the matrix: causal, d_h = 64, {str(dtype).removeprefix('torch.')}, rtol 0.001")
    print("     n  heads  seconds   peak MiB beyond the inputs   A itself, MiB")
    for n, heads in sizes:
        q, k = torch.randn(2, heads, n, 64, device=DEVICE).to(dtype)
        before = peak(reset=True)
        begun = CLOCK()
        attention_spectral_norm(q, k, causal=True)
        synchronize()
        seconds = CLOCK() - begun
        A = heads * n * n * q.element_size() / 2**20
        print(f"{n:6d} {heads:6d} {seconds:8.2f} {peak() - before:28.0f} {A:15.0f}", flush=True)


def peak(reset: bool = False) -> float:
    """The most memory that has been in use so far, in MiB; on a GPU, since the reset."""
    if DEVICE == "cuda":
        if reset:
            torch.cuda.reset_peak_memory_stats()
        return torch.cuda.max_memory_allocated() / 2**20
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    where = torch.cuda.get_device_name() if DEVICE == "cuda" else f"CPU, {os.cpu_count()} cores"
    print(f"{where}, one thread; torch {torch.__version__}, Python {platform.python_version()}")
    print(f"{'Wall time' if DEVICE == 'cuda' else 'CPU time'}. Programs at work (load): {os.getloadavg()[0]:.0f}")
    if DEVICE == "cpu":
        print("No GPU was at hand for this run.")
    attention_spectral_norm(*torch.randn(2, 1, 64, 64, device=DEVICE), causal=True)  # the first call loads code
    matrix_free(torch.float32)
    if DEVICE == "cuda":
        matrix_free(torch.bfloat16)
        bandwidth()
    dense("Random heads", random_heads, torch.float32)
    dense("Random heads", random_heads, torch.float64)
    if (heads := trained_heads()) is not None:
        dense("Heads of SmolLM2", heads, torch.float32)


if __name__ == "__main__":
    main()
