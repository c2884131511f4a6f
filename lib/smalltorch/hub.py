"""Models of others, as `transformers` loads them: as data only, and whole or not at all.

`transformers` by itself fills tensors that a folder lacks at random, asks on the terminal whether to run a model's own
code, unpickles, and tries for twenty seconds to reach a hub that is not there.
"""

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import nn

NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?", re.ASCII)
SECONDS = 2.0  # that a hub may take to say whether it has a model

# Heads, by the first part of their tensors' names. They read the last states; `AutoModel` builds the model without
# them, so they are left over, and nothing that a layer computes depends on them.
HEADS = (
    *("lm_head", "final_logits_bias", "cls", "classifier", "pre_classifier", "score", "qa_outputs", "predictions"),
    *("vocab_transform", "vocab_layer_norm", "vocab_projector", "lm_predictions", "mask_predictions", "pooler"),
    *("generator_predictions", "generator_lm_head", "discriminator_predictions", "multiple_choice_head"),
)

# Constants that older versions stored with the weights: GPT's causal mask, positions 0, 1, 2, ... and rotary angles.
CONSTANT = re.compile(r"(^|\.)h\.\d+\.attn\.(masked_)?bias$|\bposition_ids$|\brotary_emb\.inv_freq$")


def load(name: str, dtype: torch.dtype) -> tuple[nn.Module, Any]:
    """The model of a folder or of a hub, without its head, and its tokenizer.

    Its attention is written out, so that it can be measured: the fast kernels never form A.

    *Data only.* Weights are read from files of the format safetensors, never unpickled, and no code that comes with a
    model is run, whatever anybody answers.

    *Whole.* Every tensor of the model is in its files with the right shape, and the files hold no other tensors but
    those of a head. A pooler that is not there (it is a head too) is left out of the model as well.

    *A hub* is asked for what has the form `name` or `owner/name`, and whose first part is nothing that exists here.
    Where it does not answer, a copy from before is taken, if there is one.

    Raises:
        ValueError: if the model cannot be had so, with the reason in one line.
    """
    if find_spec("transformers") is None:
        raise _refusal(name, "the package transformers, which reads it, is not installed")
    local = isinstance(name, str) and os.path.isdir(name)
    if not local:
        if not (isinstance(name, str) and NAME.fullmatch(name)) or Path(name.partition("/")[0]).exists():
            raise _refusal(name, "this is neither a folder nor such a name")
        reason = _out_of_reach(name)
        if reason and not _is_cached(name):
            raise _refusal(name, reason)
        local = bool(reason)
    from transformers import AutoModel, AutoTokenizer

    data_only = dict(trust_remote_code=False, local_files_only=local)
    try:
        with _quiet():
            model, keys = AutoModel.from_pretrained(
                name,
                **data_only,
                use_safetensors=True,
                attn_implementation="eager",
                dtype=dtype,
                ignore_mismatched_sizes=True,  # they are refused below, with their names
                output_loading_info=True,
            )
            tokenizer = AutoTokenizer.from_pretrained(name, **data_only)
    except Exception as error:  # there is no end to what a damaged file can raise
        raise _refusal(name, one_line(error)) from error
    _check_whole(name, model, keys)
    return model.eval().requires_grad_(False), tokenizer


def one_line(error: Exception) -> str:
    """The type of an error and the first line of what it says."""
    return ": ".join([type(error).__name__, *str(error).strip().splitlines()[:1]])


def _refusal(name: object, reason: str) -> ValueError:
    return ValueError(
        "name: expected smollm2 or minilm, a folder with a model and its tokenizer, or the name of a model on a hub "
        f"that can be reached from here, got {name!r}: {reason}"
    )


def _out_of_reach(name: str) -> str:
    """Why the hub does not say in time that it has the model; "" where it says so."""
    from huggingface_hub import HfApi

    reason = [f"no answer within {SECONDS:g} s"]

    def ask() -> None:
        try:
            HfApi().model_info(name, timeout=SECONDS)
            reason[0] = ""
        except Exception as error:  # of the network, of the hub, or offline by HF_HUB_OFFLINE
            reason[0] = one_line(error)

    thread = threading.Thread(target=ask, daemon=True)  # no timeout ends the search for a host's address
    thread.start()
    thread.join(SECONDS)
    return reason[0]


def _is_cached(name: str) -> bool:
    from huggingface_hub import try_to_load_from_cache

    return isinstance(try_to_load_from_cache(name, "config.json"), str)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the table of missing tensors that `transformers` logs: what matters of it becomes an error."""
    from transformers.utils import logging

    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)


def _check_whole(name: str, model: nn.Module, keys: dict[str, Any]) -> None:
    kind = type(model).__name__
    absent = {key for key in keys["missing_keys"] if _is_of_head(key)}
    missing = sorted(keys["missing_keys"] - absent)
    mismatched = sorted(f"{key} of shape {tuple(got)}, not {tuple(own)}" for key, got, own in keys["mismatched_keys"])
    unexpected = sorted(key for key in keys["unexpected_keys"] if not (_is_of_head(key) or CONSTANT.search(key)))
    for problem, found in (("lack", missing), ("hold", mismatched), ("hold, unknown to it,", unexpected)):
        if found:
            more = f" and {len(found) - 3} more" if len(found) > 3 else ""
            raise _refusal(name, f"it is a {kind}, and its files {problem} {', '.join(found[:3])}{more}")
    for part in {key.partition(".")[0] for key in absent}:
        setattr(model, part, None)


def _is_of_head(key: str) -> bool:
    return key.partition(".")[0] in HEADS
