"""Each family of models in `transformers` is measured as it attends, refused for a reason, or named as untried."""

import re

import pytest
import torch
from families import FAMILIES, auto, build, save
from torch.overrides import TorchFunctionMode

from smalltorch import hub, measure

transformers = pytest.importorskip("transformers")
transformers.utils.logging.disable_progress_bar()
transformers.utils.logging.set_verbosity_error()
pytestmark = pytest.mark.processes  # not of processes, but as long: a minute

MEASURED = dict.fromkeys(FAMILIES["measured"]) | FAMILIES["hybrid"]
REFUSED = {kind: reason for reason, kinds in FAMILIES["refused"].items() for kind in kinds}
TEXTS = ["a b c d e f g h a", "b a d"]


class Softmaxes(TorchFunctionMode):
    """What every softmax gives while this is entered."""

    def __init__(self):
        super().__init__()
        self.made = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        if "softmax" in getattr(function, "__name__", ""):
            self.made.append(out)
        return out


def test_every_type_of_model_is_tried_or_named_as_untried():
    """A new version of `transformers` has others: try them (families.toml)."""
    named = [*MEASURED, *REFUSED, *FAMILIES["untried"]]
    assert len(named) == len(set(named))
    assert set(named) == set(transformers.models.auto.configuration_auto.CONFIG_MAPPING_NAMES)


@torch.no_grad()
@pytest.mark.parametrize("kind", MEASURED)
def test_the_norms_are_those_of_the_softmax_of_the_whole_model(kind, tmp_path):
    whole = build(kind)
    model, tokenizer = hub.load(str(save(whole, tmp_path)), torch.float32)
    spectrum = measure.norms_by_layer(model, tokenizer, TEXTS)
    assert list(spectrum.layers) == (MEASURED[kind] or list(range(1, 1 + len(spectrum.lower))))
    for i, text in enumerate(TEXTS):
        tokens = torch.tensor([tokenizer(text)["input_ids"]])
        n = tokens.shape[-1]
        with Softmaxes() as softmaxes:
            A = [layer for layer in whole(input_ids=tokens, output_attentions=True).attentions if layer is not None]
        made = [X[..., -n:, columns] for X in softmaxes.made for columns in (slice(n), slice(-n, None))]
        for number, layer in enumerate(A):
            assert layer.shape[-2:] == (n, n)
            alike = (X.reshape(layer.shape) for X in made if X.numel() == layer.numel())
            assert any(torch.allclose(X, layer, atol=1e-6) for X in alike)
            exact, r = torch.linalg.matrix_norm(layer[0].double(), ord=2), layer[0].double().sum(-1)
            assert (spectrum.lower[number, i] <= exact * (1 + 1e-4)).all()
            assert (exact <= spectrum.upper[number, i] * (1 + 1e-4)).all()
            torch.testing.assert_close(spectrum.rows[number, i], r.norm(dim=-1) / n**0.5, atol=1e-5, rtol=0)
        assert len(A) == len(spectrum.lower)


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_measured_is_refused_with_the_reason(kind, tmp_path):
    with pytest.raises(ValueError, match=rf"^(name|model): expected [^\n]*{REFUSED[kind]}[^\n]*$"):
        measure.norms_by_layer(*hub.load(str(save(build(kind), tmp_path)), torch.float32), TEXTS)


ALONE = {
    **{kind: auto("MODEL_FOR_TEXT_ENCODING")[kind] for kind in ("t5", "mt5", "umt5")},
    **{kind: auto("MODEL_FOR_CAUSAL_LM")[kind] for kind in ("bart", "marian", "mbart", "pegasus", "trocr")},
}


@torch.no_grad()
@pytest.mark.parametrize("kind", ALONE)
def test_half_of_an_encoder_and_decoder_is_measured_where_it_was_saved_alone(kind, tmp_path):
    half = build(kind, ALONE[kind])
    model, tokenizer = hub.load(str(save(half, tmp_path)), torch.float32)
    tokens = torch.tensor([tokenizer(TEXTS[0])["input_ids"]])
    A = torch.stack(half(input_ids=tokens, output_attentions=True).attentions)
    torch.testing.assert_close(measure.attention_of(model, tokens), A)
    assert measure.norms_by_layer(model, tokenizer, TEXTS).layers == [1, 2]


def head_of(kind, folder):
    """The classes with a head for a type of model that share its own class, saved one by one."""
    for task in ("CAUSAL_LM", "MASKED_LM", "SEQUENCE_CLASSIFICATION", "TOKEN_CLASSIFICATION", "QUESTION_ANSWERING"):
        if name := auto(f"MODEL_FOR_{task}").get(kind):
            yield save(build(kind, name), folder / task)


@pytest.mark.parametrize(
    "kind", ["bert", "deberta-v2", "distilbert", "electra", "gpt_neox", "gpt2", "llama", "mpnet", "roberta"]
)
def test_any_head_is_left_out(kind, tmp_path):
    types = {type(hub.load(str(folder), torch.float32)[0]) for folder in head_of(kind, tmp_path)}
    assert len(types) == 1 and re.search("Model$", types.pop().__name__)
