#!/usr/bin/env bash
# update_readme.sh [--check] [PLUMBLINE]: writes README.md's tables of measured runs anew, between the two lines that name
# this script, from the runs in results/measured (launch/keep_runs.sh puts them there), and its pictures where gnuplot is.
# --check only says whether the tables are as they would be written. PLUMBLINE: the program (build/release/bin/plumbline).
# Exit codes: 0 written, or current; 1 not current; 64 usage; 65 no such lines in README.md, or unusable runs; 69 no such
# program.
set -Eeuo pipefail
trap 'echo "${BASH_SOURCE[0]}:$LINENO: exit code $?: $BASH_COMMAND" >&2' ERR

give_up() {
  echo "update_readme.sh: $2" >&2
  exit "$1"
}

check=false
if [ "${1-}" = --check ]; then
  check=true
  shift
fi
if [ $# -gt 1 ] || [[ ${1-} == -* ]]; then
  give_up 64 "takes --check and the program 'plumbline', got '$*'"
fi
[ $# -eq 0 ] || plumbline=$(realpath "$1")
cd "$(dirname "$0")/.."
plumbline=${plumbline-build/release/bin/plumbline}
[ -x "$plumbline" ] || give_up 69 "there is no program '$plumbline'; build it, or name the one to take"

begin='<!-- measured runs, written by launch/update_readme.sh: begin -->'
end='<!-- measured runs, written by launch/update_readme.sh: end -->'
markers=$(grep -xF -e "$begin" -e "$end" README.md || true)
[ "$markers" = "$begin"$'\n'"$end" ] ||
  give_up 65 "README.md lacks the two lines that the tables stand between: '$begin' and '$end'"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
machines=()
for folder in results/measured/*/; do
  [ -d "$folder" ] && machines+=("${folder%/}")
done
if [ ${#machines[@]} -eq 0 ]; then
  echo "No runs are kept in \`results/measured\` yet." >"$work/tables.md"
else
  "$plumbline" report --format markdown -o "$work/tables.md" "${machines[@]}"
fi
awk -v begin="$begin" -v end="$end" -v tables="$work/tables.md" '
  $0 == end { inside = 0 }
  !inside { print }
  $0 == begin {
    inside = 1
    print ""
    while ((getline line < tables) > 0) print line
    print ""
  }' README.md >"$work/README.md"

# Pictures are drawn, not compared: every gnuplot draws a little differently. They show how machines scale, so only those
# with runs of several devices.
scaling=()
for machine in "${machines[@]}"; do
  ! grep -qrE --include=result.json '"world_size": *([2-9]|[1-9][0-9])' "$machine" || scaling+=("$machine")
done
if ! $check && [ ${#scaling[@]} -gt 0 ] && [ -d docs/pictures ] && command -v gnuplot >/dev/null; then
  for plot in throughput speedup; do
    "$plumbline" report --format svg --plot $plot -o "$work/$plot.svg" "${scaling[@]}"
    cat "$work/$plot.svg" >"docs/pictures/measured_$plot.svg"
  done
fi
cmp -s README.md "$work/README.md" && exit 0
if $check; then
  diff -u README.md "$work/README.md" || true
  give_up 1 "the tables in README.md are not those of results/measured; start launch/update_readme.sh"
fi
cat "$work/README.md" >README.md
