#!/usr/bin/env bash
# side_by_side_test.sh SOURCE_DIR: what side_by_side.py refuses. -S: no packages, so no torch either.
set -Eeuo pipefail
trap 'echo "${BASH_SOURCE[0]}:$LINENO: exit code $?: $BASH_COMMAND" >&2' ERR

# refused CODE WORD ARGUMENT…: with this exit code, in one line that has the word.
refused() {
  local code=0 text
  text=$(python3 -S -B "$side_by_side" "${@:3}" 2>&1) || code=$?
  [ $code -eq "$1" ] && [[ $text == *"$2"* && $text != *$'\n'* ]] || {
    echo "FAILED: ${*:3}: exit code $code instead of $1, or not one sentence about '$2': $text"
    exit 1
  }
}

side_by_side=$1/tests/reference/side_by_side.py
refused 69 "PyTorch is missing" .
refused 64 "'1y2'" . --layouts 1y2
refused 64 "'fp8'" . --precisions fp8
refused 64 "1x1000000 wants" . --layouts 1x1000000
refused 64 "/nowhere" . --out /nowhere/sides.json
