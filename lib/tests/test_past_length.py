"""The long run past SmolLM2's trained length: it reads as the model does, and its stored table has whole cases."""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F

from smalltorch import data
from smalltorch.experiments import past_length
from smalltorch.experiments.past_length import TEXTS, Sight, _losses, _remedied, _states, _tokens_in
from smalltorch.experiments.runner import fingerprints
from smalltorch.experiments.table import stored
from smalltorch.models import Decoder
from smalltorch.position import frequencies
from smalltorch.weights import load

REMEDIES = ("none", "window", "window+first", "shifted", "fresh", "yarn", "base", "interpolation")


@pytest.fixture
def tiny(monkeypatch):
    """A model with heads of 64 numbers in place of SmolLM2, which reads characters."""
    model = Decoder(vocabulary=128, d=128, layers=3, heads=2, d_ff=16, kv_heads=1, rope_base=past_length.BASE).double()
    with torch.no_grad():
        model.E.mul_(0.3)
    monkeypatch.setattr(past_length, "load", lambda name: (model, lambda text: {"input_ids": list(map(ord, text))}))
    monkeypatch.setattr(data, "text", lambda name: "A theorem says which of the words may be left out, and where. " * 3)
    return model


def seen_by(n: int, sight: Sight):
    i, j = torch.arange(n)[:, None], torch.arange(n)
    return (i - j < sight.window) | (j < sight.first)


def test_what_is_read_in_parts_is_what_the_model_reads(tiny, monkeypatch):
    """With chunks that do not fit, and a window that is wider than the part that is read at once."""
    monkeypatch.setattr(past_length, "CHUNK", 4)
    tokens, split = torch.randint(128, (29,)), 11
    sights = [Sight(29, 0), Sight(split, 0), Sight(split, 1), Sight(13, 2)]
    for reading in ("trained", "yarn", "interpolation"):
        with torch.no_grad():
            found = _states(_remedied(tiny, reading), tokens, split, sights)
            for sight, X in zip(sights, found, strict=True):
                whole = tiny.states(tokens[None], mask=seen_by(29, sight)[None, None])[0]
                torch.testing.assert_close(X, whole)
            assert not torch.allclose(found[1], found[2]) and torch.allclose(found[0][:split], found[1][:split])


def test_bins_are_means_of_the_loss():
    model = Decoder(vocabulary=7, d=4, layers=1, heads=1, d_ff=4).double()
    X, targets = torch.randn(10, 4).double(), torch.randint(7, (10,))
    each = F.cross_entropy(X @ model.E.T, targets, reduction="none")
    assert _losses(model, X, targets, 5) == pytest.approx([each[:5].mean().item(), each[5:].mean().item()])


def test_each_line_has_the_loss_of_its_own_tokens(tiny):
    """The controls read the same tokens as the others, from position 0 on."""
    tokens = torch.tensor(list(map(ord, data.text("essay"))))[:49]
    for reading, start in (("trained", 0), ("shifted", 16), ("fresh", 32)):
        made = [row for row in past_length.rows("essay", 0, reading, 48) if row[2] in ("none", "shifted", "fresh")]
        with torch.no_grad():
            each = F.cross_entropy(tiny(tokens[None, start:-1])[0], tokens[start + 1 :], reduction="none")
        assert [row[3] for row in made] == list(range(start, 48, 2))
        assert [float(row[4]) for row in made] == pytest.approx(each.unflatten(0, (-1, 2)).mean(1).tolist(), abs=1e-5)


def test_windows_follow_each_other(tiny):
    def tokenizer(text):
        return {"input_ids": list(map(ord, text))}

    first, second = (_tokens_in("essay", window, 24, "", tokenizer) for window in (0, 1))
    assert torch.cat([first, second]).tolist() == list(map(ord, data.text("essay")))[:50]


def test_the_remedies_are_for_one_and_a_half_times_the_trained_length(tiny):
    own = frequencies(64, past_length.BASE)
    slowed = {}
    for reading, factor in (("trained", 1), ("interpolation", 1), ("base", 1), ("yarn", 0.1 * math.log(1.5) + 1)):
        for block in _remedied(tiny, reading).blocks:
            slowed[reading] = own / block.attention.theta
            assert block.attention.attention_factor == pytest.approx(factor)
    assert past_length.FACTOR == 1.5 and torch.equal(slowed["trained"], torch.ones(32).double())
    torch.testing.assert_close(slowed["interpolation"], torch.full((32,), 1.5).double())
    for reading in ("base", "yarn"):
        assert slowed[reading][0].item() == pytest.approx(1) and slowed[reading][-1].item() == pytest.approx(1.5)
    ratios = slowed["base"][1:] / slowed["base"][:-1]
    torch.testing.assert_close(ratios, ratios[:1].expand(31))


def test_the_constants_are_those_of_the_model():
    model = load("smollm2")[0]
    for block in model.blocks:
        torch.testing.assert_close(block.attention.theta, frequencies(past_length.D_H, past_length.BASE))
        assert block.attention.attention_factor == 1 and block.attention.score_bias is None
    assert model.W_U is None


def test_a_folder_without_the_texts_is_named(tmp_path):
    (name, (_, digest)), *_ = TEXTS.items()
    (tmp_path / f"{name}.txt").write_text("Another text.", encoding="utf-8")
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(ValueError, match=f"texts: expected a folder with {name}.txt, of SHA-256 {digest}, got"):
            list(past_length.rows(name, 0, "trained", 24, texts=str(folder)))


def test_bad_arguments_are_named(tiny):
    for arguments, words in (
        (("essay", 0, "trained", 25), "tokens: expected a multiple of 24, got 25"),
        (("essay", 9, "trained", 24), "window, tokens: expected a window within the text, got 9 and 24"),
        (("novel", 0, "trained", 24), "text: expected"),
        (("essay", 0, "alibi", 24), "reading: expected"),
    ):
        with pytest.raises(ValueError, match=words):
            list(past_length.rows(*arguments))


def test_what_confirms_the_table_depends_on_the_texts_and_the_table_does_not(tmp_path):
    def texts_of(cases):
        return {case["text"] for case in cases}

    without = past_length.experiment(["--texts", str(tmp_path)])
    assert texts_of(without.again) == {"essay"} and texts_of(without.cases) == {"essay", *TEXTS}
    for text in TEXTS:
        (tmp_path / f"{text}.txt").touch()
    there = past_length.experiment(["--texts", str(tmp_path)])
    assert there.again == there.cases and fingerprints(there) == fingerprints(without)
    assert there.given == {"texts": str(tmp_path)} and str(tmp_path) not in str(there.cases)


def test_the_stored_table_has_all_its_cases():
    head, lines = stored("past_length")
    made = past_length.experiment([])
    assert head[1] == f"seeds: {made.seeds}" and all(what in head[1] and of in head[1] for what, of in TEXTS.values())
    assert tuple(lines[0]) == past_length.COLUMNS
    keys = [tuple(line[key] for key in past_length.KEYS) for line in lines]
    windows = [("essay", 0, past_length.OWN), *((t, w, past_length.TOKENS) for t in TEXTS for w in (0, 1))]
    begins = {"shifted": 8, "fresh": 16}  # bins
    assert len(keys) == len(set(keys))
    assert set(keys) == {
        (text, str(window), remedy, str(k * tokens // 24))
        for (text, window, tokens), remedy in itertools.product(windows, REMEDIES)
        for k in range(begins.get(remedy, 0), 24)
    }
    assert all(0.5 < float(line["loss"]) < 15 for line in lines)


def test_a_window_changes_nothing_before_it_is_full():
    _, lines = stored("past_length")
    found = {tuple(line[key] for key in past_length.KEYS): line["loss"] for line in lines}
    for (text, window, remedy, start), loss in found.items():
        split = (past_length.OWN if text == "essay" else past_length.TOKENS) * 2 // 3
        if remedy.startswith("window"):
            assert (loss == found[text, window, "none", start]) == (int(start) < split)


def test_a_case_of_the_essay_comes_out_again():
    _, lines = stored("past_length")
    old = [line for line in lines if line["text"] == "essay" and line["remedy"] == "fresh"]
    for made, line in zip(past_length.rows("essay", 0, "fresh", past_length.OWN), old, strict=True):
        assert [str(value) for value in made[:4]] == list(line.values())[:4]
        assert float(made[4]) == pytest.approx(float(line["loss"]), abs=1e-3)
