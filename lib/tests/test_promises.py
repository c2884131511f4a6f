"""Sentences of docstrings that the tests of their modules do not come to, each held here by an example."""

import networkx
import pytest
import torch

from smalltorch.attribute import shapley
from smalltorch.cache import merged
from smalltorch.compress import quantise, remove_weight, ternarise
from smalltorch.engine.sample import normal
from smalltorch.files import replacing
from smalltorch.position import graph_distances
from smalltorch.schedules import cosine_decay
from smalltorch.source import Markov


def test_distances_are_right_where_the_ways_are_too_many_for_a_float():
    """In a clique of 40 nodes with a path of 40 beside it there are 40^40 ways of 40 steps."""
    G = networkx.lollipop_graph(40, 40)
    expected = torch.tensor(networkx.floyd_warshall_numpy(G)).float()
    assert torch.equal(graph_distances(torch.tensor(networkx.to_numpy_array(G)).float()), expected)


@pytest.mark.parametrize("bits", [4, 12, 16])
def test_what_is_quantised_is_computed_in_float64(bits):
    X = normal("to be quantised in float64", 50, 200).float()
    most, largest = 2 ** (bits - 1) - 1, X.double().abs().amax(-1, keepdim=True)
    assert torch.equal(quantise(X, bits), ((X.double() / largest * most).round() * largest / most).float())
    assert torch.equal(ternarise(X), ternarise(X.double()).float())


def test_in_each_row_of_a_cache_something_is_kept():
    K = torch.ones(2, 3, 2).double()
    with pytest.raises(ValueError, match="^keep: expected a boolean tensor with an entry that stays in each row"):
        merged(K, K, torch.tensor([[True, False, False], [False, False, False]]))


def test_a_distance_is_symmetric_but_for_rounding():
    G = torch.tensor([[1.0, 0.5], [0.5 + 1e-4, 1.0]]).double()
    with pytest.raises(ValueError, match="^G: expected a symmetric matrix"):
        remove_weight(torch.ones(2).double(), G, 0)
    remove_weight(torch.ones(2).double(), G - torch.tensor([[0.0, 0.0], [1e-4 - 1e-9, 0.0]]), 0)


def test_probabilities_of_a_source_sum_to_one_but_for_rounding():
    P = torch.full((2, 2), 0.5).double()
    assert Markov(P * (1 + 1e-12)).order == 1
    with pytest.raises(ValueError, match="^P: expected sums of 1 over the last axis, got 1.00001"):
        Markov(P * (1 + 1e-5))


def test_a_rate_that_has_fallen_to_zero_stays_there():
    assert [cosine_decay(step, 4) for step in (5, 6, 7, 9)] == [0.0] * 4


@pytest.mark.parametrize("named", ["the new file", "another"])
def test_an_error_in_writing_names_the_file_that_was_to_be_written(tmp_path, named):
    """Not the hidden one beside it, which is gone by then; of another file it says that one's name."""
    with pytest.raises(OSError) as caught, replacing(tmp_path / "table.csv") as new:
        raise OSError(5, "Input/output error", str(new) if named == "the new file" else "another")
    assert caught.value.filename == (str(tmp_path / "table.csv") if named == "the new file" else "another")


def test_shares_of_features_are_computed_in_float64():
    values = normal("a game of six features", 50, 64).float()
    assert torch.equal(shapley(values), shapley(values.double()).float())
