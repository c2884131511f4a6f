"""How deep can attention be stacked before it no longer learns? With and without skip connections, and MLPs.

    python -m smalltorch.experiments.depth_without_skips       # the whole table, 8 minutes on one core
    python -m smalltorch.experiments.depth_without_skips --layers 4 --steps 400 --seeds 20 --out again.csv

The source is a Markov chain of order 1: the next token depends on the last one only. A model that tells its tokens
apart can reach the bigram entropy; one whose tokens are all the same can reach the unigram entropy and hardly less. So
one number says whether anything about the last token reaches the readout through all layers.

    bare  attention after LayerNorm, and nothing else
    mlp   the same and an MLP after another LayerNorm
    skip  attention with a skip connection around it
    full  both with skip connections: a Pre-LN Transformer
    self  as bare, but W_Q = W_K = 2 I at the start, so that a token attends mostly to its like, hence to itself

Models are causal and of width 16. Seed by seed, bare, skip and self start from the same weights (but for W_Q and W_K),
and so do mlp and full; all see the same data. Training takes 400 steps; the deep bare models get 2000 as well.
The table, `depth_without_skips.csv`, has a line for each depth, variant, number of steps and seed. Its columns, both
over the last 8 of 16 positions of 512 held-out sequences:

    residual  relative residual of the states that the readout sees (after the last LayerNorm), before training
    excess    mean divergence of the model's next-token distribution from the source's after training, in nats: what
              its loss lies above the bigram entropy

The second command made `depth_without_skips_again.csv`: four layers once more, with twelve seeds that the first table
does not have.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from smalltorch.collapse import relative_residual
from smalltorch.engine.sample import generator
from smalltorch.experiments import runner
from smalltorch.experiments.runner import Experiment
from smalltorch.experiments.table import Row
from smalltorch.files import in_one_line
from smalltorch.models import TinyLM
from smalltorch.shapes import check_choice
from smalltorch.source import markov
from smalltorch.train import Report, Run, initial, next_token_loss, train

SOURCE = markov("depth without skips", vocabulary=4, order=1)
N, BATCH, WIDTH, HEADS, RATE = 16, 16, 16, 2, 3e-3
LATE = slice(N // 2, None)  # where the first tokens, which have nothing to mix with, are far behind
HELD_OUT = SOURCE.sample(generator("depth without skips, held out"), 512, N)
VARIANTS = {  # residual, mlp
    "bare": (False, False),
    "mlp": (False, True),
    "skip": (True, False),
    "full": (True, True),
    "self": (False, False),
}
DEPTHS = (1, 2, 4, 8, 12)
CASES = [  # layers, variant, steps
    *((layers, variant, 400) for layers in DEPTHS for variant in VARIANTS),
    (8, "bare", 2000),
    (12, "bare", 2000),
]
COLUMNS = ("layers", "variant", "steps", "seed", "residual", "excess")
KEYS = ("layers", "variant", "steps", "seed")


def attending_to_itself(model: nn.Module, rng: np.random.Generator) -> Mapping[str, Tensor]:
    """The usual initial weights, but W_Q = W_K = 2 I: a score is 4 <x_i, x_j>, over the root of d_h, in each head."""
    parameters = initial(model, rng)
    return {
        name: 2 * torch.eye(WIDTH, dtype=weight.dtype) if name.endswith(("W_Q", "W_K")) else weight
        for name, weight in parameters.items()
    }


def model(layers: int, variant: str) -> TinyLM:
    check_choice(tuple(VARIANTS), variant=variant)
    residual, mlp = VARIANTS[variant]
    return TinyLM(SOURCE.vocabulary, N, d=WIDTH, layers=layers, heads=HEADS, residual=residual, mlp=mlp)


def start(variant: str) -> Callable[[nn.Module, np.random.Generator], Mapping[str, Tensor]]:
    check_choice(tuple(VARIANTS), variant=variant)
    return attending_to_itself if variant == "self" else initial


def trained(layers: int, variant: str, *, seeds: int, steps: int, report: Report | None = None) -> Run:
    """The models of one depth and variant. Data depend on depth and seed only."""
    return train(
        model(layers, variant),
        next_token_loss,
        SOURCE.batches(N + 1, BATCH),
        name=run_name(layers),
        seeds=seeds,
        steps=steps,
        rate=RATE,
        start=start(variant),
        report=report,
    )


def run_name(layers: int) -> str:
    return f"depth without skips, {layers} layers"


def excess(run: Run) -> Float[Tensor, " seed"]:
    """Mean of KL(p(. | last token) || model) on the held-out sequences."""
    P = SOURCE.P[HELD_OUT[:, LATE]]
    return (P * (P.log() - run(HELD_OUT)[:, :, LATE].log_softmax(-1))).sum(-1).mean((1, 2))


@torch.no_grad()
def residual_at_start(layers: int, variant: str, seed: int) -> float:
    """Mean relative residual of the late states as the readout sees them, before training."""
    untrained = model(layers, variant).double()
    weights = start(variant)(untrained, generator(f"{run_name(layers)}, weights {seed}"))
    untrained.load_state_dict(dict(weights))
    return float(relative_residual(untrained.states(HELD_OUT)[:, LATE]).mean())


def rows(layers: int, variant: str, *, seeds: int, steps: int, report: Report | None = None) -> Iterator[Row]:
    """The table's lines for one case."""
    run = trained(layers, variant, seeds=seeds, steps=steps, report=report)
    for seed, above in enumerate(excess(run).tolist()):
        yield layers, variant, steps, seed, f"{residual_at_start(layers, variant, seed):.6f}", f"{above:.6f}"


def experiment(arguments: Sequence[str] | None = None) -> Experiment:
    """The experiment that a command asks for; the table has all of it."""
    parser = runner.parser(__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, nargs="+", default=None)
    parser.add_argument("--steps", type=int, default=None)
    parser.add_argument("--seeds", type=int, default=8)
    options = parser.parse_args(arguments)
    cases = CASES
    if options.layers or options.steps:
        depths, steps = options.layers or DEPTHS, options.steps or 400
        cases = [(layers, variant, steps) for layers in depths for variant in VARIANTS]
    named = [
        {"layers": layers, "variant": variant, "steps": steps, "seeds": options.seeds}
        for layers, variant, steps in cases
    ]
    return Experiment(__spec__.name, COLUMNS, KEYS, named, f"0 to {options.seeds - 1}", tolerance=5e-3, options=options)


if __name__ == "__main__":
    with in_one_line():
        runner.run(experiment())
