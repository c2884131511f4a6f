"""Numbers and tables as text: rounded so that every machine prints the same."""

import math
from collections.abc import Iterable, Sequence


def number(x: float, digits: int = 3) -> str:
    """x with `digits` significant digits.

        >>> number(1.4694), number(1234.5), number(-0.0), number(2e-13)
        ('1.47', '1230', '0', '2.00e-13')

    There is no negative zero, and no exponent for what is from 0.0001 to a million in size.
    """
    x = float(x)
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
