#!/usr/bin/env bash
# example_report.sh PLUMBLINE SOURCE_DIR: docs/examples/report.html, which docs/make_outputs.py writes, is small, is a page as
# the program writes one of runs on a CPU now, and names no folder of the machine that made it.
set -Eeuo pipefail
trap 'echo "${BASH_SOURCE[0]}:$LINENO: exit code $?: $BASH_COMMAND" >&2' ERR
plumbline=$1
sources=$2
example=$sources/docs/examples/report.html
again="run docs/make_outputs.py comparing.md"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0

fail() {
  echo "$example $*; $again"
  failures=$((failures + 1))
}

# The ids of sections, figures and charts, and the names of the data's parts, options of runs apart.
parts() {
  grep -oE '<(section|figure|canvas|div|dl|ul) id="[a-z-]+"|<canvas id="[a-z-]+"' "$1"
  sed -n '/^<script type="application\/json" id="data">/,/<\/script>/p' "$1" | sed -E 's/"config":\{[^}]*\}//g' | grep -oE '[{,]"[a-z_]+":' | tr -d '{,' | sort -u
}

[ "$(stat -c %s "$example")" -lt 800000 ] || fail "has $(stat -c %s "$example") bytes, 800,000 or more"
"$plumbline" report "$sources"/results/measured/amd_epyc_2_cpus/resnet50_* -o "$scratch/report.html" 2>/dev/null
parts "$scratch/report.html" >"$scratch/wanted"
parts "$example" >"$scratch/there"
missing=$(grep -vxFf "$scratch/there" "$scratch/wanted" || true)
[ -z "$missing" ] || fail "lacks what a page has now: $missing"
grep -q '"profile":{' "$example" && grep -q '"trace":"' "$example" && grep -q '"memory":{' "$example" ||
  fail "shows no profile, no trace or no memory"
! grep -oE '"/(home|root|tmp|work|mnt|data|opt)/[^"]*"' "$example" || fail "names folders of a machine"
for page in README.md docs/analysis.md docs/comparing.md; do
  grep -q 'examples/report.html)' "$sources/$page" || fail "is not linked from $page"
done
exit $((failures > 0))
