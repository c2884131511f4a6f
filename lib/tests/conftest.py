"""One thread, fixed seeds, and the annotations of the whole library enforced while the tests run."""

from types import SimpleNamespace

import jaxtyping
import pytest
import reached
import torch
from hypothesis import register_random, settings

torch.set_num_threads(1)

jaxtyping.install_import_hook("smalltorch", "typecheck.typecheck")  # before anything imports the library
reached.install()


class TorchRandom:
    """Torch's generator, for Hypothesis to seed before every example: a failure can then be repeated and shrunk."""

    seed = staticmethod(torch.manual_seed)
    getstate = staticmethod(torch.get_rng_state)
    setstate = staticmethod(torch.set_rng_state)


register_random(TorchRandom)
settings.register_profile("smalltorch", derandomize=True, deadline=None, max_examples=50)
settings.load_profile("smalltorch")


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.fixture
def unenforced():
    """The library as a user meets it: annotations are not enforced, so that its own errors show."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture
def float64_llama(monkeypatch):
    """Transformers' LLaMA computes norms and angles in float32 whatever its weights are; here, in float64."""
    modeling_llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    names = {**vars(torch), "float32": torch.float64, "float": torch.float64}
    monkeypatch.setattr(modeling_llama, "torch", SimpleNamespace(**names))
