# Read first by scripts of this folder: a command that fails unexpectedly ends the script, which prints where that was.
# shellcheck shell=bash
set -Eeuo pipefail
trap 'echo "${BASH_SOURCE[0]}:$LINENO: exit code $?: $BASH_COMMAND" >&2' ERR

# give_up CODE SENTENCE…: each on a line.
give_up() {
  printf "${0##*/}: %s\n" "${@:2}" >&2
  exit "$1"
}
