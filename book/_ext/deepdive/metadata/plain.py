"""Convert a formula from TeX to plain Unicode text, as for titles and descriptions: √n, e^(2B)/n, C r²."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from html import unescape

from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml

NAMESPACE = "{http://www.w3.org/1998/Math/MathML}"
APPLY = "\N{FUNCTION APPLICATION}"
SPACED = frozenset("+−<>=≤≥≈∼→×±")
RAISED = str.maketrans("0123456789+−n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ")
LOWERED = str.maketrans("0123456789aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ")
SYMBOL = re.compile(rf"\d+|\w[{''.join(map(chr, LOWERED.values()))}]*")


def plain(tex: str) -> str | None:
    """The formula on one line; None where that would take more than letters, signs, roots, fractions and indices."""
    try:
        mathml = tex2mathml(tex).replace("&ApplyFunction;", APPLY)
        text = said(ET.fromstring(re.sub(r"&(?!lt;|gt;|amp;|#)\w+;", lambda name: unescape(name[0]), mathml)))
    except (MathError, LookupError):
        return None
    return " ".join(re.sub(rf"{APPLY}(\(?)", lambda after: after[1] or " ", text).split())


def said(element: ET.Element) -> str:
    """An element of MathML as text.

    Raises LookupError for what has none, such as a matrix.
    """
    kind, parts = element.tag.removeprefix(NAMESPACE), list(element)
    match kind:
        case "mi" | "mn" | "mo" | "mtext":
            return (element.text or "").strip()
        case "mspace":
            return " "
        case "math" | "mrow" | "mstyle" | "mpadded" | "semantics":
            return in_a_row(parts)
        case "msqrt":
            return f"√{one(in_a_row(parts))}"
        case "mfrac":
            return f"{one(said(parts[0]))}/{one(said(parts[1]))}"
        case "msup":
            return said(parts[0]) + index(said(parts[1]), "^", RAISED)
        case "msub" | "munder":
            return said(parts[0]) + index(said(parts[1]), "_", LOWERED)
        case "msubsup" | "munderover":
            return said(parts[0]) + index(said(parts[1]), "_", LOWERED) + index(said(parts[2]), "^", RAISED)
    raise LookupError(kind)


def in_a_row(elements: Iterable[ET.Element]) -> str:
    """One after the other; a sign between two of them stands free, and one before the first does not."""
    text = ""
    for element in elements:
        part = said(element)
        text += f" {part} " if part in SPACED and text and not text.endswith(("(", "[", ",")) else part
    return text


def one(text: str) -> str:
    """In parentheses, unless it is one symbol."""
    return text if SYMBOL.fullmatch(text) else f"({text})"


def index(text: str, sign: str, signs: dict[int, int]) -> str:
    """Raised or lowered where each of its letters can be, and else after a sign."""
    return text.translate(signs) if all(ord(letter) in signs for letter in text) else sign + one(text)
