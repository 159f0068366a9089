#!/usr/bin/env bash
# example_report.sh PLUMBLINE SOURCE_DIR: docs/examples/report.html, which docs/make_outputs.py writes, is small, is a page as
# the program writes one of the runs on an H200 now, and names no folder of the machine that made it.
. "${BASH_SOURCE[0]%/*}/../prelude.sh"
plumbline=$1
sources=$2
example=$sources/docs/examples/report.html

wrong() { fail "$example $*; run docs/make_outputs.py how-to/compare-a-framework.md"; }

# The ids of sections, figures and charts, and the names of the data's parts, options of runs apart.
parts() {
  grep -oE '<(section|figure|canvas|div|dl|ul) id="[a-z-]+"|<canvas id="[a-z-]+"' "$1"
  sed -n '/^<script type="application\/json" id="data">/,/<\/script>/p' "$1" | sed -E 's/"config":\{[^}]*\}//g' | grep -oE '[{,]"[a-z_]+":' | tr -d '{,' | sort -u
}

[ "$(stat -c %s "$example")" -lt 900000 ] || wrong "has $(stat -c %s "$example") bytes, 900,000 or more"
"$plumbline" report "$sources"/results/measured/nvidia_h200 -o "$scratch/report.html" 2>/dev/null
parts "$scratch/report.html" >"$scratch/wanted"
parts "$example" >"$scratch/there"
missing=$(grep -vxFf "$scratch/there" "$scratch/wanted" || true)
[ -z "$missing" ] || wrong "lacks what a page has now: $missing"
grep -q '"profile":{' "$example" || wrong "shows no profile"
! grep -oE '"/(home|root|work|mnt|data|opt)/[^"]*"' "$example" || wrong "names folders of a machine"
for page in README.md docs/reference/log-formats.md docs/how-to/compare-a-framework.md; do
  grep -q 'examples/report.html)' "$sources/$page" || wrong "is not linked from $page"
done
