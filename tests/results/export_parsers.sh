#!/usr/bin/env bash
# export_parsers.sh PLUMBLINE: what `plumbline export` writes, read by the parsers of the Python packages mlperf-logging
# and prometheus-client. 77 without one of them.
. "${BASH_SOURCE[0]%/*}/../prelude.sh"
plumbline=$1
# shellcheck source=tests/golden/made_inputs.sh
source "$(dirname "$0")/../golden/made_inputs.sh"
cd "$scratch"

run runs/a checks='{"loss_finite": true}' config.seed=0

python3 -c 'import mlperf_logging, prometheus_client' 2>/dev/null ||
  skip "mlperf-logging or prometheus-client is missing (PLUMB_TEST_PACKAGES=1 launch/install_deps.sh fetches both)"
"$plumbline" export runs/a --format mlperf -o result_0.txt
"$plumbline" export runs/a --format prometheus -o plumbline.prom
python3 - <<'END'
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
