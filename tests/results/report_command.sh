#!/usr/bin/env bash
# report_command.sh PLUMBLINE DATA_DIR: `plumbline report` as users call it: its page, what it refuses, what it leaves out.
set -Eeuo pipefail
trap 'echo "${BASH_SOURCE[0]}:$LINENO: exit code $?: $BASH_COMMAND" >&2' ERR
plumbline=$1
data=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
failures=0

# run FOLDER DEVICES SECONDS [STATUS [SCHEMA]]: a run folder of 6 iterations.
run() {
  mkdir -p "$1"
  local windows steps
  windows=$(for _ in $(seq "$2"); do printf '%s,' "$(awk "BEGIN { print 4 * $3 }")"; done)
  steps=$(for _ in 1 2 3 4 5 6; do printf '%s,' "$3"; done)
  cat >"$1/result.json" <<END
{"schema": "${5:-plumbline.result/1}", "status": "${4:-ok}", "failure": "", "model": "resnet50", "precision": "fp32",
 "device": "cpu", "device_name": "a CPU", "batch_per_device": 8, "world_size": $2, "nodes": 1, "devices_per_node": $2,
 "iterations": 6, "warmup": 2, "step_seconds": [${steps%,}], "loss": [7, 7, 7, 7, 7, 7],
 "images_per_second": {"mean": $(awk "BEGIN { print 8 * $2 / $3 }"), "median": 1, "min": 1, "max": 1},
 "rank_window_seconds": [${windows%,}], "exposed_communication_seconds": 0, "data_wait_seconds": 0,
 "parameters": 25557032, "macs_per_image": 4089184256, "memory_bytes": {"peak": 1}, "checks": {},
 "config": {"data": "synthetic", "image_size": 224}, "log_files": [], "energy_joules_per_image": null}
END
}

# expect CODE WORD OPTION…
expect() {
  local wanted=$1 word=$2 code=0
  shift 2
  "$plumbline" report "$@" >said 2>&1 || code=$?
  if [ $code -ne "$wanted" ] || ! { [ -z "$word" ] || grep -q -e "$word" said; } || [ "$(wc -l <said)" -gt 4 ]; then
    echo "report $*: exit $code (wanted $wanted), '$word' wanted in at most 4 lines: $(cat said)"
    failures=$((failures + 1))
  fi
}
# holds FILE WORD
holds() { grep -q -e "$2" "$1" || { echo "$1 lacks '$2'"; failures=$((failures + 1)); }; }

run runs/a 1 0.1
run runs/b 2 0.11
rank() { echo "{\"host\": \"$1\", \"exposed_communication_seconds\": 0.01, \"compute_seconds\": $2}"; }
sed -i "s/\"log_files\": \[\]/&, \"ranks\": [$(rank n1 0.1), $(rank n2 0.0625)]/" runs/b/result.json
run runs/c 1 0.1 failed
run runs/d 1 0.1 ok plumbline.result/999
expect 0 'c' runs -o page.html --title 'A & <b>'
holds page.html '<h1>A &amp; &lt;b&gt;</h1>'
holds page.html '"case":"1n2g"'
holds page.html '"compute_seconds":0.0625'
holds page.html '"left_out":\[".*c.*d.*"\]'
# interrupt FOLDER: its run was interrupted.
interrupt() {
  sed -i 's/"failure": ""/"failure": "interrupted by SIGTERM after 5 of 6 iterations"/' "$1/result.json"
}
interrupt runs/c
no_measurement='the run was interrupted by SIGTERM after 5 of 6 iterations, so it is no measurement; start it again'
expect 0 "left out: runs/c .*$no_measurement" runs -o interrupted.html
holds interrupted.html "\"left_out\":\[\".*$no_measurement"
[ "$(grep -o '"images_per_second":\[' interrupted.html | wc -l)" -eq 2 ] || { echo "points of an interrupted run"; failures=$((failures + 1)); }
expect 65 "$no_measurement" runs/c -o new.html
expect 0 "left out: runs/c .*$no_measurement" --history runs -o interrupted_history.html
for i in 1 2 3 4 5 6; do run "bad/$i" 1 0.1 failed; done
run bad/good 1 0.1
expect 0 'verbose' bad -o bad.html
"$plumbline" report bad -o all.html --verbose >said 2>&1 || true
[ "$(grep -c 'left out: .*failed' said)" -eq 6 ] || { echo "--verbose: $(cat said)"; failures=$((failures + 1)); }
run large 1 0.1
truncate -s 1T large/env.json
expect 0 'large/env.json. has 1099511627776 bytes, more than the 256 MiB' large -o large.html
[ "$(wc -l <said)" -eq 1 ] || { echo "a file named twice: $(cat said)"; failures=$((failures + 1)); }
before=$(cksum page.html)
expect 73 'page.html.*exists' runs -o page.html
[ "$(cksum page.html)" = "$before" ] || { echo "page.html was replaced"; failures=$((failures + 1)); }

expect 0 '' runs/a runs/b -o two.html
holds two.html '"efficiency":0.9090'
holds two.html '"sentence":"ResNet-50 v1.5 fp32 scales as it should: each of 2 devices (1n2g) reaches 91 %'
expect 0 '' runs/a runs/b --format markdown -o two.md
grep -q '^ResNet-50 v1.5 fp32 scales as it should: each of 2 devices' <<<"$(head -n 1 two.md)" || { echo "two.md begins: $(head -n 1 two.md)"; failures=$((failures + 1)); }
mkdir -p sweep/runs sweep/logs/x/1n1g
touch sweep/journal.jsonl
cp -r runs/a runs/b sweep/runs
expect 0 '' sweep --format markdown -o sweep.md
cmp -s two.md sweep.md || { echo "a sweep's report isn't that of its runs: $(cat sweep.md)"; failures=$((failures + 1)); }
echo '[' >sweep/links.json
expect 0 'links.json: it holds no JSON object' sweep -o bad_links.html
expect 65 'sweep/links.json' sweep --links sweep/links.json -o new.html
expect 64 "'x' judges scaling" --history runs --links x -o new.html
expect 0 '' "$data/tree" -o logs.html
holds logs.html '"images_per_second":'

mkdir above
cp -r runs above/runs
expect 0 'above.runs' --history above -o history.html
holds history.html '<canvas id="chart-history"'
holds history.html '"left_out":\[".*c.*d.*"\]'
expect 0 "the commit of 2 of 2 runs isn't known (2 without env.json" --history runs --format markdown -o history.md
holds history.md '^| .* | not known | 1 | 80.00 | 80.00 to 80.00 | - | first |$'
expect 0 '' --history runs --format json -o history.json
holds history.json '"schema": "plumbline.history/1"'
expect 64 'html, markdown and json' --history runs --format svg -o new.html
expect 64 'needs --history' runs --format json -o new.html
expect 64 'a --history; give it' runs --baseline-last 3 -o new.html
expect 65 'nowhere' --history nowhere -o new.html

expect 64 'PATH.* is missing' -o new.html
expect 64 '-o.* is missing\|--output.* is missing' runs
expect 65 'nowhere' nowhere -o new.html
mkdir empty
expect 65 'empty' empty -o new.html
expect 65 'c' runs/c -o new.html
expect 73 'folder' runs -o none/new.html
[ ! -e new.html ] || { echo "a page of nothing"; failures=$((failures + 1)); }
exit $((failures > 0))
