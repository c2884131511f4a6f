"""The command on tiny models of the sources' two classes, made here, and on the installed ones."""

import csv
import importlib.util
import re
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import families
import pytest
import torch
from families import save

from smalltorch import data, measure, weights
from smalltorch.figures.plot import figure
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
    n, lower, upper, layers, rows = measure.norms_by_layer(model, tokenizer, TEXTS)
    assert layers == [1, 2] and rows.eq(1).all()
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
    _, lower, upper, *_ = measure.norms_by_layer(*weights.load(str(folder)), TEXTS)
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
    n, lower, upper, *_ = measure.norms_by_layer(model, tokenizer, texts)
    assert lower.shape == (6, 3, 12) and (upper <= (1 + 1e-4) * lower).all()
    assert (upper >= 1).all() and (lower <= n[:, None].double().sqrt() * (1 + 1e-6)).all()
    alone = measure.norms_by_layer(model, tokenizer, texts[1:2])
    torch.testing.assert_close(alone.lower[:, 0], lower[:, 1], rtol=2e-4, atol=0)
    with pytest.raises(ValueError, match="texts: expected 1 to 512 tokens each"):
        measure.norms_by_layer(model, tokenizer, ["word " * 600])


def of_family(kind, tmp_path):
    """A tiny random model of this type, loaded, and its folder."""
    save(families.build(kind), tmp_path / kind)
    return *weights.load(str(tmp_path / kind)), str(tmp_path / kind)


LETTERS = "a b c d e f g h a"


@pytest.fixture
def measured(tmp_path, capsys):
    """What the command prints for such a model, and the rows of its table and of its CSV file."""

    def run(kind, text=LETTERS):
        (tmp_path / "texts.txt").write_text(text, encoding="utf-8")
        *_, folder = of_family(kind, tmp_path)
        try:
            measure.main([folder, "--texts", str(tmp_path / "texts.txt"), "--out", str(tmp_path / "out")])
        except SystemExit as error:
            assert error.code == 2
            said = capsys.readouterr()
            assert said.out == "" and not (tmp_path / "out.csv").exists()
            return said.err.splitlines()[-1]
        out = capsys.readouterr().out
        printed = [line.split() for line in out.splitlines() if line[:5].strip().isdigit() and line[5] == " "]
        return out, printed, list(csv.DictReader((tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()))

    return run


def test_layers_keep_the_numbers_that_the_model_gives_them(measured, tmp_path):
    _, printed, rows = measured("jamba")  # its first layer has a state and no attention
    assert {row["layer"] for row in rows} == {"2"} and [row[0] for row in printed] == ["2"]
    spectrum = measure.norms_by_layer(*weights.load(str(tmp_path / "jamba")), [LETTERS])
    _, ax = figure()
    measure.draw(ax, spectrum)
    assert ax.lines[0].get_xdata().tolist() == [2]
    with pytest.raises(ValueError, match=r"layers: expected shape \(layer=1,?\), got \(2,\)"):
        measure.table(spectrum._replace(layers=[1, 2]))


def test_rows_that_do_not_sum_to_1_have_baselines_of_their_own(measured, tmp_path):
    out, printed, _ = measured("gpt_oss")  # a number beside the logits takes part of each row's weight
    least, uniform, greatest = map(float, re.findall(r"(?:least possible|causal|greatest possible) ([\d.]+)", out))
    assert "rows of A do not sum to 1" in out and 0 < least < 1 and greatest < 3
    assert all(least <= float(row[2]) <= float(row[3]) <= greatest for row in printed)
    model, tokenizer = weights.load(str(tmp_path / "gpt_oss"))
    A = measure.attention_of(model, torch.tensor([tokenizer(LETTERS)["input_ids"]])).double()
    spectrum = measure.norms_by_layer(model, tokenizer, [LETTERS])
    torch.testing.assert_close(spectrum.rows, A.sum(-1).norm(dim=-1) / 3)
    assert measure.baselines(spectrum.n, spectrum.rows)[::2] == (spectrum.rows.min(), 3 * spectrum.rows.max())
    assert (spectrum.rows <= spectrum.upper).all() and (spectrum.lower <= 3 * spectrum.rows).all()


def test_baselines_for_rows_by_hand():
    """Of two heads and two texts: means over the texts, then the least of the one and the greatest of the other."""
    rows = torch.tensor([[[0.5, 0.25], [1.0, 0.75]]], dtype=torch.float64)
    one, _, root_n = measure.baselines(torch.tensor([1, 4]), rows)
    assert (one, root_n) == (0.5, 1.25)


@pytest.mark.parametrize(("dtype", "sums"), [(torch.float32, 1 + 2e-6), (torch.bfloat16, 1 + 2**-8)])
def test_rounding_is_no_other_baseline(dtype, sums):
    A = torch.eye(4).expand(2, 1, 3, 4, 4).to(dtype)
    assert measure._rows(A * sums).eq(1).all() and measure._rows(A * 0.9).lt(0.92).all()


def test_one_row_or_one_head_that_does_not_sum_to_1_is_enough(capsys):
    A = torch.eye(2).double() * torch.tensor([[0.5], [1.5]])  # on average they do
    assert measure._rows(A) == pytest.approx(1.25**0.5)
    norms = torch.ones(1, 1, 2).double()
    measure.print_table(measure.Spectrum(torch.tensor([2]), norms, norms, rows=torch.tensor([[[1.0, 0.5]]])))
    assert "rows of A do not sum to 1 (root mean square of a head's: 0.500 to 1.000)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (
            "longformer",
            "expected attention of 8 tokens to 8 tokens, got shape (4, 8, 5) of a LongformerModel, which cuts",
        ),
        ("funnel", "expected attention of one shape in every layer, got (4, 8, 8) and (4, 4, 8) of a FunnelModel"),
        ("t5", "expected an encoder or a decoder, got a T5Model, which has both, "),
        ("mamba", "expected attention weights, got none; a MambaModel does not have or show them; try another family"),
        ("squeezebert", "expected attention of at least 0, got -"),
    ],
)
@pytest.mark.parametrize("text", [LETTERS, "a b c d e"])  # the second is as long as Longformer's window
def test_what_is_no_matrix_of_all_tokens_is_refused_before_a_line_is_printed(measured, kind, said, text):
    assert measured(kind, text).startswith(f"python -m smalltorch.measure: error: MODEL: {said}")


class Negative(torch.nn.Module):
    """Of its layers it gives one, whose attention to ten tokens or more is negative somewhere."""

    def __init__(self, layers):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))
        self.config = SimpleNamespace(num_hidden_layers=layers, num_attention_heads=1, max_position_embeddings=16)

    def forward(self, input_ids, output_attentions):
        A = torch.eye(input_ids.shape[1]).expand(1, 1, -1, -1)
        return SimpleNamespace(attentions=[A if len(A[0, 0]) < 10 else A - 0.5])


def test_what_is_wrong_for_long_texts_only_is_refused_there(tmp_path):
    _, tokenizer, _ = of_family("gpt2", tmp_path)
    with pytest.raises(ValueError, match=r"^model: expected attention of at least 0, got -0.5 of a Negative$"):
        measure.norms_by_layer(Negative(1), tokenizer, ["a b c d e f g h a b"])


def test_a_model_that_does_not_say_of_which_layers_it_gives_attention_is_refused(tmp_path):
    _, tokenizer, _ = of_family("gpt2", tmp_path)
    with pytest.raises(ValueError, match=r"^model: expected attention of 2 layers, got that of 1 of a Negative, which"):
        measure.norms_by_layer(Negative(2), tokenizer, ["a b c"])


@pytest.mark.usefixtures("unenforced")
def test_attention_that_is_not_n_by_n_comes_with_a_warning(tmp_path):
    model, tokenizer, _ = of_family("longformer", tmp_path)
    with pytest.warns(UserWarning, match="expected attention of 3 tokens to 3 tokens, got shape"):
        A = measure.attention_of(model, torch.tensor([[2, 3, 4]]))
    assert A.shape == (2, 1, 4, 3, 5)


def test_positions_begin_behind_the_padding(measured, tmp_path):
    model, tokenizer, _ = of_family("roberta", tmp_path)  # 64 positions, of which padding has the second
    measure.norms_by_layer(model, tokenizer, ["a " * 62])
    assert "--texts: expected 1 to 62 tokens each, got 63 in line 1" in measured("roberta", "a " * 63)


@pytest.mark.parametrize("title", ["模型 mit Leerzeichen", "byte \udcff", "line\nbell\x07"])
def test_a_title_in_any_script_is_written_in_silence(tmp_path, recwarn, title):
    norms = torch.ones(1, 1, 1, dtype=torch.float64)
    measure.write_figure(tmp_path / "out.svg", title, measure.Spectrum(torch.tensor([1]), norms, norms))
    svg = (tmp_path / "out.svg").read_text(encoding="utf-8")
    ElementTree.fromstring(svg)
    assert not recwarn.list and measure._printable(title) in svg


def test_each_cell_of_the_table_is_of_its_layer_head_and_text(tmp_path):
    bounds = torch.arange(2 * 3 * 4, dtype=torch.float64).view(2, 3, 4) + 1  # layer, text, head
    measure.write_csv(tmp_path / "t.csv", measure.Spectrum(torch.tensor([5, 6, 7]), bounds, 2 * bounds))
    rows = [line.split(",") for line in (tmp_path / "t.csv").read_text(encoding="utf-8").splitlines()[1:]]
    assert len(rows) == 24
    for layer, head, text, tokens, lower, upper in (tuple(map(float, row)) for row in rows):
        assert lower == float(bounds[int(layer) - 1, int(text) - 1, int(head) - 1]) == upper / 2
        assert tokens == text + 4
