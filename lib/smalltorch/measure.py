"""The spectral norms of a model's attention, layer by layer.

    python -m smalltorch.measure smollm2 --texts book/data/longer.txt
    python -m smalltorch.measure gpt2 --texts book/data/longer.txt --out gpt2

The first argument is an installed model ("smollm2", "minilm"), a local folder, or a name on a model hub; the file has
one text per line. Each text is measured by itself, without padding. Printed is one row per layer; OUT.csv has every
head on every text, OUT.svg the figure. Chapter `measuring` reads such a table.
"""

import argparse
import csv
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from smalltorch.models import Decoder, Encoder, attention_matrices
from smalltorch.spectral import spectral_norm, uniform_causal
from smalltorch.weights import load, tokens_of


class Spectrum(NamedTuple):
    """lower <= ||A||_2 <= upper for every head on every text, and the number of tokens n of each text."""

    n: Int[Tensor, "text"]
    lower: Float[Tensor, "layer text head"]
    upper: Float[Tensor, "layer text head"]


class Baselines(NamedTuple):
    """What to compare with: the least norm there is, that of uniform causal attention, and the greatest there is."""

    one: float
    uniform: float
    root_n: float


def positions(model: nn.Module) -> int | None:
    """The number of tokens that a model can read, where it says so."""
    if isinstance(model, Encoder):
        return len(model.P)
    return getattr(getattr(model, "config", None), "max_position_embeddings", None)


@torch.no_grad()
def attention_of(model: nn.Module, tokens: Int[Tensor, "batch n"]) -> Float[Tensor, "layer batch head n n"]:
    """A of every layer and head.

    Raises:
        ValueError: if the model does not give its attention weights.
    """
    if isinstance(model, Decoder | Encoder):
        return attention_matrices(model, tokens)
    A = model(input_ids=tokens, output_attentions=True).attentions
    if not A or any(layer is None for layer in A):
        raise ValueError('model: expected attention weights, got none; load it with attn_implementation="eager"')
    return torch.stack(A)


def norms_by_layer(
    model: nn.Module,
    tokenizer: Any,
    texts: Sequence[str],
    rtol: float = 1e-4,
    progress: Callable[[Sequence[Tensor]], Iterable[Tensor]] = iter,
) -> Spectrum:
    """The norm of every head on every text, in the order of the texts; only texts of one length share a batch.

    Args:
        rtol: relative width of the enclosures.
        progress: is put around the list of batches, to watch them go by.

    Raises:
        ValueError: if there are no texts, or one has no tokens or more than the model has positions.
    """
    if not texts:
        raise ValueError("texts: expected at least one, got none")
    tokens = [tokens_of(tokenizer, text) for text in texts]
    most = positions(model)
    for place, ids in enumerate(tokens, start=1):
        if len(ids) == 0 or (most is not None and len(ids) > most):
            raise ValueError(f"texts: expected 1 to {most or 'any'} tokens each, got {len(ids)} in text {place}")
    n = torch.tensor([len(ids) for ids in tokens])
    batches: list[Tensor] = []
    for length in n.unique().tolist():
        batches += (n == length).nonzero()[:, 0].split(max(1, 2**16 // length**2))  # bounds the memory
    lower, upper = [], []
    for chosen in progress(batches):
        bounds = spectral_norm(attention_of(model, torch.tensor([tokens[i] for i in chosen])), rtol)
        lower.append(bounds.lower)
        upper.append(bounds.upper)
    back = torch.cat(batches).argsort()
    return Spectrum(n, torch.cat(lower, 1)[:, back], torch.cat(upper, 1)[:, back])


def baselines(n: Int[Tensor, "text"]) -> Baselines:
    """Means over the texts."""
    uniform = {length: spectral_norm(uniform_causal(length)).lower.item() for length in set(n.tolist())}
    return Baselines(1.0, sum(uniform[length] for length in n.tolist()) / len(n), n.double().sqrt().mean().item())


def table(spectrum: Spectrum) -> list[tuple[int, float, float, float]]:
    """One row per layer: its number, from 1 on; mean, least and greatest of its heads, each averaged over the texts."""
    heads = spectrum.lower.mean(1)
    return [(number, h.mean().item(), h.min().item(), h.max().item()) for number, h in enumerate(heads, start=1)]


def draw(ax: Any, spectrum: Spectrum) -> None:
    """Norm against layer: mean over heads (line), range of heads (band), and the three baselines."""
    layer, mean, least, greatest = zip(*table(spectrum), strict=True)
    one, uniform, root_n = baselines(spectrum.n)
    ax.fill_between(layer, least, greatest, alpha=0.25, lw=0)
    ax.plot(layer, mean, marker=".", label="mean over heads")
    ax.axhline(root_n, color="grey", ls=":", label=r"$\sqrt{n}$")
    ax.axhline(uniform, color="grey", ls="--", label="uniform causal")
    ax.axhline(one, color="grey", lw=0.8)
    ax.set(xlabel="layer", ylabel="spectral norm")


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m smalltorch.measure",
        description="Spectral norms of a model's attention, layer by layer: a table, OUT.csv and OUT.svg.",
    )
    parser.add_argument("MODEL", help="smollm2, minilm, a folder, or a name on a model hub")
    parser.add_argument("--texts", required=True, metavar="FILE", help="one text per line; empty lines are skipped")
    parser.add_argument("--out", default="spectrum", help="the files to write, without their endings (%(default)s)")
    given = parser.parse_args(arguments)
    try:
        texts = [line for line in Path(given.texts).read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        parser.error(f"--texts: expected a text file in UTF-8, got {given.texts}: {error}")
    folder, name = os.path.split(given.out)
    if not name or not os.access(folder or ".", os.W_OK):
        parser.error(f"--out: expected a name in a folder that can be written to, got {given.out}")
    if not texts:
        parser.error(f"--texts: expected a line of text at least, got none in {given.texts}")
    try:
        model, tokenizer = load(given.MODEL)
    except (OSError, ValueError) as error:
        parser.error(f"MODEL: {str(error).removeprefix('name: ')}")
    try:
        spectrum = norms_by_layer(model, tokenizer, texts, progress=bar)
    except ValueError as error:
        parser.error(str(error))
    print_table(spectrum)
    write_csv(Path(f"{given.out}.csv"), spectrum)
    write_figure(Path(f"{given.out}.svg"), given.MODEL, spectrum)
    print(f"written: {given.out}.csv, {given.out}.svg")


def bar(items: Sequence[Tensor], width: int = 30) -> Iterator[Tensor]:
    """The items one by one, and on stderr how many of them are done."""
    for done in range(len(items) + 1):
        filled = "#" * (width * done // len(items))
        print(f"\r[{filled:{width}}] {done}/{len(items)}", end="", file=sys.stderr, flush=True)
        if done < len(items):
            yield items[done]
    print(file=sys.stderr)


def print_table(spectrum: Spectrum) -> None:
    """The rows of `table` as text, under the three baselines."""
    n, (one, uniform, root_n) = spectrum.n, baselines(spectrum.n)
    print(f"{len(n)} texts of {n.min()} to {n.max()} tokens, each by itself; spectral norms, mean over texts")
    print(f"to compare with: least possible {one:.3f}, uniform causal {uniform:.3f}, greatest possible {root_n:.3f}")
    print("layer    mean  heads from      to")
    for layer, mean, least, greatest in table(spectrum):
        print(f"{layer:5d} {mean:7.3f}     {least:7.3f} {greatest:7.3f}")


def write_csv(path: Path, spectrum: Spectrum) -> None:
    """One row for every head on every text. Layers, heads and texts count from 1."""
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["layer", "head", "text", "tokens", "lower", "upper"])
        layers, texts, heads = spectrum.lower.shape
        for layer in range(layers):
            for head in range(heads):
                for text in range(texts):
                    bounds = (bound[layer, text, head].item() for bound in (spectrum.lower, spectrum.upper))
                    rows.writerow([layer + 1, head + 1, text + 1, spectrum.n[text].item(), *bounds])


def write_figure(path: Path, title: str, spectrum: Spectrum) -> None:
    """What `draw` draws, as a file."""
    from smalltorch.plot import figure

    fig, ax = figure()
    draw(ax, spectrum)
    ax.set_title(title)
    ax.legend()
    fig.savefig(path, format="svg")


if __name__ == "__main__":
    warnings.filterwarnings("ignore", "IProgress not found")
    main()
