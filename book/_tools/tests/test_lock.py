"""requirements.txt and requirements.lock pin what requirements.in asks for, and are what `make lock` writes."""

import re
import subprocess
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[3]
LISTS = ("requirements.in", "requirements.txt", "requirements.lock", "book/_tools/cuda.txt", "lib/weights.txt")
BESIDE = {"diff-setup": "book/_tools/nbdime.txt", "lab-setup": "book/_tools/lab.lock"}  # in environments of their own
ASKED, LISTED, LOCKED, CUDA, WEIGHTS, NBDIME, LAB = (
    (ROOT / name).read_text(encoding="utf-8") for name in (*LISTS, *BESIDE.values())
)
PIN = re.compile(r"([a-z0-9-]+)==(\S+)(?: ; ([^\\\n]+?))?(?: \\)?")
HASH = re.compile(r"    --hash=sha256:[0-9a-f]{64}(?: \\)?")


def pins(text):
    """(name, version, marker) of every line that pins a package."""
    return {match.groups() for line in text.splitlines() if (match := PIN.fullmatch(line))}


def problems(asked, listed, locked):
    """What is wrong with the two lists, one line each."""
    torch = {pin for pin in pins(listed) if pin[0] == "torch"}
    missing = {pin[:2] for pin in pins(asked)} - {pin[:2] for pin in pins(listed)}
    found = [f"{name}=={version} is not in requirements.txt" for name, version in sorted(missing)]
    differing = (pins(listed) - torch) ^ pins(locked)
    found += [f"{name}=={version} is in one list only" for name, version, _ in sorted(differing, key=str)]
    if len(torch) != 1 or "-e ./lib" not in listed.splitlines():
        found.append("requirements.txt lacks torch or the library")
    found += [
        f"not a pin: {line}"
        for line in listed.splitlines()
        if not re.match("#|-e ./lib$", line) and not PIN.fullmatch(line)
    ]
    return found + unhashed(locked)


def unhashed(text):
    """What in a list with hashes is neither a comment nor a pin nor its hash, and what has no hash."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    found = [f"neither a pin nor a hash: {line}" for line in lines if not (PIN.fullmatch(line) or HASH.fullmatch(line))]
    return found + [
        f"no hash: {line}"
        for line, following in zip(lines, [*lines[1:], ""], strict=True)
        if PIN.fullmatch(line) and not HASH.fullmatch(following)
    ]


def test_the_lists_agree():
    assert problems(ASKED, LISTED, LOCKED) == [] and len(pins(LOCKED)) > 100
    assert unhashed(WEIGHTS) == [] and len(pins(WEIGHTS)) == 2
    for text in (NBDIME, LAB):
        assert unhashed(text) == [] and len(pins(text)) > 30


@pytest.mark.parametrize("target, listed", BESIDE.items())
def test_nothing_is_installed_but_by_hash(target, listed):
    """But torch, and the library; what brings much along has an environment of its own."""
    said = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    commands = [line for line in re.sub(r"\\\n\s*", "", said).splitlines() if "pip install" in line]
    assert len(commands) == 1 and f"--no-deps --require-hashes -r {listed};" in commands[0]


def test_the_heads_say_what_make_lock_does():
    made = subprocess.run(["make", "-n", "lock", "UV=uv"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    commands = [line.replace(" -q ", " ") for line in re.sub(r"\\\n\s*", "", made).splitlines() if " compile " in line]
    said = [f"#    {command.rpartition('| ')[2]}" for command in commands]
    assert said == [text.splitlines()[1] for text in (LISTED, LOCKED, NBDIME, LAB)]


def test_what_every_torch_needs_is_locked_and_what_cuda_brings_is_not():
    cuda = {line for line in CUDA.splitlines() if not line.startswith("#")}
    needed = {Requirement(line).name for line in requires("torch") if "extra ==" not in line}
    locked = {name for name, _, _ in pins(LOCKED)}
    assert needed - cuda <= locked and not cuda & locked
    assert not [name for name in locked if name.startswith(("nvidia", "cuda"))]
