#!/bin/bash
# search.sh BUILD FOUND SECONDS: every fuzz target of a build for SECONDS, as many at a time as there are cores. FOUND keeps
# new inputs (FOUND/<format>), findings (FOUND/findings, with the output beside them) and searched.txt with a line for each
# search: format, seconds of CPU, inputs tried. Further calls go on from there; the sum over all of them is printed. Ends
# with 1 if there is a finding.
set -Eeuo pipefail
trap 'echo "${BASH_SOURCE[0]}:$LINENO: exit code $?: $BASH_COMMAND" >&2' ERR
build=$1 found=$2 seconds=$3
corpora=$(cd "$(dirname "$0")/corpus" && pwd)
mkdir -p "$found/findings"

search() {
  local format=$1 output=$found/findings/$1.txt cpu inputs TIMEFORMAT=%U
  mkdir -p "$found/$format"
  cpu=$({ time "$build/bin/fuzz_$format" "$found/$format" "$corpora/$format" -max_total_time="$seconds" -timeout=60 \
    -malloc_limit_mb=300 -max_len=20000 -print_final_stats=1 -artifact_prefix="$found/findings/$format-" \
    > "$output" 2>&1 || true; } 2>&1)
  inputs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$output")
  echo "$format $cpu ${inputs:-0}" >> "$found/searched.txt"
  [ -n "$(find "$found/findings" -name "$format-*")" ] || rm -f "$output"
}

for program in "$build"/bin/fuzz_*; do
  while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n; done
  search "${program##*/fuzz_}" &
done
wait

awk '{cpu += $2; inputs += $3; by[$1] += $2} END {
  for (format in by) printf "%-12s %7.0f s\n", format, by[format] | "sort"
  close("sort"); printf "%.2f hours, %d inputs\n", cpu / 3600, inputs}' "$found/searched.txt"
[ -z "$(ls "$found/findings")" ] || { echo "findings: $found/findings"; exit 1; }
