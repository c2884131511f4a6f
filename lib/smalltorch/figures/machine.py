"""The diagram of the whole model, from a text to its next token, as SVG.

Chapter `overview` shows it; a later chapter shows it in small, with its own part marked. Within a page of the book it
takes on the page's colours; elsewhere it is dark on nothing.
"""

from smalltorch.figures.draw import Drawing, arrow, box, drawing, line, note, plus
from smalltorch.shapes import check_choice

# What can be marked, and what is said of it.
PARTS = {
    "tokens": "the tokens",
    "embedding": "the embedding",
    "residual": "the residual sums",
    "norm": "the norms",
    "attention": "attention",
    "ffn": "the feed-forward network",
    "logits": "the logits",
    "probabilities": "the probabilities",
    "choice": "the choice of the next token",
}
DESCRIPTION = (
    "From top to bottom on the left: a text is cut into tokens; an embedding makes a row of d numbers of each; L blocks"
    " change these rows; a norm and the readout make a score for every token of the vocabulary of them; softmax makes "
    "probabilities of the scores; one token is chosen, appended to the text, and all begins anew. On the right one "
    "block is opened: beside a straight path run a norm and attention, in which the tokens read each other, and what "
    "comes of it is added to the path; then a norm and a feed-forward network, which treats each token by itself, and "
    "this is added as well."
)
WIDTH, HEIGHT = 440, 574
LARGE, SMALL = 1.35, 0.75  # times this size, without a mark and with one


def machine(mark: str | None = None) -> Drawing:
    """The machine from a text to its next token; with `mark`, one of PARTS, in small and with this part in colour.

        >>> machine("attention")
        a drawing: The whole machine; marked: attention

    Raises:
        ValueError: if there is no such part.
    """
    check_choice((None, *PARTS), mark=mark)
    title = "The whole machine" + (f"; marked: {PARTS[mark]}" if mark else "")
    size = SMALL if mark else LARGE
    shapes = [f'<g class="{"here" if part == mark else part}">{drawn}</g>' for part, drawn in _parts()]
    return drawing(title, DESCRIPTION, WIDTH, HEIGHT, *shapes, scale=size)


def _parts() -> list[tuple[str, str]]:
    """What belongs to which part; "" is what cannot be marked. Lengths are in units of the drawing."""
    left, path, beside = 100, 252, 346  # the middles of the column, of the path and of what stands beside it
    steps = (34, 50), (84, 104), (138, 166), (308, 330), (364, 384), (418, 438), (496, 516)
    flow = [arrow((left, start), (left, end)) for start, end in steps]
    blocks = [box(left, y, name) for y, name in ((168, "block 1"), (208, "block 2"), (274, "block L"))]
    dots = [f'<circle class="solid" cx="{left}" cy="{y}" r="1.6"/>' for y in (253, 259, 265)]
    opened = '<rect x="216" y="112" width="218" height="352" rx="8"/>'
    zoom = line((175, 208), (216, 112), dashed=True) + line((175, 242), (216, 464), dashed=True)
    straight = arrow((path, 130), (path, 460))
    ways = [_way(path, beside, start, end) for start, end in ((142, 276), (300, 434))]
    again = arrow((25, 533), (10, 533), (10, 20), (34, 20))
    return [
        ("", "".join([*flow, *blocks, *dots, opened, zoom, straight, *ways, again])),
        ("", note(left + 6, 24, "“… keeper lights the”") + note(path + 74, 480, "n × d in, n × d out")),
        ("", note(path + 74, 102, "one block, opened") + note(left, 564, "append it, and begin anew")),
        ("tokens", box(left, 50, "tokens", "n numbers")),
        ("embedding", box(left, 104, "embedding", "n × d")),
        ("norm", box(left, 330, "norm") + "".join(box(beside, y, "norm", width=140) for y in (162, 320))),
        ("attention", box(beside, 208, "attention", "tokens read each other", 140, 44)),
        ("ffn", box(beside, 366, "feed-forward", "each token by itself", 140, 44)),
        ("residual", "".join(plus(path, y) for y in (276, 434))),
        ("logits", box(left, 384, "logits", "n × V")),
        ("probabilities", box(left, 438, "", height=58) + _bars(left, 474) + note(left, 490, "probabilities")),
        ("choice", box(left, 516, "next token", "“way”")),
    ]


def _way(path: int, beside: int, start: int, end: int) -> str:
    """From the path at `start` through two boxes beside it, and back to its sum at `end`."""
    first, second = start + 20, start + 66  # the boxes' upper edges; they are 34 and 44 high
    in_ = arrow((path, start), (beside, start), (beside, first))
    out = arrow((beside, second + 44), (beside, end), (path + 9, end))
    return in_ + arrow((beside, first + 34), (beside, second)) + out


def _bars(x: int, foot: int) -> str:
    heights = (5, 9, 30, 7, 12, 4, 3)
    bars = [f"M{x + 12 * k} {foot}v-{h}h8v{h}z" for k, h in enumerate(heights, start=-len(heights) // 2 + 1)]
    return f'<path class="solid" d="{"".join(bars)}"/>'
