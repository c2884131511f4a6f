r"""What a sentence is about: the symbols, models and terms that it names, to lay a record beside its evidence.

    >>> sorted(objects_in(r"In SmolLM2 the norm $\lVert A\rVert$ is at most $\sqrt{n}$."))
    ['A', 'n', 'smollm2']
    >>> sorted(objects_in("‖A‖₂ ≤ √n, of σ; Sum(A[i, j], (j, 1, n))"))
    ['A', 'i', 'j', 'n', 'sigma']

No program can tell whether an identity bears on a claim; but it can tell when the two have no name in common.
Standard library only, like `schema`, whose records it reads.
"""

import re
import unicodedata

from smalltorch.engine.schema import Record

FORMULA = re.compile(r"\$([^$]+)\$")
STYLE = re.compile(r"\\(?:mathrm|text|operatorname|mathbf|mathbb)\s*\{?[A-Za-z]*\}?")
LETTERS = "αβγδεζηθικλμνξοπρςστυφχψωΓΔΘΛΞΠΣΦΨΩ"
GREEK = {letter: unicodedata.name(letter).split()[-1].lower().replace("lamda", "lambda") for letter in LETTERS}
SYMBOL = re.compile(r"(?<![A-Za-z'’-])(?![Aa]\s)[A-Za-z](?![A-Za-z'’-])")
NAME = re.compile(r"\b[A-Za-z]*[A-Z][\w-]*[A-Z0-9][\w-]*|\b[A-Za-z]{5,}\b")  # of models, SmolLM2 or Pre-LN; terms
NO_OBJECTS = set(
    "about agree along beside checked computed counterexample demanded derived every facts given holds identities "
    "identity inputs interval measured other proved rounding their these those tightness verified where which".split()
)


def objects_in(text: str) -> frozenset[str]:
    """The symbols of a text, in formulas or not, Greek ones by their names, and its models and terms in lower case."""
    found: set[str] = set()
    for formula in FORMULA.findall(text):
        tex = STYLE.sub(" ", formula).replace(r"\var", "\\")
        found |= {name.lower() for name in re.findall(r"\\([A-Za-z]+)", tex)} & {*GREEK.values()}
        found |= {*re.findall(r"[A-Za-z]", re.sub(r"\\[A-Za-z]+", " ", tex))}
    plain = FORMULA.sub(" ", text)
    named = {*SYMBOL.findall(plain), *(name.lower() for name in NAME.findall(plain))} - NO_OBJECTS
    return frozenset(found | named | {GREEK[letter] for letter in plain if letter in GREEK})


def in_common(record: Record, claim: str) -> list[str]:
    """What a claim or its record's sentence names and the evidence names as well, symbols first."""
    said = objects_in(f"{claim} {record.statement} {record.assumptions}")
    shown = [" ".join((piece.text, *piece.shows, *piece.given, piece.scope)) for piece in record.evidence]
    return sorted(
        said & objects_in(" ".join(shown)), key=lambda name: (len(name) > 1 and name not in GREEK.values(), name)
    )
