#!/bin/sh
# Print a page as a PDF, and its contents as another:
#   print.sh <folder that is served> <page in it> <PDF> <PDF of the contents>      (CHROME names another browser)
set -eu

here=$(dirname "$0")/../_tools/web
. "$here/setup.sh"

node "$(dirname "$0")/print.mjs" "$@"
