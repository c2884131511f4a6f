"""Every default of the library stands in a table here, and those that the field has are the field's.

Where all tests give an argument, its default may be anything; where all tests give the default, a setting may be lost.
"""

import importlib
import inspect
import sys

import numpy as np
import pytest
import torch
from oracles.public import callables
from tiny import TOKENS, shaken, tiny_gpt, tiny_llama

from smalltorch.block import CrossPostLN
from smalltorch.engine.effects import missed
from smalltorch.experiments import (
    changed_images,
    depth_without_skips,
    eviction,
    few_labels,
    first_steps,
    forecasts,
    past_length,
    placement,
    position_codes,
    recall,
    stand_ins,
    stopped_pairs,
)
from smalltorch.experiments.table import stored
from smalltorch.generate import sampler
from smalltorch.models import GPT, Decoder, Encoder, EncoderDecoder, initialise_gpt2
from smalltorch.norm import LayerNorm, RMSNorm, layer_norm, rms_norm
from smalltorch.position import frequencies, rope, t5_buckets
from smalltorch.weights import same_weights

# By callable: its defaults but for those that leave something out (None, False) or switch it on (True).
DEFAULTS = {
    "attention.softmax": {"dim": -1},  # over the last axis, as everywhere in the book
    "attribute.integrated_gradients": {"steps": 16},  # exact for gradients of degree 31 along the way
    "block.CrossPostLN": {"eps": 1e-5},  # torch.nn.Transformer
    "block.FFN": {"activation": torch.nn.functional.gelu},  # Hendrycks and Gimpel 2016: the exact one
    "cache.cache_bytes": {"bits": 16},  # the chapter's own
    "circuits.induction_lm": {"copies": 1},  # one head
    "collapse.normalise": {"eps": 1e-5},  # torch.nn.LayerNorm
    "curvature.largest_eigenvalue": {"steps": 16},  # the chapters' own
    "efficient.sparse.window_mask": {"gap": 1},  # no gaps
    "efficient.cost.kept_bytes": {"besides": ()},
    "experiments.changed_images.rows": {"steps": 400},  # the stored table's
    "experiments.recall.rows": {"steps": 300},  # the stored table's
    "experiments.first_steps.rows": {"steps": 150},  # the stored table's
    "experiments.position_codes.rows": {"steps": 300, "tuning": 60},  # the stored table's
    "experiments.past_length.rows": {"texts": "texts"},
    "experts.Mixture": {"shared": ()},
    "experts.balance": {"K": 1},  # Fedus et al. 2022
    "experts.mixture_size": {"shared": 0},
    "generate.generate": {"choose": "most_probable"},
    "generate.probabilities": {"temperature": 1.0, "top_p": 1.0},  # the softmax of the logits as they are
    "generate.sampler": {"temperature": 1.0, "top_p": 1.0},
    "measure.bar": {"width": 30},  # of a terminal
    "measure.norms_by_layer": {"rtol": 1e-4, "progress": iter},  # spectral_norm's
    "models.Decoder": {"rope_base": 10_000.0, "eps": 1e-6},  # LlamaConfig
    "models.Encoder": {"positions": 512, "segments": 2, "eps": 1e-12},  # BertConfig
    "models.EncoderDecoder": {"d": 512, "layers": 6, "heads": 8, "d_ff": 2048},  # Vaswani et al. 2017, base
    "models.EncoderDecoder.embed": {"start": 0},
    "models.GPT": {"eps": 1e-5},  # GPT2Config
    "models.TinyLM": {"d": 16, "layers": 2, "heads": 2, "norm": "pre"},  # the chapters' own
    "models.initialise_gpt2": {"std": 0.02},  # GPT2Config
    "norm.LayerNorm": {"eps": 1e-5, "convention": "inside"},  # torch.nn.LayerNorm
    "norm.RMSNorm": {"eps": 1e-6},  # LlamaConfig
    "norm.layer_norm": {"eps": 1e-5, "convention": "inside"},
    "norm.rms_norm": {"eps": 1e-6},
    "optim.adam_steps": {"beta_1": 0.9, "beta_2": 0.999, "eps": 1e-8},  # torch.optim.Adam
    "figures.plot.figure": {"width": 6.4, "height": 3.6, "columns": 1},  # the book's page
    "position.frequencies": {"base": 10_000.0},  # Su et al. 2021, section 3.4
    "position.llama3": {"low": 1.0, "high": 4.0},  # Llama 3.1
    "position.rope": {"base": 10_000.0, "start": 0},
    "position.sinusoids": {"start": 0},
    "position.t5_bias": {"furthest": 128},  # T5Config
    "position.t5_buckets": {"buckets": 32, "furthest": 128},
    "position.yarn": {"fast": 32.0, "slow": 1.0},  # Peng et al. 2023
    "shapes.check_mask": {"name": "mask"},
    "source.Markov.batches": {"size": 32},
    "source.Markov.entropy": {"behind": 0},
    "source.markov": {"vocabulary": 4, "order": 2, "sharpness": 2.0},  # the chapters' own
    "source.windows": {"size": 32},
    "spectral.attention_spectral_norm": {"rtol": 1e-3},  # what fused attention reaches
    "spectral.spectral_norm": {"rtol": 1e-4},
    "train.train": {"seeds": 5, "steps": 300, "rate": 3e-3, "start": "initial"},  # the chapters' own
    "weights.load": {"dtype": torch.float32},  # as the files are used
}


def defaults(name):
    """The defaults of a callable by its name from `smalltorch` on, functions of the library by their names."""
    parts = name.split(".")
    depth = next(k for k in range(len(parts) - 1, 0, -1) if is_module(".".join(parts[:k])))
    value = importlib.import_module("smalltorch." + ".".join(parts[:depth]))
    for part in parts[depth:]:
        value = getattr(value, part)
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):  # a property, which has no arguments
        return {}
    given = {p.name: p.default for p in parameters if p.default not in (p.empty, None) and p.default is not True}
    named = {k: v.__name__ if getattr(v, "__module__", "").startswith("smalltorch") else v for k, v in given.items()}
    return {key: value for key, value in named.items() if value is not False}


def is_module(name):
    try:
        importlib.import_module(f"smalltorch.{name}")
    except ModuleNotFoundError:
        return False
    return True


def test_every_default_stands_in_the_table():
    found = {name: given for name in callables() if (given := defaults(name))}
    assert found == {name: given for name, given in DEFAULTS.items() if given}


SMALL = 1e-3 * torch.randn(4, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))  # where eps counts


def test_norms_that_are_told_no_eps_have_torchs_and_llamas():
    assert torch.allclose(layer_norm(SMALL), torch.nn.functional.layer_norm(SMALL, (6,)), rtol=1e-12)
    assert torch.allclose(LayerNorm(6).double()(SMALL), torch.nn.LayerNorm(6).double()(SMALL), rtol=1e-12)
    theirs = torch.nn.functional.rms_norm(SMALL, (6,), eps=llama().rms_norm_eps)
    assert torch.allclose(rms_norm(SMALL), theirs, rtol=1e-12)
    assert torch.allclose(RMSNorm(6).double()(SMALL), theirs, rtol=1e-12)


def test_rotary_positions_that_are_told_no_base_have_llamas():
    frequency = llama().rope_parameters["rope_theta"] ** (-torch.arange(0, 6, 2, dtype=torch.float64) / 6)
    turned = SMALL.view(4, 2, 3).transpose(1, 2).contiguous()  # the pairs (x_i, x_{i + 3}) as complex numbers
    expected = torch.view_as_complex(turned) * torch.exp(1j * torch.arange(4)[:, None] * frequency)
    assert torch.allclose(rope(SMALL), torch.cat([expected.real, expected.imag], 1), rtol=1e-12)


def llama():
    return pytest.importorskip("transformers").LlamaConfig()


def test_models_that_are_told_no_sizes_have_those_of_the_field():
    transformers = pytest.importorskip("transformers")
    bert, gpt = transformers.BertConfig(), transformers.GPT2Config()
    (eps,) = epsilons(Encoder(9, 8, 1, 2, 8))
    shapes = {p.shape for p in Encoder(9, 8, 1, 2, 8).parameters()}
    assert eps == bert.layer_norm_eps and {(bert.max_position_embeddings, 8), (bert.type_vocab_size, 8)} <= shapes
    assert epsilons(GPT(9, 8, 1, 2, 8, "pre")) == {gpt.layer_norm_epsilon}
    decoder = Decoder(9, 8, 1, 2, 8)
    assert epsilons(decoder) == {llama().rms_norm_eps}
    base = llama().rope_parameters["rope_theta"]
    assert all(torch.equal(block.attention.theta, frequencies(4, base)) for block in decoder.blocks)
    theirs = torch.nn.TransformerDecoderLayer(8, 2)
    assert epsilons(CrossPostLN(8, 2, 8)) == {theirs.norm1.eps}
    sizes = {name: p.default for name, p in inspect.signature(torch.nn.Transformer).parameters.items()}
    ours = {name: p.default for name, p in inspect.signature(EncoderDecoder).parameters.items()}
    names = {"d": "d_model", "layers": "num_encoder_layers", "heads": "nhead", "d_ff": "dim_feedforward"}
    assert {name: ours[name] for name in names} == {name: sizes[theirs] for name, theirs in names.items()}
    assert inspect.signature(initialise_gpt2).parameters["std"].default == gpt.initializer_range


def epsilons(model):
    return {module.eps for module in model.modules() if hasattr(module, "eps")}


@pytest.mark.parametrize(
    "make",
    [
        lambda: tiny_gpt(1, layer_norm_epsilon=0.05),
        lambda: tiny_gpt(2, layer_norm_epsilon=0.05),
        lambda: tiny_llama(rope_parameters={"rope_type": "default", "rope_theta": 50.0}),
    ],
    ids=["GPT-1, eps", "GPT-2, eps", "LLaMA, base"],
)
def test_a_setting_that_is_not_the_default_is_converted(make):
    theirs = shaken(make())
    with torch.no_grad():
        ours, expected = same_weights(theirs)(TOKENS), theirs(TOKENS).logits
    assert torch.allclose(ours, expected, rtol=0, atol=1e-5 * expected.abs().max())  # theirs turns in float32


# --- the long runs: told nothing, the scripts make the tables that are stored -----------------------------------------


@pytest.mark.parametrize(
    ("module", "of"),
    [
        (placement, {"layers": "layers", "place": "norm", "rate": "rate"}),
        (depth_without_skips, {"layers": "layers", "variant": "variant", "steps": "steps"}),
        (first_steps, {"layers": "layers", "place": "place", "rate": "rate", "warmup": "warmup"}),
        (position_codes, {"code": "code", "remedy": "remedy"}),
    ],
)
def test_a_script_that_is_told_nothing_makes_the_stored_table(module, of):
    made = module.experiment([])
    head, lines = stored(made.name)
    asked = [tuple(str(case[name]) for name in of) for case in made.cases]
    assert set(asked) == {tuple(line[column] for column in of.values()) for line in lines}
    assert len(asked) == len(set(asked))
    assert {case["seeds"] for case in made.cases} == {len({line["seed"] for line in lines})}
    assert head[1] == f"seeds: {made.seeds}"  # and what else the run was told


@pytest.mark.parametrize(
    "module", [changed_images, eviction, few_labels, forecasts, past_length, recall, stand_ins, stopped_pairs]
)
def test_a_script_reads_its_command_line(module, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", ["the script", "--out", str(tmp_path / "there.csv"), "--workers", "3"])
    made = module.experiment()
    assert made.out == tmp_path / "there.csv" and made.options.workers == 3
    assert made.cases and made.cases == module.experiment([]).cases


@pytest.mark.parametrize("module", [changed_images, recall])
def test_the_lines_of_a_table_are_of_as_many_steps_as_its_head_says(module, monkeypatch):
    class Told(Exception):
        pass

    def train(*given, **settings):
        raise Told(settings["steps"])

    monkeypatch.setattr(module, "train", train)
    way = next(iter(module.MODELS if module is changed_images else module.WAYS))
    with pytest.raises(Told) as told:
        next(module.rows(way, seeds=1))
    head, _ = stored(module.__name__.rpartition(".")[2])
    assert head[1].endswith(f"steps: {told.value}")


def test_sampling_that_is_told_nothing_takes_any_token():
    class Last(np.random.Generator):
        def random(self, shape):
            return np.full(shape, 1 - 2**-53)

    logits = torch.tensor([[5.0, 0.0, 4.0, -3.0]])
    assert sampler(Last(np.random.PCG64()))(logits).item() == 3


def test_buckets_that_are_told_no_number_are_t5s():
    config = pytest.importorskip("transformers").T5Config()
    given = config.relative_attention_num_buckets, config.relative_attention_max_distance
    assert torch.equal(t5_buckets(300, furthest=given[1]), t5_buckets(300, *given))


def test_what_is_owned_up_to_may_miss_one_threshold_only():
    """The other is then none; and values are of seeds, unless it is said of what."""
    for bound in ("above", "below"):
        found = missed("a share", [0.4, 0.6, 0.3, 0.7, 0.5], **{bound: 0.5}).text
        assert found.endswith(f"over 5 seeds; demanded, and not seen: {bound} 0.5")
