#!/usr/bin/env bash
# export_command.sh command|parsers PLUMBLINE DATA_DIR: `plumbline export` as users call it; or what it writes, read by the
# parsers of the Python packages mlperf-logging and prometheus-client (skipped without one of them).
set -Eeuo pipefail
trap 'echo "${BASH_SOURCE[0]}:$LINENO: exit code $?: $BASH_COMMAND" >&2' ERR
part=$1
plumbline=$2
data=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
failures=0

fail() {
  echo "$*"
  failures=$((failures + 1))
}

# run FOLDER SECONDS [STATUS [CHECK]]: a run folder of 6 iterations on one rank.
run() {
  mkdir -p "$1"
  cat >"$1/result.json" <<END
{"schema": "plumbline.result/1", "status": "${3:-ok}", "failure": "${3:+a rank died}", "model": "resnet50",
 "precision": "fp32", "device": "cpu", "device_name": "a CPU", "batch_per_device": 8, "world_size": 1, "nodes": 1,
 "devices_per_node": 1, "iterations": 6, "warmup": 2, "step_seconds": [$2, $2, $2, $2, $2, $2],
 "loss": [7, 7, 7, 7, 7, 6.5], "images_per_second": {"mean": 80, "median": 80, "min": 80, "max": 80},
 "rank_window_seconds": [0.4], "exposed_communication_seconds": 0, "data_wait_seconds": 0, "parameters": 25557032,
 "macs_per_image": 4089184256, "memory_bytes": {"peak": 1}, "checks": {"loss_finite": ${4:-true}},
 "config": {"data": "synthetic", "image_size": 224, "seed": 0, "optimizer": "sgd"}, "log_files": [],
 "energy_joules_per_image": null}
END
}

# expect CODE WORD OPTION…
expect() {
  local wanted=$1 word=$2 code=0
  shift 2
  "$plumbline" export "$@" >out 2>err || code=$?
  [ $code -eq "$wanted" ] || fail "export $*: exit $code (wanted $wanted): $(cat err)"
  [ -z "$word" ] || grep -q -e "$word" out err || fail "export $*: '$word' is not in $(cat out err)"
  [ "$(wc -l <err)" -le 4 ] || fail "export $*: more than four lines: $(cat err)"
}

run runs/a 0.1
run runs/b 0.11

if [ "$part" = command ]; then
  expect 0 '^:::MLLOG {"namespace": "", "time_ms": .*"tracked_stats", "value": {"throughput": 80' runs/a --format mlperf
  expect 0 '^plumbline_images_per_second{model="resnet50",precision="fp32",.*} 80$' runs --format prometheus -o -
  expect 0 '' runs --format prometheus -o plumbline.prom
  grep -q '^plumbline_runs{.*} 2$' plumbline.prom || fail "plumbline.prom: $(cat plumbline.prom)"
  [ "$(find . -name '*.part*')" = '' ] || fail "unfinished files: $(ls -A)"
  before=$(cksum plumbline.prom)
  expect 73 'plumbline.prom.* exists' runs/a --format prometheus -o plumbline.prom
  [ "$(cksum plumbline.prom)" = "$before" ] || fail 'plumbline.prom was replaced'
  expect 0 '' runs/a --format prometheus -o plumbline.prom --overwrite
  grep -q '^plumbline_runs{.*} 1$' plumbline.prom || fail 'plumbline.prom was not replaced'

  expect 64 'option -o.* 2 runs' runs --format mlperf -o one.txt
  mkdir results
  expect 0 '' runs --format mlperf -o results
  [ "$(ls results)" = "result_0.txt
result_1.txt" ] || fail "results holds $(ls results)"
  expect 73 'result_0.txt.* exists' runs --format mlperf -o results

  run failed 0.1 failed
  run unchecked 0.1 ok '"skipped"'
  expect 65 'failed.* the run failed: a rank died' failed --format mlperf -o new.txt
  expect 65 'unchecked.* loss_finite was skipped' unchecked --format prometheus -o new.txt
  expect 65 'it is a log' "$data/tree" --format mlperf -o new.txt
  run interrupted 0.1 failed
  sed -i 's/a rank died/interrupted by SIGTERM after 5 of 120 iterations/' interrupted/result.json
  expect 65 'interrupted.* was interrupted by SIGTERM after 5 of 120 iterations, so it is no measurement; start it again' \
    interrupted --format prometheus -o new.txt
  run mixed/good 0.1
  run mixed/failed 0.1 failed
  expect 0 'left out: mixed/failed .*a rank died' mixed --format prometheus
  expect 65 nowhere nowhere --format mlperf -o new.txt
  expect 64 '--format.* is missing' runs
  expect 64 'mlperf, prometheus' runs --format csv
  [ ! -e new.txt ] || fail 'a file of nothing'
  exit $((failures > 0))
fi

if ! python3 -c 'import mlperf_logging, prometheus_client' 2>/dev/null; then
  echo "skipped: mlperf-logging or prometheus-client is missing (PLUMB_TEST_PACKAGES=1 launch/install_deps.sh fetches both)"
  exit 77
fi
"$plumbline" export runs/a --format mlperf -o result_0.txt
"$plumbline" export runs --format prometheus -o plumbline.prom
python3 - <<'END' || failures=1
from mlperf_logging.compliance_checker import mlp_parser
from mlperf_logging.mllog import constants
from prometheus_client.parser import text_string_to_metric_families

for ruleset in '1.0.0', '5.1.0':
    lines, errors = mlp_parser.parse_file('result_0.txt', ruleset=ruleset)
    assert not errors, errors
    values = {line.key: line.value['value'] for line in lines}
    times = {line.key: line.timestamp for line in lines}
    assert values[constants.SUBMISSION_BENCHMARK] == constants.RESNET, values
    assert values[constants.GLOBAL_BATCH_SIZE] == 8 and values[constants.TRAIN_SAMPLES] == 48, values
    assert values[constants.OPT_NAME] == constants.SGD, values
    assert values['tracked_stats']['throughput'] == 80, values
    assert times[constants.RUN_STOP] - times[constants.RUN_START] == 600, times
    for line in lines:
        assert line.key == 'tracked_stats' or line.key in vars(constants).values(), line.key

with open('plumbline.prom', encoding='utf-8') as file:
    families = {family.name: family for family in text_string_to_metric_families(file.read())}
speed, = families['plumbline_images_per_second'].samples
assert families['plumbline_images_per_second'].type == 'gauge'
assert speed.value == 80 and speed.labels['model'] == 'resnet50' and speed.labels['batch_per_device'] == '8', speed
END
exit $((failures > 0))
