"""One thread, fixed seeds, and the shapes in the annotations enforced while the tests run."""

import jaxtyping
import pytest
import torch
from hypothesis import register_random, settings

torch.set_num_threads(1)

# Installed before anything imports the library. The symbolic modules have no shapes: checks would only slow them.
TENSOR_MODULES = [
    "shapes",
    "attention",
    "norm",
    "block",
    "models",
    "weights",
    "spectral",
    "measure",
    "collapse",
    "source",
    "generate",
    "train",
]
jaxtyping.install_import_hook([f"smalltorch.{module}" for module in TENSOR_MODULES], "beartype.beartype")


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
