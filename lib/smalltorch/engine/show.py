"""Print numbers, tables and source code in chapters, rounded so that every machine prints the same."""

import ast
import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from textwrap import dedent


def number(x: float, digits: int = 3) -> str:
    """x with `digits` significant digits.

        >>> number(1.4694), number(1234.5), number(-0.0), number(2e-13)
        ('1.47', '1230', '0', '2.00e-13')

    There is no negative zero, and no exponent for what is from 0.0001 to a million in size. It is rounded to three more
    digits first, so that 0.375 and what arithmetic makes of it are shown alike.

        >>> number(0.375, 2), number(0.37499999, 2)
        ('0.38', '0.38')
    """
    x = float(f"{x:.{digits + 3}g}")
    if x == 0 or not math.isfinite(x):
        return "0" if x == 0 else str(x)
    exponent = math.floor(math.log10(abs(x)))
    x = round(x, digits - 1 - exponent)
    if -4 <= exponent < 6:
        exponent = math.floor(math.log10(abs(x)))  # rounding may have carried: 9.996 → 10.0
        return f"{x:.{max(digits - 1 - exponent, 0)}f}"
    return f"{x:.{digits - 1}e}".replace("e-0", "e-").replace("e+0", "e+")


class Table:
    """Rows under a header: text in a terminal.

        >>> Table(["n", "norm"], [(4, 1.4694), (16, 2.0)])
         n  norm
         4  1.47
        16  2.00

    A notebook shows a Markdown table.
    """

    def __init__(self, header: Sequence[str], rows: Iterable[Sequence[str | float]]):
        self.header = list(header)
        self.rows = [
            [cell if isinstance(cell, str) else str(cell) if isinstance(cell, int) else number(cell) for cell in row]
            for row in rows
        ]
        for row in self.rows:
            if len(row) != len(self.header):
                raise ValueError(f"rows: expected {len(self.header)} cells, got {len(row)}: {row}")

    def __repr__(self) -> str:
        columns = list(zip(self.header, *self.rows, strict=True))
        widths = [max(map(len, column)) for column in columns]
        return "\n".join(
            "  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) for row in [self.header, *self.rows]
        )

    def _repr_markdown_(self) -> str:
        lines = [self.header, ["---:"] * len(self.header), *self.rows]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def show_source(*objects: Callable[..., object]) -> "Source":
    """The source of functions and classes of the library, as it stands in their files.

        >>> from smalltorch.attention import causal_mask
        >>> show_source(causal_mask)
        the source of causal_mask

    A notebook shows it as Markdown, in a fence of Python; of docstrings the first paragraph, the library's page has the
    rest. Statements that only check arguments are left out, and their number is said below. It is read anew whenever
    the chapter runs: when the code changes, so does the output.

    Raises:
        ValueError: for what is no function or class of smalltorch, or for nothing.
    """
    for shown in objects or (None,):
        ours = str(getattr(shown, "__module__", "")).startswith("smalltorch.")
        if not (ours and (inspect.isfunction(shown) or inspect.isclass(shown))):
            raise ValueError(f"objects: expected functions and classes of smalltorch, got {shown!r}")
    names = ", ".join(shown.__qualname__ for shown in objects)
    whole = "\n\n".join(_shortened(dedent(inspect.getsource(shown))) for shown in objects)
    code = _without_checks(whole)
    return Source(names, code, *(len([line for line in text.splitlines() if line.strip()]) for text in (code, whole)))


def _shortened(code: str) -> str:
    """Code whose docstrings end after their first paragraph."""
    lines = code.splitlines(keepends=True)
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node):
            said = node.body[0]
            first, last = said.lineno - 1, (said.end_lineno or said.lineno) - 1
            ends = [k for k in range(first, last) if not lines[k].strip()]
            if ends:
                lines[ends[0] - 1] = lines[ends[0] - 1].rstrip() + '"""\n'
                lines[ends[0] : last + 1] = [""] * (last + 1 - ends[0])
    return "".join(lines)


def _without_checks(code: str) -> str:
    """Code whose functions lack the statements that only refuse arguments, each with the blank line after it."""
    lines = code.splitlines(keepends=True)
    functions = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.FunctionDef)]
    for statement in (statement for function in functions for statement in function.body if _is_check(statement)):
        last = statement.end_lineno or statement.lineno
        if last < len(lines) and not lines[last].strip():
            lines[last] = ""
        lines[statement.lineno - 1 : last] = [""] * (last + 1 - statement.lineno)
    return "".join(lines)


def _is_check(statement: ast.stmt) -> bool:
    """Whether it is a call such as `check_type(int, n=n)` or `_check(X=X)`, or an `if` that only raises."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Name(id=name))):
            return name.lstrip("_").startswith("check")
        case ast.If(body=[ast.Raise()], orelse=[]):
            return True
        case _:
            return False


@dataclass(frozen=True)
class Source:
    """Code without what only checks arguments, the names of what it defines, and how many lines it has of how many."""

    names: str
    code: str
    lines: int
    whole: int

    def __repr__(self) -> str:
        return f"the source of {self.names}"

    def _repr_markdown_(self) -> str:
        left_out = f"\n\nWithout its checks of arguments: {self.lines} of {self.whole} lines."
        return f"```python\n{self.code}```{left_out if self.lines < self.whole else ''}"
