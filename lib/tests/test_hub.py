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


def configure(folder, **said):
    before = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(before | said), encoding="utf-8")
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
        (lambda: tiny_gpt(1), [], {"transformer.h.0.attn.bias": torch.ones(16)}, ".* unknown to it, transformer.h.0.*"),
        (lambda: tiny_gpt(2), [], {"h.0.mlp.mask": torch.ones(1, 1, 16, 16)}, ".* unknown to it, h.0.mlp.mask"),
        (tiny_bert, ["pooler.dense.bias"], {}, ".* its files lack pooler.dense.bias"),
        (tiny_llama, [], {"classifier.weight": torch.ones(2, 24)}, ".* unknown to it, classifier.weight"),
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


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("classes", [None, ["SomebodysModel"]])
def test_where_the_class_that_saved_it_is_not_known_the_reason_stays(tmp_path, classes):
    change(save(tiny_llama(), tmp_path), ["model.norm.weight"])
    configure(tmp_path, architectures=classes)
    with refused(str(tmp_path), "it is a LlamaModel, and its files lack norm.weight"):
        load(str(tmp_path))


SIZES = dict(vocab_size=50, hidden_size=24, max_position_embeddings=16)


def tiny_neox():
    sizes = SIZES | dict(intermediate_size=20, num_hidden_layers=3, num_attention_heads=6)
    return transformers.GPTNeoXForCausalLM(transformers.GPTNeoXConfig(**sizes))


def tiny_neo():
    sizes = SIZES | dict(num_layers=2, num_heads=6, attention_types=[[["global", "local"], 1]], window_size=4)
    return transformers.GPTNeoForCausalLM(transformers.GPTNeoConfig(**sizes))


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
        (
            tiny_neox,
            {"embed_out.weight": torch.ones(50, 24), "gpt_neox.layers.0.attention.bias": HARMLESS["h.0.attn.bias"]},
        ),
        (lambda: tiny_neox().gpt_neox, {"layers.1.attention.masked_bias": HARMLESS["h.0.attn.masked_bias"]}),
        (
            tiny_neo,
            {
                "transformer.h.0.attn.attention.bias": HARMLESS["h.0.attn.bias"],
                "transformer.h.1.attn.attention.masked_bias": HARMLESS["h.0.attn.masked_bias"],
            },
        ),
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
    configure(tmp_path, dtype="float16")
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
        with refused(str(tmp_path), "its model_type is 'mine', which transformers .* code that comes with .*"):
            load(str(tmp_path))
    else:
        load(str(tmp_path))  # with the classes that transformers has for it
    assert not (tmp_path / "was run").exists()


@pytest.mark.usefixtures("no_network")
def test_nobody_is_asked_for_the_code_of_a_tokenizer(tmp_path, monkeypatch):
    """Where `transformers` has no tokenizer for the model by itself."""
    config = transformers.BloomConfig(vocab_size=8, hidden_size=8, n_layer=1, n_head=2)
    file = save(transformers.BloomModel(config), tmp_path) / "tokenizer_config.json"
    said = json.loads(file.read_text(encoding="utf-8"))
    code = {"tokenizer_class": "Mine", "auto_map": {"AutoTokenizer": ["mine.Tokenizer", None]}}
    file.write_text(json.dumps(said | code), encoding="utf-8")
    monkeypatch.setattr("builtins.input", lambda prompt="": pytest.fail(f"asked: {prompt}"))
    with refused(str(tmp_path), "ValueError: .* contains custom code .*"):
        load(str(tmp_path))


@pytest.mark.usefixtures("no_network")
def test_a_head_may_give_the_tensors_other_names(tmp_path):
    """LLaMA's head for questions calls "transformer." what its language model calls "model."."""
    theirs = transformers.LlamaForQuestionAnswering(tiny_llama().config).eval()
    model, _ = load(str(save(theirs, tmp_path)))
    assert type(model).__name__ == "LlamaModel"
    torch.testing.assert_close(model(TOKENS).last_hidden_state, theirs.transformer(TOKENS).last_hidden_state)
    change(tmp_path, ["transformer.layers.1.mlp.down_proj.weight"])
    with refused(str(tmp_path), "it is a LlamaModel, and its files lack .*"):
        load(str(tmp_path))


@pytest.mark.usefixtures("no_network")
def test_weights_are_never_unpickled(tmp_path, monkeypatch):
    save(tiny_bert(), tmp_path)
    torch.save(safetensors.load_file(tmp_path / "model.safetensors"), tmp_path / "pytorch_model.bin")
    (tmp_path / "model.safetensors").unlink()
    monkeypatch.setattr(torch, "load", lambda *arguments, **options: pytest.fail("unpickled"))
    with refused(str(tmp_path), "it has no file model.safetensors, and weights of other formats are not read"):
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


SHARD = "model-00001-of-00001.safetensors"


def sharded(folder, shard=SHARD, **more):
    """The folder with its weights in a shard, and an index that says they are in another file."""
    save(tiny_bert(), folder)
    names = dict.fromkeys(safetensors.load_file(folder / "model.safetensors"), shard)
    (folder / "model.safetensors").rename(folder / SHARD)
    index = {"metadata": {"total_size": 1}, "weight_map": names | more}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    return folder


@pytest.mark.usefixtures("no_network")
def test_an_index_names_files_of_the_folder(tmp_path):
    load(str(sharded(tmp_path)))


def nothing_is_read(monkeypatch):
    monkeypatch.setattr(torch, "load", lambda *arguments, **options: pytest.fail("unpickled"))
    monkeypatch.setattr("safetensors.safe_open", lambda *arguments, **options: pytest.fail("read"))


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize(
    ("shard", "reason"),
    [
        ("x.bin", "its index names 'x.bin', which is no file of the format safetensors"),
        ("x.safetensors.bin", "its index names 'x.safetensors.bin', which is no file of the format safetensors"),
        ("../outside.safetensors", "'../outside.safetensors' leads out of the folder; put a copy there instead"),
        ("{outside}", "'.*/outside.safetensors' leads out of the folder; put a copy there instead"),
        ("in/../../outside.safetensors", "'in/../../outside.safetensors' leads out of the folder; .*"),
        ("link.safetensors", "'link.safetensors' leads out of the folder; put a copy there instead"),
        ("in/outside.safetensors", "'in/outside.safetensors' leads out of the folder; put a copy there instead"),
    ],
)
@pytest.mark.parametrize("all_of_it", [True, False])
def test_an_index_that_names_other_files_is_refused_before_anything_is_read(
    tmp_path, monkeypatch, shard, reason, all_of_it
):
    outside = tmp_path / "outside.safetensors"
    shard = shard.format(outside=outside)
    folder = sharded(tmp_path / "model", *[shard] * all_of_it, **{"embeddings.LayerNorm.bias": shard})
    safetensors.save_file(safetensors.load_file(folder / SHARD), outside, metadata={"format": "pt"})
    torch.save(safetensors.load_file(folder / SHARD), folder / "x.bin")
    torch.save(safetensors.load_file(folder / SHARD), folder / "x.safetensors.bin")
    if shard.startswith("link"):
        (folder / "link.safetensors").symlink_to(outside)
    (folder / "in").symlink_to(tmp_path)
    nothing_is_read(monkeypatch)
    with refused(str(folder), reason):
        load(str(folder))


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("file", ["model.safetensors", "config.json", "tokenizer.json"])
def test_a_file_that_is_a_link_to_elsewhere_is_refused(tmp_path, monkeypatch, file):
    folder = save(tiny_bert(), tmp_path / "model")
    (folder / file).rename(tmp_path / file)
    (folder / file).symlink_to(tmp_path / file)
    nothing_is_read(monkeypatch)
    with refused(str(folder), f"'{file}' leads out of the folder; put a copy there instead"):
        load(str(folder))


@pytest.mark.usefixtures("no_network")
def test_a_hub_keeps_the_files_beside_the_folder(tmp_path):
    folder = save(tiny_bert(), tmp_path / "snapshots" / "0")
    (tmp_path / "blobs").mkdir()
    (folder / "model.safetensors").rename(tmp_path / "blobs" / "1")
    (folder / "model.safetensors").symlink_to(tmp_path / "blobs" / "1")
    load(str(folder))
    (folder / "config.json").rename(tmp_path / "snapshots" / "config.json")  # of this hub, and no file of the model
    (folder / "config.json").symlink_to(tmp_path / "snapshots" / "config.json")
    with refused(str(folder), "'config.json' leads out of the folder; put a copy there instead"):
        load(str(folder))


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize(
    "said",
    [
        {"_attn_implementation": "owner/repo"},
        {"_attn_implementation": "sdpa"},
        {"attn_implementation": "owner/repo"},
        {"_attn_implementation_internal": "owner/repo:kernel"},
        {"_experts_implementation": "owner/repo"},
        {"transformers_weights": "../other.safetensors"},
        {"transformers_weights": "adapter_model.bin"},
        {"fusion_config": {"patch_embeddings": True}},
        {"kernel_config": {"a": "owner/repo"}, "use_kernels": True},
        {"return_dict": False},
        {"auto_map": {"AutoModel": "owner/repo--mine.Model", "AutoConfig": "owner/repo--mine.Config"}},
        {"sub": [{"_attn_implementation": "owner/repo"}]},
    ],
)
def test_a_configuration_says_nothing_of_files_and_code(tmp_path, monkeypatch, said):
    theirs = tiny_bert().eval()
    configure(save(theirs, tmp_path), **said)
    monkeypatch.setattr(torch, "load", lambda *arguments, **options: pytest.fail("unpickled"))
    model, _ = load(str(tmp_path))
    assert model.config._attn_implementation == "eager" and "owner/repo" not in repr(model.config)
    torch.testing.assert_close(model(TOKENS).last_hidden_state, theirs(TOKENS).last_hidden_state)


@pytest.mark.usefixtures("no_network")
def test_what_another_place_would_have_to_complete_is_refused(tmp_path):
    configure(save(tiny_bert(), tmp_path / "quantised"), quantization_config={"quant_method": "fp8"})
    with refused(str(tmp_path / "quantised"), r"its weights are quantised \(quantization_config\); take a copy .*"):
        load(str(tmp_path / "quantised"))
    save(tiny_bert(), tmp_path / "adapter")
    (tmp_path / "adapter" / "adapter_config.json").write_text('{"base_model_name_or_path": "owner/repo"}')
    with refused(str(tmp_path / "adapter"), "it holds an adapter, whose model is elsewhere; merge the two, .*"):
        load(str(tmp_path / "adapter"))


LARGER = "its configuration asks for a far larger model than its files hold, .*"


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize(
    ("build", "said", "reason"),
    [
        *((build, {name: 10**9}, f"its configuration has {name} = 1000000000, far more than its files hold")
          for build, name in ((tiny_bert, "num_hidden_layers"), (lambda: tiny_gpt(2), "n_layer"),
                              (tiny_llama, "num_hidden_layers"), (tiny_bert, "num_labels"))),
        (tiny_bert, {"num_hidden_layers": 1000}, LARGER),
        (tiny_bert, {"hidden_size": 6 * 10**8}, LARGER),
        (tiny_bert, {"intermediate_size": 10**9}, LARGER),
        (tiny_bert, {"vocab_size": 10**9}, LARGER),
        (tiny_bert, {"max_position_embeddings": 10**9}, LARGER),
        (tiny_llama, {"intermediate_size": 10**8}, LARGER),
        (lambda: tiny_gpt(2), {"n_positions": 10**9}, LARGER),
    ],
)  # fmt: skip
def test_a_model_much_larger_than_its_files_is_refused_before_it_is_built(tmp_path, monkeypatch, build, said, reason):
    configure(save(build(), tmp_path), **said)
    monkeypatch.setattr(transformers.AutoModel, "from_pretrained", lambda *_, **__: pytest.fail("built"))
    start = time.perf_counter()
    with refused(str(tmp_path), reason):
        load(str(tmp_path))
    assert time.perf_counter() - start < 10
    hooks = torch.nn.modules.module._global_parameter_registration_hooks
    assert not hooks and not torch.nn.modules.module._global_buffer_registration_hooks


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


NEVER_FETCHED = [
    "modeling_mine.py",
    "pytorch_model.bin",
    "pytorch_model-00001-of-00002.bin",
    "model.pkl",
    "onnx/model.onnx",
]


def test_a_hub_that_knows_the_name_is_asked_for_the_rest(tmp_path, monkeypatch):
    """For data: neither for code nor for pickles."""
    save(tiny_bert(), tmp_path)
    asked = []

    def fetch(name, ignore_patterns, local_files_only):
        asked.append((name, local_files_only))
        assert not list(huggingface_hub.utils.filter_repo_objects(NEVER_FETCHED, ignore_patterns=ignore_patterns))
        files = [path.name for path in tmp_path.iterdir()]
        assert list(huggingface_hub.utils.filter_repo_objects(files, ignore_patterns=ignore_patterns)) == files
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", lambda self, name, timeout: None)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetch)
    assert type(load("someone/some-model")[0]).__name__ == "BertModel"
    assert asked == [("someone/some-model", False)]


def test_no_error_has_two_lines():
    assert hub.one_line(OSError("one\r\ntwo")) == "OSError: one" and hub.one_line(KeyError()) == "KeyError"
