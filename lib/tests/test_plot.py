"""What a figure and a file of the book cannot be; how figures look is seen in the chapters."""

import math

import pytest

from smalltorch import data, plot


@pytest.mark.parametrize(
    "sizes", [{"width": 0}, {"width": math.nan}, {"height": -1}, {"height": math.inf}, {"columns": 0}]
)
def test_a_figure_has_a_size(sizes):
    ((name, size),) = sizes.items()
    with pytest.raises(ValueError, match=f"^{name}: expected a positive number, got {size}$"):
        plot.figure(**sizes)


def test_a_text_that_the_book_lacks_is_named():
    with pytest.raises(FileNotFoundError, match="^name: expected a file of the book's folder, got 'data/poem.txt'; "):
        data.text("poem")
