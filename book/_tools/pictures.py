"""The pictures that a notebook stores: each with what was drawn, in text, and a digest that binds the two.

A picture differs between machines, so that no test compares it; its text has a digest of the drawn data, which
`make notebooks` compares. When a chapter is run, the digest of both is noted beside them: a picture that is exchanged,
or of another run than its text, is found without running anything.
"""

from hashlib import sha256

from nbformat import NotebookNode

from smalltorch.engine.schema import Record, unsaid

SVG, TEXT, NOTED = "image/svg+xml", "text/plain", "picture"


def of(cell: NotebookNode | None) -> list[NotebookNode]:
    """The outputs of a cell that are pictures."""
    return [output for output in (cell or {}).get("outputs", ()) if SVG in output.get("data", {})]


def name_of(cell: NotebookNode) -> str:
    """What a cell's figure is called; else the cell."""
    return cell.metadata.get("mystnb", {}).get("figure", {}).get("name") or cell.id


def digest(output: NotebookNode) -> str:
    return sha256(f"{output.data.get(TEXT)}\n{output.data[SVG]}".encode()).hexdigest()[:16]


def note(notebook: NotebookNode) -> None:
    """Note beside each picture that it was drawn together with its text."""
    for output in (output for cell in notebook.cells for output in of(cell)):
        output.metadata[NOTED] = digest(output)


def exchanged(notebook: NotebookNode) -> list[str]:
    """The figures, or else the cells, whose pictures were not drawn when their texts were."""
    return [
        name_of(cell)
        for cell in notebook.cells
        for one in of(cell)
        if one.get("metadata", {}).get(NOTED) != digest(one)
    ]


def changes(before: NotebookNode, after: NotebookNode, stored: list[Record], new: list[Record]) -> dict[str, str]:
    """What a run drew and said otherwise than the one that is stored: by figure, or cell, and by claim.

    What was not there before is not asked for. A drawing is all that its picture has.
    """
    found, cells = {}, {cell.get("id"): cell for cell in before.cells}
    for cell in after.cells:
        was, now = ("; ".join(map(_drawn, of(one))) for one in (cells.get(cell.id), cell))
        if was and was != now:
            found[name_of(cell)] = f"{was} → {now or 'nothing'}"
    said, shown = {record.claim: _said(record) for record in stored}, unsaid(stored, new)
    for record in new:
        if _said(record) != said.get(record.claim, _said(record)):
            found[record.claim] = f"{said[record.claim]} → {_said(record)}"
        elif record.claim in shown:
            found[record.claim] = "what it rests on has changed, and its words have not"
    return found


def _drawn(output: NotebookNode) -> str:
    text = output.data.get(TEXT, "")
    return text if "digest" in text else f"{text}, digest {sha256(output.data[SVG].encode()).hexdigest()[:8]}"


def _said(record: Record) -> str:
    return f"{record.verdict}: {record.statement}" + f" Assuming {record.assumptions}." * bool(record.assumptions)
