#!/usr/bin/env bash
# report_formats.sh SOURCE_DIR PLUMBLINE: `plumbline report --format` as users call it.
set -Eeuo pipefail
trap 'echo "${BASH_SOURCE[0]}:$LINENO: exit code $?: $BASH_COMMAND" >&2' ERR
sources=$1
plumbline=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
command -v python3 >/dev/null || { echo "skipped: python3 makes the runs, and isn't on this machine"; exit 77; }
"$sources/tests/results/browser/made_runs.py" "$scratch/runs" 2
failures=0

# expect CODE WORD [VARIABLE=VALUE] OPTION…: exit code of a report on the runs, and a word in its messages.
expect() {
  local wanted=$1 word=$2 code=0 variables=()
  shift 2
  while [[ $1 == *=* ]]; do variables+=("$1") && shift; done
  env "${variables[@]}" "$plumbline" report "$scratch/runs" "$@" >"$scratch/said" 2>&1 || code=$?
  if [ $code -ne "$wanted" ] || ! { [ -z "$word" ] || grep -q -e "$word" "$scratch/said"; }; then
    echo "report $*: exit $code (wanted $wanted), '$word' wanted in: $(cat "$scratch/said")"
    failures=$((failures + 1))
  fi
}
# holds FILE WORD
holds() { grep -aq -e "$2" "$scratch/$1" || { echo "$1 lacks '$2'"; failures=$((failures + 1)); }; }

expect 0 '' --format markdown -o "$scratch/tables.md"
holds tables.md '^| 1n1g | 2 | '
holds tables.md '^- rank 5 on node2 .*(and 1 more of 8 runs likewise)'
[ "$(grep -c '^| 1n' "$scratch/tables.md")" -eq 4 ] || { echo "not four cases in: $(cat "$scratch/tables.md")"; exit 1; }
expect 73 'exists' --format markdown -o "$scratch/tables.md"
expect 64 'plot speedup' --format markdown --plot speedup -o "$scratch/new.md"
expect 64 'efficiency' --format svg --plot pie -o "$scratch/new.svg"
expect 69 'gnuplot-nox' "PATH=$scratch" --format png -o "$scratch/new.png"
[ ! -e "$scratch/new.png" ] || { echo "a plot that nothing drew"; exit 1; }

if command -v gnuplot >/dev/null; then
  for plot in throughput speedup efficiency bars steps profile memory; do
    expect 0 '' --format svg --plot $plot -o "$scratch/$plot.svg"
    holds $plot.svg '</svg>'
  done
  holds speedup.svg 'ideal'
  holds profile.svg 'conv.backward_data'
  holds memory.svg 'activation'
  expect 0 '' --format png -o "$scratch/throughput.png"
  [ "$(head -c 4 "$scratch/throughput.png" | tail -c 3)" = PNG ] || { echo "no PNG file"; exit 1; }
  rm "$scratch"/runs/*/profile.json
  expect 65 'with --profile' --format svg --plot profile -o "$scratch/new.svg"
fi
exit $((failures > 0))
