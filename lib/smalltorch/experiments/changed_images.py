"""What a small vision Transformer and a small CNN still name right when drawn shapes are turned, mirrored or shifted.

    python -m smalltorch.experiments.changed_images --workers 1     # the whole table, a minute of one core

Both learn to name the shape on images of 12 x 12 pixels: an L, a T, a cross or a square, upright, at any place, on a
noisy ground. Each seed is tested on 2,000 images of its own, as they are and changed. The table, `changed_images.csv`,
has for each model, seed and shape, and whether the shape stays whole when the image is shifted around its borders, how
many images these are and the share of them that is named right after each change.

Chapter `images` states its contrasts.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from smalltorch.engine.sample import generator
from smalltorch.experiments import runner
from smalltorch.experiments.runner import Case, Experiment
from smalltorch.experiments.table import Row
from smalltorch.files import in_one_line
from smalltorch.models import AblationLayer
from smalltorch.norm import LayerNorm
from smalltorch.shapes import check_choice, check_integers
from smalltorch.train import cross_entropy, train

SIDE, PATCH, KERNEL = 12, 3, 5  # pixels: of an image, of the ViT's patches, of the CNN's filters and of a shape
WIDTH, CHANNELS = 24, 20  # of the ViT's states; the CNN's filters in each layer
SEEDS, STEPS, BATCH, TESTED = 5, 400, 64, 2000
RATES = {"ViT": 6e-3, "CNN": 1e-2}
SHAPES = ("L", "T", "+", "O")
PIXELS = torch.tensor([
    [[1, 0, 0, 0, 0], [1, 0, 0, 0, 0], [1, 0, 0, 0, 0], [1, 0, 0, 0, 0], [1, 1, 1, 1, 1]],
    [[1, 1, 1, 1, 1], [0, 0, 1, 0, 0], [0, 0, 1, 0, 0], [0, 0, 1, 0, 0], [0, 0, 1, 0, 0]],
    [[0, 0, 1, 0, 0], [0, 0, 1, 0, 0], [1, 1, 1, 1, 1], [0, 0, 1, 0, 0], [0, 0, 1, 0, 0]],
    [[1, 1, 1, 1, 1], [1, 0, 0, 0, 1], [1, 0, 0, 0, 1], [1, 0, 0, 0, 1], [1, 1, 1, 1, 1]],
]).double()  # fmt: skip
BOARD = 0.5 * ((torch.arange(SIDE)[:, None] + torch.arange(SIDE)) % 2 * 2 - 1).double()

Images = Float[Tensor, "*batch side side"]

CHANGES: dict[str, Callable[[Images], Images]] = {
    "upright": lambda x: x,
    "mirrored": lambda x: x.flip(-1),
    "turned": lambda x: torch.rot90(x, 1, (-2, -1)),
    "shifted": lambda x: x.roll((1, 1), (-2, -1)),
    "checkerboard": lambda x: x + BOARD,
}
COLUMNS = ("model", "seed", "shape", "whole", "images", *CHANGES)
KEYS = COLUMNS[:4]


class _ViT(nn.Module):
    """Patches, a linear embedding, learnt codes of place, two Pre-LN layers, a mean over the tokens, four logits."""

    def __init__(self, codes: bool = True):
        super().__init__()
        self.W_E = nn.Parameter(torch.randn(PATCH**2, WIDTH))
        self.P = nn.Parameter(torch.randn((SIDE // PATCH) ** 2, WIDTH)) if codes else None
        self.layers = nn.ModuleList(AblationLayer(WIDTH, 2, 2 * WIDTH, "pre", True, True) for _ in range(2))
        self.norm, self.W_U = LayerNorm(WIDTH), nn.Parameter(torch.zeros(WIDTH, len(SHAPES)))

    def forward(self, images: Images) -> Float[Tensor, "*batch shape"]:
        blocks = images.unfold(-2, PATCH, PATCH).unfold(-2, PATCH, PATCH)  # ... row column a b
        return self.of_patches(blocks.flatten(-4, -3).flatten(-2))

    def of_patches(self, tokens: Float[Tensor, "*batch n pixels"]) -> Float[Tensor, "*batch shape"]:
        X = tokens @ self.W_E
        X = X if self.P is None else X + self.P
        for layer in self.layers:
            X = layer(X)
        return self.norm(X).mean(-2) @ self.W_U


class _CNN(nn.Module):
    """Two convolutions of 5 x 5, written as patches that overlap, a mean over places, four logits."""

    def __init__(self) -> None:
        super().__init__()
        self.W_1 = nn.Parameter(torch.randn(KERNEL**2, CHANNELS))
        self.W_2 = nn.Parameter(torch.randn(KERNEL**2 * CHANNELS, CHANNELS))
        self.W_U = nn.Parameter(torch.zeros(CHANNELS, len(SHAPES)))

    def forward(self, images: Images) -> Float[Tensor, "*batch shape"]:
        X = images.unfold(-2, KERNEL, 1).unfold(-2, KERNEL, 1).flatten(-2)  # ... 8 8 25
        X = (X @ self.W_1).relu()
        X = X.unfold(-3, KERNEL, 1).unfold(-3, KERNEL, 1).flatten(-3)  # ... 4 4 25·channels
        return (X @ self.W_2).relu().mean((-2, -3)) @ self.W_U


MODELS: dict[str, type[nn.Module]] = {"ViT": _ViT, "CNN": _CNN}


def _drawn(
    rng: np.random.Generator, size: int
) -> tuple[Images, Int[Tensor, " size"], Int[Tensor, " size"], Int[Tensor, " size"]]:
    """Images with a shape at a random place on a noisy ground; which it is, and the row and column of its corner."""
    kind, row, column = rng.integers(0, 4, size), rng.integers(0, SIDE - 4, size), rng.integers(0, SIDE - 4, size)
    images = 0.2 * torch.from_numpy(rng.standard_normal((size, SIDE, SIDE)))
    which, down, right = torch.arange(size)[:, None, None], torch.from_numpy(row), torch.from_numpy(column)
    across = torch.arange(KERNEL)
    images[which, down[:, None, None] + across[:, None], right[:, None, None] + across] += PIXELS[kind]
    return images, torch.from_numpy(kind), down, right


EXAMPLES = _drawn(generator("one image"), 8)


def _loss(predict: Callable[[Tensor], Tensor], images: Tensor, kind: Tensor) -> Tensor:
    return cross_entropy(predict(images), kind)


def rows(model: str, *, seeds: int, steps: int = STEPS) -> Iterator[Row]:
    """The table's lines for one model.

    Raises:
        ValueError: for an unknown model, or fewer than one seed or step.
    """
    check_choice(tuple(MODELS), model=model)
    check_integers(1, seeds=seeds, steps=steps)
    run = train(MODELS[model](), _loss, lambda rng: _drawn(rng, BATCH)[:2], name=f"images, {model}", seeds=seeds,
                steps=steps, rate=RATES[model])  # fmt: skip
    for seed in range(seeds):
        images, kind, row, column = _drawn(generator(f"images, test {seed}"), TESTED)
        stays, named = torch.maximum(row, column) < SIDE - KERNEL, run.at(seed)
        right = torch.stack([
            torch.cat([named(part).argmax(-1) for part in change(images).split(250)]) == kind
            for change in CHANGES.values()
        ])  # fmt: skip
        for shape, name in enumerate(SHAPES):
            for whole in (False, True):
                these = (kind == shape) & (stays == whole)
                shares = right[:, these].double().mean(1).tolist()
                yield model, seed, name, int(whole), int(these.sum()), *(f"{share:.5f}" for share in shares)


def experiment(arguments: Sequence[str] | None = None) -> Experiment:
    """The experiment that a command asks for; the table has all of it."""
    options = runner.parser(__doc__.splitlines()[0]).parse_args(arguments)
    cases: list[Case] = [{"model": model, "seeds": SEEDS} for model in MODELS]
    seeds = f"0 to {SEEDS - 1}; steps: {STEPS}"
    return Experiment(__spec__.name, COLUMNS, KEYS, cases, seeds, tolerance=2e-2, options=options)


if __name__ == "__main__":
    with in_one_line():
        runner.run(experiment())
