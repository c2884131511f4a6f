"""Open the reader's editions in JupyterLab.

    lab.py _build/html JUPYTER [OPTION ...]

They are copied to the folder `lab` beside the built book, each with a kernel that is this environment's Python. A copy
that a reader has changed stays as it is, also when the book is built anew. JUPYTER is the command of JupyterLab, which
has an environment of its own.
"""

import json
import os
import re
import sys
from hashlib import sha256
from pathlib import Path

from smalltorch.files import in_one_line, read_notebook, write_text

KERNEL = {"display_name": "Deep Dive into the Transformer", "language": "python", "name": "deep-dive"}
TO_PAGE = re.compile(r"\]\((?!\w+:)([^)\s]+\.html)")


def copy_of(edition: Path, html: Path) -> str:
    """An edition with the book's kernel, and with links that lead from the copy to the built pages."""
    notebook = read_notebook(edition)
    notebook["metadata"]["kernelspec"] = KERNEL
    here = html.parent / "lab" / edition.parent.name

    def link(found: re.Match[str]) -> str:
        return f"]({os.path.relpath(edition.parent / found[1], here)}"

    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = [TO_PAGE.sub(link, line) for line in cell["source"]]
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def copy_all(html: Path, lab: Path) -> list[Path]:
    """Copy the editions; returns the copies that a reader has changed, which stay."""
    made = lab / ".made.json"
    digests = json.loads(made.read_text(encoding="utf-8")) if made.exists() else {}
    changed = []
    for edition in sorted(html.glob("notebooks/*/*.ipynb")):
        copy = lab / edition.relative_to(html / "notebooks")
        name = str(copy.relative_to(lab))
        if copy.exists() and sha256(copy.read_bytes()).hexdigest() != digests.get(name):
            changed.append(copy)
            continue
        text = copy_of(edition, html)
        copy.parent.mkdir(parents=True, exist_ok=True)
        digests[name] = sha256(text.encode()).hexdigest()
        write_text(copy, text)
    write_text(made, json.dumps(digests, indent=1))
    return changed


def main() -> None:
    html, jupyter, *options = sys.argv[1:]
    html, jupyter = Path(html).resolve(), str(Path(jupyter).absolute())
    lab = html.parent / "lab"
    changed = copy_all(html, lab)
    spec = {**KERNEL, "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]}
    kernel = lab / ".jupyter/kernels/deep-dive/kernel.json"
    kernel.parent.mkdir(parents=True, exist_ok=True)
    write_text(kernel, json.dumps(spec))
    if changed:
        print(f"{len(changed)} of the notebooks stay as you changed them; remove one to have the book's again")
    os.environ["JUPYTER_PATH"] = str(lab / ".jupyter")
    os.chdir(html.parent)
    quiet = ["--LabApp.news_url=", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    quiet += ["--LabApp.extension_manager=readonly", "--ServerApp.default_url=/lab/tree/lab"]
    os.execv(jupyter, [jupyter, "lab", *quiet, *options])


if __name__ == "__main__":
    with in_one_line():
        main()
