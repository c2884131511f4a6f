"""The command on tiny models of the sources' two classes, made here, and on the installed ones."""

import csv
import importlib.util
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from smalltorch import data, measure, weights
from smalltorch.models import Decoder
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


def test_both_bounds_of_each_norm_are_kept(folder, monkeypatch):
    def wide(A, rtol):
        norm = torch.linalg.matrix_norm(A.double(), ord=2)
        return SimpleNamespace(lower=norm / 2, upper=2 * norm)

    monkeypatch.setattr(measure, "spectral_norm", wide)  # its own bounds are too close to be told apart
    _, lower, upper = measure.norms_by_layer(*weights.load(str(folder)), TEXTS)
    assert torch.equal(upper, 4 * lower) and (lower >= 0.5).all()


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
    assert printed.out.splitlines()[-1] == f"written: {tmp_path}/out.csv, {tmp_path}/out.svg"


@pytest.fixture
def command(folder, tmp_path):
    """The command with two files that are there already, in a folder of theirs."""
    texts, out = tmp_path / "texts.txt", tmp_path / "written"
    texts.write_text("one two", encoding="utf-8")
    out.mkdir()
    for name in ("out.csv", "out.svg"):
        (out / name).write_text("old", encoding="utf-8")
    return out, [str(folder), "--texts", str(texts), "--out", str(out / "out")]


def contents(folder):
    return {file.name: file.read_text(encoding="utf-8") for file in folder.iterdir()}


@pytest.mark.parametrize("folder", ["gpt2"], indirect=True)
def test_what_is_replaced_is_said(command, capsys):
    out, arguments = command
    (out / "out.svg").unlink()
    measure.main(arguments)
    assert capsys.readouterr().out.splitlines()[-1] == f"written: {out}/out.csv (replaced), {out}/out.svg"
    assert contents(out).keys() == {"out.csv", "out.svg"} and contents(out)["out.csv"].startswith("layer,head")


@pytest.mark.parametrize("folder", ["gpt2"], indirect=True)
@pytest.mark.parametrize("place", ["write_csv", "write_figure"])
@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (
            OSError(28, "No space left on device"),
            1,
            "--out: expected to write .*, got OSError: .* No space left on device.*",
        ),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_files_stay_where_the_writing_ends_early(command, capsys, monkeypatch, place, error, status, message):
    out, arguments = command
    write = getattr(measure, place)

    def fail(path, *rest):
        write(path, *rest)
        raise error

    monkeypatch.setattr(measure, place, fail)
    with pytest.raises((SystemExit, KeyboardInterrupt)) as end:
        measure.main(arguments)
    last = capsys.readouterr().err.splitlines()[-1]
    assert end.value.args == (status,) and re.fullmatch(f"python -m smalltorch.measure: (error: )?{message}", last)
    assert contents(out) == {"out.csv": "old", "out.svg": "old"}


@pytest.mark.parametrize("folder", ["gpt2"], indirect=True)
def test_an_interruption_while_it_measures(command, capsys, monkeypatch):
    out, arguments = command

    def stopped(*_):
        raise KeyboardInterrupt  # not the signal itself: a shell lets what it starts in the background ignore that

    monkeypatch.setattr(measure, "spectral_norm", stopped)
    with pytest.raises((SystemExit, KeyboardInterrupt)) as end:  # pytest itself would end at the second
        measure.main(arguments)
    assert end.value.args == (130,) and capsys.readouterr().err.endswith(
        "\npython -m smalltorch.measure: interrupted\n"
    )
    assert contents(out) == {"out.csv": "old", "out.svg": "old"}


def test_a_title_is_no_formula(tmp_path):
    norms = torch.ones(2, 1, 1, dtype=torch.float64)
    measure.write_figure(tmp_path / "out.svg", "models$/gpt_$^2", measure.Spectrum(torch.tensor([1]), norms, norms))
    assert "models$/gpt_$^2" in (tmp_path / "out.svg").read_text(encoding="utf-8")


def test_lines_end_where_files_end_them(tmp_path):
    """At LF or CR LF; a byte order mark is no text, a form feed and a line separator are."""
    path = tmp_path / "texts.txt"
    path.write_bytes("\ufeffone\r\n\r\n  \ntwo\u2028three\x0cfour\x85five\rsix\n\ufeffseven".encode())
    six = "two\u2028three\x0cfour\x85five\rsix"
    assert measure._read_texts(path) == [("line 1", "one"), ("line 4", six), ("line 5", "\ufeffseven")]


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
    with pytest.raises(ValueError, match=r"texts: expected at least one, in a list, got \[\]"):
        measure.norms_by_layer(model, tokenizer, [])
    with pytest.raises(ValueError, match="texts: expected at least one, in a list, got 'one two'"):
        measure.norms_by_layer(model, tokenizer, "one two")
    with pytest.raises(ValueError, match="places: expected one for each of 2 texts, got 1"):
        measure.norms_by_layer(model, tokenizer, ["one", "two"], places=["line 1"])
    with pytest.raises(ValueError, match="texts: expected 1 to 6 tokens each, got 0 in text 2"):
        measure.norms_by_layer(model, tokenizer, ["one", ""])
    with pytest.raises(ValueError, match="texts: expected 1 to 6 tokens each, got 7 in text 1"):
        measure.norms_by_layer(model, tokenizer, ["one " * 7])


def test_texts_that_are_too_long_for_the_memory_are_refused_before(folder, monkeypatch):
    model, tokenizer = weights.load(str(folder))
    needed = 2 * 2 * 2 * 6**2 * 4  # twice two layers of two heads on six tokens, in float32
    monkeypatch.setattr(measure, "_memory", lambda: needed)
    measure.norms_by_layer(model, tokenizer, ["one " * 6])
    monkeypatch.setattr(measure, "_memory", lambda: needed - 1)
    with pytest.raises(
        ValueError, match=r"texts: .* fits into 0.0 GB of memory, got 0.0 GB for the 6 tokens in text 2"
    ):
        measure.norms_by_layer(model, tokenizer, ["one", "one " * 6])
    ours = Decoder(vocabulary=9, d=24, layers=2, heads=6, d_ff=4, kv_heads=3)
    assert measure._needed(ours, 40_000) == 2 * 2 * 6 * 40_000**2 * 4
    monkeypatch.undo()
    assert 1e8 < measure._memory() < 1e15


@pytest.mark.parametrize("folder", ["gpt2"], indirect=True)
def test_a_model_that_does_not_read_these_tokens_is_refused(folder):
    model, _ = weights.load(str(folder))
    with pytest.raises(ValueError, match="^model: expected one that reads these tokens, got IndexError: [^\n]*$"):
        measure.attention_of(model, torch.tensor([[4]]))


@pytest.mark.usefixtures("unenforced")
def test_no_mean_of_nothing():
    n, none = torch.tensor([2]), torch.ones(1, 1, 0)
    with pytest.raises(ValueError, match=r"lower: expected at least one layer, text and head, got shape \(1, 1, 0\)"):
        measure.table(measure.Spectrum(n, none, none))
    with pytest.raises(ValueError, match=r"lower: expected finite entries, got nan at \(0, 0, 0\)"):
        measure.table(measure.Spectrum(n, none.new_full((1, 1, 1), torch.nan), torch.ones(1, 1, 1)))
    with pytest.raises(ValueError, match=r"upper: expected shape \(layer=1, text=1, head=2\), got \(1, 1, 1\)"):
        measure.write_csv(Path("never"), measure.Spectrum(n, torch.ones(1, 1, 2), torch.ones(1, 1, 1)))
    for numbers in (torch.tensor([], dtype=torch.long), torch.tensor([3, 0])):
        with pytest.raises(ValueError, match="n: expected at least one number of tokens, each at least 1, got"):
            measure.baselines(numbers)
    assert list(measure.bar([])) == []


def test_errors_name_the_argument(folder, tmp_path, capsys):
    texts = tmp_path / "texts.txt"
    texts.write_text("one two", encoding="utf-8")
    (blank := tmp_path / "blank.txt").write_text("\n \n", encoding="utf-8")
    (other := tmp_path / "other.txt").write_text("one", encoding="utf-16")
    (long := tmp_path / "long.txt").write_text("\none\n\n" + "one " * 7, encoding="utf-8")
    (empty := tmp_path / "empty").mkdir()
    (tmp_path / "taken.svg").mkdir()
    for arguments, message in [
        ((str(empty), "--texts", str(texts)), "MODEL: expected smollm2 or minilm, a folder"),
        ((str(folder), "--texts", str(tmp_path / "none")), "--texts: expected a text file"),
        ((str(folder), "--texts", str(texts), "--out", str(tmp_path / "none" / "out")), "--out: expected a name"),
        ((str(folder), "--texts", str(texts), "--out", f"{tmp_path}/"), "--out: expected a name"),
        ((str(folder), "--texts", str(texts), "--out", str(tmp_path / "taken")), "--out: expected a name"),
        ((str(folder), "--texts", str(other)), "--texts: expected a text file in UTF-8, got"),
        ((str(folder), "--texts", str(long)), "--texts: expected 1 to 6 tokens each, got 7 in line 4\n"),
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


def test_each_cell_of_the_table_is_of_its_layer_head_and_text(tmp_path):
    bounds = torch.arange(2 * 3 * 4, dtype=torch.float64).view(2, 3, 4) + 1  # layer, text, head
    measure.write_csv(tmp_path / "t.csv", measure.Spectrum(torch.tensor([5, 6, 7]), bounds, 2 * bounds))
    rows = [line.split(",") for line in (tmp_path / "t.csv").read_text(encoding="utf-8").splitlines()[1:]]
    assert len(rows) == 24
    for layer, head, text, tokens, lower, upper in (tuple(map(float, row)) for row in rows):
        assert lower == float(bounds[int(layer) - 1, int(text) - 1, int(head) - 1]) == upper / 2
        assert tokens == text + 4
