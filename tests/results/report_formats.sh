#!/usr/bin/env bash
# report_formats.sh SOURCE_DIR PLUMBLINE: `plumbline report --format` as users call it.
. "${BASH_SOURCE[0]%/*}/../prelude.sh"
sources=$1
plumbline=$2
needs python3 python3
"$sources/tests/results/browser/made_runs.py" "$scratch/runs" 2

# expect CODE WORD [VARIABLE=VALUE] OPTION…: exit code of a report on the runs, and a word in its messages.
expect() {
  local wanted=$1 word=$2 variables=()
  shift 2
  while [[ $1 == *=* ]]; do variables+=("$1") && shift; done
  try env "${variables[@]}" "$plumbline" report "$scratch/runs" "$@"
  expect_code "$wanted"
  expect_word "$word"
}
# holds FILE WORD
holds() { grep -aq -e "$2" "$scratch/$1" || fail "$1 lacks '$2'"; }

expect 0 '' --format markdown -o "$scratch/tables.md"
holds tables.md '^- rank 5 on node2 .*(and 1 more of 8 runs likewise)'
expect 64 'plot speedup' --format markdown --plot speedup -o "$scratch/new.md"
expect 64 'efficiency' --format svg --plot pie -o "$scratch/new.svg"
expect 69 'gnuplot-nox' "PATH=$scratch" --format png -o "$scratch/new.png"
[ ! -e "$scratch/new.png" ] || fail "a plot that nothing drew"

if command -v gnuplot >/dev/null; then
  for plot in throughput speedup efficiency bars steps profile memory; do
    expect 0 '' --format svg --plot $plot -o "$scratch/$plot.svg"
    holds $plot.svg '</svg>'
  done
  holds speedup.svg 'ideal'
  holds profile.svg 'conv.backward_data'
  holds memory.svg 'activation'
  expect 0 '' --format png -o "$scratch/throughput.png"
  [ "$(head -c 4 "$scratch/throughput.png" | tail -c 3)" = PNG ] || fail "no PNG file"
  rm "$scratch"/runs/*/profile.json
  expect 65 'with --profile' --format svg --plot profile -o "$scratch/new.svg"
fi
