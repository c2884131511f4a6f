"""Hold what captions and alternative texts say of directions against the lines that the stored figures draw.

An alternative text that says “rises” needs a line that rises somewhere, and one, or a caption, that says “falls from 2
to 1” a line that does just that, in the numbers of its axis. (A caption may also say what grows without being drawn.)
Which of several lines is meant, and what is said of extremes, no picture tells: there `manifest.py` asks for the words
that change.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from nbformat import NotebookNode
from numpy.typing import NDArray

import pictures

G, PATH, TEXT, USE = (f"{{http://www.w3.org/2000/svg}}{tag}" for tag in ("g", "path", "text", "use"))
UP = r"r[io]s(?:es?|ing)|climb\w*|increas\w*|grow\w*|grew"
DIRECTION = re.compile(rf"\b(?:(?P<up>{UP})|f[ae]ll\w*|drop\w*|decreas\w*|declin\w*)\b", re.IGNORECASE)
NUMBER = r"(?:about |near |nearly |almost |above |below |just )*([-−]?\d[\d,]*(?:\.\d+)?)"
ENDS = re.compile(rf" (?:(?!against |over )\w+ ){{0,3}}?from {NUMBER}(?: \w+)?(?: over [^,;.]*?)? to {NUMBER}")
POWER = re.compile(r"(?:([\d.]+)\s*[×·]\s*)?10([⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)")
DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻−", "0123456789--", ",")
SEEN, NEAR, ROUNDED = 0.03, 0.03, 0.1  # of the figure's height, of a line's range where that is linear, of a number


class Line(NamedTuple):
    """Heights on the page of the points of a line, upwards, and the same in the numbers of its axis, if known."""

    heights: NDArray[np.float64]
    values: NDArray[np.float64] | None
    near: float = 0.0  # how far from a value is still there


def lines(svg: str) -> Iterator[Line]:
    """The lines of a figure of matplotlib, and its scattered points from left to right."""
    for axes in ET.fromstring(svg).iter(G):
        if not axes.get("id", "").startswith("axes_"):
            continue
        ticks = [tick for axis in axes.findall(G) for tick in axis if tick.get("id", "").startswith("ytick_")]
        marks = [
            (next(tick.iter(USE), None), "".join("".join(t.itertext()) for t in tick.iter(TEXT))) for tick in ticks
        ]
        scale = [(float(use.get("y", 0)), text) for use, text in marks if use is not None and text]
        for group in axes.findall(G):
            path, uses = group.find(PATH), [(float(u.get("x", 0)), float(u.get("y", 0))) for u in group.iter(USE)]
            points = np.array(sorted(uses)) if group.get("id", "").startswith("PathCollection_") else np.array(uses)
            if group.get("id", "").startswith("line2d_") and path is not None:
                points = np.array(re.findall(r"-?[\d.]+", path.get("d", "")), dtype=float).reshape(-1, 2)
            if re.match("line2d_|PathCollection_", group.get("id", "")) and len(points) > 1:
                yield _line(points[:, 1], scale)


def _line(places: NDArray[np.float64], scale: list[tuple[float, str]]) -> Line:
    """The line at these places of an axis with these ticks, linear, logarithmic, or neither."""
    read = [(at, _number(text.strip())) for at, text in scale]
    ticks, values = np.array([(at, value) for at, value in read if value is not None]).reshape(-1, 2).T
    powers = any(POWER.fullmatch(text.strip()) for _, text in scale) or (len(values) == 2 and values.min() > 0)
    for there, back in [(np.log, np.exp), (np.array, np.array)][:: 1 if powers else -1]:
        if len(values) > 1 and (there is np.array or values.min() > 0):
            slope, start = np.polyfit(ticks, there(values), 1)
            if np.abs(slope * ticks + start - there(values)).max() <= 0.01 * np.ptp(there(values)):
                found = back(slope * places + start)
                return Line(-places, found, NEAR * np.ptp(found) if there is np.array else 0.0)
    return Line(-places, None)


def _number(text: str) -> float | None:
    if power := POWER.fullmatch(text):
        return float(power[1] or 1) * 10.0 ** int(power[2].translate(DIGITS))
    try:
        return float(text.translate(DIGITS))
    except ValueError:
        return None


def _moves(heights: NDArray[np.float64], up: bool) -> float:
    """By how much a line rises, or falls, from any of its points to a later one."""
    sign = 1 if up else -1
    return float((sign * heights - np.minimum.accumulate(sign * heights)).max())


def _goes(line: Line, ends: Iterable[str]) -> bool:
    """Whether a line has all these numbers, as shares or as per cent, in whatever order it is drawn."""
    read = [(float(end), 0.5 * 0.1 ** len(end.partition(".")[2]) if "." in end else 0) for end in ends]
    return any(
        all((np.abs(line.values * k - end) <= ROUNDED * abs(end) + half + line.near * k).any() for end, half in read)
        for k in (1, 100, 0.01)
    )


def problems(notebook: NotebookNode) -> list[str]:
    """What is said of directions and is not drawn, one line each."""
    found = []
    for cell in notebook.cells:
        shown = cell.metadata.get("mystnb", {})
        figures = [output.data[pictures.SVG] for output in pictures.of(cell)]
        drawn = [line for svg in figures if 'class="plot"' in svg.partition(">")[0] for line in lines(svg)]
        if not drawn:
            continue
        height = max(line.heights.max() for line in drawn) - min(line.heights.min() for line in drawn)
        read = [line for line in drawn if line.values is not None]
        caption, alt = shown.get("figure", {}).get("caption", ""), shown.get("image", {}).get("alt", "")
        for text in (caption, alt):
            for said in DIRECTION.finditer(text):
                up, ends = bool(said["up"]), ENDS.match(text, said.end())
                if (text == alt or ends) and not any(_moves(line.heights, up) > SEEN * height for line in drawn):
                    found.append(f"{pictures.name_of(cell)}: no line does what is said: {said[0]}")
                elif ends:
                    first, last = (end.translate(DIGITS) for end in ends.groups())
                    if (float(first) < float(last)) != up or (
                        read and not any(_goes(one, (first, last)) for one in read)
                    ):
                        found.append(f"{pictures.name_of(cell)}: no line does what is said: {said[0]}{ends[0]}")
    return found
