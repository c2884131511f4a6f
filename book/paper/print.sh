#!/bin/sh
# Print a page as a PDF:  print.sh <folder that is served> <page in it> <PDF>      (CHROME names another browser)
set -eu

. "$(dirname "$0")/../_tools/web/setup.sh"

node "$here/print.mjs" "$cache" "$@"
