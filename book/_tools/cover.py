"""Make the cover image of the landing page and the README from a chapter's figure, on white."""

import re
from pathlib import Path

from smalltorch.files import read_notebook, write_text

CHAPTER, FIGURE = "notebooks/spectrum/products.ipynb", "fig-products-norm"
FILE = "book/_static/cover.svg"


def picture(root: Path) -> str:
    """The figure's SVG as the chapter drew it, with a white background: a forge's dark theme does not turn it round."""
    for cell in read_notebook(root / CHAPTER)["cells"]:
        if cell["metadata"].get("mystnb", {}).get("figure", {}).get("name") == FIGURE:
            drawing = "".join(next(output["data"]["image/svg+xml"] for output in cell["outputs"] if "data" in output))
            return re.sub(r"(<svg[^>]*>)", r'\1<rect width="100%" height="100%" fill="white"/>', drawing, count=1)
    raise LookupError(f"{CHAPTER} has no figure called {FIGURE}")


def write(root: Path) -> None:
    write_text(root / FILE, picture(root))


def problems(root: Path) -> list[str]:
    """A line if the stored picture is not the chapter's."""
    stored = root / FILE
    if stored.exists() and stored.read_text(encoding="utf-8") == picture(root):
        return []
    return [f"{FILE} is not the figure of {CHAPTER}: make execute NB={Path(CHAPTER).stem}"]
