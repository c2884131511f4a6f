"""What the comparison of outputs overlooks: what differs from machine to machine, and nothing that a chapter says."""

import re
from pathlib import Path

import nbformat
import pytest
from nbval.plugin import get_sanitize_patterns

import notebooks

TEXT = Path(notebooks.__file__).with_name("nbval.sanitize").read_text(encoding="utf-8")
PATTERNS = get_sanitize_patterns(TEXT)
FIGURE = """\
<svg class="plot" height="2.5">
 <path d="M {0} {0}"/>
</svg>
"""


def sanitised(text):
    for regex, replace in PATTERNS:
        text = re.sub(regex, replace, text)
    return text


def test_nbval_reads_every_pattern():
    assert len(PATTERNS) == len(re.findall(r"(?m)^\[.*\]$", TEXT)) > 0


@pytest.mark.parametrize(
    ("here", "elsewhere"),
    [
        ("<function f at 0x7f3a5c01d2b0>", "<function f at 0x10a3c4e50>"),
        ("/some/where/ipykernel_17/2041.py:3: UserWarning", "C:\\Temp\\ipykernel_8\\99.py:3: UserWarning"),
        (FIGURE.format("1.470001"), FIGURE.format("1.470002")),
    ],
)
def test_what_differs_between_machines_goes(here, elsewhere):
    assert sanitised(here) == sanitised(elsewhere)


@pytest.mark.parametrize(
    "text",
    [
        "tightness 0.999999, error 2e-13, 134515008 parameters",
        "-0.25 ± 0.031 over 5 seeds",
        "0x1f, 640x360, deadbeef, facade",
        "smalltorch/spectral.py:12: UserWarning: rtol=1e-09 is out of reach",
        "<table><tr><td>1.47</td></tr></table>",
        "‖A‖ < √n, and n > 1",
        "figure: 3 lines, 0 shapes, 24 points, digest 1f3a5c01",
        '<svg xmlns="http://www.w3.org/2000/svg" class="drawn"><text x="1.5">W</text></svg>',
        "12 claims settled, 31 checks executed, 31 declared.",
    ],
)
def test_what_is_said_stays(text):
    assert sanitised(text) == text


def texts(output):
    """What an output says, figures aside; a record is looked at as one text."""
    data = {kind: value for kind, value in output.get("data", {}).items() if kind != "image/svg+xml"}
    return [output.get("text", ""), *map(str, data.values())]


def test_the_outputs_of_this_book_stay_but_for_figures():
    for path in notebooks.all_notebooks():
        for cell in nbformat.read(path, 4).cells:
            for output in cell.get("outputs", ()):
                assert list(map(sanitised, texts(output))) == texts(output), path


def test_every_figure_of_this_book_is_known_as_one():
    """What is drawn is compared by its digest; how it is drawn is not."""
    shown = [o for p in notebooks.all_notebooks() for c in nbformat.read(p, 4).cells for o in c.get("outputs", ())]
    data = [output.get("data", {}) for output in shown]
    figures = [found["image/svg+xml"] for found in data if str(found.get("text/plain", "")).startswith("figure: ")]
    assert len(figures) > 40 and {sanitised(svg) for svg in figures} == {"SVG"}
