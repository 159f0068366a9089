#!/usr/bin/env bash
# sweep_real_test.sh PLUMBLINE SWEEP_FILE: real runs through the real mpirun; what they leave is read by plumbline.
. "${BASH_SOURCE[0]%/*}/../prelude.sh"
plumbline=$1
# Fewer and shorter runs than the file has.
sed -e 's/^repetitions = .*/repetitions = 1/' -e 's/^iterations = .*/iterations = 3/' -e 's/^warmup = .*/warmup = 1/' \
  "$2" >"$scratch/small.toml"
fail() {
  echo "FAILED: $*"
  cat "$scratch"/out/output/* 2>/dev/null || true
  exit 1
}
cd "$scratch"
"$plumbline" sweep small.toml --output out >table.txt || fail "exit code $?"
cat table.txt
[ "$(find out/logs -name '*.log' | wc -l)" = 2 ] || fail "not two logs"
[ "$(find out/runs -name result.json | wc -l)" = 2 ] || fail "not two results"
grep -q '^1n2g' table.txt || fail "no row of two ranks"
"$plumbline" sweep small.toml --output out --resume --dry-run >plan.txt || fail "no plan to resume"
grep -q '^0 runs to do, 2 finished' plan.txt || fail "not finished"
