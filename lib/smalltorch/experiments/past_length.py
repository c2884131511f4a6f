"""SmolLM2 past its trained length: what it loses by position, with the frequencies that it has and with four remedies.

    python -m smalltorch.experiments.past_length --texts FOLDER --workers 1     # the whole table, an hour of one core
    python -m smalltorch.experiments.past_length --confirm                      # a case of the book's own essay again

The model was trained on 8,192 tokens and reads 12,288 = 1.5 * 8,192 here: two windows that do not overlap, from the
beginning of each of three books. They are in the public domain, and stay outside the repository; the table's head names
them. Where the folder lacks them, `--confirm` takes a case of the book's own essay, whose 768 tokens are read in the
same way, all lengths by a factor of 16 shorter but that of the training; so what they show is what the remedies cost
where none is needed, and what a window does that loses the first token.

The table, `past_length.csv`, has a line for each text, window, remedy and bin of a 24th of the window: `from` is the
position of its first prediction in the window, and `loss` its mean loss in nats. The remedies:

    none            the frequencies of the model
    interpolation   all of them divided by 1.5
    base            a larger base, so that the slowest pair turns 1.5 times as slowly, and the fastest as before
    yarn            YaRN with the factor 1.5
    window          the model's frequencies; a query sees itself and the 8,191 tokens before it, so no offset is new
    window+first    the same, and always the first token of the window too, however far it is

Two more lines are no remedies: the same tokens, read within the trained length.

    shifted         the last 8,192 tokens alone, so that the token of position p is read at p - 4,096
    fresh           the last 4,096 tokens alone, so that it is read at p - 8,192

`STATED` has the contrasts of the chapter, with their thresholds, as they stood before the table was made; the essay had
been looked at. Their replicates are the six windows. Attention is fused, for 12,288 by 12,288 numbers a head are too
many to be written out.
"""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from smalltorch import data
from smalltorch.experiments import runner
from smalltorch.experiments.runner import Experiment
from smalltorch.experiments.table import Row
from smalltorch.files import in_one_line
from smalltorch.position import dynamic_ntk, linear_scaling, yarn
from smalltorch.shapes import check_choice, check_integers, check_type
from smalltorch.weights import load, tokens_of

TRAINED, TOKENS, OWN = 8192, 12_288, 768
FACTOR = TOKENS / TRAINED
BASE, D_H = 100_000.0, 64  # of SmolLM2
BINS, CHUNK = 24, 512
TEXTS = {  # by the names of their files: what they are, and their SHA-256
    "news-from-nowhere": (
        "William Morris, News from Nowhere (1890)",
        "4e500da332bd0009f4a478f7faf28745744d6a94c0871a8c02494622a79282d4",
    ),
    "log-school-house": (
        "Hezekiah Butterworth, The Log School-House on the Columbia (1890)",
        "23a9ec0e6665de8f82d26e5cc31be76bde0b106786860102a6ea99e7471bd90c",
    ),
    "how-to-listen-to-music": (
        "Henry Edward Krehbiel, How to Listen to Music (1896)",
        "14fd16bb30b0dc0df9e3334535c1213ee364a877053b115b4265e2eca92a0be0",
    ),
}
READINGS = ("trained", "shifted", "fresh", "yarn", "base", "interpolation")  # "trained": three remedies in one
STATED = {  # of six windows; far: the loss from 10,240 to 12,288; control: that of the same tokens, shifted
    "none: far less control": {"above": 0.1},
    "interpolation: far less control": {"below": 0.5, "scale": 1},
    "base: far less control": {"below": 0.5, "scale": 1},
    "yarn: far less control": {"below": 0.2, "scale": 1},
    "window: far less control": {"above": 0.2},
    "window+first: far less control": {"above": -0.1, "below": 0.1, "scale": 1},
    "fresh: far less control": {"above": -0.05, "below": 0.15, "scale": 1},
    "control less what none loses from 6,144 to 8,192": {"above": -0.3, "below": 0.3, "scale": 1},
    "none: 8,192 to 10,240, less the same tokens, shifted": {"above": 0},
    "none less yarn, far": {"above": 0.1},
    "window less window+first, far": {"above": 0.2},
    "interpolation less none, up to 8,192": {"above": 0.05},
    "base less none, up to 8,192": {"above": -0.05, "below": 0.05, "scale": 1},
    "yarn less none, up to 8,192": {"above": -0.05, "below": 0.05, "scale": 1},
}
COLUMNS = ("text", "window", "remedy", "from", "loss")
KEYS = COLUMNS[:4]


class Sight(NamedTuple):
    """Which keys a query sees, of those that are not after it: the `window` last ones, and the `first` ones."""

    window: int
    first: int


def _states(model: Any, tokens: Int[Tensor, " n"], split: int, sights: Sequence[Sight]) -> list[Float[Tensor, "n d"]]:
    """The last states of a `Decoder`, for each sight; the first `split` tokens, which see all before, are read once."""
    X, tails = model.E[tokens[:split]], [model.E[tokens[split:]] for _ in sights]
    for block in model.blocks:
        parts = [block.attention.project(block.norm_1(torch.cat([X, Y]))) for Y in tails]
        Q, K, V = (part[None, :, :split] for part in parts[0])  # with a batch, for else attention is not fused
        read = [_tail(part, split, sight) for part, sight in zip(parts, sights, strict=True)]
        tails = [_after(block, Y, H) for Y, H in zip(tails, read, strict=True)]
        X = _after(block, X, F.scaled_dot_product_attention(Q, K, V, is_causal=True)[0])
    return [model.norm(torch.cat([X, Y])) for Y in tails]


def _tail(part: tuple[Tensor, Tensor, Tensor], split: int, sight: Sight) -> Float[Tensor, "head tail d_h"]:
    """What the queries from `split` on read, a chunk of them at a time, of Q, K and V."""
    Q, K, V = part
    found = []
    for start in range(split, Q.shape[1], CHUNK):
        stop, low = min(start + CHUNK, Q.shape[1]), max(sight.first, start - sight.window + 1)
        i, j = torch.arange(start, stop), torch.cat([torch.arange(sight.first), torch.arange(low, stop)])
        seen = (j <= i[:, None]) & ((j > i[:, None] - sight.window) | (j < sight.first))
        found.append(F.scaled_dot_product_attention(Q[None, :, i], K[None, :, j], V[None, :, j], attn_mask=seen)[0])
    return torch.cat(found, dim=1)


def _after(block: Any, X: Tensor, H: Tensor) -> Tensor:
    X = X + H.transpose(0, 1).flatten(1) @ block.attention.W_O
    return X + block.ffn(block.norm_2(X))


def _losses(model: Any, X: Float[Tensor, "n d"], targets: Int[Tensor, " n"], size: int) -> list[float]:
    """The mean loss of each bin of so many predictions: all logits at once would fill the memory."""
    return [
        F.cross_entropy(X[k : k + size] @ model.E.T, targets[k : k + size]).item() for k in range(0, len(targets), size)
    ]


def _tokens_in(text: str, window: int, tokens: int, texts: str, tokenizer: object) -> Int[Tensor, " n_and_one"]:
    """A window of a text and the token after it; windows follow each other."""
    if text == "essay":
        said = data.text(text)
    else:
        path = Path(texts) / f"{text}.txt"
        if not path.exists() or sha256(path.read_bytes()).hexdigest() != TEXTS[text][1]:
            raise ValueError(f"texts: expected a folder with {path.name}, of SHA-256 {TEXTS[text][1]}, got {texts!r}")
        said = path.read_text(encoding="utf-8")
    found = torch.tensor(tokens_of(tokenizer, said)[window * (tokens + 1) : (window + 1) * (tokens + 1)])
    if len(found) <= tokens:
        raise ValueError(f"window, tokens: expected a window within the text, got {window} and {tokens}")
    return found


def _remedied(model: Any, reading: str) -> Any:
    """The model with the frequencies of a remedy, for 1.5 times its trained length."""
    ways = {
        "interpolation": lambda: linear_scaling(D_H, BASE, FACTOR),
        "base": lambda: dynamic_ntk(D_H, BASE, 1.0, TRAINED, TOKENS),
        "yarn": lambda: yarn(D_H, BASE, FACTOR, TRAINED),
    }
    for block in model.blocks if reading in ways else ():
        block.attention.theta, block.attention.attention_factor = ways[reading]()
    return model


@torch.no_grad()
def rows(text: str, window: int, reading: str, tokens: int, *, texts: str = "texts") -> Iterator[Row]:
    """The table's lines for one case.

    Raises:
        ValueError: for an unknown text or reading, a window that is not there, or no multiple of 24 tokens; where the
            folder lacks the text, or has another one under its name.
    """
    check_choice(("essay", *TEXTS), text=text)
    check_choice(READINGS, reading=reading)
    check_type(str, texts=texts)
    check_integers(0, window=window)
    check_integers(BINS, tokens=tokens)
    if tokens % BINS:
        raise ValueError(f"tokens: expected a multiple of {BINS}, got {tokens}")
    model, tokenizer = load("smollm2")
    start, size = {"shifted": tokens // 3, "fresh": tokens * 2 // 3}.get(reading, 0), tokens // BINS
    read = _tokens_in(text, window, tokens, texts, tokenizer)[start:]
    split = (tokens - start) * 2 // 3
    whole, windows = Sight(tokens, 0), {"window": Sight(split, 0), "window+first": Sight(split, 1)}
    sights = {"none": whole, **windows} if reading == "trained" else {reading: whole}
    found = _states(_remedied(model, reading), read[:-1], split, list(sights.values()))
    for remedy, X in zip(sights, found, strict=True):
        for k, loss in enumerate(_losses(model, X, read[1:], size)):
            yield text, window, remedy, start + k * size, f"{loss:.5f}"


def experiment(arguments: Sequence[str] | None = None) -> Experiment:
    """The experiment that a command asks for; without the texts, a case of the essay confirms it."""
    parser = runner.parser(__doc__.splitlines()[0])
    parser.add_argument("--texts", default="texts", help="the folder with the three texts that the module names")
    options = parser.parse_args(arguments)
    own: list[runner.Case] = [{"text": "essay", "window": 0, "reading": reading, "tokens": OWN} for reading in READINGS]
    books: list[runner.Case] = [
        {"text": text, "window": window, "reading": reading, "tokens": TOKENS}
        for reading in READINGS
        for text in TEXTS
        for window in (0, 1)
    ]
    there = all((Path(options.texts) / f"{text}.txt").exists() for text in TEXTS)
    named = "; ".join(f"{what}, SHA-256 {digest}" for what, digest in TEXTS.values())
    return Experiment(
        __spec__.name, COLUMNS, KEYS, own + books, f"none; the texts: {named}; and the book's essay", tolerance=5e-3,
        options=options, given={"texts": options.texts}, again=own + books if there else own,
    )  # fmt: skip


if __name__ == "__main__":
    with in_one_line():
        runner.run(experiment())
