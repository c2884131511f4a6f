"""What captions and alternative texts say of directions is what the stored figure draws."""

import matplotlib.pyplot as plt
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

import drawn
from smalltorch.figures.plot import figure
from smalltorch.figures.svg_export import picture


def notebook(alt="", caption="", scale="linear", kind="plot", points=(2.0, 1.5, 1.0), xs=(1, 2, 3)):
    fig, ax = figure()
    getattr(ax, kind)(xs, points)
    ax.set(yscale=scale, ylabel="rises from 5 to 9")
    output = new_output("display_data", {"image/svg+xml": picture(fig), "text/plain": "figure"})
    plt.close(fig)
    shown = {"figure": {"name": "fig-line", "caption": caption}, "image": {"alt": alt}}
    return new_notebook(cells=[new_code_cell("plot()", metadata={"mystnb": shown}, outputs=[output])])


@pytest.mark.parametrize("kind", ["plot", "scatter"])
@pytest.mark.parametrize("scale", ["linear", "log"])
@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ("It falls from 2 to 1.", ""),
        ("It falls from about 2.0 units over 1.5 to nearly 1.", ""),
        ("A falling line, down to 1.", ""),
        ("It decreases slowly.", ""),
        ("It falls from 200 to 100 per cent.", ""),
        ("It rises from 1 to 2.", "rises"),
        ("It falls from 1 to 2.", "falls from 1 to 2"),
        ("It falls from 3 to 1.", "falls from 3 to 1"),
        ("It falls from 2 to 0.5.", "falls from 2 to 0.5"),
        ("It grows.", "grows"),
        ("Rising against tokens from 1 to 3.", "Rising"),
    ],
)
def test_what_is_said_is_drawn(said, complaint, scale, kind):
    points, xs = [2.0, 1.5, 1.0], [1, 2, 3]
    if kind == "scatter":  # in whatever order
        points, xs = [1.5, 2.0, 1.0], [2, 1, 3]
    found = drawn.problems(notebook(said, scale=scale, kind=kind, points=points, xs=xs))
    assert found == ([f"fig-line: no line does what is said: {complaint}"] if complaint else [])


def test_an_axis_over_decades_is_read_and_a_line_that_turns_does_both():
    decades = notebook(
        "It falls from 0.01 to 0.000001 and rises from 0.000001 to 1.", "", "log", "plot", (1e-2, 1e-6, 1.0)
    )
    assert drawn.problems(decades) == []
    (found,) = drawn.problems(notebook("It falls from 0.1 to 0.000001.", "", "log", "plot", (1e-2, 1e-6, 1.0)))
    assert found.endswith("falls from 0.1 to 0.000001")
    (found,) = drawn.problems(notebook("It rises from 6.4 to 10.", "", "log", "plot", (1.0, 4.0, 10.0)))  # two ticks
    assert found.endswith("rises from 6.4 to 10")


def test_a_caption_may_say_what_grows_without_being_drawn_but_not_other_numbers():
    assert drawn.problems(notebook(caption="If the width grows, it falls from 2 to 1.")) == []
    assert drawn.problems(notebook(caption="It rises from 1 to 2.")) == ["fig-line: no line does what is said: rises"]


def test_where_no_line_is_drawn_nothing_is_held():
    empty = notebook("It rises.")
    empty.cells[0].outputs = []
    assert drawn.problems(empty) == drawn.problems(notebook()) == []
