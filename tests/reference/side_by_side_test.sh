#!/usr/bin/env bash
# side_by_side_test.sh SOURCE_DIR: what side_by_side.py refuses. -S: no packages, so no torch either.
. "${BASH_SOURCE[0]%/*}/../prelude.sh"

# refused CODE WORD ARGUMENT…: with this exit code, in one line that has the word.
refused() {
  try python3 -S -B "$side_by_side" "${@:3}"
  expect_code "$1"
  expect_word "$2"
  [[ $output != *$'\n'* ]] || fail "more than a line: $output"
}

side_by_side=$1/tests/reference/side_by_side.py
refused 69 "PyTorch is missing" .
refused 64 "'1y2'" . --layouts 1y2
refused 64 "'fp8'" . --precisions fp8
refused 64 "1x1000000 wants" . --layouts 1x1000000
refused 64 "/nowhere" . --out /nowhere/sides.json
