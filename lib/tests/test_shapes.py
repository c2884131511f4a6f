import re

import pytest
import torch

from smalltorch.attention import causal_mask
from smalltorch.norm import rms_norm
from smalltorch.shapes import check_finite, check_shapes

x = torch.zeros


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
    with pytest.raises(ValueError, match=re.escape(message)):
        check_shapes(**arguments)


def test_size_one_broadcasts_where_marked():
    check_shapes(X=(x(2, 3), "n d"), m=(x(1, 3), "#n #d"), empty=(x(0, 2, 3), "... n d"))


def test_finite():
    check_finite(X=x(2, 0), Y=x(3))
    with pytest.raises(ValueError, match=re.escape("Y: expected finite entries, got nan at (1, 0)")):
        check_finite(X=x(2), Y=torch.tensor([[0.0], [torch.nan]]))
    with pytest.raises(ValueError, match=re.escape("X: expected finite entries, got -inf at (2,)")):
        check_finite(X=torch.tensor([0.0, 0.0, -torch.inf]))


def test_annotations_are_enforced_in_tests():
    with pytest.raises(Exception, match="jaxtyping|type") as error:
        rms_norm(x(2, 3), x(4))
    assert type(error.value).__name__ == "TypeCheckError"
    assert causal_mask(2).dtype == torch.bool
