#!/usr/bin/env bash
# update_readme.sh [--check] [PLUMBLINE]: writes results/measured/README.md, the tables of all runs that are kept there
# (launch/keep_runs.sh puts them there; docs/make_pictures.py draws them). --check writes nothing: it compares the tables,
# and looks for each figure of README.md's own table in them. PLUMBLINE: the program (build/release/bin/plumbline).
# Exit codes: 0 written, or current; 1 not current; 64 usage; 65 unusable runs; 69 no such program.
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
  give_up 64 "expected --check and the program 'plumbline', got '$*'"
fi
[ $# -eq 0 ] || plumbline=$(realpath "$1")
cd "$(dirname "$0")/.."
plumbline=${plumbline-build/release/bin/plumbline}
[ -x "$plumbline" ] || give_up 69 "cannot find '$plumbline'; build it, or pass its path"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
measured=results/measured
machines=()
for folder in "$measured"/*/; do
  [ -d "$folder" ] && machines+=("${folder%/}")
done

# The page of all runs, to standard output.
tables() {
  echo "# Measured runs"
  echo
  echo "Written by \`launch/update_readme.sh\` from the runs in this folder. Each run has every sample in its" \
    "\`result.json\`, and its machine and commit in \`env.json\`."
  echo
  if [ ${#machines[@]} -eq 0 ]; then
    echo "No runs are kept yet."
  else
    "$plumbline" report --format markdown -o - "${machines[@]}"
  fi
}

# The figures of README.md's table, "8,532" as 8532, that no run, comparison or peer has. A figure printed as 8532.5 was
# rounded before, so it is both 8532 and 8533.
unfounded_figures() {
  { grep -hoE '[0-9]+\.[0-9]+' "$work/README.md" "$measured"/*/{pytorch.txt,peers/*.json} 2>/dev/null || true; } |
    sed -E 's/^([0-9]+)\.5$/\1.4\n\1.6/' | xargs -r printf '%.0f\n' | sort -u >"$work/founded"
  sed -n '/^## What has been measured/,/^On two cores/p' README.md | grep '^| [A-Z]' | grep -oE '[0-9]+,[0-9]{3}( \(|\*)' |
    tr -d ',( *' | sort -u | { grep -vxFf "$work/founded" || true; }
}

tables >"$work/README.md"
if $check; then
  diff -u "$measured/README.md" "$work/README.md" || give_up 1 "$measured/README.md is not of the runs there; start launch/update_readme.sh"
  unfounded=$(unfounded_figures)
  [ -z "$unfounded" ] || give_up 1 "README.md's table has figures that no run in $measured has: ${unfounded//$'\n'/, }"
  exit
fi
mkdir -p "$measured"
cat "$work/README.md" >"$measured/README.md"
