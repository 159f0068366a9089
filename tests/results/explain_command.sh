#!/bin/sh
# explain_command.sh PLUMBLINE DATA: plumbline explain as users call it. DATA/run is a run of bench_resnet50 --profile
# whose single steps are left out, DATA/pytorch_cpu.json a trace of a smaller network.
plumbline=$1
data=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# expect CODE WORD ARGUMENTS…: the exit code, and a word somewhere in the output.
expect() {
  code=$1
  word=$2
  shift 2
  "$plumbline" "$@" >"$work/out" 2>"$work/err"
  got=$?
  if [ $got -ne "$code" ] || ! grep -q -e "$word" "$work/out" "$work/err"; then
    echo "plumbline $*: exit $got (wanted $code), '$word' wanted in:"
    cat "$work/out" "$work/err"
    failures=$((failures + 1))
  fi
}

expect 64 'model resnet50 against small' explain "$data/run" --trace "$data/pytorch_cpu.json"
expect 0 'DIFFERENT: model resnet50 against small' explain "$data/run" --trace "$data/pytorch_cpu.json" --force
grep -q '^convolution backward  *[0-9]' "$work/out" || failures=$((failures + 1))
expect 0 'plumbline.explain/1' explain "$data/run" --trace "$data/pytorch_cpu.json" --force --json
expect 0 '--trace' explain --help
expect 64 '--trace' explain "$data/run"
expect 65 'result.json' explain "$work" --trace "$data/pytorch_cpu.json"
expect 65 "can't be read" explain "$data/run" --trace "$work/none"
expect 65 'traceEvents' explain "$data/run" --trace "$data/run/result.json"
head -c 5000 "$data/pytorch_cpu.json" >"$work/truncated.json"
expect 65 'ends too early' explain "$data/run" --trace "$work/truncated.json"
[ "$(wc -l <"$work/err")" -eq 1 ] || failures=$((failures + 1))
exit $failures
