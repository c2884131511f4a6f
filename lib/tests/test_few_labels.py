"""The long run on few labels: the sentences, the model without its training, the nearest mean, and the stored table."""

import pytest
import torch

from smalltorch.engine.sample import normal
from smalltorch.experiments import few_labels
from smalltorch.experiments.few_labels import DRAWS, EXAMPLES, TEXTS, WAYS, _forget, _sentences, _shares
from smalltorch.experiments.table import stored
from smalltorch.models import Encoder


class Letters:
    """A tokenizer of letters, with two marks."""

    def encode(self, text):
        self.ids = [1, *map(ord, text), 2]
        return self


def test_sentences_end_at_their_marks_and_short_ones_are_left_out(monkeypatch):
    texts = {
        "essay": "Is it a lighthouse? It is, yes!.\nA ship was wrecked here.",
        "longer": "Nothing of this is true",
    }
    monkeypatch.setattr(few_labels.data, "text", texts.get)
    found = [["".join(map(chr, ids[1:-1])) for ids in text] for text in _sentences(Letters())]
    assert found == [["Is it a lighthouse", "A ship was wrecked here"], ["Nothing of this is true"]]


def test_a_model_forgets_all_that_it_was_trained_to():
    def built():
        torch.manual_seed(5)
        return Encoder(20, d=8, layers=2, heads=2, d_ff=16, positions=16)

    first, again, other = built(), built(), built()
    for model, draw in ((first, 0), (again, 0), (other, 1)):
        _forget(model, draw)
    for (name, W), same, another in zip(first.named_parameters(), again.parameters(), other.parameters(), strict=True):
        assert W.equal(same)
        if W.ndim == 1:
            assert (W == float(name.endswith("gamma"))).all()
        else:
            assert not W.equal(another) and 0.01 < W.std() < 0.03


@pytest.mark.parametrize("k", EXAMPLES)
def test_the_nearest_mean_is_that_of_the_labelled(k):
    """Of texts that lie apart all are right; strays in one of them are wrong, and the others are not."""
    X = [normal("near", 30, 4) + 50, normal("far", 40, 4) - 50]
    assert list(_shares(X, k, 0)) == [(30 - k, 1.0), (40 - k, 1.0)]
    strays_first = [torch.cat([X[1][:5], X[0]]), X[1][5:]]
    (left, right), (_, all_right) = _shares(strays_first, k, 0)
    assert left == 35 - k and right >= 1 - 5 / left and all_right == 1


def test_the_stored_table_is_whole():
    _, lines = stored("few_labels")
    assert tuple(lines[0]) == few_labels.COLUMNS
    assert [tuple(line[key] for key in few_labels.KEYS) for line in lines] == [
        (str(draw), way, str(k), text) for draw in range(DRAWS) for way in WAYS for k in EXAMPLES for text in TEXTS
    ]
    assert {(line["text"], int(line["left"]) + int(line["examples"])) for line in lines} == {
        ("essay", 41),
        ("longer", 120),
    }
    assert all(0 <= float(line["share"]) <= 1 for line in lines)
    lengths = [line for line in lines if line["vectors"] == "lengths"]
    assert 0.5 < sum(float(line["share"]) for line in lengths) / len(lengths) < 0.95


def test_bad_arguments_are_named():
    for draw in (-1, 0.5):
        with pytest.raises((ValueError, TypeError), match="draw"):
            list(few_labels.rows(draw))
