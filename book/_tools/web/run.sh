#!/bin/sh
# The checks of the built book that need Node and a browser:  run.sh _build/html
# PY is the Python of the book; SHOTS names a folder for screenshots, CHROME another browser.
set -eu

html=$1
. "$(dirname "$0")/setup.sh"

status=0
node "$here/formulas.mjs" "$cache" "$html" || status=1
node "$here/browser.mjs" "$cache" "$html" || status=1
node "$here/keyboard.mjs" "$cache" "$html" || status=1
node "$here/filters.mjs" "$cache" "$html" || status=1
node "$here/explorables.mjs" "$cache" "$html" "$cache/states.json" && "$PY" "$here/../explorables.py" "$cache/states.json" || status=1
node "$here/search.mjs" "$cache" "$html" || status=1
node "$here/buttons.mjs" "$cache" "$html" || status=1
node "$here/paper.mjs" "$cache" "$html" || status=1
node "$here/archive.mjs" "$cache" "$html" || status=1
node "$here/workflows.mjs" "$cache" .github/workflows/*.yml || status=1
exit $status
