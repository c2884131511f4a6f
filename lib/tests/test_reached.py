"""What tests reach is noted: guards and defaults of the library, by names that do not change where lines move."""

import inspect
import sys
from pathlib import Path

import pytest
import torch

import guards
from smalltorch import attention
from smalltorch.attention import MultiHead, softmax
from smalltorch.engine.derive import Derivation
from smalltorch.figures.draw import line

ROOT = Path(__file__).resolve().parents[2]
HEARD = []


def listen(event, arguments):
    if event == guards.EVENT and HEARD:
        HEARD[-1].add(arguments[0])


@pytest.fixture
def heard():
    if not HEARD:
        sys.addaudithook(listen)  # there is no way to remove it
    HEARD.append(set())
    yield HEARD[-1]
    HEARD.append(set())


def test_a_guard_is_noted_when_it_raises(heard, unenforced):
    softmax(torch.ones(3))
    assert "lib/smalltorch/attention.py softmax raise 1" not in heard
    with pytest.raises(ValueError):
        softmax(torch.ones(3, dtype=torch.int64))
    found = {name for name in heard if " raise " in name}
    assert len(found) == 1 and found < {guard.name for path in ROOT.glob("lib/smalltorch/*.py") for guard in
                                        guards.guards(path.read_text(), path.relative_to(ROOT).as_posix())}  # fmt: skip


def test_a_default_is_noted_when_it_is_used(heard):
    name = "lib/smalltorch/attention.py softmax(dim)"
    softmax(torch.ones(3), -1), softmax(torch.ones(3), dim=-1)
    assert name not in heard
    softmax(torch.ones(3))
    assert name in heard


def test_defaults_beside_any_number_of_arguments_and_of_methods_are_noted(heard):
    line((0, 0), (1, 1), dashed=True)
    assert "lib/smalltorch/figures/draw.py line(dashed)" not in heard
    line((0, 0), (1, 1), (2, 2))
    MultiHead(4, 2, bias=True)
    noted = {name.partition(" ")[2] for name in heard}
    assert "line(dashed)" in noted and "MultiHead.__init__(kv_heads)" in noted
    assert "MultiHead.__init__(bias)" not in noted


def test_what_is_marked_is_the_same_code():
    """Line by line, so that a traceback leads to the place."""
    assert inspect.getsource(attention) == (ROOT / "lib/smalltorch/attention.py").read_text()
    with pytest.raises(Exception, match="nothing was derived") as caught:
        _ = Derivation("it", scope="a test").conclusion
    place = caught.traceback[-1]
    assert "raise StepError" in Path(place.path).read_text().splitlines()[place.lineno]
