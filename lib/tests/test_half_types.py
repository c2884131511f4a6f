"""float16 and bfloat16 are computed in float32 at least, and rounded once: one rule for all that takes floats."""

import copy

import pytest
import torch
from oracles.judge import draw, each_number
from oracles.kinds import HALF, Precision, Real
from oracles.table import ENTRIES

from smalltorch.shapes import computed_wide

pytestmark = pytest.mark.usefixtures("unenforced")

# By name or module: why half types need not give what float32 gives, rounded.
EXEMPT = {
    "source.Markov": "refuses all but float64",
    "collapse.sample_paths": "takes probabilities whose sum is 1 to six digits, which half types do not have",
    "curvature.largest_eigenvalue": "calls the caller's function, in float64",
    "spectral.attention_spectral_norm": "asks the fused kernel of the type, as it says: the result is an `Estimate`",
    "efficient.reversible.run_reversible": "calls the caller's layers, in their type",
    "shapes.look": "returns the entries themselves",
}
LARGE = {"n": 24, "query": 24, "key": 24, "t": 24, "d": 6, "d_h": 6}  # sums of more numbers than the oracles' few


def base(entry):
    return entry.name.partition(",")[0]


OF_FLOATS = [e for e in ENTRIES if any(isinstance(k, Real) or hasattr(k, "typed") for k in e.arguments.values())]
WEIGHTLESS = [e for e in OF_FLOATS if not any(isinstance(kind, Precision) for kind in e.arguments.values())]


def leaves(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from leaves(part)


def test_every_function_of_floats_is_tried_in_half_types_or_says_why_not():
    lacking = {base(entry) for entry in OF_FLOATS if not set(HALF) <= set(entry.dtypes)}
    assert sorted(lacking - EXEMPT.keys()) == []
    assert sorted(EXEMPT.keys() - {base(entry) for entry in ENTRIES}) == []


@pytest.mark.parametrize("dtype", HALF, ids=str)
@pytest.mark.parametrize("entry", WEIGHTLESS, ids=lambda entry: entry.name)
def test_half_types_give_what_float32_gives_rounded(entry, dtype):
    if base(entry) in EXEMPT:
        pytest.skip(EXEMPT[base(entry)])
    arguments, _ = draw(entry, dtype, **LARGE)
    wide = each_number(arguments, lambda x: x.float() if x.dtype == dtype else x)
    try:
        expected = list(leaves(entry.call(**copy.deepcopy(wide))))
    except ValueError:
        pytest.skip("larger arguments are outside of its domain")
    found = list(leaves(entry.call(**copy.deepcopy(arguments))))
    assert len(found) == len(expected)
    for half, full in zip(found, expected, strict=True):
        full = full.to(half.dtype).double()
        size = full[full.isfinite()].abs().amax() if full.isfinite().any() else 0
        assert torch.allclose(
            half.double(), full, rtol=0, atol=float(4 * torch.finfo(dtype).eps * size), equal_nan=True
        )


def test_the_decorator_widens_rounds_and_refuses():
    @computed_wide
    def doubled(X, parts=(), name="x"):
        assert X.dtype in (torch.float32, torch.float64) and name == "x"
        return 2 * X, [part + 1 for part in parts], X.argmax()

    X = torch.tensor([1.0, 3e4], dtype=torch.float16)
    twice, parts, place = doubled(X, parts=[X])
    assert twice.dtype == parts[0].dtype == torch.float16 and place == 1
    assert doubled(X.double())[0].dtype == torch.float64
    with pytest.raises(
        ValueError, match="^X: expected results that torch.float16 can hold, got others; try torch.float"
    ):
        doubled(2 * X)
    assert doubled(X * torch.inf)[0].isinf().all()  # what comes of the infinite may be so
    with pytest.raises(AssertionError):  # of two types nothing is widened: the function must refuse them
        doubled(X, parts=[X.bfloat16()])
