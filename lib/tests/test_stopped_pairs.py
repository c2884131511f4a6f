"""The long run on frequency pairs: what is changed, for how long, and the stored table."""

import pytest
import torch

from smalltorch import data
from smalltorch.experiments import stopped_pairs
from smalltorch.experiments.stopped_pairs import TEXTS, WAYS, _changed
from smalltorch.experiments.table import stored
from smalltorch.models import Decoder

IDS = torch.arange(40)[None] * 7 % 128


@pytest.fixture
def tiny(monkeypatch):
    """A model with heads of 64 numbers in place of SmolLM2, which reads characters."""
    torch.manual_seed(0)
    model = Decoder(vocabulary=128, d=128, layers=2, heads=2, d_ff=16, kv_heads=1, rope_base=1e5).double()
    monkeypatch.setattr(stopped_pairs, "load", lambda name: (model, lambda text: {"input_ids": list(map(ord, text))}))
    monkeypatch.setattr(data, "text", lambda name: f"The {name}: which of the words may be left out, and where. " * 40)
    stopped_pairs._model.cache_clear()
    yield model
    stopped_pairs._model.cache_clear()


@torch.no_grad()
def test_a_model_is_changed_for_a_while(tiny):
    before, theta = tiny(IDS), tiny.blocks[0].attention.theta
    for name, way in WAYS.items():
        with _changed(tiny, way):
            for block in tiny.blocks:
                ratio, pairs = block.attention.theta / theta, torch.zeros(32, dtype=torch.bool)
                pairs[list(way.pairs)] = True
                assert (ratio[~pairs] == 1).all() and ratio[pairs].sub(way.speed).abs().lt(1e-12).all()
                gone = (block.attention.W_Q.view(128, 2, 2, 32) == 0).all((0, 1, 2))
                assert gone.equal(pairs & way.away)
            assert tiny(IDS).equal(before) == (name == "as it is")
        assert tiny(IDS).equal(before)


@torch.no_grad()
def test_each_text_and_bin_has_its_own_loss(tiny):
    ids = torch.tensor([ord(letter) for letter in data.text("longer")])
    for text, reads in (("longer", [ids[:512]]), ("passages", [ids[110:174], ids[330:394]])):
        lines = list(stopped_pairs.rows("as it is", text, count=len(reads)))
        for number, read in enumerate(reads):
            losses = -tiny(read[None]).log_softmax(-1)[0, :-1].gather(1, read[1:, None])[:, 0]
            found = {line[3]: float(line[4]) for line in lines if line[2] == number}
            assert list(found) == list(range(0, len(read) - 1, 256))
            for start, value in found.items():
                assert value == pytest.approx(float(losses[start : start + 256].mean()), abs=1e-5)


def test_the_stored_table_is_whole():
    _, lines = stored("stopped_pairs")
    assert tuple(lines[0]) == stopped_pairs.COLUMNS
    found = {tuple(line[key] for key in stopped_pairs.KEYS) for line in lines}
    passages = {
        (way, "passages", str(k), "0") for way in WAYS if not way.startswith("20") for k in range(TEXTS["passages"][0])
    }
    halves = {
        (way, text, "0", start)
        for way in stopped_pairs.OF_TEXTS
        for text in ("essay", "longer")
        for start in ("0", "256")
    }
    assert found == passages | halves and len(found) == len(lines)
    assert all(0.5 < float(line["loss"]) < 15 for line in lines)


def test_bad_arguments_are_named():
    for arguments, name in (
        (("slow", "essay", 1), "way"),
        (("as it is", "poem", 1), "text"),
        (("as it is", "essay", 2), "count"),
    ):
        with pytest.raises(ValueError, match=name):
            list(stopped_pairs.rows(*arguments[:2], count=arguments[2]))
