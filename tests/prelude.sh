# shellcheck shell=bash
# What the shell tests share; each one reads it first.
#   $scratch              a folder that is removed at the end
#   fail TEXT, skip TEXT  end the test as failed, as skipped
#   needs TOOL PACKAGE    skips the test if the tool is not installed
#   try COMMAND…          leaves the exit code in `code`, all output in `output`
#   expect_code N         `code` is N
#   expect_word TEXT      `output` contains the text
set -Eeuo pipefail
trap 'echo "${BASH_SOURCE[0]}:$LINENO: exit code $?: $BASH_COMMAND" >&2' ERR
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
code=0 output='' message=''

fail() {
  echo "FAILED: $*"
  exit 1
}
skip() {
  echo "skipped: $*"
  exit 77
}
needs() { command -v "$1" >/dev/null || skip "$1 is missing (Debian: $2)"; }
try() {
  code=0
  output=$("$@" 2>&1) || code=$?
}
expect_code() { [ "$code" -eq "$1" ] || fail "exit code $code instead of $1: $output $message"; }
expect_word() { [[ $output == *"$1"* ]] || fail "'$1' is missing in: $output $message"; }
