#!/bin/sh
# Looks whether the environment in $VENV is as it should be, and if not, finds a Python for install.py, which makes it so.
# Called before everything that needs it by the Makefile, which names PYTHON, VENV and TORCH_INDEX.
set -u
here=$(dirname "$0")

fail() { echo "$1" >&2; exit 1; }

torn=$(grep -rl '^<<<<<<< ' requirements.* _config.yml _toc.yml notebooks book lib 2>/dev/null)
[ -z "$torn" ] || fail "Git's conflict markers stand in $(echo $torn); settle the merge first"

[ "$("$VENV/bin/python" "$here/install.py" state 2>/dev/null)" = ready ] && exit

version_ok='import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))'
found=""
for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
    if "$candidate" -c "$version_ok" 2>/dev/null; then found=$candidate; break; fi
done
if [ -z "$found" ]; then
    have=$(${PYTHON:-python3} --version 2>/dev/null)
    fail "Python 3.11, 3.12 or 3.13 is needed (found: ${have:-none}); name one with: make PYTHON=/path/to/python book"
fi
exec "$found" "$here/install.py"
