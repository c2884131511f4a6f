"""What a release attaches for those who read elsewhere: the library's wheel, and the list of the trained weights.

wheel.py FOLDER
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# What chapters read, by `smalltorch.data`, from the folder `book`.
READ = (
    *("claims.csv", "references.bib", "data/essay.txt", "data/longer.txt", "data/short.txt"),
    *("explore/sampling.json", "../lib/benchmarks/spectral_norm.txt"),
)


def make(folder: Path) -> None:
    """Build the wheel from the files of the library, without the network, and put it and the list into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as beside:  # setuptools leaves its own files where it builds
        shutil.copytree(
            ROOT / "lib", f"{beside}/lib", ignore=shutil.ignore_patterns("tests", "build", "*.egg-info", "__pycache__")
        )
        for name in READ:
            packed = Path(beside, "lib/smalltorch/book", name)
            packed.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / "book" / name, packed)
        build = ["wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index", "-w", str(folder), f"{beside}/lib"]
        subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", *build], check=True)
    shutil.copy(ROOT / "lib/weights.txt", folder)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
    print(f"{sys.argv[1]} has the library's wheel and the list of the weights")
