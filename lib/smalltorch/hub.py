"""Load models of Hugging Face's `transformers` safely: as data only, complete or not at all.

`transformers` by itself fills tensors that a folder lacks at random, asks on the terminal whether to run a model's own
code, unpickles, fetches what a configuration names, and tries for twenty seconds to reach a hub that is not there.
"""

import json
import math
import os
import re
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as registration

NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?", re.ASCII)
SECONDS = 2.0  # that a hub may take to say whether it has a model

# Of a repository on a hub, what is not fetched: code, pickles, other formats, folders, a second copy of the weights.
NOT_FETCHED = "*/* *.py *.bin *.pt *.pth *.pkl *.h5 *.msgpack *.onnx *.gguf consolidated*".split()

# What a configuration says of files, of code and of how to compute, instead of the model: left out, whatever it says.
NOT_OF_THE_MODEL = re.compile(
    r"implementation|return_dict|_plan$|^(auto_map|transformers_weights|(fusion|distributed|kernel)_config|use_kernels)$"
)
QUANTISED = ("quantization_config", "compression_config")
REPEATED = re.compile(r"layers?$|^num_labels$|^attention_types$")  # what a configuration counts and repeats by itself

# What a model may have beyond its files: tensors, for poolers, buffers and what is stored as one; elements (0.5 GB in
# single precision), for masks and tables of positions that are computed.
SPARE_TENSORS, SPARE_ELEMENTS = 1000, 2**27


def load(name: str, dtype: torch.dtype) -> tuple[nn.Module, Any]:
    """The model of a folder or of a hub, without its head, and its tokenizer.

    Its attention is written out, so that it can be measured: the fast kernels never form A. Where an encoder was saved
    without its decoder, it is the encoder; a decoder that was saved without its encoder comes with its head.

    *Data only.* Weights are read from files of the format safetensors in that folder, never unpickled; no code that
    comes with a model is run, and none is fetched, whatever its configuration says or anybody answers.

    *Whole.* Every tensor of the model is in its files with the right shape, and the files hold no other tensors but
    those of a head and constants that the model computes by itself: what another class for this configuration, such as
    its language model, calls its own, and the model's buffers. What some such class does without, as a pooler, is left
    out of the model where the files lack it.

    *No larger than its files.* A configuration that asks for a larger model is refused before that is built.

    *A hub* is asked for what has the form `name` or `owner/name`, and whose first part is nothing that exists here.
    Where it does not answer, a copy from before is taken, if there is one.

    Raises:
        ValueError: if the model cannot be had so, with the reason in one line.
    """
    if find_spec("transformers") is None:
        raise _refusal(name, "the package transformers, which reads it, is not installed")
    from transformers import AutoTokenizer

    data_only = dict(trust_remote_code=False, local_files_only=True)
    try:
        folder = _folder(name)
        with _quiet():
            shapes = _shapes(folder)
            config, auto = _configuration(folder, len(shapes))
            _check_size(auto, config, shapes)

            def read(factory: Any) -> Any:
                model, keys = factory.from_pretrained(
                    folder,
                    config=config,
                    **data_only,
                    use_safetensors=True,
                    attn_implementation="eager",
                    dtype=dtype,
                    ignore_mismatched_sizes=True,  # they are refused below, with their names
                    output_loading_info=True,
                )
                _check_whole(model, keys, shapes)
                return model

            try:
                model = read(auto)
            except _Reason as reason:
                model = _through_its_head(config, read, reason)
            tokenizer = AutoTokenizer.from_pretrained(folder, config=config, **data_only)
    except _Reason as reason:
        raise _refusal(name, str(reason)) from reason
    except Exception as error:  # there is no end to what a damaged file can raise
        raise _refusal(name, one_line(error)) from error
    return model.eval().requires_grad_(False), tokenizer


def one_line(error: Exception) -> str:
    """The type of an error and the first line of what it says."""
    return ": ".join([type(error).__name__, *str(error).strip().splitlines()[:1]])


class _Reason(Exception):
    """Why a model is refused, in words of our own."""


def _refusal(name: object, reason: str) -> ValueError:
    return ValueError(
        "name: expected smollm2 or minilm, a folder with a model and its tokenizer, or the name of a model on a hub "
        f"that can be reached from here, got {name!r}: {reason}"
    )


# --- where it is ------------------------------------------------------------------------------------------------------


def _folder(name: str) -> Path:
    """The folder of this name, or one with the files of a hub."""
    if isinstance(name, str) and os.path.isdir(name):
        return Path(name)
    if not (isinstance(name, str) and NAME.fullmatch(name)) or Path(name.partition("/")[0]).exists():
        raise _Reason("this is neither a folder nor such a name")
    reason = _out_of_reach(name)
    if reason and not _is_cached(name):
        raise _Reason(reason)
    from huggingface_hub import snapshot_download

    return Path(snapshot_download(name, ignore_patterns=NOT_FETCHED, local_files_only=bool(reason)))


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


# --- before anything is built -----------------------------------------------------------------------------------------


def _shapes(folder: Path) -> dict[str, list[int]]:
    """The shapes of the tensors in the folder's files, by their headers."""
    from safetensors import safe_open

    if (folder / "adapter_config.json").exists():
        raise _Reason("it holds an adapter, whose model is elsewhere; merge the two, and save the whole")
    names, index = ["model.safetensors"], folder / "model.safetensors.index.json"
    _check_inside(folder, [file.name for file in folder.iterdir() if file.is_file()])
    if index.exists():
        shards = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
        _check_inside(folder, shards)
        if other := [shard for shard in shards if not shard.endswith(".safetensors")]:
            raise _Reason(f"its index names {other[0]!r}, which is no file of the format safetensors")
        names = names if (folder / names[0]).exists() else shards
    elif not (folder / names[0]).exists():
        raise _Reason("it has no file model.safetensors, and weights of other formats are not read")
    shapes: dict[str, list[int]] = {}
    for name in names:
        with safe_open(folder / name, "pt") as file:
            shapes |= {key: file.get_slice(key).get_shape() for key in file.keys()}
    return shapes


def _check_inside(folder: Path, names: list[str]) -> None:
    """Files of the folder are in it; those that a hub's cache links to, beside it."""
    root = folder.resolve()
    allowed = [root, root.parents[1] / "blobs"] if root.parent.name == "snapshots" else [root]
    for name in names:
        if not any((folder / name).resolve().is_relative_to(place) for place in allowed):
            raise _Reason(f"{name!r} leads out of the folder; put a copy there instead")


def _configuration(folder: Path, tensors: int) -> tuple[Any, Any]:
    """The configuration, without what is not of the model, and the factory of `transformers` for its class."""
    import transformers
    from transformers.models.auto import modeling_auto

    said = _of_the_model(json.loads((folder / "config.json").read_text(encoding="utf-8")), 4 * tensors + SPARE_TENSORS)
    kind = said.get("model_type")
    if kind not in transformers.CONFIG_MAPPING:
        raise _Reason(
            f"its model_type is {kind!r}, which transformers {transformers.__version__} does not have, "
            "and code that comes with a model is not run"
        )
    with tempfile.TemporaryDirectory() as clean:
        Path(clean, "config.json").write_text(json.dumps(said), encoding="utf-8")
        config = transformers.AutoConfig.from_pretrained(clean, trust_remote_code=False, local_files_only=True)
    config.name_or_path = str(folder)
    saved = said.get("architectures") or []
    if modeling_auto.MODEL_FOR_TEXT_ENCODING_MAPPING_NAMES.get(kind) in saved:
        return config, transformers.AutoModelForTextEncoding
    both = getattr(type(config), "is_encoder_decoder", False) or kind not in modeling_auto.MODEL_MAPPING_NAMES
    if both and modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.get(kind) in saved:
        return config, transformers.AutoModelForCausalLM
    return config, transformers.AutoModel


def _of_the_model(said: Any, most: int, key: str = "") -> Any:
    """What a configuration says of the model, at every level; counts of what is repeated are checked."""
    if isinstance(said, list):
        return [_of_the_model(item, most, key) for item in said]
    if isinstance(said, int) and REPEATED.search(key) and said > most:
        raise _Reason(f"its configuration has {key} = {said}, far more than its files hold")
    if not isinstance(said, dict):
        return said
    if quantised := [name for name in QUANTISED if said.get(name)]:
        raise _Reason(f"its weights are quantised ({quantised[0]}); take a copy that is not")
    return {name: _of_the_model(item, most, name) for name, item in said.items() if not NOT_OF_THE_MODEL.search(name)}


def _check_size(auto: Any, config: Any, shapes: dict[str, list[int]]) -> None:
    """Builds the model without memory, and ends that once it is larger than the files can fill."""
    stored = sum(map(math.prod, shapes.values()))
    left = [4 * len(shapes) + SPARE_TENSORS, 2 * stored + SPARE_ELEMENTS]

    def count(module: nn.Module, name: str, tensor: Tensor | None) -> None:
        if tensor is not None:
            left[0] -= 1
            left[1] -= tensor.numel()
        if min(left) < 0:
            raise _Reason(
                f"its configuration asks for a far larger model than its files hold, {len(shapes)} tensors with "
                f"{stored} elements"
            )

    hooks = [
        registration.register_module_parameter_registration_hook(count),
        registration.register_module_buffer_registration_hook(count),
    ]
    try:
        with torch.device("meta"):
            auto.from_config(config, trust_remote_code=False)
    finally:
        for hook in hooks:
            hook.remove()


# --- after ------------------------------------------------------------------------------------------------------------


def _through_its_head(config: Any, read: Callable[[Any], Any], reason: _Reason) -> Any:
    """The model inside the class that saved it, for a head that gives its tensors other names; else it is refused."""
    import transformers

    saved = getattr(transformers, (config.architectures or [""])[0], None)
    if isinstance(saved, type) and issubclass(saved, transformers.PreTrainedModel):
        try:
            model = read(saved).base_model
        except Exception:
            raise reason from None
        if type(model) is not saved:
            return model
    raise reason


def _check_whole(model: Any, keys: dict[str, Any], shapes: dict[str, list[int]]) -> None:
    missing, unexpected = set(keys["missing_keys"]), set(keys["unexpected_keys"])
    mismatched = [f"{key} of shape {tuple(got)}, not {tuple(own)}" for key, got, own in keys["mismatched_keys"]]
    unexpected -= {key for key in unexpected if _is_constant(model, key, shapes)}
    absent: set[str] = set()  # parts that a class with a head does without
    for own, heads in _family(model) if missing or unexpected else ():
        unexpected -= heads
        absent |= {key.partition(".")[0] for key in missing} - {key.partition(".")[0] for key in own}
    absent = {part for part in absent if all(f"{part}.{key}" in missing for key in getattr(model, part).state_dict())}
    missing = {key for key in missing if key.partition(".")[0] not in absent}
    for problem, names in (("lack", missing), ("hold", mismatched), ("hold, unknown to it,", unexpected)):
        if names:
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            listed = ", ".join(sorted(names)[:3])
            raise _Reason(f"it is a {type(model).__name__}, and its files {problem} {listed}{more}")
    for part in absent:
        setattr(model, part, None)


def _is_constant(model: Any, key: str, shapes: dict[str, list[int]]) -> bool:
    """Whether it is a buffer that the model fills by itself, or a causal mask or its value, of no weight's shape."""
    prefix, buffers = f"{model.base_model_prefix}.", dict(model.named_buffers())
    own, shape = key.removeprefix(prefix), shapes.get(key, shapes.get(prefix + key))
    if shape is not None and own in buffers and own not in model.state_dict():
        return len(shape) == buffers[own].ndim
    match shape, own.rpartition(".")[2]:
        case [[1, 1, n, m], "bias" | "causal_mask"]:
            return n == m
        case [[], "masked_bias"]:
            return True
    return False


def _family(model: Any) -> Iterator[tuple[set[str], set[str]]]:
    """Of each class that puts a head on this one: what it keeps of it, and what is the head's, as files have it."""
    from transformers import PreTrainedModel
    from transformers.core_model_loading import revert_weight_conversion

    here = vars(sys.modules[type(model).__module__]).values()
    kinds: list[Any] = [kind for kind in here if isinstance(kind, type) and issubclass(kind, PreTrainedModel)]
    for kind in kinds:
        try:
            with torch.device("meta"):
                whole = kind._from_config(model.config)
        except Exception:  # it has another configuration, or is abstract
            continue
        inside = (name for name, module in whole.named_modules() if name and type(module) is type(model))
        if prefix := next((f"{name}." for name in inside), ""):
            heads = {key: tensor for key, tensor in whole.state_dict().items() if not key.startswith(prefix)}
            own = {key.removeprefix(prefix) for key in whole.state_dict().keys() - heads.keys()}
            yield own, heads.keys() | revert_weight_conversion(whole, heads).keys()
