#!/bin/sh
# plumbline gate as CI servers call it: exit codes, what goes to stdout and what to stderr, files.
plumbline=$1
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
  if [ "$(wc -l <"$work/err")" -gt 4 ]; then
    echo "plumbline $*: more than four lines on stderr"
    failures=$((failures + 1))
  fi
}

# logs DIR CASE BATCH SPEED RUNS: logs of SPEED images/s on the first run and 0.1 % more from run to run.
logs() {
  mkdir -p "$1/$2"
  devices=${2#1n}
  run=1
  while [ $run -le "$5" ]; do
    awk -v images=$(($3 * ${devices%g})) -v speed="$4" -v run=$run 'BEGIN {
      speed *= 1 + 0.001 * (run - 1)
      for (i = 0; i < 120; ++i)
        printf "2026-01-01 00:%02d:%02d,%03d-INFO: [Pass 0, train batch %d] \tloss 6.90000, acc1 0.00000, acc5 0.00000, lr 0.10000, elapse %.6f sec Epoch[0] Batch[%d]\tSpeed: %.2f samples/sec\n",
               i / 60, i % 60, run, i, images / speed, i + 1, speed
    }' >"$1/$2/resnet50_b$3_fp32_$run.log"
    run=$((run + 1))
  done
}

logs "$work/base" 1n1g 128 350 5
logs "$work/base" 1n8g 128 2700 5
logs "$work/same" 1n1g 128 350.1 5
logs "$work/same" 1n8g 128 2690 5
logs "$work/slow" 1n1g 128 350 5
logs "$work/slow" 1n8g 128 2600 5
logs "$work/part" 1n1g 128 350 5
logs "$work/few" 1n1g 128 350 2
logs "$work/other" 1n1g 256 350 5

expect 0 '2 cases without a regression above 2 %' gate "$work/same" --baseline "$work/base"
expect 1 'regression.*3.7 %.*1n8g' gate "$work/slow" --baseline "$work/base"
expect 0 'without a regression above 4 %' gate "$work/slow" --baseline "$work/base" --max-regression 4%
expect 1 'regression' gate "$work/slow" --baseline "$work/base" --max-regression 0.03
expect 65 '1n8g.*not among the new runs.*--allow-missing' gate "$work/part" --baseline "$work/base"
expect 0 '1 case without' gate "$work/part" --baseline "$work/base" --allow-missing
expect 65 '3 on either side are needed' gate "$work/few" --baseline "$work/part"
expect 65 'batch per device 128 against 256' gate "$work/other" --baseline "$work/part"
expect 65 "$work/none" gate "$work/none" --baseline "$work/base"
expect 64 'are both' gate "$work/base" --baseline "$work/base"
expect 0 '1 case of RUN has no baseline' gate "$work/base" --baseline "$work/part"
expect 65 '150' gate "$work/same" --baseline "$work/base" --iters 150
expect 64 'RUN' gate --baseline "$work/base"
expect 64 'baseline' gate "$work/same"
expect 64 'max-regression' gate "$work/same" --baseline "$work/base" --max-regression much
expect 64 'max-regression' gate "$work/same" --baseline "$work/base" --max-regression 100%
expect 1 '| regression |' gate "$work/slow" --baseline "$work/base" --markdown
expect 65 'no run in .* began before' gate "$work/base" --baseline "$work/base" --baseline-last 3
expect 64 'baseline-last' gate "$work/same" --baseline "$work/base" --baseline-last 0
expect 0 'allow-missing' gate --help

# A broken log is left out and named.
cp -r "$work/same" "$work/broken"
head -n 50 "$work/same/1n8g/resnet50_b128_fp32_1.log" >"$work/broken/1n8g/resnet50_b128_fp32_1.log"
expect 0 '1 of RUN left out (1 truncated), first .*resnet50_b128_fp32_1.log' \
  gate "$work/broken" --baseline "$work/base"

expect 1 regression gate "$work/slow" --baseline "$work/base" --junit "$work/gate.xml"
grep -q 'tests="2" failures="1" errors="0"' "$work/gate.xml" || { echo "JUnit miscounts"; failures=$((failures + 1)); }
cp "$work/gate.xml" "$work/before.xml"
expect 73 'junit' gate "$work/same" --baseline "$work/base" --junit "$work/gate.xml"
cmp "$work/gate.xml" "$work/before.xml" || failures=$((failures + 1))
expect 65 'measure' gate "$work/few" --baseline "$work/part" --junit "$work/few.xml"
grep -q 'errors="1"' "$work/few.xml" || { echo "JUnit has no error for too few runs"; failures=$((failures + 1)); }
if command -v python3 >/dev/null; then
  expect 1 '"status": "regression"' gate "$work/slow" --baseline "$work/base" --json
  python3 -c 'import json, sys; json.load(open(sys.argv[1])); import xml.dom.minidom as x; x.parse(sys.argv[2])' \
    "$work/out" "$work/gate.xml" || failures=$((failures + 1))
fi

# Foreign strings make no line of their own and move no cursor.
mkdir "$work/honest" "$work/forged"
for run in 1 2 3 4 5; do
  cp -r "${0%/*}/../../results/measured/amd_epyc_2_cpus/resnet50_b4_fp32_1n1g_$run" "$work/honest"
done
cp -r "$work/honest/." "$work/forged"
sed -i 's/"cpu": "/&\\u001b[2J\\nforged \\u009b/' "$work"/forged/*/env.json
sed -i 's/"\(device_name\|host\)": "/&\\u001b[2J\\nforged \\u009b/' "$work"/forged/*/result.json
for command in "gate $work/forged --baseline $work/honest" "compare $work/honest $work/forged"; do
  # shellcheck disable=SC2086 # words
  "$plumbline" $command >"$work/said" 2>&1
  grep -q forged "$work/said" || { echo "plumbline $command doesn't show what differs"; failures=$((failures + 1)); }
  if LC_ALL=C grep -q -e "$(printf '\033')" -e "$(printf '\302\233')" -e '^forged' "$work/said"; then
    echo "plumbline $command lets foreign strings through:"
    cat -v "$work/said"
    failures=$((failures + 1))
  fi
done

exit $((failures > 0))
