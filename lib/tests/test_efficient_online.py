import math

import pytest
import torch
import torch.nn.functional as F

from smalltorch.efficient.cost import peak_bytes
from smalltorch.efficient.online import chunked_attention


def randn(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("size", [1, 3, 7, 100])
@pytest.mark.parametrize("causal", [False, True])
def test_parts_give_what_torch_gives(size, causal):
    Q, K, V = randn(3, 2, 4, 12, 5)
    expected = F.scaled_dot_product_attention(Q, K, V, is_causal=causal)
    torch.testing.assert_close(chunked_attention(Q, K, V, size, causal), expected, rtol=1e-12, atol=1e-13)


def test_queries_and_keys_may_differ_in_number_and_batches_broadcast():
    Q, K, V = randn(2, 1, 3, 4), randn(5, 7, 4, seed=1), randn(5, 7, 2, seed=2)
    expected = F.scaled_dot_product_attention(Q, K.expand(2, 5, 7, 4), V.expand(2, 5, 7, 2), scale=0.7)
    torch.testing.assert_close(chunked_attention(Q.expand(2, 5, 3, 4), K, V, 2, scale=0.7), expected)


def test_large_scores_do_not_overflow_in_whatever_order_they_come():
    K = torch.tensor([[-800.0], [0.0], [800.0]]).double()
    V = torch.eye(3).double()
    for keys, values in ((K, V), (K.flip(0), V.flip(0))):
        read = chunked_attention(torch.ones(1, 1).double(), keys, values, 1, scale=1.0)
        assert read.tolist() == [[0.0, 0.0, 1.0]]


def test_the_literal_transcription_of_the_papers_recurrence():
    s, v = 5 * randn(9).sort().values, randn(9, seed=3)
    m, total, read = -math.inf, 0.0, 0.0
    for score, value in zip(s.tolist(), v.tolist(), strict=True):
        higher = max(m, score)
        total = total * math.exp(m - higher) + math.exp(score - higher)
        read = read * math.exp(m - higher) + math.exp(score - higher) * value
        m = higher
    ours = chunked_attention(torch.ones(1, 1).double(), s[:, None], v[:, None], 1, scale=1.0)
    assert float(ours) == pytest.approx(read / total, rel=1e-13)


def test_what_is_alive_grows_with_the_tokens_and_not_with_their_square():
    def alive(n):
        Q, K, V = randn(3, n, 4)
        return peak_bytes(lambda: chunked_attention(Q, K, V, 16))

    assert alive(512) - alive(256) == 2 * (alive(256) - alive(128))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves_are_summed_in_single_precision(dtype):
    V = torch.ones(4096, 1, dtype=dtype)
    read = chunked_attention(torch.zeros(1, 1, dtype=dtype), torch.zeros(4096, 1, dtype=dtype), V, 1)
    assert read.dtype == dtype and float(read) == 1


def test_what_makes_no_sense_is_refused():
    Q, K, V = randn(3, 4, 2)
    with pytest.raises(ValueError, match="size"):
        chunked_attention(Q, K, V, 0)
    with pytest.raises(ValueError, match="K: expected a key for each of 3 queries, got 4"):
        chunked_attention(Q[:3], K, V, 2, causal=True)
