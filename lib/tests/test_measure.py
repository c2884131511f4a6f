"""The command on tiny models of the sources' two classes, made here, and on the installed ones."""

import csv
import importlib.util

import pytest
import torch

from smalltorch import data, measure, weights
from smalltorch.spectral import spectral_norm, uniform_causal

transformers = pytest.importorskip("transformers")
transformers.utils.logging.disable_progress_bar()
transformers.utils.logging.set_verbosity_error()

TEXTS = ["one two three", "three one one two two", "two", "one one one"]
CLASSES = {
    "gpt2": (transformers.GPT2Config, transformers.GPT2Model),
    "openai-gpt": (transformers.OpenAIGPTConfig, transformers.OpenAIGPTModel),
}


@pytest.fixture(params=CLASSES)
def folder(request, tmp_path):
    """A random model of two layers and two heads, saved with a tokenizer of three words."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    config, build = CLASSES[request.param]
    sizes = dict(n_layer=2, n_head=2, n_embd=8, n_positions=6, vocab_size=4, bos_token_id=0, eos_token_id=0)
    build(config(**sizes, initializer_range=1.0)).save_pretrained(tmp_path)
    words = Tokenizer(models.WordLevel({"?": 0, "one": 1, "two": 2, "three": 3}, unk_token="?"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(tokenizer_object=words, unk_token="?").save_pretrained(tmp_path)
    return tmp_path


def test_a_saved_model_is_measured_text_by_text(folder):
    model, tokenizer = weights.load(str(folder))
    n, lower, upper = measure.norms_by_layer(model, tokenizer, TEXTS)
    assert n.tolist() == [3, 5, 1, 3] and lower.shape == upper.shape == (2, 4, 2)
    for i, text in enumerate(TEXTS):
        A = model(**tokenizer(text, return_tensors="pt"), output_attentions=True).attentions
        exact = torch.linalg.matrix_norm(torch.stack(A)[:, 0].double(), ord=2)
        # Up to the rounding of the model itself: texts of one length share a batch, and float32 sums in another order.
        assert (lower[:, i] <= exact * (1 + 1e-5)).all() and (exact <= upper[:, i] * (1 + 1e-5)).all()
    assert (lower[:, 2] > 1 - 1e-6).all() and (upper[:, 2] < 1 + 1e-6).all() and (lower[:, [0, 1, 3]] > 1.01).all()


def test_the_command_writes_table_figure_and_every_norm(folder, tmp_path, capsys):
    texts = tmp_path / "texts.txt"
    texts.write_text("\n\n".join(TEXTS) + "\n", encoding="utf-8")
    measure.main([str(folder), "--texts", str(texts), "--out", str(tmp_path / "out")])
    printed = capsys.readouterr()
    assert "4 texts of 1 to 5 tokens" in printed.out and "3/3" in printed.err

    rows = list(csv.DictReader((tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()))
    assert len(rows) == 2 * 2 * 4
    last = [float(row["lower"]) for row in rows if row["layer"] == "2"]
    shown = [float(number) for number in printed.out.splitlines()[-2].split()]
    assert shown[0] == 2 and shown[1] == pytest.approx(sum(last) / len(last), abs=6e-4)
    assert all(float(row["lower"]) <= float(row["upper"]) <= 1.0002 * float(row["lower"]) for row in rows)
    assert {(row["text"], row["tokens"]) for row in rows} == {("1", "3"), ("2", "5"), ("3", "1"), ("4", "3")}
    assert (tmp_path / "out.svg").read_text(encoding="utf-8").count("<svg") == 1


def test_baselines_and_table_by_hand():
    n = torch.tensor([1, 4])
    one, uniform, root_n = measure.baselines(n)
    assert (one, root_n) == (1, 1.5) and uniform == pytest.approx((1 + spectral_norm(uniform_causal(4)).lower) / 2)
    values = torch.tensor([[[1.0, 3.0], [2.0, 6.0]]], dtype=torch.float64)
    assert measure.table(measure.Spectrum(n, values, values)) == [(1, 3.0, 1.5, 4.5)]


@pytest.mark.parametrize("folder", ["gpt2"], indirect=True)  # the other class knows eager attention only
def test_a_model_that_hides_its_weights_is_refused(folder):
    model = transformers.AutoModel.from_pretrained(folder)
    with pytest.raises(ValueError, match="model: expected attention weights, got none"):
        measure.attention_of(model, torch.tensor([[1, 2]]))


def test_texts_are_checked(folder):
    model, tokenizer = weights.load(str(folder))
    with pytest.raises(ValueError, match="texts: expected at least one, got none"):
        measure.norms_by_layer(model, tokenizer, [])
    with pytest.raises(ValueError, match="texts: expected 1 to 6 tokens each, got 0 in text 2"):
        measure.norms_by_layer(model, tokenizer, ["one", ""])
    with pytest.raises(ValueError, match="texts: expected 1 to 6 tokens each, got 7 in text 1"):
        measure.norms_by_layer(model, tokenizer, ["one " * 7])


def test_errors_name_the_argument(folder, tmp_path, capsys):
    texts = tmp_path / "texts.txt"
    texts.write_text("one two", encoding="utf-8")
    (blank := tmp_path / "blank.txt").write_text("\n \n", encoding="utf-8")
    (empty := tmp_path / "empty").mkdir()
    for arguments, message in [
        ((str(empty), "--texts", str(texts)), "MODEL: expected smollm2 or minilm, a folder"),
        ((str(folder), "--texts", str(tmp_path / "none")), "--texts: expected a text file"),
        ((str(folder), "--texts", str(texts), "--out", str(tmp_path / "none" / "out")), "--out: expected a name"),
        ((str(folder), "--texts", str(texts), "--out", f"{tmp_path}/"), "--out: expected a name"),
        ((str(folder), "--texts", str(blank)), "--texts: expected a line of text at least, got none"),
    ]:
        with pytest.raises(SystemExit):
            measure.main(arguments)
        assert message in capsys.readouterr().err


def test_installed_model():
    if not importlib.util.find_spec(weights.MINILM[0]):
        pytest.skip(f"the trained weights are not installed: {weights.INSTALL_WEIGHTS}")
    model, tokenizer = weights.load("minilm")
    texts = data.text("longer").splitlines()[:3]
    n, lower, upper = measure.norms_by_layer(model, tokenizer, texts)
    assert lower.shape == (6, 3, 12) and (upper <= (1 + 1e-4) * lower).all()
    assert (upper >= 1).all() and (lower <= n[:, None].double().sqrt() * (1 + 1e-6)).all()
    alone = measure.norms_by_layer(model, tokenizer, texts[1:2])
    torch.testing.assert_close(alone.lower[:, 0], lower[:, 1], rtol=2e-4, atol=0)
    with pytest.raises(ValueError, match="texts: expected 1 to 512 tokens each"):
        measure.norms_by_layer(model, tokenizer, ["word " * 600])
