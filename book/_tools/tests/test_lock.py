"""requirements.txt and requirements.lock pin what requirements.in asks for, and are what `make lock` writes."""

import re
import subprocess
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[3]
ASKED, LISTED, LOCKED, CUDA, WEIGHTS = (
    (ROOT / name).read_text(encoding="utf-8")
    for name in ("requirements.in", "requirements.txt", "requirements.lock", "book/_tools/cuda.txt", "lib/weights.txt")
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


@pytest.mark.parametrize(
    ("place", "old", "new", "complaint"),
    [
        (0, "sympy==1.14.0", "sympy==1.14.1", "sympy==1.14.1 is not in requirements.txt"),
        (1, "jinja2==3.1.6\n", "", "jinja2==3.1.6 is in one list only"),
        (2, "numpy==2.4.6 ; python_full_version < '3.12'", "numpy==2.4.6", "numpy==2.4.6 is in one list only"),
        (1, "-e ./lib\n", "", "requirements.txt lacks torch or the library"),
        (1, "-e ./lib\n", "-e ./lib\n--find-links ../wheels\n", "not a pin: --find-links ../wheels"),
        (2, "jinja2==3.1.6 \\\n", "jinja2==3.1.6\n    # ", "no hash: jinja2==3.1.6"),
        (2, "jinja2==3.1.6", "--index-url x\njinja2==3.1.6", "neither a pin nor a hash: --index-url x"),
    ],
)
def test_each_lapse_is_found(place, old, new, complaint):
    texts = [ASKED, LISTED, LOCKED]
    assert texts[place].count(old) == 1
    texts[place] = texts[place].replace(old, new)
    assert complaint in problems(*texts)


def test_the_heads_say_what_make_lock_does():
    made = subprocess.run(["make", "-n", "lock", "UV=uv"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    commands = [line.replace(" -q ", " ") for line in re.sub(r"\\\n\s*", "", made).splitlines() if " compile " in line]
    assert [f"#    {command}" for command in commands] == [text.splitlines()[1] for text in (LISTED, LOCKED)]


def test_what_every_torch_needs_is_locked_and_what_cuda_brings_is_not():
    cuda = {line for line in CUDA.splitlines() if not line.startswith("#")}
    needed = {Requirement(line).name for line in requires("torch") if "extra ==" not in line}
    locked = {name for name, _, _ in pins(LOCKED)}
    assert needed - cuda <= locked and not cuda & locked
    assert not [name for name in locked if name.startswith(("nvidia", "cuda"))]
