#!/usr/bin/env bash
# keep_runs.sh NAME RUN_FOLDER…: keeps finished runs under results/measured/NAME, whose README docs/make_outputs.py
# writes: of each folder result.json (every sample), env.json (the machine, by its host name, too) and, where they are,
# profile.json and tuning.csv.
# NAME: the machine, for readers. Exit codes: 0 kept; 64 usage; 65 no finished run; 73 kept already.
. "$(dirname "${BASH_SOURCE[0]}")/prelude.sh" || exit

[ $# -ge 2 ] || give_up 64 "expected a name for the machine and run folders; start it as launch/keep_runs.sh epyc_2_cpus runs/*"
case $1 in
  */* | .* | '') give_up 64 "'$1' is not a folder's name; use letters and digits, as in epyc_2_cpus" ;;
esac
measured=$(cd "$(dirname "$0")/.." && pwd)/results/measured/$1
shift

for run in "$@"; do
  for file in result.json env.json; do
    [ -r "$run/$file" ] || give_up 65 "cannot read $file in '$run'; pass folders that a run made"
  done
  grep -q '"status": *"ok"' "$run/result.json" || give_up 65 "the run '$run' failed; only finished ones are kept"
  [ ! -e "$measured/$(basename "$run")" ] || give_up 73 "'$measured/$(basename "$run")' exists; remove it to replace it"
done
for run in "$@"; do
  kept=$measured/$(basename "$run")
  mkdir -p "$kept"
  for file in result.json env.json profile.json tuning.csv; do
    [ ! -e "$run/$file" ] || cp "$run/$file" "$kept"
  done
done
echo "kept $# runs in $measured; now: docs/make_outputs.py"
