#!/bin/sh
# How long a first visit of chapters keeps a phone from answering (blocking.mjs):  blocking.sh _build/html [chapter …]
set -eu

HTML=$1
shift
here=$(dirname "$0")
. "$here/setup.sh"
export HTML

exec node "$here/blocking.mjs" "$@"
