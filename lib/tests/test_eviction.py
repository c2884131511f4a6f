"""The long run on evicted entries: what each way leaves, that a model goes on from it, and the stored table."""

import pytest
import torch

from smalltorch import data
from smalltorch.experiments import eviction
from smalltorch.experiments.eviction import LOW_RANK, POLICIES, READ, ROUNDED, _kept, _left
from smalltorch.experiments.table import stored
from smalltorch.models import Decoder

SCORES = torch.rand(3, 2, 2, READ, generator=torch.Generator().manual_seed(0))  # layer passage head entry


@pytest.fixture
def tiny(monkeypatch):
    """A model in place of SmolLM2, which reads characters."""
    model = Decoder(vocabulary=128, d=48, layers=3, heads=4, d_ff=16, kv_heads=2).double()
    with torch.no_grad():
        model.E.mul_(0.3)
    monkeypatch.setattr(eviction, "load", lambda name: (model, lambda text: {"input_ids": list(map(ord, text))}))
    monkeypatch.setattr(data, "text", lambda name: "A theorem says which of the words may be left out, and where. " * 9)
    eviction._read.cache_clear()
    yield model
    eviction._read.cache_clear()


@pytest.mark.parametrize("keys", eviction.BUDGETS)
@pytest.mark.parametrize("way", [policy for policy in POLICIES if policy != "merged"])
def test_each_head_keeps_its_budget_and_the_latest(way, keys):
    keep = _kept(way, keys, SCORES)
    assert (keep.sum(-1) == keys).all() and keep[..., -(keys // 2) :].all()
    assert bool(keep[..., : eviction.SINKS].all()) == (way == "sinks and recent")


def test_heavy_hitters_have_the_largest_scores():
    keep = _kept("heavy hitters", 48, SCORES)[..., :72]
    assert (SCORES[..., :72].masked_fill(~keep, 2).amin(-1) >= SCORES[..., :72].masked_fill(keep, -1).amax(-1)).all()


def test_one_budget_goes_to_the_largest_scores_of_a_passage():
    keep = _kept("one budget", 48, SCORES)
    assert keep.sum((0, 2, 3)).tolist() == [48 * 3 * 2] * 2 and keep[..., 72:].all()
    assert len(keep.sum(-1).unique()) > 1
    for passage in range(2):
        early, own = keep[:, passage, :, :72], SCORES[:, passage, :, :72]
        assert own[early].min() >= own[~early].max()


def test_lots_do_not_depend_on_how_many_passages_are_read():
    assert _kept("by lot", 48, SCORES)[:, :1].equal(_kept("by lot", 48, SCORES[:, :1]))


def test_other_ways_change_keys_or_values_and_evict_nothing():
    K, V = torch.randn(2, 3, 2, 2, READ, 40, generator=torch.Generator().manual_seed(1)).double()
    for way in ("whole", *ROUNDED, LOW_RANK):
        (keys, values, bias), keep = _left(way, READ, K, V, SCORES)
        assert keep.all() and not bias.any()
        assert keys.equal(K) == (way == "whole" or way.startswith("values"))
        assert values.equal(V) == (not way.startswith("values"))
    assert torch.linalg.matrix_rank(_left(LOW_RANK, READ, K, V, SCORES)[0][0]).eq(32).all()
    steps = [
        len(_left(f"keys in {bits} bits by channel", READ, K, V, SCORES)[0][0][0, 0, 0, :, 0].unique())
        for bits in (4, 2)
    ]
    assert steps == [16, 4]
    assert len(_left("keys in 2 bits by token", READ, K, V, SCORES)[0][0][0, 0, 0, 0].unique()) == 4


@torch.no_grad()
def test_the_whole_cache_is_what_the_model_reads_at_once(tiny):
    ids = torch.tensor([ord(letter) for letter in data.text("essay")[:256]]).view(2, 128)
    again = torch.cat([ids[:, :96], ids[:, 16:48]], 1)
    for line, tokens, copied in zip(eviction.rows("whole", READ, passages=2), ids, again, strict=True):
        for value, text, first in ((line[6], tokens, 96), (line[7], copied, 104)):
            logits = tiny(text[None])[0, first:-1].log_softmax(-1)
            assert float(value) == pytest.approx(-float(logits.gather(1, text[first + 1 :, None]).mean()), abs=1e-5)
        assert line[3:6] == (READ, READ, f"{READ}")


def test_scores_are_what_was_paid(tiny):
    *_, scores = eviction._read(2)
    assert scores.shape == (3, 2, 2, READ)
    assert scores.sum(-1).allclose(torch.tensor(2.0 * READ).double())  # two heads share an entry, each query pays 1


def test_the_stored_table_is_whole():
    _, lines = stored("eviction")
    assert tuple(lines[0]) == eviction.COLUMNS
    found = [(line["way"], int(line["keys"]), int(line["passage"])) for line in lines]
    cases = [(case["way"], case["keys"]) for case in eviction.experiment([]).cases]
    assert found == [(*case, passage) for case in cases for passage in range(eviction.PASSAGES)]
    assert len(cases) == 1 + 2 * len(POLICIES) + 1 + len(ROUNDED) + 1
    for line in lines:
        assert float(line["mean"]) == int(line["keys"]) and 0 < float(line["copy"]) < 15 > float(line["goes on"]) > 1
        assert (line["fewest"] == line["most"]) == (line["way"] != "one budget")


@pytest.mark.parametrize(
    ("way", "keys", "passages", "name"),
    [("all", 48, 1, "way"), ("recent", 97, 1, "keys"), ("recent", 3, 1, "keys"), ("recent", 48, 10, "passages")],
)
def test_bad_arguments_are_named(way, keys, passages, name):
    with pytest.raises(ValueError, match=name):
        list(eviction.rows(way, keys, passages=passages))
