"""The one large drawing of the book: the machine from a text to its next token, as SVG.

Chapter `overview` shows it; a later chapter shows it in small, with its own part marked. Within a page of the book it
takes on the page's colours; elsewhere it is dark on nothing.
"""

from typing import NamedTuple

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
STYLE = """\
.drawn{max-width:100%;height:auto}
.drawn text{font:13px system-ui,sans-serif;text-anchor:middle;fill:var(--pst-color-text-base,#222832)}
.drawn .note{font-size:11px;fill:var(--pst-color-text-muted,#48566b)}
.drawn :is(path,rect,circle){fill:none;stroke:var(--pst-color-text-muted,#48566b);stroke-width:1.2}
.drawn .box{fill:var(--pst-color-surface,#f3f4f5)}
.drawn .solid{fill:var(--pst-color-text-muted,#48566b);stroke:none}
.drawn .zoom{stroke-dasharray:2 4}
.drawn .here .box{fill:var(--drawn-here,#ffe2b8);stroke:var(--drawn-edge,#b45309);stroke-width:2.5}"""


class Drawing(NamedTuple):
    """An SVG and its title."""

    svg: str
    title: str

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"a drawing: {self.title}"


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
    return Drawing(
        f'<svg xmlns="http://www.w3.org/2000/svg" class="drawn" role="img" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{size * WIDTH:.0f}" height="{size * HEIGHT:.0f}"><title>{title}</title><desc>{DESCRIPTION}</desc>'
        f"<style>{STYLE}</style>{''.join(shapes)}</svg>",
        title,
    )


def _parts() -> list[tuple[str, str]]:
    """What belongs to which part; "" is what cannot be marked. Lengths are in units of the drawing."""
    left, path, beside = (
        100,
        252,
        346,
    )  # the middles of the column on the left, of the path and of what stands beside it
    flow = [_arrow(left, *ends) for ends in ((34, 50), (84, 104), (138, 166), (308, 330), (364, 384), (418, 438))]
    blocks = [_box(left, y, name) for y, name in ((168, "block 1"), (208, "block 2"), (274, "block L"))]
    dots = [f'<circle class="solid" cx="{left}" cy="{y}" r="1.6"/>' for y in (253, 259, 265)]
    opened = '<rect x="216" y="112" width="218" height="352" rx="8"/>'
    zoom = '<path class="zoom" d="M175 208L216 112M175 242L216 464"/>'
    straight = f'<path d="M{path} 130V460"/>{_head(path, 460)}'
    ways = [_way(path, beside, start, end) for start, end in ((142, 276), (300, 434))]
    again = f'<path d="M25 533H10V20H34"/>{_head(34, 20, "right")}'
    return [
        ("", "".join([*flow, _arrow(left, 496, 516), *blocks, *dots, opened, zoom, straight, *ways, again])),
        ("", _note(left + 6, 24, "“… keeper lights the”") + _note(path + 74, 480, "n × d in, n × d out")),
        ("", _note(path + 74, 102, "one block, opened") + _note(left, 564, "append it, and begin anew")),
        ("tokens", _box(left, 50, "tokens", "n numbers")),
        ("embedding", _box(left, 104, "embedding", "n × d")),
        ("norm", _box(left, 330, "norm") + "".join(_box(beside, y, "norm", width=140) for y in (162, 320))),
        ("attention", _box(beside, 208, "attention", "tokens read each other", 140, 44)),
        ("ffn", _box(beside, 366, "feed-forward", "each token by itself", 140, 44)),
        ("residual", "".join(_plus(path, y) for y in (276, 434))),
        ("logits", _box(left, 384, "logits", "n × V")),
        ("probabilities", _box(left, 438, "", height=58) + _bars(left, 474) + _note(left, 490, "probabilities")),
        ("choice", _box(left, 516, "next token", "“way”")),
    ]


def _box(x: int, y: int, name: str, note: str = "", width: int = 150, height: int = 34) -> str:
    """A box with its name, from y down, with x in its middle."""
    rect = f'<rect class="box" x="{x - width // 2}" y="{y}" width="{width}" height="{height}" rx="5"/>'
    middle = y + height // 2 + (-2 if note else 5)
    return rect + f'<text x="{x}" y="{middle}">{name}</text>' + (_note(x, middle + 14, note) if note else "")


def _note(x: int, y: int, words: str) -> str:
    return f'<text class="note" x="{x}" y="{y}">{words}</text>'


def _arrow(x: int, start: int, end: int) -> str:
    return f'<path d="M{x} {start}V{end}"/>{_head(x, end)}'


def _head(x: int, y: int, to: str = "down") -> str:
    """The head of an arrow, its point at (x, y)."""
    back = {"down": "l-4 -7h8", "right": "l-7 -4v8", "left": "l7 -4v8"}[to]
    return f'<path class="solid" d="M{x} {y}{back}z"/>'


def _way(path: int, beside: int, start: int, end: int) -> str:
    """From the path at `start` through two boxes beside it, and back to its sum at `end`."""
    first, second = start + 20, start + 66  # the boxes' upper edges; they are 34 and 44 high
    lines = f"M{path} {start}H{beside}V{first}M{beside} {first + 34}V{second}M{beside} {second + 44}V{end}H{path + 9}"
    heads = _head(beside, first) + _head(beside, second) + _head(path + 9, end, "left")
    return f'<path d="{lines}"/>{heads}'


def _plus(x: int, y: int) -> str:
    return f'<circle class="box" cx="{x}" cy="{y}" r="9"/><path d="M{x - 5} {y}h10m-5 -5v10"/>'


def _bars(x: int, foot: int) -> str:
    heights = (5, 9, 30, 7, 12, 4, 3)
    bars = [f"M{x + 12 * k} {foot}v-{h}h8v{h}z" for k, h in enumerate(heights, start=-len(heights) // 2 + 1)]
    return f'<path class="solid" d="{"".join(bars)}"/>'
