#!/bin/sh
# Checks of the built book that need Node and a browser:  run.sh _build/html web   or, of the PDF and the archive,  … paper
# PY is the Python of the book; T selects checks by their names, a regular expression; SHOTS names a folder for screenshots,
# CHROME another browser.
set -eu

HTML=$1
here=$(dirname "$0")
. "$here/setup.sh"
export HTML

exec node "$PACKAGES/node_modules/@playwright/test/cli.js" test --config "$here" --project "$2" ${T:+--grep "$T"}
