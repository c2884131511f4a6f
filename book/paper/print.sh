#!/bin/sh
# Print a page as a PDF:  print.sh <folder that is served> <page in it> <PDF>      (CHROME names another browser)
set -eu

here=$(dirname "$0")/../_tools/web
. "$here/setup.sh"

node "$(dirname "$0")/print.mjs" "$@"
