#!/usr/bin/env bash
# update.sh PROGRAMS [TRANSCRIPT…]: rewrites transcripts, all unless some are named, with what the programs print now.
set -Eeuo pipefail
trap 'echo "${BASH_SOURCE[0]}:$LINENO: exit code $?: $BASH_COMMAND" >&2' ERR
programs=$1
shift
here=$(dirname "$0")
if [ $# -eq 0 ]; then
  for transcript in "$here"/*.txt; do
    case ${transcript##*/} in CMakeLists.txt | messages.txt) ;; *) set -- "$@" "$transcript" ;; esac
  done
fi
PLUMB_UPDATE=1 exec "$here/run.sh" "$programs" "$@"
