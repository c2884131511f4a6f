"""The spectral norms of a model's attention, layer by layer.

    python -m smalltorch.measure smollm2 --texts book/data/longer.txt
    python -m smalltorch.measure gpt2 --texts book/data/longer.txt --out gpt2

The first argument is an installed model ("smollm2", "minilm"), a local folder, or a name on a model hub; the file has
one text per line, in UTF-8. Each text is measured by itself, without padding. Printed is one row per layer; OUT.csv has
every head on every text, OUT.svg the figure. Chapter `measuring` reads such a table. Layers have the model's own
numbers: of a model whose layers do not all attend, those that do keep theirs.

Measured is A, n × n, with A_ij >= 0 what token i gives to token j. Models that give something else are refused: those
with an encoder and a decoder, without attention, or whose matrices are cut to windows, blocks or pools of tokens.
"""

import argparse
import csv
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from smalltorch.attention import MultiHead
from smalltorch.files import replacing
from smalltorch.hub import one_line
from smalltorch.models import Decoder, Encoder, attention_matrices
from smalltorch.shapes import check_finite, check_floats, check_integers, check_shapes
from smalltorch.spectral import spectral_norm, uniform_causal
from smalltorch.weights import load, tokens_of

ARGUMENTS = {"name": "MODEL", "model": "MODEL", "texts": "--texts"}  # of the functions, as the command line has them
EAGER = 'load it with attn_implementation="eager"'


class Spectrum(NamedTuple):
    """lower <= ||A||_2 <= upper for every head on every text, and the number of tokens n of each text.

    `layers` are the layers' numbers in the model; 1, 2, ... unless given. `rows` is the root mean square of the sums r
    of A's rows, ||r||/√n; 1 unless given.
    """

    n: Int[Tensor, "text"]
    lower: Float[Tensor, "layer text head"]
    upper: Float[Tensor, "layer text head"]
    layers: Sequence[int] | None = None
    rows: Float[Tensor, "layer text head"] | None = None


class Baselines(NamedTuple):
    """What to compare with: the least norm there is, that of uniform causal attention, and the greatest there is.

    With rows that sum to r and no negative entry, ||r||/√n <= ||A||_2 <= ||r||: on the left A is tried on the vector of
    ones, on the right no row is longer than its sum. For r = 1 these are 1 and √n.
    """

    one: float
    uniform: float
    root_n: float


def positions(model: nn.Module) -> int | None:
    """The number of tokens that a model can read, where it says so.

    A table of positions may hold more of them than that: where one is for padding (RoBERTa), tokens begin behind it.
    """
    if isinstance(model, Encoder):
        return len(model.P)
    most = getattr(_config(model), "max_position_embeddings", None)
    most = most if isinstance(most, int) and most > 0 else None
    for name, module in model.named_modules():
        if isinstance(module, nn.Embedding) and "position" in name and module.padding_idx is not None:
            if module.num_embeddings == most:
                return most - module.padding_idx - 1
    return most


def attention_of(model: nn.Module, tokens: Int[Tensor, "batch n"]) -> Float[Tensor, "layer batch head n n"]:
    """A of every layer that attends, and head. What is not (n, n) comes as the model gives it, with a warning.

    Raises:
        ValueError: if the model does not read these tokens, or does not give its attention weights.
    """
    A, problem = _attention(model, tokens)
    if problem:
        warnings.warn(problem, stacklevel=2)
    return A


@torch.no_grad()
def _attention(model: nn.Module, tokens: Tensor) -> tuple[Tensor, str]:
    """A of every layer that attends, and head; and what is wrong with it, "" if it can be measured."""
    if isinstance(model, Decoder | Encoder):
        return attention_matrices(model, tokens), ""
    return _stacked(_attentions(model, tokens), type(model).__name__, tokens.shape[-1])


def _stacked(attentions: Sequence[Tensor | None], kind: str, n: int) -> tuple[Tensor, str]:
    """What a model calls its attentions as one tensor; and what is wrong with it."""
    layers = [layer for layer in attentions if layer is not None]
    if len({layer.shape for layer in layers}) > 1:
        shapes = " and ".join(dict.fromkeys(str(tuple(layer.shape[1:])) for layer in layers))
        raise ValueError(f"model: expected attention of one shape in every layer, got {shapes} of a {kind}")
    A = torch.stack(layers)
    if A.ndim != 5 or A.shape[-2:] != (n, n):
        return A, (
            f"model: expected attention of {n} tokens to {n} tokens, got shape {tuple(A.shape[2:])} of a {kind}, "
            "which cuts it to windows, blocks or pools; try a model with full attention"
        )
    return A, "" if (A >= 0).all() else f"model: expected attention of at least 0, got {A.min():.3g} of a {kind}"


def _attentions(model: nn.Module, tokens: Tensor) -> Sequence[Tensor | None]:
    """What a model of `transformers` calls its attentions: a tensor or None a layer, or only those that are there."""
    config, kind = getattr(model, "config", None), type(model).__name__
    if getattr(config, "is_encoder_decoder", False) and hasattr(model, "decoder"):
        raise ValueError(
            f"model: expected an encoder or a decoder, got a {kind}, which has both, and attention from one to the "
            "other; try one of them, saved alone by a class such as T5EncoderModel or BartForCausalLM"
        )
    try:
        A = getattr(model(input_ids=tokens, output_attentions=True), "attentions", None)
    except Exception as error:  # of other models nothing is known
        raise ValueError(f"model: expected one that reads these tokens, got {one_line(error)}") from error
    if not A or all(layer is None for layer in A):
        eager = getattr(config, "_attn_implementation", "eager") == "eager"
        what = f"a {kind} does not have or show them; try another family" if eager else EAGER
        raise ValueError(f"model: expected attention weights, got none; {what}")
    return A


@torch.no_grad()
def _layers(model: nn.Module, token: int) -> list[int]:
    """The numbers of the layers that attend, from 1 on, by a look at eight and at nine tokens.

    What is cut to windows is (n, n) for one n at most. Where the model does not give a matrix or None for each of its
    layers, a matrix belongs to the layer inside which it was computed.

    Raises:
        ValueError: if what the model gives cannot be measured, or it cannot be said of which layers it is.
    """
    if isinstance(model, Decoder | Encoder):
        return list(range(1, 1 + sum(isinstance(module, MultiHead) for module in model.modules())))
    at = 0
    made: list[tuple[Any, int]] = []  # what modules return, and the number of the layer around them

    def enter(number: int, *_: Any) -> None:
        nonlocal at
        at = number

    hooks, most = [], positions(model)
    for name, module in model.named_modules():
        if layer := re.fullmatch(r"\D*(\d+)", name):  # as layers.3 or encoder.layer.3
            hooks.append(module.register_forward_pre_hook(partial(enter, int(layer[1]) + 1)))
        hooks.append(module.register_forward_hook(lambda module, inputs, output: made.append((output, at))))
    try:
        for n in (8, 9):
            tokens = torch.full((1, min(n, most or n)), token)
            A = _attentions(model, tokens)
            if problem := _stacked(A, type(model).__name__, tokens.shape[-1])[1]:
                raise ValueError(problem)
    finally:
        for hook in hooks:
            hook.remove()
    count = getattr(_config(model), "num_hidden_layers", None)
    if len(A) == count:
        return [number for number, layer in enumerate(A, start=1) if layer is not None]
    insides = [(output, at) if isinstance(output, tuple) else ((), at) for output, at in made]
    numbers = [next((at for parts, at in insides if any(part is layer for part in parts)), 0) for layer in A]
    if 0 in numbers or numbers != sorted(set(numbers)):
        raise ValueError(
            f"model: expected attention of {count} layers, got that of {len(A)} of a {type(model).__name__}, "
            "which does not say of which"
        )
    return numbers


def _config(model: nn.Module) -> Any:
    """The configuration of a model of `transformers`, or of its part that reads text."""
    config = getattr(model, "config", None)
    return config.get_text_config() if config is not None and hasattr(config, "get_text_config") else config


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
            the attention of all layers and heads, which is there at once, does not fit into the memory; or if the
            model's attention is not one matrix of n tokens to n tokens for each head.
    """
    tokens = _tokens_of_all(model, tokenizer, texts, places)
    layers = _layers(model, tokens[0][0])
    n = torch.tensor([len(ids) for ids in tokens])
    batches: list[Tensor] = []  # of texts of one length, so that none needs padding
    for length in n.unique().tolist():
        batches += (n == length).nonzero()[:, 0].split(max(1, 2**16 // length**2))  # bounds the memory
    lower, upper, rows = [], [], []
    for chosen in progress(batches):
        A, problem = _attention(model, torch.tensor([tokens[i] for i in chosen]))  # layer text head n n
        if problem:
            raise ValueError(problem)
        bounds = spectral_norm(A, rtol)
        lower.append(bounds.lower)
        upper.append(bounds.upper)
        rows.append(_rows(A))
    back = torch.cat(batches).argsort()  # to the order of the texts
    ordered = (torch.cat(parts, 1)[:, back] for parts in (lower, upper, rows))
    return Spectrum(n, next(ordered), next(ordered), layers, next(ordered))


def _rows(A: Tensor) -> Tensor:
    """The root mean square of the sums of A's rows; 1 where all are, up to the rounding of A."""
    r = A.double().sum(-1)
    rounding = max(1e-5, 2 * torch.finfo(A.dtype).eps)
    return torch.where((r - 1).abs().amax(-1) <= rounding, 1.0, r.square().mean(-1).sqrt())


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


def baselines(n: Int[Tensor, "text"], rows: Float[Tensor, "layer text head"] | None = None) -> Baselines:
    """Means over the texts; with `rows` as in `Spectrum`, of the head where the least is least, the greatest greatest.

    Raises:
        ValueError: if there are no texts, one without tokens, or `rows` that no such matrix has.
    """
    check_shapes(n=(n, "text"))
    if len(n) == 0 or not (n >= 1).all():
        raise ValueError(f"n: expected at least one number of tokens, each at least 1, got {n.tolist()}")
    rows = torch.ones(1, len(n), 1, dtype=torch.float64) if rows is None else rows
    check_shapes(n=(n, "text"), rows=(rows, "layer text head"))
    check_floats(rows=(rows, "layer text head"))
    check_finite(rows=rows)
    if (rows < 0).any():
        raise ValueError(f"rows: expected at least 0, got {rows.min().item():.3g}")
    rows = rows.double()
    uniform = {length: spectral_norm(uniform_causal(length)).lower.item() for length in set(n.tolist())}
    root_n = n.double().sqrt()[:, None]
    return Baselines(
        rows.mean(1).min().item(),
        sum(uniform[length] for length in n.tolist()) / len(n),
        (rows * root_n).mean(1).max().item(),
    )


def table(spectrum: Spectrum) -> list[tuple[int, float, float, float]]:
    """One row per layer: its number; mean, least and greatest of its heads, each averaged over the texts.

    Raises:
        ValueError: if the shapes do not fit, there is nothing to average, or a norm is not finite.
    """
    layers = _check(spectrum)
    heads = spectrum.lower.mean(1)
    return [(number, h.mean().item(), h.min().item(), h.max().item()) for number, h in zip(layers, heads, strict=True)]


def draw(ax: Any, spectrum: Spectrum) -> None:
    """Norm against layer: mean over heads (line), range of heads (band), and the three baselines."""
    layer, mean, least, greatest = zip(*table(spectrum), strict=True)
    one, uniform, root_n = baselines(spectrum.n, spectrum.rows)
    ax.fill_between(layer, least, greatest, alpha=0.25, lw=0)
    ax.plot(layer, mean, marker=".", label="mean over heads")
    ax.axhline(root_n, color="grey", ls=":", label=r"$\sqrt{n}$" if _sum_to_1(spectrum) else "greatest possible")
    ax.axhline(uniform, color="grey", ls="--", label="uniform causal")
    ax.axhline(one, color="grey", lw=0.8)
    ax.set(xlabel="layer", ylabel="spectral norm")


def _sum_to_1(spectrum: Spectrum) -> bool:
    return spectrum.rows is None or bool((spectrum.rows == 1).all())


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
    print("written:", _printable(", ".join(written)))


def _read_texts(path: Path) -> list[tuple[str, str]]:
    """The lines of a file that are not blank, each as ("line 3", text), its number from 1 on.

    Lines end in LF or CR LF. All else is text, form feeds and Unicode's own separators too; but not the byte order mark
    that some editors begin a file with.
    """
    lines = path.read_bytes().decode("utf-8-sig").split("\n")
    return [(f"line {number}", line.removesuffix("\r")) for number, line in enumerate(lines, start=1) if line.strip()]


def bar(items: Sequence[Tensor], width: int = 30) -> Iterator[Tensor]:
    """The items one by one, and on stderr how many of them are done."""
    width = check_integers(0, width=width)
    for done in range(len(items) + 1):
        filled = "#" * (width * done // max(1, len(items)))
        print(f"\r[{filled:{width}}] {done}/{len(items)}", end="", file=sys.stderr, flush=True)
        if done < len(items):
            yield items[done]
    print(file=sys.stderr)


def print_table(spectrum: Spectrum) -> None:
    """The rows of `table` as text, under the three baselines."""
    n, (one, uniform, root_n) = spectrum.n, baselines(spectrum.n, spectrum.rows)
    print(f"{len(n)} texts of {n.min()} to {n.max()} tokens, each by itself; spectral norms, mean over texts")
    print(f"to compare with: least possible {one:.3f}, uniform causal {uniform:.3f}, greatest possible {root_n:.3f}")
    if spectrum.rows is not None and not _sum_to_1(spectrum):
        print(
            f"rows of A do not sum to 1 (root mean square of a head's: {spectrum.rows.min():.3f} to "
            f"{spectrum.rows.max():.3f}); what is possible is said for such rows"
        )
    print("layer    mean  heads from      to")
    for layer, mean, least, greatest in table(spectrum):
        print(f"{layer:5d} {mean:7.3f}     {least:7.3f} {greatest:7.3f}")


def write_csv(path: Path, spectrum: Spectrum) -> None:
    """One row for every head on every text. Layers have the model's numbers; heads and texts count from 1,
    of texts only those measured.

    Raises:
        OSError: where the file cannot be written.
        ValueError: as for `table`.
    """
    numbers = _check(spectrum)
    with replacing(path) as new, new.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["layer", "head", "text", "tokens", "lower", "upper"])
        layers, texts, heads = spectrum.lower.shape
        for layer in range(layers):
            for head in range(heads):
                for text in range(texts):
                    bounds = (bound[layer, text, head].item() for bound in (spectrum.lower, spectrum.upper))
                    rows.writerow([numbers[layer], head + 1, text + 1, spectrum.n[text].item(), *bounds])


def write_figure(path: Path, title: str, spectrum: Spectrum) -> None:
    """What `draw` draws, as a file."""
    from smalltorch.figures.plot import figure

    fig, ax = figure()
    draw(ax, spectrum)
    ax.set_title(_printable(title), parse_math=False)
    ax.legend()
    with replacing(path) as new, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # text stays text; who shows it has the font
        fig.savefig(new, format="svg")


def _printable(text: str) -> str:
    """The text, with an escape for each character that no file in UTF-8, no SVG or no line can hold."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _needed(model: nn.Module, n: int) -> float:
    """The bytes that A of every layer and head takes on n tokens, twice: as it comes, and put together."""
    config = _config(model)
    counts = (getattr(config, name, 1) for name in ("num_hidden_layers", "num_attention_heads"))
    layers, heads = (
        max(count) if isinstance(count, list) else count if isinstance(count, int) else 1 for count in counts
    )
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


def _check(spectrum: Spectrum) -> Sequence[int]:
    """The numbers of the layers, if all is as it should be."""
    layers = range(1, 1 + len(spectrum.lower)) if spectrum.layers is None else spectrum.layers
    by_head = {"lower": spectrum.lower, "upper": spectrum.upper, "rows": spectrum.rows}
    norms = {name: (X, "layer text head") for name, X in by_head.items() if X is not None}
    check_shapes(n=(spectrum.n, "text"), **norms, layers=(torch.tensor(layers), "layer"))
    if spectrum.lower.numel() == 0:
        raise ValueError(f"lower: expected at least one layer, text and head, got shape {tuple(spectrum.lower.shape)}")
    check_finite(**{name: X for name, (X, _) in norms.items()})
    return layers


if __name__ == "__main__":
    warnings.filterwarnings("ignore", "IProgress not found")
    main()
