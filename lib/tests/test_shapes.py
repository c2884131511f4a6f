import ast
import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.func import grad, jacrev, vmap

from smalltorch import shapes
from smalltorch.attention import causal_mask
from smalltorch.norm import rms_norm
from smalltorch.shapes import (
    check_choice,
    check_finite,
    check_floats,
    check_integers,
    check_mask,
    check_numbers,
    check_range,
    check_shapes,
    check_tokens,
    check_type,
    largest,
)

x = torch.zeros


def says(message):
    return pytest.raises(ValueError, match=f"^{re.escape(message)}")


def test_returns_the_sizes_by_name():
    sizes = check_shapes(Q=(x(2, 3, 5, 8), "... query d_h"), K=(x(3, 7, 8), "... key d_h"), g=(x(8), "d_h"))
    assert sizes == {"query": 5, "d_h": 8, "key": 7}


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(X=([1.0], "n d")), "X: expected a tensor of shape (n, d), got list"),
        (dict(X=(None, "n d")), "X: expected a tensor of shape (n, d), got NoneType"),
        (dict(X=(x(3), "... n d")), "X: expected shape (..., n, d), got (3,)"),
        (dict(X=(x(2, 3, 4), "n d")), "X: expected shape (n, d), got (2, 3, 4)"),
        (dict(X=(x(2, 3), "n 4")), "X: expected shape (n, 4), got (2, 3)"),
        (dict(X=(x(2, 3), "n n")), "X: expected shape (n, n), got (2, 3)"),
        (dict(X=(x(2, 3), "n d"), g=(x(1), "d")), "g: expected shape (d=3), got (1,)"),
        (dict(X=(x(2, 3), "n d"), m=(x(2, 2), "#n #d")), "m: expected shape (n=2 or 1, d=3 or 1), got (2, 2)"),
        (
            dict(X=(x(5, 2, 3), "... n d"), Y=(x(4, 2, 3), "... n d")),
            "Y: expected leading axes that broadcast with (5,), got shape (4, 2, 3)",
        ),
    ],
)
def test_names_the_argument_and_what_was_expected(arguments, message):
    with says(message):
        check_shapes(**arguments)


def test_size_one_broadcasts_where_marked():
    check_shapes(X=(x(2, 3), "n d"), m=(x(1, 3), "#n #d"), empty=(x(0, 2, 3), "... n d"))


def test_finite():
    check_finite(X=x(2, 0), Y=x(3))
    with pytest.raises(ValueError, match=re.escape("Y: expected finite entries, got nan at (1, 0)")):
        check_finite(X=x(2), Y=torch.tensor([[0.0], [torch.nan]]))
    with pytest.raises(ValueError, match=re.escape("X: expected finite entries, got -inf at (2,)")):
        check_finite(X=torch.tensor([0.0, 0.0, -torch.inf]))

    with says("X: expected entries that can be read, got a tensor on meta"):
        check_finite(X=x(2, device="meta"))


# --- dtypes and devices --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(X=(x(2, 3).int(), "n d")), "X: expected floating-point entries, got torch.int32"),
        (dict(X=(x(2, 3).bool(), "n d")), "X: expected floating-point entries, got torch.bool"),
        (dict(X=(x(2, 3).cfloat(), "n d")), "X: expected floating-point entries, got torch.complex64"),
        (
            dict(X=(x(2, 3), "n d"), g=(x(3).half(), "d")),
            "g: expected entries of torch.float32 on cpu, as in X, got torch.float16 on cpu",
        ),
        (
            dict(X=(x(2, 3), "n d"), g=(x(3, device="meta"), "d")),
            "g: expected entries of torch.float32 on cpu, as in X, got torch.float32 on meta",
        ),
        (dict(X=(x(4, 0, 3), "... n d")), "X: expected no empty axis in (..., n, d), got (4, 0, 3)"),
        (dict(X=(x(2), "... n d")), "X: expected shape (..., n, d), got (2,)"),
    ],
)
def test_floats_are_of_one_kind_and_not_empty(arguments, message):
    with says(message):
        check_floats(**arguments)


def test_a_batch_may_be_empty():
    assert check_floats(X=(x(0, 2, 3), "... n d")) == {"n": 2, "d": 3}
    assert check_tokens(t=(x(0, 3).long(), "batch n", 5)) == {"batch": 0, "n": 3}


# --- tokens --------------------------------------------------------------------------------------------------------

TOKENS = torch.tensor([[3, 0, 4], [1, 1, 2]])


@pytest.mark.parametrize(
    "tokens, message",
    [
        (TOKENS.float(), "t: expected integers of torch.int64, got torch.float32"),
        (TOKENS.byte(), "t: expected integers of torch.int64, got torch.uint8"),  # as an index it would be a mask
        (TOKENS[0], "t: expected shape (batch, n), got (3,)"),
        (TOKENS[:, :0], "t: expected at least one token per row, got shape (2, 0)"),
        (TOKENS.to("meta"), "t: expected entries that can be read, got a tensor on meta"),
        (TOKENS - 1, "t: expected tokens from 0 to 4, got -1"),
        (TOKENS + 1, "t: expected tokens from 0 to 4, got 5"),
        ([[1, 2]], "t: expected a tensor of shape (batch, n), got list"),
    ],
)
def test_bad_tokens_are_named(tokens, message):
    with says(message):
        check_tokens(t=(tokens, "batch n", 5))


def test_a_vocabulary_may_be_unknown():
    assert check_tokens(t=(TOKENS + 100, "batch n", None)) == {"batch": 2, "n": 3}
    with says("t: expected tokens from 0 on, got -1"):
        check_tokens(t=(TOKENS - 1, "batch n", None))


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("bad", [-1, 5])
def test_tokens_are_seen_inside_vmap(bad, axis):
    """The tokens of one sample only are bad, and no sample shows it by its shape."""

    def tried(E, tokens):
        check_tokens(t=(tokens, "n", len(E)))
        return E[tokens].sum()

    E, tokens = torch.randn(5, 4), torch.randint(5, (3, 3))
    expected = torch.stack([E[t].sum() for t in tokens.movedim(axis, 0)])
    torch.testing.assert_close(vmap(tried, (None, axis))(E, tokens), expected)
    twice = vmap(vmap(tried, (0, None)), (None, axis))(E[None], tokens)
    torch.testing.assert_close(twice[:, 0], expected)
    assert vmap(grad(tried), (None, axis))(E, tokens).shape == (3, 5, 4)
    assert jacrev(tried)(E, tokens[0]).shape == (5, 4)
    tokens[1, 2] = bad
    for transformed in (vmap(tried, (None, axis)), vmap(grad(tried), (None, axis))):
        with says(f"t: expected tokens from 0 to 4, got {bad}"):
            transformed(E, tokens)


# --- masks ---------------------------------------------------------------------------------------------------------


@given(st.lists(st.sampled_from([1, 2, 3, 4]), max_size=5), st.booleans())
def test_a_mask_never_enlarges_the_scores(shape, pairs):
    for scores in ((3, 2, 4, 4), (4, 2, 4, 4), (4, 4)):  # in the second, (batch, key) looks like (query, key)
        mask = torch.ones(shape, dtype=torch.bool)
        allowed = len(shape) == len(scores) or (pairs and len(shape) == 2)
        try:
            fits = allowed and torch.broadcast_shapes(shape, scores) == scores
        except RuntimeError:
            fits = False
        if fits and len(scores) == 4 == scores[0] and tuple(shape) == (4, 4):
            with says("mask: expected all axes (4, 2, 4, 4), for two could be (query, key) or (batch, key), got two"):
                check_mask(mask, scores, mask.device, pairs=pairs)
            check_mask(mask.tril(), scores, mask.device, pairs=pairs)
        elif fits:
            check_mask(mask, scores, mask.device, pairs=pairs)
        else:
            with pytest.raises(ValueError, match="^mask: expected shape .*, got .*; a padding mask .* is written mask"):
                check_mask(mask, scores, mask.device, pairs=pairs)


def test_bad_masks_are_named():
    scores, cpu = (2, 2, 5, 5), torch.device("cpu")
    with says("m: expected a boolean tensor, True where a query may attend, got torch.float32"):
        check_mask(x(5, 5), scores, cpu, "m")
    with says("mask: expected a boolean tensor, True where a query may attend, got list"):
        check_mask([[True]], scores, cpu)
    with says("mask: expected a tensor on cpu, got one on meta"):
        check_mask(x(2, 2, 5, 5, device="meta").bool(), scores, cpu)
    with pytest.raises(ValueError, match=r"got \(5, 5\); .* and one \(query, key\) for all mask\[None, None\]$"):
        check_mask(causal_mask(5), scores, cpu)
    check_mask(causal_mask(5)[None, None], scores, cpu)


# --- what to try instead -------------------------------------------------------------------------------------------

heads = (2, 4, 7, 3)  # (batch, head, key, d_h)
SLIPS = {  # what each message says, the argument, and the check
    "A.mT": (x(3, 7), lambda A: check_shapes(Q=(x(5, 3), "query d_h"), A=(A, "... key d_h"))),
    "A.transpose(-3, -2)": (x(2, 7, 4, 3), lambda A: check_shapes(Q=(x(heads), "... query d_h"), A=(A, "... key d_h"))),
    "A[None]": (x(5).long(), lambda A: check_tokens(A=(A, "batch n", 9))),
    "A.squeeze()": (x(1, 3), lambda A: check_shapes(X=(x(2, 3), "n d"), A=(A, "d"))),
    "A[0]": ((x(2, 3), x(2, 2)), lambda A: check_shapes(A=(A, "n d"))),
    "torch.stack(A)": ([x(3), x(3)], lambda A: check_shapes(A=(A, "n d"))),
    "torch.as_tensor(A)": (np.ones((2, 3)), lambda A: check_floats(A=(A, "n d"))),
    "A.float()": (x(3).int(), lambda A: check_floats(A=(A, "d"))),
    "A.to(torch.float64)": (x(3), lambda A: check_floats(X=(x(2, 3).double(), "n d"), A=(A, "d"))),
    "A.to(torch.float16)": (x(3).int(), lambda A: check_floats(X=(x(2, 3).half(), "n d"), A=(A, "d"))),
    "A.long()": (x(2, 3), lambda A: check_tokens(A=(A, "batch n", 9))),
    "A.bool()": (x(5, 5).int(), lambda A: check_mask(A, (5, 5), A.device, "A")),
    "A.bool(), or A == 0 if it is one to be added": (x(5, 5), lambda A: check_mask(A, (5, 5), A.device, "A")),
    "int(A)": (4.0, lambda A: check_integers(1, A=A)),
    "A.item()": (torch.tensor(0.5), lambda A: check_numbers(0, A=A)),
}


@pytest.mark.parametrize("said", SLIPS)
def test_what_a_message_says_can_be_typed(said):
    A, check = SLIPS[said]
    with pytest.raises(ValueError, match=f"^A: expected .*, got .*; try {re.escape(said)}$"):
        check(A)
    for typed in said.removesuffix(" if it is one to be added").split(", or "):
        check(eval(typed, {"A": A, "torch": torch}))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: check_shapes(A=(x(5, 4), "key 3")),
        lambda: check_shapes(A=(None, "n d")),
        lambda: check_shapes(X=(x(5, 2, 3), "... n d"), A=(x(4, 2, 3), "... n d")),
        lambda: check_floats(A=(x(3).cfloat(), "d")),
        lambda: check_floats(X=(x(3), "d"), A=(x(3, device="meta"), "d")),
        lambda: check_integers(1, A=2.5),
        lambda: check_integers(3, A=2.0),
        lambda: check_numbers(0, A=math.nan),
        lambda: check_type(int, A="3"),
    ],
)
def test_where_no_slip_explains_it_nothing_is_said(wrong):
    with pytest.raises(ValueError, match="^A: expected [^;]*, got [^;]*$"):
        wrong()


# --- entries -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_the_largest_entry(dtype):
    assert largest(torch.tensor([[1.0, -3.0], [2.0, 0.0]], dtype=dtype)) == 3
    assert largest(torch.tensor([1.0, -math.inf], dtype=dtype)) == math.inf
    for place in range(3):  # NaN wherever it stands
        value = torch.ones(3, dtype=dtype).index_fill(0, torch.tensor(place), math.nan)
        assert math.isnan(largest(value))
    assert largest(x(0, dtype=dtype)) == 0 == largest(x(2, dtype=dtype, device="meta"))


def test_overflow_is_refused_and_what_was_not_finite_spreads():
    big = torch.tensor([1e160], dtype=torch.float64)
    with says("Q, K, scale: expected sizes whose products torch.float64 can hold, got up to 1e+160 and 1e+160 and 2"):
        check_range(big * big, Q=big, K=-big, scale=-2.0)
    with says("Q: expected sizes"):
        vmap(lambda Q: check_range(Q * Q, Q=Q))(torch.stack([big / big, big]))
    for bad in (math.inf, math.nan):
        assert check_range(bad * big, Q=big, K=bad * big).isfinite().logical_not().all()
    assert check_range(big, Q=big) is big


# --- numbers -------------------------------------------------------------------------------------------------------


def test_what_is_checked_is_converted():
    """NumPy's integers wrap, and their floats round; so the checks return Python's own."""
    n, m = check_integers(1, n=np.int8(100), m=7)
    assert (type(n), n * n, type(m)) == (int, 10_000, int) and type(check_integers(0, k=np.uint8(3))) is int
    a, b, c = check_numbers(0, a=np.float16(0.5), b=np.int32(2**30), c=2)
    assert [type(x) for x in (a, b, c)] == [float, int, int] and b * b == 2**60
    for bad in (True, np.bool_(True), np.array(3), torch.tensor(3), 10**400, math.nan):
        with says("a: expected a finite number"):
            check_numbers(0, a=bad)
    with says("n: expected an integer of at least 1, got array(3); try int(n)"):
        check_integers(1, n=np.array(3))


def test_no_function_throws_away_what_was_converted():
    folder, checks = Path(shapes.__file__).parent, {"check_integers", "check_numbers"}
    for path in folder.rglob("*.py"):
        if path.parent.name in ("engine", "experiments"):  # numbers of their own, and of a command line
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                name = getattr(node.value.func, "id", "")
                names = [k.value for k in node.value.keywords if isinstance(k.value, ast.Name)]
                assert not (name in checks and names), f"{path.name}, line {node.lineno}: {ast.unparse(node)}"


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_tensors_that_are_not_dense_are_named():
    nested = torch.nested.nested_tensor([torch.eye(2), torch.eye(3)])
    for bad, kind in ((nested, "nested"), (torch.eye(2).to_sparse(), "torch.sparse_coo"), (x(2, 2), None)):
        for call in (lambda: check_floats(A=(bad, "n n")), lambda: check_type(torch.Tensor, A=bad)):  # noqa: B023
            if kind is None:
                call()
            else:
                with says(f"A: expected a dense tensor, got one that is {kind}; try A.to_"):
                    call()
    with says("mask: expected a dense tensor"):
        check_mask(torch.eye(2).bool().to_sparse(), (2, 2), torch.device("cpu"))


def test_numbers_in_their_range():
    check_integers(1, n=1, m=np.int64(3))
    check_numbers(0, eps=0, std=np.float32(0.5))
    check_numbers(-math.inf, scale=-1e300)
    for bad in (0, -1, 1.0, "1", None, True, torch.tensor(1)):
        with says(f"n: expected an integer of at least 1, got {bad!r}"):
            check_integers(1, m=1, n=bad)
    for bad in (-0.1, math.nan, math.inf, "1", None, True, torch.tensor(1.0)):
        with says(f"eps: expected a finite number of at least 0, got {bad!r}"):
            check_numbers(0, eps=bad)
    for bad in (-math.inf, math.inf, math.nan):
        with says(f"scale: expected a finite number, got {bad!r}"):
            check_numbers(-math.inf, scale=bad)


def test_choices_and_types():
    check_choice(("pre", "post", None), norm=None)
    check_type(int | str, n=3, name="a")
    with says("norm: expected 'pre' or 'post', got 'Pre'"):
        check_choice(("pre", "post"), norm="Pre")
    with says("rng: expected a Generator, got int"):
        check_type(np.random.Generator, rng=3)
    with says("n: expected a int or str, got list"):
        check_type(int | str, n=[])


def test_annotations_are_enforced_in_tests():
    with pytest.raises(Exception, match="jaxtyping|type") as error:
        rms_norm(x(2, 3), x(4))
    assert type(error.value).__name__ == "TypeCheckError"
    assert causal_mask(2).dtype == torch.bool
