"""Weights whose names are like those of constants that older versions stored are not left out in silence.

But for those that transformers itself leaves out, whose patterns have no end: `h.0.attn.bias_scale`, for instance.
"""

import re

import pytest
import torch
from test_hub import change, no_network, save
from tiny import tiny_gpt, tiny_llama

from smalltorch.weights import load

assert no_network  # a fixture


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize(
    ("build", "name"),
    [
        (lambda: tiny_gpt(2).transformer, "h.0.attn.q_bias"),
        (lambda: tiny_gpt(2).transformer, "h.0.mlp.bias"),
        (lambda: tiny_gpt(2).transformer, "adapter.h.0.attention.bias"),
        (lambda: tiny_gpt(2).transformer, "wpe.position_ids_scale"),
        (lambda: tiny_llama().model, "layers.0.self_attn.rotary_emb.gain"),
    ],
)
def test_a_weight_that_is_like_a_constant_is_unknown(tmp_path, build, name):
    change(save(build(), tmp_path), **{name: torch.ones(24)})
    with pytest.raises(ValueError, match=re.escape(f"unknown to it, {name}")):
        load(str(tmp_path))
