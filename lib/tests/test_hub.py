"""Models of others: nothing at random, nothing run, nothing unpickled, nothing asked in vain."""

import json
import logging
import re
import socket
import sys
import threading
import time

import pytest
import torch
from tiny import TOKENS, tiny_bert, tiny_gpt, tiny_llama

from smalltorch import hub
from smalltorch.weights import load

transformers = pytest.importorskip("transformers")
huggingface_hub = pytest.importorskip("huggingface_hub")
safetensors = pytest.importorskip("safetensors.torch")


def save(model, folder):
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel

    model.save_pretrained(folder)
    words = WordLevel({"[UNK]": 0, "hello": 1}, unk_token="[UNK]")
    transformers.PreTrainedTokenizerFast(tokenizer_object=Tokenizer(words)).save_pretrained(folder)
    return folder


def change(folder, without=(), **more):
    """Another file of weights: without some tensors, and with others."""
    file = folder / "model.safetensors"
    tensors = {name: t for name, t in safetensors.load_file(file).items() if name not in without}
    assert all(name in safetensors.load_file(file) for name in without)
    safetensors.save_file(tensors | more, file, metadata={"format": "pt"})


@pytest.fixture
def no_network(monkeypatch):
    """None is there, and none was asked for in the end."""
    asked = []

    def refuse(*arguments, **options):
        asked.append(arguments)
        raise OSError("no network")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    yield
    assert not asked


@pytest.fixture
def logged(monkeypatch):
    """What transformers logs."""
    records = []
    handler = logging.Handler()
    monkeypatch.setattr(handler, "emit", records.append)
    transformers.utils.logging.add_handler(handler)
    before = transformers.utils.logging.get_verbosity()
    transformers.utils.logging.set_verbosity_warning()
    yield records
    transformers.utils.logging.set_verbosity(before)
    transformers.utils.logging.remove_handler(handler)


def refused(name, reason):
    """That `load` refuses it in one line, for this reason."""
    return pytest.raises(ValueError, match=f"^name: expected [^\\n]*, got {re.escape(repr(name))}: {reason}$")


# --- whole ------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize(
    ("build", "without", "more", "reason"),
    [
        (
            tiny_llama,
            ["model.layers.1.mlp.down_proj.weight"],
            {},
            ".* LlamaModel, .* lack layers.1.mlp.down_proj.weight",
        ),
        (
            tiny_bert,
            ["embeddings.LayerNorm.bias"],
            {},
            "it is a BertModel, and its files lack embeddings.LayerNorm.bias",
        ),
        (
            lambda: tiny_gpt(2),
            [f"transformer.h.{layer}.ln_1.{kind}" for layer in range(3) for kind in ("bias", "weight")],
            {},
            "it is a GPT2Model, and its files lack h.0.ln_1.bias, h.0.ln_1.weight, h.1.ln_1.bias and 3 more",
        ),
        (tiny_llama, [], {"model.norm.weight": torch.ones(7)}, r".* hold norm.weight of shape \(7,\), not \(24,\)"),
        (
            tiny_llama,
            [],
            {"model.layers.3.mlp.up_proj.weight": torch.ones(20, 24)},
            ".* its files hold, unknown to it, model.layers.3.mlp.up_proj.weight",
        ),
        (tiny_llama, [], {"model.layers.0.self_attn.q_proj.bias": torch.ones(24)}, ".*unknown to it, model.layers.0.*"),
        (lambda: tiny_llama().model, [], {"embed_norm.weight": torch.ones(24)}, ".* unknown to it, embed_norm.weight"),
    ],
)
def test_tensors_that_are_missing_or_do_not_fit_are_refused(tmp_path, logged, build, without, more, reason):
    change(save(build(), tmp_path), without, **more)
    with refused(str(tmp_path), reason):
        load(str(tmp_path))
    assert logged == []
    transformers.AutoModel.from_pretrained(tmp_path, ignore_mismatched_sizes=True)
    assert len(logged) == 1  # a table of many lines, where nobody is quiet


HARMLESS = {"h.0.attn.bias": torch.ones(1, 1, 16, 16), "h.0.attn.masked_bias": torch.tensor(-1e4)}


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize(
    ("build", "more"),
    [
        (tiny_llama, {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(2)}),
        (lambda: tiny_llama(tie_word_embeddings=True), {}),
        (lambda: tiny_llama().model, {}),
        (lambda: tiny_gpt(1), {f"transformer.{name}": t for name, t in HARMLESS.items()}),
        (lambda: tiny_gpt(2).transformer, HARMLESS),
        (tiny_bert, {"embeddings.position_ids": torch.arange(16)[None]}),
        (lambda: transformers.BertForPreTraining(tiny_bert().config), {}),
        (lambda: transformers.BertForMaskedLM(tiny_bert().config), {}),
    ],
)
@torch.no_grad()
def test_heads_and_stored_constants_change_no_state(tmp_path, build, more):
    theirs = build().eval()
    change(save(theirs, tmp_path), **more)
    model, _ = load(str(tmp_path))
    for name, parameter in model.named_parameters():
        assert parameter.equal(theirs.base_model.get_parameter(name)), name
    torch.testing.assert_close(model(TOKENS).last_hidden_state, theirs.base_model(TOKENS)[0])


def test_a_pooler_that_no_file_has_is_left_out(tmp_path):
    save(transformers.BertForMaskedLM(tiny_bert().config), tmp_path)
    assert load(str(tmp_path))[0](TOKENS).pooler_output is None


def test_a_type_is_read_without_another_between(tmp_path):
    """The configuration names the type that a model was trained in; its weights may be of another."""
    theirs = tiny_bert().double()
    save(theirs, tmp_path)
    config = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    (tmp_path / "config.json").write_text(json.dumps(config | {"dtype": "float16"}), encoding="utf-8")
    model, _ = load(str(tmp_path), torch.float64)
    assert model.embeddings.word_embeddings.weight.equal(theirs.embeddings.word_embeddings.weight)


# --- data only --------------------------------------------------------------------------------------------------------

CODE = """\
from pathlib import Path
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast
Path(__file__).with_name("was run").touch()
class Config(BertConfig): model_type = "mine"
class Model(BertModel): config_class = Config
class Tokenizer(PreTrainedTokenizerFast): pass
"""


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("config.json", {"model_type": "mine"}),
        ("config.json", {"model_type": "bert"}),
        ("tokenizer_config.json", {"tokenizer_class": "Mine"}),
    ],
)
def test_the_code_of_a_model_is_never_run_and_nobody_is_asked(tmp_path, monkeypatch, file, content):
    save(tiny_bert(), tmp_path)
    (tmp_path / "mine.py").write_text(CODE, encoding="utf-8")
    classes = {"AutoConfig": "mine.Config", "AutoModel": "mine.Model", "AutoTokenizer": ["mine.Tokenizer", None]}
    before = json.loads((tmp_path / file).read_text(encoding="utf-8"))
    (tmp_path / file).write_text(json.dumps(before | content | {"auto_map": classes}), encoding="utf-8")
    monkeypatch.setattr("builtins.input", lambda prompt="": pytest.fail(f"asked: {prompt}"))
    if content == {"model_type": "mine"}:
        with refused(str(tmp_path), "ValueError: .* contains custom code .*"):
            load(str(tmp_path))
    else:
        load(str(tmp_path))  # with the classes that transformers has for it
    assert not (tmp_path / "was run").exists()


@pytest.mark.usefixtures("no_network")
def test_weights_are_never_unpickled(tmp_path, monkeypatch):
    save(tiny_bert(), tmp_path)
    torch.save(safetensors.load_file(tmp_path / "model.safetensors"), tmp_path / "pytorch_model.bin")
    (tmp_path / "model.safetensors").unlink()
    monkeypatch.setattr(torch, "load", lambda *arguments, **options: pytest.fail("unpickled"))
    with refused(str(tmp_path), "OSError: .*model.safetensors.*"):
        load(str(tmp_path))


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("model.safetensors", b"\x10"),
        ("model.safetensors", b"\x10\0\0\0\0\0\0\0{}              "),
        ("config.json", b"{"),
        ("config.json", b"{}"),
        ("config.json", b'{"model_type": "bert", "hidden_size": "wide"}'),
        ("config.json", b'{"model_type": "bert", "num_attention_heads": 0}'),
        ("config.json", b"\xff"),
        ("tokenizer.json", b"{}"),
        ("tokenizer.json", b"\xff"),
        ("tokenizer_config.json", b"[]"),
    ],
)
def test_a_damaged_file_is_refused_in_one_line(tmp_path, file, content):
    save(tiny_bert(), tmp_path)
    (tmp_path / file).write_bytes(content)
    with refused(str(tmp_path), "[^\\n]*"):
        load(str(tmp_path))


# --- the network ------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_network", "unenforced")
@pytest.mark.parametrize(
    "name",
    ["", " ", ".", "./gpt2", "/gpt2", "~/gpt2", "../gpt2", "a/b/c", "gpt2/", "C:\\gpt2", "https://x.y", "gpt 2", "-x"]
    + ["été", "gpt2\n", "folder/gpt2", "file", None, 3],
)
def test_for_what_is_no_name_nobody_is_asked(tmp_path, monkeypatch, name):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    monkeypatch.chdir(tmp_path)
    with refused(name, ".+"):
        load(name)


@pytest.mark.usefixtures("no_network")
def test_missing_transformers_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with refused("someone/some-model", "the package transformers, which reads it, is not installed"):
        load("someone/some-model")


@pytest.fixture
def unknown_host(monkeypatch):
    def fail(*arguments, **options):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)


@pytest.fixture
def silent_host(monkeypatch):
    """A machine that looks for the address of a host and does not give up."""
    end = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *arguments, **options: end.wait(20))
    yield
    end.set()


@pytest.mark.parametrize("network", ["unknown_host", "silent_host"])
def test_without_a_network_the_answer_comes_soon(request, network):
    request.getfixturevalue(network)
    start = time.perf_counter()
    with refused("someone/some-model", "(ConnectError: .*|no answer within 2 s)"):
        load("someone/some-model")
    assert time.perf_counter() - start < 3


@pytest.mark.usefixtures("no_network")
def test_offline_by_choice_nobody_is_asked(monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with refused("someone/some-model", "OfflineModeIsEnabled: .*"):
        load("someone/some-model")


@pytest.mark.usefixtures("unknown_host")
def test_without_a_network_a_copy_from_before_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    revision = "0" * 40
    repository = tmp_path / "models--someone--some-model"
    save(tiny_bert(), repository / "snapshots" / revision)
    (repository / "refs").mkdir()
    (repository / "refs/main").write_text(revision)
    start = time.perf_counter()
    assert type(load("someone/some-model")[0]).__name__ == "BertModel"
    assert time.perf_counter() - start < 3


def test_what_a_hub_says_is_said(monkeypatch):
    def unknown(self, name, timeout):
        raise OSError("404 Client Error.\nAnd more lines.")

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", unknown)
    with refused("someone/some-model", "OSError: 404 Client Error."):
        load("someone/some-model")


def test_a_hub_that_knows_the_name_is_asked_for_the_rest(monkeypatch):
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", lambda self, name, timeout: None)
    monkeypatch.setattr(
        transformers.AutoModel, "from_pretrained", lambda name, local_files_only, **options: 1 / local_files_only
    )
    with refused("someone/some-model", "ZeroDivisionError: .*"):
        load("someone/some-model")


def test_no_error_has_two_lines():
    assert hub.one_line(OSError("one\r\ntwo")) == "OSError: one" and hub.one_line(KeyError()) == "KeyError"
