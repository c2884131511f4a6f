"""The spectral norms of a model's attention, layer by layer.

    python -m smalltorch.measure smollm2 --texts book/data/longer.txt
    python -m smalltorch.measure gpt2 --texts book/data/longer.txt --out gpt2

The first argument is an installed model ("smollm2", "minilm"), a local folder, or a name on a model hub; the file has
one text per line, in UTF-8. Each text is measured by itself, without padding. Printed is one row per layer; OUT.csv has
every head on every text, OUT.svg the figure. Chapter `measuring` reads such a table.
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

from smalltorch.attention import MultiHead
from smalltorch.files import replacing
from smalltorch.hub import one_line
from smalltorch.models import Decoder, Encoder, attention_matrices
from smalltorch.shapes import check_finite, check_integers, check_shapes
from smalltorch.spectral import spectral_norm, uniform_causal
from smalltorch.weights import load, tokens_of

ARGUMENTS = {"name": "MODEL", "model": "MODEL", "texts": "--texts"}  # of the functions, as the command line has them


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
        ValueError: if the model does not read these tokens, or does not give its attention weights.
    """
    if isinstance(model, Decoder | Encoder):
        return attention_matrices(model, tokens)
    try:
        A = model(input_ids=tokens, output_attentions=True).attentions
    except Exception as error:  # of other models nothing is known
        raise ValueError(f"model: expected one that reads these tokens, got {one_line(error)}") from error
    if not A or any(layer is None for layer in A):
        raise ValueError('model: expected attention weights, got none; load it with attn_implementation="eager"')
    return torch.stack(A)


def norms_by_layer(
    model: nn.Module,
    tokenizer: Any,
    texts: Sequence[str],
    rtol: float = 1e-4,
    progress: Callable[[Sequence[Tensor]], Iterable[Tensor]] = iter,
    places: Sequence[str] | None = None,
) -> Spectrum:
    """The norm of every head on every text, in the order of the texts; only texts of one length share a batch.

    Args:
        rtol: relative width of the enclosures.
        progress: is put around the list of batches, to watch them go by.
        places: what an error calls the texts; "text 1", "text 2", ... unless given.

    Raises:
        ValueError: if there are no texts, or one has no tokens or more than the model has positions, or so many that
            the attention of all layers and heads, which is there at once, does not fit into the memory.
    """
    tokens = _tokens_of_all(model, tokenizer, texts, places)
    n = torch.tensor([len(ids) for ids in tokens])
    batches: list[Tensor] = []  # of texts of one length, so that none needs padding
    for length in n.unique().tolist():
        batches += (n == length).nonzero()[:, 0].split(max(1, 2**16 // length**2))  # bounds the memory
    lower, upper = [], []
    for chosen in progress(batches):
        ids = torch.tensor([tokens[i] for i in chosen])  # text n
        bounds = spectral_norm(attention_of(model, ids), rtol)  # of A, layer text head n n
        lower.append(bounds.lower)
        upper.append(bounds.upper)
    back = torch.cat(batches).argsort()  # to the order of the texts
    return Spectrum(n, torch.cat(lower, 1)[:, back], torch.cat(upper, 1)[:, back])


def _tokens_of_all(
    model: nn.Module, tokenizer: Any, texts: Sequence[str], places: Sequence[str] | None
) -> list[list[int]]:
    """The tokens of each text, if the model can read them and their attention fits into the memory."""
    if isinstance(texts, str) or len(texts) == 0:
        raise ValueError(f"texts: expected at least one, in a list, got {texts!r}")
    places = [f"text {number}" for number in range(1, len(texts) + 1)] if places is None else places
    if len(places) != len(texts):
        raise ValueError(f"places: expected one for each of {len(texts)} texts, got {len(places)}")
    tokens = [tokens_of(tokenizer, text) for text in texts]
    most, memory = positions(model), _memory()
    for place, ids in zip(places, tokens, strict=True):
        if len(ids) == 0 or (most is not None and len(ids) > most):
            raise ValueError(f"texts: expected 1 to {most or 'any'} tokens each, got {len(ids)} in {place}")
        if (needed := _needed(model, len(ids))) > memory:
            raise ValueError(
                f"texts: expected attention that fits into {memory / 1e9:.1f} GB of memory, "
                f"got {needed / 1e9:.1f} GB for the {len(ids)} tokens in {place}"
            )
    return tokens


def baselines(n: Int[Tensor, "text"]) -> Baselines:
    """Means over the texts.

    Raises:
        ValueError: if there are no texts, or one without tokens.
    """
    check_shapes(n=(n, "text"))
    if len(n) == 0 or not (n >= 1).all():
        raise ValueError(f"n: expected at least one number of tokens, each at least 1, got {n.tolist()}")
    uniform = {length: spectral_norm(uniform_causal(length)).lower.item() for length in set(n.tolist())}
    return Baselines(1.0, sum(uniform[length] for length in n.tolist()) / len(n), n.double().sqrt().mean().item())


def table(spectrum: Spectrum) -> list[tuple[int, float, float, float]]:
    """One row per layer: its number, from 1 on; mean, least and greatest of its heads, each averaged over the texts.

    Raises:
        ValueError: if the shapes do not fit, there is nothing to average, or a norm is not finite.
    """
    _check(spectrum)
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
        _measure(parser, given.MODEL, given.texts, given.out)
    except KeyboardInterrupt:
        parser.exit(130, f"\n{parser.prog}: interrupted\n")


def _measure(parser: argparse.ArgumentParser, name: str, file: str, out: str) -> None:
    try:
        read = _read_texts(Path(file))
    except (OSError, UnicodeDecodeError) as error:
        parser.error(f"--texts: expected a text file in UTF-8, got {file}: {error}")
    if not read:
        parser.error(f"--texts: expected a line of text at least, got none in {file}")
    paths = Path(f"{out}.csv"), Path(f"{out}.svg")
    folder, stem = os.path.split(out)
    if not stem or not os.access(folder or ".", os.W_OK) or any(path.is_dir() for path in paths):
        parser.error(f"--out: expected a name in a folder that can be written to, got {out}")
    try:
        model, tokenizer = load(name)
        spectrum = norms_by_layer(
            model, tokenizer, [text for _, text in read], progress=bar, places=[place for place, _ in read]
        )
    except (OSError, ValueError) as error:
        argument, _, message = str(error).partition(": ")
        parser.error(f"{ARGUMENTS.get(argument, argument)}: {message}")
    print_table(spectrum)
    written = [f"{path} (replaced)" if path.exists() else str(path) for path in paths]
    try:
        with replacing(paths[0]) as table, replacing(paths[1]) as figure:  # both, or none of them
            write_csv(table, spectrum)
            write_figure(figure, name, spectrum)
    except OSError as error:
        parser.exit(
            1, f"{parser.prog}: error: --out: expected to write {out}.csv and {out}.svg, got {one_line(error)}\n"
        )
    print("written:", ", ".join(written))


def _read_texts(path: Path) -> list[tuple[str, str]]:
    """The lines of a file that are not blank, each as ("line 3", text), its number from 1 on.

    Lines end in LF or CR LF. All else is text, form feeds and Unicode's own separators too; but not the byte order mark
    that some editors begin a file with.
    """
    lines = path.read_bytes().decode("utf-8-sig").split("\n")
    return [(f"line {number}", line.removesuffix("\r")) for number, line in enumerate(lines, start=1) if line.strip()]


def bar(items: Sequence[Tensor], width: int = 30) -> Iterator[Tensor]:
    """The items one by one, and on stderr how many of them are done."""
    check_integers(0, width=width)
    for done in range(len(items) + 1):
        filled = "#" * (width * done // max(1, len(items)))
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
    """One row for every head on every text. Layers, heads and texts count from 1; of texts, only those measured.

    Raises:
        OSError: where the file cannot be written.
        ValueError: as for `table`.
    """
    _check(spectrum)
    with replacing(path) as new, new.open("w", newline="", encoding="utf-8") as file:
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
    ax.set_title(title, parse_math=False)
    ax.legend()
    with replacing(path) as new:
        fig.savefig(new, format="svg")


def _needed(model: nn.Module, n: int) -> float:
    """The bytes that A of every layer and head takes on n tokens, twice: as it comes, and put together."""
    config = getattr(model, "config", None)
    layers, heads = getattr(config, "num_hidden_layers", 1), getattr(config, "num_attention_heads", 1)
    if isinstance(model, Decoder | Encoder):
        each = [module.heads for module in model.modules() if isinstance(module, MultiHead)]
        layers, heads = len(each), max(each)
    return 2 * float(layers) * float(heads) * n**2 * next(model.parameters()).element_size()


def _memory() -> float:
    """The bytes of memory of this machine, or of the container around it; 8 GB where neither can be asked."""
    found = [8e9]
    if hasattr(os, "sysconf"):
        found = [float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))]
    for file in (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes")):
        if file.is_file() and (limit := file.read_text().strip()).isdigit():
            found.append(float(limit))
    return min(found)


def _check(spectrum: Spectrum) -> None:
    lower = (spectrum.lower, "layer text head")
    check_shapes(n=(spectrum.n, "text"), lower=lower, upper=(spectrum.upper, "layer text head"))
    if spectrum.lower.numel() == 0:
        raise ValueError(f"lower: expected at least one layer, text and head, got shape {tuple(spectrum.lower.shape)}")
    check_finite(lower=spectrum.lower, upper=spectrum.upper)


if __name__ == "__main__":
    warnings.filterwarnings("ignore", "IProgress not found")
    main()
